"""Cohorts inside kernels: whom a row belongs to, whether it leaves or waits, and what is due before it.

Cohorts are the leaves of binary trees. A node's joining box contains those of all nodes below it, so whoever looks for
the cohorts that somebody may join leaves out most of them at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import Geometry, box_loss, kernel, widened_range
from stream_algos._cohort_person_kernels import (
    bucket_of,
    discount,
    enlist,
    forget,
    meet,
    unpool,
)
from stream_algos._cohort_release_kernels import (
    accompany,
    add,
    close,
    decided,
    let_out,
    oldest,
    show,
    suppress,
    wait,
    waiting_for,
    word,
)
from stream_algos._cohort_state import (
    AFTER,
    AT,
    BEGIN,
    CHAIN,
    CODE,
    COMPANY,
    COUNT,
    DISMISSED,
    END,
    GONE,
    HEAD,
    ID,
    J_LO,
    LEFT,
    LOOKED_AT,
    LOSS,
    MADE,
    MEMBER,
    NEEDED,
    NEXT,
    NODE,
    OPEN,
    P_HI,
    P_LO,
    PARENT,
    PERSON,
    PLACE,
    POOL,
    POOLED,
    POOLED_PERSONS,
    POSITION,
    READY,
    RIGHT,
    ROLE,
    ROOT,
    SEEN,
    SHOWN,
    TRY,
    WAITING,
    WAITS,
    WORDS,
    Output,
    Rules,
    State,
)
from stream_algos._company_kernels import varied
from stream_algos._held_kernels import NONE, copy


@kernel
def _contains(state: State, side: int, node: int, lo: NDArray[np.float64], hi: NDArray[np.float64]) -> bool:
    """Whether a box of a node (the published or the joining one) contains a range of values."""
    boxes = state.boxes
    for attribute in range(len(lo)):
        if lo[attribute] < boxes[node, side, attribute] or hi[attribute] > boxes[node, side + 1, attribute]:
            return False
    return True


@kernel
def _joinable(state: State, rules: Rules, lo: NDArray[np.float64], hi: NDArray[np.float64]) -> int:
    """The cohort of least loss whose joining box contains all these values; NONE where there is none."""
    nodes = state.nodes
    best, least, root = NONE, np.inf, state.meta[ROOT]
    stack = np.empty(128, np.int64)
    while root != NONE:
        stack[0], height = root, 1
        while height:
            height -= 1
            node = stack[height]
            if not _contains(state, J_LO, node, lo, hi):
                continue
            if nodes[node, LEFT] != NONE:
                if height + 2 > len(stack):
                    longer = np.empty(2 * len(stack), np.int64)
                    copy(longer, stack)
                    stack = longer
                stack[height], stack[height + 1] = nodes[node, LEFT], nodes[node, RIGHT]
                height += 2
            elif state.sizes[node, LOSS] < least and nodes[node, COUNT] + 1 >= rules.k:
                best, least = node, state.sizes[node, LOSS]
        root = nodes[root, AFTER]
    return best


@kernel
def _enough_codes(state: State, rules: Rules) -> bool:
    """Whether the rows that wait in the pool have as many codes of each condition as a cohort needs."""
    for condition in range(state.tally.shape[0]):
        found = 0
        for code in range(state.tally.shape[1]):
            found += state.tally[condition, code] > 0
            if found == rules.needs[condition]:
                break
        if found < rules.needs[condition]:
            return False
    return True


@kernel
def _due(state: State, out: Output, rules: Rules, until: int, founders: int, reached: int, late: int) -> bool:
    """Suppress the rows up to a position, oldest first; False where one gathers company, or the pool is to be divided.

    That happens when `reached` was the last position, or so many (`late`) behind the row that is due.
    """
    while True:
        slot = oldest(state)
        if slot == NONE or state.slots[slot, POSITION] > until:
            return True
        at = max(reached, state.slots[slot, POSITION] + late)
        if state.slots[slot, PLACE] == POOL and state.meta[POOLED_PERSONS] >= founders and _enough_codes(state, rules):
            state.meta[NEEDED], state.meta[AT] = POOL, at
            return False
        if state.slots[slot, PLACE] == COMPANY:
            state.meta[NEEDED], state.meta[AT] = COMPANY, at
            return False
        suppress(out, state.slots[slot, POSITION], at)
        decided(state, slot)


@kernel
def _is_busy(state: State, rules: Rules, node: int, since: int) -> bool:
    """Whether k members were seen within the delay: then their rows can be expected to find each other."""
    person, busy = state.nodes[node, HEAD], 0
    for _ in range(LOOKED_AT * rules.k):
        if person == NONE or busy == rules.k:
            break
        busy += state.persons[person, ROLE] == MEMBER and state.persons[person, SEEN] > since
        person = state.persons[person, NEXT]
    return busy >= rules.k


@kernel
def _moved(
    state: State, out: Output, space: Geometry, rules: Rules, person: int, row: NDArray[np.float64], position: int
) -> None:
    """A member has left the published box: dismiss them, or let it grow, whichever costs less.

    Growing costs everybody's rows a part, and all of them where k members do not come within one delay.
    """
    node, nodes = state.persons[person, NODE], state.nodes
    grown = np.empty((2, len(row)))
    for attribute in range(len(row)):
        lo = min(state.boxes[node, P_LO, attribute], row[attribute])
        hi = max(state.boxes[node, P_HI, attribute], row[attribute])
        grown[0, attribute], grown[1, attribute] = widened_range(space, attribute, lo, hi)
    loss = box_loss(space, grown[0], grown[1])
    cheap = (loss - state.sizes[node, LOSS]) * nodes[node, COUNT] < 1.0 or nodes[node, COUNT] <= rules.k
    if not (cheap and _is_busy(state, rules, node, position - rules.delta)):
        discount(state, person)
        state.persons[person, ROLE] = DISMISSED
        return
    copy(state.boxes[node, P_LO], grown[0])
    copy(state.boxes[node, P_HI], grown[1])
    state.sizes[node, LOSS] = loss
    if nodes[node, SHOWN]:
        state.ids[node, PARENT] = state.ids[node, ID]
    state.ids[node, ID] = word(out)
    nodes[node, SHOWN] = 0
    nodes[node, MADE] = position
    nodes[node, OPEN] = 1


@kernel
def _again(
    state: State,
    out: Output,
    rules: Rules,
    position: int,
    time: float,
    code: int,
    quasi: NDArray[np.float64],
    codes: NDArray[np.int32],
    index: int,
) -> bool:
    """Whether a row is a member's with the values of the last time, whose cohort publishes: then it leaves."""
    persons, person = state.persons, int(state.buckets[bucket_of(state, code)])
    while person != NONE and persons[person, CODE] != code:
        person = persons[person, CHAIN]
    if person == NONE or persons[person, ROLE] != MEMBER or rules.present:
        return False
    node = persons[person, NODE]
    if state.nodes[node, OPEN] or state.nodes[node, COUNT] < rules.k:
        return False
    for attribute in range(quasi.shape[1]):
        if state.values[person, attribute] != quasi[index, attribute]:
            return False
    persons[person, SEEN] = position
    if rules.memory < np.inf:
        state.times[person] = time
    if rules.most:
        show(state, rules, person, codes[index])
    add(out, position, quasi, index)
    close(state, out, node, position)
    return True


