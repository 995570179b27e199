"""Cohorts: who joins, who waits, what splits, grows or falls silent, and what is left of it after a restart."""

import mmap
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from microdata import (
    Category,
    GuaranteeError,
    Hierarchy,
    InfeasibleError,
    Number,
    PersonSource,
    Schema,
    SchemaError,
    Sensitivity,
)
from stream_algos import Batch, Cohorts, Release
from stream_algos import _cohort_search_kernels as searching
from stream_algos import _cohort_split_kernels as splits
from stream_algos import _cohort_state as kernels
from stream_algos._cohort_mark_kernels import mark_all
from stream_algos._cohort_values import LastValues
from stream_algos._held_kernels import NONE
from tests.stream_algos.cohort_streams import SCHEMA, engine, people, watched
from tests.stream_worlds import Observer

LINE = Schema("person", (Number("age", 0, 100),))
ILL = Schema("person", (Number("age", 0, 100),), (Category("illness", Hierarchy.flat(["flu", "ulcer", "gout"])),))


def rows(*pairs: Any, start: int = 0, values: Any = None) -> Batch:
    """One row per pair of a person and an age, at the positions from a start on."""
    count = len(pairs)
    sensitive = np.empty((count, 0), np.int32) if values is None else np.array(values, np.int32).reshape(count, 1)
    ages = np.array([[float(age)] for _, age in pairs])
    positions = np.arange(start, start + count)
    return Batch(positions, positions / 10.0, np.array([person for person, _ in pairs]), ages, sensitive)


def founded(*ages: float, k: int = 2, schema: Schema = LINE, values: Any = None, **given_: Any) -> Any:
    """An engine with a cohort, or several, of persons 0, 1, … of these ages, and what was released then."""
    made = engine(1, k=k, tuples=len(ages), schema=schema, founders=k, **given_)
    batch = rows(*enumerate(ages), values=values)
    released = made.push(batch)
    assert not len(released)
    return made, made.advance(len(ages))


def busy(*ages: float, k: int = 3) -> Any:
    """The same of persons who all have been there lately; the next position is 20."""
    made = engine(1, k=k, tuples=10, schema=LINE, founders=k)
    made.push(rows(*enumerate(ages)))
    made.advance(15)
    assert len(made.push(rows(*enumerate(ages), start=16)).members) == len(ages)
    return made


def boxes(release: Any) -> Any:
    return [(lo, hi) for (lo,), (hi,) in zip(release.lo.tolist(), release.hi.tolist(), strict=True)]


def assert_sound(one: Cohorts) -> None:
    """What must be true of the state at any time, whatever happened: counted by hand."""
    state, k = one._state, one.parameters.k
    persons = state.persons[: state.meta[kernels.PERSONS]]
    members = 0
    for node in range(state.meta[kernels.NODES]):
        below = state.nodes[node, [kernels.LEFT, kernels.RIGHT]]
        if below[0] != NONE:  # else those whom they would let join are not found
            assert (state.boxes[below, kernels.J_LO] >= state.boxes[node, kernels.J_LO]).all()
            assert (state.boxes[below, kernels.J_HI] <= state.boxes[node, kernels.J_HI]).all()
            assert below[1] == below[0] + 1
            continue
        own = np.flatnonzero((persons[:, kernels.ROLE] == kernels.MEMBER) & (persons[:, kernels.NODE] == node))
        low, high, join_low, join_high = state.boxes[node]
        assert state.nodes[node, kernels.COUNT] == len(own)
        assert (LastValues(state)[own] >= low).all()
        assert (LastValues(state)[own] <= high).all()
        assert (join_low >= low).all()
        assert (join_high <= high).all()
        listed, person = [], state.nodes[node, kernels.HEAD]
        while person != NONE:
            listed.append(person)
            person = persons[person, kernels.NEXT]
        assert set(own.tolist()) <= set(listed)
        assert all(persons[one_, kernels.NODE] == node for one_ in listed)
        if state.shown.shape[1] and state.nodes[node, kernels.SHOWN]:
            shown = state.shown[listed]
            assert len(np.unique(shown[shown != NONE])) >= one.parameters.l
        members += len(own)
    assert state.meta[kernels.MEMBERS] == members
    assert state.meta[kernels.KNOWN] == (persons[:, kernels.ROLE] != kernels.GONE).sum()
    marks = state.marks[: state.meta[kernels.NODES]].copy()
    mark_all(state, one._space)
    assert (state.marks[: len(marks)] == marks).all()
    assert k >= 1


