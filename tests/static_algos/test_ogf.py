import itertools
import math
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import EXAMPLE_QUASI, Cancelled, InfeasibleError, Number, Publication, example_table, silent
from privacy import KAnonymity, linking
from static_algos import Budget, Datafly, Ogf, OrderSearch, Parameters, StaticAlgorithm
from static_algos.datafly import cells_of
from static_algos.ogf import BestOfAll, Price
from static_algos.orders import crossed, loss_along, reordered


@pytest.mark.parametrize("recode", ["suppress", "generalize"])
@pytest.mark.parametrize("fitness", ["cells", "loss"])
@pytest.mark.parametrize("k", [2, 7])
def test_all_orders_give_the_best(recode: Any, fitness: Any, k: int) -> None:
    table = example_table(120, 3)
    cells = cells_of(table, k, recode)
    price = Price(cells, fitness)
    costs = {order: price.of(cells.along(order)) for order in itertools.permutations(range(4))}
    every = BestOfAll(price)
    every.run()
    assert costs[every.best] == every.cost == min(costs.values())
    assert every.tried <= len(costs)
    found = Ogf(k=k, recode=recode, fitness=fitness).anonymize(table, seed=1)
    names = [attribute.name for attribute in table.schema.quasi]
    order = tuple(names.index(name) for name in found.details["order"])  # type: ignore[attr-defined]
    assert costs[order] == min(costs.values())  # 15 runs over 24 orders


def test_the_best_is_far_from_the_obvious_one() -> None:
    table = example_table(300, 1)
    plain, searched = Datafly(k=5).anonymize(table), Ogf(k=5).anonymize(table, seed=1)
    assert searched.details["unsuppressed"] > plain.details["unsuppressed"]  # type: ignore[operator]


def test_too_many_columns_for_all_orders() -> None:
    quasi = tuple(Number(f"n{i}", 0, 9, integer=True) for i in range(9))
    with pytest.raises(InfeasibleError) as refusal:
        Ogf(k=2, search="exhaustive").anonymize(example_table(20, 1, quasi, ()))
    assert (refusal.value.parameter, refusal.value.nearest) == ("search", "genetic")


@pytest.mark.parametrize(
    "algorithm", [Datafly(k=6), Ogf(k=6, recode="generalize"), Budget(k=6), Budget(k=6, short="suppress")]
)
def test_nobody_is_linked_to_fewer_than_k_rows(algorithm: Any) -> None:
    """The attacker knows all quasi-identifiers of everybody in the table."""
    table = example_table(200, 2)
    found = algorithm.anonymize(table, seed=1)
    linked = linking(found.boxes.widened(), found.sizes, table.take(found.classes >= 0))
    assert linked.rows.min() >= 6
    # The same attack on the table itself, to see that it would find somebody.
    bare = Publication.of(table, np.arange(len(table)))
    assert len(linking(bare.boxes, bare.sizes, table).singled_out)


def distance(order: Any) -> float:
    """How far an order is from the one that is looked for."""
    return float(sum(abs(column - place) for place, column in enumerate(order)))


def test_an_order_is_asked_once() -> None:
    asked: list[Any] = []

    def cost(order: Any) -> float:
        asked.append(order)
        return distance(order)

    search = OrderSearch(5, cost)
    search.run(runs=30, seed=2)
    assert len(asked) == len(set(asked)) == search.evaluated
    assert search.best == (0, 1, 2, 3, 4)
    assert search.cost == 0


def test_a_run_ends_when_nothing_better_comes() -> None:
    search = OrderSearch(7, lambda _order: 1.0)
    search.run(seed=1)
    # Ten at first, and in each of ten generations a child and now and then a mutation.
    assert 10 < search.evaluated < 10 + 10 * 11


def test_time_that_is_over_leaves_the_best_so_far() -> None:
    clock = iter(range(1_000))
    search = OrderSearch(6, distance, clock=lambda: next(clock))
    search.run(runs=100, seconds=7, seed=3)
    assert search.evaluated == 7  # the first is asked without a look at the clock
    assert search.cost == distance(search.best)

    clock = iter(range(1_000))
    cells = cells_of(example_table(60, 3), 5, "suppress")
    every = BestOfAll(Price(cells, "cells"), clock=lambda: next(clock))
    every.run(seconds=1)
    assert (len(every.best), every.tried) == (4, 1)


