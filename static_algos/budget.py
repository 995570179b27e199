"""Budget: how many values each column may keep, from nothing but the number of people and k; then columns are recoded.

If n people were spread evenly over D′ combinations, each of them would have k people with a chance of 1 - β; that gives
D′. It is shared out among the columns by their weights, so that the ranks of values change least. A number is then cut
into that many intervals with equally many rows (or the partition of least cost), and a category climbs to the lowest
level that has no more nodes. Every column is looked at once and by itself: linear, however many columns there are.

Real columns depend on each other, and then some combinations have fewer people than the formula says. So the classes
are counted, and those with fewer than k persons are merged (their values climb on, as in Datafly) or left out. With
`universe` they are not: then the promise is (1 - β, k)-anonymity, k people of a declared population with a chance of
1 - β if columns are independent. That is not k-anonymity, and the report says so.

Lodha and Thomas, Probabilistic Anonymity (PinKDD 2007).

>>> from microdata import example_table
>>> publication = Budget(k=5, beta=0.2).anonymize(example_table(2000))
>>> publication.details["budget"]
{'age': 5, 'city': 5, 'pay': 4, 'sex': 2}
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from microdata import (
    Attribute,
    Boxes,
    Category,
    InfeasibleError,
    Number,
    PersonSource,
    Progress,
    Publication,
    Schema,
    Table,
    attribute_loss,
    silent,
)
from privacy import KAnonymity, Model, check_feasible
from privacy.counting import fewest_people, most_combinations
from privacy.keys import MOST
from static_algos.algorithm import STATIC_ALGORITHMS, StaticAlgorithm
from static_algos.catalogue import Parameters
from static_algos.datafly import Cells
from static_algos.full_domain import publish
from static_algos.partitions import Cost, cut_evenly, weigh_counted
from static_algos.proof import proven
from static_algos.recoding import Level, Recoding, recodings

LEAST_WEIGHT = 1e-6
"""Of a column that does not count in the loss."""
BISECTIONS = 100
FEW_VALUES = 1 << 16
"""So many values of a grid are always counted one by one."""


class BudgetParameters(Parameters):
    """What budgets are asked for."""

    k: int = Field(ge=1, le=MOST, description="distinct persons per class; a whole number from 1")
    beta: float = Field(
        default=0.1,
        gt=0,
        lt=1,
        description="chance that a combination of values has fewer than k people, if columns are independent; above 0, "
        "below 1. Smaller gives coarser columns",
    )
    short: Literal["merge", "suppress"] = Field(
        default="merge",
        description="what becomes of classes with fewer than k persons: merge: their values climb until there are k; "
        "suppress: their rows are left out",
    )
    cost: Cost = Field(
        default="rank",
        description="what the intervals of a number make least: rank: how far ranks move (quantiles); median: the "
        "distances to medians; center: the largest radius; cellular: each row's radius",
    )
    universe: int | None = Field(
        default=None,
        ge=1,
        le=MOST,
        description="people of the population that the table is drawn from. Classes are then not counted: the promise "
        "is k of these people with a chance of 1 - beta, if columns are independent, and not k-anonymity",
    )


@STATIC_ALGORITHMS.register("budget", BudgetParameters)
class Budget(StaticAlgorithm):
    """Recodes each column to as many values as k allows, all together; then counts, and merges what is too small."""

    Parameters = BudgetParameters
    parameters: BudgetParameters
    guarantees = (KAnonymity,)
    example: ClassVar[Mapping[str, Any]] = {"k": 2}

    def models(self, schema: Schema) -> tuple[Model, ...]:
        """K persons in every class; one, where a population is declared."""
        del schema
        return (KAnonymity(self.parameters.k if self.parameters.universe is None else 1),)

    def anonymize(self, table: Table, *, seed: int | None = None, progress: Progress = silent) -> Publication:
        """Recode, count, and merge or leave out what is too small. Nothing is random."""
        del seed
        asked, models = self.parameters, self.models(table.schema)
        check_feasible(models, table)
        if not len(table):
            return Publication.of(table, np.empty(0, np.int32))
        people = asked.universe or table.people
        allowed = most_combinations(people, asked.k, asked.beta)
        if asked.universe is not None and allowed < 1:
            raise InfeasibleError(
                f"not even one combination has {asked.k} of {people} people with that chance",
                parameter="universe",
                given=people,
                nearest=fewest_people(1, asked.k, asked.beta),
            )
        columns = _columns(table)
        weights = np.maximum(table.schema.weights, LEAST_WEIGHT).tolist()
        budgets = allocate([one.domain for one in columns], weights, max(allowed, 1.0))
        recoded = []
        for number, column in enumerate(columns):
            progress("recoding columns", number, len(budgets))
            recoded.append(column.within(budgets[number], asked.cost))
        progress("recoding columns", len(budgets), len(budgets))
        details = self._details(table.schema, budgets)
        if asked.short == "merge" and asked.universe is None:
            cells = Cells(table, asked.k, recoded, minimal=False)
            # Columns with few values first: these are kept, and the others climb.
            order = cells.by_distinct_values()[::-1]
            publication = cells.published(cells.along(order), order)
        else:
            publication = publish(table, recoded, (0,) * len(recoded), models)
        return proven(replace(publication, details={**publication.details, **details}), models)

    def _details(self, schema: Schema, budgets: Sequence[int]) -> dict[str, object]:
        asked = self.parameters
        names = [attribute.name for attribute in schema.quasi]
        promise = {
            "promise": f"({1 - asked.beta:g}, {asked.k})-anonymity of {asked.universe} people if columns are "
            "independent; not k-anonymity"
        }
        return {
            "combinations": math.prod(budgets),
            "budget": dict(zip(names, budgets, strict=True)),
            **({} if asked.universe is None else promise),
        }


def allocate(domains: Sequence[int], weights: Sequence[float], combinations: float) -> list[int]:
    """How many values each column may keep: their product is at most `combinations` (from 1), Σ weight / values least.

    A column that has fewer values than its share leaves the rest to the others; none has less than one.

    >>> allocate([2, 20_000, 100_000], [1, 1, 1], 2.4e6)
    [2, 1095, 1095]
    """
    low, high = -np.log(np.max(weights)), float(np.max(np.log(domains) - np.log(weights)))
    wanted = math.log(combinations)
    # Shares are weights times one factor, within 1 and the domain; their product grows with it. In logarithms, since
    # products of many domains would overflow.
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        within = np.clip(np.log(weights) + middle, 0.0, np.log(domains)).sum() <= wanted
        low, high = (middle, high) if within else (low, middle)
    shares = np.exp(np.clip(np.log(weights) + low, 0.0, np.log(domains)))
    values = [max(math.floor(share), 1) for share in shares.tolist()]
    while math.prod(values) > combinations:  # by the last digit of a logarithm
        values[int(np.argmax(values))] -= 1
    # What rounding down has left over, to whom it helps most.
    for i in sorted(range(len(values)), key=lambda i: values[i] * (values[i] + 1) / weights[i]):
        more = math.prod(values) // values[i] * (values[i] + 1)
        values[i] += values[i] < domains[i] and more <= combinations
    return values


def chosen_level(sizes: Sequence[int], budget: int) -> int:
    """The lowest of some levels that has no more nodes than the budget; the last one where all have more.

    >>> chosen_level([30_000, 3_000, 50, 1], 3_500), chosen_level([30_000, 3_000, 50, 1], 50)
    (1, 2)
    """
    return next((level for level, size in enumerate(sizes) if size <= budget), len(sizes) - 1)


@dataclass(frozen=True, eq=False)
class _Column:
    """A quasi-identifier with its values; of a number with a step the beginnings of the step's cells."""

    attribute: Attribute
    values: NDArray[np.float64]

    @cached_property
    def counted(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Values that occur, ascending, and how often; without sorting where there is a grid."""
        one, values = self.attribute, self.values
        if isinstance(one, Category) or one.size is None or one.size > max(len(values), FEW_VALUES):
            return np.unique(values, return_counts=True)
        places = np.rint((values - one.low) / (one.grid or 1.0)).astype(np.int64)
        counts = np.bincount(places, minlength=one.size)
        known = np.flatnonzero(counts)
        return one.on_grid(known), counts[known]

    @property
    def domain(self) -> int:
        """Values that it can have; those that it has, where it is continuous."""
        return self.attribute.size or max(len(self.counted[0]), 1)

    def within(self, budget: int, cost: Cost) -> Recoding:
        """The column with as many values as the budget allows, and with levels above them."""
        if isinstance(self.attribute, Category):
            return _climbed(self.attribute, self.values, budget)
        return _cut(self.attribute, self, budget, cost)


def _columns(table: Table) -> list[_Column]:
    return [
        _Column(one, one.floor(column) if isinstance(one, Number) and one.step is not None else column)
        for one, column in zip(table.schema.quasi, table.quasi.T, strict=True)
    ]


def _climbed(attribute: Category, column: NDArray[np.float64], budget: int) -> Recoding:
    """A category from the lowest level on that the budget allows."""
    rows, schema = len(column), Schema(PersonSource.ROW, (attribute,))
    alone = Table(schema, np.arange(rows), column[:, None], np.empty((rows, 0), np.int32))
    whole = recodings(alone, 1, {})[0]
    first = chosen_level([len(level.lo) for level in whole.levels], budget)
    group = whole.levels[first].group
    example = np.unique(group, return_index=True)[1]
    levels = [Level(level.group[example], level.lo, level.hi, level.loss) for level in whole.levels[first:]]
    return Recoding(group[whole.codes], tuple(levels))


def _cut(attribute: Number, column: _Column, budget: int, cost: Cost) -> Recoding:
    """A number in so many intervals, which cover its domain, or as it is; then two, four and more of them together."""
    values, counts = column.counted
    if budget >= (attribute.size or len(values)):
        firsts = values
        lo, hi = firsts, np.minimum(firsts + (attribute.step or 0.0), attribute.high)
    else:
        rows = math.ceil(len(column.values) / budget)
        firsts = cut_evenly(values, counts, rows) if cost == "rank" else weigh_counted(values, counts, rows, cost)[0]
        # Whole numbers leave a gap between two intervals; others touch.
        gap = 1.0 if attribute.integer and attribute.step is None else 0.0
        lo, hi = np.append(attribute.low, firsts[1:]), np.append(firsts[1:] - gap, attribute.high)
    codes = (np.searchsorted(firsts, column.values, side="right") - 1).astype(np.int32)
    levels = [_level(attribute, np.arange(len(firsts), dtype=np.int32), lo, hi)]
    while len(levels[-1].lo) > 1:
        group = (np.arange(len(firsts)) >> len(levels)).astype(np.int32)
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        levels.append(_level(attribute, group, lo[starts], hi[np.append(starts[1:], len(hi)) - 1]))
    return Recoding(codes, tuple(levels))


def _level(attribute: Attribute, group: NDArray[np.int32], lo: NDArray[np.float64], hi: NDArray[np.float64]) -> Level:
    alone = Boxes(Schema(PersonSource.ROW, (attribute,)), lo[:, None], hi[:, None])
    return Level(group, lo, hi, attribute_loss(alone)[:, 0])