def test_the_best_cohort_is_found_whose_joining_box_has_all_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """With more quasi-identifiers than one word has marks of, and one that nobody differs in."""
    schema = Schema(
        "person", (*(Number(f"number {index}", -1, 1.5 + index) for index in range(9)), Number("one", 3, 3))
    )
    one = engine(1, 2, 40, schema)
    watched(one, people(1, 90, 3, moving=0.0, schema=schema))
    state, random = one._state, np.random.default_rng(1)
    count = state.meta[kernels.NODES]
    leaves = np.flatnonzero(state.nodes[:count, kernels.LEFT] == NONE)
    lo = np.concatenate([LastValues(state)[: state.meta[kernels.PERSONS]], random.random((100, 10)) * 2])
    hi = lo + np.where(np.arange(10) < 9, random.choice([0.0, 0.2], (len(lo), 1)), 0.0)
    expected = []
    for low, high in zip(lo, hi, strict=True):
        join_lo, join_hi = state.boxes[leaves, kernels.J_LO], state.boxes[leaves, kernels.J_HI]
        inside = leaves[(join_lo <= low).all(axis=1) & (high <= join_hi).all(axis=1)]
        expected.append(inside[np.argmin(state.sizes[inside, kernels.LOSS])] if len(inside) else NONE)
    assert len(set(expected)) > 10
    assert NONE in expected
    where = (state.nodes, state.sizes, state.boxes, state.marks, one._space, state.meta[kernels.ROOT], 2)
    odd, found = np.arange(1, len(lo), 2), np.full(len(lo), kernels.UNSURE)
    monkeypatch.setattr(searching, "DEEP", 2)  # more stand in line than there is room for
    searching.search(*where, lo, hi, odd, found)
    assert found[odd].tolist() == np.array(expected)[odd].tolist()
    assert (found[::2] == kernels.UNSURE).all()


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_come_together_are_taken_as_if_each_came_alone(seed: int) -> None:
    """Cohorts of new persons are looked for many at once: in between, boxes grow, and members are dismissed."""
    batch = people(seed, 200, 4, moving=0.4)
    left = []
    for size in (1, len(batch)):
        one = engine(seed, 3, 40)
        parts = [one.push(batch.take(slice(begin, begin + size))) for begin in range(0, len(batch), size)]
        whole = Release.concat(parts)
        left.append((whole.members.tolist(), whole.lo.tolist(), whole.suppressed.tolist(), one.status()))
    assert left[0] == left[1]


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    persons=st.integers(1, 120),
    moving=st.sampled_from((0.0, 0.1, 0.6)),
    l=st.sampled_from((1, 2)),
    company=st.sampled_from(("standing", "present")),
)
def test_the_state_is_sound_at_any_time(
    seed: Any,
    persons: Any,
    moving: Any,
    l: Any,  # noqa: E741 - ℓ
    company: Any,
) -> None:
    schema = replace(SCHEMA, sensitive=ILL.sensitive)
    made = engine(seed, tuples=40, schema=schema, l=l, company=company)
    batch = people(seed, persons, moving=moving, schema=schema)
    observer = Observer(schema, made)
    for begin in range(0, len(batch), 29):
        observer.push(batch.take(slice(begin, begin + 29)))
        assert_sound(made)
    observer.flush()
    observer.assert_complete()
    assert_sound(made)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    moving=st.sampled_from((0.0, 0.2)),
    restarts=st.sampled_from((1, 4)),
    company=st.sampled_from(("standing", "present")),
)
def test_a_restart_changes_no_decision(seed: Any, moving: Any, restarts: Any, company: Any) -> None:
    batch = people(seed, moving=moving)
    through, again = (watched(engine(seed, company=company), batch, often) for often in (0, restarts))
    for name in ("lo", "hi", "starts", "suppressed", "decided", "company", "reused"):
        assert np.array_equal(getattr(through.release, name), getattr(again.release, name)), name
    assert through.clusters() == again.clusters()
    assert through.engine.status() == again.engine.status()
    assert again.engine.status()["since"] == batch.positions[0]


