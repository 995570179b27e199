"""Loss inside kernels: the quasi-identifiers of a schema as flat arrays, and the loss of a box side by lookup.

`range_loss` and `box_loss` agree with `microdata.loss` to the last bit that matters (a test says so); kernels call them
millions of times, so they touch nothing but arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata.compile import kernel
from microdata.schema import Category, Number, Schema


class Geometry(NamedTuple):
    """The quasi-identifiers of a schema, one entry each unless said otherwise."""

    low: NDArray[np.float64]
    """Least value of the domain (categories: 0)."""
    high: NDArray[np.float64]
    """Greatest value of the domain (categories: the last leaf)."""
    scale: NDArray[np.float64]
    """1 / (high - low), 0 for a domain of one value: differences times this lie in 0 … 1."""
    step: NDArray[np.float64]
    """Grid of published intervals, 0 for none."""
    weight: NDArray[np.float64]
    """Weight in the loss; they sum to 1."""
    start: NDArray[np.int64]
    """Where the attribute's table begins in `table`; -1 for numbers."""
    leaves: NDArray[np.int64]
    """Number of leaves; 0 for numbers."""
    table: NDArray[np.float64]
    """All categories: row r, column i holds the loss of the lowest common ancestor of leaves i … i + 2**r."""
    level: NDArray[np.int8]
    """Row to use for each distance between two leaves: its binary logarithm, rounded down."""
    decimals: NDArray[np.float64]
    """Ten to the number of digits behind the point of values on the grid, 0 for grids that are not decimal."""


def geometry(schema: Schema) -> Geometry:
    """The arrays of this schema's quasi-identifiers."""
    low, high, step, start, leaves, tables = [], [], [], [], [], []
    offset = 0
    for attribute in schema.quasi:
        if isinstance(attribute, Category):
            tree = attribute.hierarchy
            losses = tree.leaf_count[tree.neighbours] / tree.size
            low.append(0.0)
            high.append(tree.size - 1.0)
            step.append(0.0)
            start.append(offset)
            leaves.append(tree.size)
            tables.append(losses.ravel())
            offset += losses.size
        else:
            low.append(float(attribute.low))
            high.append(float(attribute.high))
            step.append(float(attribute.step or 0.0))
            start.append(-1)
            leaves.append(0)
    width = np.array(high) - np.array(low)
    levels = np.frexp(np.arange(max(leaves) + 1, dtype=np.float64))[1] - 1
    return Geometry(
        low=np.array(low),
        high=np.array(high),
        scale=np.divide(1.0, width, out=np.zeros_like(width), where=width > 0),
        step=np.array(step),
        weight=np.array(schema.weights),
        start=np.array(start, np.int64),
        leaves=np.array(leaves, np.int64),
        table=np.concatenate(tables) if tables else np.zeros(1),
        level=np.maximum(levels, 0).astype(np.int8),
        decimals=np.array([attribute.decimals if isinstance(attribute, Number) else 0.0 for attribute in schema.quasi]),
    )


@kernel
def _on_grid(space: Geometry, attribute: int, index: float) -> float:
    exact = space.low[attribute] + space.step[attribute] * index
    decimals = space.decimals[attribute]
    return np.rint(exact * decimals) / decimals if decimals > 0.0 else exact


@kernel
def range_loss(space: Geometry, attribute: int, lo: float, hi: float) -> float:
    """Loss of publishing `lo … hi` in one quasi-identifier."""
    if hi <= lo and space.step[attribute] == 0.0:
        return 0.0
    if space.start[attribute] >= 0:
        span = np.int64(hi - lo)
        row = np.int64(space.level[span])
        gaps = space.leaves[attribute] - 1
        base = space.start[attribute] + row * gaps
        left = space.table[base + np.int64(lo)]
        right = space.table[base + np.int64(hi) - (np.int64(1) << row)]
        return max(left, right)
    if space.step[attribute] > 0.0:
        lo, hi = _to_step(space, attribute, lo, hi)
    return (hi - lo) * space.scale[attribute]


@kernel
def _to_step(space: Geometry, attribute: int, lo: float, hi: float) -> tuple[float, float]:
    """The interval out to the declared step, but not beyond the domain."""
    index = np.rint((lo - space.low[attribute]) / space.step[attribute])
    below = _on_grid(space, attribute, index)
    below = _on_grid(space, attribute, index - 1.0) if below > lo else below
    index = np.rint((hi - space.low[attribute]) / space.step[attribute])
    above = _on_grid(space, attribute, index)
    above = _on_grid(space, attribute, index + 1.0) if above < hi else above
    return below, min(above, space.high[attribute])


@kernel
def widened_range(space: Geometry, attribute: int, lo: float, hi: float) -> tuple[float, float]:
    """What is published for `lo … hi`: out to the step, or to all leaves below the lowest common ancestor."""
    if space.step[attribute] > 0.0:
        return _to_step(space, attribute, lo, hi)
    if space.start[attribute] < 0 or lo == hi:
        return lo, hi
    loss = range_loss(space, attribute, lo, hi)
    below = _last_leaf(space, attribute, hi, lo, -1.0, loss)
    above = _last_leaf(space, attribute, lo, hi, space.high[attribute] + 1.0, loss)
    return below, above


@kernel
def _last_leaf(space: Geometry, attribute: int, fixed: float, inside: float, outside: float, loss: float) -> float:
    """The leaf farthest from `fixed`, between `inside` and `outside`, whose range from there has the same loss."""
    while abs(outside - inside) > 1.0:
        middle = np.floor((inside + outside) / 2.0)
        if range_loss(space, attribute, min(fixed, middle), max(fixed, middle)) == loss:
            inside = middle
        else:
            outside = middle
    return inside


@kernel
def box_loss(space: Geometry, lo: NDArray[np.float64], hi: NDArray[np.float64]) -> float:
    """Loss of publishing the box `lo … hi`: the weighted mean over the quasi-identifiers."""
    total = 0.0
    for attribute in range(lo.shape[0]):
        total += space.weight[attribute] * range_loss(space, attribute, lo[attribute], hi[attribute])
    return total
