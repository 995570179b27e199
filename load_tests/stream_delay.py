"""Loss against delay for all engines: what waiting buys, and what engines without delay lose.

    python -m load_tests.stream_delay [--quick] [--json FILE] [--docs FOLDER]

10,000 persons like those of Adult come back four times each, in random order, with 4 and with 8 quasi-identifiers;
k = 10. Every engine may wait for, or look back at, the same number of events: that is δ of CASTLE and cohorts, the
window of those that have one, twice a block. Delays are those that were measured, in events. The loss counts a
suppressed row as lost altogether; the first 10,000 rows, which fill windows, count in neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from load_tests.harness import arguments, print_machine, print_table, write_json
from load_tests.plot import Panel, write_chart
from load_tests.quality.page import add_options
from load_tests.stream_linking import QUASI, people, returning, write_between
from load_tests.stream_quality import Outcome, run
from microdata import Boxes, class_loss
from stream_algos import Blocks, BurelW, Castle, Cohorts, Engine, Quantile, SabreW, Z

K = 10
PERSONS, REPEATS = 10_000, 4
EVENTS = (500, 2_000, 8_000)
FILLED = 10_000
"""Rows that fill windows."""
UNIVERSE = 10**7


def _window(events: int) -> dict[str, Any]:
    return {"k": K, "window": {"size": events, "advance": events // 4}}


ENGINES: dict[str, tuple[type[Engine], Callable[[int], Mapping[str, Any]]]] = {
    "castle": (Castle, lambda events: {"k": K, "delta": events}),
    "sabre_w, t = 0.5": (SabreW, lambda events: {"t": 0.5, **_window(events)}),
    "burel_w, β = 4": (BurelW, lambda events: {"beta": 4.0, **_window(events)}),
    "blocks of mondrian": (
        Blocks,
        lambda events: {"size": events // 2, "table": {"algorithm": "mondrian", "k": K}},
    ),
    "cohorts, standing": (Cohorts, lambda events: {"k": K, "delay": {"tuples": events}, "company": "standing"}),
    "cohorts, present": (Cohorts, lambda events: {"k": K, "delay": {"tuples": events}, "company": "present"}),
    "z": (Z, lambda events: {"z": K, "window": {"tuples": events}}),
    "quantile": (Quantile, lambda events: {"k": K, "universe": UNIVERSE, "window": events}),
}
COLUMNS = ("quasi-identifiers", "engine", "events", "loss", "suppressed", "median delay", "99% delay", "longest")


def measured(one: Outcome) -> dict[str, float]:
    """Loss and delays of the rows behind those that fill windows."""
    release, cluster = one.release, one.release.cluster_of()
    left, given_up = release.members >= FILLED, release.suppressed >= FILLED
    lost = class_loss(Boxes(one.table.schema, release.lo, release.hi))[cluster[left]]
    rows = int(left.sum() + given_up.sum())
    waited = release.decided[cluster[left]] - release.members[left]
    waited = np.concatenate([waited, (release.given_up - release.suppressed)[given_up]])
    return {
        "loss": float((lost.sum() + given_up.sum()) / rows),
        "suppressed": float(given_up.sum() / rows),
        "median delay": float(np.median(waited)),
        "99% delay": float(np.quantile(waited, 0.99)),
        "longest": float(waited.max()),
    }


def compare(quasi: Sequence[int], events: Sequence[int]) -> list[dict[str, Any]]:
    """Every engine with every number of events."""
    rows = []
    for count in quasi:
        table = returning(people(PERSONS, QUASI[count]), REPEATS)
        for name, (kind, given) in ENGINES.items():
            for most in events:
                found = measured(run(kind, table, **given(most)))
                rows.append({"quasi-identifiers": count, "engine": name, "events": most, **found})
                print(f"{count}, {name}, {most:,}: loss {found['loss']:.3f}", flush=True)
    return rows


def draw(rows: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """The losses, and the delays that they were had with."""

    def panel(title: str, what: str, count: int) -> Panel:
        own = [row for row in rows if row["quasi-identifiers"] == count]
        x = sorted({row["events"] for row in own})
        lines = {name: [row[what] for row in own if row["engine"] == name] for name in ENGINES}
        return Panel(title, "events waited for, or looked back at", [f"{one:,}" for one in x], lines)

    losses = [panel(f"loss, {count} quasi-identifiers", "loss", count) for count in QUASI]
    write_chart(folder / "delay.svg", [*losses, panel("median delay in events", "median delay", 8)])


def lines_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The table of the page."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for row in rows:
        name = f"| {row['quasi-identifiers']} | {row['engine']} | {row['events']:,} | {row['loss']:.3f} "
        delays = " | ".join(f"{row[column]:,.0f}" for column in COLUMNS[-3:])
        lines.append(f"{name}| {row['suppressed']:.1%} | {delays} |")
    return lines


def main() -> None:
    """Measure, print, and write what was asked for."""
    options = arguments(__doc__, add=add_options)
    print_machine()
    rows = compare((4,) if options.quick else tuple(QUASI), EVENTS[:2] if options.quick else EVENTS)
    print_table(f"Loss and delay, k = {K}", COLUMNS, [[row[column] for column in COLUMNS] for row in rows])
    if options.docs:
        draw(rows, options.docs / "plots")
        write_between("delay", lines_of(rows), options.docs / "choosing.md")
    write_json(options.json, "stream_delay", rows)


if __name__ == "__main__":
    main()
