"""The gate lets nothing pass that breaks the policy, whoever decided it: each fault is made on purpose."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from microdata import Category, Hierarchy, Number, Schema
from privacy import BetaLikeness, DistinctDiversity, KAnonymity, KOverTime, TCloseness
from service.publishing.boxes import PublishedBoxes
from service.publishing.gate import Gate, _distinct
from service.publishing.rows import Rows
from stream_algos import Release

SCHEMA = Schema(
    "who",
    (Number("age", 0, 99, integer=True, step=10), Category("city", Hierarchy.flat(["a", "b", "c"]))),
    (Category("item", Hierarchy.flat(["x", "y"])),),
)
NO_WINDOW = (-1, -1)


def rows_of(persons: Any, items: Any, ages: Any = None) -> Any:
    count = len(persons)
    ages = np.full(count, 5.0) if ages is None else np.asarray(ages, float)
    return Rows(
        10 + np.arange(count),
        np.zeros(count),
        np.asarray(persons, np.int64),
        np.column_stack([ages, np.zeros(count)]),
        np.asarray(items, np.int32).reshape(-1, 1),
        (),
    )


def one_cluster(members: Any, *, reused: bool = False, window: Any = NO_WINDOW) -> Any:
    return Release(
        ids=np.array([7], np.uint64),
        lo=np.array([[0.0, 0.0]]),
        hi=np.array([[10.0, 0.0]]),
        starts=np.array([0, len(members)]),
        members=np.asarray(members, np.int64),
        reused=np.array([reused]),
        windows=np.array([window], np.int64),
        suppressed=np.empty(0, np.int64),
    )


ROWS = rows_of([1, 2, 3, 4], [0, 1, 0, 1])
GOOD = one_cluster([10, 12, 11])
THREE = (KAnonymity(3),)


def boxes(*left: Any) -> PublishedBoxes:
    """The boxes that these have left with."""
    published = PublishedBoxes(2)
    for one in left:
        published.add(one.ids, one.lo, one.hi)
    return published


def passes(decisions: Any, rows: Any = ROWS, models: Any = THREE, published: Any = None) -> Any:
    return Gate(SCHEMA, models).passes(decisions, rows, boxes() if published is None else published).tolist()


def test_a_cluster_that_holds_passes() -> None:
    assert passes(GOOD) == [True]


@pytest.mark.parametrize(
    ("fault", "decisions"),
    [
        ("a row is gone", one_cluster([10, 11, 99])),
        ("a row stands in it twice", one_cluster([10, 11, 12, 12])),
        ("it is empty", one_cluster([])),
        ("a row lies outside", replace(GOOD, lo=np.array([[0.0, 1.0]]), hi=np.array([[10.0, 1.0]]))),
        ("its box is not on the step", replace(GOOD, lo=np.array([[5.0, 0.0]]), hi=np.array([[5.0, 0.0]]))),
        ("its box is no node", replace(GOOD, hi=np.array([[10.0, 1.0]]))),
        ("too few persons", one_cluster([10, 11])),
    ],
)
def test_a_faulty_cluster_is_refused(fault: str, decisions: Any) -> None:
    assert passes(decisions) == [False], fault


def test_a_row_in_two_clusters_refuses_both() -> None:
    first, second = one_cluster([10, 11, 12]), one_cluster([12, 13, 11])
    both = Release.concat([first, replace(second, ids=np.array([8], np.uint64))])
    assert passes(both) == [False, False]


@pytest.mark.parametrize(("persons", "passed"), [([1, 2, 3, 4], True), ([1, 1, 2, 4], False)])
def test_a_reuse_leaves_with_its_cluster_or_not_at_all(persons: Any, passed: bool) -> None:
    first, alone = one_cluster([10, 11, 12]), one_cluster([13], reused=True)
    assert passes(Release.concat([first, alone]), rows_of(persons, [0, 1, 0, 1])) == [passed, passed]


def test_rows_of_one_person_count_once() -> None:
    assert passes(GOOD, rows_of([1, 1, 2, 3], [0, 1, 0, 1])) == [False]


@pytest.mark.parametrize(
    ("model", "items", "holds"),
    [
        (DistinctDiversity(2), [0, 0, 0, 1], False),
        (DistinctDiversity(2), [0, 0, 1, 1], True),
        (TCloseness(0.2), [0, 0, 0, 1], False),
        (TCloseness(0.3), [0, 0, 0, 1], True),
        (BetaLikeness(0.2, "basic"), [0, 0, 0, 1], False),
        (BetaLikeness(0.5, "basic"), [0, 0, 0, 1], True),
    ],
)
def test_every_model_of_the_policy_counts_and_a_window_is_its_own_reference(
    model: Any, items: Any, holds: bool
) -> None:
    decisions = one_cluster([10, 11, 12], window=(10, 13))
    assert passes(decisions, rows_of([1, 2, 3, 4], items), (*THREE, model)) == [holds]


def test_a_reuse_repeats_a_published_box_exactly() -> None:
    alone = one_cluster([13], reused=True)
    known = boxes(alone)
    assert passes(alone, published=known) == [True]
    assert passes(alone) == [False], "nothing was published under this id"
    other = boxes(replace(alone, hi=alone.hi + 10))
    assert passes(alone, published=other) == [False], "another box was"
    assert passes(alone, models=(*THREE, TCloseness(0.5)), published=known) == [False], "closeness breaks"


OVER_TIME = (KOverTime(3), DistinctDiversity(2))


def in_cohort(members: Any, company: int = 3, parent: int = 0, **changes: Any) -> Any:
    """A cluster behind which so many persons stand."""
    behind = {"company": np.array([company]), "parents": np.array([parent], np.uint64)}
    return replace(one_cluster(members), **behind, **changes)


def test_a_row_leaves_alone_where_enough_persons_stand_behind_it() -> None:
    gate = Gate(SCHEMA, OVER_TIME)
    assert gate.passes(in_cohort([10, 11]), ROWS, boxes()).tolist() == [True]
    published = boxes(GOOD)
    again = in_cohort([12], reused=np.array([True]))
    assert gate.passes(again, ROWS, published).tolist() == [True]
    half = in_cohort([13], parent=7, ids=np.array([8], np.uint64))
    assert gate.passes(half, ROWS, published).tolist() == [True]
    assert gate.achieved == {"k-over-time": 3, "distinct-l-diversity": 2}
    assert gate.largest_share is None


@pytest.mark.parametrize(
    "wrong",
    [
        in_cohort([12], company=2, reused=np.array([True])),
        in_cohort([12], reused=np.array([True]), hi=np.array([[20.0, 0.0]])),
        in_cohort([12], reused=np.array([True]), ids=np.array([9], np.uint64)),
        in_cohort([12], reused=np.array([True]), lo=np.array([[0.0, 1.0]]), hi=np.array([[10.0, 1.0]])),
        in_cohort([12], ids=np.array([8], np.uint64)),
        replace(in_cohort([12]), company=np.array([-1])),
    ],
    ids=["too few behind it", "another box", "never published", "outside", "one value without a parent", "nobody"],
)
def test_what_breaks_the_promise_over_time_is_refused(wrong: Any) -> None:
    gate = Gate(SCHEMA, OVER_TIME)
    assert gate.passes(in_cohort([10, 11]), ROWS, boxes()).tolist() == [True]
    published = boxes(GOOD)
    assert gate.passes(wrong, ROWS, published).tolist() == [False]


def test_where_company_must_be_present_a_class_has_k_persons_of_its_own() -> None:
    gate = Gate(SCHEMA, (KOverTime(3), KAnonymity(2)))
    assert gate.passes(in_cohort([10, 11]), ROWS, boxes()).tolist() == [True]
    assert gate.passes(in_cohort([12], ids=np.array([8], np.uint64)), ROWS, boxes()).tolist() == [False], "alone"
    twice = rows_of([1, 1, 2, 3], [0, 1, 0, 1])
    assert gate.passes(in_cohort([10, 11], ids=np.array([9], np.uint64)), twice, boxes()).tolist() == [False], (
        "one person"
    )


def test_values_of_what_was_refused_count_for_nobody() -> None:
    """A box without a known past would have its second value from rows that never left."""
    gate, nine = Gate(SCHEMA, OVER_TIME), np.array([9], np.uint64)
    for refused in (
        in_cohort([10, 11], company=2, ids=nine),
        in_cohort([10, 11], reused=np.array([True]), ids=nine),
        in_cohort([11], ids=nine),
    ):
        assert gate.passes(refused, ROWS, boxes()).tolist() == [False]
        assert gate.passes(in_cohort([12], ids=nine), ROWS, boxes()).tolist() == [False]
    assert gate.passes(in_cohort([10, 11], ids=nine), ROWS, boxes()).tolist() == [True]


def test_a_refused_box_lends_no_values_to_what_leaves_with_it() -> None:
    """The second box has one value of its own, and the other from the first, behind which too few stand."""
    both = Release.concat([in_cohort([10, 11], company=2), in_cohort([12], parent=7, ids=np.array([8], np.uint64))])
    gate = Gate(SCHEMA, OVER_TIME)
    assert gate.passes(both, ROWS, boxes()).tolist() == [False, False]
    assert gate.achieved == {}


@pytest.mark.parametrize("models", [THREE, (KOverTime(3),)])
def test_an_id_with_two_boxes_leaves_with_neither(models: Any) -> None:
    rows = rows_of([1, 2, 3, 4, 5, 6, 7, 8, 9], [0, 1, 0] * 3)
    one, wider, other = (in_cohort(members) for members in ([10, 11, 12], [13, 14, 15], [16, 17, 18]))
    wider, other = replace(wider, hi=np.array([[20.0, 0.0]])), replace(other, ids=np.array([8], np.uint64))
    assert passes(Release.concat([one, wider, other]), rows, models) == [False, False, True]
    assert (
        passes(Release.concat([one, replace(wider, ids=np.array([9], np.uint64)), other]), rows, models) == [True] * 3
    )


def test_distinct_persons_are_counted_for_each_label() -> None:
    random = np.random.default_rng(3)
    for _ in range(50):
        labels, persons = random.integers(0, 9, 60), random.integers(-3, 3, 60) * (2**61)
        found = _distinct(labels, persons, 9)
        assert found.tolist() == [len(set(persons[labels == label].tolist())) for label in range(9)]


def test_pairs_that_meet_are_counted_too_few_times_and_never_too_often() -> None:
    """Broken on purpose: a person of the second label whose word with it is that of another with the first."""
    golden = 0x9E3779B97F4A7C15
    labels, persons = np.array([0, 1]), np.array([golden, 0], np.uint64).view(np.int64)
    assert _distinct(labels, persons, 2).sum() == 1
