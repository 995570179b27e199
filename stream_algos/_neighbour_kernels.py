"""Held rows in blocks of neighbours, column by column, so that the nearest ones are found without looking at all.

Distances are whole numbers of units in 32-bit floats: exact as long as they stay below 2**24, and quick because eight
or more of them fit into a register. A number's column holds its value in units; a category's holds the leaf, and what
it costs to leave each of the leaf's ancestors is looked up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import Category, Geometry, Schema, part
from stream_algos._held_kernels import AFTER, CLUSTER, NONE, TAIL, TOP, Rows, copy
from stream_algos._split_kernels import least

UNIT = 2.0**22
"""Units of a loss of 1."""

BLOCK = 512
"""Rows that a block has room for."""

BINS = 256
"""Bins of a number's domain, for how rare its values are."""

RECENT = 1024
"""Latest rows that rarity is measured against; it is measured anew after as many."""

LO, HI = range(2)
FIRST, LAST, LOSS = range(3)
"""Last index of `Blocks.ancestors`."""


class Blocks(NamedTuple):
    """The blocks; `Rows.slots` tells the block (CLUSTER) and the place in it (AFTER) of each held row."""

    columns: NDArray[np.float32]
    """Block, quasi-identifier, place; behind the quasi-identifiers the row's rarity."""
    slots: NDArray[np.int32]
    """Block, place: the row's slot."""
    boxes: NDArray[np.float32]
    """End, quasi-identifier (or rarity), block: every row of the block is inside; not always minimal."""
    counts: NDArray[np.int64]
    ancestors: NDArray[np.float32]
    """Leaves of all categories, level: first and last leaf below the ancestor, and its loss in units. Level 0 is the
    leaf itself; above the root the root is repeated."""
    offsets: NDArray[np.int64]
    """Per quasi-identifier: where its leaves begin in `ancestors`, -1 for numbers."""
    rarity: NDArray[np.float32]
    """Mean distance in units from the latest rows: quasi-identifier, leaf or bin."""
    row: NDArray[np.float32]
    """Scratch space: the row that is put into a block, as the columns hold it."""
    growth: NDArray[np.float32]
    """Scratch space: how much each block would grow by it."""


def new_blocks(schema: Schema, capacity: int) -> Blocks:
    """No rows yet; blocks for a ring of this capacity, with some to spare."""
    width, blocks = len(schema.quasi), 4 * capacity // BLOCK + 2
    ancestors, offsets = _ancestors(schema)
    bins = max(BINS, *(attribute.size for attribute in schema.quasi if isinstance(attribute, Category)), 0)
    return Blocks(
        columns=np.zeros((blocks, width + 1, BLOCK), np.float32),
        slots=np.zeros((blocks, BLOCK), np.int32),
        boxes=np.zeros((2, width + 1, blocks), np.float32),
        counts=np.zeros(blocks, np.int64),
        ancestors=ancestors,
        offsets=offsets,
        rarity=np.zeros((width, bins), np.float32),
        row=np.zeros(width + 1, np.float32),
        growth=np.zeros(blocks, np.float32),
    )


