"""A maximum flow from classes to the rows of an original, over edges that are never written down.

Points are the distinct rows of an original, each with a supply. Boxes are the distinct boxes of a publication, each
with a demand. A box may take from every point inside of it. A million rows can have billions of such edges, so the
kernels look for points in a tree whenever they need some. Values are ranks, so that a whole leaf is compared at once.

The state is the flow: entries of a point, a box and an amount, chained by point. Dinic's algorithm sets levels, which
say how far a point is from a box with unmet demand, and then follows paths on which the level grows by one each step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import kernel, part

NONE = -1
LEAF_POINTS = 64


class Points(NamedTuple):
    """Points in the order of a tree, and its nodes in pre-order (see `RowTree`)."""

    ranks: NDArray[np.uint32]
    """Of each attribute, the rank of each point's value: attributes × points."""
    low: NDArray[np.uint32]
    high: NDArray[np.uint32]
    """Of each node, the least and the greatest rank of each attribute: nodes × attributes."""
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    skip: NDArray[np.int64]
    above: NDArray[np.int64]
    """The parent of each node; NONE of the root."""
    leaf: NDArray[np.int64]
    """The leaf of each point."""


class Boxes(NamedTuple):
    """Ranks of the ends of each box, both inclusive; an empty box ends before it begins."""

    low: NDArray[np.uint32]
    high: NDArray[np.uint32]


class Flow(NamedTuple):
    """What points give to boxes. Entries that are not in use are chained by `after`, from `free[0]` on."""

    box: NDArray[np.int64]
    amount: NDArray[np.int64]
    after: NDArray[np.int64]
    head: NDArray[np.int64]
    """The first entry of each point."""
    free: NDArray[np.int64]


@part
def _is_apart(points: Points, node: int, boxes: Boxes, box: int) -> bool:
    """Return whether no point below a node is inside of a box."""
    for attribute in range(boxes.low.shape[1]):
        if points.high[node, attribute] < boxes.low[box, attribute]:
            return True
        if points.low[node, attribute] > boxes.high[box, attribute]:
            return True
    return False


@part
def _mark_inside(points: Points, node: int, boxes: Boxes, box: int, wanted: NDArray[np.uint8]) -> bool:
    """Clear the marks of points of a leaf that are not inside of a box; return whether any is left.

    The inner loop has no branch, so that a whole leaf is compared at once.
    """
    begin, size = points.begin[node], points.end[node] - points.begin[node]
    left = np.uint8(0)
    for attribute in range(boxes.low.shape[1]):
        low, high = boxes.low[box, attribute], boxes.high[box, attribute]
        if low <= points.low[node, attribute] and points.high[node, attribute] <= high:
            continue
        ranks = points.ranks[attribute, begin : begin + size]
        left = np.uint8(0)
        for place in range(size):
            wanted[place] &= np.uint8(ranks[place] >= low) & np.uint8(ranks[place] <= high)
            left |= wanted[place]
        if left == 0:
            return False
    return True


@part
def _count(points: Points, marked: NDArray[np.uint8], counts: NDArray[np.int64]) -> None:
    """Count the marked points below each node. Children come after their parents."""
    counts[:] = 0
    for node in range(len(counts) - 1, -1, -1):
        for place in range(points.begin[node], points.end[node]):
            counts[node] += marked[place]
        if points.above[node] != NONE:
            counts[points.above[node]] += counts[node]


@part
def _uncount(points: Points, node: int, counts: NDArray[np.int64], amount: int) -> None:
    while node != NONE:
        counts[node] -= amount
        node = points.above[node]


@part
def _entry(flow: Flow, point: int, box: int) -> int:
    """Return the entry of what a point gives to a box, or NONE."""
    entry = flow.head[point]
    while entry != NONE and flow.box[entry] != box:
        entry = flow.after[entry]
    return entry


@part
def _give(flow: Flow, point: int, box: int, amount: int) -> None:
    """Add to what a point gives to a box."""
    entry = _entry(flow, point, box)
    if entry == NONE:
        entry = flow.free[0]
        flow.free[0] = flow.after[entry]
        flow.box[entry], flow.amount[entry], flow.after[entry] = box, 0, flow.head[point]
        flow.head[point] = entry
    flow.amount[entry] += amount


@part
def _take_back(flow: Flow, point: int, box: int, amount: int) -> None:
    """Subtract from what a point gives to a box."""
    entry, before = flow.head[point], NONE
    while flow.box[entry] != box:
        entry, before = flow.after[entry], entry
    flow.amount[entry] -= amount
    if flow.amount[entry]:
        return
    if before == NONE:
        flow.head[point] = flow.after[entry]
    else:
        flow.after[before] = flow.after[entry]
    flow.after[entry] = flow.free[0]
    flow.free[0] = entry


