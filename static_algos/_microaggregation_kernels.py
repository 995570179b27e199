"""The loop of MDAV: two groups at a time around two rows that lie far apart.

Rows are columns of `values` (attributes × rows). Those that have a group stay where they are until there are many of
them, marked by their distances; so one pass after the other runs over plain arrays.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import kernel

ROWS, GONE, PERSONS, GROUPS, STAMP = range(5)
"""What `Work.meta` counts: rows in the arrays, those of them that have a group, persons left, groups, marks given."""
_LEAST_GONE = 64


class Work(NamedTuple):
    """Rows that have no group yet, and room to work in."""

    values: NDArray[np.float64]
    """Attributes × rows."""
    rows: NDArray[np.int64]
    """Number of each row in the table, ascending."""
    persons: NDArray[np.int64]
    """Person of each row, from 0."""
    left: NDArray[np.int64]
    """Rows without a group of each person."""
    sums: NDArray[np.float64]
    """Of each attribute, over the rows without a group."""
    gone: NDArray[np.int64]
    """Places of rows that have a group already, the first `meta[GONE]` of them."""
    groups: NDArray[np.int64]
    """Group of each row of the table, -1 for none."""
    meta: NDArray[np.int64]
    distances: NDArray[np.float64]
    nearest: NDArray[np.int64]
    """Places of the nearest rows: a heap, the farthest of them on top."""
    seen: NDArray[np.int64]
    """The last mark that each person has been given."""


def work_on(values: NDArray[np.float64], persons: NDArray[np.int64]) -> Work:
    """All rows without a group; `values` is attributes × rows and will change, persons are numbered from 0."""
    count = len(persons)
    people = int(persons.max(initial=-1)) + 1
    work = Work(
        values,
        np.arange(count),
        persons.copy(),
        np.bincount(persons, minlength=people),
        np.zeros(len(values)),
        np.empty(count, np.int64),
        np.full(count, -1),
        np.zeros(5, np.int64),
        np.empty(count),
        np.empty(count, np.int64),
        np.zeros(people, np.int64),
    )
    work.meta[ROWS], work.meta[PERSONS] = count, people
    close_up(work)
    return work


@kernel
def form_groups(work: Work, k: int, most: int) -> None:
    """Form pairs of groups of k persons each, at most so many, as long as two such groups are left."""
    meta = work.meta
    for _ in range(most):
        if meta[PERSONS] < 2 * k:
            return
        if meta[GONE] > _LEAST_GONE and 16 * meta[GONE] > meta[ROWS]:
            close_up(work)
        alive = meta[ROWS] - meta[GONE]
        _measure(work, work.sums / alive)
        one = _farthest(work, -1)
        _measure(work, work.values[:, one].copy())
        other = _farthest(work, one)
        point = work.values[:, other].copy()
        work.distances[other] = math.inf
        _gather(work, one, k)
        _measure(work, point)
        _gather(work, other, k)


@kernel
def close_up(work: Work) -> None:
    """Forget the rows that have a group; the others keep their order."""
    meta = work.meta
    kept = 0
    for place in range(meta[ROWS]):
        if work.groups[work.rows[place]] >= 0:
            continue
        if kept < place:
            work.rows[kept] = work.rows[place]
            work.persons[kept] = work.persons[place]
            for attribute in range(len(work.values)):
                work.values[attribute, kept] = work.values[attribute, place]
        kept += 1
    meta[ROWS], meta[GONE] = kept, 0
    # What was subtracted from the sums left rounding errors in them.
    for attribute in range(len(work.values)):
        work.sums[attribute] = work.values[attribute, :kept].sum()


@kernel
def _measure(work: Work, point: NDArray[np.float64]) -> None:
    """Squared distance of every row from a point; infinite where it has a group."""
    distances, count = work.distances, work.meta[ROWS]
    for place in range(count):
        distances[place] = 0.0
    for attribute in range(len(point)):
        column, middle = work.values[attribute], point[attribute]
        for place in range(count):
            distances[place] += (column[place] - middle) ** 2
    for index in range(work.meta[GONE]):
        distances[work.gone[index]] = math.inf


@kernel
def _farthest(work: Work, but: int) -> int:
    """The row with the greatest distance, the first of several; never the one at `but`."""
    best, farthest = -1, -1.0
    for place in range(work.meta[ROWS]):
        distance = work.distances[place]
        if distance > farthest and distance < math.inf and place != but:
            best, farthest = place, distance
    return best


@kernel
def _gather(work: Work, seed: int, k: int) -> None:
    """A group of the row at `seed` and of those nearest to it, until k persons are in it."""
    meta = work.meta
    work.distances[seed] = -1.0
    want = k
    while True:
        found = _select(work, want)
        meta[STAMP] += 1
        persons, size = 0, 0
        while size < found and persons < k:
            person = work.persons[work.nearest[size]]
            if work.seen[person] != meta[STAMP]:
                work.seen[person] = meta[STAMP]
                persons += 1
            size += 1
        if persons == k:
            break
        want *= 2  # persons have several rows
    for index in range(size):
        place = work.nearest[index]
        work.groups[work.rows[place]] = meta[GROUPS]
        work.gone[meta[GONE]] = place
        meta[GONE] += 1
        person = work.persons[place]
        work.left[person] -= 1
        if work.left[person] == 0:
            meta[PERSONS] -= 1
        for attribute in range(len(work.values)):
            work.sums[attribute] -= work.values[attribute, place]
    meta[GROUPS] += 1


@kernel
def _select(work: Work, want: int) -> int:
    """So many of the nearest rows, or all there are, into `nearest`: by distance, then by place; their number."""
    distances, heap = work.distances, work.nearest
    size = 0
    top = math.inf
    for place in range(work.meta[ROWS]):
        distance = distances[place]
        if distance >= top:
            continue
        if size < want:
            heap[size] = place
            _rise(distances, heap, size)
            size += 1
        else:
            heap[0] = place
            _sink(distances, heap, size)
        if size == want:
            top = distances[heap[0]]
    for end in range(size - 1, 0, -1):
        heap[0], heap[end] = heap[end], heap[0]
        _sink(distances, heap, end)
    return size


@kernel
def _after(distances: NDArray[np.float64], one: int, other: int) -> bool:
    """Whether one row comes behind another: farther, or as far and later."""
    return distances[one] > distances[other] or (distances[one] == distances[other] and one > other)


@kernel
def _rise(distances: NDArray[np.float64], heap: NDArray[np.int64], at: int) -> None:
    while at > 0 and _after(distances, heap[at], heap[(at - 1) // 2]):
        above = (at - 1) // 2
        heap[at], heap[above] = heap[above], heap[at]
        at = above


@kernel
def _sink(distances: NDArray[np.float64], heap: NDArray[np.int64], size: int) -> None:
    at = 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and _after(distances, heap[below + 1], heap[below]):
            below += 1
        if not _after(distances, heap[below], heap[at]):
            return
        heap[at], heap[below] = heap[below], heap[at]
        at = below
