"""One column cut into intervals of at least k rows: quantiles, exact or from a sample, and the optimal partition.

Quantiles have the least rank difference of all ways to hide k rows in each other. Where the values matter and not their
ranks, a dynamic program finds the partition of least cost: distances to the medians, the largest radius, or each row by
the radius of its part. A value is never in two parts, so that a part can be published as an interval.

Lodha and Thomas, Probabilistic Anonymity (PinKDD 2007).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from microdata import InfeasibleError
from static_algos._partition_kernels import CELLULAR, CENTER, MEDIAN, cut_column

Cost: TypeAlias = Literal["rank", "median", "center", "cellular"]
COSTS = {"median": MEDIAN, "center": CENTER, "cellular": CELLULAR}

MOST_STEPS = 10**10
"""Work of the dynamic program that is done: a minute or so."""
SAMPLE_PER_PART = 1_000
SAMPLE_MARGIN = 0.1
"""Rows of the sample for each part, and how much larger than asked the parts of a sample are made."""


def quantile_groups(rows: int, k: int) -> NDArray[np.int64]:
    """Where as many groups as possible begin that have k rows or a few more, as equal as can be, the larger ones first.

    >>> quantile_groups(5, 2)
    array([0, 3])
    """
    groups = max(rows // k, 1)
    size, larger = divmod(rows, groups)
    sizes = np.full(groups, size)
    sizes[:larger] += 1
    return np.concatenate(([0], np.cumsum(sizes)[:-1]))


def quantile_medians(values: ArrayLike, k: int) -> NDArray[np.float64]:
    """Every value replaced by the lower median of its group: the k-anonymous change of least rank difference.

    >>> quantile_medians([1, 12, 4, 7, 3], 2)
    array([3., 7., 3., 7., 3.])
    """
    given = np.asarray(values, np.float64)
    order = np.argsort(given, kind="stable")
    starts = quantile_groups(len(given), k)
    ends = np.append(starts[1:], len(given))
    result = np.empty(len(given))
    result[order] = np.repeat(given[order][(starts + ends - 1) // 2], ends - starts)
    return result


def cut_quantiles(values: ArrayLike, k: int) -> NDArray[np.float64]:
    """First value of every interval; each has k of the values at least, if there are as many at all.

    >>> cut_quantiles([1, 1, 1, 2, 3, 4, 5], 2)
    array([1., 2., 4.])
    """
    distinct, counts = np.unique(np.asarray(values, np.float64), return_counts=True)
    starts = np.searchsorted(distinct, cut_evenly(distinct, counts, k))
    return _joined(distinct, starts, np.concatenate(([0], np.cumsum(counts))), k)


def cut_evenly(distinct: NDArray[np.float64], counts: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """The same from ascending values and how often each occurs; intervals have about k of the values, some fewer.

    A group is closed at the end of a run of equal values.
    """
    rows = np.cumsum(counts) - counts
    starts = np.unique(np.searchsorted(rows, quantile_groups(int(counts.sum()), k)))
    return distinct[starts[starts < len(distinct)]]


def _joined(
    firsts: NDArray[np.float64], starts: NDArray[np.int64], rows: NDArray[np.int64], k: int
) -> NDArray[np.float64]:
    """First values of parts that begin at these starts, without those that leave the part before them too small."""
    kept: list[int] = []
    for start in starts.tolist():
        if not kept or rows[start] - rows[kept[-1]] >= k:
            kept.append(start)
    if len(kept) > 1 and rows[-1] - rows[kept[-1]] < k:
        kept.pop()
    return firsts[kept]


def cut_optimally(values: ArrayLike, k: int, cost: Cost) -> tuple[NDArray[np.float64], float]:
    """First value of every interval of the partition that costs least, and that cost.

    >>> for cost in ("median", "center", "cellular"):
    ...     print(cut_optimally([1, 12, 4, 7, 3], 2, cost))
    (array([1., 7.]), 8.0)
    (array([1., 7.]), 2.5)
    (array([1., 7.]), 9.5)
    """
    return weigh_counted(*np.unique(np.asarray(values, np.float64), return_counts=True), k, cost)


def weigh_counted(
    distinct: NDArray[np.float64], counts: NDArray[np.int64], k: int, cost: Cost
) -> tuple[NDArray[np.float64], float]:
    """The same from ascending values and how often each occurs."""
    if len(distinct) * min(len(distinct), k) > MOST_STEPS:
        raise InfeasibleError(
            f"{len(distinct)} distinct values in parts of {k} are too many to weigh", parameter="cost", nearest="rank"
        )
    if counts.sum() < k:
        return distinct[:1], 0.0
    starts, least = cut_column(distinct, counts, k, COSTS[cost])
    return distinct[starts], float(least)


def cut_sampled(values: NDArray[np.float64], k: int, *, seed: int | None = None) -> NDArray[np.float64]:
    """The same as `cut_quantiles` from a sample, checked by exact counts: too small intervals join their neighbour."""
    parts = max(len(values) // k, 1)
    drawn = min(len(values), SAMPLE_PER_PART * parts)
    random = np.random.default_rng(seed)
    sample = values[random.integers(0, len(values), drawn)] if drawn < len(values) else values
    firsts = cut_quantiles(sample, max(round(k * (1 + SAMPLE_MARGIN) * drawn / len(values)), 1))
    if not len(firsts):
        return firsts
    firsts[0] = values.min()
    counts = np.bincount(np.searchsorted(firsts, values, side="right") - 1, minlength=len(firsts))
    return _joined(firsts, np.arange(len(firsts)), np.concatenate(([0], np.cumsum(counts))), k)
