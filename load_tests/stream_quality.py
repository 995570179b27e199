"""What the stream engines make of the data: the claims of the thesis' chapters 5 and 6, checked, and the peers.

    python -m load_tests.stream_quality [--quick] [--json FILE] [--docs FOLDER]

Prints a table per figure and "as claimed / not as claimed" for what the thesis says about it (its numbers are lost, so
orderings and trends are compared), then real Adult in its original order beside the best peer. With `--docs` the tables
become a page and the charts SVG files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from load_tests.generators import (
    ADULT_MISSING,
    ADULT_ROWS,
    CENSUS_QUASI,
    adult_like,
    census_like,
    power_law,
    real_adult,
    transactions,
)
from load_tests.harness import arguments, machine_line, print_machine, print_table, write_json
from load_tests.plot import Panel
from load_tests.quality.claims import Claim, Verdict, falls, grows, ordered
from load_tests.quality.figure import Figure
from load_tests.quality.page import (
    add_options,
    json_figure,
    markdown_figure,
    markdown_table,
    print_figures,
    write_page,
)
from microdata import Boxes, Table, class_loss, seeded_words
from stream_algos import (
    Batch,
    Castle,
    DynamicGroup,
    Engine,
    IncognitoW,
    MondrianW,
    Release,
    SabreW,
    _split_kernels,
    workload_error,
)

PAGE = "quality-stream-results.md"
PUSH = 1_000
ARRIVAL, DEADLINE = "CASTLE, on arrival (thesis)", "CASTLE, at the deadline"
FORMATIONS = {ARRIVAL: "arrival", DEADLINE: "deadline"}
OURS, DIRECT, THESIS_W = "SABRE_W", "SABRE_W, floor 0", "SABRE_W as in the thesis"
T_MONDRIAN, T_INCOGNITO, CONDENSED = "tMondrian_W", "tIncognito_W", "dynamicGroup"
NUMBERS = ("age", "final-weight", "education-num", "capital-gain", "capital-loss", "hours-per-week")
NUMBERS_UNSKEWED = ("age", "final-weight", "education-num", "hours-per-week")
THETAS = (0.05, 0.1, 0.15, 0.2, 0.25)
DIVERSITIES = {"age": (1, 10, 20, 30, 40), "occupation": (1, 3, 6, 9, 12)}
DIVERSE = ("final-weight", "education-num", "hours-per-week", "marital-status", "education")
UNSKEWED = ("age", "education-num", "hours-per-week", "final-weight", "marital-status", "education", "occupation")


@dataclass(frozen=True)
class Outcome:
    """What an engine made of a stream."""

    table: Table
    release: Release
    seconds: float
    steps: Mapping[str, int]

    @property
    def loss(self) -> float:
        """Mean loss of the released rows."""
        sizes = np.diff(self.release.starts)
        boxes = Boxes(self.table.schema, self.release.lo, self.release.hi)
        return float(class_loss(boxes) @ sizes / max(sizes.sum(), 1))

    @property
    def suppressed(self) -> int:
        """Rows that were not released."""
        return len(self.release.suppressed)

    def workload_error(self, window: int, selectivity: float = 0.1) -> float:
        """Median relative error of random queries on each window of the stream, averaged over the windows."""
        return workload_error(self.table, self.release, window, selectivity) or 0.0


def run(kind: type[Engine], table: Table, /, **given: Any) -> Outcome:
    """The whole table as a stream, in pushes of 1,000, and the end."""
    engine = kind(table.schema, words=seeded_words(1), **given)
    positions = np.arange(len(table))
    batch = Batch(positions, positions.astype(np.float64) * 1e-3, table.persons, table.quasi, table.sensitive)
    started = time.process_time()
    releases = [engine.push(batch.take(slice(at, at + PUSH))) for at in range(0, len(table), PUSH)]
    releases.append(engine.flush())
    seconds = time.process_time() - started
    return Outcome(table, Release.concat(releases), seconds, getattr(engine, "steps", {}))


def condensed(table: Table, k: int) -> Outcome:
    """The groups of dynamicGroup at the end of the stream, as published: without a bound on the delay."""
    return run(DynamicGroup, table, k=k, first=8_000, window={"size": len(table), "advance": len(table)})


Runs = Mapping[str, Sequence[Outcome]]


def panel(title: str, x_label: str, x: Sequence[Any], runs: Runs, measure: Callable[[Outcome], float]) -> Panel:
    """One chart of a sweep."""
    return Panel(title, x_label, x, {name: [measure(one) for one in line] for name, line in runs.items()})


def loss(one: Outcome) -> float:
    """Mean loss."""
    return one.loss


@cache
def adult(quasi: int | tuple[str, ...] = 10, sensitive: tuple[str, ...] = (), rows: int = ADULT_ROWS) -> Table:
    """Adult-like rows; the quasi-identifiers of the thesis in its order."""
    return adult_like(quasi, sensitive).table(rows)


def both_formations(tables: Sequence[Table], settings: Sequence[dict[str, Any]]) -> Runs:
    """CASTLE on each table with the setting of the same place, formed on arrival and at the deadline."""
    pairs = list(zip(tables, settings, strict=True))
    return {
        name: [run(Castle, table, formation=formation, **given) for table, given in pairs]
        for name, formation in FORMATIONS.items()
    }


def likewise(text: str, verdict: Callable[[str], Verdict]) -> tuple[Claim, Claim]:
    """What the thesis claims about its own way, and whether it holds for ours too."""
    return Claim(text, verdict(ARRIVAL)), Claim("… at the deadline likewise", verdict(DEADLINE), thesis=False)


def trends(text: str, trend: Callable[[Panel, Sequence[str]], Verdict], chart: Panel) -> tuple[Claim, Claim]:
    """A line that grows or falls."""
    return likewise(text, lambda line: trend(chart, (line,)))


def below_condensation(text: str, charts: Sequence[Panel]) -> tuple[Claim, Claim]:
    """A line that stays below dynamicGroup's."""
    return likewise(text, lambda line: ordered(charts, line, CONDENSED))