def _ancestors(schema: Schema) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The tables `Blocks.ancestors` and `Blocks.offsets`."""
    trees = [attribute.hierarchy if isinstance(attribute, Category) else None for attribute in schema.quasi]
    height = max((int(tree.height[0]) for tree in trees if tree), default=0)
    tables, offsets, offset = [np.zeros((1, height + 1, 3), np.float32)], [], 1
    for tree, weight in zip(trees, schema.weights, strict=True):
        offsets.append(offset if tree else NONE)
        if tree:
            nodes = np.stack([tree.level_nodes(level) for level in range(height + 1)], axis=1)
            loss = np.where(tree.leaf_count[nodes] > 1, tree.leaf_count[nodes] / tree.size, 0.0)
            units = np.rint(loss * weight * UNIT)
            tables.append(np.stack([tree.first[nodes], tree.last[nodes], units], axis=2).astype(np.float32))
            offset += tree.size
    return np.concatenate(tables), np.array(offsets, np.int64)


@part
def unit_value(space: Geometry, blocks: Blocks, attribute: int, value: float) -> np.float32:
    """A value as its column holds it."""
    if blocks.offsets[attribute] >= 0:
        return np.float32(value)
    return np.float32(np.rint((value - space.low[attribute]) * space.scale[attribute] * space.weight[attribute] * UNIT))


@part
def add_costs(
    blocks: Blocks, attribute: int, value: np.float32, column: NDArray[np.float32], scores: NDArray[np.float32]
) -> None:
    """Add what it costs to extend a side that is one value to each value of a column."""
    if blocks.offsets[attribute] < 0:
        for index in range(len(column)):
            scores[index] += abs(column[index] - value)
        return
    path = blocks.ancestors[blocks.offsets[attribute] + int(value)]
    for level in range(len(path) - 1):
        _pay(path, level, np.float32(1.0), column, scores)


@part
def lower_costs(
    blocks: Blocks,
    attribute: int,
    lo: np.float32,
    hi: np.float32,
    wider_lo: np.float32,
    wider_hi: np.float32,
    column: NDArray[np.float32],
    scores: NDArray[np.float32],
) -> None:
    """The side `lo … hi` has become wider: take off what no longer has to be paid for each value of a column."""
    zero = np.float32(0.0)
    if blocks.offsets[attribute] < 0:
        left, right = lo - wider_lo, wider_hi - hi
        for index in range(len(column)):
            value = column[index]
            scores[index] -= min(max(lo - value, zero), left) + min(max(value - hi, zero), right)
        return
    path = blocks.ancestors[blocks.offsets[attribute] + int(lo)]
    level = 0
    while path[level, LAST] < hi:
        level += 1
    while path[level, FIRST] > wider_lo or path[level, LAST] < wider_hi:
        _pay(path, level, np.float32(-1.0), column, scores)
        level += 1


@part
def _pay(
    path: NDArray[np.float32], level: int, sign: np.float32, column: NDArray[np.float32], scores: NDArray[np.float32]
) -> None:
    """Let every value outside this ancestor pay for climbing to the next."""
    first, last, zero = path[level, FIRST], path[level, LAST], np.float32(0.0)
    price = sign * (path[level + 1, LOSS] - path[level, LOSS])
    if price != zero:
        for index in range(len(column)):
            scores[index] += price if column[index] < first or column[index] > last else zero


@part
def measure_rarity(rows: Rows, blocks: Blocks, space: Geometry) -> None:
    """Measure anew how far each value is, on average, from those of the latest rows."""
    recent = min(RECENT, rows.meta[TAIL])
    for attribute in range(rows.quasi.shape[1]):
        category = blocks.offsets[attribute] >= 0
        size = int(space.leaves[attribute]) if category else BINS
        # How many of the latest rows are in the first n bins.
        before = np.zeros(size + 1)
        for number in range(rows.meta[TAIL] - recent, rows.meta[TAIL]):
            value = rows.quasi[number & (len(rows.slots) - 1), attribute]
            before[1 + _bin(space, category, attribute, value)] += 1.0
        for index in range(size):
            before[index + 1] += before[index]
        if category:
            _category_rarity(blocks, attribute, before)
        else:
            _number_rarity(blocks, space, attribute, before)


@part
def _category_rarity(blocks: Blocks, attribute: int, before: NDArray[np.float64]) -> None:
    recent = before[-1]
    for leaf in range(len(before) - 1):
        path, total = blocks.ancestors[blocks.offsets[attribute] + leaf], 0.0
        for level in range(1, len(path)):
            inside = before[int(path[level - 1, LAST]) + 1] - before[int(path[level - 1, FIRST])]
            total += (path[level, LOSS] - path[level - 1, LOSS]) * (recent - inside)
        blocks.rarity[attribute, leaf] = np.rint(total / recent)


@part
def _number_rarity(blocks: Blocks, space: Geometry, attribute: int, before: NDArray[np.float64]) -> None:
    size, recent = len(before) - 1, before[-1]
    width = UNIT * space.weight[attribute] / (size - 1)
    # Sum of the distances, in bins, to the rows below and above; from bin to bin all rows come nearer or go farther.
    total = 0.0
    for index in range(1, size):
        total += recent - before[index]
    for index in range(size):
        blocks.rarity[attribute, index] = np.rint(total * width / recent)
        total += before[index + 1] - (recent - before[index + 1])


@part
def _bin(space: Geometry, category: bool, attribute: int, value: float) -> int:
    if category:
        return int(value)
    return int((value - space.low[attribute]) * space.scale[attribute] * (BINS - 1) + 0.5)


@part
def insert(rows: Rows, blocks: Blocks, space: Geometry, zeal: float, slot: int) -> None:
    """Put a held row into the block that it enlarges least; `zeal` says how much its rarity counts."""
    width, row, rare = rows.quasi.shape[1], blocks.row, 0.0
    for attribute in range(width):
        value = rows.quasi[slot, attribute]
        row[attribute] = unit_value(space, blocks, attribute, value)
        rare += blocks.rarity[attribute, _bin(space, blocks.offsets[attribute] >= 0, attribute, value)]
    row[width] = np.rint(zeal * rare)
    block = _nearest_block(rows, blocks, space, row)
    if blocks.counts[block] == BLOCK:
        _divide(rows, blocks, space, block)
        block = _nearest_block(rows, blocks, space, row)
    if blocks.counts[block] == BLOCK:
        # No block was free to divide it: any block that has room will do.
        block = int(np.argmin(blocks.counts))
    _append(rows, blocks, block, slot, row)


@part
def _append(rows: Rows, blocks: Blocks, block: int, slot: int, row: NDArray[np.float32]) -> None:
    place, boxes = blocks.counts[block], blocks.boxes
    for column in range(len(row)):
        blocks.columns[block, column, place] = row[column]
        boxes[LO, column, block] = min(boxes[LO, column, block], row[column]) if place else row[column]
        boxes[HI, column, block] = max(boxes[HI, column, block], row[column]) if place else row[column]
    blocks.slots[block, place] = slot
    blocks.counts[block] += 1
    rows.meta[TOP] = max(rows.meta[TOP], block + 1)
    rows.slots[slot, CLUSTER] = block
    rows.slots[slot, AFTER] = place


@part
def remove(rows: Rows, blocks: Blocks, slot: int) -> None:
    """Take a row out of its block; the block's last row takes its place."""
    block, place = rows.slots[slot, CLUSTER], rows.slots[slot, AFTER]
    last = blocks.counts[block] - 1
    for column in range(blocks.columns.shape[1]):
        blocks.columns[block, column, place] = blocks.columns[block, column, last]
    moved = blocks.slots[block, last]
    blocks.slots[block, place] = moved
    rows.slots[moved, AFTER] = place
    blocks.counts[block] = last
    while rows.meta[TOP] > 0 and blocks.counts[rows.meta[TOP] - 1] == 0:
        rows.meta[TOP] -= 1


