"""Cohorts inside kernels: whom a row belongs to, whether it leaves or waits, and what is due before it.

Cohorts are the leaves of binary trees. A node's joining box contains those of all nodes below it, so whoever looks for
the cohorts that somebody may join leaves out most of them at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import Geometry, borrowed, box_loss, kernel, part, prefetch, widened_range
from stream_algos._cohort_mark_kernels import mark
from stream_algos._cohort_person_kernels import (
    ask,
    bucket_of,
    discount,
    enlist,
    find,
    forget,
    into_pool,
    is_of,
    meet,
    unpool,
    wide,
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
from stream_algos._cohort_search_kernels import contains, search
from stream_algos._cohort_split_kernels import divide, may_divide
from stream_algos._cohort_state import (
    ASKING,
    AT,
    BEGIN,
    CHAIN,
    CLUSTERS,
    CODE,
    COMPANY,
    COUNT,
    DESERTED,
    DISMISSED,
    END,
    GONE,
    HEAD,
    ID,
    IN_LINE,
    J_HI,
    J_LO,
    LEFT,
    LOOKED_AT,
    LOSS,
    LOWEST,
    MADE,
    MANY,
    MEMBER,
    MOST_POOLED,
    NEEDED,
    NEWCOMERS,
    NEXT,
    NODE,
    OF_LATE,
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
    ROLE,
    ROOT,
    ROWS,
    SEEN,
    SHOWN,
    SOUGHT,
    SPLITS,
    STRETCH,
    STRETCH_BITS,
    TRY,
    UNPLACED,
    UNSURE,
    WAITING,
    WAITS,
    WORDS,
    Output,
    Rules,
    State,
)
from stream_algos._cohort_undo_kernels import note_node
from stream_algos._cohort_value_kernels import has_values, put_values
from stream_algos._company_kernels import varied
from stream_algos._held_kernels import NONE, copy

AHEAD = 3
"""Rows before its turn that what a row's person changes is asked for; what leads there, as many earlier."""


@part
def _joinable(
    state: State, space: Geometry, rules: Rules, joins: int, lo: NDArray[np.float64], hi: NDArray[np.float64]
) -> int:
    """The cohort that somebody joins all of whose values are in a range, if it is not known already (UNSURE).

    Where none publishes with them, one that is still silent then: else it would be so for good.
    """
    tables, found, row = (state.nodes, state.sizes, state.boxes, state.marks), np.full(1, joins), np.zeros(1, np.int64)
    if joins == UNSURE:
        search(*tables, space, state.meta[ROOT], rules.k, lo, hi, row, found)
    if found[0] == NONE and state.meta[DESERTED]:
        search(*tables, space, state.meta[ROOT], 1, lo, hi, row, found)
    return found[0]


@part
def _seek(
    state: State,
    out: Output,
    space: Geometry,
    rules: Rules,
    reached: int,
    index: int,
    positions: NDArray[np.int64],
    quasi: NDArray[np.float64],
    who: NDArray[np.int64],
    rejected: NDArray[np.bool_],
) -> None:
    """Look for the cohorts of all who are unknown, from a row on, until cohorts may be split."""
    rows, count, end = np.empty((1 << STRETCH_BITS) + 1, np.int64), 0, index
    while end < len(positions) and (end == index or positions[end - 1] >> STRETCH_BITS == reached >> STRETCH_BITS):
        out.sought[end] = UNSURE
        if who[end] == NONE and not rejected[end]:
            rows[count] = end
            count += 1
        end += 1
    tables = (state.nodes, state.sizes, state.boxes, state.marks)
    search(*tables, space, state.meta[ROOT], rules.k, quasi, quasi, rows[:count], out.sought)
    out.meta[SOUGHT] = end


