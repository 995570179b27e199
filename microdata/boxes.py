"""Generalizations: one box per class, an interval `lo … hi` per quasi-identifier.

A box around the rows of a class is minimal. What is published is its `widened` form: numbers reach out to the declared
step, categories to all leaves below the lowest common ancestor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microdata.schema import Category, Schema


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of one schema: `lo` and `hi` are boxes × quasi-identifiers, both ends included."""

    schema: Schema
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.lo)

    @classmethod
    def around(cls, schema: Schema, quasi: NDArray[np.float64], classes: NDArray[np.integer], count: int) -> Boxes:
        """Minimal box of each class 0 … count - 1; rows of class -1 are left out. Every class needs a row."""
        kept = classes >= 0
        if not kept.all():
            quasi, classes = quasi[kept], classes[kept]
        order = np.argsort(classes, kind="stable")
        starts = np.searchsorted(classes[order], np.arange(count))
        if count == 0:
            empty = np.empty((0, quasi.shape[1]))
            return cls(schema, empty, empty.copy())
        ordered = quasi[order]
        return cls(schema, np.minimum.reduceat(ordered, starts, axis=0), np.maximum.reduceat(ordered, starts, axis=0))

    def widened(self) -> Boxes:
        """The published form of these boxes."""
        lo, hi = self.lo.copy(), self.hi.copy()
        for column, attribute in enumerate(self.schema.quasi):
            low, high = lo[:, column], hi[:, column]
            if isinstance(attribute, Category):
                node = attribute.hierarchy.lca(low, high)
                low[:], high[:] = attribute.hierarchy.first[node], attribute.hierarchy.last[node]
            elif attribute.step is not None:
                low[:], high[:] = attribute.floor(low), attribute.ceil(high)
        return Boxes(self.schema, lo, hi)

    def cover(self, quasi: NDArray[np.float64], classes: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Whether each row lies inside the box of its class."""
        inside = np.ones(len(quasi), bool)
        for column in range(quasi.shape[1]):
            values = quasi[:, column]
            inside &= (self.lo[classes, column] <= values) & (values <= self.hi[classes, column])
        return inside
