"""Rows of cohorts inside kernels: they wait, leave with the box of a cohort, or are given up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import kernel, part
from stream_algos._cohort_state import (
    BEGIN,
    BEHIND,
    CLUSTERS,
    CODES,
    COMPANY,
    COUNT,
    END,
    HELD,
    ID,
    J_HI,
    J_LO,
    MEMBER,
    P_HI,
    P_LO,
    PARENT,
    PERSON,
    PLACE,
    POOL,
    POSITION,
    READY,
    ROLE,
    ROWS,
    SHOWN,
    SUPPRESSED,
    WAITING,
    WAITS,
    WORDS,
    Output,
    Rules,
    State,
)
from stream_algos._cohort_undo_kernels import note_node
from stream_algos._held_kernels import NONE, copy


@part
def word(out: Output) -> np.uint64:
    out.meta[WORDS] += 1
    return out.words[out.meta[WORDS] - 1]


@part
def show(state: State, rules: Rules, person: int, codes: NDArray[np.int32]) -> None:
    """Remember that a person's row leaves with these codes."""
    shown = state.shown[person]
    for condition in range(state.tally.shape[0]):
        place = condition * rules.most
        end, code = place + rules.needs[condition], codes[condition] % CODES
        while place < end and shown[place] != NONE and shown[place] != code:
            place += 1
        if place < end:
            shown[place] = code


@part
def add(out: Output, position: int, quasi: NDArray[np.float64], index: int) -> None:
    """One more row leaves: its values are at an index. Every row comes by here, so no array is made."""
    row = out.meta[ROWS]
    out.members[row] = position
    for attribute in range(quasi.shape[1]):
        out.quasi[row, attribute] = quasi[index, attribute]
    out.meta[ROWS] += 1


@part
def behind(state: State, node: int) -> int:
    """Members of a cohort; nobody, so that nothing leaves, where its joining box reaches beyond the published one."""
    boxes = state.boxes
    for attribute in range(boxes.shape[2]):
        if (
            boxes[node, J_LO, attribute] < boxes[node, P_LO, attribute]
            or boxes[node, J_HI, attribute] > boxes[node, P_HI, attribute]
        ):
            return 0
    return state.nodes[node, COUNT]


@part
def close(state: State, out: Output, node: int, reached: int) -> None:
    """The rows that were added last leave with the published box of a cohort."""
    cluster = out.meta[CLUSTERS]
    out.ids[cluster, ID] = state.ids[node, ID]
    out.ids[cluster, PARENT] = state.ids[node, PARENT]
    for attribute in range(out.boxes.shape[2]):
        out.boxes[0, cluster, attribute] = state.boxes[node, P_LO, attribute]
        out.boxes[1, cluster, attribute] = state.boxes[node, P_HI, attribute]
    out.facts[cluster, 0] = state.nodes[node, SHOWN]
    out.facts[cluster, 1] = behind(state, node)
    out.facts[cluster, 2] = reached
    out.facts[cluster, 3] = node
    out.meta[CLUSTERS] += 1
    out.starts[out.meta[CLUSTERS]] = out.meta[ROWS]
    if not state.nodes[node, SHOWN]:
        note_node(state, node)
        state.nodes[node, SHOWN] = 1


@part
def suppress(out: Output, position: int, reached: int) -> None:
    out.suppressed[out.meta[SUPPRESSED], 0] = position
    out.suppressed[out.meta[SUPPRESSED], 1] = reached
    out.meta[SUPPRESSED] += 1


