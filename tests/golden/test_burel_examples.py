"""The worked examples of BUREL: Cao (2010), chapter 4; section 4.7 of the specification."""

from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from microdata import Category, Hierarchy, Number, PersonSource, Publication, Schema, Table, words
from privacy import BetaLikeness, Groups
from static_algos import burel_classes, likeness_caps
from static_algos.burel import fewest_runs, partition_values, share_test
from static_algos.caps import largest_share
from static_algos.dichotomy import dichotomize
from static_algos.limits import references_of

DISEASE = Category(
    "disease",
    Hierarchy.from_mapping(
        {"RD": {"R": ["SARS", "pneumonia", "bronchitis"], "D": ["hepatitis", "gastric ulcer", "intestinal cancer"]}}
    ),
)
COUNTS = np.array([2, 3, 3, 3, 4, 4])


def caps_of(counts: Any, beta: Any) -> Any:
    return [largest_share(int(count), int(sum(counts)), Fraction(beta)) for count in counts]


def patients() -> Any:
    """Table 4.2."""
    rows = [(70, 40, 0), (60, 60, 1), (50, 50, 2), (70, 50, 5), (80, 50, 3), (60, 70, 4)]
    schema = Schema(PersonSource.ROW, (Number("weight", 50, 80), Number("age", 40, 70)), (DISEASE,))
    values = np.array(rows)
    return Table(schema, np.arange(6), values[:, :2].astype(float), values[:, 2:].astype(np.int32))


def test_example_4_1_single_values_make_one_class() -> None:
    singles = [[value] for value in range(6)]
    ones = np.ones(6, np.int64)
    (leaves,) = dichotomize(share_test(ones, caps_of(ones, 1), singles), least=1)
    assert leaves.tolist() == [[1] * 6]


def test_example_4_1_three_buckets_make_two_classes() -> None:
    ones, pairs = np.ones(6, np.int64), [[0, 1], [2, 3], [4, 5]]
    (leaves,) = dichotomize(share_test(ones, caps_of(ones, 1), pairs), least=1)
    assert leaves.tolist() == [[1, 1, 1], [1, 1, 1]]
    # A whole class's share 1/3 is exactly the cap of 1/6 under β = 1, and too much under any smaller β.
    (whole,) = dichotomize(share_test(ones, caps_of(ones, "0.999"), pairs), least=1)
    assert whole.tolist() == [[2, 2, 2]]


def test_example_4_1_the_best_labelling() -> None:
    """Of all ways to fill the two classes, {Mike, Beth, Alice} and {John, Bob, Carol} lose least: 5/12."""
    table = patients()
    losses = {}
    for left in permutations(range(6), 3):
        classes = np.array([0 if row in left else 1 for row in range(6)])
        values = table.sensitive[list(left), 0]
        if {0, 1} & set(values) and {2, 3} & set(values) and {4, 5} & set(values):
            losses[frozenset(left)] = Publication.of(table, classes).loss
    best = min(losses, key=losses.__getitem__)
    assert best in ({0, 3, 4}, {1, 2, 5})
    assert losses[best] == pytest.approx(5 / 12)


def test_example_4_2_caps_and_buckets() -> None:
    caps = caps_of(COUNTS, 2)
    assert [float(cap) for cap in (caps[0], caps[1], caps[4])] == pytest.approx([0.3158, 0.4493, 0.5386], abs=5e-5)
    assert fewest_runs(COUNTS.tolist(), caps) == ([0, 1, 1, 2, 2, 3, 3], [0, 1, 1, 3, 3, 5, 5])
    buckets = partition_values(COUNTS, caps)
    assert buckets == [[0, 1], [2, 3], [4, 5]]
    assert [int(COUNTS[values].sum()) for values in buckets] == [5, 6, 8]


def test_example_4_2_the_tree_of_sizes() -> None:
    caps = caps_of(COUNTS, 2)
    (leaves,) = dichotomize(share_test(COUNTS, caps, partition_values(COUNTS, caps)), least=1)
    assert sorted(leaves.tolist()) == [[1, 1, 2], [1, 2, 2], [3, 3, 4]]


def test_example_4_2_as_a_table() -> None:
    rows = int(COUNTS.sum())
    schema = Schema(PersonSource.ROW, (Number("age", 0, 99),), (DISEASE,))
    values = np.repeat(np.arange(6), COUNTS).astype(np.int32)[:, None]
    table = Table(schema, np.arange(rows), np.arange(rows, dtype=float)[:, None], values)
    caps = likeness_caps([BetaLikeness(2)], schema, references_of(table))
    classes, details = burel_classes(table, caps, k=1, refine="none", draw_words=words(1))
    assert sorted(np.bincount(classes)) == [4, 5, 10]
    assert details["buckets"] == 3
    groups = Groups.of(schema, table.persons, table.sensitive, classes, 3)
    assert BetaLikeness(2).holds(groups).all()


@pytest.mark.parametrize(
    ("p", "beta", "cap"),
    [("0.048402", 1, 0.096804), ("0.048402", 4, 0.19497), ("0.05", 4, 0.19979), ("0.002018", 4, 0.01009)],
)
def test_caps_of_the_census(p: str, beta: int, cap: float) -> None:
    share = Fraction(p)
    assert float(largest_share(share.numerator, share.denominator, Fraction(beta))) == pytest.approx(cap, abs=5e-6)


def test_the_cap_is_continuous_increasing_and_below_one() -> None:
    caps = [float(largest_share(count, 1000, Fraction(1))) for count in range(1001)]
    assert caps[0] == 0
    assert caps[1000] == 1
    steps = np.diff(caps)
    assert (steps > 0).all()
    assert steps.max() < 0.0021
    assert max(caps[:1000]) < 1
