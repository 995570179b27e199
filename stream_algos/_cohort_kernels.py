"""Cohorts inside kernels: who belongs to which, what each publishes, and when one is founded, split or grown.

Cohorts are the leaves of binary trees. A node's joining box contains those of all nodes below it, so whoever looks for
the cohorts that somebody may join leaves out most of them at once. As in `_held_kernels`, whole numbers share one table
per kind of thing, with named columns, which numba compiles faster than many arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import Geometry, Schema, box_loss, kernel, widened_range
from stream_algos._held_kernels import NONE, copy

CODE, ROLE, NODE, NEXT, PREVIOUS, WAITS, SEEN, CHAIN = range(8)
"""Columns of `State.persons`: the person as the caller names it, the role, the cohort (of those in the pool: the place
there), neighbours in the cohort's list, waiting rows, the last position, the next person of the same bucket."""

GONE, POOLED, MEMBER, DISMISSED = range(4)
"""Roles: forgotten, without a cohort, counted, in a cohort but never counted again."""

LEFT, RIGHT, CUT, COUNT, HEAD, TRY, OPEN, READY, MADE, SHOWN, AFTER = range(11)
"""Columns of `State.nodes`: children (NONE: a cohort), the quasi-identifier of the cut, members, the first of the
list, members at which a split is tried next, whether its box has grown and nobody left with it yet, members that
wait for that, the position at which the box was made, whether a row left with it, and the next root."""

P_LO, P_HI, J_LO, J_HI = range(4)
"""First index of `State.boxes`: the published box and the joining box."""

ID, PARENT = range(2)
"""Columns of `State.ids`: of the published box, and of the one that the cohort published before (0 for none)."""

LOSS, EDGE = range(2)
"""Columns of `State.sizes`: loss of the published box; where the cut is, as the sum of both ends of a range."""

POSITION, PERSON, PLACE = range(3)
"""Columns of `State.slots`: a waiting row's position, its person, and the cohort that it waits for."""

POOL = -2
"""Place of rows that wait for a cohort to be founded; NONE for decided ones."""

PERSONS, POOLED_PERSONS, NODES, ROOT, BEGIN, END, WAITING, NEEDED, AT, FREE, SWEPT, KNOWN, LEAVES, MEMBERS = range(14)
"""Entries of `State.meta`: entries of `persons` in use, persons in the pool, entries of `nodes` in use, first root,
numbers of the oldest and the next waiting row, rows that wait, what is to be divided now (a cohort or the pool) and the
last position before that, the first free entry of `persons`, where the search for the forgotten goes on, known
persons, cohorts, counted members."""

CLUSTERS, ROWS, SUPPRESSED, WORDS = range(4)
"""Entries of `Output.meta`: how much of each is filled or, for words, used up."""

LOOKED_AT = 64
"""Members per person of k that are looked at to see whether a cohort is busy."""


class Rules(NamedTuple):
    """The parameters, as kernels want them."""

    k: int
    l: int  # noqa: E741 - ℓ is its name in the literature
    delta: int
    founders: int
    memory: float
    """Seconds after which a silent person is forgotten; infinite for never."""


class State(NamedTuple):
    """Everything that is known of persons, cohorts and waiting rows."""

    buckets: NDArray[np.int32]
    persons: NDArray[np.int64]
    times: NDArray[np.float64]
    """When each person was last seen."""
    values: NDArray[np.float64]
    """Last seen quasi-identifiers of each person."""
    shown: NDArray[np.int32]
    """Up to ℓ distinct published values of each sensitive attribute, of each person; NONE where there are fewer."""
    pool: NDArray[np.int64]
    hulls: NDArray[np.float64]
    """For each place of the pool, the least and the greatest values that were seen."""
    nodes: NDArray[np.int64]
    boxes: NDArray[np.float64]
    sizes: NDArray[np.float64]
    ids: NDArray[np.uint64]
    slots: NDArray[np.int64]
    clock: NDArray[np.float64]
    """When each waiting row was taken."""
    quasi: NDArray[np.float64]
    sensitive: NDArray[np.int32]
    tally: NDArray[np.int64]
    """How many rows that wait in the pool have each value of each sensitive attribute; nothing where ℓ is 1."""
    meta: NDArray[np.int64]


