"""Counting who passed, inside kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata.compile import kernel

NOBODY = -1


@kernel
def box_numbers(lo: NDArray[np.float64], hi: NDArray[np.float64]) -> NDArray[np.int64]:
    """The same number for entries with the same box, from 0."""
    room = 16
    while room < 2 * len(lo):
        room *= 2
    places, examples = np.full(room, NOBODY), np.empty(len(lo), np.int64)
    numbers, known = np.empty(len(lo), np.int64), 0
    sides = np.concatenate((lo, hi), axis=1).view(np.uint64)
    for entry in range(len(lo)):
        mixed = np.uint64(0)
        for side in sides[entry]:
            mixed = (mixed ^ side) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
        place = np.int64(mixed & np.uint64(room - 1))
        while places[place] != NOBODY and not np.array_equal(sides[examples[places[place]]], sides[entry]):
            place = (place + 1) & (room - 1)
        if places[place] == NOBODY:
            places[place] = known
            examples[known] = entry
            known += 1
        numbers[entry] = places[place]
    return numbers


@kernel
def count_passed(
    most: int,
    boxes: NDArray[np.int64],
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    persons: NDArray[np.int64],
    quasi: NDArray[np.float64],
    order: NDArray[np.int64],
    ordered: NDArray[np.float64],
) -> NDArray[np.int64]:
    """For each entry how many persons, `most` at the most, have a row in its box among those from first to last.

    `order` has the rows in the order of each column, `ordered` the values. A box that many rows are in is soon done
    with the latest rows. Of one that few are in, the rows are looked at that one of its sides leaves: the shortest.

    Entries come in the order of `last`, so that the persons who were found for a box are company for the next entry
    with this box too, as long as all of them are within its window.
    """
    found = np.zeros(len(lo), np.int64)
    reach = np.full(len(lo), NOBODY)
    room = 16
    while room < 2 * most and room < 2 * len(persons):
        room *= 2
    seen, stamps = np.empty(room, np.int64), np.full(room, NOBODY)
    for entry in range(len(lo)):
        box, row = boxes[entry], last[entry]
        if reach[box] != NOBODY and reach[box] >= first[entry]:
            found[entry] = most
            continue
        column, begin, end = _shortest(ordered, lo[entry], hi[entry])
        latest = max(row - (end - begin), first[entry] - 1)
        while row > latest and found[entry] < most:
            if _inside(quasi[row], lo[entry], hi[entry]):
                found[entry] += _is_new(seen, stamps, entry, persons[row])
            row -= 1
        if found[entry] < most and row >= first[entry]:
            rest = order[column, begin:end]
            rest = np.sort(rest[(rest >= first[entry]) & (rest <= row)])
            place = len(rest)
            while place > 0 and found[entry] < most:
                place -= 1
                row = rest[place] - 1
                if _inside(quasi[rest[place]], lo[entry], hi[entry]):
                    found[entry] += _is_new(seen, stamps, entry, persons[rest[place]])
        reach[box] = row + 1 if found[entry] >= most else NOBODY
    return found


@kernel
def _shortest(ordered: NDArray[np.float64], lo: NDArray[np.float64], hi: NDArray[np.float64]) -> tuple[int, int, int]:
    """The column whose side has the fewest rows, and where these begin and end in its order."""
    column, begin, end = 0, 0, ordered.shape[1]
    for one in range(len(ordered)):
        low = np.searchsorted(ordered[one], lo[one])
        high = np.searchsorted(ordered[one], hi[one], side="right")
        if high - low < end - begin:
            column, begin, end = one, low, high
    return column, begin, end


@kernel
def _is_new(seen: NDArray[np.int64], stamps: NDArray[np.int64], stamp: int, person: int) -> int:
    """1 for somebody who was not seen with this stamp before, who is from now on; else 0."""
    mask = len(seen) - 1
    place = np.int64((np.uint64(person) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
    while stamps[place] == stamp and seen[place] != person:
        place = (place + 1) & mask
    if stamps[place] == stamp:
        return 0
    stamps[place], seen[place] = stamp, person
    return 1


@kernel
def _inside(values: NDArray[np.float64], lo: NDArray[np.float64], hi: NDArray[np.float64]) -> bool:
    for column in range(len(values)):  # noqa: SIM110 - numba compiles no generator expression
        if values[column] < lo[column] or values[column] > hi[column]:
            return False
    return True
