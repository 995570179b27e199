"""The merge pass: classes that break a limit grow by their nearest neighbours until they keep it.

Used where a limit survives merging (persons, closeness, caps on shares): what holds for two classes holds for their
union, and the whole table meets everything that can be met.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import InfeasibleError, Progress, Table, geometry, silent
from static_algos._limit_kernels import Limits
from static_algos._merging_kernels import Classes, Tally, link_rows, settle
from static_algos.hilbert import hilbert_keys

_BUDGET = 1 << 22


def merge_until_safe(
    table: Table, classes: NDArray[np.int32], limits: Limits, progress: Progress = silent
) -> tuple[NDArray[np.int32], int]:
    """The classes after the pass, numbered from 0 without gaps, and how many merges it took."""
    state = _linked(table, classes)
    persons = int(limits.person.max(initial=-1)) + 1
    tally = Tally(np.zeros(len(limits.rules.values), np.int64), np.zeros(persons, np.int32), np.zeros(1, np.int64))
    space = geometry(table.schema)
    following = merges = 0
    while following < len(state.head):
        progress("merge", following, len(state.head))
        following, more = settle(limits, space, state, tally, following, _BUDGET)
        merges += more
        if following < 0:
            raise InfeasibleError("all rows together do not meet the limits of one class", parameter="guarantee")
    return _renumbered(classes, state.into), merges


def _linked(table: Table, classes: NDArray[np.int32]) -> Classes:
    count, columns = int(classes.max(initial=-1)) + 1, table.quasi.shape[1]
    state = Classes(
        head=np.full(count, -1, np.int32),
        tail=np.full(count, -1, np.int32),
        after=np.empty(len(table), np.int32),
        rows=np.zeros(count, np.int64),
        lo=np.full((count, columns), np.inf),
        hi=np.full((count, columns), -np.inf),
        before=np.empty(count, np.int32),
        behind=np.empty(count, np.int32),
        into=np.arange(count, dtype=np.int32),
    )
    link_rows(classes, table.quasi, state)
    order = np.argsort(hilbert_keys(table.schema, (state.lo + state.hi) / 2), kind="stable").astype(np.int32)
    state.before[order] = np.append(np.int32(-1), order[:-1])
    state.behind[order] = np.append(order[1:], np.int32(-1))
    return state


def _renumbered(classes: NDArray[np.int32], into: NDArray[np.int32]) -> NDArray[np.int32]:
    # Merges form chains, always towards a class that was left at the time.
    while (into[into] != into).any():
        into = into[into]
    numbers = np.cumsum(into == np.arange(len(into)), dtype=np.int32) - 1
    return numbers[into][classes]
