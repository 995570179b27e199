import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import (
    GuaranteeError,
    InfeasibleError,
    Number,
    PersonSource,
    Schema,
    Table,
    example_table,
    rank_difference,
)
from privacy import audit
from privacy.counting import fewest_people, most_combinations
from static_algos import Budget, budget, full_domain
from static_algos.budget import allocate
from static_algos.partitions import cut_optimally, cut_quantiles, cut_sampled, quantile_medians
from tests.worlds import tables


def of_columns(columns: Any, high: int = 999) -> Any:
    quasi = tuple(Number(f"n{i}", 0, high, integer=True) for i in range(len(columns)))
    rows = len(columns[0])
    values = np.stack(columns, axis=1).astype(np.float64)
    return Table(Schema(PersonSource.ROW, quasi), np.arange(rows), values, np.empty((rows, 0), np.int32))


def test_independent_columns_keep_what_the_formula_promises() -> None:
    random = np.random.default_rng(1)
    table = of_columns([random.integers(0, 1000, 20_000) for _ in range(3)])
    found = Budget(k=10, beta=0.01).anonymize(table)
    assert found.details["budget"] == {"n0": 10, "n1": 9, "n2": 9}
    promised = Budget(k=10, beta=0.01, universe=20_000).anonymize(table)
    # Nearly every class has k rows by the formula alone.
    assert (promised.sizes >= 10).mean() > 0.98
    assert found.sizes.min() >= 10


def dependent() -> Any:
    """Two columns that nearly agree, a few rows that do not: the formula takes those for members of large classes."""
    one = np.random.default_rng(2).integers(0, 1000, 5_000)
    other = one.copy()
    other[:20] = 999 - other[:20]
    return of_columns([one, other])


def test_dependent_columns_are_caught() -> None:
    table = dependent()
    promised = Budget(k=10, universe=5_000).anonymize(table)
    assert promised.sizes.min() < 10
    assert "not k-anonymity" in str(promised.details["promise"])
    assert [model.name for model in Budget(k=10, universe=5_000).models(table.schema)] == ["k-anonymity"]
    assert Budget(k=10, universe=5_000).models(table.schema)[0].asked == 1
    for short in ("merge", "suppress"):
        asked = Budget(k=10, short=short)
        found = asked.anonymize(table)
        assert "promise" not in found.details
        assert found.sizes.min() >= 10
        assert audit(table, found, asked.models(table.schema)).holds
        assert (found.suppressed > 0) == (short == "suppress")


def test_the_count_stands_between_the_formula_and_a_release(monkeypatch: Any) -> None:
    def uncounted(table: Any, recoded: Any, node: Any, _models: Any) -> Any:
        return publish(table, recoded, node, ())

    publish = full_domain.publish
    monkeypatch.setattr(budget, "publish", uncounted)
    with pytest.raises(GuaranteeError):
        Budget(k=10, short="suppress").anonymize(dependent())


def test_a_population_that_is_too_small_is_refused() -> None:
    with pytest.raises(InfeasibleError) as refusal:
        Budget(k=100, universe=50).anonymize(example_table(200))
    assert refusal.value.parameter == "universe"
    nearest: Any = refusal.value.nearest
    Budget(k=100, universe=nearest).anonymize(example_table(200))
    with pytest.raises(InfeasibleError):
        Budget(k=100, universe=nearest - 1).anonymize(example_table(200))


@given(st.integers(1, 10**9), st.integers(1, 10**4), st.floats(1e-9, 0.99))
def test_the_fewest_people_are_the_least_that_are_enough(combinations: int, k: int, beta: float) -> None:
    people = fewest_people(combinations, k, beta)
    assert most_combinations(people, k, beta) >= combinations
    assert k == 1 or most_combinations(people - 1, k, beta) < combinations * (1 + 1e-9)


@given(tables(60), st.integers(1, 6), st.sampled_from(["rank", "median", "center", "cellular"]))
@settings(max_examples=40, deadline=None)
def test_boxes_cover_and_classes_hold(table: Any, k: int, cost: Any) -> None:
    if len(np.unique(table.persons)) < k:
        return
    asked = Budget(k=k, cost=cost)
    found = asked.anonymize(table)
    assert audit(table, found, asked.models(table.schema)).holds
    assert found.suppressed == 0


