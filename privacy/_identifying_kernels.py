"""Rows counted by what they have in common."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import kernel

_FREE, _SEVERAL = -1, -2
"""In the place of a person: the slot is free, or several persons are alike."""


@kernel
def count_alike(
    keys: NDArray[np.uint64],
    column: NDArray[np.uint64],
    rows: NDArray[np.int32],
    persons: NDArray[np.int64],
    most: int,
    limit: np.uint64,
    keep: bool,
) -> tuple[int, int, int, NDArray[np.int32], NDArray[np.uint64]]:
    """Combinations, the rows of those that belong to one person, and the sum of the squares of their numbers of rows.

    There are at most so many combinations; only those with a key up to `limit` are looked at. `keys` are those of the
    fields before, `column` has the next field of all rows. Without `rows` these are the same rows; without `persons`
    each is another one. To `keep` asks for the other rows, whose combination several persons have, and their keys.
    """
    all_rows, own = len(rows) == 0, len(persons) == 0
    highest = np.uint64(limit)
    expected = min(len(keys), most) * (limit / 1.8446744073709552e19)
    size = 16
    while size < 1.5 * expected + 1000:  # far more than chance adds to what is expected
        size *= 2
    mask = np.uint64(size - 1)
    slot_keys = np.empty(size, np.uint64)
    slot_persons = np.full(size, _FREE, np.int64)
    slot_rows = np.zeros(size, np.int32)
    combinations, alone, squares = 0, 0, 0
    for i in range(len(keys)):
        row = i if all_rows else rows[i]
        key = keys[i] + column[row]
        if key > highest:
            continue
        person = row if own else persons[row]
        slot = key & mask
        while slot_persons[slot] != _FREE and slot_keys[slot] != key:
            slot = (slot + np.uint64(1)) & mask
        before = slot_persons[slot]
        if before == _FREE:
            combinations += 1
            slot_keys[slot], slot_persons[slot], slot_rows[slot] = key, person, 1
            alone += 1
            squares += 1
        elif before == person:
            alone += 1
            squares += 2 * slot_rows[slot] + 1
            slot_rows[slot] += 1
        elif before != _SEVERAL:
            alone -= slot_rows[slot]
            squares -= np.int64(slot_rows[slot]) * slot_rows[slot]
            slot_persons[slot] = _SEVERAL
    if not keep:
        return combinations, alone, squares, np.empty(0, np.int32), np.empty(0, np.uint64)
    left = len(keys) - alone
    other_rows, other_keys = np.empty(left, np.int32), np.empty(left, np.uint64)
    place = 0
    for i in range(len(keys)):
        row = i if all_rows else rows[i]
        key = keys[i] + column[row]
        slot = key & mask
        while slot_keys[slot] != key or slot_persons[slot] == _FREE:
            slot = (slot + np.uint64(1)) & mask
        if slot_persons[slot] == _SEVERAL:
            other_rows[place], other_keys[place] = row, key
            place += 1
    return combinations, alone, squares, other_rows, other_keys


@kernel
def determines(one: NDArray[np.uint64], other: NDArray[np.uint64], distinct: int) -> bool:
    """Whether rows that are alike in one field, of so many values, are alike in the other."""
    size = 16
    while size < 2 * distinct:
        size *= 2
    mask = np.uint64(size - 1)
    used = np.zeros(size, np.bool_)
    keys, values = np.empty(size, np.uint64), np.empty(size, np.uint64)
    for row in range(len(one)):
        slot = one[row] & mask
        while used[slot] and keys[slot] != one[row]:
            slot = (slot + np.uint64(1)) & mask
        if not used[slot]:
            used[slot], keys[slot], values[slot] = True, one[row], other[row]
        elif values[slot] != other[row]:
            return False
    return True