@part
def wait(
    state: State,
    person: int,
    place: int,
    position: int,
    time: float,
    quasi: NDArray[np.float64],
    codes: NDArray[np.int32],
) -> int:
    """A row waits for a cohort, or for it to publish; its slot. The caller has seen to room."""
    meta = state.meta
    slot = meta[END] & (len(state.slots) - 1)
    meta[END] += 1
    meta[WAITING] += 1
    state.slots[slot, POSITION] = position
    state.slots[slot, PERSON] = person
    state.slots[slot, PLACE] = place
    state.clock[slot] = time
    copy(state.quasi[slot], quasi)
    copy(state.codes[slot], codes)
    state.waits[person, WAITS] += 1
    if place != POOL:
        state.nodes[place, READY] += state.waits[person, WAITS] == 1 and state.persons[person, ROLE] == MEMBER
    else:
        for condition in range(state.tally.shape[0]):
            state.tally[condition, codes[condition]] += 1
    return slot


@part
def decided(state: State, slot: int) -> None:
    """A row waits no longer."""
    person, place = state.slots[slot, PERSON], state.slots[slot, PLACE]
    state.slots[slot, PLACE] = NONE
    state.meta[WAITING] -= 1
    if place == COMPANY:
        state.waits[person, HELD] -= 1
        return
    state.waits[person, WAITS] -= 1
    if place != POOL:
        state.nodes[place, READY] -= state.waits[person, WAITS] == 0 and state.persons[person, ROLE] == MEMBER
    else:
        for condition in range(state.tally.shape[0]):
            state.tally[condition, state.codes[slot, condition]] -= 1


@part
def accompany(state: State, slot: int, node: int) -> None:
    """A waiting row has a cohort now, and waits for rows of others, with the box that the cohort publishes."""
    person = state.slots[slot, PERSON]
    state.waits[person, WAITS] -= 1
    state.waits[person, HELD] += 1
    state.slots[slot, PLACE] = COMPANY
    state.slots[slot, BEHIND] = behind(state, node)
    copy(state.covers[slot, 0], state.boxes[node, P_LO])
    copy(state.covers[slot, 1], state.boxes[node, P_HI])


@part
def oldest(state: State) -> int:
    """Slot of the row that has waited longest, NONE where none waits."""
    meta = state.meta
    while meta[BEGIN] < meta[END]:
        slot = meta[BEGIN] & (len(state.slots) - 1)
        if state.slots[slot, PLACE] != NONE:
            return slot
        meta[BEGIN] += 1
    return NONE


@part
def waiting_for(state: State, place: int) -> NDArray[np.int64]:
    """Slots of the rows that wait at a place, oldest first."""
    found, count = np.empty(state.meta[WAITING], np.int64), 0
    for number in range(state.meta[BEGIN], state.meta[END]):
        slot = number & (len(state.slots) - 1)
        if state.slots[slot, PLACE] == place:
            found[count] = slot
            count += 1
    return found[:count]


@part
def leave(state: State, out: Output, slots: NDArray[np.int64]) -> None:
    """These waiting rows leave, shuffled, with the box that is closed next."""
    first = out.meta[ROWS]
    for slot in slots:
        other = first + int(word(out) % np.uint64(out.meta[ROWS] + 1 - first))
        add(out, out.members[other], out.quasi, other)
        out.members[other] = state.slots[slot, POSITION]
        copy(out.quasi[other], state.quasi[slot])
        decided(state, slot)


@part
def let_out(state: State, out: Output, rules: Rules, node: int, slots: NDArray[np.int64], reached: int) -> None:
    """These waiting rows of a cohort leave together."""
    for slot in slots:
        show(state, rules, state.slots[slot, PERSON], state.codes[slot])
    leave(state, out, slots)
    close(state, out, node, reached)


@kernel
def outside(
    lo: NDArray[np.float64], hi: NDArray[np.float64], starts: NDArray[np.int64], quasi: NDArray[np.float64]
) -> int:
    """How many values of released rows are not in the box of their cluster."""
    count = 0
    for cluster in range(len(lo)):
        for row in range(starts[cluster], starts[cluster + 1]):
            for attribute in range(quasi.shape[1]):
                value = quasi[row, attribute]
                count += not lo[cluster, attribute] <= value <= hi[cluster, attribute]
    return count
