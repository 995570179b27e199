"""A set of hashes, as kernels want it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import kernel


@kernel
def add_new(table: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Put the hashes of each row into the table, which has room for them: whether any of a row was not there.

    The table's size is a power of two; 0 stands where there is none, and is nobody's hash.
    """
    new, mask = np.zeros(len(hashes), np.bool_), np.uint64(len(table) - 1)
    for row in range(len(hashes)):
        for one in hashes[row]:
            spot = (one >> np.uint64(7)) & mask
            while table[spot] != 0 and table[spot] != one:
                spot = (spot + np.uint64(1)) & mask
            if table[spot] == 0:
                table[spot] = one
                new[row] = True
    return new