class Output(NamedTuple):
    """A release: cluster c holds the rows `starts[c]` to `starts[c + 1]`."""

    ids: NDArray[np.uint64]
    boxes: NDArray[np.float64]
    starts: NDArray[np.int64]
    facts: NDArray[np.int64]
    """Of each cluster: whether the box was published before, members behind it, last position taken."""
    members: NDArray[np.int64]
    quasi: NDArray[np.float64]
    suppressed: NDArray[np.int64]
    """Position, and last position taken."""
    words: NDArray[np.uint64]
    meta: NDArray[np.int64]


def new_state(schema: Schema, l: int, persons: int, pool: int, nodes: int, waiting: int) -> State:  # noqa: E741 - ℓ
    """Nobody is known; with room for so many of each. Room for waiting rows is a power of two."""
    width, sensitive = len(schema.quasi), len(schema.sensitive) if l > 1 else 0
    most = max((one.size or 0 for one in schema.sensitive), default=0) if sensitive else 0
    slots = np.zeros((waiting, 3), np.int64)
    slots[:, PLACE] = NONE
    meta = np.zeros(14, np.int64)
    meta[ROOT] = meta[NEEDED] = meta[FREE] = NONE
    return State(
        buckets=np.full(1 << (persons - 1).bit_length(), NONE, np.int32),
        persons=np.zeros((persons, 8), np.int64),
        times=np.zeros(persons),
        values=np.zeros((persons, width)),
        shown=np.full((persons, sensitive * l), NONE, np.int32),
        pool=np.zeros(pool, np.int64),
        hulls=np.zeros((2, pool, width)),
        nodes=np.zeros((nodes, 11), np.int64),
        boxes=np.zeros((4, nodes, width)),
        sizes=np.zeros((nodes, 2)),
        ids=np.zeros((nodes, 2), np.uint64),
        slots=slots,
        clock=np.zeros(waiting),
        quasi=np.zeros((waiting, width)),
        sensitive=np.zeros((waiting, len(schema.sensitive)), np.int32),
        tally=np.zeros((sensitive, most), np.int64),
        meta=meta,
    )


def new_output(rows: int, width: int) -> Output:
    """Buffers for so many rows."""
    return Output(
        ids=np.zeros((rows, 2), np.uint64),
        boxes=np.zeros((2, rows, width)),
        starts=np.zeros(rows + 1, np.int64),
        facts=np.zeros((rows, 3), np.int64),
        members=np.zeros(rows, np.int64),
        quasi=np.zeros((rows, width)),
        suppressed=np.zeros((rows, 2), np.int64),
        words=np.empty(0, np.uint64),
        meta=np.zeros(4, np.int64),
    )


@kernel
def _bucket(state: State, code: int) -> int:
    """Codes are hashes under a secret key, so nobody can choose them to meet in one bucket."""
    return (code ^ (code >> 17)) & (len(state.buckets) - 1)


def find_again(state: State) -> None:
    """Put everybody into the buckets of a new state."""
    known = np.flatnonzero(state.persons[: state.meta[PERSONS], ROLE] != GONE)
    codes = state.persons[known, CODE]
    buckets = (codes ^ (codes >> 17)) & (len(state.buckets) - 1)
    order = np.argsort(buckets, kind="stable")
    known, buckets = known[order], buckets[order]
    last = np.append(buckets[1:] != buckets[:-1], True)[: len(known)]
    state.persons[known, CHAIN] = np.where(last, NONE, np.roll(known, -1))
    first = np.append(True, last[:-1])[: len(known)]
    state.buckets[buckets[first]] = known[first]


@kernel
def _meet(state: State, code: int) -> int:
    """The entry of a person; a new one, in the pool, for somebody unknown."""
    persons, bucket = state.persons, _bucket(state, code)
    person = int(state.buckets[bucket])
    while person != NONE and persons[person, CODE] != code:
        person = persons[person, CHAIN]
    if person != NONE:
        return person
    meta = state.meta
    if meta[FREE] != NONE:
        person = meta[FREE]
        meta[FREE] = persons[person, NEXT]
    else:
        person = meta[PERSONS]
        meta[PERSONS] += 1
    meta[KNOWN] += 1
    persons[person, CODE] = code
    persons[person, ROLE] = GONE  # until it is known where they belong
    persons[person, WAITS] = 0
    persons[person, CHAIN] = state.buckets[bucket]
    state.buckets[bucket] = person
    for index in range(state.shown.shape[1]):
        state.shown[person, index] = NONE
    return person


