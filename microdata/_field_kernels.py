"""Texts as numbers that say nothing about them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata.compile import kernel


@kernel
def text_keys(offsets: NDArray[np.int64], text: NDArray[np.uint8], first: int, second: int) -> NDArray[np.uint64]:
    """A number of 64 bits for each text, equal where texts are; two secrets decide which."""
    found = np.empty(len(offsets) - 1, np.uint64)
    # Odd, so that a step loses nothing.
    factor, start = np.uint64(first) | np.uint64(1), np.uint64(second)
    for one in range(len(found)):
        key = start
        for place in range(offsets[one], offsets[one + 1]):
            key = (key ^ np.uint64(text[place]) ^ (key >> np.uint64(29))) * factor
        # What a short text leaves in the high bits reaches the low ones, and back.
        key = (key ^ (key >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
        key = (key ^ (key >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
        found[one] = key ^ (key >> np.uint64(33))
    return found
