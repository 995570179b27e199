"""The inner loop of Datafly: split every block of rows by one more column, with at least k persons in every part."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import Geometry, kernel, range_loss

PENDING = -1
"""Label of a value whose part still has too few persons."""


@kernel
def refine(
    rows: NDArray[np.int32],
    starts: NDArray[np.int64],
    codes: NDArray[np.int32],
    group: NDArray[np.int32],
    loss: NDArray[np.float64],
    persons: NDArray[np.int32],
    seen: NDArray[np.int64],
    k: int,
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.int8], int, int, float]:
    """Split the blocks `rows[starts[b]:starts[b + 1]]` by a column.

    `group` and `loss` say, for each level of the column and each code, what it is published as and what that costs;
    codes that share a group are neighbours, and levels join whole groups. `persons` is empty where every row is
    another person. The answer: rows and starts of the parts, the block that each comes from, its level, the rows that
    are not at the top, the rows that could not keep their value whatever other columns came before, and the loss.

    A value with k persons keeps its level. What has fewer is pooled at the next one. A pool that is still too small
    takes in the smallest part below the same node if that costs less than climbing; at the top it always does.
    """
    height, size = group.shape
    top = height - 1
    parted = np.empty_like(rows)
    by_code = np.empty_like(rows)
    bounds = np.zeros(len(rows) // k + 2, np.int64)
    origin = np.empty(len(rows) // k + 1, np.int64)
    level = np.empty(len(rows) // k + 1, np.int8)
    count = np.zeros(size, np.int64)
    place = np.zeros(size, np.int64)
    room = min(size, len(rows))
    present = np.empty(room, np.int64)
    at = np.empty(room + 1, np.int64)
    label = np.empty(room, np.int64)
    # There are at most as many parts, pools that were taken in included, as values and levels.
    part_persons = np.empty(room + 1, np.int64)
    part_level = np.empty(room + 1, np.int64)
    part_rows = np.empty(room + 1, np.int64)
    parts = 0
    low = alone = 0
    lost = 0.0
    for block in range(len(starts) - 1):
        begin, end = starts[block], starts[block + 1]
        least = most = codes[rows[begin]]
        for i in range(begin, end):
            code = codes[rows[i]]
            least, most = min(least, code), max(most, code)
        if least == most or end - begin < 2 * k:
            # Two parts would have 2k rows, so it stays whole: at the first level where all values are one.
            here = 0
            while group[here, least] != group[here, most]:
                here += 1
            parted[begin:end] = rows[begin:end]
            bounds[parts + 1], origin[parts], level[parts] = end, block, here
            parts += 1
            low += (end - begin) * (here < top or here == 0)
            alone += (end - begin) * (least != most)
            lost += (end - begin) * loss[here, least]
            continue

        values = 0
        for i in range(begin, end):
            code = codes[rows[i]]
            if count[code] == 0:
                present[values] = code
                values += 1
            count[code] += 1
        present[:values].sort()
        at[0] = begin
        for v in range(values):
            place[present[v]] = at[v]
            at[v + 1] = at[v] + count[present[v]]
            count[present[v]] = 0
        for i in range(begin, end):
            code = codes[rows[i]]
            by_code[place[code]] = rows[i]
            place[code] += 1

        pending = 0
        for v in range(values):
            label[v] = v
            part_level[v] = 0
            part_persons[v] = _persons(by_code, at, label, v, v + 1, v, v, persons, seen)
            if part_persons[v] < k:
                label[v] = PENDING
                pending += 1
                alone += at[v + 1] - at[v]
        here = 1
        while pending and here < height:
            first = 0
            while first < values:
                last = first + 1
                while last < values and group[here, present[last]] == group[here, present[first]]:
                    last += 1
                pool, smallest, example = 0, PENDING, PENDING
                for v in range(first, last):
                    if label[v] == PENDING:
                        pool += 1
                        example = v
                    elif smallest == PENDING or part_persons[label[v]] < part_persons[smallest]:
                        smallest = label[v]
                if pool:
                    together = _persons(by_code, at, label, first, last, PENDING, PENDING, persons, seen)
                    taken = PENDING
                    if together < k and smallest != PENDING:
                        code = present[first]
                        climb = np.inf
                        if here < top:
                            climb = together * (loss[here + 1, code] - loss[here, code])
                        below = loss[part_level[smallest], present[_first(label, first, last, smallest)]]
                        if part_persons[smallest] * (loss[here, code] - below) <= climb:
                            taken = smallest
                    if together >= k or taken != PENDING:
                        together = _persons(by_code, at, label, first, last, PENDING, taken, persons, seen)
                        for v in range(first, last):
                            if label[v] in (PENDING, taken):
                                label[v] = example
                        part_persons[example], part_level[example] = together, here
                        pending -= pool
                first = last
            here += 1

        part_rows[:values] = 0
        for v in range(values):
            part_rows[label[v]] += at[v + 1] - at[v]
        filled = begin
        for v in range(values):
            part = label[v]
            if part_rows[part] == 0:
                continue
            where = filled
            for other in range(v, values):
                if label[other] == part:
                    parted[where : where + at[other + 1] - at[other]] = by_code[at[other] : at[other + 1]]
                    where += at[other + 1] - at[other]
                    if where - filled == part_rows[part]:
                        break
            here = part_level[part]
            bounds[parts + 1], origin[parts], level[parts] = where, block, here
            parts += 1
            low += part_rows[part] * (here < top)
            lost += part_rows[part] * loss[here, present[v]]
            part_rows[part] = 0
            filled = where
    return parted, bounds[: parts + 1].copy(), origin[:parts].copy(), level[:parts].copy(), low, alone, lost


@kernel
def _first(label: NDArray[np.int64], first: int, last: int, wanted: int) -> int:
    """The first value with this label."""
    for v in range(first, last):
        if label[v] == wanted:
            return v
    return last


@kernel
def _persons(
    rows: NDArray[np.int32],
    at: NDArray[np.int64],
    label: NDArray[np.int64],
    first: int,
    last: int,
    one: int,
    other: int,
    persons: NDArray[np.int32],
    seen: NDArray[np.int64],
) -> int:
    """Distinct persons of the values with one of two labels; `seen` holds one more place, the last time it was used."""
    found = 0
    if len(persons):
        seen[-1] += 1
    for v in range(first, last):
        if label[v] not in (one, other):
            continue
        if not len(persons):
            found += at[v + 1] - at[v]
            continue
        for i in range(at[v], at[v + 1]):
            person = persons[rows[i]]
            if seen[person] != seen[-1]:
                seen[person] = seen[-1]
                found += 1
    return found


@kernel
def minimal_loss(
    space: Geometry, quasi: NDArray[np.float64], rows: NDArray[np.int32], starts: NDArray[np.int64]
) -> float:
    """Loss of publishing each block by the smallest box around it, summed over the rows."""
    total = 0.0
    for block in range(len(starts) - 1):
        begin, end = starts[block], starts[block + 1]
        for column in range(quasi.shape[1]):
            low = high = quasi[rows[begin], column]
            for i in range(begin + 1, end):
                value = quasi[rows[i], column]
                low, high = min(low, value), max(high, value)
            total += (end - begin) * space.weight[column] * range_loss(space, column, low, high)
    return total
