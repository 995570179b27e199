"""z-anonymity inside kernels: who showed which combination of values within the window.

Two tables, each with chains by hash: combinations, by their rung and values, with the persons who are there; and pairs
of a combination and a person, with the rows that they have there. Whole numbers share one array per kind of thing, with
named columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import kernel
from stream_algos.ladder import Rungs

NONE = -1

POSITION, PERSON, REACHED = range(3)
"""Columns of `State.rows`: position, person, and on how many rungs the row counts."""

RUNG, SHOWN_BY, NEXT, VALUES = range(4)
"""Columns of `State.combinations`: the rung, persons who are there, the next of the chain; then the values."""

COMBINATION, WHO, ROWS, FOLLOWING = range(4)
"""Columns of `State.pairs`: the combination, the person, its rows there, the next of the chain."""

BEGIN, END, COMBINATIONS, PAIRS, FREE_COMBINATION, FREE_PAIR, LIVE_COMBINATIONS, LIVE_PAIRS = range(8)
"""Entries of `State.meta`: numbers of the oldest and the next row, entries of both tables that were ever in use, the
first of each that is free again, and those in use now."""


class State(NamedTuple):
    """The window: a ring of rows, and what they show."""

    rows: NDArray[np.int64]
    clock: NDArray[np.float64]
    """When each row came; where the clock was set back, the latest time before."""
    links: NDArray[np.int64]
    """The pair of each row on each rung on which it counts."""
    combinations: NDArray[np.int64]
    pairs: NDArray[np.int64]
    heads: NDArray[np.int64]
    """First of each chain, of combinations and of pairs."""
    meta: NDArray[np.int64]


def new_state(rungs: int, width: int, rows: int, entries: int) -> State:
    """An empty window with room for so many rows, and entries in each table; both are powers of two."""
    meta = np.zeros(8, np.int64)
    meta[[FREE_COMBINATION, FREE_PAIR]] = NONE
    return State(
        rows=np.zeros((rows, 3), np.int64),
        clock=np.zeros(rows),
        links=np.zeros((rows, rungs), np.int64),
        combinations=np.zeros((entries, VALUES + width), np.int64),
        pairs=np.zeros((entries, 4), np.int64),
        heads=np.full((2, entries), NONE),
        meta=meta,
    )


@kernel
def take(
    state: State,
    rungs: Rungs,
    z: int,
    tuples: int,
    seconds: float,
    positions: NDArray[np.int64],
    times: NDArray[np.float64],
    persons: NDArray[np.int64],
    codes: NDArray[np.int64],
    rung: NDArray[np.int64],
    first: NDArray[np.int64],
) -> None:
    """Decide rows: `rung` is where each of them leaves (NONE: nowhere), `first` the first position of its window.

    A row counts on the rungs up to that one, and on no coarser one: there it would be no company, since whoever knows
    the rule knows that it leaves finer.
    """
    for row in range(len(positions)):
        expire(state, positions[row] - tuples, times[row] - seconds)
        _append(state, positions[row], times[row], persons[row])
        rung[row] = NONE
        for step in range(len(rungs.run)):
            combination = _count(state, rungs, step, codes[row])
            if state.combinations[combination, SHOWN_BY] >= z:
                rung[row] = step
                break
        first[row] = state.rows[state.meta[BEGIN] & (len(state.rows) - 1), POSITION]


@kernel
def put_back(
    state: State,
    rungs: Rungs,
    positions: NDArray[np.int64],
    times: NDArray[np.float64],
    persons: NDArray[np.int64],
    codes: NDArray[np.int64],
    reached: NDArray[np.int64],
) -> None:
    """Take rows that were decided before, each of which counts on so many rungs."""
    for row in range(len(positions)):
        _append(state, positions[row], times[row], persons[row])
        for step in range(reached[row]):
            _count(state, rungs, step, codes[row])


@kernel
def expire(state: State, position: int, time: float) -> None:
    """Forget rows up to this position, and those that came up to this time."""
    meta = state.meta
    while meta[BEGIN] < meta[END]:
        slot = meta[BEGIN] & (len(state.rows) - 1)
        if state.rows[slot, POSITION] > position and state.clock[slot] > time:
            return
        for step in range(state.rows[slot, REACHED]):
            _leave(state, state.links[slot, step])
        meta[BEGIN] += 1


@kernel
def _append(state: State, position: int, time: float, person: int) -> None:
    """A row that counts nowhere yet."""
    mask = len(state.rows) - 1
    slot, before = state.meta[END] & mask, (state.meta[END] - 1) & mask
    state.rows[slot, POSITION], state.rows[slot, PERSON], state.rows[slot, REACHED] = position, person, 0
    state.clock[slot] = time
    if state.meta[END] > state.meta[BEGIN] and state.clock[before] > time:
        state.clock[slot] = state.clock[before]
    state.meta[END] += 1


@kernel
def _count(state: State, rungs: Rungs, step: int, codes: NDArray[np.int64]) -> int:
    """Let the last row count on the next rung; the combination that it shows there."""
    slot = (state.meta[END] - 1) & (len(state.rows) - 1)
    combination = _combination(state, rungs, step, codes)
    state.links[slot, step] = _pair(state, combination, state.rows[slot, PERSON])
    state.rows[slot, REACHED] = step + 1
    return combination


@kernel
def _value(rungs: Rungs, step: int, column: int, code: int) -> int:
    """What a cell or leaf is on this rung."""
    run = rungs.run[step, column]
    if run > 0:
        return code // run
    return rungs.node[rungs.start[step, column] + code]


@kernel
def _mixed(word: int, more: int) -> int:
    mixed = (np.uint64(word) ^ np.uint64(more)) * np.uint64(0x9E3779B97F4A7C15)
    return int(np.int64(mixed ^ (mixed >> np.uint64(29))))


@kernel
def _combination(state: State, rungs: Rungs, step: int, codes: NDArray[np.int64]) -> int:
    """The entry of a row's values on this rung; a new one where nobody shows them."""
    word, meta = step, state.meta
    for column in range(len(codes)):
        word = _mixed(word, _value(rungs, step, column, codes[column]))
    place = word & (state.heads.shape[1] - 1)
    entry = state.heads[0, place]
    while entry != NONE:
        same = state.combinations[entry, RUNG] == step
        for column in range(len(codes)):
            same = same and state.combinations[entry, VALUES + column] == _value(rungs, step, column, codes[column])
        if same:
            return entry
        entry = state.combinations[entry, NEXT]
    entry = meta[FREE_COMBINATION]
    if entry == NONE:
        entry = meta[COMBINATIONS]
        meta[COMBINATIONS] += 1
    else:
        meta[FREE_COMBINATION] = state.combinations[entry, NEXT]
    state.combinations[entry, RUNG], state.combinations[entry, SHOWN_BY] = step, 0
    for column in range(len(codes)):
        state.combinations[entry, VALUES + column] = _value(rungs, step, column, codes[column])
    state.combinations[entry, NEXT] = state.heads[0, place]
    state.heads[0, place] = entry
    meta[LIVE_COMBINATIONS] += 1
    return entry


