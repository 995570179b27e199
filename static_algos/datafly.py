"""Datafly: one quasi-identifier after the other, and cells that would leave too few persons together are suppressed.

All rows are one block at first. Column by column, in a given order, each block is split by value; parts with fewer than
k persons are pooled, and the pool is suppressed in that column. If the pool itself is too small, the smallest other
part joins it. Blocks at the end are the classes: this is what the literature's prefix tree does, level by level. Which
cells are left depends on the order: columns that come first keep more. Left out, it is by distinct values, most first.

`recode: generalize` climbs instead of suppressing: categories their hierarchy, numbers intervals that double, and only
what finds no company below a common node goes on to the next one. What is published is then the smallest box around
each class.

Sweeney, Datafly (1997); Chaytor, Allowing Privacy Protection Algorithms to Jump Out of Local Optimums (PinKDD 2007).

>>> import numpy as np
>>> from microdata import Category, Hierarchy, Number, PersonSource, Schema, Table
>>> sex = Category("sex", Hierarchy.flat(["female", "male"]))
>>> schema = Schema(PersonSource.ROW, (Number("age", 0, 99, integer=True), sex))
>>> people = np.array([[21, 0], [21, 0], [30, 1], [61, 1], [61, 1], [70, 0]], np.float64)
>>> table = Table(schema, np.arange(6), people, np.empty((6, 0), np.int32))
>>> publication = Datafly(k=2).anonymize(table)
>>> publication.boxes.lo.tolist(), publication.boxes.hi.tolist()
([[21.0, 0.0], [0.0, 0.0], [61.0, 1.0]], [[21.0, 0.0], [99.0, 1.0], [61.0, 1.0]])
>>> publication.details["suppressed_cells"]
{'age': 0.3333333333333333, 'sex': 0.3333333333333333}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from microdata import (
    Boxes,
    Geometry,
    InfeasibleError,
    Progress,
    Publication,
    Schema,
    Table,
    geometry,
    hidden_cells,
    silent,
)
from privacy import KAnonymity, Model, check_feasible
from privacy.keys import MOST
from static_algos._datafly_kernels import minimal_loss, refine
from static_algos.algorithm import STATIC_ALGORITHMS, StaticAlgorithm
from static_algos.catalogue import Parameters
from static_algos.proof import proven
from static_algos.recoding import Recoding, recodings

HEIGHT = 11
"""Levels above a number's values when it is generalized: intervals that double, at most 1,024 of them at first."""
MOST_COLUMNS = 1_000
"""Columns that an order may name."""

Recode: TypeAlias = Annotated[
    Literal["suppress", "generalize"],
    Field(
        description="suppress: a cell is published as it is or not at all; generalize: it climbs its hierarchy, or "
        "intervals that double, only as far as it must"
    ),
]


class DataflyParameters(Parameters):
    """What Datafly is asked for."""

    k: int = Field(ge=1, le=MOST, description="distinct persons per class; a whole number from 1")
    order: Annotated[list[str], Field(min_length=1, max_length=MOST_COLUMNS)] | None = Field(
        default=None,
        description="every quasi-identifier once, in the order in which they are kept; by the number of distinct "
        "values, most first, if left out",
    )
    recode: Recode = "suppress"


@STATIC_ALGORITHMS.register("datafly", DataflyParameters)
class Datafly(StaticAlgorithm):
    """Splits the rows by one column after the other, and suppresses cells that would leave too few persons together."""

    Parameters = DataflyParameters
    parameters: DataflyParameters
    guarantees = (KAnonymity,)
    example: ClassVar[Mapping[str, Any]] = {"k": 2}

    def models(self, schema: Schema) -> tuple[Model, ...]:
        """K persons in every class."""
        self._order(schema)
        return (KAnonymity(self.parameters.k),)

    def anonymize(self, table: Table, *, seed: int | None = None, progress: Progress = silent) -> Publication:
        """Split by every column. Nothing is random, and no row is suppressed as a whole."""
        del seed
        models = self.models(table.schema)
        check_feasible(models, table)
        cells = cells_of(table, self.parameters.k, self.parameters.recode)
        order = self._order(table.schema) or cells.by_distinct_values()
        partition = cells.start()
        for done, column in enumerate(order):
            progress("splitting", done, len(order))
            partition = cells.split(partition, column)
        progress("splitting", len(order), len(order))
        return proven(cells.published(partition, order), models)

    def _order(self, schema: Schema) -> list[int]:
        """The columns in the order that is asked for; empty where none is."""
        asked, names = self.parameters.order, [attribute.name for attribute in schema.quasi]
        if asked is not None and sorted(asked) != sorted(names):
            raise InfeasibleError(
                f"every quasi-identifier is named once: {', '.join(names)}", parameter="order", given=", ".join(asked)
            )
        return [names.index(name) for name in asked or ()]


