"""Ratings: how fast they are checked and grouped, what is left of sparse ones, and what an attacker gets.

python -m load_tests.ratings_speed [--quick] [--json FILE]
"""

from __future__ import annotations

from functools import partial

import numpy as np

from load_tests.generators.ratings import made_survey, sparse_ratings
from load_tests.harness import arguments, best_of, print_machine, print_table, write_json
from microdata.ratings import Ratings
from privacy.ratings import neighbour_counts, pairwise_counts, preference_attack
from static_algos.ratings import KeAnon

K, EPSILON = 20, 1
STRATEGIES = ("clip", "centroid", "same", "paper")


def main() -> None:
    given = arguments(__doc__)
    print_machine()
    results = {
        "check": check(quick=given.quick),
        "items": items(quick=given.quick),
        "group": group(quick=given.quick),
        "sparse": sparse(quick=given.quick),
    }
    write_json(given.json, "ratings_speed", [{"part": name, "rows": rows} for name, rows in results.items()])


def check(*, quick: bool) -> list[tuple[object, ...]]:
    """The check of (20,1) on dense ratings, beside comparing all pairs."""
    rows: list[tuple[object, ...]] = []
    neighbour_counts(made_survey(3_000, 50, values=6), EPSILON, least=K)
    pairwise_counts(made_survey(100, 50, values=6), EPSILON)
    for persons in (5_000, 20_000, 100_000):
        ratings = made_survey(persons, 50, values=6)
        sliced = best_of(partial(neighbour_counts, ratings, EPSILON, least=K), repeat=2).best
        small = persons <= (5_000 if quick else 20_000)
        paired = best_of(partial(pairwise_counts, ratings, EPSILON), repeat=1).best if small else None
        rows.append((persons, sliced, paired, paired / sliced if paired else None))
    print_table("Check of (20,1), 50 items, 6 values", ("persons", "slicing s", "all pairs s", "times"), rows)
    return rows


def items(*, quick: bool) -> list[tuple[object, ...]]:
    """The same over the number of items: most blocks are empty after a few of them, so that more cost little."""
    rows: list[tuple[object, ...]] = []
    for width in (10, 25, 50, 100):
        ratings = made_survey(5_000 if quick else 20_000, width, values=6)
        rows.append((width, best_of(partial(neighbour_counts, ratings, EPSILON, least=K), repeat=2).best))
    print_table("Check of (20,1) over the number of items", ("items", "slicing s"), rows)
    return rows


def group(*, quick: bool) -> list[tuple[object, ...]]:
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
        rows.append((strategy, timed.best, share, *attacks))
    before = [preference_attack(ratings, ratings, known=8, tolerance=one).singled_out for one in (EPSILON, 0)]
    rows.append(("as they are", 0.0, 0.0, *before))
    head = ("strategy", "seconds", "distortion", "singled out within 1", "exactly")
    print_table(f"KE-ANON, {len(ratings):,} persons, 50 items, k = 5, ε = 1", head, rows)
    return rows


def sparse(*, quick: bool) -> list[tuple[object, ...]]:
    """KE-ANON on sparse ratings: what is left for several k."""
    ratings: Ratings = sparse_ratings(1_500 if quick else 12_000, 4_000)
    rows: list[tuple[object, ...]] = []
    for k in (2, 5, 10):
        timed = best_of(partial(KeAnon(k=k, epsilon=EPSILON, items="most").anonymize, ratings), repeat=1)
        changes = timed.result.changes
        kept = (changes.kept + changes.changed) / ratings.count
        after = preference_attack(ratings, timed.result.recoded, known=8, tolerance=EPSILON)
        rows.append((k, timed.best, kept, timed.result.withheld, after.singled_out))
    head = ("k", "seconds", "ratings published", "persons withheld", "singled out within 1")
    print_table(f"KE-ANON, {ratings.count:,} sparse ratings of {len(ratings):,} persons", head, rows)
    return rows


if __name__ == "__main__":
    main()
