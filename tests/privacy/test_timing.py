"""The timing attack, beside what its definition says, row by row."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from privacy import Left, Watch
from privacy.timing import in_one_tick


def rows(seed: int, count: int, ticks: int) -> Left:
    """Rows of few persons, in the order of ticks, with boxes around them; half of them alone."""
    random = np.random.default_rng(seed)
    quasi = random.integers(0, 6, (count, 2)).astype(float)
    return Left(
        np.sort(random.integers(0, ticks, count)),
        random.integers(0, count // 3, count),
        quasi,
        quasi - random.integers(0, 3, (count, 2)),
        quasi + random.integers(0, 3, (count, 2)),
        random.random(count) < 0.5,
    )


def expected(left: Left) -> list[int]:
    found = []
    for victim in range(len(left.ticks)):
        if not left.alone[victim]:
            continue
        others = {
            int(left.persons[row])
            for row in range(len(left.ticks))
            if left.ticks[row] == left.ticks[victim]
            and left.persons[row] != left.persons[victim]
            and all(
                left.lo[row, one] <= left.quasi[victim, one] <= left.hi[row, one] for one in range(left.quasi.shape[1])
            )
        }
        found.append(len(others))
    return found


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_it_counts_others_of_the_same_tick_whoever_tells_of_them(parts: int) -> None:
    left = rows(parts, 120, 9)
    watch = Watch(of_each=1000)
    cuts = np.linspace(0, 120, parts + 1).astype(int)
    for start, stop in pairwise(cuts):
        watch.see(left.take(slice(start, stop)))
    assert sorted(watch.others().tolist()) == sorted(expected(left))


def test_a_row_that_leaves_with_nobody_is_known() -> None:
    one: Any = np.zeros((1, 2))
    watch = Watch()
    watch.see(Left(np.array([5]), np.array([1]), one, one, one, np.array([True])))
    assert watch.others().tolist() == [0]
    assert Watch().others().tolist() == [], "nothing left"


def test_own_rows_and_rows_that_left_together_hide_nobody_twice() -> None:
    """Two rows of the victim and two of somebody else: one other person. Rows in company are no victims."""
    same: Any = np.zeros((4, 1))
    left = Left(np.zeros(4, int), np.array([1, 1, 2, 2]), same, same, same, np.array([True, False, False, False]))
    assert in_one_tick(left, 8) == [1]


def test_the_sample_is_bounded_and_stays_true() -> None:
    left = rows(3, 4000, 900)
    watch = Watch(most=50, of_each=2)
    for start in range(0, 4000, 100):
        watch.see(left.take(slice(start, start + 100)))
    found = watch.others()
    assert 20 <= len(found) <= 100
    assert abs(found.mean() - np.mean(expected(left))) < 0.5
