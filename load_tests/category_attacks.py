"""What attackers learn before and after categories of sensitivity are asked for, and what that costs.

    python -m load_tests.category_attacks [--quick] [--json FILE] [--docs FOLDER]

Adult-like rows with a condition drawn evenly from eight, in four categories, as Sun (2010) and Sadad (2012) have it.
A table by Mondrian, then a stream by CASTLE: classes whose rows are all of one category, persons whose category is
certain, classes in which a category can be guessed with 75 %. `--docs` also writes a page.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from load_tests.generators import adult_like
from load_tests.harness import arguments, best_of, machine_line, print_machine, print_table, write_json
from load_tests.quality.page import add_options, markdown_table, write_page
from microdata import Category, Hierarchy, Publication, Sensitivity, Table, seeded_words
from privacy import disclosures, inference, observed, similarity
from static_algos import Mondrian
from stream_algos import Batch, Castle, Release

ROWS, FEW_ROWS = 30_162, 6_000
PUSH = 1_000
K = 2
"""Of the tables: 2-sensitive 2-anonymous ones are those that the sources attack."""
QUASI = ("age", "workclass", "education", "native-country", "marital-status", "race", "sex")
CONDITIONS = (("Cancer", "HIV"), ("Hepatitis", "Phthisis"), ("Asthma", "Obesity"), ("Flu", "Indigestion"))
HEALTH = Category(
    "condition", Hierarchy.flat([one for some in CONDITIONS for one in some]), sensitivity=Sensitivity(CONDITIONS)
)
FIRST_SHARE = {"every": 0.5, "of": "first"}
ASKED: dict[str, dict[str, Any]] = {
    "k = 2": {},
    "2-sensitive": {"p": 2},
    "(2,1)-sensitive": {"p": 2, "alpha_weight": 1},
    "2⁺-sensitive": {"p_categories": 2},
    "(2⁺,1)-sensitive": {"p_categories": 2, "alpha_weight": 1},
    "2⁺, at most half most secret": {"p_categories": 2, "max_category_share": FIRST_SHARE},
}
COLUMNS = (
    "asked for",
    "classes",
    "of one category",
    "rows in them",
    "persons whose category is certain",
    "classes to guess with 75 %",
    "loss",
    "seconds",
)
SAME = "ℓ = 2 over the categories"
"""As strong as p⁺ = 2: the sensitive value is the category itself."""
SPEEDS: dict[str, dict[str, Any]] = {
    "ℓ = 2": {"l": 2},
    SAME: {"l": 2},
    "p⁺ = 2": {"p_categories": 2},
    "p⁺ = 2, α = 1": {"p_categories": 2, "alpha_weight": 1},
    "p⁺ = 2, at most half most secret": {"p_categories": 2, "max_category_share": FIRST_SHARE},
}
SPEED_COLUMNS = (
    "k = 10, δ = 1,000, and",
    "tuples per second",
    "of ℓ = 2",
    "loss",
    "suppressed",
    "persons in a class",
    "tuples that a row waits for",
)

PAGE = "category-attacks.md"
INTRODUCTION = """\
# Attacks on categories

Written by `python -m load_tests.category_attacks --docs docs`.
Measured: {machine}.
Seconds are processor time.

{rows:,} Adult-like patients with seven quasi-identifiers and a condition drawn evenly from eight, in four
[categories of sensitivity](categories.md), as X. Sun (2010) and T. Sadad (2012) have it.

## A table by Mondrian, k = {k}
"""
STREAM = """\
## The same as a stream by CASTLE