@part
def _ask_ahead(
    nodes: NDArray[np.int64],
    boxes: NDArray[np.float64],
    ids: NDArray[np.uint64],
    persons: NDArray[np.int32],
    sought: NDArray[np.int64],
    index: int,
) -> None:
    """Ask for the memory of the cohorts that new persons join some rows later: it takes about as long as these rows."""
    if index + 2 * AHEAD < len(sought) and sought[index + 2 * AHEAD] >= 0:
        node = sought[index + 2 * AHEAD]
        prefetch(nodes, node)
        prefetch(nodes, node, SHOWN)
        prefetch(ids, node)
        for side in range(4):
            prefetch(boxes, node, side)
    if index + AHEAD < len(sought) and sought[index + AHEAD] >= 0:
        head = nodes[sought[index + AHEAD], HEAD]
        if head != NONE:
            prefetch(persons, head)


@part
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


@part
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


@part
def _is_busy(state: State, rules: Rules, node: int, since: int) -> bool:
    """Whether k members were seen within the delay: then their rows can be expected to find each other."""
    person, busy = state.nodes[node, HEAD], 0
    for _ in range(LOOKED_AT * rules.k):
        if person == NONE or busy == rules.k:
            break
        busy += state.persons[person, ROLE] == MEMBER and state.tags[person, SEEN] > since
        person = state.persons[person, NEXT]
    return busy >= rules.k


@part
def _moved(
    state: State, out: Output, space: Geometry, rules: Rules, person: int, row: NDArray[np.float64], position: int
) -> None:
    """A member has left the published box: dismiss them, or let it grow, whichever costs less.

    Growing costs everybody's rows a part, and all of them where k members do not come within one delay.
    """
    node, nodes = wide(state.persons[person, NODE]), state.nodes
    grown = np.empty((2, len(row)))
    for attribute in range(len(row)):
        lo = min(state.boxes[node, P_LO, attribute], row[attribute])
        hi = max(state.boxes[node, P_HI, attribute], row[attribute])
        grown[0, attribute], grown[1, attribute] = widened_range(space, attribute, lo, hi)
    loss = box_loss(space, grown[0], grown[1])
    cheap = (loss - state.sizes[node, LOSS]) * nodes[node, COUNT] < 1.0 or nodes[node, COUNT] <= rules.k
    if not (cheap and _is_busy(state, rules, node, position - rules.delta)):
        discount(state, rules, person)
        state.persons[person, ROLE] = DISMISSED
        return
    note_node(state, node)
    copy(state.boxes[node, P_LO], grown[0])
    copy(state.boxes[node, P_HI], grown[1])
    state.sizes[node, LOSS] = state.sizes[node, LOWEST] = loss
    mark(state, space, node)
    if nodes[node, SHOWN]:
        state.ids[node, PARENT] = state.ids[node, ID]
    state.ids[node, ID] = word(out)
    nodes[node, SHOWN] = 0
    nodes[node, MADE] = position
    nodes[node, OPEN] = 1
    for sought in range(out.meta[SOUGHT]):
        if out.sought[sought] == node:  # it loses more now
            out.sought[sought] = UNSURE


