"""What cohorts refuse and when they decide: positions, clocks that are set back, releases that break the promise."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from microdata import Category, DataError, GuaranteeError, Hierarchy, Number, Schema, seeded_words
from privacy import DistinctDiversity, KAnonymity, KOverTime
from stream_algos import Batch, Cohorts, Release

ONE = Schema("p", (Number("v", 0, 100, step=10),))
ILL = Schema("p", ONE.quasi, (Category("illness", Hierarchy.flat(["flu", "gout"])),))


def cohorts(schema: Schema = ONE, **given: Any) -> Cohorts:
    asked = {"k": 3, "founders": 6, "delay": {"tuples": 1000, "seconds": 3}, "company": "standing"}
    return Cohorts(schema, words=seeded_words(1), **{**asked, **given})


def rows_at(*times: float, start: int = 0) -> Batch:
    """Rows of different persons with the same value, at the positions from `start` on."""
    count = len(times)
    positions, nothing = np.arange(start, start + count), np.empty((count, 0), np.int32)
    return Batch(positions, np.array(times, float), positions + 100, np.full((count, 1), 5.0), nothing)


def test_it_promises_what_was_asked_for() -> None:
    assert cohorts().models() == (KOverTime(3),)
    assert cohorts(company="present").models() == (KOverTime(3), KAnonymity(3))
    assert cohorts(ILL, l=2).models() == (KOverTime(3), DistinctDiversity(2))


@pytest.mark.parametrize("positions", [[5, 6], [4, 6], [6, 6], [7, 6]])
def test_positions_must_grow_from_row_to_row_and_from_batch_to_batch(positions: Any) -> None:
    engine = cohorts()
    engine.push(rows_at(0, start=5))
    with pytest.raises(DataError, match="positions must grow"):
        engine.push(replace(rows_at(1, 1), positions=np.array(positions)))
    engine.push(replace(rows_at(1, 1), positions=np.array([6, 7])))
    assert engine.pending().tolist() == [5, 6, 7]


def test_a_position_that_has_passed_is_not_taken() -> None:
    engine = cohorts()
    engine.push(rows_at(0))
    engine.advance(5)
    with pytest.raises(DataError, match="positions must grow"):
        engine.push(rows_at(1, start=5))
    engine.push(rows_at(1, start=6))


def test_it_tells_since_which_position_it_holds() -> None:
    engine = cohorts()
    engine.push(rows_at(0, start=5))
    engine.push(rows_at(0, start=6))
    assert engine.status()["since"] == 5


def test_rows_are_overdue_once_so_many_seconds_have_passed() -> None:
    engine = cohorts()
    engine.push(rows_at(0, 0.5, 2))
    assert engine.expire(2.9).suppressed.tolist() == []
    assert engine.expire(3.0).suppressed.tolist() == [0]
    assert engine.expire(4.9).suppressed.tolist() == [1]
    assert engine.pending().tolist() == [2]


def test_all_rows_that_are_overdue_and_those_before_them_are_decided() -> None:
    engine = cohorts()
    engine.push(rows_at(0, 0.5, 2.9, 1))
    assert engine.expire(4.0).suppressed.tolist() == [0, 1, 2, 3]


def test_rows_are_overdue_with_the_row_whose_time_makes_them_so() -> None:
    engine = cohorts()
    assert engine.push(rows_at(0, 1, 2.5)).suppressed.tolist() == []
    engine = cohorts()
    release = engine.push(rows_at(0, 1, 3))
    assert (release.suppressed.tolist(), release.given_up.tolist()) == ([0], [1])
    assert engine.pending().tolist() == [1, 2]


def test_rows_behind_a_late_clock_are_overdue_with_the_row_after_them() -> None:
    """The third row has a time far ahead. The fourth one is overdue, so all before it are, the third one too."""
    engine = cohorts()
    release = engine.push(rows_at(0, 1, 20, 1, 5))
    assert release.suppressed.tolist() == [0, 1, 2, 3]
    assert engine.pending().tolist() == [4]


def test_rows_that_come_later_are_not_decided_before_they_are_there() -> None:
    engine = cohorts()
    release = engine.push(rows_at(5, 9, 1))
    assert (release.suppressed.tolist(), release.given_up.tolist()) == ([0], [0])
    assert engine.pending().tolist() == [1, 2]


def test_the_end_founds_cohorts_of_k_persons_and_no_fewer() -> None:
    engine = cohorts()
    engine.push(rows_at(0, 0, 0))
    assert sorted(engine.flush().members.tolist()) == [0, 1, 2]
    engine = cohorts()
    engine.push(rows_at(0, 0))
    release = engine.flush()
    assert (release.members.tolist(), release.suppressed.tolist()) == ([], [0, 1])


def leaving(*company: int) -> Release:
    """A row for each of these numbers of persons who stand behind it."""
    count = len(company)
    lo, hi = np.zeros((count, 1)), np.full((count, 1), 10.0)
    ids, none = np.arange(count, dtype=np.uint64), np.empty(0, np.int64)
    windows = np.full((count, 2), -1)
    made = Release(ids, lo, hi, np.arange(count + 1), np.arange(count), np.zeros(count, bool), windows, none)
    return replace(made, company=np.array(company))


@pytest.mark.parametrize(
    ("company", "values", "reason"),
    [
        ((3, 2), (5, 5), "fewer than k"),
        ((2, 2), (5, 5), "fewer than k"),
        ((3, 3), (5, 11), "does not cover"),
        ((3, 3), (5, -1), "does not cover"),
    ],
)
def test_a_release_that_breaks_the_promise_stops_the_engine(company: Any, values: Any, reason: str) -> None:
    engine = cohorts()
    engine._require(leaving(3, 3), np.array([[5.0], [10.0]]))
    with pytest.raises(GuaranteeError, match=reason):
        engine._require(leaving(*company), np.array(values, float)[:, np.newaxis])


def test_every_release_is_checked_before_it_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise GuaranteeError("broken")

    engine = cohorts()
    engine.push(rows_at(0, 0, 0))
    monkeypatch.setattr(engine, "_require", broken)
    with pytest.raises(GuaranteeError, match="broken"):
        engine.flush()
