"""The privacy hash table against counting everything anew, under additions and removals."""

import doctest
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import DataError, InfeasibleError
from static_algos import PrivacyTable, privacy_table

ROWS = st.tuples(st.integers(0, 3), st.integers(-1, 1), st.integers(0, 4), st.integers(0, 3), st.integers(0, 2))
STEPS = st.lists(st.tuples(st.booleans(), st.lists(ROWS, max_size=6)), max_size=12)


def columns(rows: Any) -> Any:
    array = np.array(rows, np.int64).reshape(-1, 5)
    return array[:, :2], array[:, 2], array[:, 3:]


def counted(rows: Any, least: Any) -> Any:
    """Least distinct persons and values of a class, up to what is asked, and how many classes have too few."""
    classes: dict[Any, list[Any]] = {}
    for row in rows:
        classes.setdefault(row[:2], []).append(row)
    distinct = [[len({row[column] for row in some}) for column in (2, 3, 4)] for some in classes.values()]
    achieved = tuple(min((min(one[c], least[c]) for one in distinct), default=0) for c in range(3))
    return len(classes), achieved, tuple(sum(one[c] < least[c] for one in distinct) for c in range(3))


@settings(max_examples=60, deadline=None)
@given(STEPS, st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3)))
def test_it_answers_what_counting_says(steps: Any, least: Any) -> None:
    live, held = PrivacyTable(quasi=2, k=least[0], distinct=least[1:]), list[Any]()
    for adds, rows in steps:
        if adds:
            live.add(*columns(rows))
            held += rows
        else:
            gone = held[1::2][: len(rows)]
            for row in gone:
                held.remove(row)
            live.remove(*columns(gone))
        expected = counted(held, least)
        assert (len(live), live.achieved, live.failing) == expected
        assert live.holds == (not any(expected[2]))


def test_what_is_not_there_is_not_removed() -> None:
    live = PrivacyTable(quasi=2, k=1, distinct=[1, 1])
    live.add(*columns([(1, 1, 1, 1, 1), (1, 1, 2, 2, 2)]))
    before = (len(live), live.achieved, live.failing)
    for wrong in ((1, 1, 3, 1, 1), (1, 1, 1, 3, 1), (2, 1, 1, 1, 1)):
        with pytest.raises(DataError):
            live.remove(*columns([(1, 1, 1, 1, 1), wrong]))
    with pytest.raises(DataError):
        live.remove(*columns([(1, 1, 1, 1, 1), (1, 1, 1, 1, 1)]))
    assert (len(live), live.achieved, live.failing) == before


def test_rows_that_come_and_go_take_no_room() -> None:
    live = PrivacyTable(quasi=1, k=2)
    for turn in range(300):
        codes, persons = np.full((50, 1), turn), np.arange(50)
        live.add(codes, persons, np.empty((50, 0), np.int64))
        live.remove(codes, persons, np.empty((50, 0), np.int64))
    assert len(live) == 0
    assert live.holds
    assert len(live._counts.rows) <= 200


def test_it_tells_persons_from_rows() -> None:
    live = PrivacyTable(quasi=1, k=2)
    live.add(np.zeros((5, 1), np.int64), np.zeros(5, np.int64), np.empty((5, 0), np.int64))
    assert live.achieved == (1,)


@pytest.mark.parametrize("asked", [{"k": 0}, {"k": 10**9}, {"distinct": [0]}])
def test_absurd_numbers_are_refused(asked: Any) -> None:
    with pytest.raises(InfeasibleError):
        PrivacyTable(quasi=1, **asked)


def test_columns_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError):
        PrivacyTable(quasi=2).add(np.zeros((3, 1), np.int64), np.zeros(3, np.int64), np.empty((3, 0), np.int64))


def test_documentation() -> None:
    assert doctest.testmod(privacy_table).failed == 0