@part
def _pass_known(
    state: State,
    out: Output,
    rules: Rules,
    index: int,
    last: int,
    overdue: NDArray[np.int64],
    positions: NDArray[np.int64],
    times: NDArray[np.float64],
    whose: NDArray[np.int64],
    quasi: NDArray[np.float64],
    codes: NDArray[np.int32],
    who: NDArray[np.int64],
    rejected: NDArray[np.bool_],
) -> int:
    """Let rows leave, from a number on, as long as they are members' with the values of the last time; up to which.

    It ends where anything else may be due. Nearly every row of people who come back passes here, so it is one loop with
    hardly a call, which would cost more than all that is done for a row.
    """
    persons, nodes, boxes, meta = state.persons, state.nodes, state.boxes, state.meta
    narrow, exact, lows = state.narrow, state.exact, state.lows
    width, due, row, cluster = quasi.shape[1], np.iinfo(np.int64).max, out.meta[ROWS], out.meta[CLUSTERS]
    slot = oldest(state)
    if slot != NONE:
        due = state.slots[slot, POSITION]
    while index < len(positions) and meta[POOLED_PERSONS] < MOST_POOLED:
        position, person = positions[index], who[index]
        reached = last if index == 0 else positions[index - 1]
        if person == NONE or not is_of(state.tags, person, whose, index) or persons[person, ROLE] != MEMBER:
            break
        if rejected[index]:
            break
        if overdue[index] >= due or position - 1 - rules.delta >= due:
            break
        if meta[ASKING] and meta[STRETCH] != reached >> STRETCH_BITS:
            break
        node = wide(persons[person, NODE])
        company = nodes[node, COUNT]
        if nodes[node, OPEN] or company < rules.k:
            break
        if not has_values(narrow, exact, lows, person, quasi, index):
            break
        for attribute in range(width):
            lo, hi = boxes[node, P_LO, attribute], boxes[node, P_HI, attribute]
            if boxes[node, J_LO, attribute] < lo or boxes[node, J_HI, attribute] > hi:
                company = 0
            out.boxes[0, cluster, attribute], out.boxes[1, cluster, attribute] = lo, hi
            out.quasi[row, attribute] = quasi[index, attribute]
        out.ids[cluster, ID], out.ids[cluster, PARENT] = state.ids[node, ID], state.ids[node, PARENT]
        out.facts[cluster, 0], out.facts[cluster, 1], out.facts[cluster, 2] = nodes[node, SHOWN], company, position
        out.facts[cluster, 3] = node
        out.members[row] = position
        if not nodes[node, SHOWN]:
            note_node(state, node)
            nodes[node, SHOWN] = 1
        state.tags[person, SEEN] = position
        meta[NEWCOMERS] += -meta[NEWCOMERS] >> OF_LATE
        if meta[NEWCOMERS] < rules.few and nodes[node, COUNT] >= nodes[node, TRY] > IN_LINE:
            ask(state, rules, node)
        cluster, row, index = cluster + 1, row + 1, index + 1
        out.starts[cluster] = row
        if rules.most:
            show(state, rules, person, codes[index - 1])
        if rules.memory < np.inf:
            state.times[person] = times[index - 1]
            forget(state, rules, times[index - 1])
            forget(state, rules, times[index - 1])
    out.meta[ROWS], out.meta[CLUSTERS] = row, cluster
    return index


@part
def _give_up(state: State, out: Output, person: int, position: int) -> None:
    """Suppress the rows of a person that wait in the pool."""
    meta = state.meta
    if not state.waits[person, WAITS]:
        return
    for number in range(meta[BEGIN], meta[END]):
        slot = number & (len(state.slots) - 1)
        if state.slots[slot, PLACE] == POOL and state.slots[slot, PERSON] == person:
            suppress(out, state.slots[slot, POSITION], position)
            decided(state, slot)


@part
def _observe(
    state: State,
    out: Output,
    rules: Rules,
    position: int,
    time: float,
    whose: NDArray[np.int64],
    quasi: NDArray[np.float64],
    index: int,
) -> None:
    """Update what is known of the person of a rejected event, which is never published.

    A value that cannot be read is NaN, and lies in no box. A member who is not inside the published box is dismissed. A
    person in the pool whose values cannot be read leaves it, because no founded box is known to contain them. A new
    person enters the pool, unless nothing is known of their values yet.
    """
    persons, row, person, readable = state.persons, quasi[index], find(state, whose, index), True
    for attribute in range(len(row)):
        readable &= not np.isnan(row[attribute])
    if person == NONE and not readable:
        return
    if person == NONE:
        person = meet(state, whose, index)
        into_pool(state, person, row)
    state.tags[person, SEEN] = position
    if rules.memory < np.inf:
        state.times[person] = time
    role = persons[person, ROLE]
    if role == POOLED and readable:
        place = wide(persons[person, NODE])
        for attribute in range(len(row)):
            state.hulls[0, place, attribute] = min(state.hulls[0, place, attribute], row[attribute])
            state.hulls[1, place, attribute] = max(state.hulls[1, place, attribute], row[attribute])
    elif role == POOLED:
        _give_up(state, out, person, position)
        unpool(state, person)
        persons[person, ROLE], persons[person, NODE] = UNPLACED, NONE
    elif role == MEMBER and not contains(state.boxes, P_LO, wide(persons[person, NODE]), quasi, quasi, index):
        discount(state, rules, person)
        persons[person, ROLE] = DISMISSED
    put_values(state.narrow, state.exact, state.lows, person, row)


