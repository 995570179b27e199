"""How long the static algorithms take, beside a plain numpy sort of the same rows, and how much memory.

    python -m load_tests.static_speed [--quick] [--json FILE]

The sort says how fast the machine is: the ratio to it means something anywhere. Times are the best of several calls, on
the clock and on the processor (what the clock would show on an idle machine), in a process that has its kernels. What
the first call of a new process takes is listed apart, with an empty and with a filled cache of compiled kernels. Memory
is the peak over the encoded table, in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from load_tests.generators import ADULT_MISSING, ADULT_ROWS, PEER_QUASI, Dataset, adult_like, census_like, real_adult
from load_tests.harness import arguments, best_of, first_seconds, peak_bytes, print_machine, print_table, write_json
from microdata import Publication, Table, squared_error
from static_algos import STATIC_ALGORITHMS

CENSUS_SIZES = (100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000)
MEMORY_LIMIT = 5.0


@dataclass(frozen=True)
class Case:
    """An algorithm on a data set, and the seconds that were promised for it."""

    name: str
    data: str
    rows: int
    algorithm: str
    parameters: dict[str, Any]
    promised: float | None = None


@dataclass(frozen=True)
class Measured:
    """What a case took."""

    case: Case
    classes: int
    loss: float
    squared_error: float | None
    """SSE / SST: what it would cost to show means."""
    seconds: float
    processor: float
    sort_processor: float

    @property
    def ratio(self) -> float:
        """Processor time in units of the sort's."""
        return self.processor / self.sort_processor


def adult_cases() -> list[Case]:
    """Adult with the eight quasi-identifiers of the peers (salary sensitive), k = 10, each algorithm.

    SABRE and BUREL are refined, as they are by default; SABRE-AK and SABRE-KNN are as published.
    """
    t, beta, published = {"k": 10, "t": 0.2}, {"k": 10, "beta": 1.0}, {"refine": "none"}
    return [
        Case("Mondrian, k", "adult", ADULT_ROWS, "mondrian", {"k": 10}, 0.25),
        Case("tMondrian", "adult", ADULT_ROWS, "mondrian", t),
        Case("LMondrian", "adult", ADULT_ROWS, "mondrian", beta),
        Case("SABRE", "adult", ADULT_ROWS, "sabre", t, 0.5),
        Case("SABRE-AK", "adult", ADULT_ROWS, "sabre", t | published, 0.5),
        Case("SABRE-KNN", "adult", ADULT_ROWS, "sabre", t | published | {"neighbours": "exact"}),
        Case("BUREL", "adult", ADULT_ROWS, "burel", beta, 0.5),
        Case("BUREL, as published", "adult", ADULT_ROWS, "burel", beta | published, 0.5),
        Case("Incognito, k", "adult", ADULT_ROWS, "incognito", {"k": 10}),
        Case("tIncognito", "adult", ADULT_ROWS, "incognito", t),
        Case("Samarati, k", "adult", ADULT_ROWS, "samarati", {"k": 10}),
        Case("Lattice, k, all minimal", "adult", ADULT_ROWS, "lattice", {"k": 10}, 2.0),
        Case("Top-down, k", "adult", ADULT_ROWS, "top_down", {"k": 10}, 0.5),
    ]


def census_cases(sizes: tuple[int, ...]) -> tuple[list[Case], list[Case]]:
    """CENSUS-like data with seven quasi-identifiers, t = 0.35, k = 6: SABRE-AK and refined SABRE at growing sizes."""
    promised = {100_000: 0.25, 500_000: 1.5}
    given = {"t": 0.35, "k": 6}
    published = given | {"refine": "none"}
    return (
        [Case("SABRE-AK", "census", rows, "sabre", published, promised.get(rows)) for rows in sizes],
        [Case("SABRE", "census", rows, "sabre", given) for rows in sizes],
    )


def microaggregation_cases() -> list[Case]:
    """100,000 Adult-like rows with eight quasi-identifiers, k = 20: MDAV is the one whose time is quadratic."""
    given = {"k": 20}
    return [
        Case("MDAV", "adult-like", 100_000, "mdav", given, 15.0),
        Case("AMA", "adult-like", 100_000, "ama", given, 5.0),
        Case("Mondrian, k", "adult-like", 100_000, "mondrian", given),
    ]


def dataset(name: str) -> Dataset:
    """The data of a case; Adult-like where Adult is not there."""
    if name == "census":
        return census_like()
    if name == "adult-like":
        return adult_like(PEER_QUASI, ("salary",))
    return real_adult(sensitive=("salary",)) or adult_like(PEER_QUASI, ("salary",))


def prepare(case: Case) -> Callable[[], Publication]:
    """The call that is measured; also set up in other processes."""
    table = dataset(case.data).table(case.rows)
    return _call(case, table)


