"""CASTLE where persons come back in bursts, formed on arrival as in the thesis and at the deadline.

    python -m load_tests.stream_bursts [--quick] [--json FILE]

943 persons give 100,000 ratings, as in MovieLens; so many of them rate at once on average. Means over several such
streams: they differ more from each other than the settings do. The loss counts a suppressed row as lost altogether.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from load_tests.generators import bursts
from load_tests.harness import arguments, print_machine, print_table, write_json
from load_tests.stream_quality import FORMATIONS, Outcome, run
from stream_algos import Castle

SETTINGS = (
    (0.7, {"k": 10, "delta": 1_000}),
    (0.7, {"k": 5, "delta": 300}),
    (0.7, {"k": 20, "delta": 2_000}),
    (0.7, {"k": 20, "delta": 1_000}),
    (3.0, {"k": 10, "delta": 1_000}),
    (3.0, {"k": 5, "delta": 300}),
)
QUASI = ("age", "occupation", "marital-status", "education-num")
EVENTS = 100_000
COLUMNS = ("at once", "k", "δ", "formation", "suppressed", "loss", "largest share of a person")


def loss(one: Outcome) -> float:
    """Mean over all rows, a suppressed one counted as lost altogether."""
    return (one.loss * (len(one.table) - one.suppressed) + one.suppressed) / len(one.table)


def largest_share(one: Outcome) -> float:
    """Of one person in the rows of a cluster."""
    pairs = np.column_stack([one.release.cluster_of(), one.table.persons[one.release.members]])
    clusters, rows = np.unique(pairs, axis=0, return_counts=True)
    return float((rows / np.diff(one.release.starts)[clusters[:, 0]]).max(initial=0.0))


def compare(seeds: Sequence[int], events: int = EVENTS) -> list[list[object]]:
    """Both formations in every setting."""
    rows: list[list[object]] = []
    for at_once, given in SETTINGS:
        tables = [bursts(at_once, QUASI).table(events, seed) for seed in seeds]
        for formation in FORMATIONS.values():
            runs = [run(Castle, table, formation=formation, **given) for table in tables]
            suppressed = round(float(np.mean([one.suppressed for one in runs])))
            means = (float(np.mean([measure(one) for one in runs])) for measure in (loss, largest_share))
            rows.append([at_once, *given.values(), formation, suppressed, *means])
    return rows


def main() -> None:
    """Measure, print, and write what was asked for."""
    options = arguments(__doc__)
    print_machine()
    rows = compare(range(1 if options.quick else 5))
    print_table(f"{EVENTS:,} events in bursts", COLUMNS, rows)
    write_json(options.json, "stream_bursts", [dict(zip(COLUMNS, row, strict=True)) for row in rows])


if __name__ == "__main__":
    main()
