"""What it costs to know people again: `castle` and `cohorts` behind Kafka, a message per row, the same orders.

    python -m load_tests.cohort_throughput --persons 1000000 [--broker apache] [--repeat 2] [--docs FOLDER]

Everybody comes once, and then comes back in any order. All orders are written before the worker starts; one worker with
default settings takes them from four partitions, both algorithms in turns. Told is the time until their offsets are
committed, and the time of the worker on processors, which other work on the machine takes nothing of: threads of the
client are in it, the broker is not. Both begin with the first commit, so what that commits is not counted. Of several
turns the least counts.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from load_tests.cohort_restore import BATCH, arena_of, orders, positions, processor_seconds, produce, wait_until
from load_tests.harness import arguments, machine_line, print_machine, print_table, show, write_json
from load_tests.stream_faults import Arena
from load_tests.stream_linking import write_between
from service.kafka import KafkaSettings, connect

ALGORITHMS = ("castle", "cohorts")
COLUMNS = ("persons", "events", "castle/s", "cohorts/s", "of castle", "castle, processor µs", "cohorts, processor µs")


def fill(arena: Arena, persons: int, returns: int) -> None:
    """Everybody once, then as many orders of those who are known."""
    keys, values = [], []
    for first in range(0, persons, BATCH):
        more = orders(first, min(BATCH, persons - first))
        produce(arena.connection, *more, "filler")
        keys += more[0]
        values += more[1]
    who = np.random.default_rng(1).integers(0, persons, returns)
    for first in range(0, returns, BATCH):
        some = who[first : first + BATCH].tolist()
        produce(arena.connection, [keys[one] for one in some], [values[one] for one in some], "filler")


def measure(broker: str, client: str, algorithm: str, persons: int, returns: int) -> list[tuple[float, float]]:
    """Seconds for each event, and seconds on processors, while everybody came, and while they came back."""
    with arena_of(broker, client, algorithm=algorithm, emit="tuples") as (arena, _):
        watching = connect(KafkaSettings(bootstrap_servers=arena.bootstrap, client="kafka-python"))
        fill(arena, persons, returns)
        arena.add_worker()
        process, found = arena.workers[-1].pid, []
        wait_until(lambda: sum(positions(watching).values()) > 0, arena)
        busy, taken = processor_seconds(process), sum(positions(watching).values())
        for events in (persons, persons + returns):

            def have_come(events: int = events) -> bool:
                return sum(positions(watching).values()) >= events

            seconds = wait_until(have_come, arena)
            now, reached = processor_seconds(process), sum(positions(watching).values())
            some = max(1, reached - taken)
            print(f"{algorithm}: {some} events in {seconds:.1f} s ({now - busy:.1f} s)", flush=True)
            found.append((seconds / some, (now - busy) / some))
            busy, taken = now, reached
        return found


def compare(broker: str, client: str, persons: int, returns: int, repeat: int) -> list[dict[str, Any]]:
    """Both algorithms in turns: a row for those who come, and one for those who come back."""
    turns = {
        name: np.array([measure(broker, client, name, persons, returns) for _ in range(repeat)]).min(axis=0)
        for name in ALGORITHMS
    }
    rows = []
    for phase, (what, events) in enumerate((("come", persons), ("come back", returns))):
        (castle, castle_busy), (cohorts, cohorts_busy) = (turns[name][phase] for name in ALGORITHMS)
        speeds = round(1 / castle), round(1 / cohorts), castle / cohorts
        facts = (f"{persons:,} {what}", events, *speeds, 1e6 * castle_busy, 1e6 * cohorts_busy)
        rows.append(dict(zip(COLUMNS, facts, strict=True)))
    return rows


def lines_of(rows: list[dict[str, Any]]) -> list[str]:
    """The table of the page, and where it was measured."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    return [*lines, *(f"| {' | '.join(map(show, row.values()))} |" for row in rows), "", machine_line()]


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--persons", type=int, default=1_000_000)
    parser.add_argument("--broker", choices=["embedded", "apache"], default="apache")
    parser.add_argument("--client", choices=["confluent-kafka", "kafka-python"], default="confluent-kafka")
    parser.add_argument("--repeat", type=int, default=1, help="turns of each algorithm")
    parser.add_argument("--docs", type=Path, help="folder of the documentation, to write its table anew")


def main() -> None:
    """Measure, print, and write what was asked for."""
    given = arguments(__doc__, add=_options)
    print_machine()
    persons = 50_000 if given.quick else given.persons
    rows = compare(given.broker, given.client, persons, persons, given.repeat)
    print_table("Events per second, broker and worker on the same cores", COLUMNS, [list(row.values()) for row in rows])
    if given.docs:
        write_between("cohort_throughput", lines_of(rows), given.docs / "cohorts.md")
    write_json(given.json, "cohort_throughput", rows)


if __name__ == "__main__":
    main()