@kernel
def enlist(state: State, person: int, node: int, role: int) -> None:
    """Put somebody into the list of a cohort."""
    persons, nodes = state.persons, state.nodes
    head = nodes[node, HEAD]
    persons[person, ROLE] = role
    persons[person, NODE] = node
    persons[person, NEXT] = head
    persons[person, PREVIOUS] = NONE
    if head != NONE:
        persons[head, PREVIOUS] = person
    nodes[node, HEAD] = person
    if role == MEMBER:
        nodes[node, COUNT] += 1
        state.meta[MEMBERS] += 1


@kernel
def unlist(state: State, person: int) -> None:
    """Take somebody out of the list of their cohort."""
    persons, node = state.persons, state.persons[person, NODE]
    before, after = persons[person, PREVIOUS], persons[person, NEXT]
    if before != NONE:
        persons[before, NEXT] = after
    else:
        state.nodes[node, HEAD] = after
    if after != NONE:
        persons[after, PREVIOUS] = before


@kernel
def _discount(state: State, person: int) -> None:
    """Somebody is not counted any more."""
    node = state.persons[person, NODE]
    state.nodes[node, COUNT] -= 1
    state.meta[MEMBERS] -= 1
    if state.persons[person, WAITS]:
        state.nodes[node, READY] -= 1


@kernel
def _unpool(state: State, person: int) -> None:
    """Take somebody out of the pool; the last one there gets the place."""
    place = state.persons[person, NODE]
    state.meta[POOLED_PERSONS] -= 1
    last = state.meta[POOLED_PERSONS]
    moved = state.pool[last]
    state.pool[place] = moved
    state.persons[moved, NODE] = place
    copy(state.hulls[0, place], state.hulls[0, last])
    copy(state.hulls[1, place], state.hulls[1, last])


@kernel
def _forget(state: State, rules: Rules, now: float) -> None:
    """Forget the next person if they have been silent for too long; who has rows that wait is not."""
    meta, persons = state.meta, state.persons
    if meta[SWEPT] >= meta[PERSONS]:
        meta[SWEPT] = 0
    person = meta[SWEPT]
    meta[SWEPT] += 1
    role = persons[person, ROLE]
    if role == GONE or persons[person, WAITS] or state.times[person] > now - rules.memory:
        return
    if role == POOLED:
        _unpool(state, person)
    else:
        if role == MEMBER:
            _discount(state, person)
        unlist(state, person)
    bucket = _bucket(state, persons[person, CODE])
    before, entry = NONE, int(state.buckets[bucket])
    while entry != person:
        before, entry = entry, persons[entry, CHAIN]
    if before == NONE:
        state.buckets[bucket] = persons[person, CHAIN]
    else:
        persons[before, CHAIN] = persons[person, CHAIN]
    persons[person, ROLE] = GONE
    persons[person, NEXT] = meta[FREE]
    meta[FREE] = person
    meta[KNOWN] -= 1


@kernel
def _contains(state: State, side: int, node: int, lo: NDArray[np.float64], hi: NDArray[np.float64]) -> bool:
    """Whether a box of a node (the published or the joining one) contains a range of values."""
    boxes = state.boxes
    for attribute in range(len(lo)):
        if lo[attribute] < boxes[side, node, attribute] or hi[attribute] > boxes[side + 1, node, attribute]:
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
def word(out: Output) -> np.uint64:
    out.meta[WORDS] += 1
    return out.words[out.meta[WORDS] - 1]


@kernel
def show(state: State, rules: Rules, person: int, sensitive: NDArray[np.int32]) -> None:
    """Remember that a person's row leaves with these values."""
    shown = state.shown[person]
    for attribute in range(state.tally.shape[0]):
        place = attribute * rules.l
        end = place + rules.l
        while place < end and shown[place] != NONE and shown[place] != sensitive[attribute]:
            place += 1
        if place < end:
            shown[place] = sensitive[attribute]


@kernel
def _add(out: Output, position: int, quasi: NDArray[np.float64], index: int) -> None:
    """One more row leaves: its values are at an index. Every row comes by here, so no array is made."""
    row = out.meta[ROWS]
    out.members[row] = position
    for attribute in range(quasi.shape[1]):
        out.quasi[row, attribute] = quasi[index, attribute]
    out.meta[ROWS] += 1


