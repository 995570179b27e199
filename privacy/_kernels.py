"""The one check that looks at pairs of values."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from microdata import kernel


@kernel
def range_gains(
    starts: NDArray[np.int64],
    values: NDArray[np.int32],
    inside_before: NDArray[np.int64],
    reference_before: NDArray[np.int64],
    rows: NDArray[np.int64],
    reach: NDArray[np.int64],
    slack: float,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Counts in the class and in the reference of each class's run of greatest gain; whether q ≤ p (1 - ln p) in all.

    A run goes from one value of the class to another, which lies at most at `reach` of the first.
    """
    classes = len(starts) - 1
    total = reference_before[-1]
    best_inside = np.zeros(classes, np.int64)
    best_reference = np.ones(classes, np.int64)
    bounded = np.ones(classes, np.bool_)
    for one in range(classes):
        for first in range(starts[one], starts[one + 1]):
            limit = reach[values[first]]
            last = first
            while last < starts[one + 1] and values[last] <= limit:
                inside = inside_before[last + 1] - inside_before[first]
                reference = reference_before[values[last] + 1] - reference_before[values[first]]
                if inside * best_reference[one] > best_inside[one] * reference:
                    best_inside[one] = inside
                    best_reference[one] = reference
                if reference == 0:
                    bounded[one] = False
                elif inside * total > reference * rows[one]:
                    p = reference / total
                    if inside / rows[one] > p * (1.0 - math.log(p)) * (1.0 - slack):
                        bounded[one] = False
                last += 1
    return best_inside, best_reference, bounded
