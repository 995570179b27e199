"""Mondrian: cut the rows in two, again and again, as long as both parts keep the guarantee.

A part is cut where it loses most: the quasi-identifier with the widest normalized range, at its median; a category is
cut between the subtrees below its common ancestor. If one of the two parts would break the guarantee, the next
quasi-identifier is tried; where none is left, the part becomes a class. Which guarantee is a parameter: with t this is
the literature's tMondrian, with β LMondrian, with δ-disclosure DMondrian.

Many parts are cut side by side, and the privacy models judge all their halves at once.

LeFevre, DeWitt and Ramakrishnan, Mondrian Multidimensional K-Anonymity (2006); Li, Li and Venkatasubramanian,
t-Closeness (2007), for the split test by distribution.

>>> import numpy as np
>>> from microdata import Number, PersonSource, Schema, Table
>>> schema = Schema(PersonSource.ROW, (Number("age", 0, 99),))
>>> ages = np.array([[21.0], [22.0], [25.0], [61.0], [63.0], [70.0]])
>>> table = Table(schema, np.arange(6), ages, np.empty((6, 0), np.int32))
>>> publication = Mondrian(k=3).anonymize(table)
>>> publication.boxes.lo.ravel().tolist(), publication.boxes.hi.ravel().tolist()
([21.0, 61.0], [25.0, 70.0])
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from microdata import (
    Boxes,
    Geometry,
    InfeasibleError,
    Number,
    Progress,
    Publication,
    Schema,
    Table,
    geometry,
    silent,
)
from privacy import KEYS, Groups, Guarantee, Histogram, Model, SensitiveModel, check, check_feasible
from static_algos._histogram_kernels import count_values
from static_algos._mondrian_kernels import Trees, count_persons, describe, propose, trees
from static_algos.algorithm import STATIC_ALGORITHMS, StaticAlgorithm
from static_algos.catalogue import Parameters
from static_algos.proof import proven

Parts: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Where each of some parts begins and ends."""

BATCH = 1 << 18
"""Rows that are worked on at once: enough to keep the models busy, few enough for the cache."""


class MondrianParameters(Guarantee, Parameters):
    """Any guarantee, and how to cut."""

    cuts: Literal["strict", "relaxed"] = Field(
        default="relaxed",
        description="strict: rows with equal values stay together; relaxed: the values at a cut may be divided where "
        "one side would have too few rows",
    )


@STATIC_ALGORITHMS.register("mondrian", MondrianParameters)
class Mondrian(StaticAlgorithm):
    """Cuts the rows in two at medians, again and again, as long as both parts keep the guarantee."""

    Parameters = MondrianParameters
    parameters: MondrianParameters
    guarantees: ClassVar[tuple[type[Model], ...]] = KEYS.models()
    example: ClassVar[Mapping[str, Any]] = {"k": 2, "l": 2, "t": 0.9, "beta": 9}

    def models(self, schema: Schema) -> tuple[Model, ...]:
        """What the parameters ask for."""
        return self.parameters.models(schema)

    def anonymize(self, table: Table, *, seed: int | None = None, progress: Progress = silent) -> Publication:
        """Cut until no part can be cut any more. Nothing is random, nothing is suppressed."""
        del seed
        models = self.models(table.schema)
        check_feasible(models, table)
        classes, count = mondrian_classes(table, models, divide=self.parameters.cuts == "relaxed", progress=progress)
        return proven(Publication(table, classes, Boxes.around(table.schema, table.quasi, classes, count)), models)


def mondrian_classes(
    table: Table, models: Sequence[Model], *, divide: bool = True, progress: Progress = silent
) -> tuple[NDArray[np.int32], int]:
    """Return the class of each row and the number of classes; every class meets the models.

    With `divide`, rows with equal values may be divided between two classes. Raises `InfeasibleError` if neither the
    whole table nor two parts of it meet the models.
    """
    work = _Work.on(table, models, divide=divide)
    classes, count = _partition(work, progress)
    if count == 1 and not check(models, work.groups(np.zeros(1, np.int64), np.array([len(table)])))[0]:
        raise InfeasibleError("neither the whole table nor two parts of it meet it", parameter="guarantee")
    return classes, count


def disclosure_for(beta: float, counts: ArrayLike) -> float:
    """The δ whose δ-disclosure implies enhanced β-likeness, for a sensitive attribute with these counts (DMondrian).

    >>> round(disclosure_for(4, [95_159.8, 4_840.2]), 4), round(disclosure_for(4, [4_840.2] * 20 + [3_196]), 4)
    (0.0484, 1.3933)
    """
    shares = np.asarray(counts, np.float64)
    return math.log1p(min(beta, -math.log(shares.max() / shares.sum())))