@kernel
def _close(state: State, out: Output, node: int, reached: int) -> None:
    """The rows that were added last leave with the published box of a cohort."""
    cluster = out.meta[CLUSTERS]
    out.ids[cluster, ID] = state.ids[node, ID]
    out.ids[cluster, PARENT] = state.ids[node, PARENT]
    for attribute in range(out.boxes.shape[2]):
        out.boxes[0, cluster, attribute] = state.boxes[P_LO, node, attribute]
        out.boxes[1, cluster, attribute] = state.boxes[P_HI, node, attribute]
    out.facts[cluster, 0] = state.nodes[node, SHOWN]
    out.facts[cluster, 1] = state.nodes[node, COUNT]
    out.facts[cluster, 2] = reached
    out.meta[CLUSTERS] += 1
    out.starts[out.meta[CLUSTERS]] = out.meta[ROWS]
    state.nodes[node, SHOWN] = 1


@kernel
def _suppress(out: Output, position: int, reached: int) -> None:
    out.suppressed[out.meta[SUPPRESSED], 0] = position
    out.suppressed[out.meta[SUPPRESSED], 1] = reached
    out.meta[SUPPRESSED] += 1


@kernel
def _wait(
    state: State,
    person: int,
    place: int,
    position: int,
    time: float,
    quasi: NDArray[np.float64],
    sensitive: NDArray[np.int32],
) -> None:
    """A row waits, for a cohort or for company. The caller has seen to room."""
    meta = state.meta
    slot = meta[END] & (len(state.slots) - 1)
    meta[END] += 1
    meta[WAITING] += 1
    state.slots[slot, POSITION] = position
    state.slots[slot, PERSON] = person
    state.slots[slot, PLACE] = place
    state.clock[slot] = time
    copy(state.quasi[slot], quasi)
    copy(state.sensitive[slot], sensitive)
    state.persons[person, WAITS] += 1
    if place != POOL:
        state.nodes[place, READY] += state.persons[person, WAITS] == 1 and state.persons[person, ROLE] == MEMBER
    else:
        for attribute in range(state.tally.shape[0]):
            state.tally[attribute, sensitive[attribute]] += 1


@kernel
def _decided(state: State, slot: int) -> None:
    """A row waits no longer."""
    person, place = state.slots[slot, PERSON], state.slots[slot, PLACE]
    state.slots[slot, PLACE] = NONE
    state.meta[WAITING] -= 1
    state.persons[person, WAITS] -= 1
    if place != POOL:
        state.nodes[place, READY] -= state.persons[person, WAITS] == 0 and state.persons[person, ROLE] == MEMBER
    else:
        for attribute in range(state.tally.shape[0]):
            state.tally[attribute, state.sensitive[slot, attribute]] -= 1


@kernel
def _oldest(state: State) -> int:
    """Slot of the row that has waited longest, NONE where none waits."""
    meta = state.meta
    while meta[BEGIN] < meta[END]:
        slot = meta[BEGIN] & (len(state.slots) - 1)
        if state.slots[slot, PLACE] != NONE:
            return slot
        meta[BEGIN] += 1
    return NONE


@kernel
def let_out(state: State, out: Output, rules: Rules, node: int, slots: NDArray[np.int64], reached: int) -> None:
    """These waiting rows of a cohort leave together, shuffled."""
    first = out.meta[ROWS]
    for slot in slots:
        show(state, rules, state.slots[slot, PERSON], state.sensitive[slot])
        other = first + int(word(out) % np.uint64(out.meta[ROWS] + 1 - first))
        _add(out, out.members[other], out.quasi, other)
        out.members[other] = state.slots[slot, POSITION]
        copy(out.quasi[other], state.quasi[slot])
        _decided(state, slot)
    _close(state, out, node, reached)


@kernel
def waiting_for(state: State, place: int) -> NDArray[np.int64]:
    """Slots of the rows that wait at a place, oldest first."""
    found, count = np.empty(state.meta[WAITING], np.int64), 0
    for number in range(state.meta[BEGIN], state.meta[END]):
        slot = number & (len(state.slots) - 1)
        if state.slots[slot, PLACE] == place:
            found[count] = slot
            count += 1
    return found[:count]


@kernel
def _enough_values(state: State, rules: Rules) -> bool:
    """Whether the rows that wait in the pool have ℓ values of every sensitive attribute."""
    for attribute in range(state.tally.shape[0]):
        found = 0
        for value in range(state.tally.shape[1]):
            found += state.tally[attribute, value] > 0
            if found == rules.l:
                break
        if found < rules.l:
            return False
    return True


