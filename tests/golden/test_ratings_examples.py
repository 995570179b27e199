"""Worked examples of ratings: the tables of Sun et al. without their misprints, and where their claims fail."""

from typing import Any

import numpy as np
import pytest

from microdata.ratings import Scale, ratings_from_rows
from privacy.ratings import (
    hamming_groups,
    largest_k,
    least_epsilon,
    least_epsilon_for_spread,
    neighbour_counts,
    pairwise_counts,
    preference_attack,
    slices,
    spread,
)
from static_algos.ratings.ke_anon import group_persons
from static_algos.ratings.recoding import Recoding

N = None
TABLE_1 = [(6, 1, N, 6), (1, 6, N, 1), (2, 5, N, 1), (1, N, 5, 1), (2, N, 6, 5)]
TABLE_2 = [(3, 6, N, 6), (2, 5, N, 1), (4, 7, N, 4), (5, 6, N, 1), (1, N, 5, 1), (2, N, 6, 5)]
TABLE_3 = [*TABLE_2, (6, N, 6, 3), (5, N, 5, 2)]
OCTAHEDRON = [(1, 2, 2), (4, 2, 2), (2, 1, 2), (2, 4, 2), (2, 2, 1), (2, 2, 4)]
GADGET = [(3, 3, 1, 1), (3, 1, 3, 1), (3, 1, 1, 3), (1, 3, 3, 1), (1, 3, 1, 3), (1, 1, 3, 3)]
FIG_9 = [(3, 4, N), (1, 4, N), (5, 4, N), (7, 4, N), (3, N, 4), (4, N, 5)]


def survey(rows: Any, high: float = 10) -> Any:
    return ratings_from_rows(rows, Scale(1, high), sensitive=["i4"] if len(rows[0]) == 4 and N in rows[0] else [])


def grouped(rows: Any, k: int, epsilon: int, *, high: int = 10, **how: Any) -> Any:
    """Groups, counted from 1, and the rows after recoding with the distortion."""
    ratings = survey(rows, high)
    recoding = Recoding(epsilon, high, len(ratings.names), **how)
    groups = group_persons(ratings, k, recoding)
    labels = np.empty(len(ratings), np.int64)
    for number, members in enumerate(groups):
        labels[members] = number
    made = recoding.recode(ratings.open, labels)
    before, after = (part.dense(ratings.open_items, len(ratings.names)) for part in (ratings.open, made))
    named = {tuple((members + 1).tolist()) for members in groups}
    return named, after.tolist(), int(np.abs(before.astype(int) - after).sum())


def test_who_is_close_to_whom() -> None:
    for rows, epsilon, counts in (
        (TABLE_2, 1, [3, 2, 3, 2, 2, 2]),
        (TABLE_2, 2, [4, 3, 4, 3, 2, 2]),
        (TABLE_2, 3, [4, 4, 4, 4, 2, 2]),
        (TABLE_3, 2, [4, 3, 4, 3, 2, 2, 2, 2]),
        (TABLE_3, 3, [4, 4, 4, 4, 2, 3, 2, 3]),
        (TABLE_3, 5, [4] * 8),
        (TABLE_1, 1, [1, 2, 2, 2, 2]),
        (OCTAHEDRON, 2, [5] * 6),
    ):
        ratings = survey(rows)
        assert neighbour_counts(ratings, epsilon).tolist() == counts
        assert pairwise_counts(ratings, epsilon).tolist() == counts
    assert hamming_groups(survey(TABLE_2).open).tolist() == [0, 0, 0, 0, 1, 1]


def test_bounds_that_the_dissertation_claims_are_false() -> None:
    """Theorem 7.1 would say k <= 2 here: two patterns with four equal persons each."""
    assert largest_k(survey([(1, N)] * 4 + [(N, 1)] * 4), 1) == 4


def test_spread_of_sensitive_ratings() -> None:
    for values, expected in (([6, 1, 1, 1, 5], 2.227), ([1, 5], 2), ([1, 1], 0), ([6, 1, 1], 2.357)):
        given = np.array(values)
        moments = np.array([len(values), given.sum(), (given**2).sum()])
        assert spread(moments, 1.0) == pytest.approx(expected, abs=5e-4)
        assert spread(moments, 0.5) == pytest.approx(expected / 2, abs=5e-4)
    assert spread(np.array([0, 0, 0]), 1.0) == np.inf


