"""Which values left with each box: boxes by their id, each with a list of values, and the box before it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import kernel

NONE = -1
FEW = 32
VALUE, NEXT, OWNER = range(3)
"""Columns of entries: the value, the next entry of the same box and attribute, and which list that is."""


@kernel
def inherit(
    above: NDArray[np.int32], enough: NDArray[np.bool_], boxes: NDArray[np.int32], before: NDArray[np.int32]
) -> None:
    """These boxes come after those before them (NONE for none); what is enough for a box is so for those after it."""
    for place in range(len(boxes)):
        box = boxes[place]
        above[box] = before[place]
        enough[box] |= before[place] != NONE and enough[before[place]]


@kernel
def count_values(
    lists: NDArray[np.int32],
    entries: NDArray[np.int32],
    counts: NDArray[np.int64],
    used: int,
    owners: NDArray[np.int64],
    values: NDArray[np.int32],
    turn: int,
) -> int:
    """Count one row more or less for each value on the list of its owner; the entries in use then."""
    for row in range(len(owners)):
        entry = lists[owners[row]]
        while entry != NONE and entries[entry, VALUE] != values[row]:
            entry = entries[entry, NEXT]
        if entry == NONE:
            entry = used
            entries[entry, VALUE], entries[entry, NEXT] = values[row], lists[owners[row]]
            entries[entry, OWNER], counts[entry] = owners[row], 0
            lists[owners[row]] = entry
            used += 1
        counts[entry] += turn
    return used


@kernel
def gather(
    above: NDArray[np.int32],
    lists: NDArray[np.int32],
    entries: NDArray[np.int32],
    counts: NDArray[np.int64],
    boxes: NDArray[np.int32],
    attribute: int,
    attributes: int,
    most: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """How often each value of an attribute left with each of these boxes and all before it: starts, values, counts.

    `most` is the largest value.
    """
    met = np.full(len(above), NONE, np.int32)
    sums = np.zeros(most + 1, np.int64)
    found = np.empty(most + 1, np.int32)
    starts = np.zeros(len(boxes) + 1, np.int64)
    room = 4 * len(boxes) + most + 1
    values, often = np.empty(room, np.int32), np.empty(room, np.int64)
    for place in range(len(boxes)):
        distinct, box = 0, boxes[place]
        while box != NONE and met[box] != place:  # whoever names boxes in a circle gets no answer twice
            met[box] = place
            entry = lists[box * attributes + attribute]
            while entry != NONE:
                value = entries[entry, VALUE]
                if sums[value] == 0 and counts[entry] != 0:
                    found[distinct] = value
                    distinct += 1
                sums[value] += counts[entry]
                entry = entries[entry, NEXT]
            box = above[box]
        end = starts[place]
        if end + distinct > len(values):
            values, often = np.append(values, values), np.append(often, often)
        for value in sorted_few(found[:distinct]):
            values[end], often[end] = value, sums[value]
            sums[value] = 0
            end += 1
        starts[place + 1] = end
    return starts, values[: starts[-1]].copy(), often[: starts[-1]].copy()


@kernel
def sorted_few(values: NDArray[np.int32]) -> NDArray[np.int32]:
    """The values in their order; mostly there are a few."""
    if len(values) > FEW:
        return np.sort(values)
    for place in range(1, len(values)):
        value, at = values[place], place
        while at > 0 and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value
    return values


@kernel
def mark_above(above: NDArray[np.int32], boxes: NDArray[np.int32]) -> NDArray[np.bool_]:
    """These boxes and all before them."""
    marked = np.zeros(len(above), np.bool_)
    for first in boxes:
        box = first
        while box != NONE and not marked[box]:
            marked[box] = True
            box = above[box]
    return marked


@kernel
def link(lists: NDArray[np.int32], entries: NDArray[np.int32], used: int) -> None:
    """Put every entry on the list of its owner, which begin empty."""
    for entry in range(used):
        owner = entries[entry, OWNER]
        entries[entry, NEXT], lists[owner] = lists[owner], entry
