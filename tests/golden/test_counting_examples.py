"""Worked examples of Probabilistic Anonymity: counting alone, shares of a budget, and one column."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from microdata import normalized_error, rank_difference
from privacy.counting import may_identify, most_combinations, unique_share
from static_algos.budget import allocate, chosen_level
from static_algos.partitions import (
    cut_optimally,
    cut_quantiles,
    cut_sampled,
    quantile_medians,
)

DAYS, PLACES = 2 * 10**4, 10**5
PEOPLE, WORLD = 3 * 10**8, 6 * 10**9


def test_combinations_and_the_unique_share() -> None:
    assert 2 * DAYS * PLACES == 4 * 10**9
    assert 200 * DAYS * 100 == 4 * 10**8
    assert unique_share(4e9, PEOPLE) == pytest.approx(math.exp(-0.075))
    assert unique_share(4e9, PEOPLE) == pytest.approx(0.93, abs=0.005)  # printed "093"
    assert unique_share(4e8, WORLD) == pytest.approx(0.0245, abs=5e-5)
    assert not may_identify(4e8, WORLD, 0.05)
    assert unique_share(PEOPLE, PEOPLE) == pytest.approx(1 / math.e)


@pytest.mark.parametrize(("share", "ratio"), [(0.5, 1.4427), (0.75, 3.476), (0.9, 9.491)])
def test_from_how_many_combinations_on_columns_may_identify(share: float, ratio: float) -> None:
    assert 1 / math.log(1 / share) == pytest.approx(ratio, abs=5e-4)
    assert may_identify(1.001 * ratio * PEOPLE, PEOPLE, share)
    assert not may_identify(0.999 * ratio * PEOPLE, PEOPLE, share)


def test_how_many_combinations_a_guarantee_allows() -> None:
    assert round(most_combinations(PEOPLE, 100, 0.1)) == 2_443_425
    assert PEOPLE / most_combinations(PEOPLE, 100, 0.1) == pytest.approx(122.78, abs=0.005)
    assert 2 * 120 * 10**4 == 2.4e6 <= most_combinations(PEOPLE, 100, 0.1)
    assert most_combinations(PEOPLE, 1, 0.1) == math.inf


def test_few_values_hide_everybody_and_all_columns_of_adult_nobody() -> None:
    """Ages, a class of work and a sex: 600 combinations. All ten columns may single out nearly everybody."""
    assert 60 * 5 * 2 == 600
    assert not may_identify(600, PEOPLE, 0.05)
    assert PEOPLE / 600 == 500_000
    ten = math.prod([74, 9, 16, 7, 15, 6, 5, 2, 99, 42])
    assert unique_share(ten, PEOPLE) > 0.99
    assert may_identify(ten, PEOPLE, 0.2)


def test_shares_of_a_budget() -> None:
    assert allocate([2, DAYS, PLACES], [1, 1, 1], 2.4e6) == [2, 1095, 1095]
    # Month of birth, and three digits of the postcode.
    assert chosen_level([DAYS, 720, 60, 1], 1095) == 1
    assert chosen_level([PLACES, 10**4, 10**3, 100, 10, 1], 1095) == 2
    # k = 20,000 with sex and age as they are: 75 values are left for the postcode, so its first two digits … or states.
    left = PEOPLE / (2 * 10**4 * 2 * 100)
    assert left == 75
    assert chosen_level([PLACES, 10**3, 50, 1], int(left)) == 2
    # The curse of many columns: two values each.
    assert set(allocate([1000] * 25, [1] * 25, PEOPLE / 10)) <= {1, 2}
    assert pytest.approx(1.99, abs=0.005) == (PEOPLE / 10) ** (1 / 25)


S = [1, 12, 4, 7, 3]


def test_ranks_and_medians() -> None:
    assert quantile_medians(S, 2).tolist() == [3, 7, 3, 7, 3]
    assert rank_difference(S, [3, 7, 3, 7, 3]) == 3
    assert (np.argsort(np.argsort(S)) + 1).tolist() == [1, 5, 3, 4, 2]  # ascending, where the text says the largest
    assert min(rank_difference(S, changed) for changed in hidden_twofold(S)) == 3


def hidden_twofold(values: Any) -> Any:
    """Every way to replace values by others of them so that each result stands for two."""
    for size in (2, 3):
        for group in combinations(range(len(values)), size):
            rest = [i for i in range(len(values)) if i not in group]
            for one in values:
                for other in values:
                    yield [one if i in group else other for i in range(len(values))]
            assert len(rest) >= 2


@pytest.mark.parametrize(("cost", "least"), [("median", 8.0), ("center", 2.5), ("cellular", 9.5)])
def test_the_optimal_partition(cost: Any, least: float) -> None:
    firsts, found = cut_optimally(S, 2, cost)
    assert (firsts.tolist(), found) == ([1, 7], least)


@pytest.mark.parametrize(("parts", "error"), [(5, 0.0399), (25, 0.00160), (100, 1.01e-4)])
def test_the_normalized_error_of_even_values(parts: int, error: float) -> None:
    values = np.random.default_rng(1).random(250_000)
    changed = quantile_medians(values, 250_000 // parts)
    assert normalized_error(values, changed) == pytest.approx(error, rel=0.03)


def test_a_sample_alone_does_not_keep_k() -> None:
    values = np.random.default_rng(2).random(250_000)
    edges = cut_quantiles(values[:1_000], 40)  # 25 parts from a sample, as printed
    counts = np.bincount(np.searchsorted(edges[1:], values, side="right"))
    assert counts.min() < 10_000
    checked = cut_sampled(values, 10_000, seed=3)
    assert np.bincount(np.searchsorted(checked, values, side="right") - 1).min() >= 10_000
    assert len(checked) >= 20