@kernel
def _take(
    state: State,
    out: Output,
    space: Geometry,
    rules: Rules,
    position: int,
    time: float,
    code: int,
    quasi: NDArray[np.float64],
    codes: NDArray[np.int32],
    index: int,
) -> None:
    """Decide a row that comes, or let it wait."""
    persons, nodes, meta = state.persons, state.nodes, state.meta
    row = quasi[index]
    person = meet(state, code)
    role = persons[person, ROLE]
    persons[person, SEEN] = position
    state.times[person] = time
    if role < MEMBER:  # nobody's member yet
        place = persons[person, NODE]
        if role == GONE:
            place = meta[POOLED_PERSONS]
            meta[POOLED_PERSONS] += 1
            state.pool[place] = person
            persons[person, ROLE] = POOLED
            persons[person, NODE] = place
            copy(state.hulls[0, place], row)
            copy(state.hulls[1, place], row)
        for attribute in range(len(row)):
            state.hulls[0, place, attribute] = min(state.hulls[0, place, attribute], row[attribute])
            state.hulls[1, place, attribute] = max(state.hulls[1, place, attribute], row[attribute])
        copy(state.values[person], row)
        node = _joinable(state, rules, state.hulls[0, place], state.hulls[1, place])
        if node == NONE:
            wait(state, person, POOL, position, time, row, codes[index])
            return
        if persons[person, WAITS]:
            # The joining box speaks of now, not of the positions of rows that came before.
            for number in range(meta[BEGIN], meta[END]):
                slot = number & (len(state.slots) - 1)
                if state.slots[slot, PLACE] == POOL and state.slots[slot, PERSON] == person:
                    suppress(out, state.slots[slot, POSITION], position)
                    decided(state, slot)
        unpool(state, person)
        enlist(state, person, node, MEMBER)
        if nodes[node, COUNT] >= nodes[node, TRY] and not nodes[node, OPEN]:
            # Behind this row, which leaves with the box that stands.
            meta[NEEDED], meta[AT] = node, position
    node = persons[person, NODE]
    inside = _contains(state, P_LO, node, row, row)
    if role == MEMBER and not inside:
        _moved(state, out, space, rules, person, row, position)
        inside = _contains(state, P_LO, node, row, row)
    copy(state.values[person], row)
    if not inside or nodes[node, COUNT] < rules.k:
        suppress(out, position, position)
        return
    if nodes[node, OPEN]:
        wait(state, person, node, position, time, row, codes[index])
        if nodes[node, READY] >= rules.k:
            together = waiting_for(state, node)
            if not rules.present or varied(state, rules, together):
                let_out(state, out, rules, node, together, position)
                nodes[node, OPEN] = 0
        return
    if rules.present:
        accompany(state, wait(state, person, POOL, position, time, row, codes[index]), node)
        return
    show(state, rules, person, codes[index])
    add(out, position, quasi, index)
    close(state, out, node, position)