ℓ = 2 over the categories asks for the same as p⁺ = 2, of a column that holds the category instead of the condition.
"""


def patients(rows: int, seed: int = 0) -> Table:
    """Adult-like persons with a condition each."""
    table = adult_like(QUASI, ()).table(rows, seed)
    conditions = np.random.default_rng(seed).integers(0, HEALTH.size, (rows, 1)).astype(np.int32)
    return replace(table, schema=replace(table.schema, sensitive=(HEALTH,)), sensitive=conditions)


def of_categories(table: Table) -> Table:
    """The same persons with the category instead of the condition."""
    category = Category("category", Hierarchy.flat([some[0] for some in CONDITIONS]))
    number = np.repeat(np.arange(len(CONDITIONS)), [len(some) for some in CONDITIONS]).astype(np.int32)
    return replace(table, schema=replace(table.schema, sensitive=(category,)), sensitive=number[table.sensitive])


def attacked(publication: Publication) -> list[object]:
    """What the attacks find."""
    groups = observed(publication)
    (alike,), (_, likely), (known,) = (
        similarity(groups),
        inference(groups, certainty=0.75),
        disclosures(publication, publication.table),
    )
    certain = sum(category is not None for category in known.categories)
    return [len(groups), len(alike), alike.exposed(groups), certain, len(likely), publication.loss]


def tables(rows: int) -> Iterator[list[object]]:
    """Every request of a table."""
    table = patients(rows)
    for name, asked in ASKED.items():
        timing = best_of(lambda given=asked: Mondrian(k=K, **given).anonymize(table))  # type: ignore[misc]
        yield [name, *attacked(timing.result), timing.processor]


def claims(rows: list[list[object]]) -> list[list[object]]:
    """What the sources say, and whether it is so here."""
    alike = {str(row[0]): int(str(row[2])) for row in rows}
    p, weight, plus = (alike[name] for name in ("2-sensitive", "(2,1)-sensitive", "2⁺-sensitive"))
    said = {
        "2-sensitive tables still show categories": p > 0,
        "a weight makes that rarer": weight < p,
        "2⁺-sensitive tables show none": plus == 0,
    }
    return [[claim, "as claimed" if holds else "not as claimed"] for claim, holds in said.items()]


def streams(rows: int) -> Iterator[list[object]]:
    """The speed of CASTLE under conditions on categories, beside that under ℓ."""
    table, base = patients(rows), 0.0
    for name, asked in SPEEDS.items():
        given = of_categories(table) if name == SAME else table
        runs = [_run(given, asked) for _ in range(3)]
        speed = len(table) / min(seconds for seconds, *_ in runs)
        base = base or speed
        yield [name, speed, speed / base, *runs[0][1:]]


def _run(table: Table, asked: Mapping[str, Any]) -> tuple[float, float, int, float, float]:
    """Processor seconds of a stream; its loss, its suppressed rows, persons in a class, and for how long rows wait."""
    engine = Castle(table.schema, words=seeded_words(1), k=10, delta=1_000, **asked)
    releases: list[Release] = []
    seconds, waited = 0.0, 0
    for begin in range(0, len(table), PUSH):
        own = np.arange(begin, min(begin + PUSH, len(table)))
        batch = Batch(own, np.zeros(len(own)), table.persons[own], table.quasi[own], table.sensitive[own])
        before = time.process_time()
        releases.append(engine.push(batch))
        seconds += time.process_time() - before
        waited += int((own[-1] - releases[-1].members).sum())
    releases.append(engine.flush())
    waited += int((len(table) - 1 - releases[-1].members).sum())
    classes = np.full(len(table), -1)
    every = Release.concat(releases)
    classes[every.members] = every.cluster_of()
    size, delay = len(every.members) / max(len(every), 1), waited / max(len(every.members), 1)
    return seconds, Publication.of(table, classes).loss, len(every.suppressed), size, delay


Rows = list[list[object]]


def page(rows: int, found: Rows, said: Rows, speeds: Rows) -> list[str]:
    """The page of the documentation."""
    return [
        *INTRODUCTION.format(machine=machine_line(), rows=rows, k=K).splitlines(),
        "",
        *markdown_table(COLUMNS, found),
        *markdown_table(("claim", "here"), said),
        *STREAM.splitlines(),
        "",
        *markdown_table(SPEED_COLUMNS, speeds),
    ]


def main() -> None:
    """Measure, print, and write what was asked for."""
    options = arguments(__doc__, add=add_options)
    print_machine()
    rows = FEW_ROWS if options.quick else ROWS
    found = list(tables(rows))
    print_table(f"Attacks on a table of {rows:,} patients, k = {K}", COLUMNS, found)
    said = claims(found)
    print_table("Claims", ("claim", "here"), said)
    speeds = list(streams(rows))
    print_table(f"A stream of {rows:,} patients", SPEED_COLUMNS, speeds)
    if options.docs:
        write_page(Path(options.docs) / PAGE, page(rows, found, said, speeds))
    results = {
        "tables": [dict(zip(COLUMNS, row, strict=True)) for row in found],
        "claims": [dict(zip(("claim", "here"), row, strict=True)) for row in said],
        "streams": [dict(zip(SPEED_COLUMNS, row, strict=True)) for row in speeds],
    }
    write_json(options.json, "category_attacks", results)


if __name__ == "__main__":
    main()