@dataclass
class Clusters:
    """Chapter 5: CASTLE."""

    quick: bool
    k: int = 100
    delta: int = 10_000
    given: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.given = {"k": self.k, "delta": self.delta}

    def few(self, values: Sequence[Any]) -> Sequence[Any]:
        """Every second value of a sweep in a quick run."""
        return values[::2] if self.quick else values

    def figures(self) -> Iterator[Figure]:
        """All figures, in the order of the thesis."""
        yield self.eta_and_mu()
        yield self.quasi_and_k()
        yield self.skew()
        yield self.repetition()
        yield self.workload()
        yield self.against_condensation()
        yield self.queries_against_condensation()
        yield from self.diversity()

    def eta_and_mu(self) -> Figure:
        """5.5: the bound on open clusters, and how many losses are averaged."""
        etas, mus = self.few((10, 25, 50, 100, 200)), self.few((10, 50, 100, 150, 200))
        table, name = adult(), ARRIVAL
        by_eta = {name: [run(Castle, table, formation="arrival", eta=eta, **self.given) for eta in etas]}
        by_mu = {name: [run(Castle, table, formation="arrival", mu=mu, **self.given) for mu in mus]}
        charts = panel("loss", "η", etas, by_eta, loss), panel("loss", "μ", mus, by_mu, loss)
        return Figure("5.5", "η and μ vary", charts, ())

    def quasi_and_k(self) -> Figure:
        """5.6: the number of quasi-identifiers, and k."""
        widths, persons = self.few((2, 4, 6, 8, 10)), self.few((10, 25, 50, 100, 200))
        by_width = both_formations([adult(width) for width in widths], [self.given] * len(widths))
        by_k = both_formations([adult()] * len(persons), [{**self.given, "k": k} for k in persons])
        losses = panel("loss", "quasi-identifiers", widths, by_width, loss), panel("loss", "k", persons, by_k, loss)
        return Figure(
            "5.6",
            "the number of quasi-identifiers and k vary",
            losses,
            (
                *trends("loss grows with the number of quasi-identifiers", grows, losses[0]),
                *trends("loss grows with k", grows, losses[1]),
            ),
        )

    def skew(self) -> Figure:
        """5.7: power-law data of different skew, under different delays."""
        alphas, deltas = (0.5, 1.0, 1.5, 2.0), self.few((1_000, 2_500, 5_000, 10_000, 20_000))
        rows = 15_000 if self.quick else 30_000
        tables = [power_law(alpha, 100, 6).table(rows) for alpha in alphas]
        by_alpha = both_formations(tables, [{"k": 50, "delta": 5_000}] * len(alphas))
        by_delta = both_formations([tables[2]] * len(deltas), [{"k": 50, "delta": delta} for delta in deltas])
        charts = (
            panel("loss, δ = 5,000", "α", alphas, by_alpha, loss),
            panel("loss, α = 1.5", "δ", deltas, by_delta, loss),
        )
        return Figure(
            "5.7",
            "power-law data: skew and delay vary (k = 50)",
            charts,
            (
                *trends("the more clustered the data, the less is lost", falls, charts[0]),
                *trends("a longer delay loses less", falls, charts[1]),
            ),
        )

    def repetition(self) -> Figure:
        """5.8: persons who come back, with several rows each."""
        rows = 15_000 if self.quick else 30_000
        duplicates, widths, persons = (1, 5, 10, 15), self.few((2, 4, 6, 8, 10)), self.few((10, 25, 50, 100, 200))
        by_dup = both_formations([transactions(dup, 4).table(rows) for dup in duplicates], [self.given] * 4)
        by_width = both_formations([transactions(5, width).table(rows) for width in widths], [self.given] * len(widths))
        repeated = transactions(5, 4).table(rows)
        by_k = both_formations([repeated] * len(persons), [{**self.given, "k": k} for k in persons])
        charts = (
            panel("loss, 4 quasi-identifiers", "rows per purchase", duplicates, by_dup, loss),
            panel("loss, 5 rows per purchase", "quasi-identifiers", widths, by_width, loss),
            panel("loss, 4 quasi-identifiers, 5 rows per purchase", "k", persons, by_k, loss),
        )
        claims = (
            *trends("loss grows with the number of quasi-identifiers", grows, charts[1]),
            *trends("loss grows with k", grows, charts[2]),
        )
        return Figure("5.8", "persons with several rows", charts, claims)

    def workload(self) -> Figure:
        """5.9: counting queries on windows of the stream."""
        table = adult(UNSKEWED[:4])
        deltas, persons = self.few((2_000, 5_000, 10_000)), self.few((25, 50, 100, 150, 200))
        thetas, widths = self.few(THETAS), self.few((2, 3, 4, 5, 6))
        by_delta = both_formations([table] * len(deltas), [{"k": 100, "delta": delta} for delta in deltas])
        by_k = both_formations([table] * len(persons), [{**self.given, "k": k} for k in persons])
        by_width = both_formations([adult(UNSKEWED[:width]) for width in widths], [self.given] * len(widths))
        usual = both_formations([table], [self.given])
        theta = {name: [line[0].workload_error(self.delta, t) for t in thetas] for name, line in usual.items()}
        error = "workload error"
        charts = (
            Panel(
                error,
                "δ",
                deltas,
                {n: [o.workload_error(d) for o, d in zip(line, deltas, strict=True)] for n, line in by_delta.items()},
            ),
            panel(error, "k", persons, by_k, lambda one: one.workload_error(self.delta)),
            panel(error, "quasi-identifiers", widths, by_width, lambda one: one.workload_error(self.delta)),
            Panel(error, "θ", thetas, theta),
        )
        return Figure(
            "5.9",
            "workload error (4 quasi-identifiers, θ = 0.1)",
            charts,
            (
                *trends("the error falls as δ grows", falls, charts[0]),
                *trends("the error grows with k", grows, charts[1]),
                *trends("the error falls as θ grows", falls, charts[3]),
            ),
        )

    def against_condensation(self) -> Figure:
        """5.10: dynamicGroup, which has no delay bound."""
        deltas = self.few((1_000, 2_500, 5_000, 10_000, 20_000))
        charts = []
        for k in (50, 100):
            table = adult(NUMBERS)
            runs = both_formations([table] * len(deltas), [{"k": k, "delta": delta} for delta in deltas])
            chart = panel(f"loss, k = {k}", "δ", deltas, runs, loss)
            rival = condensed(table, k).loss
            charts.append(Panel(chart.title, "δ", deltas, {**chart.series, CONDENSED: [rival] * len(deltas)}))
        last = [Panel(c.title, "δ", c.x[-1:], {name: line[-1:] for name, line in c.series.items()}) for c in charts]
        return Figure(
            "5.10",
            "against dynamicGroup, 6 numbers",
            charts,
            (
                *trends("CASTLE's loss falls as δ grows", falls, charts[1]),
                *below_condensation("at the longest delay CASTLE loses less", last),
            ),
        )

    def queries_against_condensation(self) -> Figure:
        """5.11: counting queries, against dynamicGroup."""
        delta, usual, persons, thetas = 20_000, 200, self.few((50, 100, 200, 300, 400)), self.few(THETAS)
        table = adult(NUMBERS_UNSKEWED)
        by_k = both_formations([table] * len(persons), [{"k": k, "delta": delta} for k in persons])
        rival = {k: condensed(table, k) for k in {*persons, usual}}
        chart = panel("workload error", "k", persons, by_k, lambda one: one.workload_error(delta))
        groups = [rival[k].workload_error(delta) for k in persons]
        by_theta = {
            name: [line[persons.index(usual)].workload_error(delta, theta) for theta in thetas]
            for name, line in by_k.items()
        }
        by_theta[CONDENSED] = [rival[usual].workload_error(delta, theta) for theta in thetas]
        charts = (
            Panel("workload error, θ = 0.1", "k", persons, {**chart.series, CONDENSED: groups}),
            Panel(f"workload error, k = {usual}", "θ", thetas, by_theta),
        )
        return Figure(
            "5.11",
            "queries, against dynamicGroup (4 numbers, δ = 20,000)",
            charts,
            below_condensation("CASTLE's error is below dynamicGroup's", charts),
        )

    def diversity(self) -> Iterator[Figure]:
        """5.12 and 5.13: ℓ-diversity, with a number and with a category as the sensitive attribute."""
        losses, errors = [], []
        for sensitive, values in DIVERSITIES.items():
            levels = self.few(values)
            table = adult(DIVERSE, (sensitive,))
            runs = both_formations([table] * len(levels), [{**self.given, "l": level} for level in levels])
            losses.append(panel(f"loss, {sensitive} sensitive", "ℓ", levels, runs, loss))
            errors.append(
                panel(
                    f"workload error, {sensitive} sensitive",
                    "ℓ",
                    levels,
                    runs,
                    lambda one: one.workload_error(self.delta),
                )
            )
        for number, name, charts in (("5.12", "loss", losses), ("5.13", "workload error", errors)):
            claims = [
                claim
                for which, chart in zip(DIVERSITIES, charts, strict=True)
                for claim in trends(f"the {name} grows with ℓ ({which})", grows, chart)
            ]
            yield Figure(number, f"ℓ-diversity, 5 quasi-identifiers: {name}", charts, claims)


