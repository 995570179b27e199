"""Persons of cohorts inside kernels: found by their code, put on lists, counted, forgotten."""

from __future__ import annotations

import numpy as np

from microdata import kernel
from stream_algos._cohort_state import (
    CHAIN,
    CODE,
    COUNT,
    FREE,
    GONE,
    HEAD,
    HELD,
    KNOWN,
    MEMBER,
    MEMBERS,
    NEXT,
    NODE,
    PERSONS,
    POOLED,
    POOLED_PERSONS,
    PREVIOUS,
    READY,
    ROLE,
    SWEPT,
    WAITS,
    Rules,
    State,
)
from stream_algos._held_kernels import NONE, copy


@kernel
def bucket_of(state: State, code: int) -> int:
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
def meet(state: State, code: int) -> int:
    """The entry of a person; a new one, in the pool, for somebody unknown."""
    persons, bucket = state.persons, bucket_of(state, code)
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
    persons[person, WAITS] = persons[person, HELD] = 0
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
def discount(state: State, person: int) -> None:
    """Somebody is not counted any more."""
    node = state.persons[person, NODE]
    state.nodes[node, COUNT] -= 1
    state.meta[MEMBERS] -= 1
    if state.persons[person, WAITS]:
        state.nodes[node, READY] -= 1


@kernel
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


@kernel
def forget(state: State, rules: Rules, now: float) -> None:
    """Forget the next person if they have been silent for too long; who has rows that wait is not."""
    meta, persons = state.meta, state.persons
    if meta[SWEPT] >= meta[PERSONS]:
        meta[SWEPT] = 0
    person = meta[SWEPT]
    meta[SWEPT] += 1
    role = persons[person, ROLE]
    if role == GONE or persons[person, WAITS] or persons[person, HELD] or state.times[person] > now - rules.memory:
        return
    if role == POOLED:
        unpool(state, person)
    else:
        if role == MEMBER:
            discount(state, person)
        unlist(state, person)
    bucket = bucket_of(state, persons[person, CODE])
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
