"""What follows from the tables of cohorts is found again: lists, counts, buckets, what trees have below."""

from __future__ import annotations

from microdata import kernel
from stream_algos._cohort_person_kernels import bucket_of, wide
from stream_algos._cohort_state import (
    ABOVE,
    ASKING,
    BUCKETS,
    CHAIN,
    CODE,
    COUNT,
    CUT,
    EDGE,
    GONE,
    HEAD,
    IN_LINE,
    LEFT,
    LINE,
    LOSS,
    LOWEST,
    MEMBER,
    NEXT,
    NODE,
    NODES,
    PERSONS,
    PREVIOUS,
    RIGHT,
    ROLE,
    TRY,
    State,
)
from stream_algos._cohort_value_kernels import value_at
from stream_algos._held_kernels import NONE


@kernel
def look_at_trees(state: State) -> None:
    """Find what follows from the nodes: which is above which, the least loss below, and who is to be split."""
    nodes, sizes, due, meta = state.nodes, state.sizes, state.due, state.meta
    for node in range(meta[NODES]):
        due[node, ABOVE] = NONE
    for node in range(meta[NODES] - 1, -1, -1):  # children come behind their parents
        left, right = nodes[node, LEFT], nodes[node, RIGHT]
        sizes[node, LOWEST] = sizes[node, LOSS]
        if left != NONE:
            due[left, ABOVE] = due[right, ABOVE] = node
            sizes[node, LOWEST] = min(sizes[left, LOWEST], sizes[right, LOWEST])
    meta[ASKING] = 0
    for node in range(meta[NODES]):
        if nodes[node, LEFT] == NONE and nodes[node, TRY] == IN_LINE:
            due[meta[ASKING], LINE] = node
            meta[ASKING] += 1


@kernel
def enlist_all(state: State, count: int, trees: int) -> None:
    """Put the first persons on the lists of their cohorts, and count the members.

    Where a cohort was split, each goes to the side of their values, as they would have done.
    """
    persons, nodes = state.persons, state.nodes
    for node in range(trees):
        nodes[node, COUNT], nodes[node, HEAD] = 0, NONE
    for person in range(count - 1, -1, -1):
        if persons[person, ROLE] < MEMBER:
            continue
        node = wide(persons[person, NODE])
        while nodes[node, LEFT] != NONE:
            right = (
                2.0 * value_at(state.narrow, state.exact, state.lows, person, nodes[node, CUT])
                > state.sizes[node, EDGE]
            )
            node = nodes[node, RIGHT] if right else nodes[node, LEFT]
        head = nodes[node, HEAD]
        persons[person, NODE], persons[person, NEXT], persons[person, PREVIOUS] = node, head, NONE
        if head != NONE:
            persons[head, PREVIOUS] = person
        nodes[node, HEAD] = person
        nodes[node, COUNT] += persons[person, ROLE] == MEMBER


@kernel
def fill_buckets(state: State) -> None:
    """Put everybody into the buckets, of which there are as many as `meta` says."""
    persons, buckets, meta = state.persons, state.buckets, state.meta
    for bucket in range(meta[BUCKETS]):
        buckets[bucket] = NONE
    for person in range(meta[PERSONS] - 1, -1, -1):
        if persons[person, ROLE] != GONE:
            bucket = bucket_of(meta, state.tags[person, CODE])
            persons[person, CHAIN] = buckets[bucket]
            buckets[bucket] = person
