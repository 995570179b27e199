"""The attack that a worker runs on a few persons while their rows leave."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from prometheus_client import generate_latest

from service.worker import followed as followed_module
from service.worker.followed import FollowedPersons
from service.worker.sealing import add_key
from stream_algos import Batch, Cohorts, Release
from tests.service.worker.quarter import K, Quarter


class Alike:
    """An engine that has three persons in the box from 10 to 20, of whom 1 is followed, and says who is new."""

    new: Any = ()

    def alike(self, person: tuple[int, int], most: int) -> Any:
        values = np.array([[10.0], [15.0], [20.0]])
        return (
            ((np.array([10.0]), np.array([20.0])), np.array([1, 2, 3]), values)
            if person == (1, 0) and most >= 3
            else None
        )

    def newcomers(self) -> Any:
        return None if self.new is None else np.array(self.new, np.int64)


def batch(*rows: tuple[int, int, float]) -> Batch:
    positions, persons, values = zip(*rows, strict=True) if rows else ((), (), ())
    quasi = np.array(values, float).reshape(len(rows), 1)
    nothing = np.empty((len(rows), 0), np.int32)
    return Batch(np.array(positions, np.int64), np.zeros(len(rows)), np.array(persons, np.int64), quasi, nothing)


def leaving(*boxes: tuple[int, float, float]) -> Release:
    """Rows at these positions, each with its box."""
    count = len(boxes)
    lo, hi = (np.array([[box[side]] for box in boxes], float).reshape(count, 1) for side in (1, 2))
    members = np.array([box[0] for box in boxes], np.int64)
    ids, none = np.arange(count, dtype=np.uint64), np.empty(0, np.int64)
    windows = np.full((count, 2), -1)
    return Release(ids, lo, hi, np.arange(count + 1), members, np.zeros(count, bool), windows, none)


def followed(k: int, *rows: tuple[int, int, float], new: Any = ()) -> FollowedPersons:
    """Person 1 is followed from the first cycle on, and these rows come in the second."""
    engine = Alike()
    made = FollowedPersons(engine, k)  # type: ignore[arg-type]
    made.passed(leaving(), batch((0, 1, 10.0)), np.array([0]))
    assert len(made) == 1
    engine.new = new
    made.passed(leaving(), batch(*rows), np.array([row[0] for row in rows]))
    return made


def test_boxes_are_intersected_at_the_positions_of_their_rows() -> None:
    made = followed(3, (1, 1, 10.0), (2, 2, 90.0), (3, 1, 10.0))
    assert made.refused(leaving((1, 10, 20))).tolist() == [False], "person 2 had not moved yet"
    assert made.refused(leaving((3, 10, 20))).tolist() == [True], "person 2 has"
    assert made.refused(leaving((3, 10, 90))).tolist() == [False]
    assert made.refused(leaving((0, 10, 10))).tolist() == [False], "of the time before nothing is known"
    made.passed(leaving((1, 10, 20)), batch(), np.array([3]))
    assert (made.rows, made.least) == (1, 3)
    assert made.refused(leaving((3, 10, 15))).tolist() == [True]
    made.passed(leaving((3, 10, 15)), batch(), np.empty(0, np.int64))
    assert made.least == 1, "who moved away, and who was left out"


def test_two_rows_of_one_release_are_tied_together() -> None:
    made = followed(2, (1, 1, 10.0), (2, 1, 10.0))
    assert made.refused(leaving((1, 10, 15), (2, 10, 20))).tolist() == [False, False]
    made = followed(2, (1, 1, 14.0), (2, 1, 14.0))
    assert made.refused(leaving((1, 14, 20), (2, 10, 14))).tolist() == [False, True], "together one is left"


def test_candidates_must_lie_in_all_boxes_of_a_release_and_of_those_before() -> None:
    """Person 2 lies in the first box alone, person 3 in the second one alone, person 1 in both."""
    rows = ((1, 2, 10.0), (2, 1, 15.0), (3, 1, 15.0))
    first, second = (2, 10, 15), (3, 15, 20)
    made = followed(2, *rows)
    assert made.refused(leaving(first)).tolist() == [False]
    assert made.refused(leaving(second)).tolist() == [False]
    assert made.refused(leaving(first, second)).tolist() == [False, True]
    made.passed(leaving(first), batch(), np.array([3]))
    assert made.refused(leaving(second)).tolist() == [True]
    assert (made.rows, made.least) == (1, 2)
    made.passed(leaving(second), batch(), np.empty(0, np.int64))
    assert (made.rows, made.least) == (2, 1)


def test_a_person_who_came_after_a_row_had_their_first_values_at_the_time_of_the_row() -> None:
    """Person 7 comes in a later cycle, near person 1, and moves away before the row is published."""
    made = followed(2, (1, 1, 10.0))
    made._engine.new = [7]  # type: ignore[attr-defined]
    made.passed(leaving(), batch((2, 7, 12.0), (3, 7, 90.0)), np.array([1]))
    assert made.refused(leaving((1, 10, 13))).tolist() == [False]
    assert made.refused(leaving((1, 10, 11))).tolist() == [True]


def test_a_new_person_outside_of_the_common_box_is_no_candidate_in_a_wider_one() -> None:
    rows = ((1, 1, 10.0), (2, 8, 40.0), (3, 8, 12.0), (4, 1, 10.0))
    assert followed(3, *rows, new=[8]).refused(leaving((4, 10, 90))).tolist() == [False], "1, 2 and 3"
    assert followed(4, *rows, new=[8]).refused(leaving((4, 10, 90))).tolist() == [True], "8 was elsewhere at first"


def test_the_fewest_candidates_of_all_persons_are_told() -> None:
    made = followed(2, (1, 1, 10.0))
    made.least = 1
    made.passed(leaving((1, 10, 20)), batch(), np.empty(0, np.int64))
    assert (made.rows, made.least) == (1, 1)


def test_who_is_new_had_their_first_values_before(monkeypatch: pytest.MonkeyPatch) -> None:
    made = followed(4, (1, 1, 10.0), (2, 7, 12.0), (3, 8, 40.0), (4, 7, 90.0), (5, 1, 10.0), new=[7, 8])
    assert made.refused(leaving((1, 10, 20))).tolist() == [False], "1, 2, 3 and 7"
    assert made.refused(leaving((5, 10, 20))).tolist() == [True], "7 has moved"
    assert made.refused(leaving((5, 10, 90))).tolist() == [False]
    monkeypatch.setattr(followed_module, "_MOST_OTHERS", 3)
    made.passed(leaving(), batch((6, 9, 11.0)), np.array([6]))
    assert len(made) == 0, "too many to follow"


def test_nobody_is_followed_where_it_cannot_be_told_who_is_new() -> None:
    assert len(followed(2, (1, 1, 10.0), new=None)) == 0


def test_whoever_has_too_many_rows_that_wait_is_followed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_module, "_MOST_WAITING", 2)
    assert followed(2, (1, 1, 10.0), (2, 1, 10.0)).refused(leaving((2, 10, 10))).tolist() == [True]
    anew = followed(2, (1, 1, 10.0), (2, 1, 10.0), (3, 1, 10.0))
    assert anew.refused(leaving((2, 10, 10))).tolist() == [False], "from here on"


def test_others_take_the_place_of_those_who_were_followed_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_module, "_TURN", 3)
    made = followed(2, (1, 1, 10.0))
    made.passed(leaving(), batch((2, 2, 15.0)), np.array([2]))
    assert len(made) == 0


@pytest.fixture
def everybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Quarter:
    """A worker that follows all of its persons."""
    monkeypatch.setattr(followed_module, "_PERSONS", 100)
    monkeypatch.setattr(followed_module, "secrets", SimpleNamespace(randbelow=np.random.default_rng(4).integers))
    add_key(tmp_path / "keys.json")
    quarter = Quarter(tmp_path / "keys.json", persons=30)
    quarter.hall.cycle()
    for _ in range(60):
        quarter.come(20)
        quarter.hall.cycle()
    return quarter


def test_a_worker_tells_the_fewest_candidates_of_those_it_follows(everybody: Quarter) -> None:
    status = everybody.hall.worker.metrics.status()
    (known,) = status["partitions"].values()
    assert known["followed"]["persons"] >= 10
    assert known["followed"]["rows"] > 200
    assert known["followed"]["least"] >= K
    assert status["counts"]["refused_releases"] == 0
    assert status["counts"]["at_once"] > 0.8 * status["counts"]["released"]
    engine = known["engine"]
    assert engine["cohorts"] == engine["founded"] + engine["splits"]
    assert engine["fewest_members"] <= engine["median_members"] <= engine["most_members"]
    text = generate_latest(everybody.hall.worker.metrics.registry).decode()
    assert f'portcullis_least_candidates{{stream="s"}} {known["followed"]["least"]}.0' in text
    assert f'portcullis_persons_followed{{stream="s"}} {known["followed"]["persons"]}.0' in text
    for name in ("fewest", "median", "most"):
        assert f'portcullis_cohort_members_{name}{{stream="s"}} {engine[f"{name}_members"]}' in text
    for name in ("cohorts_founded", "cohort_splits", "silent_cohorts", "events_at_once_total"):
        assert f'portcullis_{name}{{stream="s"}}' in text


def test_a_box_of_ones_own_does_not_leave_though_the_engine_says_that_it_has_company(
    everybody: Quarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken on purpose: the gate believes an engine how many persons stand behind a box. The attack does not."""
    push = Cohorts.push

    def own_boxes(engine: Cohorts, rows: Batch) -> Release:
        release = push(engine, rows)
        alone = np.diff(release.starts) == 1
        values = rows.quasi[np.searchsorted(rows.positions, release.members[release.starts[:-1]][alone])]
        release.lo[alone] = release.hi[alone] = values
        release.ids[alone], release.reused[alone] = np.arange(alone.sum()) + len(everybody.seen), False
        return release

    monkeypatch.setattr(Cohorts, "push", own_boxes)
    before = everybody.hall.worker.metrics.status()["counts"]
    everybody.come(20, moving=0.0)
    everybody.hall.cycle(3)
    after = everybody.hall.worker.metrics.status()["counts"]
    assert after["refused_releases"] > 3
    assert after["suppressed"] >= before["suppressed"] + after["refused_releases"]
