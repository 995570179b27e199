"""How fast cohorts are: new persons and known ones a second, and the longest push of 1,000 rows among very many.

    python -m load_tests.cohort_speed [--quick] [--json FILE] [--docs FOLDER]

Time is that of one thread on its core, so that other work on the machine counts only as far as it takes caches away.
People like those of Adult, 8 quasi-identifiers, k = 10, δ = 1,000, `company: standing`. Goals: 100,000 new persons a
second, a million rows a second of a million known persons, no push of 1,000 rows above 20 ms.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from load_tests.generators import PEER_QUASI, adult_like
from load_tests.harness import arguments, machine_line, print_machine, print_table, write_json
from load_tests.stream_linking import write_between
from microdata import Schema, Table, seeded_words
from stream_algos import Batch, Cohorts

PUSH = 1_000
COLUMNS = ("stream", "rows", "rows/s", "longest push ms", "99.9 % of pushes ms", "cohorts")


def engine(table: Table) -> Cohorts:
    """An engine that knows nobody, with its kernels compiled."""
    made = [
        Cohorts(table.schema, words=seeded_words(1), k=10, delay={"tuples": 1_000}, company="standing")
        for _ in range(2)
    ]
    for batch in batches(table, np.arange(4 * PUSH) % (2 * PUSH), 0):
        made[0].push(batch)
    return made[1]


def batches(table: Table, order: NDArray[np.int64], first: int) -> Iterator[Batch]:
    """These persons one after the other, from a position on."""
    for begin in range(0, len(order), PUSH):
        own = order[begin : begin + PUSH]
        positions = np.arange(first + begin, first + begin + len(own))
        yield Batch(positions, np.zeros(len(own)), table.persons[own], table.quasi[own], table.sensitive[own])


def timed(name: str, one: Cohorts, table: Table, order: NDArray[np.int64], first: int) -> dict[str, Any]:
    """Push these persons, and tell what it took."""
    spent = []
    for batch in batches(table, order, first):
        start = time.thread_time()
        one.push(batch)
        spent.append(time.thread_time() - start)
    longest, usual = 1e3 * max(spent), 1e3 * float(np.quantile(spent, 0.999))
    facts = (name, len(order), len(order) / sum(spent), longest, usual, int(one.status()["cohorts"]))
    print(f"{name}: {facts[2]:,.0f} rows/s, longest push {longest:.1f} ms", flush=True)
    return dict(zip(COLUMNS, facts, strict=True))


def people(count: int) -> Table:
    """So many persons of all kinds; their codes are as good as hashes."""
    table, random = adult_like(PEER_QUASI, ()).table(count), np.random.default_rng(1)
    schema = Schema("person", table.schema.quasi)
    return Table(schema, random.integers(-(2**62), 2**62, count), table.quasi, table.sensitive)


def equal(table: Table) -> Table:
    """The same persons, all with the values of the first."""
    return Table(table.schema, table.persons, np.repeat(table.quasi[:1], len(table), axis=0), table.sensitive)


def measure(persons: int, rows: int) -> list[dict[str, Any]]:
    """New ones, known ones, and both together for long; the last also where nobody differs.

    The first time that people come back, cohorts are split that waited for more newcomers.
    """
    table, random = people(persons), np.random.default_rng(2)
    one, everybody = engine(table), np.arange(persons)
    found = [
        timed("new persons", one, table, everybody, 0),
        timed("known persons, for the first time", one, table, random.permutation(everybody), persons),
        timed("known persons", one, table, random.permutation(everybody), 2 * persons),
    ]
    order = random.integers(0, persons, rows)
    for name, same in (("coming and coming back", table), ("the same, all values equal", equal(table))):
        found.append(timed(name, engine(same), same, order, 0))
    return found


def lines_of(found: list[dict[str, Any]]) -> list[str]:
    """The table of the page, and where it was measured."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for row in found:
        name, rows, speed, longest, usual, cohorts = row.values()
        lines.append(f"| {name} | {rows:,} | {speed:,.0f} | {longest:.1f} | {usual:.1f} | {cohorts:,} |")
    return [*lines, "", machine_line()]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where the table goes."""
    parser.add_argument("--docs", type=Path, help="folder of the documentation, to write its table anew")


def main() -> None:
    """Measure, print, and write what was asked for."""
    options = arguments(__doc__, add=add_options)
    print_machine()
    found = measure(100_000, 1_000_000) if options.quick else measure(1_000_000, 10_000_000)
    print_table("Cohorts, k = 10, δ = 1,000", COLUMNS, [list(row.values()) for row in found])
    if options.docs:
        write_between("cohort_speed", lines_of(found), options.docs / "cohorts.md")
    write_json(options.json, "cohort_speed", found)


if __name__ == "__main__":
    main()
