"""What cohorts know: persons, cohorts, waiting rows, and what leaves; as kernels want it.

As in `_held_kernels`, whole numbers share one table per kind of thing, with named columns, which numba compiles faster
than many arrays.
"""

from __future__ import annotations

import math
import mmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import Schema, geometry
from stream_algos._held_kernels import NONE

ROLE, NODE, NEXT, PREVIOUS, CHAIN = range(5)
"""Columns of `State.persons`: the role, the cohort (of those in the pool: the place there), neighbours in the cohort's
list, and the next person of the same bucket."""

CODE, MORE, SEEN = range(3)
"""Columns of `State.tags`: both words of the tag by which the caller knows the person, and the last position."""

WAITS, HELD = range(2)
"""Columns of `State.waits`: rows that wait for a cohort or for it to publish, and rows that wait for company."""

GONE, POOLED, MEMBER, DISMISSED = range(4)
"""Roles: forgotten, without a cohort, counted, in a cohort but never counted again."""

UNPLACED = -1
"""One more role: in no cohort and not in the pool, because an event of the person could not be read while they were in
the pool. Such a person joins a cohort with their next row, but is never counted."""

LEFT, RIGHT, CUT, COUNT, HEAD, TRY, OPEN, READY, MADE, SHOWN, AFTER = range(11)
"""Columns of `State.nodes`: children (NONE: a cohort), the quasi-identifier of the cut, members, the first of the
list, members at which a split is tried next, whether its box has grown and nobody left with it yet, members that
wait for that, the position at which the box was made, whether a row left with it, and the root founded
next."""

P_LO, P_HI, J_LO, J_HI = range(4)
"""Second index of `State.boxes`: the published box and the joining box of a node."""

ID, PARENT = range(2)
"""Columns of `State.ids`: of the published box, and of the one that the cohort published before (0 for none)."""

LOSS, EDGE, LOWEST = range(3)
"""Columns of `State.sizes`: loss of the published box; where the cut is, as the sum of both ends of a range; and at
most the loss of any cohort below."""

ABOVE, LINE, NOTED = range(3)
"""Columns of `State.due`: the node that a node was cut from; entry i of the line of cohorts that are to be split;
whether it is written down what the node was (see `note_node`), and there, which node it is."""

IN_LINE = 0
"""In place of the members at which a split is tried next: it is tried as soon as it is the cohort's turn."""

WHOLE = np.iinfo(np.int64).max
"""In place of the same: it is never tried."""

POSITION, PERSON, PLACE, BEHIND = range(4)
"""Columns of `State.slots`: a waiting row's position, its person, the cohort that it waits for, and of those that wait
for company how many members their cohort had."""

POOL, COMPANY = -2, -3
"""Places of rows that wait for a cohort to be founded, and for rows of others; NONE for decided ones."""

SPLITS = -4
"""What is to be done where cohorts are to be split."""

PERSONS, POOLED_PERSONS, NODES, ROOT, BEGIN, END, WAITING, NEEDED, AT, FREE, SWEPT, KNOWN, LEAVES, MEMBERS = range(14)
ASKING, STRETCH, BUCKETS, MASK, NEWCOMERS, NOTES, LASTING, DESERTED = range(14, 22)
"""Entries of `State.meta`: entries of `persons` in use, persons in the pool, entries of `nodes` in use, first root,
numbers of the oldest and the next waiting row, rows that wait, what is to be done now (the POOL is divided, SPLITS are
made, or the oldest row gathers COMPANY) and the last position before that, the first free entry of `persons`, where the
search for the forgotten goes on, known persons, cohorts, counted members; cohorts in line for a split, the stretch of
positions in which that line was looked at; buckets, and the largest power of two that is not above, less 1; the share
of rows, of late, that were somebody's first, in parts of MANY; nodes that are written down, and nodes that there were
when that began; whether there may be cohorts that publish nothing even with one member more."""

CLUSTERS, ROWS, SUPPRESSED, WORDS, SOUGHT = range(5)
"""Entries of `Output.meta`: how much of each is filled or, for words, used up."""

UNSURE = -5
"""In `Output.sought`: it has to be looked for anew."""

STRETCH_BITS = 7
"""Cohorts are split all together once in so many positions (a power of two)."""

MANY, OF_LATE = 1 << 20, 10
"""What all is for a share, and the rows that are of late (a power of two)."""

MOST_POOLED = 2048
"""So many persons in the pool found cohorts before any deadline: more would take long, and be little better."""

ROOM = 1 << 24
"""Persons and nodes that address space is reserved for: only beyond that, arrays are copied to grow."""

CODES = 32_749
"""Codes that are told apart in what persons have shown: two bytes each, of very many persons. Of a larger domain some
count as the same, so that now and then a cohort must show one value more before it is split."""

VISITS = 128
"""Nodes that a new person looks at to find the best cohort."""

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
    patient: int
    """Members at which a split is tried first while many new persons come: the more there are to cut, the better. Else
    it is 2k."""
    few: int
    """The share of new persons (see NEWCOMERS) below which nobody waits for more."""
    memory: float
    """Seconds after which a silent person is forgotten; infinite for never."""