class Partition(NamedTuple):
    """Blocks of rows after some columns."""

    rows: NDArray[np.int32]
    starts: NDArray[np.int64]
    levels: NDArray[np.int8]
    """Blocks × columns: the level that the column is published at; 0 for columns that are still to come."""
    suppressed: int
    """Cells at the top of their column."""
    lost: float
    """Loss of the columns so far, weighted and summed over the rows."""
    alone: int
    """Rows whose value of the last column has too few persons in their block, and so in every part of it."""


@dataclass(eq=False)
class _Column:
    """What the kernel needs to know about one column."""

    codes: NDArray[np.int32]
    group: NDArray[np.int32]
    loss: NDArray[np.float64]


class Cells:
    """A table that is split by columns in any order; blocks of a common beginning of two orders are shared."""

    def __init__(self, table: Table, k: int, recoded: Sequence[Recoding], *, minimal: bool) -> None:
        """With `minimal` a class is published by the smallest box around it, else by the levels that it reached."""
        self.table, self.k, self.minimal, self._recoded = table, k, minimal, recoded
        self._columns = [
            _Column(
                one.codes,
                np.stack([level.group for level in one.levels]),
                np.stack([level.loss[level.group] for level in one.levels]) * weight,
            )
            for one, weight in zip(self._recoded, table.schema.weights, strict=True)
        ]
        self._persons = np.empty(0, np.int32)
        if table.people < len(table):
            self._persons = np.unique(table.persons, return_inverse=True)[1].astype(np.int32)
        self._seen = np.zeros(table.people + 1, np.int64)
        self._space: Geometry = geometry(table.schema)

    def by_distinct_values(self) -> list[int]:
        """Every column, those with the most distinct values first."""
        distinct = [np.count_nonzero(np.bincount(one.codes)) for one in self._columns]
        return sorted(range(len(distinct)), key=lambda column: -distinct[column])

    def start(self) -> Partition:
        """All rows as one block."""
        rows = len(self.table)
        blocks = min(rows, 1)
        return Partition(
            np.arange(rows, dtype=np.int32),
            np.array([0, rows][: blocks + 1]),
            np.zeros((blocks, len(self._columns)), np.int8),
            suppressed=0,
            lost=0.0,
            alone=0,
        )

    def split(self, partition: Partition, column: int) -> Partition:
        """The blocks split by one more column."""
        one = self._columns[column]
        rows, starts, origin, level, kept, alone, lost = refine(
            partition.rows, partition.starts, one.codes, one.group, one.loss, self._persons, self._seen, self.k
        )
        levels = partition.levels[origin]
        levels[:, column] = level
        return Partition(rows, starts, levels, partition.suppressed + len(rows) - kept, partition.lost + lost, alone)

    def along(self, order: Sequence[int]) -> Partition:
        """The blocks after these columns."""
        partition = self.start()
        for column in order:
            partition = self.split(partition, column)
        return partition

    def dearest(self, column: int) -> float:
        """What a suppressed cell of a column loses, weighted."""
        return float(self._columns[column].loss[-1].max(initial=0.0))

    def loss(self, partition: Partition) -> float:
        """Loss of publishing the blocks after all columns, summed over the rows."""
        if self.minimal:
            return minimal_loss(self._space, self.table.quasi, partition.rows, partition.starts)
        return partition.lost

    def published(self, partition: Partition, order: Sequence[int]) -> Publication:
        """The publication of the blocks after all columns."""
        schema, blocks = self.table.schema, len(partition.levels)
        classes = np.empty(len(self.table), np.int32)
        classes[partition.rows] = np.repeat(np.arange(blocks), np.diff(partition.starts))
        boxes = self._shown(partition) if not self.minimal else Boxes.around(schema, self.table.quasi, classes, blocks)
        names = [attribute.name for attribute in schema.quasi]
        shares = (np.diff(partition.starts) @ hidden_cells(boxes) / max(len(self.table), 1)).tolist()
        details = {
            "order": [names[column] for column in order],
            "unsuppressed": 1.0 - sum(shares) / len(shares),
            "suppressed_cells": dict(zip(names, shares, strict=True)),
        }
        return Publication(self.table, classes, boxes, details)

    def _shown(self, partition: Partition) -> Boxes:
        """Each block's values, and whole domains where they are suppressed."""
        example = partition.rows[partition.starts[:-1]]
        lo, hi = np.empty((2, *partition.levels.shape))
        for column, one in enumerate(self._recoded):
            for number, level in enumerate(one.levels):
                here = partition.levels[:, column] == number
                group = level.group[one.codes[example[here]]]
                lo[here, column], hi[here, column] = level.lo[group], level.hi[group]
        return Boxes(self.table.schema, lo, hi)


def cells_of(table: Table, k: int, recode: Literal["suppress", "generalize"]) -> Cells:
    """The table ready to be split, with cells that are suppressed or climb."""
    if recode == "generalize":
        return Cells(table, k, recodings(table, HEIGHT, {}), minimal=True)
    bare = [Recoding(one.codes, one.levels[:: max(len(one.levels) - 1, 1)]) for one in recodings(table, 1, {})]
    return Cells(table, k, bare, minimal=False)
