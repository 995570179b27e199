"""Ordered greed: Datafly along many orders of the columns, and the best one is published.

Datafly is quick, but what it suppresses depends on the order of the columns, and the obvious one (most distinct values
first) is far from the best. A genetic search tries orders; or all of them are tried, sharing the work of those that
begin alike. A budget of runs, generations or seconds may end the search, or the answer of its progress callback; the
best order that it found is published.

Chaytor, Allowing Privacy Protection Algorithms to Jump Out of Local Optimums: An Ordered Greed Framework (PinKDD 2007).

>>> from microdata import example_table
>>> from static_algos import Datafly
>>> table = example_table(300)
>>> best, plain = Ogf(k=5).anonymize(table, seed=1), Datafly(k=5).anonymize(table)
>>> best.details["unsuppressed"] > plain.details["unsuppressed"]
True
>>> best.details["order"]
['city', 'sex', 'pay', 'age']
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import Field

from microdata import InfeasibleError, Progress, Publication, Schema, Table, silent
from privacy import KAnonymity, Model, check_feasible
from privacy.keys import MOST
from static_algos.algorithm import STATIC_ALGORITHMS, StaticAlgorithm
from static_algos.catalogue import Parameters
from static_algos.datafly import Cells, Partition, Recode, cells_of
from static_algos.orders import Order, OrderSearch
from static_algos.proof import proven

MOST_EXHAUSTIVE = 8
"""Columns of which all orders are tried: 8 have 40,320."""


class OgfParameters(Parameters):
    """What ordered greed is asked for."""

    k: int = Field(ge=1, le=MOST, description="distinct persons per class; a whole number from 1")
    recode: Recode = "suppress"
    fitness: Literal["cells", "loss"] = Field(
        default="cells",
        description="what the best order has: the most cells that are not suppressed, or the least loss",
    )
    search: Literal["genetic", "exhaustive"] = Field(
        default="genetic", description=f"genetic: evolve orders; exhaustive: try all, of at most {MOST_EXHAUSTIVE}"
    )
    runs: int = Field(default=15, ge=1, le=10_000, description="how often the genetic search begins anew; from 1")
    generations: int = Field(
        default=15_000,
        ge=1,
        le=10**6,
        description="most generations of a run, which ends sooner after ten that find nothing better; from 1",
    )
    seconds: float | None = Field(
        default=None,
        gt=0,
        le=10**6,
        description="time after which the best order so far is published; above 0, no limit if left out",
    )


@STATIC_ALGORITHMS.register("ogf", OgfParameters)
class Ogf(StaticAlgorithm):
    """Searches the order of columns along which Datafly keeps most, and publishes that."""

    Parameters = OgfParameters
    parameters: OgfParameters
    guarantees = (KAnonymity,)
    example: ClassVar[Mapping[str, Any]] = {"k": 2}

    def models(self, schema: Schema) -> tuple[Model, ...]:
        """K persons in every class."""
        asked, columns = self.parameters, len(schema.quasi)
        if asked.search == "exhaustive" and columns > MOST_EXHAUSTIVE:
            raise InfeasibleError(
                f"all orders of {columns} quasi-identifiers are too many", parameter="search", nearest="genetic"
            )
        return (KAnonymity(asked.k),)

    def anonymize(self, table: Table, *, seed: int | None = None, progress: Progress = silent) -> Publication:
        """Search, and publish along the best order. The search is random; the guarantee is not."""
        models = self.models(table.schema)
        check_feasible(models, table)
        asked = self.parameters
        cells = cells_of(table, asked.k, asked.recode)
        if not len(table):
            return cells.published(cells.start(), ())
        price = Price(cells, asked.fitness)
        if asked.search == "exhaustive":
            every = BestOfAll(price)
            every.run(seconds=asked.seconds, progress=progress)
            order, tried = every.best, every.tried
        else:
            search = OrderSearch(price.columns, lambda order: price.of(cells.along(order)), shown=price.shown)
            search.run(
                runs=asked.runs, generations=asked.generations, seconds=asked.seconds, seed=seed, progress=progress
            )
            order, tried = search.best, search.evaluated
        publication = cells.published(cells.along(order), order)
        return proven(replace(publication, details={**publication.details, "orders": tried}), models)


class Price:
    """What the blocks along an order cost."""

    def __init__(self, cells: Cells, fitness: Literal["cells", "loss"]) -> None:
        self.cells, self._fitness = cells, fitness
        self.columns = len(cells.table.schema.quasi)

    def of(self, partition: Partition) -> float:
        """Suppressed cells, or the loss summed over the rows, after all columns."""
        return partition.suppressed if self._fitness == "cells" else self.cells.loss(partition)

    def least(self, partition: Partition) -> float:
        """What every order costs that begins like this."""
        if self._fitness == "cells":
            return partition.suppressed
        # Further columns make the smallest boxes smaller in the columns before, too.
        return 0.0 if self.cells.minimal else partition.lost

    def later(self, column: int, split: Partition) -> float:
        """What a column costs wherever it comes from here on, if splitting by it now gives this."""
        if self.cells.minimal:
            return 0.0  # what cannot keep its value climbs, and it is not known how far
        return split.alone * (1.0 if self._fitness == "cells" else self.cells.dearest(column))

    def shown(self, cost: float) -> str:
        """For whoever waits."""
        rows = len(self.cells.table)
        if self._fitness == "cells":
            return f"{1 - cost / (rows * self.columns):.2%} of the cells"
        return f"a loss of {cost / rows:.4f}"


def every_order(
    cells: Cells, columns: Sequence[int], begun: Order = (), so_far: Partition | None = None
) -> Iterator[tuple[Order, Partition]]:
    """All orders with their blocks; those that begin alike share the work."""
    partition = cells.start() if so_far is None else so_far
    if len(begun) == len(columns):
        yield begun, partition
    for column in columns:
        if column not in begun:
            yield from every_order(cells, columns, (*begun, column), cells.split(partition, column))


class BestOfAll:
    """The order that costs least, found by branch and bound: what cannot become the best is not followed."""

    def __init__(self, price: Price, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._price, self._clock = price, clock
        self.best: Order = ()
        self.cost = math.inf
        self.tried = 0
        self._stopped = False

    def run(self, *, seconds: float | None = None, progress: Progress = silent) -> None:
        """Search until nothing better is possible, until the time is over, or until `progress` stops the search."""
        end = math.inf if seconds is None else self._clock() + seconds
        self._follow((), self._price.cells.start(), end, progress)
        self._tell(progress, math.factorial(self._price.columns))

    def _follow(self, begun: Order, partition: Partition, end: float, progress: Progress) -> None:
        price, columns = self._price, self._price.columns
        if len(begun) == columns:
            self.tried += 1
            if price.of(partition) < self.cost:
                self.best, self.cost = begun, price.of(partition)
            return
        self._stopped = self._tell(progress, self.tried) or self._stopped
        if self.best and (self._stopped or self._clock() >= end):
            return
        splits = {column: price.cells.split(partition, column) for column in range(columns) if column not in begun}
        later = sum(price.later(column, split) for column, split in splits.items())
        # The cheapest first: a good order that is known early rules out many others.
        for column in sorted(splits, key=lambda column: price.least(splits[column])):
            if max(price.least(splits[column]), price.least(partition) + later) < self.cost:
                self._follow((*begun, column), splits[column], end, progress)

    def _tell(self, progress: Progress, done: int) -> bool:
        """Report how far the search is; whether it is to stop."""
        known = f", best so far {self._price.shown(self.cost)}" if self.best else ""
        return progress(f"orders{known}", done, math.factorial(self._price.columns)) is True
