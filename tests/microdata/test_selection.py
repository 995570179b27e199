"""The n-th smallest value, against sorting."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from microdata import nth_smallest

numbers = st.lists(st.one_of(st.integers(-3, 3), st.floats(allow_nan=False)), min_size=1, max_size=60)


@given(numbers, st.data())
def test_it_is_what_sorting_puts_there(values: Any, data: Any) -> None:
    nth = data.draw(st.integers(0, len(values) - 1))
    given_values = np.array(values, np.float64)
    assert nth_smallest(given_values, nth) == sorted(values)[nth]
    assert sorted(given_values.tolist()) == sorted(values)