@kernel
def advance(
    state: State,
    out: Output,
    space: Geometry,
    rules: Rules,
    last: int,
    passed: int,
    founders: int,
    done: int,
    overdue: NDArray[np.int64],
    positions: NDArray[np.int64],
    times: NDArray[np.float64],
    whose: NDArray[np.int64],
    quasi: NDArray[np.float64],
    codes: NDArray[np.int32],
) -> int:
    """Take rows from number `done` on; before each of them, and behind the last, decide what is due.

    `overdue` is the position up to which rows are late by their time, before each row and, at its end, behind all of
    them; `last` was taken before the first row, and everything up to `passed` has passed behind the last one.
    It stops early where something is to be divided first (`NEEDED`) or words run short, and says how many rows are
    taken; NONE: everything is done.
    """
    for index in range(done, len(overdue)):
        reached = last if index == 0 else positions[index - 1]
        until = (positions[index] - 1 if index < len(positions) else passed) - rules.delta
        if (
            len(out.words) - out.meta[WORDS] < 2 * state.meta[WAITING] + 2
            or not _due(state, out, rules, overdue[index], founders, reached, 0)
            or not _due(state, out, rules, until, founders, reached, rules.delta)
        ):
            return index
        if index < len(positions):
            position, time, code = positions[index], times[index], whose[index]
            if not _again(state, out, rules, position, time, code, quasi, codes, index):
                _take(state, out, space, rules, position, time, code, quasi, codes, index)
            if rules.memory < np.inf:
                forget(state, rules, times[index])
                forget(state, rules, times[index])
            if state.meta[NEEDED] != NONE:
                return index + 1
    return NONE
