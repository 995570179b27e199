"""Comparisons that do not round.

Counts are integers and parameters are the decimal numbers that people write, so most conditions are comparisons of
integers. They run in 64 bits where the largest product fits and in Python's integers where it does not.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Real: TypeAlias = float | Fraction
"""A parameter: 0.1 means one tenth, not the binary number next to it."""

Integers: TypeAlias = NDArray[Any]
"""Whole numbers, as int64 or as Python integers where products would overflow."""

SLACK = 1e-12
"""Relative distance that a transcendental bound keeps from its threshold: far above the error of float64."""


def exact(value: Real) -> Fraction:
    """The number that was written."""
    return Fraction(str(value))


def integers(values: NDArray[np.integer], largest: int) -> Integers:
    """The same numbers in a type in which products up to `largest` are exact."""
    return values.astype(np.int64 if largest < 2**62 else object)


def floor_times(factor: Fraction, counts: NDArray[np.integer]) -> Integers:
    """`factor` times each count, rounded down."""
    top, bottom = factor.numerator, factor.denominator
    return integers(counts, max(abs(top) * int(counts.max(initial=1)), bottom)) * top // bottom


def by_class(
    operation: np.ufunc, values: NDArray[Any], starts: NDArray[np.int64], *, empty: float | bool
) -> NDArray[Any]:
    """Reduce the values of each class, which begin at `starts` (one more entry than classes)."""
    filled = np.diff(starts) > 0
    result = np.full(len(starts) - 1, empty, values.dtype)
    if filled.any():
        result[filled] = operation.reduceat(values, starts[:-1][filled])
    return result
