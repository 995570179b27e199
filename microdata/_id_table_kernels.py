"""A table from ids to places, as kernels want it: its size is a power of two, and it is never full."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata.compile import kernel, part

NONE = -1


@part
def _spot(table: NDArray[np.int32], ids: NDArray[np.uint64], number: np.uint64) -> np.uint64:
    """Where in the table an id is, or would be."""
    mask = np.uint64(len(table) - 1)
    mixed = number * np.uint64(0x9E3779B97F4A7C15)
    spot = (mixed ^ (mixed >> np.uint64(32))) & mask
    while table[spot] != NONE and ids[table[spot]] != number:
        spot = (spot + np.uint64(1)) & mask
    return spot


@kernel
def find(table: NDArray[np.int32], ids: NDArray[np.uint64], numbers: NDArray[np.uint64]) -> NDArray[np.int32]:
    """The place of each id, NONE where nobody knows it."""
    places = np.empty(len(numbers), np.int32)
    for index in range(len(numbers)):
        places[index] = table[_spot(table, ids, numbers[index])]
    return places


@kernel
def add(table: NDArray[np.int32], ids: NDArray[np.uint64], size: int, numbers: NDArray[np.uint64]) -> NDArray[np.int32]:
    """The place of each id; those that nobody knows get the next ones, in their order. There is room for all."""
    places = np.empty(len(numbers), np.int32)
    for index in range(len(numbers)):
        spot = _spot(table, ids, numbers[index])
        if table[spot] == NONE:
            table[spot], ids[size] = size, numbers[index]
            size += 1
        places[index] = table[spot]
    return places


@kernel
def fill(table: NDArray[np.int32], ids: NDArray[np.uint64], size: int) -> None:
    """Put ids, all of them different, into a table that is empty."""
    for place in range(size):
        table[_spot(table, ids, ids[place])] = place
