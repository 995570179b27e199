"""Which row of an original each published row can have come from, where nobody kept it.

A published row shows its box, its sensitive and its public values. The rows of the original that lie in that box and
have these values could all be it. Whoever rehearses an attack and has the original takes one way in which every
published row has a row of its own; where values are rare enough, it is the true one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Assignment:
    """One way in which published rows can have come from the original."""

    rows: NDArray[np.int64]
    """Row of the original that each published row is taken for; -1 where none is left that could be it."""
    certain: NDArray[np.bool_]
    """Whether there is only one in the original that could be it."""


def assign(
    contents: NDArray[np.int64],
    quasi: NDArray[np.float64],
    published: NDArray[np.int64],
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
) -> Assignment:
    """Take the earliest row that is left for each published row; both have a number for their contents.

    Where none is left, another published row gives up its own for one that is.
    """
    order = np.argsort(contents, kind="stable")
    starts = np.searchsorted(contents[order], published, side="left")
    ends = np.searchsorted(contents[order], published, side="right")
    taken = np.full(len(contents), -1, np.int64)
    rows, certain = np.full(len(published), -1, np.int64), np.zeros(len(published), bool)

    def fitting(row: int) -> NDArray[np.int64]:
        own = order[starts[row] : ends[row]]
        values = quasi[own]
        return np.asarray(own[((lo[row] <= values) & (values <= hi[row])).all(axis=1)])

    for row in range(len(published)):
        found = fitting(row)
        certain[row] = len(found) == 1
        free = found[taken[found] < 0]
        if len(free):
            taken[free[0]], rows[row] = row, free[0]
            continue
        for place in found.tolist():
            other = int(taken[place])
            instead = fitting(other)
            instead = instead[taken[instead] < 0]
            if len(instead):
                taken[instead[0]], rows[other] = other, instead[0]
                taken[place], rows[row] = row, place
                break
    return Assignment(rows, certain)
