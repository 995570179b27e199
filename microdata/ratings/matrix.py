"""Ratings in memory: a sparse matrix of persons and items, compressed by rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from microdata.ratings.schema import RatingSchema, Scale


@dataclass(frozen=True, eq=False)
class Sparse:
    """A row per person: the items that somebody rated, ascending, and the ratings. What is not there was not rated."""

    starts: NDArray[np.int64]
    """Where each row begins in `items` and `values`; one more entry than rows."""
    items: NDArray[np.int32]
    values: NDArray[np.int16]
    """Ratings from 1; never 0."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def of(cls, rows: NDArray[np.int64], items: NDArray[np.int32], values: NDArray[np.int16], count: int) -> Sparse:
        """From entries that are ordered by row and item."""
        starts = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=count), out=starts[1:])
        return cls(starts, np.ascontiguousarray(items, np.int32), np.ascontiguousarray(values, np.int16))

    @property
    def rated(self) -> NDArray[np.int64]:
        """Ratings of each row."""
        return np.diff(self.starts)

    @property
    def rows(self) -> NDArray[np.int64]:
        """Row of each entry."""
        return np.repeat(np.arange(len(self)), self.rated)

    def take(self, rows: NDArray[np.integer]) -> Sparse:
        """These rows, in this order."""
        lengths = self.rated[rows]
        starts = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(lengths, out=starts[1:])
        places = np.repeat(self.starts[:-1][rows] - starts[:-1], lengths) + np.arange(starts[-1])
        return Sparse(starts, self.items[places], self.values[places])

    def dense(self, items: NDArray[np.integer], width: int) -> NDArray[np.int16]:
        """A matrix with a column for each of these items (of `width` in all), 0 where there is no rating."""
        column = np.full(width, -1, np.int64)
        column[items] = np.arange(len(items))
        at = column[self.items]
        result = np.zeros((len(self), len(items)), np.int16)
        result[self.rows[at >= 0], at[at >= 0]] = self.values[at >= 0]
        return result


@dataclass(frozen=True, eq=False)
class Ratings:
    """Who rated what. Sensitive items are kept apart: they are never changed, and nobody is told apart by them."""

    schema: RatingSchema
    names: tuple[str, ...]
    """Items by code, in alphabetical order."""
    persons: NDArray[np.int64]
    """Code of each row's person."""
    open: Sparse
    sensitive: Sparse

    def __len__(self) -> int:
        return len(self.persons)

    @property
    def scale(self) -> Scale:
        """The ratings that can be given."""
        return self.schema.scale

    @property
    def count(self) -> int:
        """All ratings."""
        return len(self.open.values) + len(self.sensitive.values)

    @cached_property
    def sensitive_items(self) -> NDArray[np.int64]:
        """Codes of the sensitive items."""
        return np.flatnonzero(self.schema.is_sensitive(self.names))

    @cached_property
    def open_items(self) -> NDArray[np.int64]:
        """Codes of all other items."""
        return np.flatnonzero(~self.schema.is_sensitive(self.names))

    @cached_property
    def sensitive_matrix(self) -> NDArray[np.int16]:
        """Sensitive ratings with a column for each sensitive item, 0 where there is none."""
        return self.sensitive.dense(self.sensitive_items, len(self.names))

    def take(self, rows: NDArray[np.integer]) -> Ratings:
        """The ratings of these rows, in this order."""
        return Ratings(self.schema, self.names, self.persons[rows], self.open.take(rows), self.sensitive.take(rows))

    @classmethod
    def of(
        cls,
        schema: RatingSchema,
        names: Sequence[str],
        persons: NDArray[np.int64],
        rows: NDArray[np.int64],
        items: NDArray[np.integer],
        values: NDArray[np.integer],
    ) -> Ratings:
        """From entries that are ordered by row and item, each of them once."""
        hidden = schema.is_sensitive(names)[items] if len(items) else np.empty(0, bool)
        parts = [
            Sparse.of(rows[own], items[own].astype(np.int32), values[own].astype(np.int16), len(persons))
            for own in (~hidden, hidden)
        ]
        return cls(schema, tuple(names), persons, *parts)


def ratings_from_rows(
    rows: Sequence[Sequence[float | None]],
    scale: Scale,
    *,
    names: Sequence[str] | None = None,
    sensitive: Sequence[str] = (),
) -> Ratings:
    """Ratings from one sequence per person, None where an item was not rated; items are `i1`, `i2`, … by default.

    >>> some = ratings_from_rows([(6, 1, None, 6), (1, None, 5, 1)], Scale(1, 6), sensitive=["i4"])
    >>> some.open.items.tolist(), some.open.values.tolist(), some.sensitive.values.tolist()
    ([0, 1, 0, 2], [6, 1, 1, 5], [6, 1])
    """
    width = max((len(row) for row in rows), default=0)
    called = [f"i{number}" for number in range(1, width + 1)] if names is None else list(names)
    order = sorted(range(width), key=called.__getitem__)
    schema = RatingSchema("person", scale, sensitive=tuple(sensitive))
    entries = [
        (person, code, round((float(value) - scale.low) / scale.step) + 1)
        for person, row in enumerate(rows)
        for code, place in enumerate(order)
        if (value := row[place]) is not None
    ]
    columns = np.array(entries, np.int64).reshape(-1, 3)
    ordered = [called[place] for place in order]
    return Ratings.of(schema, ordered, np.arange(len(rows)), columns[:, 0], columns[:, 1], columns[:, 2])
