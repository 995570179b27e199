"""A table from ids to places, as kernels want it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import kernel

NONE = -1


@kernel
def _spot(table: NDArray[np.int32], ids: NDArray[np.uint64], number: np.uint64) -> int:
    """Where in the table an id is, or would be: ids are random. The table's size is a power of two, and never full."""
    mask = np.uint64(len(table) - 1)
    spot = (number ^ (number >> np.uint64(32))) & mask
    while table[spot] != NONE and ids[table[spot]] != number:
        spot = (spot + np.uint64(1)) & mask
    return int(spot)


@kernel
def places_of(table: NDArray[np.int32], ids: NDArray[np.uint64], numbers: NDArray[np.uint64]) -> NDArray[np.int32]:
    """The place of each id, NONE where nobody knows it."""
    places = np.empty(len(numbers), np.int32)
    for place, number in enumerate(numbers):
        places[place] = table[_spot(table, ids, number)]
    return places


@kernel
def enter(table: NDArray[np.int32], ids: NDArray[np.uint64], first: int, last: int) -> None:
    """Put the ids at these places into the table; of the same ones the last counts."""
    for place in range(first, last):
        table[_spot(table, ids, ids[place])] = place