@dataclass
class Windows:
    """Chapter 6: SABRE_W against other algorithms in the same windows."""

    quick: bool

    def __post_init__(self) -> None:
        self.rows = 40_000 if self.quick else 100_000
        self.given: dict[str, Any] = {"t": 0.35, "k": 6, "window": {"size": 20_000, "advance": 5_000}}

    def figures(self) -> Iterator[Figure]:
        """All figures, in the order of the thesis."""
        yield self.sweep("6.4", "the advance varies", "advance", (2_500, 5_000, 10_000, 20_000), self._advance)
        yield self.sweep("6.5", "the window's size varies", "ω", (10_000, 15_000, 20_000), self._size)
        yield self.sweep("6.6", "t varies", "t", (0.15, 0.25, 0.35, 0.45, 0.55), lambda t: (7, {"t": t}))
        yield self.sweep(
            "6.7", "the number of quasi-identifiers varies", "quasi-identifiers", (3, 4, 5, 6, 7), self._width
        )

    @staticmethod
    def _advance(advance: int) -> tuple[int, dict[str, Any]]:
        return 7, {"window": {"size": 20_000, "advance": advance}}

    @staticmethod
    def _size(size: int) -> tuple[int, dict[str, Any]]:
        return 7, {"window": {"size": size, "advance": 5_000}}

    @staticmethod
    def _width(width: int) -> tuple[int, dict[str, Any]]:
        return width, {}

    def sweep(
        self, number: str, title: str, x: str, values: Sequence[Any], at: Callable[[Any], tuple[int, dict[str, Any]]]
    ) -> Figure:
        """Loss and time of all of them."""
        chosen = values[::2] if self.quick else values
        runs: dict[str, list[Outcome]] = {name: [] for name in (OURS, DIRECT, THESIS_W, T_MONDRIAN, T_INCOGNITO)}
        for value in chosen:
            width, changed = at(value)
            table = census_like(CENSUS_QUASI[:width]).table(self.rows)
            given = {**self.given, **changed}
            runs[OURS].append(run(SabreW, table, **given))
            runs[DIRECT].append(run(SabreW, table, **given, floor=0.0))
            runs[THESIS_W].append(run(SabreW, table, **given, floor=0.0, refine="none"))
            runs[T_MONDRIAN].append(run(MondrianW, table, **given, floor=0.0))
            runs[T_INCOGNITO].append(run(IncognitoW, table, **given, floor=0.0))
        losses = panel("loss", x, chosen, runs, loss)
        times = panel("processor seconds", x, chosen, runs, lambda one: one.seconds)
        charts = (losses, Panel(times.title, x, chosen, times.series, log=True))
        claims = [
            Claim("SABRE_W loses less than tMondrian_W", ordered(losses, THESIS_W, T_MONDRIAN)),
            Claim("tMondrian_W loses less than tIncognito_W", ordered(losses, T_MONDRIAN, T_INCOGNITO)),
            Claim("SABRE_W is faster than both", ordered(times, THESIS_W, T_MONDRIAN, T_INCOGNITO)),
            Claim("ours loses less than tMondrian_W", ordered(losses, OURS, T_MONDRIAN), thesis=False),
            Claim("letting pending classes go loses less", ordered(losses, OURS, DIRECT), thesis=False),
            Claim("… and is faster", ordered(times, OURS, DIRECT), thesis=False),
        ]
        trends = {"6.5": falls, "6.6": falls, "6.7": grows}
        if number in trends:
            word = "grows" if trends[number] is grows else "falls"
            claims.append(Claim(f"loss {word}", trends[number](losses, (THESIS_W, T_MONDRIAN))))
        return Figure(number, f"SABRE_W: {title}", charts, claims)