def prepare_warm(case: Case) -> Callable[[], Publication]:
    """The same call after a small run, so that loading kernels is not part of its memory."""
    table = dataset(case.data).table(case.rows)
    _call(case, table.take(np.arange(1_000)))()
    return _call(case, table)


def _call(case: Case, table: Table) -> Callable[[], Publication]:
    algorithm = STATIC_ALGORITHMS[case.algorithm].algorithm(**case.parameters)
    return lambda: algorithm.anonymize(table, seed=1)


def sort_rows(table: Table) -> Callable[[], Any]:
    """The yardstick: the encoded rows, sorted by all their quasi-identifiers."""
    return lambda: table.quasi[np.lexsort(table.quasi.T)]


def measure(case: Case) -> Measured:
    """Time a case and its yardstick in this process."""
    call = prepare(case)
    table = dataset(case.data).table(case.rows)
    repeat = 2 if case.rows > 1_000_000 else 5
    sort = best_of(sort_rows(table), repeat)
    timing = best_of(call, repeat)
    publication = timing.result
    lost = squared_error(table.schema, table.quasi, publication.classes).total
    classes = len(publication.boxes)
    return Measured(case, classes, publication.loss, lost, timing.best, timing.processor, sort.processor)


def print_times(title: str, measured: list[Measured]) -> None:
    columns = ["algorithm", "rows", "classes", "loss", "SSE / SST", "promised", "seconds", "processor", "sort", "ratio"]
    rows = []
    for one in measured:
        case, promised = one.case, one.case.promised or "–"
        times = [one.seconds, one.processor, one.sort_processor, one.ratio]
        rows.append([case.name, case.rows, one.classes, one.loss, one.squared_error, promised, *times])
    print_table(title, columns, rows)


def print_growth(measured: list[Measured]) -> float:
    """The exponent of time over rows; 1 is linear."""
    sizes, seconds = [m.case.rows for m in measured], [m.processor for m in measured]
    exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    print(f"Time grows with rows to the power of {exponent:.2f}.\n")
    return exponent


def measure_memory(cases: list[Case]) -> list[dict[str, Any]]:
    """Peak memory of each case over the encoded table."""
    results, rows = [], []
    for case in cases:
        table = dataset(case.data).table(case.rows).nbytes
        peak = peak_bytes(prepare_warm, case)
        rows.append([case.name, case.rows, table / 2**20, peak / 2**20, peak / table])
        results.append({"case": case.name, "rows": case.rows, "table_bytes": table, "peak_bytes": peak})
    columns = ["algorithm", "rows", "encoded table, MiB", "peak above it, MiB", "times the table"]
    print_table("Memory", columns, rows, note=f"promised: at most {MEMORY_LIMIT:g} times the encoded table")
    return results


def measure_first(cases: list[Case]) -> list[dict[str, Any]]:
    """What the first call of a new process takes."""
    results = []
    for case in cases:
        compiling, cached = first_seconds(prepare, case)
        results.append({"case": case.name, "compiling": compiling, "cached": cached})
    rows = [[r["case"], r["compiling"], r["cached"]] for r in results]
    print_table("First call of a new process, seconds", ["algorithm", "kernels to compile", "kernels cached"], rows)
    return results


def main() -> None:
    options = arguments(__doc__)
    print_machine()
    if real_adult() is None:
        print(f"{ADULT_MISSING}; Adult-like rows instead.")
    sizes = CENSUS_SIZES[:3] if options.quick else CENSUS_SIZES
    adult, census = adult_cases(), census_cases(sizes)
    on_adult = [measure(case) for case in adult]
    print_times("Adult, 8 quasi-identifiers, k = 10 (t = 0.2, β = 1, salary sensitive)", on_adult)
    growth, on_census = {}, []
    for cases in census:
        measured = [measure(case) for case in cases]
        print_times("CENSUS-like, 7 quasi-identifiers, t = 0.35, k = 6", measured)
        growth[cases[0].name] = print_growth(measured)
        on_census += measured
    together = [measure(case) for case in microaggregation_cases()]
    print_times("Microaggregation: Adult-like, 8 quasi-identifiers, k = 20", together)
    memory = measure_memory(
        [*(case for cases in census for case in cases[:3]), *(case for case in adult if case.promised)]
    )
    first = [] if options.quick else measure_first([case for case in adult if case.promised])
    results = {
        "times": [asdict(m) | {"ratio": m.ratio} for m in [*on_adult, *on_census, *together]],
        "growth_exponents": growth,
        "memory": memory,
        "first_call": first,
    }
    write_json(options.json, "static_speed", results)


if __name__ == "__main__":
    main()