@part
def _take(
    state: State,
    out: Output,
    space: Geometry,
    rules: Rules,
    position: int,
    time: float,
    whose: NDArray[np.int64],
    quasi: NDArray[np.float64],
    codes: NDArray[np.int32],
    index: int,
    joins: int,
) -> None:
    """Decide a row that comes, or let it wait; whoever is new joins a cohort that was found before."""
    persons, nodes, meta = state.persons, state.nodes, state.meta
    row = quasi[index]
    person = meet(state, whose, index)
    role = persons[person, ROLE]
    state.tags[person, SEEN] = position
    if rules.memory < np.inf:
        state.times[person] = time
    meta[NEWCOMERS] += ((MANY if role == GONE else 0) - meta[NEWCOMERS]) >> OF_LATE
    if role == UNPLACED:
        own = quasi[index : index + 1]
        node = _joinable(state, space, rules, UNSURE, own, own)
        put_values(state.narrow, state.exact, state.lows, person, row)
        if node == NONE or nodes[node, COUNT] < rules.k:
            suppress(out, position, position)
            return
        enlist(state, person, node, DISMISSED)
    elif role < MEMBER:  # nobody's member yet
        place, node = wide(persons[person, NODE]), NONE
        if role == GONE:
            node, own = joins, quasi[index : index + 1]
            if node >= 0 and nodes[node, COUNT] + 1 < rules.k:
                node = UNSURE
            if node == UNSURE or (node == NONE and meta[DESERTED]):
                node = _joinable(state, space, rules, node, own, own)
            if node == NONE:
                place = into_pool(state, person, row)
        else:
            for attribute in range(len(row)):
                state.hulls[0, place, attribute] = min(state.hulls[0, place, attribute], row[attribute])
                state.hulls[1, place, attribute] = max(state.hulls[1, place, attribute], row[attribute])
            lo, hi = state.hulls[0, place : place + 1], state.hulls[1, place : place + 1]
            node = _joinable(state, space, rules, UNSURE, lo, hi)
        put_values(state.narrow, state.exact, state.lows, person, row)
        if node == NONE:
            wait(state, person, POOL, position, time, row, codes[index])
            return
        # The joining box speaks of now, not of the positions of rows that came before.
        _give_up(state, out, person, position)
        if role == POOLED:
            unpool(state, person)
        enlist(state, person, node, MEMBER)
        if nodes[node, COUNT] < rules.k:  # those who are looked for together may find it by now
            out.meta[SOUGHT] = 0
        ask(state, rules, node)  # behind this row, which leaves with the box that stands
    node = wide(persons[person, NODE])
    inside = contains(state.boxes, P_LO, node, quasi, quasi, index)
    if role == MEMBER and not inside:
        _moved(state, out, space, rules, person, row, position)
        inside = contains(state.boxes, P_LO, node, quasi, quasi, index)
    put_values(state.narrow, state.exact, state.lows, person, row)
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
    if rules.most:
        show(state, rules, person, codes[index])
    add(out, position, quasi, index)
    close(state, out, node, position)


@kernel
def look_up(state: State, whose: NDArray[np.int64], who: NDArray[np.int64]) -> float:
    """Find the entries of those who are known, NONE for the others.

    Each step is taken for all rows before the next one, and reads what will be wanted: so the processor waits for the
    memory of many rows at once, and not for one after the other. The sum of what was read says nothing.
    """
    persons, nodes, boxes, meta, read = state.persons, state.nodes, state.boxes, state.meta, 0.0
    for index in range(len(whose)):
        who[index] = state.buckets[bucket_of(meta, whose[index, CODE])]
    for index in range(len(whose)):
        if who[index] != NONE:
            prefetch(state.tags, who[index])
            prefetch(persons, who[index])
    for index in range(len(whose)):
        person = who[index]
        while person != NONE and not is_of(state.tags, person, whose, index):
            person = wide(persons[person, CHAIN])
        who[index] = person
    for index in range(len(whose)):
        person = who[index]
        if person != NONE and persons[person, ROLE] == MEMBER:
            node = persons[person, NODE]
            prefetch(state.ids, node)
            read += state.narrow[person, 0] + nodes[node, LEFT] + nodes[node, SHOWN]
            for side in range(4):
                read += boxes[node, side, 0]
    return read