def compare_splits() -> list[list[object]]:
    """One large cluster, split by looking at all pairs of rows as the thesis does, and block by block as we do."""
    rows: list[list[object]] = []
    for title, quasi, k in SPLITS:
        table = adult(quasi, (), 12_000)
        engine = Castle(table.schema, words=seeded_words(1), formation="arrival", k=k, delta=1_000_000, eta=1)
        positions = np.arange(len(table))
        engine.push(Batch(positions, np.zeros(len(table)), table.persons, table.quasi, table.sensitive))
        best = [min(_split(engine, table, whole=whole) for _ in range(3)) for whole in (True, False)]
        rows.append([title, *(number for microseconds, mean in best for number in (mean, microseconds))])
    return rows


def _split(engine: Castle, table: Table, *, whole: bool) -> tuple[float, float]:
    """Microseconds per row, and mean loss, of splitting all held rows."""
    state, slots = engine._state, engine._held()  # noqa: SLF001 - the split is no part of the interface
    engine._fetch_words(0)  # noqa: SLF001 - as above
    given = state.rows, engine._out, engine._space, engine._rules, slots, np.full(len(slots), -1)  # noqa: SLF001
    started = time.process_time()
    clusters = _split_kernels._split_k(*given, 0) if whole else _split_kernels.split(*given)  # noqa: SLF001
    seconds = time.process_time() - started
    boxes = Boxes.around(table.schema, state.rows.quasi[slots], given[-1], clusters)
    return 1e6 * seconds / len(slots), float(class_loss(boxes)[given[-1]].mean())


