"""Classes of rows that leave together, each bringing the box of its cohort; the class is published with their hull.

The row whose time is over gathers its class, one row at a time: the one whose box enlarges the hull least, less its
worth. A row with a large box of its own, or an old one, is worth more: it fits into few classes later. Without that,
rows with small boxes, which cost nothing inside of a large one, would be used up for bad classes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import Geometry, box_loss, kernel, part, range_loss, widened_range
from stream_algos._cohort_release_kernels import decided, leave, oldest, suppress, word
from stream_algos._cohort_state import (
    AT,
    BEGIN,
    BEHIND,
    CLUSTERS,
    COMPANY,
    END,
    HELD,
    ID,
    NEEDED,
    PARENT,
    PERSON,
    PLACE,
    POSITION,
    ROWS,
    WAITING,
    Output,
    Rules,
    State,
)
from stream_algos._held_kernels import NONE, copy

VISITED = 4096
"""Rows that a gathering row looks at; of more, every second, third, …"""

OWN, AGED = 0.25, 0.2
"""How much of the loss of its own box a row is worth, and how much more at the end of its delay: measured on Adult."""


@part
def _meet_codes(state: State, rules: Rules, slot: int, found: NDArray[np.int64]) -> int:
    """Count what a row shows first; how many codes are missing yet, of the condition that misses most."""
    stamps, missing = state.stamps, 0
    for condition in range(len(found)):
        code = state.codes[slot, condition] + 1
        if stamps[condition, code] != stamps[condition, 0]:
            stamps[condition, code] = stamps[condition, 0]
            found[condition] += 1
        missing = max(missing, rules.needs[condition] - found[condition])
    return missing


@part
def _brings(state: State, rules: Rules, slot: int, found: NDArray[np.int64]) -> bool:
    """Whether a row shows a code that is missing."""
    for condition in range(len(found)):
        met = state.stamps[condition, state.codes[slot, condition] + 1] == state.stamps[condition, 0]
        if found[condition] < rules.needs[condition] and not met:
            return True
    return False


@part
def varied(state: State, rules: Rules, slots: NDArray[np.int64]) -> bool:
    """Whether waiting rows show as many codes of each condition as are asked for."""
    found, missing = np.zeros(len(rules.needs), np.int64), 0
    for condition in range(len(found)):
        state.stamps[condition, 0] += 1
    for slot in slots:
        missing = _meet_codes(state, rules, slot, found)
    return missing == 0


@part
def _waiting(state: State) -> NDArray[np.int64]:
    """Slots of rows that wait for company, oldest first; of many, some."""
    meta = state.meta
    step, turn, count = 1 + meta[WAITING] // VISITED, 0, 0
    found = np.empty(min(meta[WAITING], VISITED), np.int64)
    for number in range(meta[BEGIN], meta[END]):
        slot = number & (len(state.slots) - 1)
        if state.slots[slot, PLACE] == COMPANY:
            if turn % step == 0:
                found[count] = slot
                count += 1
            turn += 1
    return found[:count]


@part
def _nearest(
    state: State,
    space: Geometry,
    rules: Rules,
    some: NDArray[np.int64],
    worth: NDArray[np.float64],
    box: NDArray[np.float64],
    losses: NDArray[np.float64],
    found: NDArray[np.int64],
    varying: bool,
) -> int:
    """Which of these rows joins next: the one that enlarges the box least, less its worth; NONE for nobody.

    Those without worth are not asked; where it must be `varying`, those neither that show nothing new.
    """
    covers, best, least = state.covers, NONE, np.inf
    for index in range(len(some)):
        slot, cost = some[index], -worth[index]
        if worth[index] < 0.0 or (varying and not _brings(state, rules, slot, found)):
            continue
        for attribute in range(box.shape[1]):
            lo, hi = covers[slot, 0, attribute], covers[slot, 1, attribute]
            if lo < box[0, attribute] or hi > box[1, attribute]:
                lo, hi = min(lo, box[0, attribute]), max(hi, box[1, attribute])
                cost += space.weight[attribute] * range_loss(space, attribute, lo, hi) - losses[attribute]
                if cost >= least:
                    break
        if cost < least:
            best, least = index, cost
    return best


@part
def _with_further(
    state: State, members: NDArray[np.int64], box: NDArray[np.float64], further: int
) -> NDArray[np.int64]:
    """The members, and those of the further rows of their persons whose boxes lie in the class's box."""
    slots, covers = state.slots, state.covers
    together, count = np.empty(len(members) + further, np.int64), len(members)
    copy(together, members)
    for member in members:
        slots[member, PLACE] = NONE
    for number in range(state.meta[BEGIN], state.meta[END]):
        slot = number & (len(slots) - 1)
        if slots[slot, PLACE] != COMPANY or state.waits[slots[slot, PERSON], HELD] == 1:
            continue
        inside, member = True, 0
        for attribute in range(box.shape[1]):
            inside &= box[0, attribute] <= covers[slot, 0, attribute]
            inside &= covers[slot, 1, attribute] <= box[1, attribute]
        while inside and member < len(members) and slots[members[member], PERSON] != slots[slot, PERSON]:
            member += 1
        if inside and member < len(members):
            together[count] = slot
            count += 1
    for member in members:
        slots[member, PLACE] = COMPANY
    return together[:count]


