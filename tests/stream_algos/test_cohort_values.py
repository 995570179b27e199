"""Last seen values of persons: as they came, in little memory where they are small and whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microdata import Number, Schema
from stream_algos import Cohorts
from stream_algos._cohort_value_kernels import ELSEWHERE
from stream_algos._cohort_values import LastValues

LOWS = (-3.0, 0.1, 0.0)
SCHEMA = Schema(
    "person", (Number("whole", LOWS[0], 10**6), Number("tenths", LOWS[1], 10**6), Number("far", LOWS[2], 2**53 - 1))
)


def column() -> tuple[Cohorts, LastValues]:
    one = Cohorts(SCHEMA, k=2, delay={"tuples": 4}, company="standing")
    return one, LastValues(one._state)


def whole_or_not(low: float) -> st.SearchStrategy[float]:
    return st.one_of(st.integers(0, 70_000).map(lambda steps: low + steps), st.floats(low, 10**6))


@given(st.lists(st.tuples(*map(whole_or_not, LOWS)), min_size=1, max_size=20))
def test_whatever_comes_is_given_back_as_it_came(rows: list[tuple[float, ...]]) -> None:
    _, values = column()
    numbers = np.arange(len(rows))[::-1] * 3
    values[numbers] = np.array(rows)
    assert values[numbers].tolist() == [list(row) for row in rows]
    values[numbers] = np.array(rows[::-1])  # over what was there
    assert values[numbers].tolist() == [list(row) for row in rows[::-1]]


@pytest.mark.parametrize("value", [-3.0, 0.0, 65_531.0])
def test_small_whole_values_take_no_other_memory(value: float) -> None:
    one, values = column()
    values[np.array([7])] = np.array([[value, 0.1, 0.0]])
    assert (one._state.narrow[7] != ELSEWHERE).all()
    assert not one._state.exact[7].any()


@pytest.mark.parametrize("value", [65_532.0, 65_533.0, 0.5, -3.5, -4.0, np.inf])
def test_others_are_kept_as_they_are(value: float) -> None:
    one, values = column()
    values[np.array([7])] = np.array([[value, 0.1, 0.0]])
    assert one._state.narrow[7].tolist() == [ELSEWHERE, 0, 0]
    assert values[7:8].tolist() == [[value, 0.1, 0.0]]


def test_nobody_is_read_or_written_who_is_not_there() -> None:
    one, _ = column()
    values = LastValues(one._state, 5)
    for numbers in ([5], [-1], [0, 5]):
        with pytest.raises(IndexError):
            values[np.array(numbers)]
        with pytest.raises(IndexError):
            values[np.array(numbers)] = np.zeros((len(numbers), 3))
    assert len(values[:]) == len(values) == 5
