"""Inner loops of Mondrian: rows lie in contiguous segments, and a cut reorders the rows of its segment in place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import Category, Geometry, Schema, kernel, nth_smallest, range_loss


class Trees(NamedTuple):
    """The hierarchies of a schema's categories, one after the other."""

    node: NDArray[np.int64]
    """Where the nodes of each quasi-identifier begin; -1 for numbers."""
    leaf: NDArray[np.int64]
    """Where its leaves begin."""
    leaf_nodes: NDArray[np.int64]
    parent: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]


def trees(schema: Schema) -> Trees:
    """The arrays of this schema's hierarchies."""
    hierarchies = [item.hierarchy if isinstance(item, Category) else None for item in schema.quasi]
    known = [tree for tree in hierarchies if tree is not None]

    def begin(sizes: list[int]) -> NDArray[np.int64]:
        ends = np.cumsum([0, *sizes[:-1]])
        return np.array([end if tree else -1 for end, tree in zip(ends, hierarchies, strict=True)], np.int64)

    def joined(parts: list[NDArray[np.int32]]) -> NDArray[np.int64]:
        return np.concatenate([*parts, np.zeros(1, np.int32)]).astype(np.int64)

    return Trees(
        node=begin([len(tree.labels) if tree else 0 for tree in hierarchies]),
        leaf=begin([tree.size if tree else 0 for tree in hierarchies]),
        leaf_nodes=joined([tree.leaf_nodes for tree in known]),
        parent=joined([tree.parent for tree in known]),
        first=joined([tree.first for tree in known]),
        last=joined([tree.last for tree in known]),
    )


@kernel
def describe(
    space: Geometry, rows: NDArray[np.float64], start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int16]]:
    """Minimal box of each segment, and its quasi-identifiers in the order of their loss, the greatest first."""
    count, width = len(start), rows.shape[1]
    lo = np.empty((count, width))
    hi = np.empty((count, width))
    turn = np.empty((count, width), np.int16)
    key = np.empty(width)
    for s in range(count):
        lo[s] = rows[start[s]]
        hi[s] = rows[start[s]]
        for row in range(start[s] + 1, end[s]):
            for a in range(width):
                value = rows[row, a]
                lo[s, a] = min(lo[s, a], value)
                hi[s, a] = max(hi[s, a], value)
        for a in range(width):
            # A side without extent cannot be cut; it stands behind all others, whatever their weight.
            key[a] = space.weight[a] * range_loss(space, a, lo[s, a], hi[s, a]) if hi[s, a] > lo[s, a] else -1.0
            place = a
            while place > 0 and key[turn[s, place - 1]] < key[a]:
                turn[s, place] = turn[s, place - 1]
                place -= 1
            turn[s, place] = a
    return lo, hi, turn


@kernel
def propose(
    tree: Trees,
    rows: NDArray[np.float64],
    codes: NDArray[np.int64],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
    turn: NDArray[np.int16],
    tried: NDArray[np.int64],
    which: NDArray[np.int64],
    least: int,
    divide: bool,
    scratch: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Cut each segment of `which` at its next quasi-identifier; where the right part begins, -1 where no cut is left.

    Cuts that leave a part with fewer than `least` rows are passed over. With `divide`, rows of one value may go to both
    sides.
    """
    width = rows.shape[1]
    middle = np.full(len(which), -1, np.int64)
    for w in range(len(which)):
        s = which[w]
        size = end[s] - start[s]
        while tried[s] < width and middle[w] < 0:
            a = turn[s, tried[s]]
            tried[s] += 1
            if hi[s, a] <= lo[s, a] or size < 2 * least:
                tried[s] = width
                break
            for i in range(size):
                scratch[i] = rows[start[s] + i, a]
            median = nth_smallest(scratch[:size], size // 2)
            low, high = _subtree(tree, a, median, lo[s, a], hi[s, a])
            below, upto = 0, 0
            for i in range(size):
                below += scratch[i] < low
                upto += scratch[i] <= high
            left = below if upto == size or (below > 0 and size - below <= upto) else upto
            # Dividing an inner subtree would leave both sides as wide as before.
            if divide and (tree.node[a] < 0 or below == 0 or upto == size):
                left = max(left, least) if left == below else min(left, size - least)
            if min(left, size - left) >= least:
                _arrange(rows, codes, start[s], end[s], a, low, high)
                middle[w] = start[s] + left
    return middle


@kernel
def _subtree(tree: Trees, a: int, leaf: float, lo: float, hi: float) -> tuple[float, float]:
    """Values that stay together with `leaf`: itself, or its subtree just below the common ancestor of `lo … hi`."""
    base = tree.node[a]
    if base < 0:
        return leaf, leaf
    node = tree.leaf_nodes[tree.leaf[a] + np.int64(leaf)]
    above = tree.parent[base + node]
    while tree.first[base + above] > lo or tree.last[base + above] < hi:
        node = above
        above = tree.parent[base + node]
    return float(tree.first[base + node]), float(tree.last[base + node])


@kernel
def _arrange(
    rows: NDArray[np.float64], codes: NDArray[np.int64], start: int, end: int, a: int, low: float, high: float
) -> None:
    """Reorder a segment: values below `low`, then those up to `high`, then the rest."""
    left, row, right = start, start, end - 1
    while row <= right:
        value = rows[row, a]
        if value < low:
            _swap(rows, codes, left, row)
            left += 1
            row += 1
        elif value > high:
            _swap(rows, codes, row, right)
            right -= 1
        else:
            row += 1


@kernel
def _swap(rows: NDArray[np.float64], codes: NDArray[np.int64], one: int, other: int) -> None:
    if one == other:
        return
    for a in range(rows.shape[1]):
        rows[one, a], rows[other, a] = rows[other, a], rows[one, a]
    for c in range(codes.shape[1]):
        codes[one, c], codes[other, c] = codes[other, c], codes[one, c]


@kernel
def count_persons(
    codes: NDArray[np.int64],
    column: int,
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    seen: NDArray[np.int64],
    stamp: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct persons of each part `begin … end`, and the rows of the person who has most of them.

    `seen` has two places for every person: the part that met the person last (parts count on from `stamp`), and the
    rows met there.
    """
    persons = np.zeros(len(begin), np.int64)
    most = np.zeros(len(begin), np.int64)
    for part in range(len(begin)):
        for row in range(begin[part], end[part]):
            person = codes[row, column]
            if seen[person, 0] != stamp + part:
                seen[person, 0] = stamp + part
                seen[person, 1] = 0
                persons[part] += 1
            seen[person, 1] += 1
            most[part] = max(most[part], seen[person, 1])
    return persons, most
