"""Decisions that name a cohort instead of repeating its box: small in the state, and the same boxes after a restart."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.kafka import UnclearError
from service.worker.person_memory import PersonMemory
from service.worker.state import State
from stream_algos import Release
from tests.service.worker.quarter import STATES, K, Quarter


def owed(quarter: Quarter) -> Any:
    """What the worker has decided and not yet published."""
    (own,) = quarter.hall.worker._owned.running.values()
    return own._owed


def written(quarter: Quarter) -> Release:
    """The same as the state record has it."""
    return State.decode(quarter.paper.logs[STATES][-1][1]).decisions


def test_a_state_says_of_a_box_only_where_it_is_remembered(quarter: Quarter) -> None:
    quarter.come(40, moving=0.0)
    quarter.hall.cycle()
    decided, kept = owed(quarter), written(quarter)
    assert len(kept) > 20
    assert (kept.entries >= 0).mean() > 0.9
    named = kept.entries >= 0
    assert np.isnan(kept.lo[named]).all()
    assert np.isnan(kept.hi[named]).all()
    assert not kept.parents[named].any()
    assert np.array_equal(kept.lo[~named], decided.lo[~named])
    assert np.array_equal(kept.ids, decided.ids)
    assert np.isfinite(decided.lo).all(), "who has decided it knows the box itself"


def unanswered(quarter: Quarter, when: str, moving: float) -> Release:
    """A cycle whose commit nobody answers: what it has decided, as it would be kept."""
    (own,) = quarter.hall.worker._owned.running.values()
    quarter.come(20, moving=moving)
    quarter.paper.errors[when] = UnclearError("nobody knows")
    quarter.hall.cycle()
    quarter.hall.worker._transactions.trouble.over()
    assert own.memory is not None
    return own.memory.referring(Release.concat([Release.empty(len(own.schema.quasi)), *own._fresh]))


@pytest.mark.parametrize("company", ["standing", "present"])
@pytest.mark.parametrize("moving", [0.0, 0.3])
def test_after_a_restart_the_same_rows_leave_with_the_same_boxes(key_file: Path, company: str, moving: float) -> None:
    quarter = Quarter(key_file, company=company, founders=K)
    quarter.hall.cycle()
    referred = own_boxes = committed = 0
    for turn in range(12):
        quarter.come(40, moving=moving, among=slice(0, 12 + 4 * turn))
        quarter.hall.cycle()
        before = owed(quarter)
        referred += int((before.entries >= 0).sum())
        own_boxes += int((before.entries < 0).sum())
        if turn % 3 == 0:
            quarter.restart()
        elif turn % 3 == 1:  # what is in memory goes on, without what was not committed
            unanswered(quarter, "commit", moving)
        else:  # it was committed after all
            before = unanswered(quarter, "committed", moving)
            committed += len(before)
        quarter.hall.worker._poll(0.0, 1)
        after = owed(quarter)
        for name in ("ids", "lo", "hi", "parents", "members", "starts", "reused", "entries"):
            assert np.array_equal(getattr(after, name), getattr(before, name)), name
    assert (referred > 100) == (company == "standing"), "a class of those who are present has a box of its own"
    assert own_boxes > 0 or (company, moving) == ("standing", 0.0), "boxes that have changed since are among them"
    assert committed > 0
    quarter.hall.cycle(3)
    assert quarter.least() >= K
    assert quarter.hall.worker.metrics.status()["counts"]["refused_releases"] == 0


def test_a_box_that_has_grown_since_it_was_decided_with_is_written_whole(quarter: Quarter) -> None:
    quarter.come(40, moving=0.0)
    quarter.hall.cycle()
    (own,) = quarter.hall.worker._owned.running.values()
    assert own.memory is not None
    decided = owed(quarter)
    first = int(np.flatnonzero(decided.entries >= 0)[0])
    for name in ("lo", "ids", "parents"):
        changed = getattr(decided, name).copy()
        changed[first] += 1
        kept = own.memory.referring(replace(decided, **{name: changed}))
        assert kept.entries[first] == -1, name
        assert np.array_equal(getattr(kept, name), changed)


@pytest.mark.parametrize("wrong", ["another", "none"])
def test_a_decision_that_names_another_box_than_is_remembered_stops_the_partition(
    quarter: Quarter, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    """Broken on purpose: what was written names the wrong cohorts."""
    referring = PersonMemory.referring

    def confused(memory: PersonMemory, decisions: Release) -> Release:
        kept = referring(memory, decisions)
        entries = kept.entries[::-1].copy() if wrong == "another" else kept.entries + 1_000_000
        return replace(kept, entries=np.where(kept.entries < 0, -1, entries))

    monkeypatch.setattr(PersonMemory, "referring", confused)
    quarter.come(40, moving=0.0)
    quarter.hall.cycle()
    assert len(set(written(quarter).entries.tolist())) > 2
    published = len(quarter.published()[0])
    quarter.restart()
    assert {"another": "names a box that is not remembered", "none": "no such cohort"}[wrong] in quarter.stopped()
    quarter.come(40)
    quarter.hall.cycle(3)
    assert len(quarter.published()[0]) == published
