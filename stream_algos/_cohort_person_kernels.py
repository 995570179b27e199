"""Persons of cohorts inside kernels: found by their code, put on lists, counted, forgotten."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import part, prefetch
from stream_algos._cohort_state import (
    ASKING,
    BUCKETS,
    CHAIN,
    CODE,
    COUNT,
    DESERTED,
    FREE,
    GONE,
    HEAD,
    HELD,
    IN_LINE,
    KNOWN,
    LINE,
    MASK,
    MEMBER,
    MEMBERS,
    MORE,
    NEWCOMERS,
    NEXT,
    NODE,
    PERSONS,
    POOLED,
    POOLED_PERSONS,
    PREVIOUS,
    READY,
    ROLE,
    SWEPT,
    TRY,
    UNPLACED,
    WAITS,
    Rules,
    State,
)
from stream_algos._cohort_undo_kernels import note_node
from stream_algos._held_kernels import NONE, copy

SOON = 8
"""So many persons before somebody's turn the memory that this wants is asked for."""


@part
def wide(number: int) -> int:
    """A number out of a table of 32 bits as one of 64: so what it is given to is compiled once."""
    return int(np.int64(number))


@part
def bucket_of(meta: NDArray[np.int64], code: int) -> int:
    """Codes are hashes under a secret key, so nobody can choose them to meet in one bucket."""
    mixed = code ^ (code >> 17)
    bucket = mixed & (2 * meta[MASK] + 1)
    return bucket if bucket < meta[BUCKETS] else mixed & meta[MASK]


@part
def _add_bucket(state: State) -> None:
    """The next bucket takes its part of the one that had it so far."""
    persons, buckets, meta = state.persons, state.buckets, state.meta
    new = meta[BUCKETS]
    old = new - meta[MASK] - 1
    meta[BUCKETS] += 1
    soon = wide(buckets[min(old + SOON, new - 1)])
    if soon != NONE:
        prefetch(state.tags, soon)
        prefetch(persons, soon)
    person = wide(buckets[old])
    buckets[old] = buckets[new] = NONE
    while person != NONE:
        after, bucket = persons[person, CHAIN], bucket_of(meta, state.tags[person, CODE])
        persons[person, CHAIN] = buckets[bucket]
        buckets[bucket] = person
        person = after
    if meta[BUCKETS] == 2 * meta[MASK] + 2:
        meta[MASK] = 2 * meta[MASK] + 1


@part
def is_of(tags: NDArray[np.int64], person: int, whose: NDArray[np.int64], index: int) -> bool:
    """Whether an entry is that of the person of a row: both words of the tag say so."""
    return tags[person, CODE] == whose[index, CODE] and tags[person, MORE] == whose[index, MORE]


@part
def find(state: State, whose: NDArray[np.int64], index: int) -> int:
    """Return the entry of the person of a row, or NONE for an unknown person."""
    person = wide(state.buckets[bucket_of(state.meta, whose[index, CODE])])
    while person != NONE and not is_of(state.tags, person, whose, index):
        person = wide(state.persons[person, CHAIN])
    return person


@part
def meet(state: State, whose: NDArray[np.int64], index: int) -> int:
    """The entry of the person of a row; a new one, in the pool, for somebody unknown."""
    person = find(state, whose, index)
    if person != NONE:
        return person
    meta, persons, code = state.meta, state.persons, whose[index, CODE]
    bucket = bucket_of(meta, code)
    if meta[FREE] != NONE:
        person = meta[FREE]
        meta[FREE] = persons[person, NEXT]
    else:
        person = meta[PERSONS]
        meta[PERSONS] += 1
    meta[KNOWN] += 1
    if meta[KNOWN] > meta[BUCKETS] and meta[BUCKETS] < len(state.buckets):
        _add_bucket(state)
        bucket = bucket_of(meta, code)
    state.tags[person, CODE], state.tags[person, MORE] = code, whose[index, MORE]
    persons[person, ROLE] = GONE  # until it is known where they belong
    persons[person, CHAIN] = state.buckets[bucket]
    state.buckets[bucket] = person
    for place in range(state.shown.shape[1]):
        state.shown[person, place] = NONE
    return person


@part
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


@part
def ask(state: State, rules: Rules, node: int) -> None:
    """Put a cohort that has grown enough into the line of those that are to be split."""
    count, least = state.nodes[node, COUNT], state.nodes[node, TRY]
    if least != IN_LINE and count >= least and (count >= rules.patient or state.meta[NEWCOMERS] < rules.few):
        note_node(state, node)
        state.due[state.meta[ASKING], LINE] = node
        state.nodes[node, TRY] = IN_LINE
        state.meta[ASKING] += 1


@part
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


@part
def discount(state: State, rules: Rules, person: int) -> None:
    """Somebody is not counted any more."""
    node = state.persons[person, NODE]
    state.nodes[node, COUNT] -= 1
    state.meta[MEMBERS] -= 1
    if state.nodes[node, COUNT] + 1 < rules.k:
        state.meta[DESERTED] = 1
    if state.waits[person, WAITS]:
        state.nodes[node, READY] -= 1


@part
def into_pool(state: State, person: int, row: NDArray[np.float64]) -> int:
    """Put somebody into the pool, of whom these are all values that were seen; the place there."""
    place = state.meta[POOLED_PERSONS]
    state.meta[POOLED_PERSONS] += 1
    state.pool[place] = person
    state.persons[person, ROLE] = POOLED
    state.persons[person, NODE] = place
    copy(state.hulls[0, place], row)
    copy(state.hulls[1, place], row)
    return place


@part
def unpool(state: State, person: int) -> None:
    """Take somebody out of the pool; the last one there gets the place."""
    place = state.persons[person, NODE]
    state.meta[POOLED_PERSONS] -= 1
    last = state.meta[POOLED_PERSONS]
    moved = state.pool[last]
    state.pool[place] = moved
    state.persons[moved, NODE] = place
    copy(state.hulls[0, place], state.hulls[0, last])
    copy(state.hulls[1, place], state.hulls[1, last])


@part
def forget(state: State, rules: Rules, now: float) -> None:
    """Forget the next person if they have been silent for too long; who has rows that wait is not."""
    meta, persons = state.meta, state.persons
    if meta[SWEPT] >= meta[PERSONS]:
        meta[SWEPT] = 0
    person = meta[SWEPT]
    meta[SWEPT] += 1
    role = persons[person, ROLE]
    waits = state.waits[person, WAITS] or state.waits[person, HELD]
    if role == GONE or waits or state.times[person] > now - rules.memory:
        return
    if role == POOLED:
        unpool(state, person)
    elif role != UNPLACED:
        if role == MEMBER:
            discount(state, rules, person)
        unlist(state, person)
    bucket = bucket_of(meta, state.tags[person, CODE])
    before, entry = NONE, wide(state.buckets[bucket])
    while entry != person:
        before, entry = entry, wide(persons[entry, CHAIN])
    if before == NONE:
        state.buckets[bucket] = persons[person, CHAIN]
    else:
        persons[before, CHAIN] = persons[person, CHAIN]
    persons[person, ROLE] = GONE
    persons[person, NEXT] = meta[FREE]
    meta[FREE] = person
    meta[KNOWN] -= 1
