"""Distinct keys against a set of them: exact while they fit, within the stated error beyond."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata.sketch import ERROR, KEPT, DistinctSketch


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 40), max_size=12), max_size=8), st.integers(3, 60))
def test_what_fits_is_counted_exactly_and_what_is_kept_does_not_depend_on_the_order(
    chunks: list[list[int]], kept: int
) -> None:
    every = {key for chunk in chunks for key in chunk}
    one, other = DistinctSketch(kept), DistinctSketch(kept)
    for chunk in chunks:
        one.add(np.array(chunk, np.uint64) << np.uint64(58))
    for chunk in reversed(chunks):
        other.add(np.array(chunk, np.uint64) << np.uint64(58))
    assert one.exact == (len(every) <= kept)
    assert not one.exact or one.count == len(every)
    assert (one.count, one.exact) == (other.count, other.exact)


def test_beyond_the_error_is_as_stated() -> None:
    """Of sixty counts the root of the mean square is the standard error, and hardly one is twice as far off."""
    random = np.random.default_rng(7)
    off = []
    for _ in range(60):
        sketch, kept = DistinctSketch(256), 256
        for _ in range(4):
            keys = random.integers(0, 2**64 - 1, 2_000, np.uint64)
            sketch.add(np.concatenate([keys, keys[:700]]))
        assert not sketch.exact
        off.append(sketch.count / 8_000 - 1)
    expected = 1 / math.sqrt(kept - 2)
    assert math.sqrt(np.mean(np.square(off))) == pytest.approx(expected, rel=0.3)
    assert np.mean(off) == pytest.approx(0, abs=3 * expected / math.sqrt(60))
    assert np.mean(np.abs(off) > 1.96 * expected) <= 0.12
    assert pytest.approx(1.96 / math.sqrt(KEPT - 2)) == ERROR


def test_what_is_kept_is_bounded() -> None:
    sketch = DistinctSketch()
    for start in range(0, 200_000, 40_000):
        sketch.add(np.arange(start, start + 40_000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    assert len(sketch._keys) == KEPT + 1
    assert sketch.count == pytest.approx(200_000, rel=2 * ERROR)
