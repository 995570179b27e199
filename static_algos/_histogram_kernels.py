"""Sparse histograms, values ascending: counted from rows, or added up from others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import kernel


@kernel
def count_values(
    codes: NDArray[np.int64], column: int, begin: NDArray[np.int64], end: NDArray[np.int64], tally: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Histogram of each part `begin … end`, as sparse rows with ascending values: starts, values, counts.

    `tally` has a place for every value of the domain; it is zero before and after.
    """
    starts = np.zeros(len(begin) + 1, np.int64)
    room = 0
    for part in range(len(begin)):
        room += min(end[part] - begin[part], len(tally))
    values = np.empty(room, np.int32)
    counts = np.empty(room, np.int64)
    used = 0
    for part in range(len(begin)):
        for row in range(begin[part], end[part]):
            value = codes[row, column]
            if tally[value] == 0:
                values[used] = value
                used += 1
            tally[value] += 1
        _settle(tally, values[starts[part] : used], counts[starts[part] : used])
        starts[part + 1] = used
    return starts, values[:used].copy(), counts[:used].copy()


@kernel
def add_up(
    label: NDArray[np.int32],
    groups: int,
    starts: NDArray[np.int64],
    values: NDArray[np.int32],
    counts: NDArray[np.int64],
    size: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Add up sparse histograms over values 0 … size - 1: starts, values (ascending) and counts of each group."""
    begin = np.zeros(groups + 1, np.int64)
    for one in range(len(label)):
        begin[label[one] + 1] += 1
    for group in range(groups):
        begin[group + 1] += begin[group]
    member = np.empty(len(label), np.int64)
    place = begin[:-1].copy()
    for one in range(len(label)):
        member[place[label[one]]] = one
        place[label[one]] += 1

    tally = np.zeros(size, np.int64)
    new_starts = np.zeros(groups + 1, np.int64)
    new_values = np.empty(len(values), np.int32)
    new_counts = np.empty(len(values), np.int64)
    used = 0
    for group in range(groups):
        for m in range(begin[group], begin[group + 1]):
            for i in range(starts[member[m]], starts[member[m] + 1]):
                if tally[values[i]] == 0:
                    new_values[used] = values[i]
                    used += 1
                tally[values[i]] += counts[i]
        _settle(tally, new_values[new_starts[group] : used], new_counts[new_starts[group] : used])
        new_starts[group + 1] = used
    return new_starts, new_values[:used].copy(), new_counts[:used].copy()


@kernel
def _settle(tally: NDArray[np.int64], values: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
    """Sort the values of a histogram, give each its count, and clear the tally for the next one."""
    values.sort()
    for i in range(len(values)):
        counts[i] = tally[values[i]]
        tally[values[i]] = 0