@kernel
def _due(state: State, out: Output, rules: Rules, until: int, founders: int, reached: int, late: int) -> bool:
    """Suppress the rows up to a position, oldest first; False where the pool is to be divided instead.

    That happens when `reached` was the last position, or so many (`late`) behind the row that is due.
    """
    while True:
        slot = _oldest(state)
        if slot == NONE or state.slots[slot, POSITION] > until:
            return True
        at = max(reached, state.slots[slot, POSITION] + late)
        if state.slots[slot, PLACE] == POOL and state.meta[POOLED_PERSONS] >= founders and _enough_values(state, rules):
            state.meta[NEEDED], state.meta[AT] = POOL, at
            return False
        _suppress(out, state.slots[slot, POSITION], at)
        _decided(state, slot)


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
        lo = min(state.boxes[P_LO, node, attribute], row[attribute])
        hi = max(state.boxes[P_HI, node, attribute], row[attribute])
        grown[0, attribute], grown[1, attribute] = widened_range(space, attribute, lo, hi)
    loss = box_loss(space, grown[0], grown[1])
    cheap = (loss - state.sizes[node, LOSS]) * nodes[node, COUNT] < 1.0 or nodes[node, COUNT] <= rules.k
    if not (cheap and _is_busy(state, rules, node, position - rules.delta)):
        _discount(state, person)
        state.persons[person, ROLE] = DISMISSED
        return
    copy(state.boxes[P_LO, node], grown[0])
    copy(state.boxes[P_HI, node], grown[1])
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
    sensitive: NDArray[np.int32],
    index: int,
) -> bool:
    """Whether a row is a member's with the values of the last time, whose cohort publishes: then it leaves."""
    persons, person = state.persons, int(state.buckets[_bucket(state, code)])
    while person != NONE and persons[person, CODE] != code:
        person = persons[person, CHAIN]
    if person == NONE or persons[person, ROLE] != MEMBER:
        return False
    node = persons[person, NODE]
    if state.nodes[node, OPEN] or state.nodes[node, COUNT] < rules.k:
        return False
    for attribute in range(quasi.shape[1]):
        if state.values[person, attribute] != quasi[index, attribute]:
            return False
    persons[person, SEEN] = position
    state.times[person] = time
    if rules.l > 1:
        show(state, rules, person, sensitive[index])
    _add(out, position, quasi, index)
    _close(state, out, node, position)
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
    sensitive: NDArray[np.int32],
    index: int,
) -> None:
    """Decide a row that comes, or let it wait."""
    persons, nodes, meta = state.persons, state.nodes, state.meta
    row = quasi[index]
    person = _meet(state, code)
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
            _wait(state, person, POOL, position, time, row, sensitive[index])
            return
        if persons[person, WAITS]:
            # The joining box speaks of now, not of the positions of rows that came before.
            for number in range(meta[BEGIN], meta[END]):
                slot = number & (len(state.slots) - 1)
                if state.slots[slot, PLACE] == POOL and state.slots[slot, PERSON] == person:
                    _suppress(out, state.slots[slot, POSITION], position)
                    _decided(state, slot)
        _unpool(state, person)
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
        _suppress(out, position, position)
        return
    if nodes[node, OPEN]:
        _wait(state, person, node, position, time, row, sensitive[index])
        if nodes[node, READY] >= rules.k:
            let_out(state, out, rules, node, waiting_for(state, node), position)
            nodes[node, OPEN] = 0
        return
    show(state, rules, person, sensitive[index])
    _add(out, position, quasi, index)
    _close(state, out, node, position)


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
    codes: NDArray[np.int64],
    quasi: NDArray[np.float64],
    sensitive: NDArray[np.int32],
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
            len(out.words) - out.meta[WORDS] < state.meta[WAITING] + 2
            or not _due(state, out, rules, overdue[index], founders, reached, 0)
            or not _due(state, out, rules, until, founders, reached, rules.delta)
        ):
            return index
        if index < len(positions):
            position, time, code = positions[index], times[index], codes[index]
            if not _again(state, out, rules, position, time, code, quasi, sensitive, index):
                _take(state, out, space, rules, position, time, code, quasi, sensitive, index)
            if rules.memory < np.inf:
                _forget(state, rules, times[index])
                _forget(state, rules, times[index])
            if state.meta[NEEDED] != NONE:
                return index + 1
    return NONE
