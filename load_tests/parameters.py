"""What k, ℓ, t, β, δ and ω each cost: the loss while one of them varies and everything else stays.

    python -m load_tests.parameters [--quick] [--json FILE] [--docs FOLDER]

Adult-like rows, seven quasi-identifiers, occupation sensitive, one row per person. A table of 30,000 rows, and the
same rows as a stream; `--quick` changes nothing. `docs/choosing.md` shows the charts, which `make bench` draws anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from load_tests.generators import PEER_QUASI, adult_like
from load_tests.harness import arguments, print_machine, print_table, write_json
from load_tests.plot import Panel, write_chart
from load_tests.quality.page import add_options
from load_tests.stream_quality import run
from microdata import Table
from static_algos import Burel, Mondrian, Sabre, StaticAlgorithm
from stream_algos import BurelW, Castle, Engine, SabreW

SENSITIVE = "occupation"
QUASI = tuple(name for name in PEER_QUASI if name != SENSITIVE)
ROWS, K, DELTA, WINDOW = 30_000, 10, 5_000, 10_000
MONDRIAN = "Mondrian"


@cache
def table() -> Table:
    """The data."""
    return adult_like(QUASI, (SENSITIVE,)).table(ROWS)


def static(algorithm: StaticAlgorithm) -> float:
    """Loss of a table."""
    return algorithm.anonymize(table(), seed=1).loss


def stream(engine: type[Engine], **given: Any) -> float:
    """Loss of the released rows of a stream."""
    return run(engine, table(), **given).loss


def window(size: int) -> dict[str, Any]:
    """A window that advances by a quarter of itself."""
    return {"k": K, "window": {"size": size, "advance": size // 4}}


def panel(title: str, label: str, x: Sequence[float], lines: Mapping[str, Callable[[Any], float]]) -> Panel:
    """One chart: each line's loss at every place."""
    return Panel(title, label, x, {name: [loss(value) for value in x] for name, loss in lines.items()})


def bounded(
    letter: str,
    name: str,
    x: Sequence[float],
    for_tables: tuple[str, type[StaticAlgorithm]],
    for_windows: tuple[str, type[Engine]],
) -> tuple[Panel, Panel]:
    """Charts of a bound on the distribution in a class: of a table beside Mondrian, and of windows."""
    (static_line, algorithm), (stream_line, engine) = for_tables, for_windows
    losses = {
        static_line: lambda bound: static(algorithm(k=K, **{name: bound})),
        MONDRIAN: lambda bound: static(Mondrian(k=K, **{name: bound})),
    }
    windows = {stream_line: lambda bound: stream(engine, **{name: bound}, **window(WINDOW))}
    return panel("loss of a table, k = 10", letter, x, losses), panel("loss of a stream, k = 10", letter, x, windows)


def charts() -> dict[str, tuple[Panel, Panel]]:
    """Two charts for each parameter, by the name of its file."""
    persons, values = (2, 5, 10, 25, 50, 100), (1, 2, 3, 4, 5, 6)
    closeness, likeness = (0.05, 0.1, 0.2, 0.3, 0.5), (0.5, 1.0, 2.0, 4.0)
    delays, sizes = (200, 500, 1_000, 2_500, 5_000, 10_000), (2_000, 5_000, 10_000, 15_000)
    castle = f"CASTLE, δ = {DELTA:,}"
    sabre_w, burel_w = f"SABRE_W, ω = {WINDOW:,}", f"BUREL_W, ω = {WINDOW:,}"
    return {
        "k": (
            panel("loss of a table", "k", persons, {MONDRIAN: lambda k: static(Mondrian(k=k))}),
            panel("loss of a stream", "k", persons, {castle: lambda k: stream(Castle, k=k, delta=DELTA)}),
        ),
        "l": (
            panel("loss of a table, k = 10", "ℓ", values, {MONDRIAN: lambda one: static(Mondrian(k=K, l=one))}),
            panel(
                "loss of a stream, k = 10",
                "ℓ",
                values,
                {castle: lambda one: stream(Castle, k=K, l=one, delta=DELTA)},
            ),
        ),
        "t": bounded("t", "t", closeness, ("SABRE", Sabre), (sabre_w, SabreW)),
        "beta": bounded("β", "beta", likeness, ("BUREL", Burel), (burel_w, BurelW)),
        "delta": (
            panel("loss, k = 10", "δ", delays, {"CASTLE": lambda delta: stream(Castle, k=K, delta=delta)}),
            panel("loss, k = 100", "δ", delays, {"CASTLE": lambda delta: stream(Castle, k=100, delta=delta)}),
        ),
        "omega": (
            panel("loss, t = 0.2", "ω", sizes, {"SABRE_W": lambda size: stream(SabreW, t=0.2, **window(size))}),
            panel("loss, β = 1", "ω", sizes, {"BUREL_W": lambda size: stream(BurelW, beta=1.0, **window(size))}),
        ),
    }


def draw(results: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """The charts of what was measured, as SVG files."""
    by_name: dict[str, list[Panel]] = {}
    for one in results:
        by_name.setdefault(one["parameter"], []).append(Panel(one["chart"], one["x"], one["at"], one["series"]))
    for name, panels in by_name.items():
        write_chart(folder / f"choosing-{name}.svg", panels)


def main() -> None:
    options = arguments(__doc__, add=add_options)
    print_machine()
    results = []
    for name, panels in charts().items():
        for one in panels:
            series = {line: [round(value or 0.0, 4) for value in values] for line, values in one.series.items()}
            columns, rows = [one.x_label, *series], list(zip(one.x, *series.values(), strict=True))
            print_table(f"{name}: {one.title}", columns, rows)
            results.append(
                {"parameter": name, "chart": one.title, "x": one.x_label, "at": list(one.x), "series": series}
            )
    if options.docs:
        draw(results, options.docs / "plots")
    write_json(options.json, "parameters", results)


if __name__ == "__main__":
    main()
