"""What a generalization costs: the General Loss Metric and measures that people compare it with.

The loss of a number is the width of its interval over the width of its domain. The loss of a category is the share of
the hierarchy's leaves below the published node, and 0 for a leaf. A class's loss is their weighted mean, a table's
loss the mean over its rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata.boxes import Boxes
from microdata.schema import Category, Schema


def attribute_loss(boxes: Boxes) -> NDArray[np.float64]:
    """Loss of every box (as it is published) in every quasi-identifier: boxes × quasi-identifiers."""
    published = boxes.widened()
    loss = np.zeros(published.lo.shape)
    for column, attribute in enumerate(boxes.schema.quasi):
        low, high = published.lo[:, column], published.hi[:, column]
        if isinstance(attribute, Category):
            leaves = high - low + 1
            loss[:, column] = np.where(leaves == 1, 0.0, leaves / attribute.hierarchy.size)
        elif attribute.high > attribute.low:
            loss[:, column] = (high - low) / (attribute.high - attribute.low)
    return loss


def class_loss(boxes: Boxes) -> NDArray[np.float64]:
    """Loss of every box: the weighted mean over the quasi-identifiers."""
    return attribute_loss(boxes) @ np.asarray(boxes.schema.weights)


def table_loss(boxes: Boxes, sizes: NDArray[np.integer]) -> float:
    """Mean loss over the rows of classes with these sizes; 0 for no rows."""
    rows = int(sizes.sum())
    return float(class_loss(boxes) @ sizes / rows) if rows else 0.0


def discernibility(sizes: NDArray[np.integer], suppressed: int = 0) -> int:
    """Rows that each row cannot be told from, summed; a suppressed row counts as hidden among all rows."""
    rows = int(sizes.sum()) + suppressed
    return int((sizes.astype(object) ** 2).sum()) + suppressed * rows


def average_class_size(sizes: NDArray[np.integer], k: int) -> float:
    """C_avg: mean class size in units of k; 1 is the best that k-anonymity allows."""
    return float(sizes.sum() / len(sizes) / k) if len(sizes) else 0.0


def entropy_loss(quasi: NDArray[np.float64], classes: NDArray[np.integer], boxes: Boxes) -> NDArray[np.float64]:
    """Non-uniform entropy per quasi-identifier, from 0 (as it was) to 1 (nothing known).

    Per row, the bits needed to tell its value from the others that its published interval could stand for, weighted by
    how often they occur in the table; divided by what full generalization would cost.
    """
    published = boxes.widened()
    kept = classes >= 0
    rows, groups = quasi[kept], classes[kept]
    result = np.zeros(quasi.shape[1])
    if not len(rows):
        return result
    for column in range(quasi.shape[1]):
        ordered = np.sort(rows[:, column])
        values = rows[:, column]
        own = _between(ordered, values, values)
        box = _between(ordered, published.lo[groups, column], published.hi[groups, column])
        most = np.log2(len(rows) / own).sum()
        result[column] = np.log2(box / own).sum() / most if most > 0 else 0.0
    return result


class SquaredError(NamedTuple):
    """SSE / SST, from 0 (nothing lost) to 1 (every class is shown alike)."""

    attributes: tuple[float | None, ...]
    """Of each quasi-identifier; None for those that have no order, and so no mean."""
    total: float | None
    """Over all of them, each divided by its standard deviation; None where none has an order."""


class Squares:
    """What showing means costs, part by part: classes are whole in the part that they are in."""

    def __init__(self, schema: Schema) -> None:
        self._ordered = np.array([attribute.ordered for attribute in schema.quasi])
        width = len(self._ordered)
        self._rows, self._mean, self._between, self._within = 0, np.zeros(width), np.zeros(width), np.zeros(width)
        self._least, self._greatest = np.full(width, np.inf), np.full(width, -np.inf)

    def add(self, quasi: NDArray[np.float64], classes: NDArray[np.integer]) -> None:
        """Some more rows; those of class -1 are left out."""
        own = classes >= 0
        rows, groups = quasi[own], classes[own]
        if not len(rows):
            return
        sizes = np.maximum(np.bincount(groups), 1)
        for column, values in enumerate(rows.T):
            middle = values.mean()
            around = values - middle
            inner = around - (np.bincount(groups, around) / sizes)[groups]
            self._within[column] += inner @ inner
            # The squares around the mean of all rows so far and these, from those around the mean of either part.
            both = self._rows + len(rows)
            apart = middle - self._mean[column]
            self._between[column] += around @ around + apart**2 * self._rows * len(rows) / both
            self._mean[column] += apart * len(rows) / both
        self._rows += len(rows)
        self._least = np.minimum(self._least, rows.min(axis=0))
        self._greatest = np.maximum(self._greatest, rows.max(axis=0))

    def error(self) -> SquaredError:
        """SSE / SST of all that was added. An attribute that is the same everywhere loses nothing."""
        varied = self._greatest > self._least
        shares = np.divide(self._within, self._between, out=np.zeros_like(self._within), where=varied)
        kept = self._ordered & varied
        return SquaredError(
            tuple(min(float(share), 1.0) if own else None for share, own in zip(shares, self._ordered, strict=True)),
            float(np.minimum(shares[kept], 1.0).sum()) / max(int(kept.sum()), 1) if self._ordered.any() else None,
        )


def squared_error(schema: Schema, quasi: NDArray[np.float64], classes: NDArray[np.integer]) -> SquaredError:
    """What showing the mean of each class costs: the squares of what it is away from the rows, over their variance.

    An ordered category counts by the places of its leaves.
    """
    squares = Squares(schema)
    squares.add(quasi, classes)
    return squares.error()


def _between(ordered: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.searchsorted(ordered, high, side="right") - np.searchsorted(ordered, low, side="left")
