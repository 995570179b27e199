"""A publication laid beside its original, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata.compile import kernel


@kernel
def compare(
    starts: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.int16],
    new_starts: NDArray[np.int64],
    new_items: NDArray[np.int32],
    new_values: NDArray[np.int16],
) -> NDArray[np.int64]:
    """Ratings kept, changed, suppressed, invented, and the sum of all differences."""
    result = np.zeros(5, np.int64)
    for row in range(len(starts) - 1):
        a, b = starts[row], new_starts[row]
        while a < starts[row + 1] or b < new_starts[row + 1]:
            if a < starts[row + 1] and b < new_starts[row + 1] and items[a] == new_items[b]:
                difference = abs(np.int64(values[a]) - np.int64(new_values[b]))
                result[0 if difference == 0 else 1] += 1
                result[4] += difference
                a += 1
                b += 1
            elif b == new_starts[row + 1] or (a < starts[row + 1] and items[a] < new_items[b]):
                result[2] += 1
                result[4] += values[a]
                a += 1
            else:
                result[3] += 1
                result[4] += new_values[b]
                b += 1
    return result


@kernel
def cliques(
    starts: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.int16],
    members: NDArray[np.int64],
    bounds: NDArray[np.int64],
    steps: int,
) -> bool:
    """Whether the members of every group have the same items, rated within so many steps."""
    for group in range(len(bounds) - 1):
        first = members[bounds[group]]
        length = starts[first + 1] - starts[first]
        low = values[starts[first] : starts[first + 1]].copy()
        high = low.copy()
        for place in range(bounds[group] + 1, bounds[group + 1]):
            row = members[place]
            if starts[row + 1] - starts[row] != length:
                return False
            for at in range(length):
                if items[starts[row] + at] != items[starts[first] + at]:
                    return False
                low[at] = min(low[at], values[starts[row] + at])
                high[at] = max(high[at], values[starts[row] + at])
        for at in range(length):
            if high[at] - low[at] > steps:
                return False
    return True
