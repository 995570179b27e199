"""Exact counts over fixed grids, inside kernels: the persons of a window, each with the cells of the last row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import kernel

NONE = -1

POSITION, PERSON, CHAIN = range(3)
"""Columns of `State.rows`: position, person, and the next row of the same bucket of persons; only the last row of a
person is in one."""

BEGIN, END, PERSONS = range(3)
"""Entries of `State.meta`: numbers of the oldest and the next row, and persons in the window."""


class State(NamedTuple):
    """The window: a ring of rows."""

    rows: NDArray[np.int64]
    cells: NDArray[np.int32]
    heads: NDArray[np.int64]
    counts: NDArray[np.int64]
    """Persons of the window in each cell: columns × cells."""
    meta: NDArray[np.int64]


def new_state(columns: int, cells: int, rows: int) -> State:
    """An empty window with room for so many rows, a power of two."""
    return State(
        rows=np.full((rows, 3), NONE),
        cells=np.zeros((rows, columns), np.int32),
        heads=np.full(rows, NONE),
        counts=np.zeros((columns, cells), np.int64),
        meta=np.zeros(3, np.int64),
    )


@kernel
def take(state: State, positions: NDArray[np.int64], persons: NDArray[np.int64], cells: NDArray[np.int64]) -> None:
    """Count the persons of these rows in the cells of these rows, and no longer in those of earlier ones."""
    mask = len(state.rows) - 1
    for row in range(len(positions)):
        _forget_person(state, persons[row])
        slot = state.meta[END] & mask
        place = _place(persons[row]) & mask
        state.rows[slot, POSITION], state.rows[slot, PERSON] = positions[row], persons[row]
        state.rows[slot, CHAIN] = state.heads[place]
        state.heads[place] = slot
        for column in range(cells.shape[1]):
            state.cells[slot, column] = cells[row, column]
            state.counts[column, cells[row, column]] += 1
        state.meta[END] += 1
        state.meta[PERSONS] += 1


@kernel
def expire(state: State, position: int) -> None:
    """Forget rows before this position."""
    mask = len(state.rows) - 1
    while state.meta[BEGIN] < state.meta[END]:
        slot = state.meta[BEGIN] & mask
        if state.rows[slot, POSITION] >= position:
            return
        if _last_row(state, state.rows[slot, PERSON]) == slot:
            _forget_person(state, state.rows[slot, PERSON])
        state.meta[BEGIN] += 1


@kernel
def _place(person: int) -> int:
    return int((np.uint64(person) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33))


@kernel
def _last_row(state: State, person: int) -> int:
    entry = state.heads[_place(person) & (len(state.rows) - 1)]
    while entry != NONE and state.rows[entry, PERSON] != person:
        entry = state.rows[entry, CHAIN]
    return entry


@kernel
def _forget_person(state: State, person: int) -> None:
    """Count a person nowhere, if it is counted at all."""
    place = _place(person) & (len(state.rows) - 1)
    before, entry = NONE, state.heads[place]
    while entry != NONE and state.rows[entry, PERSON] != person:
        before, entry = entry, state.rows[entry, CHAIN]
    if entry == NONE:
        return
    if before == NONE:
        state.heads[place] = state.rows[entry, CHAIN]
    else:
        state.rows[before, CHAIN] = state.rows[entry, CHAIN]
    for column in range(state.cells.shape[1]):
        state.counts[column, state.cells[entry, column]] -= 1
    state.meta[PERSONS] -= 1
