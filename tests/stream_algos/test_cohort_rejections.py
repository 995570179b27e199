"""What an event that is rejected tells cohorts about its person: it is never published, but may show a move."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stream_algos import Batch, Cohorts
from tests.stream_algos.test_cohort_refusals import cohorts, rows_at

NAN = float("nan")


def event(position: int, person: int, value: float, *, rejected: bool = False) -> Batch:
    row = rows_at(0.0, start=position)
    own = {"persons": np.array([person]), "quasi": np.array([[value]])}
    return replace(row, **own, rejected=np.array([True]) if rejected else None)


def founded(values: Any = (5.0,) * 4) -> Cohorts:
    """One cohort of four members, the persons from 1 on."""
    engine = cohorts()
    for place, value in enumerate(values):
        engine.push(event(place, 1 + place, value))
    assert sorted(engine.flush().members.tolist()) == [0, 1, 2, 3]
    assert engine.status()["members"] == 4
    return engine


@pytest.mark.parametrize(("value", "members"), [(5.0, 4), (9.0, 4), (55.0, 3), (NAN, 3)])
def test_a_member_who_may_have_left_the_box_is_no_company_any_more(value: float, members: int) -> None:
    engine = founded()
    release = engine.push(event(10, 1, value, rejected=True))
    assert (len(release), len(release.suppressed)) == (0, 0)
    assert (engine.status()["members"], engine.status()["dismissed"]) == (members, 4 - members)
    company = engine.push(event(11, 2, 5.0)).company.tolist()
    assert company == [members]


def test_a_cohort_of_which_too_many_moved_with_rejected_events_publishes_nothing() -> None:
    engine = founded()
    for person in (1, 2):
        engine.push(event(10 + person, person, NAN, rejected=True))
    assert len(engine.push(event(20, 3, 5.0)).members) == 0


def test_somebody_who_waits_and_cannot_be_read_leaves_the_pool_with_all_rows() -> None:
    engine = cohorts()
    for place in range(3):
        engine.push(event(place, 1 + place, 5.0))
    assert engine.push(event(3, 1, NAN, rejected=True)).suppressed.tolist() == [0]
    assert (engine.status()["pool"], engine.pending().tolist()) == (2, [1, 2])
    release = engine.flush()
    assert (release.members.tolist(), sorted(release.suppressed.tolist())) == ([], [1, 2])


@pytest.mark.parametrize(("first", "moved"), [(5.0, 95.0), (95.0, 5.0)])
def test_the_founding_box_holds_what_a_rejected_event_showed_of_somebody_who_waits(first: float, moved: float) -> None:
    engine = cohorts()
    for place in range(3):
        engine.push(event(place, 1 + place, first))
    engine.push(event(3, 1, moved, rejected=True))
    release = engine.flush()
    assert sorted(release.members.tolist()) == [0, 1, 2]
    assert (release.lo <= 5).all()
    assert (release.hi >= 95).all()


@pytest.mark.parametrize(("value", "known"), [(NAN, 0), (5.0, 1)])
def test_a_person_is_known_from_the_first_event_that_can_be_read(value: float, known: int) -> None:
    engine = cohorts()
    release = engine.push(event(0, 1, value, rejected=True))
    assert (len(release), len(release.suppressed)) == (0, 0)
    assert (engine.status()["persons"], engine.status()["pool"]) == (known, known)
    assert engine.pending().tolist() == []


def test_a_person_who_could_not_be_read_joins_and_is_never_counted() -> None:
    """Person 5 waits, cannot be read, and comes again inside of the box: the row has company, but is none."""
    engine = founded()
    engine.push(event(10, 5, 95.0))
    engine.push(event(11, 5, NAN, rejected=True))
    release = engine.push(event(12, 5, 5.0))
    assert (release.members.tolist(), release.company.tolist()) == ([12], [4])
    assert engine.status()["members"] == 4