@given(
    st.lists(st.tuples(st.integers(1, 500), st.floats(0.1, 10)), min_size=1, max_size=6),
    st.floats(1, 1e6),
)
@settings(max_examples=200, deadline=None)
def test_shares_stay_within_the_budget(columns: Any, combinations: float) -> None:
    domains, weights = zip(*columns, strict=True)
    values = allocate(domains, weights, combinations)
    assert math.prod(values) <= combinations
    assert all(1 <= value <= domain for value, domain in zip(values, domains, strict=True))


def test_shares_are_near_the_best() -> None:
    """Beside every integer solution of small budgets; rounding costs a little."""
    for domains, weights, combinations in [((9, 9), (1, 1), 30), ((20, 4, 9), (1, 2, 0.5), 60), ((2, 30), (3, 1), 40)]:
        cost = {
            values: sum(w / v for w, v in zip(weights, values, strict=True))
            for values in itertools.product(*(range(1, d + 1) for d in domains))
            if math.prod(values) <= combinations
        }
        assert cost[tuple(allocate(domains, weights, combinations))] <= 1.1 * min(cost.values())


def test_the_bound_is_the_one_of_the_tail() -> None:
    """D′ solves exp(-(n - (k - 1) D′)² / (2 n D′)) = β."""
    for people, k, beta in [(1e4, 5, 0.1), (3e8, 100, 0.01), (500, 50, 0.5), (1e6, 2, 1e-9)]:
        allowed = most_combinations(people, k, beta)
        assert math.exp(-((people - (k - 1) * allowed) ** 2) / (2 * people * allowed)) == pytest.approx(beta, rel=1e-6)


def costs_of(values: Any, starts: Any, cost: Any) -> float:
    parts = [values[begin:end] for begin, end in itertools.pairwise([*starts, len(values)])]
    if cost == "center":
        return max((part[-1] - part[0]) / 2 for part in parts)
    if cost == "median":
        return sum(sum(abs(value - part[(len(part) - 1) // 2]) for value in part) for part in parts)
    return sum(len(part) * (part[-1] - part[0]) / 2 for part in parts)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=9), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_no_partition_costs_less(values: Any, k: int) -> None:
    """All ways to cut between different values, by hand."""
    values = sorted(values)
    if len(values) < k:
        return
    places = [i for i in range(1, len(values)) if values[i] != values[i - 1]]
    ways = [
        (0, *cut)
        for size in range(len(places) + 1)
        for cut in itertools.combinations(places, size)
        if all(end - begin >= k for begin, end in itertools.pairwise([0, *cut, len(values)]))
    ]
    for cost in ("median", "center", "cellular"):
        firsts, least = cut_optimally(values, k, cost)
        assert least == pytest.approx(min(costs_of(values, starts, cost) for starts in ways))
        starts = np.searchsorted(values, firsts).tolist()
        assert costs_of(values, starts, cost) == pytest.approx(least)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_intervals_of_quantiles_have_k_values(values: Any, k: int) -> None:
    for firsts in (cut_quantiles(values, k), cut_sampled(np.array(values, np.float64), k, seed=1)):
        assert firsts[0] == min(values)
        counts = np.bincount(np.searchsorted(firsts, values, side="right") - 1)
        assert counts.min() >= min(k, len(values))


@given(st.lists(st.integers(0, 50), min_size=2, max_size=6, unique=True), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_quantiles_move_ranks_least(values: Any, k: int) -> None:
    """Beside every way to replace each value by one of them so that every result stands for k."""
    if len(values) < k:
        return
    ways = (
        changed
        for changed in itertools.product(values, repeat=len(values))
        if all(changed.count(one) >= k for one in set(changed))
    )
    best = min(rank_difference(values, changed) for changed in itertools.islice(ways, 4_000))
    assert rank_difference(values, quantile_medians(values, k)) <= best


def test_too_much_work_is_refused() -> None:
    with pytest.raises(InfeasibleError) as refusal:
        cut_optimally(np.arange(200_000), 100_000, "median")
    assert refusal.value.nearest == "rank"