def _partition(work: _Work, progress: Progress) -> tuple[NDArray[np.int32], int]:
    """Class of each row, and the number of classes."""
    rows = len(work.rows)
    first = np.zeros(rows, bool)
    pending: list[Parts] = [(np.zeros(1, np.int64), np.full(1, rows, np.int64))] if rows else []
    done = 0
    while pending:
        progress("cutting", done, rows)
        begin, end = pending.pop()
        size = int((end - begin).sum())
        if len(begin) > 1 and size > BATCH:
            half = max(1, int(np.searchsorted(np.cumsum(end - begin), size // 2)))
            pending += [(begin[half:], end[half:]), (begin[:half], end[:half])]
            continue
        first[begin] = True
        begin, end = work.halve(begin, end)
        done += size - int((end - begin).sum())
        if len(begin):
            pending.append((begin, end))
    progress("cutting", rows, rows)
    classes = np.empty(rows, np.int32)
    classes[work.codes[:, 0]] = np.cumsum(first) - 1
    return classes, int(first.sum())


@dataclass(eq=False)
class _Work:
    """Rows in the order of the cuts so far, and what the kernels need beside them."""

    schema: Schema
    models: Sequence[Model]
    divide: bool
    rows: NDArray[np.float64]
    codes: NDArray[np.int64]
    """Per row: its number in the table, its sensitive values, and its person if persons have several rows."""
    seen: NDArray[np.int64] | None
    references: list[NDArray[np.int64]]
    space: Geometry = field(init=False)
    trees: Trees = field(init=False)
    least: int = field(init=False)
    scratch: NDArray[np.float64] = field(init=False)
    stamp: int = 0

    def __post_init__(self) -> None:
        self.space, self.trees = geometry(self.schema), trees(self.schema)
        self.least = max((model.least_persons for model in self.models), default=1)
        self.scratch = np.empty(len(self.rows))

    @classmethod
    def on(cls, table: Table, models: Sequence[Model], *, divide: bool) -> _Work:
        """Copies of the table's columns, which the cuts reorder."""
        people, person = np.unique(table.persons, return_inverse=True)
        repeated = len(people) < len(table)
        columns = [np.arange(len(table)), *table.sensitive.T, *([person] if repeated else [])]
        return cls(
            table.schema,
            models,
            divide,
            rows=_cells(table),
            codes=np.stack(columns, axis=1).astype(np.int64),
            seen=np.zeros((len(people), 2), np.int64) if repeated else None,
            references=table.schema.histograms(table.sensitive),
        )

    def halve(self, begin: NDArray[np.int64], end: NDArray[np.int64]) -> Parts:
        """Cut each part at the first quasi-identifier that allows it; the halves of those that could be cut."""
        lo, hi, turn = describe(self.space, self.rows, begin, end)
        tried = np.zeros(len(begin), np.int64)
        uncut = np.arange(len(begin))
        halves: list[NDArray[np.int64]] = []
        while len(uncut):
            middle = propose(
                self.trees, self.rows, self.codes, begin, end, lo, hi, turn, tried, uncut,
                self.least, self.divide, self.scratch,
            )  # fmt: skip
            uncut, middle = uncut[middle >= 0], middle[middle >= 0]
            bounds = np.stack([begin[uncut], middle, end[uncut]], axis=1)
            allowed = self.allowed(bounds)
            halves.append(bounds[allowed])
            uncut = uncut[~allowed]
        cut = np.concatenate([*halves, np.empty((0, 3), np.int64)])
        return cut[:, :2].ravel(), cut[:, 1:].ravel()

    def allowed(self, bounds: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether both halves of each cut (begin, middle, end) meet every model."""
        groups = self.groups(bounds[:, :2].ravel(), bounds[:, 1:].ravel())
        return np.asarray(check(self.models, groups).reshape(-1, 2).all(axis=1))

    def groups(self, begin: NDArray[np.int64], end: NDArray[np.int64]) -> Groups:
        """The parts as the models see them."""
        rows = end - begin
        persons, most = rows, np.minimum(rows, 1)
        if self.seen is not None:
            persons, most = count_persons(self.codes, self.codes.shape[1] - 1, begin, end, self.seen, self.stamp + 1)
            self.stamp += len(begin)
        histograms = []
        if any(isinstance(model, SensitiveModel) for model in self.models):
            for column, attribute in enumerate(self.schema.sensitive):
                reference = self.references[column]
                counted = count_values(self.codes, column + 1, begin, end, np.zeros(len(reference), np.int64))
                histograms.append(Histogram(attribute, reference, *counted))
        return Groups(rows, persons, most, tuple(histograms))


def _cells(table: Table) -> NDArray[np.float64]:
    """The quasi-identifiers; numbers with a step as the step's cell, so that no cut goes through one."""
    rows = table.quasi.copy()
    for column, attribute in enumerate(table.schema.quasi):
        if isinstance(attribute, Number) and attribute.step is not None:
            rows[:, column] = (
                np.floor((rows[:, column] - attribute.low) / attribute.step) * attribute.step + attribute.low
            )
    return rows