def test_stopping_keeps_the_best() -> None:
    told: list[Any] = []

    def stop(phase: str, done: int, total: int) -> None:
        told.append((phase, done, total))
        if len(told) == 25:
            raise Cancelled

    asked: list[float] = []

    def cost(order: Any) -> float:
        asked.append(distance(order))
        return asked[-1]

    search = OrderSearch(6, cost)
    with pytest.raises(Cancelled):
        search.run(runs=15, seed=4, progress=stop)
    assert 10 < search.evaluated == len(asked) < 25
    assert search.cost == min(asked) == distance(search.best)
    assert told[0][0] == "orders"
    assert told[-1][0] == f"orders, best so far {search.cost:g}"


@pytest.mark.parametrize("asked", [{}, {"search": "exhaustive", "fitness": "loss", "recode": "generalize"}])
def test_stopped_search_publishes_the_best_so_far_and_at_least_one_order(asked: Any) -> None:
    table = example_table(100, 1)

    def once_there_is_one(phase: str, _done: int, _total: int) -> bool:
        return "best so far" in phase

    def from_the_beginning(*_: object) -> bool:
        return True

    whole = Ogf(k=5, **asked).anonymize(table, seed=1, progress=silent)
    assert whole.details["orders"] > 1  # type: ignore[operator]
    for stop in (once_there_is_one, from_the_beginning):
        found = Ogf(k=5, **asked).anonymize(table, seed=1, progress=stop)
        assert found.details["orders"] == 1
        assert found.sizes.min() >= 5


@pytest.mark.parametrize("asked", [{}, {"fitness": "loss"}, {"search": "exhaustive"}])
def test_whoever_waits_is_told_the_best(asked: Any) -> None:
    told: list[Any] = []
    found = Ogf(k=5, **asked).anonymize(example_table(100, 1), seed=1, progress=lambda *step: told.append(step))
    assert max(len(phase) for phase, _, _ in told) <= 40  # what a job's store has room for
    best = f"{found.loss:.4f}" if asked.get("fitness") else f"{found.details['unsuppressed']:.2%}"
    assert best in told[-1][0]
    shares = [done / total for _, done, total in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    for fitness in ("cells", "loss"):
        price = Price(cells_of(example_table(100, 1), 5, "suppress"), fitness)
        assert len(f"orders, best so far {price.shown(0.0)}") <= 40


orders = st.permutations(range(7)).map(tuple)


@given(orders, orders, st.integers(0, 7), st.integers(0, 7))
@settings(max_examples=60, deadline=None)
def test_crossover(one: Any, other: Any, begin: int, end: int) -> None:
    begin, end = sorted((begin, end))
    child = crossed(one, other, begin, end)
    assert sorted(child) == list(range(7))
    assert child[begin:end] == one[begin:end]
    turned = [*other[end:], *other[:end]]
    rest = [child[place % 7] for place in range(end, end + 7 - (end - begin))]
    assert rest == [column for column in turned if column not in one[begin:end]]


class Lexical(StaticAlgorithm):
    """Rows in the order of their columns, cut into runs of k: as dependent on the order as can be."""

    class Parameters(Parameters):
        k: int

    parameters: Any
    guarantees: ClassVar[Any] = (KAnonymity,)

    def models(self, schema: Any) -> Any:
        return (KAnonymity(self.parameters.k),)

    def anonymize(self, table: Any, *, seed: Any = None, progress: Any = None) -> Any:
        place = np.empty(len(table), np.int64)
        place[np.lexsort(table.quasi.T[::-1])] = np.arange(len(table))
        return Publication.of(table, np.minimum(place // self.parameters.k, len(table) // self.parameters.k - 1))


def test_any_algorithm_can_be_ordered() -> None:
    table = example_table(90, 5, EXAMPLE_QUASI[:3])
    algorithm = Lexical(k=4)
    search = OrderSearch(3, loss_along(algorithm, table))
    search.run(runs=5, seed=1)
    losses = [algorithm.anonymize(reordered(table, order)).loss for order in itertools.permutations(range(3))]
    assert search.cost == min(losses) < max(losses)
    assert reordered(table, (2, 0, 1)).schema.weights == pytest.approx([1 / 3] * 3)
    assert math.isclose(algorithm.anonymize(reordered(table, search.best)).loss, search.cost)
