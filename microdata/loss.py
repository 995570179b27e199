"""What a generalization costs: the General Loss Metric and three measures that people compare it with.

The loss of a number is the width of its interval over the width of its domain. The loss of a category is the share of
the hierarchy's leaves below the published node, and 0 for a leaf. A class's loss is their weighted mean, a table's
loss the mean over its rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata.boxes import Boxes
from microdata.schema import Category


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


def _between(ordered: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.searchsorted(ordered, high, side="right") - np.searchsorted(ordered, low, side="left")