class State(NamedTuple):
    """Everything that is known of persons, cohorts and waiting rows."""

    buckets: NDArray[np.int32]
    """First person of each. One more is filled with every new person (linear hashing), so nobody waits for all."""
    persons: NDArray[np.int32]
    tags: NDArray[np.int64]
    waits: NDArray[np.int32]
    """Written only of those who wait, and when it is over: the others take no memory here."""
    times: NDArray[np.float64]
    """When each person was last seen; not written where everybody is remembered for good."""
    narrow: NDArray[np.uint16]
    """Last seen quasi-identifiers of each person, as `_cohort_value_kernels` says."""
    exact: NDArray[np.float64]
    """Those that are not narrow; the others take no memory here."""
    lows: NDArray[np.float64]
    """The least value of each quasi-identifier, which the narrow ones count from."""
    shown: NDArray[np.int16]
    """So many distinct published codes of each condition as are needed, of each person; NONE where there are fewer."""
    pool: NDArray[np.int64]
    hulls: NDArray[np.float64]
    """For each place of the pool, the least and the greatest values that were seen."""
    nodes: NDArray[np.int64]
    boxes: NDArray[np.float64]
    sizes: NDArray[np.float64]
    marks: NDArray[np.uint64]
    """Of each node: its joining box as `_cohort_mark_kernels` says, two words for every eight quasi-identifiers; the
    loss that no cohort below is under; and its left child, behind which the right one comes (0 for a cohort)."""
    ids: NDArray[np.uint64]
    due: NDArray[np.int32]
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
    """Of each cluster: whether the box was published before, members behind it, last position taken, and the cohort
    (NONE for a box that is no cohort's)."""
    members: NDArray[np.int64]
    quasi: NDArray[np.float64]
    suppressed: NDArray[np.int64]
    """Position, and last position taken."""
    words: NDArray[np.uint64]
    sought: NDArray[np.int64]
    """Of the first rows that are being taken: the cohort that their persons join, if they are new. NONE for none."""
    meta: NDArray[np.int64]


CHUNK = 1024
"""Rows that one kernel call takes at most; there is room for so many more than are known."""


def new_state(schema: Schema, rules: Rules, persons: int, pool: int, nodes: int) -> State:
    """Nobody is known; with room for as many again as these of each and a chunk, and for all rows that may wait.

    If there is address space, it is enough for all who may ever come. No entry is written before it is used, so what is
    not used takes no memory.
    """
    most = [2 * size + CHUNK for size in (persons, pool, nodes)]
    try:
        return _empty_state(schema, rules, *(max(ROOM, size) for size in most))
    except OSError:
        return _empty_state(schema, rules, *most)


def _empty_state(schema: Schema, rules: Rules, persons: int, pool: int, nodes: int) -> State:
    width, conditions = len(schema.quasi), len(rules.needs)
    of_cohorts = 0 if rules.present else conditions
    most = max((one.size or 0 for one in schema.sensitive), default=0)
    waiting = 1 << (rules.delta + 1).bit_length()
    meta = np.zeros(22, np.int64)
    meta[ROOT] = meta[NEEDED] = meta[FREE] = meta[STRETCH] = NONE
    meta[BUCKETS], meta[NEWCOMERS] = 1, MANY
    state = State(
        buckets=_zeros(np.int32, persons),
        persons=_zeros(np.int32, persons, 5),
        tags=_zeros(np.int64, persons, 3),
        waits=_zeros(np.int32, persons, 2),
        times=_zeros(np.float64, persons),
        narrow=_zeros(np.uint16, persons, width),
        exact=_zeros(np.float64, persons, width),
        lows=geometry(schema).low,
        shown=_zeros(np.int16, persons, of_cohorts * rules.most),
        pool=_zeros(np.int64, pool),
        hulls=_zeros(np.float64, 2, pool, width),
        nodes=_zeros(np.int64, nodes, 11),
        boxes=_zeros(np.float64, nodes, 4, width),
        sizes=_zeros(np.float64, nodes, 3),
        marks=_zeros(np.uint64, nodes, 2 * (-(-width // 8) + 1)),
        ids=_zeros(np.uint64, nodes, 2),
        due=_zeros(np.int32, nodes, 3),
        slots=_zeros(np.int64, waiting, 4),
        clock=_zeros(np.float64, waiting),
        quasi=_zeros(np.float64, waiting, width),
        codes=_zeros(np.int32, waiting, conditions),
        covers=_zeros(np.float64, waiting if rules.present else 0, 2, width),
        tally=np.zeros((of_cohorts, most), np.int64),
        stamps=np.zeros((conditions, most + 1), np.int64),
        meta=meta,
    )
    state.buckets[0] = NONE
    return state


def _zeros(kind: type[np.generic], *shape: int) -> NDArray[Any]:
    """Zeros in address space of their own, where they are many: the system gives memory for what is written.

    It gives small pages. A huge one takes a machine that shares its host up to 20 ms when it is first written.
    """
    size = math.prod(shape) * np.dtype(kind).itemsize
    if size < mmap.PAGESIZE:
        return np.zeros(shape, kind)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(memory, kind).reshape(shape)


def new_output(rows: int, width: int) -> Output:
    """Buffers for so many rows."""
    return Output(
        ids=np.zeros((rows, 2), np.uint64),
        boxes=np.zeros((2, rows, width)),
        starts=np.zeros(rows + 1, np.int64),
        facts=np.zeros((rows, 4), np.int64),
        members=np.zeros(rows, np.int64),
        quasi=np.zeros((rows, width)),
        suppressed=np.zeros((rows, 2), np.int64),
        words=np.empty(0, np.uint64),
        sought=np.zeros(rows, np.int64),
        meta=np.zeros(5, np.int64),
    )