def test_whoever_returns_leaves_at_once_with_the_same_box() -> None:
    made, first = founded(30, 33, 70, 71)
    assert sorted(boxes(first)) == [(30, 33), (70, 71)]
    again = made.push(rows((2, 70), (0, 30), (2, 70), start=5))
    assert boxes(again) == [(70, 71), (30, 33), (70, 71)]
    assert again.reused.all()
    assert set(again.ids.tolist()) == set(first.ids.tolist())
    assert (again.decided == again.members).all()
    assert (again.company == 2).all()


def test_a_new_person_inside_joins_and_one_outside_waits() -> None:
    made, _ = founded(30, 33, 70, 71)
    released = made.push(rows((4, 32), (5, 50), start=5))
    assert boxes(released) == [(30, 33)]
    assert released.company.tolist() == [3]
    assert made.pending().tolist() == [6]
    assert made.status()["pool"] == 1


def test_the_row_that_makes_a_split_leaves_with_the_old_box() -> None:
    made, _ = founded(30, 40)
    released = made.push(rows((2, 31), (3, 39), (0, 30), (3, 39), start=5))
    assert boxes(released) == [(30, 40), (30, 40), (30, 31), (39, 40)]
    assert released.reused.tolist() == [True, True, False, False]
    assert set(released.parents[2:].tolist()) == set(released.ids[:2].tolist())
    assert made.status()["cohorts"] == 2


def test_too_few_are_suppressed_but_remembered() -> None:
    made = engine(1, k=3, tuples=2, schema=LINE)
    alone = made.push(rows((0, 30), (1, 40), (0, 31), (0, 30)))
    assert not len(alone)
    assert alone.suppressed.tolist() == [0, 1]
    assert made.status()["pool"] == 2
    later = made.push(rows((2, 35), (3, 36), (4, 37), (5, 38), start=4))
    later_ = made.advance(6)
    released = [*later.members.tolist(), *later_.members.tolist()]
    assert released == [] or min(released) >= 3
    assert made.status()["members"] + made.status()["pool"] == 6


