"""How fast counting is: engines without delay and the gate behind them, and columns cut by quantiles or recoded.

    python -m load_tests.counting_speed [--quick] [--json FILE]

Streams are Adult-like, with a window of 100,000 events, and come as in a replay, 16,384 events at once, or 50,000 as in
a busy worker: the engine alone, then its gate alone. Columns have 10 million rows: whole numbers, and numbers without a
grid. Times are processor time of one core, the best of three runs; with `--quick` of one. Asked for are 1,000,000
tuples/s of `quantile`, 300,000 of `z`, and 2 seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from load_tests.generators import adult_like
from load_tests.harness import arguments, best_of, print_machine, print_table, write_json
from microdata import Number, Schema, Table, seeded_words
from service.publishing.boxes import PublishedBoxes
from service.publishing.gate import Gate
from service.publishing.rows import Rows
from static_algos import Budget
from static_algos.partitions import cut_quantiles, cut_sampled
from stream_algos import Batch, Engine, Quantile, Release, Z

REPLAY, WORKER = 1 << 14, 50_000
"""Events that the gate is shown at once."""
WINDOW = 100_000
FOUR = ("age", "education", "marital-status", "sex")
CASES: dict[str, tuple[type[Engine], tuple[str, ...] | int, float, dict[str, Any]]] = {
    "z = 10, 4 QI": (Z, FOUR, 1, {"z": 10, "window": {"tuples": WINDOW}}),
    "z = 10, 8 QI": (Z, 8, 1, {"z": 10, "window": {"tuples": WINDOW}}),
    "z = 100, 4 QI, 4 rows per person": (Z, FOUR, 4, {"z": 100, "window": {"tuples": WINDOW}}),
    "quantile, 4 QI": (Quantile, FOUR, 1, {"k": 10, "universe": 10**8, "window": WINDOW}),
    "quantile, 8 QI": (Quantile, 8, 1, {"k": 10, "universe": 10**8, "window": WINDOW}),
}
COLUMN_ROWS = 10_000_000


@dataclass(frozen=True)
class Measured:
    """What one engine and its gate did."""

    engine: str
    tuples_per_second: int
    checked_per_second: int
    """In a replay."""
    checked_in_a_worker: int


@dataclass(frozen=True)
class Column:
    """What one way to cut a column took."""

    what: str
    values: str
    rows: int
    seconds: float


def measure(case: str, rows: int, repeat: int) -> Measured:
    """The best of several runs, behind the first full window."""
    kind, quasi, per_person, given = CASES[case]
    table = adult_like(quasi, (), rows_per_person=per_person).table(rows + WINDOW)
    _run(kind, table.take(np.arange(WINDOW + 1)), given, REPLAY)  # kernels are compiled, or read from the cache
    speeds = []
    for push in (REPLAY, WORKER):
        runs = [_run(kind, table, given, push) for _ in range(repeat)]
        speeds.append([round(rows / min(run[side] for run in runs)) for side in (0, 1)])
    return Measured(case, speeds[0][0], speeds[0][1], speeds[1][1])


def _run(kind: type[Engine], table: Table, given: dict[str, Any], push: int) -> tuple[float, float]:
    """Processor seconds of the engine and of the gate for all rows behind the first window."""
    engine = kind(table.schema, words=seeded_words(1), **given)
    gate = Gate(table.schema, engine.models())
    positions = np.arange(len(table))
    times, public = np.zeros(len(table)), ()
    batch = Batch(positions, times, table.persons, table.quasi, table.sensitive)
    engine.push(batch.take(slice(0, WINDOW)))
    pushed = checked = 0.0
    for start in range(WINDOW, len(table), push):
        began = time.process_time()
        release = engine.push(batch.take(slice(start, start + push)))
        pushed += time.process_time() - began
        kept = slice(start - WINDOW, start + push)
        rows = Rows(positions[kept], times[kept], table.persons[kept], table.quasi[kept], table.sensitive[kept], public)
        checked += _checked(gate, release, rows)
    return pushed, checked


def _checked(gate: Gate, release: Release, rows: Rows) -> float:
    began = time.process_time()
    if not gate.passes(release, rows, PublishedBoxes(release.lo.shape[1])).all():
        raise AssertionError("the gate refused what the engine released")
    return time.process_time() - began


def columns(rows: int, repeat: int) -> list[Column]:
    """Ten parts of one column, exact and sampled, and the whole algorithm on a table of it."""
    random = np.random.default_rng(1)
    kinds = {
        "whole numbers, 100 of them": (Number("x", 0, 99, integer=True), random.integers(0, 100, rows).astype(float)),
        "numbers without a grid": (Number("x", 0, 1), random.random(rows)),
    }
    persons, measured = random.integers(-(2**63), 2**63, rows), []
    for values, (attribute, column) in kinds.items():
        table = Table(Schema("person", (attribute,)), persons, column[:, None], np.empty((rows, 0), np.int32))
        ways: dict[str, Callable[[], object]] = {
            "quantiles": partial(cut_quantiles, column, rows // 10),
            "quantiles of a sample": partial(cut_sampled, column, rows // 10, seed=1),
            "budget": partial(Budget(k=rows // 20).anonymize, table),
        }
        measured += [Column(what, values, rows, best_of(way, repeat).processor) for what, way in ways.items()]
    return measured


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    print_machine()
    rows, repeat = (200_000, 1) if options.quick else (1_000_000, 3)
    engines = [asdict(measure(case, rows, repeat)) for case in CASES]
    heads = ["engine", "tuples/s", "checked/s in a replay", "checked/s in a worker"]
    print_table("Engines without delay", heads, [list(one.values()) for one in engines])
    cut = [asdict(one) for one in columns(COLUMN_ROWS, repeat)]
    print_table("One column", ["what", "values", "rows", "seconds"], [list(one.values()) for one in cut])
    write_json(options.json, "counting_speed", {"engines": engines, "columns": cut})


if __name__ == "__main__":
    main()
