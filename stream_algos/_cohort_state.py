"""What cohorts know: persons, cohorts, waiting rows, and what leaves; as kernels want it.

As in `_held_kernels`, whole numbers share one table per kind of thing, with named columns, which numba compiles faster
than many arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import Schema
from stream_algos._held_kernels import NONE

CODE, ROLE, NODE, NEXT, PREVIOUS, WAITS, SEEN, CHAIN, HELD = range(9)
"""Columns of `State.persons`: the person as the caller names it, the role, the cohort (of those in the pool: the place
there), neighbours in the cohort's list, rows that wait for a cohort or for it to publish, the last position, the next
person of the same bucket, and rows that wait for company."""

GONE, POOLED, MEMBER, DISMISSED = range(4)
"""Roles: forgotten, without a cohort, counted, in a cohort but never counted again."""

LEFT, RIGHT, CUT, COUNT, HEAD, TRY, OPEN, READY, MADE, SHOWN, AFTER = range(11)
"""Columns of `State.nodes`: children (NONE: a cohort), the quasi-identifier of the cut, members, the first of the
list, members at which a split is tried next, whether its box has grown and nobody left with it yet, members that
wait for that, the position at which the box was made, whether a row left with it, and the next root."""

P_LO, P_HI, J_LO, J_HI = range(4)
"""Second index of `State.boxes`: the published box and the joining box of a node."""

ID, PARENT = range(2)
"""Columns of `State.ids`: of the published box, and of the one that the cohort published before (0 for none)."""

LOSS, EDGE = range(2)
"""Columns of `State.sizes`: loss of the published box; where the cut is, as the sum of both ends of a range."""

POSITION, PERSON, PLACE, BEHIND = range(4)
"""Columns of `State.slots`: a waiting row's position, its person, the cohort that it waits for, and of those that wait
for company how many members their cohort had."""

POOL, COMPANY = -2, -3
"""Places of rows that wait for a cohort to be founded, and for rows of others; NONE for decided ones."""

PERSONS, POOLED_PERSONS, NODES, ROOT, BEGIN, END, WAITING, NEEDED, AT, FREE, SWEPT, KNOWN, LEAVES, MEMBERS = range(14)
"""Entries of `State.meta`: entries of `persons` in use, persons in the pool, entries of `nodes` in use, first root,
numbers of the oldest and the next waiting row, rows that wait, what is to be done now (a cohort or the pool is divided,
or the oldest row gathers COMPANY) and the last position before that, the first free entry of `persons`, where the
search for the forgotten goes on, known persons, cohorts, counted members."""

CLUSTERS, ROWS, SUPPRESSED, WORDS = range(4)
"""Entries of `Output.meta`: how much of each is filled or, for words, used up."""

LOOKED_AT = 64
"""Members per person of k that are looked at to see whether a cohort is busy."""


class Rules(NamedTuple):
    """The parameters, as kernels want them."""

    k: int
    needs: NDArray[np.int64]
    """How many distinct codes of each condition (see `conditions_of`) are asked for."""
    most: int
    """The largest of them."""
    present: bool
    """Whether rows leave only with rows of k persons; then these must have the codes, else all rows of a cohort."""
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
    """So many distinct published codes of each condition as are needed, of each person; NONE where there are fewer."""
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
    codes: NDArray[np.int32]
    """Of each waiting row: its code in each condition."""
    covers: NDArray[np.float64]
    """Of each row that waits for company: both ends of the box that its cohort published when it came."""
    tally: NDArray[np.int64]
    """How many rows that wait in the pool have each code of each condition that cohorts must meet."""
    stamps: NDArray[np.int64]
    """For each code of each condition the last count of distinct codes that met it; the first column counts them."""
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


def new_state(schema: Schema, rules: Rules, persons: int, pool: int, nodes: int, waiting: int) -> State:
    """Nobody is known; with room for so many of each. Room for waiting rows is a power of two."""
    width, conditions = len(schema.quasi), len(rules.needs)
    of_cohorts = 0 if rules.present else conditions
    most = max((one.size or 0 for one in schema.sensitive), default=0)
    slots = np.zeros((waiting, 4), np.int64)
    slots[:, PLACE] = NONE
    meta = np.zeros(14, np.int64)
    meta[ROOT] = meta[NEEDED] = meta[FREE] = NONE
    return State(
        buckets=np.full(1 << (persons - 1).bit_length(), NONE, np.int32),
        persons=np.zeros((persons, 9), np.int64),
        times=np.zeros(persons),
        values=np.zeros((persons, width)),
        shown=np.full((persons, of_cohorts * rules.most), NONE, np.int32),
        pool=np.zeros(pool, np.int64),
        hulls=np.zeros((2, pool, width)),
        nodes=np.zeros((nodes, 11), np.int64),
        boxes=np.zeros((nodes, 4, width)),
        sizes=np.zeros((nodes, 2)),
        ids=np.zeros((nodes, 2), np.uint64),
        slots=slots,
        clock=np.zeros(waiting),
        quasi=np.zeros((waiting, width)),
        codes=np.zeros((waiting, conditions), np.int32),
        covers=np.zeros((waiting if rules.present else 0, 2, width)),
        tally=np.zeros((of_cohorts, most), np.int64),
        stamps=np.zeros((conditions, most + 1), np.int64),
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
