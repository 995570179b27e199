"""What CASTLE refuses and when it decides: delays at their bounds, clocks that are set back, unknown boxes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from microdata import GuaranteeError, InfeasibleError, Number, Schema
from stream_algos import Batch, Release
from tests.stream_algos.castle_streams import castle
from tests.stream_algos.test_castle_categories import SCHEMA as CATEGORIES

ONE = Schema("p", (Number("v", 0, 100, step=10),))


def rows_at(*times: float) -> Batch:
    """Rows of different persons with the same value, at the positions from 0 on."""
    count = len(times)
    nothing = np.empty((count, 0), np.int32)
    return Batch(np.arange(count), np.array(times, float), np.arange(count), np.full((count, 1), 5.0), nothing)


def test_the_shortest_delay_that_allows_the_guarantee_is_accepted_and_none_below_it() -> None:
    castle(CATEGORIES, k=2, delta=40, alpha_weight=40.5)
    with pytest.raises(InfeasibleError) as refused:
        castle(CATEGORIES, k=2, delta=39, alpha_weight=40.5)
    assert (refused.value.parameter, refused.value.nearest) == ("delay", 40)


@pytest.mark.parametrize("formation", ["arrival", "deadline"])
def test_rows_behind_a_late_clock_are_overdue_with_the_row_after_them(formation: str) -> None:
    """The third row has a time far ahead. The fourth one is overdue, so all before it are, the third one too."""
    engine = castle(ONE, formation=formation, k=10, delta=1000, seconds=3)
    release = engine.push(rows_at(0, 1, 20, 1, 5))
    assert release.suppressed.tolist() == [0, 1, 2, 3]
    assert engine.pending().tolist() == [4]


@pytest.mark.parametrize("formation", ["arrival", "deadline"])
def test_a_row_is_overdue_once_so_many_seconds_have_passed(formation: str) -> None:
    engine = castle(ONE, formation=formation, k=10, delta=1000, seconds=3)
    assert engine.push(rows_at(0, 1, 2.5)).suppressed.tolist() == []
    engine = castle(ONE, formation=formation, k=10, delta=1000, seconds=3)
    assert engine.push(rows_at(0, 1, 3)).suppressed.tolist() == [0]


@pytest.mark.parametrize("formation", ["arrival", "deadline"])
def test_a_bound_in_seconds_delays_no_decision_that_is_due_by_position(formation: str) -> None:
    engine = castle(ONE, formation=formation, k=2, delta=2, seconds=1000)
    rows = rows_at(0, 1, 2, 3, 4, 5)
    release = engine.push(replace(rows, persons=np.zeros(6, np.int64)))
    assert release.suppressed.tolist() == [0, 1, 2, 3]
    assert release.given_up.tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize("formation", ["arrival", "deadline"])
def test_rows_that_come_later_are_not_decided_before_they_are_there(formation: str) -> None:
    engine = castle(ONE, formation=formation, k=10, delta=1000, seconds=3)
    release = engine.push(rows_at(5, 9, 1))
    assert release.suppressed.tolist() == [0]
    assert release.given_up.tolist() == [0]


def reuses(*ids: int) -> Any:
    """Rows that are published alone, with the boxes of these clusters."""
    count = len(ids)
    lo, hi = np.zeros((count, 1)), np.full((count, 1), 10.0)
    none = np.empty(0, np.int64)
    members, windows = np.arange(count), np.full((count, 2), -1)
    numbers = np.array(ids, np.uint64)
    return Release(numbers, lo, hi, np.arange(count + 1), members, np.ones(count, bool), windows, none)


def test_one_reuse_of_an_unknown_box_stops_the_engine_though_others_are_known() -> None:
    engine = castle(ONE, k=2, delta=10, reuse=True)
    engine._published_ids = np.array([7], np.uint64)
    engine._require(reuses(7, 7), rows_at(0, 0))
    engine._published_ids = np.array([7], np.uint64)
    with pytest.raises(GuaranteeError, match="never published"):
        engine._require(reuses(7, 8), rows_at(0, 0))