@part
def _take_free(
    points: Points,
    boxes: Boxes,
    box: int,
    flow: Flow,
    supply: NDArray[np.int64],
    demand: NDArray[np.int64],
    with_supply: NDArray[np.int64],
) -> None:
    """Let a box take from points inside of it that have supply, until its demand is met."""
    wanted, node = np.empty(LEAF_POINTS, np.uint8), 0
    while node < len(points.skip) and demand[box] > 0:
        if with_supply[node] == 0 or _is_apart(points, node, boxes, box):
            node = points.skip[node]
            continue
        begin, gone = points.begin[node], 0
        for place in range(points.end[node] - begin):
            wanted[place] = supply[begin + place] > 0
        if not _mark_inside(points, node, boxes, box, wanted):
            node += 1
            continue
        for place in range(points.end[node] - begin):
            point = begin + place
            if wanted[place] and demand[box] > 0:
                amount = min(supply[point], demand[box])
                _give(flow, point, box, amount)
                supply[point] -= amount
                demand[box] -= amount
                gone += supply[point] == 0
        _uncount(points, node, with_supply, gone)
        node += 1


@part
def _set_levels(
    points: Points,
    boxes: Boxes,
    flow: Flow,
    supply: NDArray[np.int64],
    demand: NDArray[np.int64],
    level: NDArray[np.int32],
    box_level: NDArray[np.int32],
    unvisited: NDArray[np.int64],
    fresh: NDArray[np.uint8],
    line: NDArray[np.int64],
) -> int:
    """Set the levels of points and boxes, breadth first; return that of the nearest points with supply, or NONE."""
    level[:], box_level[:], fresh[:] = NONE, NONE, 1
    _count(points, fresh, unvisited)
    wanted, first, last, nearest = np.empty(LEAF_POINTS, np.uint8), 0, 0, NONE
    for box in range(len(demand)):
        if demand[box] > 0:
            box_level[box], line[last] = 0, box
            last += 1
    while first < last:
        box = line[first]
        own, node = box_level[box], 0
        first += 1
        if nearest != NONE and own > nearest:
            break
        while node < len(points.skip):
            if unvisited[node] == 0 or _is_apart(points, node, boxes, box):
                node = points.skip[node]
                continue
            begin, size, found = points.begin[node], points.end[node] - points.begin[node], 0
            wanted[:size] = fresh[begin : begin + size]
            if not _mark_inside(points, node, boxes, box, wanted):
                node += 1
                continue
            for place in range(size):
                if not wanted[place]:
                    continue
                point = begin + place
                level[point], fresh[point] = own, 0
                found += 1
                if supply[point] > 0:
                    nearest = own
                entry = flow.head[point]
                while entry != NONE:
                    other = flow.box[entry]
                    if box_level[other] == NONE:
                        box_level[other], line[last] = own + 1, other
                        last += 1
                    entry = flow.after[entry]
            if found:
                _uncount(points, node, unvisited, found)
            node += 1
    return nearest


@part
def _set_deepest(points: Points, level: NDArray[np.int32], deepest: NDArray[np.int32]) -> None:
    """Find the greatest level below each node."""
    deepest[:] = NONE
    for node in range(len(deepest) - 1, -1, -1):
        for place in range(points.begin[node], points.end[node]):
            deepest[node] = max(deepest[node], level[place])
        if points.above[node] != NONE:
            deepest[points.above[node]] = max(deepest[points.above[node]], deepest[node])


@part
def _close(points: Points, point: int, level: NDArray[np.int32], deepest: NDArray[np.int32]) -> None:
    """No path leads on from a point."""
    level[point] = NONE
    node, most = points.leaf[point], np.int32(NONE)
    for place in range(points.begin[node], points.end[node]):
        most = max(most, level[place])
    while node != NONE and most < deepest[node]:
        deepest[node] = most
        node = points.above[node]
        if node != NONE:
            child = node + 1
            most = np.int32(NONE)
            while child < points.skip[node]:
                most = max(most, deepest[child])
                child = points.skip[child]


