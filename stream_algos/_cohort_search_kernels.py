"""The search for the cohorts that new persons join: of those whose joining boxes contain their values, the best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import Geometry, part, prefetch
from stream_algos._cohort_mark_kernels import SPARE, bound_of, marks_of
from stream_algos._cohort_state import AFTER, COUNT, J_HI, J_LO, LOSS, VISITS
from stream_algos._held_kernels import NONE

DEEP = 64
"""Nodes that stand in line for one person, at first."""


@part
def contains(
    boxes: NDArray[np.float64], side: int, node: int, lo: NDArray[np.float64], hi: NDArray[np.float64], index: int
) -> bool:
    """Whether a box of a node (the published or the joining one) contains a range of values.

    All of it is compared: the processor takes several sides at a time, and need not guess where it could stop.
    """
    inside = True
    for attribute in range(lo.shape[1]):
        inside &= lo[index, attribute] >= boxes[node, side, attribute]
        inside &= hi[index, attribute] <= boxes[node, side + 1, attribute]
    return inside


@part
def search(
    nodes: NDArray[np.int64],
    sizes: NDArray[np.float64],
    boxes: NDArray[np.float64],
    marks: NDArray[np.uint64],
    space: Geometry,
    first: int,
    k: int,
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
    rows: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    """Find for rows the cohort of least loss whose joining box contains all their values; NONE where there is none.

    Trees, from a first one on, are not searched where the least loss cannot be; once there is any cohort, for no longer
    than so many VISITS.
    All rows take a step before any takes the next one, and ask for the memory that they will want then: one after the
    other, each would wait for every node on its way. It takes the arrays that it needs, and calls nothing that takes
    the whole state: handing that over would take longer than all that is done here.
    """
    count, last, deepest = len(rows), marks.shape[1] - 1, 1
    asked, stacks = np.empty((count, last - 1), np.uint64), np.empty((count, DEEP), np.int64)
    left, heights, visits = np.arange(count), np.zeros(count, np.int64), np.zeros(count, np.int64)
    roots, least, bounds = np.full(count, first), np.full(count, np.inf), np.full(count, SPARE)
    for lane in range(count):
        row = rows[lane]
        found[row] = NONE
        for side in range(0, last - 1, 2):
            asked[lane, side] = marks_of(space, lo[row], side // 2) | SPARE
            asked[lane, side + 1] = marks_of(space, hi[row], side // 2)
    while count:
        still = 0
        if deepest + 2 > stacks.shape[1]:
            longer = np.empty((len(rows), 2 * stacks.shape[1]), np.int64)
            longer[:, : stacks.shape[1]] = stacks
            stacks = longer
        for place in range(count):
            lane = left[place]
            row, height, bound = rows[lane], heights[lane], bounds[lane]
            if (height == 0 and roots[lane] == NONE) or (found[row] != NONE and visits[lane] >= VISITS):
                continue
            left[still] = lane
            still += 1
            if height == 0:
                stacks[lane, 0], height = roots[lane], 1
                roots[lane] = nodes[roots[lane], AFTER]
            height -= 1
            node = stacks[lane, height]
            near = np.int64(marks[node, last])
            if near == 0:
                loss = sizes[node, LOSS]
                # Of equal ones the first, in whatever order they are met.
                better = loss < least[lane] or (loss == least[lane] and node < found[row])
                if better and nodes[node, COUNT] + 1 >= k and contains(boxes, J_LO, node, lo, hi, row):
                    found[row], least[lane], bounds[lane] = node, loss, bound_of(loss)
            elif marks[node, last - 1] <= bound:
                far = near + 1
                # The side with the least loss is searched first.
                if marks[near, last - 1] > marks[far, last - 1]:
                    near, far = far, near
                for child in (far, near):
                    inside = SPARE
                    for side in range(0, last - 1, 2):
                        inside &= (asked[lane, side] - marks[child, side]) & (
                            marks[child, side + 1] - asked[lane, side + 1]
                        )
                    stacks[lane, height] = child
                    height += (inside == SPARE) & (marks[child, last - 1] <= bound)
                visits[lane] += 2
            heights[lane] = height
            if height:
                deepest = max(deepest, height)
                node = stacks[lane, height - 1]
                near = np.int64(marks[node, last])
                if near == 0:
                    prefetch(sizes, node)
                    prefetch(nodes, node)
                    prefetch(boxes, node, J_LO)
                    prefetch(boxes, node, J_HI)
                else:
                    prefetch(marks, near)
                    prefetch(marks, near + 1)
        count = still