@part
def _publish(state: State, out: Output, members: NDArray[np.int64], box: NDArray[np.float64], reached: int) -> None:
    """These rows leave with a box; behind each of them stand the members of its cohort."""
    cluster, behind = out.meta[CLUSTERS], state.slots[members[0], BEHIND]
    for member in members:
        behind = min(behind, state.slots[member, BEHIND])
    leave(state, out, members)
    copy(out.boxes[0, cluster], box[0])
    copy(out.boxes[1, cluster], box[1])
    out.ids[cluster, ID], out.ids[cluster, PARENT] = word(out), 0
    out.facts[cluster, 0], out.facts[cluster, 1] = 0, behind
    out.facts[cluster, 2], out.facts[cluster, 3] = reached, NONE
    out.meta[CLUSTERS] += 1
    out.starts[out.meta[CLUSTERS]] = out.meta[ROWS]


@part
def _gathered(state: State, out: Output, space: Geometry, rules: Rules, seed: int, reached: int) -> bool:
    """Whether there is such a class; then it leaves."""
    slots, covers, width = state.slots, state.covers, state.covers.shape[2]
    some = _waiting(state)
    worth = np.empty(len(some))
    for index in range(len(some)):
        slot = some[index]
        age = min(max(reached - slots[slot, POSITION], 0) / rules.delta, 1.0)
        worth[index] = (OWN + AGED * age) * box_loss(space, covers[slot, 0], covers[slot, 1])
    box, losses, found = covers[seed].copy(), np.zeros(width), np.zeros(len(rules.needs), np.int64)
    members, count, further, missing, chosen = np.empty(len(some) + 1, np.int64), 0, 0, 0, seed
    for condition in range(len(found)):
        state.stamps[condition, 0] += 1
    while True:
        members[count] = chosen
        count += 1
        further += state.waits[slots[chosen, PERSON], HELD] - 1
        missing = _meet_codes(state, rules, chosen, found)
        for attribute in range(width):
            box[0, attribute] = min(box[0, attribute], covers[chosen, 0, attribute])
            box[1, attribute] = max(box[1, attribute], covers[chosen, 1, attribute])
            losses[attribute] = space.weight[attribute] * range_loss(
                space, attribute, box[0, attribute], box[1, attribute]
            )
        if count >= rules.k and missing == 0:
            break
        for index in range(len(some)):  # a person is company once
            if slots[some[index], PERSON] == slots[chosen, PERSON]:
                worth[index] = -1.0
        varying = missing > 0 and rules.k - count <= missing
        best = _nearest(state, space, rules, some, worth, box, losses, found, varying)
        if best == NONE:
            return False
        chosen = some[best]
    for attribute in range(width):
        box[0, attribute], box[1, attribute] = widened_range(space, attribute, box[0, attribute], box[1, attribute])
    if further:
        members = _with_further(state, members[:count], box, further)
        count = len(members)
    _publish(state, out, members[:count], box, reached)
    return True


@kernel
def gather(state: State, out: Output, space: Geometry, rules: Rules) -> None:
    """Let the oldest row leave with a class of k persons that shows what is asked for; suppress it for want of one."""
    seed, reached = oldest(state), state.meta[AT]
    state.meta[NEEDED] = NONE
    if not _gathered(state, out, space, rules, seed, reached):
        suppress(out, state.slots[seed, POSITION], reached)
        decided(state, seed)