@part
def _next_point(
    points: Points,
    boxes: Boxes,
    box: int,
    level: NDArray[np.int32],
    own: int,
    deepest: NDArray[np.int32],
    cursor: NDArray[np.int64],
    wanted: NDArray[np.uint8],
) -> int:
    """Return a point of a level inside of a box, or NONE. No node before the box's cursor has one."""
    node = cursor[box]
    while node < len(points.skip):
        if deepest[node] < own or _is_apart(points, node, boxes, box):
            node = points.skip[node]
            continue
        begin, size = points.begin[node], points.end[node] - points.begin[node]
        for place in range(size):
            wanted[place] = level[begin + place] == own
        if not _mark_inside(points, node, boxes, box, wanted):
            node += 1
            continue
        for place in range(size):
            if wanted[place]:
                cursor[box] = node
                return begin + place
        node += 1
    cursor[box] = node
    return NONE


@part
def _augment(
    flow: Flow,
    path_box: NDArray[np.int64],
    path_point: NDArray[np.int64],
    last: int,
    supply: NDArray[np.int64],
    demand: NDArray[np.int64],
) -> None:
    """Let each box of a path take from its point, instead of from the point before, as much as all of them can."""
    amount = min(supply[path_point[last]], demand[path_box[0]])
    for step in range(1, last + 1):
        amount = min(amount, flow.amount[_entry(flow, path_point[step - 1], path_box[step])])
    supply[path_point[last]] -= amount
    demand[path_box[0]] -= amount
    for step in range(last, -1, -1):
        _give(flow, path_point[step], path_box[step], amount)
        if step:
            _take_back(flow, path_point[step - 1], path_box[step], amount)


@kernel
def fill(
    points: Points,
    boxes: Boxes,
    order: NDArray[np.int64],
    flow: Flow,
    supply: NDArray[np.int64],
    demand: NDArray[np.int64],
) -> int:
    """Find a maximum flow; what is left of `demand` cannot be met. Returns the number of rounds.

    First each box, in this order, takes what is free.
    """
    nodes, count = len(points.skip), len(demand)
    counts, fresh = np.empty(nodes, np.int64), (supply > 0).astype(np.uint8)
    _count(points, fresh, counts)
    for box in order:
        _take_free(points, boxes, box, flow, supply, demand, counts)
    level, box_level, deepest = np.empty(len(supply), np.int32), np.empty(count, np.int32), np.empty(nodes, np.int32)
    line, cursor = np.empty(count, np.int64), np.empty(count, np.int64)
    path_box, path_point, wanted = (
        np.empty(count + 1, np.int64),
        np.empty(count + 1, np.int64),
        np.empty(LEAF_POINTS, np.uint8),
    )
    rounds = 0
    while True:
        nearest = _set_levels(points, boxes, flow, supply, demand, level, box_level, counts, fresh, line)
        if nearest == NONE:
            return rounds
        rounds += 1
        cursor[:] = 0
        _set_deepest(points, level, deepest)
        for root in order:
            if box_level[root] != 0:
                continue
            depth, path_box[0] = 0, root
            while depth >= 0 and demand[root] > 0:
                box = path_box[depth]
                point = _next_point(points, boxes, box, level, depth, deepest, cursor, wanted)
                if point == NONE:
                    box_level[box] = NONE
                    depth -= 1
                    continue
                path_point[depth] = point
                if supply[point] > 0:
                    _augment(flow, path_box, path_point, depth, supply, demand)
                    depth = 0
                    continue
                entry = flow.head[point] if depth < nearest else NONE
                while entry != NONE and box_level[flow.box[entry]] != depth + 1:
                    entry = flow.after[entry]
                if entry == NONE:
                    _close(points, point, level, deepest)
                    continue
                depth += 1
                path_box[depth] = flow.box[entry]


@kernel
def count_inside(points: Points, boxes: Boxes, supply: NDArray[np.int64], most: int, found: NDArray[np.int64]) -> None:
    """Count the rows inside of each box, no further than `most`."""
    wanted = np.empty(LEAF_POINTS, np.uint8)
    for box in range(len(found)):
        node = found[box] = 0
        while node < len(points.skip) and found[box] < most:
            if _is_apart(points, node, boxes, box):
                node = points.skip[node]
                continue
            begin, size = points.begin[node], points.end[node] - points.begin[node]
            wanted[:size] = 1
            _mark_inside(points, node, boxes, box, wanted)
            for place in range(size):
                found[box] += wanted[place] * supply[begin + place]
            node += 1


@kernel
def unroll(flow: Flow, point_of: NDArray[np.int64], box_of: NDArray[np.int64]) -> int:
    """Write the point and the box of each unit of the flow, by point; return how many there are."""
    count = 0
    for point in range(len(flow.head)):
        entry = flow.head[point]
        while entry != NONE:
            for _ in range(flow.amount[entry]):
                point_of[count], box_of[count] = point, flow.box[entry]
                count += 1
            entry = flow.after[entry]
    return count
