"""A set of ids, as kernels want it: ids are random. Its size is a power of two, and 0 stands where there is none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import kernel, part


@part
def _spot(table: NDArray[np.uint64], number: np.uint64) -> np.uint64:
    """Where an id is, or would be; the table is never full."""
    mask = np.uint64(len(table) - 1)
    spot = (number ^ (number >> np.uint64(32))) & mask
    while table[spot] != 0 and table[spot] != number:
        spot = (spot + np.uint64(1)) & mask
    return spot


@kernel
def are_in(table: NDArray[np.uint64], ids: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Whether each id is in the table; 0 never is."""
    found = np.zeros(len(ids), np.bool_)
    for place in range(len(ids)):
        found[place] = ids[place] != 0 and table[_spot(table, ids[place])] != 0
    return found


@kernel
def put(table: NDArray[np.uint64], ids: NDArray[np.uint64]) -> int:
    """Put ids into the table, which has room for them: how many were not there."""
    new = 0
    for number in ids:
        spot = _spot(table, number)
        new += table[spot] == 0
        table[spot] = number
    return new
