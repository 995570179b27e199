"""A genetic search over orders of columns, for anything whose result depends on the order.

Ten random orders at first. In every generation the two best have a child by order crossover, which takes the place of
the worst if it is better; then every order may have two of its columns exchanged. A run ends when ten generations have
found nothing better. What an order costs is asked once. The best order of all is kept from the first one on, so the
search may be stopped at any time: by a budget, or by the answer of its progress callback.

Chaytor, Allowing Privacy Protection Algorithms to Jump Out of Local Optimums: An Ordered Greed Framework (PinKDD 2007).

>>> cost = {(0, 1, 2): 5.0, (0, 2, 1): 4.0, (1, 0, 2): 7.0, (1, 2, 0): 6.0, (2, 0, 1): 3.0, (2, 1, 0): 8.0}
>>> search = OrderSearch(3, lambda order: cost[order])
>>> search.run(seed=1)
>>> search.best, search.cost
((2, 0, 1), 3.0)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from microdata import Progress, Schema, Table, silent
from static_algos.algorithm import StaticAlgorithm

Order: TypeAlias = tuple[int, ...]
"""Every column once."""

POPULATION = 10
MUTATION = 0.1
PATIENCE = 10
"""Generations without a better order after which a run ends."""


class _SearchStopped(Exception):  # noqa: N818 - no error: it ends a run
    """The search is to end with the best order so far."""


class OrderSearch:
    """Looks for the order of columns that costs least."""

    def __init__(
        self,
        columns: int,
        cost_of: Callable[[Order], float],
        *,
        shown: Callable[[float], str] = "{:g}".format,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._columns, self._cost_of, self._shown, self._clock = columns, cost_of, shown, clock
        self._known: dict[Order, float] = {}
        self._end = math.inf
        self._progress: Progress = silent
        self._stopped = False
        self._done = self._total = 0
        self.best: Order = ()
        """The best order so far; empty before the first."""
        self.cost = math.inf

    @property
    def evaluated(self) -> int:
        """Orders whose cost was asked."""
        return len(self._known)

    def run(
        self,
        *,
        runs: int = 1,
        generations: int = 15_000,
        seconds: float | None = None,
        seed: int | None = None,
        progress: Progress = silent,
    ) -> None:
        """Search until the budget is spent; every run begins with new orders, and all of them know what was asked.

        At least one order is asked. `progress` may stop the search too, which then ends as if its time were over.
        """
        random = np.random.default_rng(seed)
        self._end = math.inf if seconds is None else self._clock() + seconds
        self._progress, self._total = progress, runs * generations
        with suppress(_SearchStopped):
            for run in range(runs):
                self._done = run * generations
                self._evolve(generations, random)
        self._done = self._total
        self._tell()

    def _evolve(self, generations: int, random: np.random.Generator) -> None:
        """One run."""
        orders = [tuple(random.permutation(self._columns).tolist()) for _ in range(POPULATION)]
        costs = [self._ask(order) for order in orders]
        best, stale = min(costs), 0
        for _ in range(generations):
            one, other = np.argsort(costs, kind="stable")[:2]
            child = crossed(orders[one], orders[other], *np.sort(random.integers(0, self._columns + 1, 2)).tolist())
            born, worst = self._ask(child), int(np.argmax(costs))
            if born < costs[worst]:
                orders[worst], costs[worst] = child, born
            for place in np.flatnonzero(random.random(POPULATION) < MUTATION).tolist():
                orders[place] = _exchanged(orders[place], *random.integers(0, self._columns, 2).tolist())
                costs[place] = self._ask(orders[place])
            found = min(born, *costs)
            best, stale = min(best, found), 0 if found < best else stale + 1
            self._done += 1
            self._look()
            if stale == PATIENCE:
                return

    def _ask(self, order: Order) -> float:
        """The cost of an order."""
        if order not in self._known:
            self._look()
            self._known[order] = self._cost_of(order)
            if self._known[order] < self.cost:
                self.best, self.cost = order, self._known[order]
        return self._known[order]

    def _look(self) -> None:
        """Stop the search if its time is over, or if the caller stops it; never before it has an order."""
        self._stopped = self._tell() or self._stopped
        if self.best and (self._stopped or self._clock() >= self._end):
            raise _SearchStopped

    def _tell(self) -> bool:
        """Report how far the search is; whether it is to stop."""
        known = f", best so far {self._shown(self.cost)}" if self.best else ""
        return self._progress(f"orders{known}", self._done, self._total) is True


def loss_along(algorithm: StaticAlgorithm, table: Table, *, seed: int | None = None) -> Callable[[Order], float]:
    """What any algorithm loses when the table's quasi-identifiers stand in a given order."""

    def cost(order: Order) -> float:
        return algorithm.anonymize(reordered(table, order), seed=seed).loss

    return cost


def reordered(table: Table, order: Order) -> Table:
    """The table with its quasi-identifiers in this order."""
    old = table.schema
    quasi, weights = [old.quasi[column] for column in order], [old.weights[column] for column in order]
    schema = Schema(old.person, tuple(quasi), old.sensitive, old.public, tuple(weights))
    return replace(table, schema=schema, quasi=table.quasi[:, list(order)])


def crossed(one: Order, other: Order, begin: int, end: int) -> Order:
    """Order crossover: a slice of one parent at its place, the rest from behind it on, as the other has it from there.

    >>> crossed((0, 1, 2, 3, 4), (4, 3, 2, 1, 0), 1, 3)
    (3, 1, 2, 0, 4)
    """
    size = len(one)
    kept = set(one[begin:end])
    rest = iter(column for place in range(size) if (column := other[(end + place) % size]) not in kept)
    child = list(one)
    for place in range(end, end + size - (end - begin)):
        child[place % size] = next(rest)
    return tuple(child)


def _exchanged(order: Order, one: int, other: int) -> Order:
    """The order with two places exchanged."""
    changed = list(order)
    changed[one], changed[other] = changed[other], changed[one]
    return tuple(changed)
