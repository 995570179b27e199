"""Kernels of the dichotomy: the tests that a split must pass, and the walk through the tree of halves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import kernel
from static_algos._distance_kernels import hierarchy_work
from static_algos.ratios import product_at_most

CATEGORY, NUMBER, CAPS = 0, 1, 2


class SplitTest(NamedTuple):
    """When a class that draws a given number of rows from each bucket is safe, whichever rows they are.

    CATEGORY and NUMBER: its distance to the buckets' own distribution, plus the bound inside the buckets, is at most
    t. CAPS: no bucket's share exceeds its cap. Distances are in units of 1 / (rows of the table · `unit`).
    """

    kind: int
    sizes: NDArray[np.int64]
    """Rows of each bucket."""
    total: int
    """Rows of all buckets."""
    unit: int
    """Height of the hierarchy, or the greatest rank of the number's values."""
    bound: int
    """U: the most that moving earth inside the buckets can cost."""
    t_over: int
    t_under: int
    """The threshold t as a fraction."""
    parent: NDArray[np.int64]
    weight: NDArray[np.int64]
    """CATEGORY: parent and height of each node of the hierarchy above the buckets, in pre-order."""
    place: NDArray[np.int64]
    """CATEGORY: node of each bucket."""
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    """NUMBER: rank of the least and of the greatest value of each bucket."""
    cap_over: NDArray[np.int64]
    cap_under: NDArray[np.int64]
    """CAPS: largest share of each bucket as a fraction."""


@kernel
def allowed(test: SplitTest, draws: NDArray[np.int64], rows: int) -> bool:
    """Whether every class that draws these numbers of rows (in all: `rows`) is safe."""
    if test.kind == CAPS:
        for bucket in range(draws.shape[0]):
            if not product_at_most(draws[bucket], test.cap_under[bucket], test.cap_over[bucket], rows):
                return False
        return True
    moved = _category_distance(test, draws, rows) if test.kind == CATEGORY else _number_distance(test, draws, rows)
    return product_at_most(moved + test.bound * rows, test.t_under, test.t_over, rows * test.total * test.unit)


@kernel
def _category_distance(test: SplitTest, draws: NDArray[np.int64], rows: int) -> int:
    """Earth moved between buckets, which are nodes of the hierarchy."""
    extra = np.zeros(test.parent.shape[0], np.int64)
    for bucket in range(draws.shape[0]):
        extra[test.place[bucket]] = draws[bucket] * test.total - test.sizes[bucket] * rows
    return hierarchy_work(test.parent, test.weight, extra, np.zeros_like(extra))


@kernel
def _number_distance(test: SplitTest, draws: NDArray[np.int64], rows: int) -> int:
    """Earth moved between buckets: the distance matrix is Monge, so matching in order is optimal."""
    buckets = draws.shape[0]
    moved = 0
    lacking, lack = -1, 0
    for giver in range(buckets):
        spare = draws[giver] * test.total - test.sizes[giver] * rows
        while spare > 0:
            while lack == 0:
                lacking += 1
                lack = max(test.sizes[lacking] * rows - draws[lacking] * test.total, 0)
            flow = min(spare, lack)
            reach = max(test.high[giver], test.high[lacking]) - min(test.low[giver], test.low[lacking])
            moved += flow * reach
            spare -= flow
            lack -= flow
    return moved


@kernel
def next_leaves(
    test: SplitTest, least: int, stack: NDArray[np.int64], height: NDArray[np.int64], leaves: NDArray[np.int64]
) -> int:
    """Walk on through the tree of halves from `stack`, left to right; fill `leaves` and return how many there are.

    `stack` holds the nodes still to visit (`height[0]` of them). A node is split when both halves draw at least
    `least` rows (1 or more, or the walk would not end) and are allowed.
    """
    buckets = stack.shape[1]
    found = 0
    while height[0] > 0 and found < leaves.shape[0]:
        top = height[0] - 1
        more, less = 0, 0
        for bucket in range(buckets):
            half = stack[top, bucket] // 2
            stack[top + 1, bucket] = stack[top, bucket] - half
            stack[top + 2, bucket] = half
            more += stack[top + 1, bucket]
            less += half
        if less >= least and allowed(test, stack[top + 1], more) and allowed(test, stack[top + 2], less):
            stack[top] = stack[top + 2]
            height[0] += 1
        else:
            leaves[found] = stack[top]
            found += 1
            height[0] -= 1
    return found
