"""What persons and cohorts were before they changed: what a cycle has changed, and how it can be undone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import kernel, part
from stream_algos._cohort_state import LASTING, NODE, NOTED, NOTES, ROLE, SEEN, State
from stream_algos._cohort_value_kernels import take_values
from stream_algos._held_kernels import NONE, copy


class Before(NamedTuple):
    """Entries of persons as they were; `numbers` tells which. Whoever has it knows how many are filled."""

    numbers: NDArray[np.int64]
    places: NDArray[np.int64]
    """Role, cohort and last position of each."""
    values: NDArray[np.float64]
    shown: NDArray[np.int16]


def no_entries(room: int, width: int, shown: int) -> Before:
    """Room for so many."""
    return Before(
        numbers=np.empty(room, np.int64),
        places=np.empty((room, 3), np.int64),
        values=np.empty((room, width)),
        shown=np.empty((room, shown), np.int16),
    )


@part
def note_node(state: State, node: int) -> None:
    """A node is about to change: write down what it is, if it is old and this was not done yet.

    It is done at the end of the tables of nodes, backwards, where there is room (see `Cohorts._make_room`).
    """
    meta = state.meta
    if node >= meta[LASTING] or state.due[node, NOTED]:
        return
    state.due[node, NOTED] = 1
    meta[NOTES] += 1
    spot = len(state.nodes) - meta[NOTES]
    state.due[spot, NOTED] = node
    copy(state.nodes[spot], state.nodes[node])
    copy(state.sizes[spot], state.sizes[node])
    copy(state.ids[spot], state.ids[node])
    for side in range(state.boxes.shape[1]):
        copy(state.boxes[spot, side], state.boxes[node, side])


@kernel
def note_before(state: State, who: NDArray[np.int64], last: int, before: Before, count: int) -> int:
    """Write down those of these who are known and did not come since a position; how many there are then."""
    persons, tags = state.persons, state.tags
    for person in who:
        if person != NONE and tags[person, SEEN] <= last:
            before.numbers[count] = person
            before.places[count, 0] = persons[person, ROLE]
            before.places[count, 1] = persons[person, NODE]
            before.places[count, 2] = tags[person, SEEN]
            take_values(state.narrow, state.exact, state.lows, person, before.values[count])
            for place in range(before.shown.shape[1]):
                before.shown[count, place] = state.shown[person, place]
            count += 1
    return count


@kernel
def changed_since(state: State, before: Before, count: int) -> NDArray[np.int64]:
    """Who of those who were written down is not what they were; that they were seen does not count."""
    persons, found, size = state.persons, np.empty(count, np.int64), 0
    values = np.empty(before.values.shape[1])
    for index in range(count):
        person = before.numbers[index]
        take_values(state.narrow, state.exact, state.lows, person, values)
        same = persons[person, ROLE] == before.places[index, 0] and persons[person, NODE] == before.places[index, 1]
        for attribute in range(len(values)):
            same &= values[attribute] == before.values[index, attribute]
        for place in range(before.shown.shape[1]):
            same &= state.shown[person, place] == before.shown[index, place]
        if not same:
            found[size] = person
            size += 1
    return found[:size]
