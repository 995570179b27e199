from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from static_algos.ratios import LARGEST, product_at_most, rounded_down

words = st.integers(0, LARGEST)


@given(words, words, words, words)
def test_products_are_compared_without_overflow(a: Any, b: Any, c: Any, d: Any) -> None:
    assert product_at_most(a, b, c, d) == (a * b <= c * d)


@given(words, words, st.integers(-1, 1))
def test_products_that_differ_by_little(a: Any, b: Any, more: int) -> None:
    other = min(max(a + more, 0), LARGEST)
    assert product_at_most(a, b, b, other) == (a * b <= b * other)


@given(st.fractions(min_value=0, max_value=10**6, max_denominator=10**30))
def test_a_ratio_is_never_above_its_value(value: Any) -> None:
    ratio = rounded_down(value)
    rounded = Fraction(ratio.numerator, ratio.denominator)
    assert max(ratio) <= LARGEST
    assert rounded <= value
    assert value - rounded < Fraction(1, 2**40)


@given(st.fractions(min_value=0, max_value=1, max_denominator=LARGEST))
def test_what_fits_is_kept(value: Any) -> None:
    assert Fraction(*rounded_down(value)) == value