@kernel
def _pair(state: State, combination: int, person: int) -> int:
    """One row more of a person with these values."""
    meta = state.meta
    place = _mixed(_mixed(combination, person), person) & (state.heads.shape[1] - 1)
    entry = state.heads[1, place]
    while entry != NONE:
        if state.pairs[entry, COMBINATION] == combination and state.pairs[entry, WHO] == person:
            state.pairs[entry, ROWS] += 1
            return entry
        entry = state.pairs[entry, FOLLOWING]
    entry = meta[FREE_PAIR]
    if entry == NONE:
        entry = meta[PAIRS]
        meta[PAIRS] += 1
    else:
        meta[FREE_PAIR] = state.pairs[entry, FOLLOWING]
    state.pairs[entry, COMBINATION], state.pairs[entry, WHO], state.pairs[entry, ROWS] = combination, person, 1
    state.pairs[entry, FOLLOWING] = state.heads[1, place]
    state.heads[1, place] = entry
    state.combinations[combination, SHOWN_BY] += 1
    meta[LIVE_PAIRS] += 1
    return entry


@kernel
def _leave(state: State, pair: int) -> None:
    """One row less; nothing is kept of a person or a combination without rows."""
    state.pairs[pair, ROWS] -= 1
    if state.pairs[pair, ROWS] > 0:
        return
    meta = state.meta
    combination, person = state.pairs[pair, COMBINATION], state.pairs[pair, WHO]
    place = _mixed(_mixed(combination, person), person) & (state.heads.shape[1] - 1)
    _unlink(state.heads[1], state.pairs, FOLLOWING, place, pair)
    state.pairs[pair, FOLLOWING] = meta[FREE_PAIR]
    meta[FREE_PAIR] = pair
    meta[LIVE_PAIRS] -= 1
    state.combinations[combination, SHOWN_BY] -= 1
    if state.combinations[combination, SHOWN_BY] > 0:
        return
    word = state.combinations[combination, RUNG]
    for value in state.combinations[combination, VALUES:]:
        word = _mixed(word, value)
    _unlink(state.heads[0], state.combinations, NEXT, word & (state.heads.shape[1] - 1), combination)
    state.combinations[combination, NEXT] = meta[FREE_COMBINATION]
    meta[FREE_COMBINATION] = combination
    meta[LIVE_COMBINATIONS] -= 1


@kernel
def _unlink(heads: NDArray[np.int64], table: NDArray[np.int64], following: int, place: int, entry: int) -> None:
    """Take an entry out of its chain."""
    if heads[place] == entry:
        heads[place] = table[entry, following]
        return
    before = heads[place]
    while table[before, following] != entry:
        before = table[before, following]
    table[before, following] = table[entry, following]
