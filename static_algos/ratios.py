"""Exact comparisons of fractions inside kernels.

Counts are integers, so distances between distributions are fractions. A threshold is compared with them without
rounding; one that does not fit into 64-bit words is rounded down, to the safe side, first.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from microdata import kernel

LARGEST = 2**62
"""Denominators stay below this; so do the products that kernels keep in one word."""

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


class Ratio(NamedTuple):
    """A non-negative fraction as two words."""

    numerator: int
    denominator: int


def rounded_down(value: Fraction) -> Ratio:
    """The value itself where it fits, otherwise the next smaller fraction that does."""
    if value.denominator <= LARGEST and value.numerator <= LARGEST:
        return Ratio(value.numerator, value.denominator)
    if value >= LARGEST:
        return Ratio(LARGEST, 1)
    denominator = 1 << (61 - int(value).bit_length())
    return Ratio(int(value * denominator), denominator)


@kernel
def product_at_most(a: int, b: int, c: int, d: int) -> bool:
    """Whether a · b ≤ c · d, for non-negative 64-bit numbers, without overflow."""
    left_high, left_low = _product(np.uint64(a), np.uint64(b))
    right_high, right_low = _product(np.uint64(c), np.uint64(d))
    return bool(left_high < right_high or (left_high == right_high and left_low <= right_low))


@kernel
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """High and low word of a product, by schoolbook multiplication of half words."""
    low = (a & _LOW) * (b & _LOW)
    middle = (a >> _HALF) * (b & _LOW) + (low >> _HALF)
    other = (a & _LOW) * (b >> _HALF) + (middle & _LOW)
    high = (a >> _HALF) * (b >> _HALF) + (middle >> _HALF) + (other >> _HALF)
    return high, (other << _HALF) | (low & _LOW)
