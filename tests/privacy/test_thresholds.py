"""Models at their thresholds: what is exactly at the bound, and what misses it by less than a float can tell."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from microdata import Category, Hierarchy, InfeasibleError, Number, PersonSource, Schema
from privacy import (
    AlphaK,
    BetaLikeness,
    EntropyDiversity,
    FrequencyDiversity,
    Groups,
    KOverTime,
    MaxShare,
    RangeLikeness,
    RecursiveDiversity,
    TCloseness,
)
from privacy.diversity import EXACT_ENTROPY_ROWS
from privacy.feasible import check_able
from privacy.likeness import Shares
from privacy.model import Histogram
from tests.privacy.privacy_worlds import counted

PAIR = Category("illness", Hierarchy.flat(["flu", "cancer"]))
FIVE = Category("illness", Hierarchy.flat(["flu", "cough", "gout", "ulcer", "colic"]))


def of_counts(attribute: Category, *classes: Any) -> Groups:
    """Classes with so many rows of each value, far too many to be listed one by one; each row is another person."""
    counts = np.array(classes, np.int64)
    present = counts > 0
    starts = np.append(0, np.cumsum(present.sum(axis=1)))
    values = np.nonzero(present)[1].astype(np.int32)
    histogram = Histogram(attribute, counts.sum(axis=0), starts, values, counts[present])
    rows = counts.sum(axis=1)
    return Groups(rows, rows, np.minimum(rows, 1), (histogram,))


class TestEntropy:
    def test_a_class_that_misses_the_threshold_by_a_hair_fails_however_large_it_is(self) -> None:
        """Two values that are nearly as frequent as each other have less than the entropy of two equal ones."""
        for count in (3, 100, EXACT_ENTROPY_ROWS, 100_000):
            groups = of_counts(PAIR, [count + 1, count], [count, count])
            assert EntropyDiversity(2).holds(groups).tolist() == [False, True], count

    def test_a_class_that_no_float_tells_from_the_threshold_fails(self) -> None:
        """Floats compute exactly 2 for some of these."""
        counts = [many * 10**7 for many in range(1, 60)]
        groups = of_counts(PAIR, *([count + 1, count] for count in counts))
        assert (EntropyDiversity(2).achieved(groups) >= 2).any()
        assert EntropyDiversity(2).holds(groups).tolist() == [False] * len(counts)

    def test_a_class_that_is_at_the_threshold_with_unequal_counts_holds(self) -> None:
        """One half and four eighths have the entropy of four equal values."""
        groups = of_counts(FIVE, [4, 1, 1, 1, 1], [400, 100, 100, 100, 100], [5, 1, 1, 1, 1])
        assert EntropyDiversity(4).holds(groups).tolist() == [True, True, False]


class TestOtherForms:
    def test_the_most_frequent_value_must_stay_below_c_times_the_others(self) -> None:
        groups = of_counts(FIVE, [2, 1, 0, 0, 0], [5, 2, 1, 0, 0], [1, 5, 2, 0, 0], [6, 2, 1, 0, 0])
        assert RecursiveDiversity(2, 2).holds(groups).tolist() == [False, True, True, False]
        assert RecursiveDiversity(2, 2).achieved(groups).tolist() == pytest.approx([2, 5 / 3, 5 / 3, 2])
        assert RecursiveDiversity(6, 3).holds(groups).tolist() == [False, True, True, False]

    def test_alpha_k_counts_persons_beside_shares(self) -> None:
        schema = Schema(PersonSource.ROW, (Number("age", 0, 99),), (PAIR,))
        values, classes = np.array([[0], [1], [0], [1]], np.int32), np.array([0, 0, 1, 1])
        groups = Groups.of(schema, np.array([1, 1, 2, 3]), values, classes, 2)
        assert AlphaK(0.5, 2).holds(groups).tolist() == [False, True]
        assert AlphaK(0.5, 2).achieved(groups).tolist() == [np.inf, 0.5]

    def test_a_share_needs_as_many_persons_as_its_inverse_rounded_up(self) -> None:
        assert [MaxShare(share).least_persons for share in (1, 0.5, 0.4, 0.34, 0.3)] == [1, 2, 3, 3, 4]

    def test_an_empty_class_has_no_value_too_often(self) -> None:
        groups = of_counts(PAIR, [2, 2], [0, 0], [3, 1], [0, 0])
        assert FrequencyDiversity(2).holds(groups).tolist() == [True, True, False, True]

    def test_counts_whose_products_take_more_than_64_bits_are_compared_exactly(self) -> None:
        half = 2**33
        groups = of_counts(PAIR, [half, half], [2 * half, 0])
        assert FrequencyDiversity(1.000000001).holds(groups).tolist() == [True, False]
        near = of_counts(PAIR, [half + 1, half], [half, half])
        assert FrequencyDiversity(2).holds(near).tolist() == [False, True]
        assert MaxShare(0.500000001).holds(replace(near, most=np.array([half, half + 100]))).tolist() == [True, False]


@pytest.mark.parametrize("model", [TCloseness(0.2), BetaLikeness(1)], ids=str)
def test_a_model_that_compares_with_a_table_is_refused_by_an_algorithm_that_has_only_classes(model: Any) -> None:
    check_able([model], {type(model)}, compares="window")
    with pytest.raises(InfeasibleError, match="checked on the table or window"):
        check_able([model], {type(model)}, compares="class")


def test_k_over_time_is_refused_by_an_algorithm_that_unites_classes() -> None:
    check_able([KOverTime(2)], {KOverTime}, compares="history")
    with pytest.raises(InfeasibleError, match="unites classes"):
        check_able([KOverTime(2)], {KOverTime}, merges=True, compares="history")


def test_closeness_compares_with_the_reference() -> None:
    groups = counted(PAIR, [8, 8], [2, 2], [3, 1])
    assert TCloseness(0.2).holds(groups).tolist() == [True, False]
    assert TCloseness(0.25).holds(groups).tolist() == [True, True]


def test_a_share_above_the_logarithmic_bound_is_refused_by_however_little() -> None:
    """Half of the table has a value; a class may have it with the share (1 + ln 2) / 2, which no float is exactly."""
    bound = (1 + Decimal(2).ln()) / 2
    rows = [10**power for power in range(13, 19)]
    above = np.array([int(bound * count) + 1 for count in rows])
    below = np.array([int(bound * count * (1 - Decimal("1e-11"))) for count in rows])
    for inside, holds in ((above, False), (below, True)):
        shares = Shares(inside, np.ones(len(rows), np.int64), np.array(rows), 2)
        assert shares.within_logarithm().tolist() == [holds] * len(rows)


class TestRanges:
    """Runs of numbers matter for the logarithmic bound alone: no run has a greater gain than its best value."""

    pay = Number("pay", 1, 4, integer=True)

    def test_runs_as_wide_as_asked_are_bounded(self) -> None:
        """Half of the table has one of the two values that all of the class have: a gain of 1, above -ln 0.5."""
        groups = counted(self.pay, [4, 4, 4, 4], [2, 2, 0, 0], [2, 0, 2, 0], [2, 2, 2, 2])
        assert RangeLikeness(2, 0).holds(groups).tolist() == [True, True, True]
        assert RangeLikeness(2, 1).holds(groups).tolist() == [False, True, True]
        assert RangeLikeness(2, 2).holds(groups).tolist() == [False, False, True]
        assert RangeLikeness(0.9, 0).holds(groups).tolist() == [False, False, True]

    def test_a_value_that_the_table_does_not_have_is_refused(self) -> None:
        groups = counted(self.pay, [4, 4, 4, 0], [1, 1, 1, 1], [1, 1, 1, 0])
        assert RangeLikeness(100, 3).holds(groups).tolist() == [False, True]
        assert RangeLikeness(100, 3).achieved(groups).tolist() == [np.inf, pytest.approx(0)]
