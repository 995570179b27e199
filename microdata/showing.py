"""How a class is shown: as the box around its rows, or as their mean.

Forming classes and showing them are two things. A box says where all rows of a class lie. A mean says where their
middle is: the mean of a number, rounded to its step (whole where the number is); the median leaf of an ordered
category; of another category the lowest common node, as in a box.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from microdata.boxes import Boxes
from microdata.schema import Category, Number, Schema

Show: TypeAlias = Literal["interval", "mean"]


def means(schema: Schema, quasi: NDArray[np.float64], classes: NDArray[np.integer], count: int) -> Boxes:
    """What stands for each class 0 … count - 1: a point where an attribute has an order, else the side of a box.

    Rows of class -1 are left out. Every class needs a row.

    >>> from microdata import Category, Hierarchy
    >>> rooms = Category("rooms", Hierarchy.flat(["one", "two", "many"]), ordered=True)
    >>> schema = Schema("id", (Number("age", 0, 120, integer=True), rooms))
    >>> shown = means(schema, np.array([[20.0, 0], [30.0, 1], [41.0, 1]]), np.zeros(3, np.int64), 1)
    >>> shown.lo.tolist(), shown.hi.tolist()
    ([[30.0, 1.0]], [[30.0, 1.0]])
    """
    own = classes >= 0
    if not own.all():
        quasi, classes = quasi[own], classes[own]
    around = Boxes.around(schema, quasi, classes, count)
    shown = around.widened()
    sizes = np.bincount(classes, minlength=count)
    for column, attribute in enumerate(schema.quasi):
        if not attribute.ordered:
            continue
        values = quasi[:, column]
        if isinstance(attribute, Category):
            points = _medians(values, classes, sizes)
        else:
            points = _means(attribute, values, classes, sizes, around.lo[:, column], around.hi[:, column])
        shown.lo[:, column] = shown.hi[:, column] = points
    return shown


def _means(
    attribute: Number,
    values: NDArray[np.float64],
    classes: NDArray[np.integer],
    sizes: NDArray[np.int64],
    least: NDArray[np.float64],
    greatest: NDArray[np.float64],
) -> NDArray[np.float64]:
    # Offsets are exact where sums of large numbers would not be; rounding must not lead out of the class.
    exact = attribute.low + np.bincount(classes, values - attribute.low, len(sizes)) / sizes
    return attribute.nearest(np.clip(exact, least, greatest))


def _medians(
    values: NDArray[np.float64], classes: NDArray[np.integer], sizes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The value in the middle of each class, the lower one of two."""
    ordered = values[np.lexsort((values, classes))]
    return ordered[np.cumsum(sizes) - sizes + (sizes - 1) // 2]