def test_slices_and_the_least_epsilon() -> None:
    assert slices(survey(TABLE_2), 1).tolist() == [0, 0, 1, 1, 2, 2]
    assert slices(survey(TABLE_2), 2, k=2).tolist() == [0, 0, 1, 1, 2, 2]
    assert slices(survey(TABLE_1), 5).tolist() == [0, 0, 0, 1, 1]
    found = least_epsilon(survey(TABLE_1, 6), 2, partition=True)
    assert found is not None
    assert (found.epsilon, found.k, found.sd) == (5, 2, 2)
    around = least_epsilon(survey(TABLE_1, 6), 2)
    assert around is not None
    assert around.epsilon == 4, "t1 and t3 are close at 4, but t2 and t3 need each other"
    for partition, epsilon in ((True, 3), (False, 2)):
        spread_by = least_epsilon_for_spread(survey(TABLE_2), 2, partition=partition)
        assert spread_by is not None
        assert spread_by.epsilon == epsilon
    assert least_epsilon(survey(TABLE_2), 3) is None, "two persons rated the third item"
    assert least_epsilon_for_spread(survey(TABLE_2), 3) is None


def test_the_attack_on_table_1() -> None:
    ratings = survey(TABLE_1, 6)
    linked = preference_attack(ratings, ratings, known=2, tolerance=1)
    assert (linked.singled_out, linked.fewest) == (0.2, 1), "Alice alone"
    assert linked.told == pytest.approx(0.6), "and Bob's answer too, which both that fit have given"


@pytest.mark.parametrize(
    ("rows", "expected", "epsilon"),
    [
        ([(5, 6), (2, 5), (4, 7), (5, 6)], [[5, 5], [3, 5], [3, 7], [5, 7]], 2),
        ([(5, 6), (2, 5), (4, 7), (5, 6), (4, 6)], [[5, 5], [3, 5], [3, 7], [5, 6], [4, 7]], 2),
        ([(5, 6), (2, 5), (4, 6)], [[5, 7], [3, 5], [3, 5]], 2),
        ([(5, 6), (2, 5), (4, 7), (4, 5)], [[4, 6], [4, 6], [3, 5], [4, 6]], 2),
        ([(1,), (3,), (5,)], [[3], [3], [3]], 1),
        # What is wrong in print: an even group at ε = 1, ratings beyond the scale, ε = 0.
        ([(1,), (2,), (5,), (4,)], [[3], [3], [3], [3]], 1),
        ([(5,), (5,), (5,), (2,), (5,)], [[4], [4], [5], [4], [5]], 2),
        ([(1,), (1,), (3,)], [[2], [2], [2]], 0),
        ([(1, 5), (1, 1)], [[1, 4], [1, 2]], 2),
    ],
)
def test_recoding_as_published(rows: Any, expected: Any, epsilon: int) -> None:
    high = 5 if len(rows[0]) == 1 else 10
    ratings = survey(rows, high)
    one = np.zeros(len(rows), np.int64)
    made = Recoding(epsilon, high, len(ratings.names), "paper").recode(ratings.open, one)
    assert made.values.reshape(len(rows), -1).tolist() == expected
    clipped = Recoding(epsilon, high, len(ratings.names), "clip").recode(ratings.open, one)
    assert np.abs(clipped.values - ratings.open.values).sum() <= np.abs(made.values - ratings.open.values).sum()


def test_groups_and_distortion() -> None:
    majority: Any = {"null_policy": "majority"}
    assert grouped(TABLE_1, 2, 1, high=6, **majority)[::2] == ({(4, 5), (1, 2, 3)}, 8)
    assert grouped(TABLE_2, 2, 2, **majority)[::2] == ({(1, 2), (3, 4), (5, 6)}, 0)
    groups, after, distortion = grouped(TABLE_2, 3, 2, **majority)
    assert (groups, distortion) == ({(1, 3, 4), (2, 5, 6)}, 10)
    assert after[1] == [2, 0, 5], "t2 takes the pattern of those that borrow it"
    assert grouped(TABLE_2, 3, 2)[::2] == ({(1, 3, 4), (2, 5, 6)}, 16), "nothing is invented"
    for k in (3, 4):
        assert grouped(TABLE_3, k, 2)[::2] == ({(1, 2, 3, 4), (5, 6, 7, 8)}, 5)
    assert grouped(TABLE_3, 3, 2, strategy="centroid")[2] == 8
    assert grouped(TABLE_3, 3, 2, strategy="paper")[2] == 22
    assert grouped(FIG_9, 3, 2, **majority)[::2] == ({(1, 3, 4), (2, 5, 6)}, 11)
    assert grouped(GADGET, 6, 1, high=3)[2] == 12
    assert grouped(OCTAHEDRON, 4, 2, high=5)[::2] == ({(1, 2, 3, 4, 5, 6)}, 3)
    assert grouped(OCTAHEDRON, 3, 2, high=5)[2] == 0


@pytest.mark.parametrize("rows", [[(1, N), (N, 1), (N, 2), (N, 3)], [(3, 1), (N, 1), (N, 1)]])
def test_missing_ratings_are_never_mixed_with_others(rows: Any) -> None:
    """Counted as 0, as the authors write it, (1, -, -, -) becomes (1, 0, 0, 0): not proximate."""
    for policy in ("suppress", "majority"):
        _, after, _ = grouped(rows, len(rows), 2, null_policy=policy)
        assert all(len({value == 0 for value in column}) == 1 for column in zip(*after, strict=True))
