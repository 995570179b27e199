"""Who could have all of a person's rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import kernel


@kernel
def count_possible(
    starts: NDArray[np.int64],
    seen: NDArray[np.int64],
    quasi: NDArray[np.float64],
    first: NDArray[np.int64],
    positions: NDArray[np.int64],
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
) -> NDArray[np.int64]:
    """How many persons lie in every box of each victim, at the position of its row.

    What was seen of person p is from `starts[p]` to `starts[p + 1]`, what was published of victim v from `first[v]` to
    `first[v + 1]`, both in the order of positions.
    """
    counts = np.zeros(len(first) - 1, np.int64)
    for victim in range(len(counts)):
        for person in range(len(starts) - 1):
            at, end = starts[person], starts[person + 1]
            fits = True
            for row in range(first[victim], first[victim + 1]):
                while at + 1 < end and seen[at + 1] <= positions[row]:
                    at += 1
                for attribute in range(quasi.shape[1]):
                    value = quasi[at, attribute]
                    if not lo[row, attribute] <= value <= hi[row, attribute]:
                        fits = False
                        break
                if not fits:
                    break
            counts[victim] += fits
    return counts