def test_the_founders_box_holds_every_value_that_was_seen_of_them() -> None:
    made = engine(1, k=2, tuples=3, schema=LINE, founders=2)
    released = made.push(rows((0, 30), (1, 35), (0, 60), (1, 36)))
    assert boxes(released) == [(30, 60)]
    assert sorted(released.members.tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize(("k", "persons"), [(10, 9), (2, 1)])
def test_fewer_than_k_persons_publish_nothing(k: Any, persons: Any) -> None:
    observer = watched(engine(1, k=k, tuples=20), people(3, persons, repeats=8))
    assert not len(observer.release.members)
    observer.assert_complete()


def test_equal_values_make_one_cohort_that_is_never_split() -> None:
    made = engine(1, k=3, tuples=20, schema=LINE)
    released = made.push(rows(*((person % 400, 42) for person in range(2000))))
    assert len(released.suppressed) == 0
    assert made.status()["cohorts"] == 1
    assert made.status()["members"] == 400
    assert set(boxes(released)) == {(42, 42)}


def test_a_member_far_away_is_dismissed_and_never_counted_again() -> None:
    made, _ = founded(30, 31, 32, 33, 80, 81, 82, 83, k=3)
    assert made.push(rows((0, 99), start=9)).suppressed.tolist() == [9]
    assert made.status()["dismissed"] == 1
    back = made.push(rows((0, 30), (1, 31), start=10))
    assert boxes(back) == [(30, 33), (30, 33)]
    assert (back.company == 3).all()


def test_fewer_than_k_members_publish_nothing_until_somebody_joins() -> None:
    made, _ = founded(30, 31, 33)
    made.push(rows((3, 90), (4, 91), start=4))
    made.advance(400)
    gone = made.push(rows((0, 99), (2, 98), start=500))
    assert gone.suppressed.tolist() == [500, 501]
    quiet = made.push(rows((1, 31), start=502))
    assert quiet.suppressed.tolist() == [502]
    joined = made.push(rows((5, 32), (1, 31), start=503))
    assert boxes(joined) == [(30, 33), (30, 33)]
    assert (joined.company == 2).all()


def test_a_grown_box_waits_for_k_persons() -> None:
    made = busy(30, 31, 32)
    waiting = made.push(rows((0, 34), (1, 31), start=20))
    assert not len(waiting)
    assert made.pending().tolist() == [20, 21]
    together = made.push(rows((2, 32), (1, 31), start=22))
    assert boxes(together) == [(30, 34), (30, 34)]
    assert np.diff(together.starts).tolist() == [3, 1]
    outside = made.push(rows((7, 33), start=24))
    assert not len(outside), "who is in the grown box only may not join"


def test_a_row_that_waits_for_company_in_vain_is_suppressed() -> None:
    made = busy(30, 31, 32)
    made.push(rows((0, 34), start=20))
    assert made.advance(30).suppressed.tolist() == [20]
    assert not len(made.pending())


def test_values_count_once_they_are_published_on_both_sides_of_a_split() -> None:
    made, first = founded(30, 40, schema=ILL, values=[0, 1], l=2)
    assert np.diff(first.starts).tolist() == [2]
    same = made.push(rows((2, 31), (3, 39), (0, 30), start=5, values=[0, 1, 0]))
    assert set(boxes(same)) == {(30, 40)}, "each side would have one value"
    made.push(rows((0, 30), (3, 39), (4, 32), (5, 38), start=8, values=[1, 0, 2, 2]))
    later = made.push(rows((0, 30), (0, 30), (5, 38), start=2 << kernels.STRETCH_BITS, values=[0, 0, 0]))
    assert boxes(later) == [(30, 40), (30, 32), (38, 40)]
    assert_sound(made)


@pytest.mark.parametrize(("other", "split"), [(kernels.CODES - 1, True), (kernels.CODES, False)])
def test_values_that_are_kept_as_the_same_count_as_one_at_a_split(other: int, split: bool) -> None:
    """Of more values than two bytes tell apart: a cohort stays whole rather than show too few on one side."""
    illnesses = Category("illness", Hierarchy.flat([str(number) for number in range(2 * kernels.CODES)]))
    made, _ = founded(30, 40, schema=replace(ILL, sensitive=(illnesses,)), values=[0, other], l=2)
    made.push(rows((2, 31), (3, 39), start=5, values=[0, other]))
    made.push(rows((0, 30), (3, 39), (4, 32), (5, 38), start=8, values=[other, 0, 0, other]))
    later = made.push(rows((0, 30), (0, 30), (5, 38), start=2 << kernels.STRETCH_BITS, values=[0, 0, 0]))
    assert boxes(later) == ([(30, 40), (30, 32), (38, 40)] if split else [(30, 40)] * 3)


def test_rows_without_enough_values_found_nothing() -> None:
    made, release = founded(30, 40, schema=ILL, values=[1, 1], l=2)
    assert release.suppressed.tolist() == [0]
    assert not len(release)
    assert made.status()["pool"] == 2


def test_the_silent_are_forgotten() -> None:
    made = engine(1, k=2, tuples=4, schema=LINE, founders=2, memory=5.0)
    made.push(rows((0, 30), (1, 31), (0, 30), (1, 31), (0, 30)))
    assert made.status()["persons"] == 2
    late = made.push(rows(*((0, 30) for _ in range(4)), start=200))
    assert made.status()["persons"] == 1
    assert made.status()["members"] == 1
    assert late.suppressed.tolist()[-1] == 203
    assert_sound(made)


def test_what_cannot_work_is_refused() -> None:
    asked: Any = {"k": 2, "delay": {"tuples": 10}, "company": "standing"}
    with pytest.raises(SchemaError, match="nobody comes back"):
        Cohorts(Schema(PersonSource.ROW, LINE.quasi), **asked)
    with pytest.raises(ValidationError, match="company"):
        Cohorts(LINE, k=2, delay={"tuples": 10})
    with pytest.raises(InfeasibleError, match="founders"):
        Cohorts(LINE, **asked, founders=1)
    with pytest.raises(InfeasibleError, match="never k=5 persons"):
        Cohorts(LINE, k=5, delay={"tuples": 3}, company="present")
    with pytest.raises(InfeasibleError):
        Cohorts(ILL, **asked, l=4)


def test_nothing_leaves_where_somebody_could_join_outside_of_the_published_box() -> None:
    made, _ = founded(30, 33)
    made._state.boxes[0, kernels.J_HI] = 34.0
    with pytest.raises(GuaranteeError, match="fewer than k"):
        made.push(rows((0, 30), start=3))


def present(*pairs: Any, schema: Schema = LINE, values: Any = None, **given_: Any) -> Any:
    """An engine that lets rows out in classes, with cohorts of persons 0 to 3: 30 … 33 and 70 … 71."""
    made = engine(1, k=2, tuples=4, schema=schema, founders=2, company="present", **given_)
    first = made.push(rows((0, 30), (2, 70), (1, 33), (3, 71), *pairs, values=values))
    return made, first


def test_a_row_waits_for_company_and_leaves_with_the_boxes_of_its_cohort_and_theirs() -> None:
    made, none = present()
    assert not len(none)
    founded_ = made.advance(5)
    assert sorted(boxes(founded_)) == [(30, 33), (70, 71)]
    assert np.diff(founded_.starts).tolist() == [2, 2]
    made.push(rows((0, 30), start=6))
    assert made.pending().tolist() == [6]
    assert not len(made.push(rows((2, 70), (2, 70), (0, 30), start=7)))
    mixed = made.advance(10)
    assert boxes(mixed) == [(30, 71)], "nobody else of the first cohort is there, so the hull of both boxes"
    assert sorted(mixed.members.tolist()) == [6, 7, 8, 9], "what else they have inside comes along"
    assert not mixed.reused.any()
    assert mixed.company.tolist() == [2]
    assert not len(made.push(rows((1, 33), start=11)))
    assert made.advance(15).suppressed.tolist() == [11], "nobody else is there"


def test_every_class_has_the_values_that_are_asked_for() -> None:
    made, first = present((0, 30), (1, 33), schema=ILL, values=[0, 1, 0, 1, 1, 1], l=2)
    release = Release.concat([first, made.flush()])
    values = np.array([0, 1, 0, 1, 1, 1])
    assert len(release)
    for part in np.split(release.members, release.starts[1:-1]):
        assert len(set(values[part])) == 2
    assert sorted([*release.members, *release.suppressed]) == [0, 1, 2, 3, 4, 5]


def test_rows_of_a_grown_box_leave_together_and_varied() -> None:
    made = engine(1, k=3, tuples=10, schema=ILL, founders=3, company="present", l=2)
    ages = [(0, 30), (1, 31), (2, 32)]
    made.push(rows(*ages, values=[0, 1, 0]))
    made.advance(15)
    assert len(made.push(rows(*ages, start=16, values=[0, 1, 0]))) == 0
    made.push(rows((0, 34), (1, 31), (2, 32), start=19, values=[0, 0, 0]))
    assert made.pending().tolist() == [16, 17, 18, 19, 20, 21], "they show one value only"
    together = made.push(rows((1, 31), start=22, values=[1]))
    assert boxes(together) == [(30, 34)]
    assert sorted(together.members.tolist()) == [19, 20, 21, 22]
    assert boxes(made.advance(26)) == [(30, 32)], "what came before has the box of its time"


@pytest.mark.parametrize("company", ["standing", "present"])
def test_categories_are_counted_as_values_are(company: Any) -> None:
    """Two categories, one of which has two values: these are not enough."""
    grave = Sensitivity((("cancer",), ("flu", "cold")))
    illness = Category("illness", Hierarchy.flat(["flu", "cold", "cancer"]), sensitivity=grave)
    schema = Schema("person", LINE.quasi, (illness,))
    for values, enough in (([0, 1], False), ([0, 2], True)):
        made = engine(1, k=2, tuples=2, schema=schema, founders=2, company=company, p_categories=2)
        made.push(rows((0, 30), (1, 33), values=values))
        assert bool(len(made.advance(2))) is enough


@pytest.mark.parametrize("wrong", [{"company": np.array([1])}, {"lo": np.array([[31.5]])}])
def test_what_would_break_the_promise_stops_the_engine(wrong: Any) -> None:
    made, _ = founded(30, 33)
    released = made.push(rows((0, 30), start=3))
    made._require(released, np.array([[30.0]]))
    with pytest.raises(GuaranteeError):
        made._require(replace(released, **wrong), np.array([[30.0]]))


def test_many_persons_cost_no_more_than_a_sample() -> None:
    """A cut of more persons than are looked at leaves k and ℓ on both sides all the same."""
    random = np.random.default_rng(5)
    count = 3 * splits.SAMPLE
    made = engine(1, k=5, tuples=count, schema=LINE)
    ages = random.integers(0, 100, count)
    made.push(rows(*enumerate(ages)))
    released = made.advance(count)
    assert made.status()["cohorts"] > 20
    assert (released.company >= 5).all()
    assert_sound(made)


def test_a_cohort_waits_for_more_members_while_new_persons_come() -> None:
    made, _ = founded(30, 31, 32, 38, 39, 40, k=5)
    made.push(rows((6, 31), (7, 33), (8, 37), (9, 39), start=200))
    known = [(person, age) for person, age in enumerate((30, 31, 32, 38, 39, 40))]
    for start in (400, 1000, 3000):
        made.push(rows(*known * 50, start=start))
    assert made.status()["cohorts"] == 1, "2k members are there, but the share of new persons is not small yet"
    for start in (5000, 6000, 7000, 8000):
        released = made.push(rows(*known * 100, start=start))
    assert set(boxes(released)) == {(30, 33), (37, 40)}
    assert_sound(made)


def test_a_full_pool_founds_cohorts_before_any_deadline() -> None:
    made = engine(1, k=5, tuples=10 * kernels.MOST_POOLED, schema=LINE)
    ages = np.random.default_rng(3).integers(0, 100, kernels.MOST_POOLED + 10)
    assert not len(made.push(rows(*enumerate(ages[:-11]))))
    released = made.push(rows(*((len(ages) + person, age) for person, age in enumerate(ages[:11])), start=len(ages)))
    assert len(released.members) >= kernels.MOST_POOLED
    assert made.status()["cohorts"] > 20


def test_where_address_space_is_short_arrays_grow_and_nothing_else_changes(monkeypatch: Any) -> None:
    batch = people(4, 4 * kernels.CHUNK, 2, moving=0.0)
    plenty = engine(1).push(batch)
    reserve = mmap.mmap

    def refused(number: int, size: int, **how: Any) -> Any:
        if size > 1 << 20:
            raise OSError("no address space")
        return reserve(number, size, **how)

    monkeypatch.setattr(mmap, "mmap", refused)
    grown = engine(1)
    assert len(grown._state.persons) == kernels.CHUNK
    released = grown.push(batch)
    assert len(grown._state.persons) > 4 * kernels.CHUNK
    for name in ("lo", "hi", "starts", "suppressed", "decided", "company", "members"):
        assert np.array_equal(getattr(plenty, name), getattr(released, name)), name
    assert_sound(grown)


def test_a_very_large_cohort_is_cut_once_that_shows() -> None:
    """Nobody but one has the second value that either side would need; later many have."""
    made, _ = founded(0, 100, schema=ILL, values=[0, 1], l=2)
    many = 5 * splits.SAMPLE
    ages = [(2 + person, age) for person, age in enumerate(np.random.default_rng(2).integers(0, 101, many))]
    made.push(rows(*ages, start=200, values=np.zeros(many)))
    assert made.status()["cohorts"] == 1
    made.push(rows(*ages[:1000], start=200 + many, values=np.ones(1000)))
    more = [(person + many, age) for person, age in ages[: many // 2]]
    made.push(rows(*more, start=1200 + many, values=np.zeros(len(more))))
    assert made.status()["cohorts"] > 20
    assert_sound(made)
    ((lo, hi),) = boxes(made.push(rows((-1, 50), start=1200 + 2 * many, values=[0])))
    assert hi - lo < 10, "whoever comes finds the cohorts of a tree that has grown at once"
