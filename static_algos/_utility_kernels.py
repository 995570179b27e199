"""Inner loops of the utility measures: counting rows in ranges, estimating from boxes, spreading boxes over cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import kernel


class Queries(NamedTuple):
    """Counting queries: a range in each of some quasi-identifiers, and one of the sensitive values."""

    attribute: NDArray[np.int64]
    """Queries × predicates: which quasi-identifier."""
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    """Queries × predicates: the range, both ends included."""
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    """The sensitive values, both ends included."""


@kernel
def count_rows(queries: Queries, columns: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The true answers; rows are ordered by their sensitive value, value v from `starts[v]` on.

    One predicate after the other over a whole column, without branches: the compiler makes vector code of it.
    """
    answers = np.zeros(len(queries.first), np.int64)
    scratch = np.empty(columns.shape[1], np.uint8)
    for q in range(len(answers)):
        begin, end = starts[queries.first[q]], starts[queries.last[q] + 1]
        inside = scratch[: end - begin]
        inside[:] = 1
        for p in range(queries.attribute.shape[1]):
            column = columns[queries.attribute[q, p], begin:end]
            lo, hi = queries.lo[q, p], queries.hi[q, p]
            for row in range(len(inside)):
                inside[row] &= np.uint8(column[row] >= lo) & np.uint8(column[row] <= hi)
        total = 0
        for row in range(len(inside)):
            total += inside[row]
        answers[q] = total
    return answers


@kernel
def estimate(
    queries: Queries,
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
    unit: NDArray[np.float64],
    starts: NDArray[np.int64],
    values: NDArray[np.int32],
    before: NDArray[np.int64],
) -> NDArray[np.float64]:
    """The answers from the published boxes, if rows lie evenly in them; `before` sums the histograms' counts."""
    answers = np.zeros(len(queries.first))
    for q in range(len(answers)):
        for one in range(len(lo)):
            share = 1.0
            for p in range(queries.attribute.shape[1]):
                a = queries.attribute[q, p]
                share *= _overlap(lo[one, a], hi[one, a], queries.lo[q, p], queries.hi[q, p], unit[a])
                if share == 0.0:
                    break
            if share > 0.0:
                own = values[starts[one] : starts[one + 1]]
                left = starts[one] + np.searchsorted(own, queries.first[q])
                right = starts[one] + np.searchsorted(own, queries.last[q], side="right")
                answers[q] += share * (before[right] - before[left])
    return answers


@kernel
def _overlap(lo: float, hi: float, first: float, last: float, unit: float) -> float:
    """Share of the values `lo … hi` that lie in `first … last`; values are `unit` apart, 0 for a continuum."""
    if lo == hi:
        return 1.0 if first <= lo <= last else 0.0
    return max(0.0, min(hi, last) - max(lo, first) + unit) / (hi - lo + unit)


@kernel
def spread(
    cube: NDArray[np.float64],
    size: NDArray[np.int64],
    lo: NDArray[np.int64],
    hi: NDArray[np.int64],
    starts: NDArray[np.int64],
    values: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    """Add every class, evenly over the cells of its box, to the differences of a cube; the last axis is the value.

    The cube is flat; `size` holds the lengths of the other axes, each one longer than its cells. Running sums along
    them make the cube.
    """
    axes = len(size)
    depth = len(cube)
    for a in range(axes):
        depth //= size[a]
    for one in range(len(lo)):
        cells = 1.0
        for a in range(axes):
            cells *= hi[one, a] - lo[one, a] + 1
        for corner in range(1 << axes):
            place, sign = 0, 1.0
            for a in range(axes):
                if corner >> a & 1:
                    place = place * size[a] + hi[one, a] + 1
                    sign = -sign
                else:
                    place = place * size[a] + lo[one, a]
            for i in range(starts[one], starts[one + 1]):
                cube[place * depth + values[i]] += sign * counts[i] / cells
