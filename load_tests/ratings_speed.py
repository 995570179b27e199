"""Ratings: how fast they are checked and grouped, what is left of sparse ones, and what an attacker gets.

    python -m load_tests.ratings_speed [--quick] [--large] [--json FILE] [--docs FOLDER]

Times are processor seconds. `--large` groups 20 million sparse ratings as well, which takes long; `--docs` also writes
a page.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from load_tests.generators.ratings import made_survey, sparse_ratings
from load_tests.harness import arguments, best_of, machine_line, print_machine, print_table, write_json
from load_tests.quality.page import add_options, markdown_table, write_page
from privacy.ratings import neighbour_counts, pairwise_counts, preference_attack
from static_algos.ratings import KeAnon

K, EPSILON = 20, 1
STRATEGIES = ("clip", "centroid", "same", "paper")
PAGE = "ratings-speed.md"
INTRODUCTION = """\
# Ratings, measured

Written by `python -m load_tests.ratings_speed --large --docs docs`.
Measured: {machine}.
Times are processor seconds. [What it is about](ratings.md).
"""


class Part(NamedTuple):
    """One table of results."""

    name: str
    title: str
    head: tuple[str, ...]
    rows: list[tuple[object, ...]]


def main() -> None:
    def add(parser: argparse.ArgumentParser) -> None:
        add_options(parser)
        parser.add_argument("--large", action="store_true", help="20 million sparse ratings as well")

    given = arguments(__doc__, add=add)
    print_machine()
    found = []
    for part in parts(quick=given.quick, large=given.large):
        print_table(part.title, part.head, part.rows)
        found.append(part)
    if given.docs:
        write_page(Path(given.docs) / PAGE, page(found))
    write_json(given.json, "ratings_speed", [{"part": part.name, "rows": part.rows} for part in found])


def parts(*, quick: bool, large: bool) -> Iterator[Part]:
    """All tables, each when it is measured."""
    yield check(quick=quick)
    yield items(quick=quick)
    yield group(quick=quick)
    yield sparse(quick=quick)
    if large:
        yield many()


def page(found: list[Part]) -> list[str]:
    """The page of the documentation."""
    lines = [*INTRODUCTION.format(machine=machine_line()).splitlines(), ""]
    for part in found:
        lines += [f"## {part.title}", "", *markdown_table(part.head, part.rows)]
    return lines


def check(*, quick: bool) -> Part:
    """The check of (20,1) on dense ratings, beside comparing all pairs."""
    rows: list[tuple[object, ...]] = []
    neighbour_counts(made_survey(3_000, 50, values=6), EPSILON, least=K)
    pairwise_counts(made_survey(100, 50, values=6), EPSILON)
    for persons in (5_000, 20_000, 100_000):
        ratings = made_survey(persons, 50, values=6)
        sliced = best_of(partial(neighbour_counts, ratings, EPSILON, least=K), repeat=2).processor
        small = persons <= (5_000 if quick else 20_000)
        paired = _seconds(partial(pairwise_counts, ratings, EPSILON)) if small else None
        rows.append((persons, sliced, paired or "–", paired / sliced if paired else "–"))
    return Part("check", "Check of (20,1), 50 items, 6 values", ("persons", "slicing s", "all pairs s", "times"), rows)


def _seconds(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def items(*, quick: bool) -> Part:
    """The same over the number of items: most blocks are empty after a few of them, so that more cost little."""
    rows: list[tuple[object, ...]] = []
    for width in (10, 25, 50, 100):
        ratings = made_survey(5_000 if quick else 20_000, width, values=6)
        rows.append((width, best_of(partial(neighbour_counts, ratings, EPSILON, least=K), repeat=2).processor))
    return Part("items", "Check of (20,1) over the number of items", ("items", "slicing s"), rows)


def group(*, quick: bool) -> Part:
    """KE-ANON on dense ratings: seconds, distortion, and who is found by eight ratings."""
    ratings = made_survey(2_000 if quick else 10_000, 50)
    rows: list[tuple[object, ...]] = []
    KeAnon(k=5, epsilon=EPSILON).anonymize(made_survey(200, 10))
    for strategy in STRATEGIES:
        algorithm = KeAnon(k=5, epsilon=EPSILON, strategy=strategy)
        timed = best_of(partial(algorithm.anonymize, ratings), repeat=1)
        made = timed.result
        attacks = [
            preference_attack(ratings, made.recoded, known=8, tolerance=tolerance).singled_out
            for tolerance in (EPSILON, 0)
        ]
        share = made.distortion / int(ratings.open.values.sum(dtype=np.int64))
        rows.append((strategy, timed.processor, share, *attacks))
    before = [preference_attack(ratings, ratings, known=8, tolerance=one).singled_out for one in (EPSILON, 0)]
    rows.append(("as they are", 0.0, 0.0, *before))
    head = ("strategy", "seconds", "distortion", "singled out within 1", "exactly")
    return Part("group", f"KE-ANON, {len(ratings):,} persons, 50 items, k = 5, ε = 1", head, rows)


def sparse(*, quick: bool) -> Part:
    """KE-ANON on sparse ratings: what is left for several k."""
    ratings = sparse_ratings(1_500 if quick else 13_500, 4_000)
    rows: list[tuple[object, ...]] = []
    for k in (2, 5, 10):
        timed = best_of(partial(KeAnon(k=k, epsilon=EPSILON, items="most").anonymize, ratings), repeat=1)
        changes = timed.result.changes
        kept = (changes.kept + changes.changed) / ratings.count
        after = preference_attack(ratings, timed.result.recoded, known=8, tolerance=EPSILON)
        rows.append((k, timed.processor, kept, timed.result.withheld, after.singled_out))
    head = ("k", "seconds", "ratings published", "persons withheld", "singled out within 1")
    return Part("sparse", f"KE-ANON, {ratings.count:,} sparse ratings of {len(ratings):,} persons", head, rows)


def many() -> Part:
    """20 million sparse ratings: seconds, what is left, and the most memory that the process had, input included."""
    ratings = sparse_ratings(240_000, 20_000)
    KeAnon(k=5, epsilon=EPSILON, items="most").anonymize(sparse_ratings(500, 400, each=20.0))
    began = time.process_time()
    made = KeAnon(k=5, epsilon=EPSILON, items="most").anonymize(ratings)
    seconds = time.process_time() - began
    kept = (made.changes.kept + made.changes.changed) / ratings.count
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    head = ("k", "seconds", "ratings published", "persons withheld", "GiB at most")
    title = f"KE-ANON, {ratings.count:,} sparse ratings of {len(ratings):,} persons"
    return Part("many", title, head, [(5, seconds, kept, made.withheld, memory)])


if __name__ == "__main__":
    main()