@part
def _breadth(blocks: Blocks, space: Geometry, attribute: int) -> np.float32:
    """Units of a step of 1 in a column: leaves are spread evenly over their domain."""
    if blocks.offsets[attribute] < 0:
        return np.float32(1.0)
    return np.float32(space.scale[attribute] * space.weight[attribute] * UNIT)


@part
def _nearest_block(rows: Rows, blocks: Blocks, space: Geometry, row: NDArray[np.float32]) -> int:
    """The block whose box grows least by taking in a row; an empty one only if there is no other."""
    boxes, growth, top, zero = blocks.boxes, blocks.growth, rows.meta[TOP], np.float32(0.0)
    for block in range(top):
        growth[block] = zero
    for attribute in range(len(row) - 1):
        value, breadth = row[attribute], _breadth(blocks, space, attribute)
        for block in range(top):
            below, above = boxes[LO, attribute, block] - value, value - boxes[HI, attribute, block]
            growth[block] += breadth * (max(below, zero) + max(above, zero))
    best, smallest = 0, np.float32(np.inf)
    for block in range(top):
        if growth[block] < smallest and blocks.counts[block]:
            best, smallest = block, growth[block]
    return best


@part
def _divide(rows: Rows, blocks: Blocks, space: Geometry, block: int) -> None:
    """Move the upper half of a full block, along its broadest side, to a free one, if there is one."""
    free = 0
    while free < len(blocks.counts) and blocks.counts[free]:
        free += 1
    if free == len(blocks.counts):
        return
    width = blocks.columns.shape[1] - 1
    broadest, most = 0, np.float32(-1.0)
    for attribute in range(width):
        breadth = _breadth(blocks, space, attribute)
        breadth *= blocks.boxes[HI, attribute, block] - blocks.boxes[LO, attribute, block]
        if breadth > most:
            broadest, most = attribute, breadth
    columns, slots = blocks.columns[block].copy(), blocks.slots[block].copy()
    lower, taken = least(columns[broadest].astype(np.float64), BLOCK // 2), 0
    blocks.counts[block] = 0
    row = np.empty(width + 1, np.float32)
    for place in range(BLOCK):
        stays = taken < len(lower) and lower[taken] == place
        taken += stays
        copy(row, columns[:, place])
        _append(rows, blocks, block if stays else free, slots[place], row)
