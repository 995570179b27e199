"""Kernels of condensation: rows join the nearest group, and groups that have grown enough are halved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import kernel, part

TURNS = 50
"""Steps that approach the longest axis."""


class Condensed(NamedTuple):
    """Groups while they form."""

    point: NDArray[np.float64]
    """Rows × quasi-identifiers, each from 0 to 1."""
    person: NDArray[np.int32]
    """Persons of the rows, numbered from 0."""
    after: NDArray[np.int32]
    """The next row of the same group, or -1."""
    head: NDArray[np.int32]
    """Per group: its first row."""
    rows: NDArray[np.int64]
    """Per group: how many it has."""
    due: NDArray[np.int64]
    """Per group: with how many it is tried next to halve it."""
    centre: NDArray[np.float64]
    """Groups × quasi-identifiers: mean of the rows."""
    formed: NDArray[np.int64]
    """One entry: groups that there are."""
    seen: NDArray[np.int64]
    """Per person, the mark of the last count; a last entry for the latest mark."""


@kernel
def condense(own: Condensed, k: int, first: int, group: NDArray[np.int32]) -> None:
    """The group of every row; there are at least k persons, so at least one group forms."""
    rows = own.point.shape[0]
    start = min(max(first, k), rows)
    left = _begin(own, k, start)
    while own.formed[0] == 0:
        start = min(2 * start, rows)
        left = _begin(own, k, start)
    for row in left:
        _join(own, k, row)
    for row in range(start, rows):
        _join(own, k, row)
    for number in range(own.formed[0]):
        row = own.head[number]
        while row >= 0:
            group[row] = number
            row = own.after[row]


@part
def _begin(own: Condensed, k: int, start: int) -> NDArray[np.int64]:
    """Static condensation of the first rows: one and its nearest, again and again; returns those that are left."""
    left = np.arange(start)
    while True:
        away = np.zeros(left.shape[0])
        for place in range(left.shape[0]):
            away[place] = _away(own.point[left[place]], own.point[left[0]])
        order = np.argsort(away, kind="mergesort")
        near = _rows_for(own, left[order], k)
        if near == 0:
            return left
        _add(own, k, left[order[:near]])
        left = left[np.sort(order[near:])]
        if left.shape[0] == 0:
            return left


@part
def _away(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    total = 0.0
    for axis in range(one.shape[0]):
        total += (one[axis] - other[axis]) ** 2
    return total


@part
def _rows_for(own: Condensed, rows: NDArray[np.int64], k: int) -> int:
    """How many of these rows, from the first, are about k persons; 0 if all of them are not."""
    own.seen[-1] += 1
    persons = 0
    for place in range(rows.shape[0]):
        person = own.person[rows[place]]
        if own.seen[person] != own.seen[-1]:
            own.seen[person] = own.seen[-1]
            persons += 1
            if persons == k:
                return place + 1
    return 0


@part
def _add(own: Condensed, k: int, rows: NDArray[np.int64]) -> None:
    own.formed[0] += 1
    _fill(own, k, own.formed[0] - 1, rows)


@part
def _fill(own: Condensed, k: int, group: int, rows: NDArray[np.int64]) -> None:
    """Let the group have these rows and no others."""
    size = rows.shape[0]
    own.rows[group], own.due[group] = size, max(2 * k, size + 1)
    own.head[group] = -1
    own.centre[group] = 0.0
    for row in rows:
        own.after[row] = own.head[group]
        own.head[group] = row
        own.centre[group] += own.point[row] / size


@part
def _join(own: Condensed, k: int, row: int) -> None:
    """Add a row to the group with the nearest centre, and halve it if both halves are about k persons."""
    group, least = 0, np.inf
    for number in range(own.formed[0]):
        away = _away(own.centre[number], own.point[row])
        if away < least:
            group, least = number, away
    own.after[row] = own.head[group]
    own.head[group] = row
    own.rows[group] += 1
    own.centre[group] += (own.point[row] - own.centre[group]) / own.rows[group]
    if own.rows[group] < own.due[group]:
        return
    rows = _along_longest_axis(own, group)
    half = rows.shape[0] // 2
    if _rows_for(own, rows[:half], k) and _rows_for(own, rows[half:], k):
        _fill(own, k, group, rows[:half])
        _add(own, k, rows[half:])
    else:
        own.due[group] += own.rows[group] // 2 + 1  # a group of few persons with many rows is not tried at every one


@part
def _along_longest_axis(own: Condensed, group: int) -> NDArray[np.int64]:
    """The rows of a group in their order along the direction in which they are spread most."""
    rows = np.empty(own.rows[group], np.int64)
    row = own.head[group]
    for place in range(rows.shape[0]):
        rows[place] = row
        row = own.after[row]
    columns = own.point.shape[1]
    spread = np.zeros((columns, columns))
    for row in rows:
        apart = own.point[row] - own.centre[group]
        for axis in range(columns):
            spread[axis] += apart[axis] * apart
    axis = np.ones(columns) / np.sqrt(columns) + spread[np.argmax(np.diag(spread))]
    for _ in range(TURNS):
        turned = (spread * axis).sum(axis=1)
        length = np.sqrt((turned**2).sum())
        if length == 0.0:
            break
        axis = turned / length
    places = np.empty(rows.shape[0])
    for place in range(rows.shape[0]):
        places[place] = (own.point[rows[place]] * axis).sum()
    return rows[np.argsort(places, kind="mergesort")]
