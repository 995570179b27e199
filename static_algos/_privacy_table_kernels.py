"""Inner loops of the privacy hash table: counts of pairs (class, value) with open addressing, entries never moved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import kernel


class Counts(NamedTuple):
    """The hash tables; entries that count nothing stay until the tables are made anew."""

    class_slots: NDArray[np.int64]
    codes: NDArray[np.int64]
    """What the rows of each class have in common."""
    rows: NDArray[np.int64]
    distinct: NDArray[np.int64]
    """Classes × columns: the distinct persons, then the distinct values of each sensitive column."""
    pair_slots: NDArray[np.int64]
    pairs: NDArray[np.int64]
    """Class, column and value."""
    times: NDArray[np.int64]
    """Rows of each pair."""
    used: NDArray[np.int64]
    """Classes and pairs that have an entry, and classes that have rows."""
    least: NDArray[np.int64]
    """How many distinct ones each column needs."""
    buckets: NDArray[np.int64]
    """Columns × counts: the classes with so many distinct ones, those with enough in the last place; none at 0."""


@kernel
def _mixed(mix: np.uint64, value: np.int64) -> np.uint64:
    mix = (mix ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
    return mix ^ (mix >> np.uint64(29))


@kernel
def _class_of(counts: Counts, code: NDArray[np.int64], add: bool) -> int:
    """The entry of a class; -1 if there is none and none is to be added."""
    mix = np.uint64(14695981039346656037)
    for a in range(len(code)):
        mix = _mixed(mix, code[a])
    last = len(counts.class_slots) - 1
    place = np.int64(mix & np.uint64(last))
    while counts.class_slots[place] >= 0:
        entry = counts.class_slots[place]
        same = True
        for a in range(len(code)):
            same &= counts.codes[entry, a] == code[a]
        if same:
            return entry
        place = (place + 1) & last
    if not add:
        return -1
    entry = counts.used[0]
    counts.used[0] += 1
    counts.class_slots[place] = entry
    counts.codes[entry] = code
    return entry


@kernel
def _pair_of(counts: Counts, one: int, column: int, value: int, add: bool) -> int:
    """The entry of a pair; -1 if there is none and none is to be added."""
    mix = _mixed(_mixed(_mixed(np.uint64(14695981039346656037), np.int64(one)), np.int64(column)), np.int64(value))
    last = len(counts.pair_slots) - 1
    place = np.int64(mix & np.uint64(last))
    while counts.pair_slots[place] >= 0:
        entry = counts.pair_slots[place]
        if counts.pairs[entry, 0] == one and counts.pairs[entry, 1] == column and counts.pairs[entry, 2] == value:
            return entry
        place = (place + 1) & last
    if not add:
        return -1
    entry = counts.used[1]
    counts.used[1] += 1
    counts.pair_slots[place] = entry
    counts.pairs[entry, 0] = one
    counts.pairs[entry, 1] = column
    counts.pairs[entry, 2] = value
    return entry


@kernel
def _step(counts: Counts, one: int, column: int, change: int) -> None:
    """A class has one distinct value more or less in a column: move it to the bucket beside."""
    enough = counts.least[column]
    before = counts.distinct[one, column]
    after = before + change
    counts.distinct[one, column] = after
    if before > 0:
        counts.buckets[column, min(before, enough)] -= 1
    if after > 0:
        counts.buckets[column, min(after, enough)] += 1
    if column == 0 and min(before, after) == 0:
        counts.used[2] += change


@kernel
def add_rows(counts: Counts, codes: NDArray[np.int64], values: NDArray[np.int64]) -> None:
    """Count rows; there is room for every class and pair of them."""
    for row in range(len(codes)):
        one = _class_of(counts, codes[row], add=True)
        counts.rows[one] += 1
        for column in range(values.shape[1]):
            pair = _pair_of(counts, one, column, values[row, column], add=True)
            counts.times[pair] += 1
            if counts.times[pair] == 1:
                _step(counts, one, column, 1)


@kernel
def remove_rows(counts: Counts, codes: NDArray[np.int64], values: NDArray[np.int64]) -> int:
    """Take rows away until one of them is not there; how many were taken away."""
    for row in range(len(codes)):
        one = _class_of(counts, codes[row], add=False)
        known = one >= 0
        for column in range(values.shape[1]):
            if known:
                pair = _pair_of(counts, one, column, values[row, column], add=False)
                known = pair >= 0 and counts.times[pair] > 0
        if not known:
            return row
        counts.rows[one] -= 1
        for column in range(values.shape[1]):
            pair = _pair_of(counts, one, column, values[row, column], add=False)
            counts.times[pair] -= 1
            if counts.times[pair] == 0:
                _step(counts, one, column, -1)
    return len(codes)


@kernel
def copy_counted(old: Counts, new: Counts) -> None:
    """Put everything that counts something into new, larger tables."""
    number = np.full(old.used[0], -1, np.int64)
    for one in range(old.used[0]):
        if old.rows[one] > 0:
            number[one] = _class_of(new, old.codes[one], add=True)
            new.rows[number[one]] = old.rows[one]
            new.distinct[number[one]] = old.distinct[one]
    for pair in range(old.used[1]):
        if old.times[pair] > 0:
            entry = _pair_of(new, number[old.pairs[pair, 0]], old.pairs[pair, 1], old.pairs[pair, 2], add=True)
            new.times[entry] = old.times[pair]
