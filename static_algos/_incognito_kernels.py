"""Inner loops of Incognito: gather equal rows of codes, and add up what they hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import kernel


@kernel
def gather(codes: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Group equal rows: the group of each row, and for each group one of its rows."""
    rows, width = codes.shape
    places = 8
    while places < 2 * rows:
        places *= 2
    slots = np.full(places, -1, np.int32)
    label = np.empty(rows, np.int32)
    example = np.empty(rows, np.int64)
    count = 0
    for row in range(rows):
        mix = np.uint64(14695981039346656037)
        for a in range(width):
            mix = (mix ^ np.uint64(codes[row, a])) * np.uint64(0x9E3779B97F4A7C15)
            mix ^= mix >> np.uint64(29)
        place = np.int64(mix & np.uint64(places - 1))
        while slots[place] >= 0:
            other = example[slots[place]]
            same = True
            for a in range(width):
                same &= codes[row, a] == codes[other, a]
            if same:
                break
            place = (place + 1) & (places - 1)
        if slots[place] < 0:
            slots[place] = count
            example[count] = row
            count += 1
        label[row] = slots[place]
    return label, example[:count].copy()


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
        met = new_values[new_starts[group] : used]
        met.sort()
        for i in range(new_starts[group], used):
            new_counts[i] = tally[new_values[i]]
            tally[new_values[i]] = 0
        new_starts[group + 1] = used
    return new_starts, new_values[:used].copy(), new_counts[:used].copy()
