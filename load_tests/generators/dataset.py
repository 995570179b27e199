"""What every generator returns, and the sampling that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from microdata import Attribute, Category, Number, Schema, Table

PERSON = "person"

Rows: TypeAlias = tuple[NDArray[np.int64], dict[str, NDArray[Any]]]
"""Person of each row, and by attribute name its codes: leaf indexes of categories, numbers as they are."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows of one schema: encoded by `table`, as raw values by `arrow`; both agree for the same size and seed."""

    name: str
    schema: Schema
    draw: Callable[[int, int], Rows]

    def table(self, rows: int, seed: int = 0) -> Table:
        """Encoded rows."""
        persons, codes = self.draw(rows, seed)
        quasi, sensitive = self.schema.quasi, self.schema.sensitive
        encoded = np.empty((rows, len(quasi)), np.float64)
        for column, attribute in enumerate(quasi):
            encoded[:, column] = codes[attribute.name]
        protected = np.empty((rows, len(sensitive)), np.int32)
        for column, attribute in enumerate(sensitive):
            protected[:, column] = _index(attribute, codes[attribute.name])
        return Table(self.schema, persons, encoded, protected)

    def arrow(self, rows: int, seed: int = 0) -> pa.Table:
        """Raw rows: labels, numbers, and the person as an integer."""
        persons, codes = self.draw(rows, seed)
        attributes = (*self.schema.quasi, *self.schema.sensitive)
        columns = {attribute.name: _raw(attribute, codes[attribute.name]) for attribute in attributes}
        return pa.table({PERSON: pa.array(persons), **columns})


def _index(attribute: Attribute, codes: NDArray[Any]) -> NDArray[Any]:
    if isinstance(attribute, Category) or attribute.grid is None:
        return codes
    return np.rint((codes - attribute.low) / attribute.grid)


def _raw(attribute: Attribute, codes: NDArray[Any]) -> pa.Array:
    if isinstance(attribute, Category):
        return pa.array(attribute.hierarchy.leaves).take(pa.array(codes.astype(np.int32)))
    return pa.array(codes.astype(np.int64 if attribute.integer else np.float64))


def choose(attributes: Mapping[str, Attribute], names: Sequence[str]) -> tuple[Attribute, ...]:
    """The attributes of these names, in this order."""
    unknown = [name for name in names if name not in attributes]
    if unknown:
        raise ValueError(f"no attribute {unknown[0]!r}; there are {', '.join(attributes)}")
    return tuple(attributes[name] for name in names)


def integer(name: str, low: int, high: int) -> Number:
    """A whole number with this domain."""
    return Number(name, low, high, integer=True)


class Distribution:
    """Discrete distributions over one list of values, one for each cell of what they are conditional on."""

    def __init__(self, weights: ArrayLike) -> None:
        counts = np.atleast_2d(np.asarray(weights, np.float64))
        cumulative = np.cumsum(counts / counts.sum(axis=1, keepdims=True), axis=1)
        cumulative[:, -1] = 1.0
        self._values = counts.shape[1]
        # Cell c occupies c … c + 1, so one search over all cells draws for every row at once.
        self._flat = (cumulative + np.arange(len(counts))[:, None]).ravel()

    def draw(self, random: np.random.Generator, cells: NDArray[np.integer] | None, rows: int) -> NDArray[np.int64]:
        """Index of a value for each row, drawn from the distribution of its cell."""
        offsets = np.zeros(rows, np.int64) if cells is None else cells.astype(np.int64)
        found = np.searchsorted(self._flat, offsets + random.random(rows), side="right")
        # The sum may round up to the next cell's beginning.
        return np.minimum(found - offsets * self._values, self._values - 1)


def population(
    draw_persons: Callable[[np.random.Generator, int], dict[str, NDArray[Any]]], rows_per_person: float
) -> Callable[[int, int], Rows]:
    """Rows about persons who keep their values: one row each, or drawn from `rows / rows_per_person` persons."""
    if rows_per_person < 1:
        raise ValueError(f"rows_per_person must be at least 1, got {rows_per_person}")

    def draw(rows: int, seed: int) -> Rows:
        random = np.random.default_rng(seed)
        if rows_per_person == 1:
            return np.arange(rows, dtype=np.int64), draw_persons(random, rows)
        count = max(1, round(rows / rows_per_person))
        persons = random.integers(0, count, rows)
        codes = draw_persons(random, count)
        return persons, {name: column[persons] for name, column in codes.items()}

    return draw