@part
def _divides(state: State, rules: Rules, founders: int, reached: int) -> bool:
    """Whether something is to be divided before the next row, though nothing is due: a full pool, or cohorts."""
    meta = state.meta
    if meta[POOLED_PERSONS] >= max(MOST_POOLED, founders) and _enough_codes(state, rules):
        meta[NEEDED], meta[AT] = POOL, reached
        return True
    if meta[ASKING] and meta[STRETCH] != reached >> STRETCH_BITS:
        meta[NEEDED], meta[AT], meta[STRETCH] = SPLITS, reached, reached >> STRETCH_BITS
        return True
    return False


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
    who: NDArray[np.int64],
    rejected: NDArray[np.bool_],
) -> int:
    """Take rows from number `done` on; before each of them, and behind the last, decide what is due.

    A row of a rejected event is only observed.

    `overdue` is the position up to which rows are late by their time, before each row and, at its end, behind all of
    them; `last` was taken before the first row, and everything up to `passed` has passed behind the last one. `who` was
    known before all of them.
    It stops early where a row gathers company, or something is to be divided (`NEEDED`) and there is no room for it, or
    words run short, and says how many rows are taken; NONE: everything is done.
    """
    state, out, space, rules = borrowed(state), borrowed(out), borrowed(space), borrowed(rules)
    overdue, positions, times, whose = borrowed(overdue), borrowed(positions), borrowed(times), borrowed(whose)
    quasi, codes, who, rejected = borrowed(quasi), borrowed(codes), borrowed(who), borrowed(rejected)
    index = done
    while index < len(overdue):
        if state.meta[NEEDED] != NONE:
            if state.meta[NEEDED] == COMPANY or not may_divide(state, out, rules, len(positions)):
                return index
            divide(state, out, space, rules)
        if index < len(positions) and who[index] != NONE and not rules.present:
            index = _pass_known(
                state, out, rules, index, last, overdue, positions, times, whose, quasi, codes, who, rejected
            )
        reached = last if index == 0 else positions[index - 1]
        until = (positions[index] - 1 if index < len(positions) else passed) - rules.delta
        if len(out.words) - out.meta[WORDS] < 2 * state.meta[WAITING] + 2:
            return index
        asks = state.meta[ASKING] or state.meta[POOLED_PERSONS] >= MOST_POOLED
        if asks and _divides(state, rules, founders, reached):
            continue
        if state.meta[WAITING]:
            first = state.slots[state.meta[BEGIN] & (len(state.slots) - 1), POSITION]
            if (first <= overdue[index] and not _due(state, out, rules, overdue[index], founders, reached, 0)) or (
                first <= until and not _due(state, out, rules, until, founders, reached, rules.delta)
            ):
                continue
        if index < len(positions):
            joins = UNSURE
            if who[index] == NONE and not rejected[index]:
                if out.meta[SOUGHT] <= index:
                    _seek(state, out, space, rules, reached, index, positions, quasi, who, rejected)
                joins = out.sought[index]
                _ask_ahead(state.nodes, state.boxes, state.ids, state.persons, out.sought[: out.meta[SOUGHT]], index)
            if rejected[index]:
                _observe(state, out, rules, positions[index], times[index], whose, quasi, index)
            else:
                _take(state, out, space, rules, positions[index], times[index], whose, quasi, codes, index, joins)
            if rules.memory < np.inf:
                forget(state, rules, times[index])
                forget(state, rules, times[index])
        index += 1
    return NONE
