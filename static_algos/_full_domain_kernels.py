"""The inner loop of full-domain recoding: gather equal rows of codes."""

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
