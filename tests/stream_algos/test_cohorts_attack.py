"""Whoever ties all rows of a person together finds k persons; and with any rule broken, fewer."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_algos import Batch, Cohorts
from stream_algos import _cohort_state as taking
from stream_algos._cohort_values import LastValues
from stream_algos._held_kernels import NONE
from tests.stream_algos.cohort_streams import (
    BROKEN,
    SCHEMA,
    break_rule,
    engine,
    people,
    succeeds,
    told_newcomers,
    watched,
    with_rejected,
)
from tests.stream_worlds import Observer

SEEDS = range(10)
FOUND_IN = 9


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    persons=st.integers(1, 90),
    repeats=st.integers(1, 12),
    k=st.integers(1, 6),
    tuples=st.sampled_from((5, 60, 400)),
    moving=st.sampled_from((0.0, 0.02, 0.3, 1.0)),
    restarts=st.sampled_from((0, 1, 3)),
    company=st.sampled_from(("standing", "present")),
    rejected=st.sampled_from((0.0, 0.1, 0.5)),
)
def test_linked_rows_leave_k_persons(
    seed: Any,
    persons: Any,
    repeats: Any,
    k: Any,
    tuples: Any,
    moving: Any,
    restarts: Any,
    company: Any,
    rejected: Any,
) -> None:
    batch = with_rejected(people(seed, persons, repeats, moving), seed, rejected)
    observer = watched(engine(seed, k, tuples, company=company), batch, restarts)
    observer.assert_complete()
    _, left = observer.linked()
    assert (left >= k).all()


@pytest.mark.parametrize("company", ["standing", "present"])
@pytest.mark.parametrize("seed", range(4))
def test_linked_rows_leave_k_persons_where_cohorts_lose_theirs_and_others_join(seed: int, company: str) -> None:
    """All but one of a cohort are erased, and come no more."""
    random, batch, one = np.random.default_rng(seed), people(seed, 240, 4, 0.02), engine(seed, 3, 25, company=company)
    observer, erased, deserted, revived = Observer(SCHEMA, one), np.empty((0, 2), np.int64), set[int](), set[int]()
    for begin in range(0, len(batch), 40):
        rows = batch.take(slice(begin, begin + 40))
        observer.push(rows.take(~np.isin(rows.persons, erased[:, 0])))
        persons, counts = one._state.persons[: one.sizes()["persons"]], one._state.nodes[:, taking.COUNT]
        revived |= {node for node in deserted if counts[node] >= 3}
        members = persons[:, taking.ROLE] == taking.MEMBER
        for node in random.choice(np.unique(persons[members, taking.NODE]), 2 * (begin < 400)).tolist():
            own = np.flatnonzero(members & (persons[:, taking.NODE] == node))
            erased = np.concatenate([erased, one._state.tags[own[1:], : taking.SEEN]])
            deserted.add(node)
        one.forget(erased, observer.rows.take(np.isin(observer.rows.positions, one.pending())))
    observer.flush()
    assert revived, "cohorts of one member that publish again"
    _, left = observer.linked()
    assert len(left) > 100
    assert (left >= 3).all()


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.rule)
def test_what_is_right_is_not_found(broken: Any) -> None:
    """Else the tests below would tell nothing."""
    for seed in SEEDS:
        assert not succeeds(engine(seed, tuples=25, company=broken.company), broken.stream(seed))


def test_splits_do_not_tell_newcomers() -> None:
    splits, told = told_newcomers(watched(engine(1), people(1, persons=400, moving=0.0)))
    assert splits > 20
    assert told < 0.8 * splits


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.rule)
def test_a_broken_rule_is_found(broken: Any, monkeypatch: Any) -> None:
    break_rule(broken, monkeypatch)
    found = [succeeds(engine(seed, tuples=25, company=broken.company), broken.stream(seed)) for seed in SEEDS]
    assert sum(found) >= FOUND_IN


class Merging(Cohorts):
    """Takes a cohort apart now and then, and lets its members found others with whoever is in the pool."""

    turn = 0

    def push(self, batch: Any) -> Any:
        state, self.turn = self._state, self.turn + 1
        persons = state.persons[: state.meta[taking.PERSONS]]
        waits = state.waits[: len(persons), taking.WAITS]
        members = np.flatnonzero((persons[:, taking.ROLE] == taking.MEMBER) & (waits == 0))
        if self.turn % 3 == 0 and len(members):
            node = persons[members[self.turn % len(members)], taking.NODE]
            for person in members[persons[members, taking.NODE] == node]:
                place = state.meta[taking.POOLED_PERSONS]
                state.meta[taking.POOLED_PERSONS] += 1
                state.pool[place] = person
                state.hulls[:, place] = LastValues(state)[person : person + 1]
                persons[person, [taking.ROLE, taking.NODE]] = taking.POOLED, place
            state.nodes[node, [taking.COUNT, taking.HEAD]] = 0, NONE
        return super().push(batch)


def test_merging_is_found() -> None:
    merging = (Merging(SCHEMA, k=3, delay={"tuples": 60}, company="standing") for _ in SEEDS)
    found = [succeeds(one, people(seed, moving=0.0)) for seed, one in enumerate(merging)]
    assert sum(found) >= FOUND_IN


def test_an_assignment_that_a_crash_forgets_is_found() -> None:
    """What was published since the snapshot is not known any more: the next rows of its persons get other boxes."""
    found = []
    for seed in SEEDS:
        batch = people(seed, moving=0.0)
        observer = Observer(SCHEMA, engine(seed))
        observer.push(batch.take(slice(0, 40)))
        snapshot = observer.engine.snapshot()
        observer.push(batch.take(slice(40, 220)))
        observer.engine = engine(seed + 1)
        observer.engine.restore(snapshot, Batch.empty(SCHEMA))
        observer.push(batch.take(slice(220, len(batch))))
        observer.flush()
        _, left = observer.linked()
        found.append(bool((left < 3).any()))
    assert sum(found) >= FOUND_IN
