"""Kernel of the merge pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import Geometry, kernel, range_loss
from static_algos._limit_kernels import Limits, strain

REACH = 512
"""Neighbours on each side along the curve that are considered; all of them, where there are no more."""


class Classes(NamedTuple):
    """Classes while they merge."""

    head: NDArray[np.int32]
    tail: NDArray[np.int32]
    """First and last row of each class."""
    after: NDArray[np.int32]
    """The row that follows each row in its class; -1 for the last."""
    rows: NDArray[np.int64]
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    before: NDArray[np.int32]
    behind: NDArray[np.int32]
    """Neighbours along the curve among the classes that are left; -1 at the ends."""
    into: NDArray[np.int32]
    """Class that each class was merged into; itself, while it is left."""


class Tally(NamedTuple):
    """What is known about one class."""

    counts: NDArray[np.int64]
    """Of every sensitive value."""
    seen: NDArray[np.int32]
    """Last class, plus one, that each person was counted for; empty when every row is another person."""
    persons: NDArray[np.int64]
    """One entry: distinct persons."""


@kernel
def link_rows(classes: NDArray[np.int32], quasi: NDArray[np.float64], state: Classes) -> None:
    """Chain the rows of each class and find its box."""
    for row in range(classes.shape[0] - 1, -1, -1):
        own = classes[row]
        if own < 0:
            continue
        if state.head[own] < 0:
            state.tail[own] = row
        state.after[row] = state.head[own]
        state.head[own] = row
        state.rows[own] += 1
        for column in range(quasi.shape[1]):
            state.lo[own, column] = min(state.lo[own, column], quasi[row, column])
            state.hi[own, column] = max(state.hi[own, column], quasi[row, column])


@kernel
def _add(limits: Limits, state: Classes, tally: Tally, one: int, mark: int) -> None:
    """Count the rows of a class for the class `mark`."""
    row = state.head[one]
    while row >= 0:
        for attribute in range(limits.value.shape[1]):
            tally.counts[limits.value[row, attribute]] += 1
        if tally.seen.shape[0] == 0:
            tally.persons[0] += 1
        elif tally.seen[limits.person[row]] != mark + 1:
            tally.seen[limits.person[row]] = mark + 1
            tally.persons[0] += 1
        row = state.after[row]


@kernel
def _growth(space: Geometry, state: Classes, one: int, other: int, most: float) -> float:
    """Loss of the union, given up once it reaches `most`."""
    loss = 0.0
    for column in range(state.lo.shape[1]):
        lo = min(state.lo[one, column], state.lo[other, column])
        hi = max(state.hi[one, column], state.hi[other, column])
        loss += space.weight[column] * range_loss(space, column, lo, hi)
        if loss >= most:
            break
    return loss


@kernel
def _nearest(space: Geometry, state: Classes, one: int) -> int:
    """The class that makes `one` grow least; -1 when it is alone."""
    best, least = -1, np.inf
    left, right = state.before[one], state.behind[one]
    for _ in range(REACH):
        if left >= 0:
            loss = _growth(space, state, one, left, least)
            if loss < least:
                best, least = left, loss
            left = state.before[left]
        if right >= 0:
            loss = _growth(space, state, one, right, least)
            if loss < least:
                best, least = right, loss
            right = state.behind[right]
        if left < 0 and right < 0:
            break
    return best


@kernel
def _absorb(state: Classes, one: int, other: int) -> None:
    state.after[state.tail[one]] = state.head[other]
    state.tail[one] = state.tail[other]
    state.rows[one] += state.rows[other]
    state.into[other] = one
    for column in range(state.lo.shape[1]):
        state.lo[one, column] = min(state.lo[one, column], state.lo[other, column])
        state.hi[one, column] = max(state.hi[one, column], state.hi[other, column])
    left, right = state.before[other], state.behind[other]
    if left >= 0:
        state.behind[left] = right
    if right >= 0:
        state.before[right] = left


@kernel
def settle(limits: Limits, space: Geometry, state: Classes, tally: Tally, first: int, budget: int) -> tuple[int, int]:
    """From class `first` on, merge every class that breaks a limit with its nearest until it does not.

    Stops after about `budget` rows and pairs of classes. Returns the next class, and how many merges there were.
    """
    spent, merges = 0, 0
    one = first
    while one < state.head.shape[0] and spent < budget:
        if state.into[one] == one:
            tally.counts[:] = 0
            tally.persons[0] = 0
            _add(limits, state, tally, one, one)
            spent += state.rows[one]
            while tally.persons[0] < limits.least or strain(limits.rules, tally.counts, state.rows[one]) > 1.0:
                other = _nearest(space, state, one)
                if other < 0:
                    return -1, merges
                _add(limits, state, tally, other, one)
                _absorb(state, one, other)
                merges += 1
                spent += REACH + state.rows[one]
        one += 1
    return one, merges