SPLITS = (("10 QI, k = 100", 10, 100), ("10 QI, k = 10", 10, 10), ("6 QI, k = 100", 6, 100))
SPLIT_COLUMNS = ("12,000 rows in one cluster", "all pairs: loss", "µs per row", "in blocks: loss", "µs per row ")

PEERS = (
    ("8 QI as numbers, k = 10, δ = 200", "number", {"k": 10, "delta": 200}, 0.293),
    ("8 QI as numbers, k = 10, δ = 1,000", "number", {"k": 10, "delta": 1_000}, 0.197),
    ("7 hierarchies, k = 10, δ = 200", "hierarchy", {"k": 10, "delta": 200}, 0.522),
    ("8 QI as numbers, k = 100, δ = 10,000", "number", {"k": 100, "delta": 10_000}, 0.349),
)
PEER_COLUMNS = ("setting", "best peer", "formation", "reuse", "loss", "suppressed", "tuples/s", "at most the peer's")


def compare_with_peers() -> list[list[object]]:
    """Real Adult in its original order, each formation with and without reuse."""
    rows: list[list[object]] = []
    for title, categories, given, best in PEERS:
        dataset = real_adult(categories=categories)  # type: ignore[arg-type]  # the literals are in the table above
        if dataset is None:
            print(ADULT_MISSING)
            return []
        table = dataset.table(ADULT_ROWS)
        for formation in FORMATIONS.values():
            for reuse in (True, False):
                one = run(Castle, table, formation=formation, reuse=reuse, **given)
                speed = round(len(table) / one.seconds)
                rows.append([title, best, formation, reuse, one.loss, one.suppressed, speed, one.loss <= best])
    return rows


