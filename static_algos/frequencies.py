"""Groups of rows and what models need to know about them: joining groups adds up, and nothing is counted anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import Schema, Table
from privacy import Groups, Histogram
from static_algos._full_domain_kernels import gather
from static_algos._histogram_kernels import add_up


class Sparse(NamedTuple):
    """Histograms of groups over the values 0 … size - 1."""

    starts: NDArray[np.int64]
    values: NDArray[np.int32]
    counts: NDArray[np.int64]
    size: int

    @classmethod
    def single(cls, column: NDArray[np.integer], size: int) -> Sparse:
        """Every row as a group of its own."""
        values = np.ascontiguousarray(column, np.int32)
        return cls(np.arange(len(values) + 1), values, np.ones(len(values), np.int64), size)

    def merged(self, label: NDArray[np.int32], groups: int) -> Sparse:
        """Add up the histograms that have the same label."""
        return Sparse(*add_up(label, groups, self.starts, self.values, self.counts, self.size), self.size)


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Groups of rows that share their codes, and what the models need to know about them."""

    codes: NDArray[np.int32]
    """Codes of level 0, of one row of each group."""
    rows: NDArray[np.int64]
    persons: Sparse | None
    """None where every row is another person."""
    parts: tuple[Sparse, ...]
    """Sensitive values of finer groups, not yet added up: many nodes fail before anybody asks for them."""
    label: NDArray[np.int32]
    """Group of each of those finer groups."""

    @classmethod
    def of(cls, table: Table, codes: NDArray[np.int32]) -> Frequencies:
        """Every distinct row of the table by its codes."""
        people, person = np.unique(table.persons, return_inverse=True)
        repeated = len(people) < len(table)
        columns = zip(table.schema.sensitive, table.sensitive.T, strict=True)
        single = cls(
            codes=codes,
            rows=np.ones(len(table), np.int64),
            persons=Sparse.single(person, len(people)) if repeated else None,
            parts=tuple(Sparse.single(column, attribute.size or 0) for attribute, column in columns),
            label=np.arange(len(table), dtype=np.int32),
        )
        return single.merged(single.codes)

    @cached_property
    def sensitive(self) -> tuple[Sparse, ...]:
        """Histograms of the sensitive attributes."""
        return tuple(one.merged(self.label, len(self.rows)) for one in self.parts)

    def merged(self, codes: NDArray[np.int32]) -> Frequencies:
        """Join the groups whose rows of `codes` are equal."""
        label, example = gather(codes)
        count = len(example)
        return Frequencies(
            codes=self.codes[example],
            rows=np.bincount(label, self.rows, count).astype(np.int64),
            persons=None if self.persons is None else self.persons.merged(label, count),
            parts=self.sensitive,
            label=label,
        )

    def groups(self, schema: Schema, references: Sequence[NDArray[np.int64]], *, sensitive: bool) -> Groups:
        """The groups as the models see them, with histograms if these are needed."""
        histograms = self.sensitive if sensitive else ()
        return groups_of(schema, self.rows, self.persons, histograms, references)


def groups_of(
    schema: Schema,
    rows: NDArray[np.int64],
    persons: Sparse | None,
    sensitive: Sequence[Sparse],
    references: Sequence[NDArray[np.int64]],
) -> Groups:
    """Groups of so many rows as the models see them; without `sensitive` for models about persons alone."""
    if persons is None:
        distinct, most = rows, np.minimum(rows, 1)
    else:
        distinct = np.diff(persons.starts)
        most = np.zeros(len(rows), np.int64)
        some = distinct > 0
        most[some] = np.maximum.reduceat(persons.counts, persons.starts[:-1][some]) if some.any() else 0
    described = zip(schema.sensitive, references, sensitive, strict=True) if sensitive else ()
    histograms = [Histogram(attribute, known, *one[:3]) for attribute, known, one in described]
    return Groups(rows, distinct, most, tuple(histograms))
