"""The median and its kin, without sorting."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata.compile import kernel


@kernel
def nth_smallest(values: NDArray[np.float64], nth: int) -> float:
    """The value that sorting would put at index `nth`; the values change places."""
    low, high = 0, len(values) - 1
    word = np.uint64(len(values))
    while low < high:
        # A pivot that cannot be foreseen from the data alone keeps sorted and crafted columns linear.
        word = word * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        pivot = values[low + np.int64((word >> np.uint64(33)) % np.uint64(high - low + 1))]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if nth <= j:
            high = j
        elif nth >= i:
            low = i
        else:
            break
    return values[nth]
