"""How fast the window engines are: tuples per second of one core, the longest push, and memory.

    python -m load_tests.window_speed [--quick] [--json FILE]

CENSUS-like data, 7 quasi-identifiers, ω = 20,000, advance 5,000, k = 6, in pushes of 1,000. Times are processor time,
the best of three runs; asked for are 100,000 tuples/s of SABRE_W at t = 0.35.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from load_tests.generators import census_like
from load_tests.harness import arguments, peak_bytes, print_machine, print_table, write_json
from microdata import Table, seeded_words
from stream_algos import Batch, BurelW, Engine, SabreW

PUSH = 1_000
WINDOW = {"size": 20_000, "advance": 5_000}
CASES: dict[str, tuple[type[Engine], dict[str, Any]]] = {
    "SABRE_W, t = 0.35": (SabreW, {"t": 0.35}),
    "SABRE_W, t = 0.35, as in the thesis": (SabreW, {"t": 0.35, "floor": 0.0, "refine": "none"}),
    "SABRE_W, t = 0.15": (SabreW, {"t": 0.15}),
    "BUREL_W, β = 4": (BurelW, {"beta": 4.0}),
    "BUREL_W, β = 1": (BurelW, {"beta": 1.0}),
}


@dataclass(frozen=True)
class Measured:
    """What one engine took."""

    engine: str
    tuples_per_second: int
    longest_push_ms: float
    memory_mb: float


def push_all(case: str, table: Table) -> float:
    """Everything through a new engine; seconds of the longest push."""
    kind, given = CASES[case]
    engine = kind(table.schema, words=seeded_words(1), k=6, window=WINDOW, **given)
    positions = np.arange(len(table))
    batch = Batch(positions, positions.astype(np.float64) * 1e-3, table.persons, table.quasi, table.sensitive)
    longest = 0.0
    for start in range(0, len(table), PUSH):
        began = time.process_time()
        engine.push(batch.take(slice(start, start + PUSH)))
        longest = max(longest, time.process_time() - began)
    engine.flush()
    return longest


def prepared(case: str, rows: int) -> Callable[[], object]:
    """For the memory, in a process of its own: the kernels are compiled and the data is there."""
    table = census_like().table(rows)
    push_all(case, census_like().table(25_000))
    return partial(push_all, case, table)


def measure(case: str, rows: int) -> Measured:
    """Best of three runs."""
    table = census_like().table(rows)
    push_all(case, census_like().table(25_000))
    best = longest = np.inf
    for _ in range(3):
        began = time.process_time()
        longest = min(longest, push_all(case, table))
        best = min(best, time.process_time() - began)
    return Measured(case, round(rows / best), round(longest * 1e3, 1), round(peak_bytes(prepared, case, rows) / 1e6, 1))


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    print_machine()
    measured = [measure(case, 60_000 if options.quick else 300_000) for case in CASES]
    columns = ["engine", "tuples/s", "longest push, ms", "peak memory, MB"]
    print_table("Window engines", columns, [list(asdict(one).values()) for one in measured])
    write_json(options.json, "window_speed", [asdict(one) for one in measured])


if __name__ == "__main__":
    main()
