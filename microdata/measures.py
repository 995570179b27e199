"""More measures of what a publication costs, as papers use them: cells that are left, LM, errors of values and ranks.

Whoever reads a publication takes a number for the middle of its interval; errors are those of that guess.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from microdata.boxes import Boxes
from microdata.geometry import geometry
from microdata.loss import attribute_loss, class_loss
from microdata.schema import Category, Number


def hidden_cells(boxes: Boxes) -> NDArray[np.bool_]:
    """Where boxes, as they are published, tell nothing at all: boxes × quasi-identifiers."""
    published, space = boxes.widened(), geometry(boxes.schema)
    return (published.lo <= space.low) & (published.hi >= space.high) & (space.high > space.low)


def leaf_loss(boxes: Boxes) -> NDArray[np.float64]:
    """LM: (P - 1) / (N - 1), with P of the N values of the domain below what is published; boxes × quasi-identifiers.

    For numbers without a grid it is the share of the domain.
    """
    published = boxes.widened()
    loss = attribute_loss(boxes)
    for column, attribute in enumerate(boxes.schema.quasi):
        if isinstance(attribute, Number) and attribute.grid is None:
            continue
        unit = 1.0 if isinstance(attribute, Category) else attribute.grid or 1.0
        others = (published.hi[:, column] - published.lo[:, column]) / unit
        # The domain may end between two values of its grid.
        loss[:, column] = np.minimum(others / max((attribute.size or 1) - 1, 1), 1.0)
    return loss


def weighted_discernibility(boxes: Boxes, sizes: NDArray[np.integer], suppressed: int = 0) -> float:
    """Rows that each row cannot be told from, weighted by the loss of its class, over the most that it can be.

    0 where every value is published as it was, 1 where nothing is; a suppressed row is hidden among all.
    """
    rows = int(sizes.sum()) + suppressed
    if not rows:
        return 0.0
    return float((sizes.astype(np.float64) ** 2 @ class_loss(boxes) + suppressed * rows) / float(rows) ** 2)


def normalized_error(before: ArrayLike, after: ArrayLike) -> float:
    """Squared differences over those from the mean: 0 where nothing changed, 1 where only the mean is left.

    >>> round(normalized_error([1, 12, 4, 7, 3], [3, 7, 3, 7, 3]), 4)
    0.4098
    """
    one, other = np.asarray(before, np.float64), np.asarray(after, np.float64)
    most = float(((one - one.mean()) ** 2).sum()) if len(one) else 0.0
    return float(((one - other) ** 2).sum()) / most if most > 0 else 0.0


def rank_difference(before: ArrayLike, after: ArrayLike) -> int:
    """How far rows move in rank when each value is replaced by another, summed.

    Ranks ascend, equal values have neighbouring ones; what lies between two values moves to the nearer of their ranks.

    >>> rank_difference([1, 12, 4, 7, 3], [3, 7, 3, 7, 3])
    3
    """
    one, other = np.asarray(before, np.float64), np.asarray(after, np.float64)
    ordered = np.sort(one)
    own = np.empty(len(one), np.int64)
    own[np.argsort(one, kind="stable")] = np.arange(len(one))
    first, last = np.searchsorted(ordered, other), np.searchsorted(ordered, other, side="right") - 1
    return int(np.abs(own - np.clip(own, np.minimum(first, last), np.maximum(first, last))).sum())