Lines = Sequence[Sequence[object]]


def write_results(folder: Path, peers: Lines, splits: Lines, figures: Sequence[Figure]) -> None:
    """The page and its charts."""
    lines = ["# Stream algorithms: measured quality", ""]
    lines += [
        "Written by `python -m load_tests.stream_quality --docs docs`. What it means: [Quality](quality-stream.md).",
        "",
    ]
    lines += [f"Measured: {machine_line()}.", "", "## Real Adult in its original order, beside the best peer", ""]
    lines += markdown_table(PEER_COLUMNS, peers)
    lines += ["## Splitting a large cluster (formed on arrival)", "", *markdown_table(SPLIT_COLUMNS, splits)]
    for figure in figures:
        lines += markdown_figure(folder, "stream", figure)
    write_page(folder / PAGE, lines)


def main() -> None:
    """Measure, print, and write what was asked for."""
    options = arguments(__doc__, add=add_options)
    print_machine()
    peers = compare_with_peers()
    if peers:
        print_table("Real Adult in its original order", PEER_COLUMNS, peers)
    splits = compare_splits()
    print_table("Splitting a large cluster", SPLIT_COLUMNS, splits)
    quick = options.quick
    figures = [*print_figures(Clusters(quick).figures()), *print_figures(Windows(quick).figures())]
    if options.docs:
        write_results(options.docs, peers, splits, figures)
    results = {
        "peers": [dict(zip(PEER_COLUMNS, row, strict=True)) for row in peers],
        "splits": [dict(zip(SPLIT_COLUMNS, row, strict=True)) for row in splits],
        "figures": [json_figure(figure) for figure in figures],
    }
    write_json(options.json, "stream_quality", results)


if __name__ == "__main__":
    main()
