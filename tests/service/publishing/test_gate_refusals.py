"""Every reason for which the gate refuses a cluster, for each kind of cluster that engines decide.

The kinds are: fresh clusters, reused boxes, clusters that are compared with a window, rows that are published alone,
and clusters of cohorts, fresh and reused, which are checked on the history of what was published.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from privacy import (
    ChanceOfK,
    DistinctDiversity,
    FrequencyDiversity,
    KAnonymity,
    KOverTime,
    MaxShare,
    TCloseness,
    ZAnonymity,
)
from service.publishing.boxes import PublishedBoxes
from service.publishing.gate import Gate
from stream_algos import Release
from tests.service.publishing.test_gate import SCHEMA, boxes, one_cluster, passes, rows_of

OUTSIDE = 18
"""Position of a row outside of the boxes; all others lie inside."""
ROWS = rows_of(range(1, 10), [0, 1] * 4 + [0], [5.0] * 8 + [55.0])


def with_id(decision: Release, number: int) -> Release:
    return replace(decision, ids=np.array([number], np.uint64))


def behind(decision: Release, company: int, parent: int = 0) -> Release:
    """The same cluster with so many persons behind it."""
    return replace(decision, company=np.array([company]), parents=np.array([parent], np.uint64))


@dataclass(frozen=True)
class Kind:
    """One kind of cluster."""

    models: Any
    good: Release
    """A cluster that passes."""
    other: Release
    """A second one, of other rows, that passes beside it."""

    def passes(self, *decisions: Release, published: Any = None) -> Any:
        """What the gate says; boxes that are reused were published before."""
        if published is None:
            published = boxes(*(one for one in decisions if one.reused.any()))
        return passes(Release.concat(decisions), ROWS, self.models, published)


def fresh_kind(models: Any, **given: Any) -> Kind:
    return Kind(models, one_cluster([10, 12, 11], **given), with_id(one_cluster([15, 16, 17], **given), 8))


HISTORY = (KOverTime(3), DistinctDiversity(1))
KINDS = {
    "fresh": fresh_kind((KAnonymity(3),)),
    "reused": Kind((KAnonymity(3),), one_cluster([10, 12], reused=True), with_id(one_cluster([15], reused=True), 8)),
    "windowed": fresh_kind((KAnonymity(3), TCloseness(0.5)), window=(10, 18)),
    "passing": Kind((ZAnonymity(2, 100),), one_cluster([12]), with_id(one_cluster([15]), 8)),
    "history": Kind(HISTORY, behind(one_cluster([10, 12]), 3), behind(with_id(one_cluster([15]), 8), 3)),
    "history, reused": Kind(
        HISTORY,
        behind(one_cluster([10, 12], reused=True), 3),
        behind(with_id(one_cluster([15], reused=True), 8), 3),
    ),
}


def with_members(decision: Release, members: Any) -> Release:
    return replace(decision, members=np.array(members, np.int64), starts=np.array([0, len(members)]))


def with_last(decision: Release, position: int) -> Release:
    """The same cluster with another row in the place of its last one."""
    return with_members(decision, [*decision.members[:-1].tolist(), position])


def with_box(decision: Release, lo: Any, hi: Any) -> Release:
    return replace(decision, lo=np.array([lo], float), hi=np.array([hi], float))


FAULTS: dict[str, Callable[[Release], Release]] = {
    "a row is gone": lambda good: with_last(good, 99),
    "a row is gone that came before all others": lambda good: with_last(good, 3),
    "a row lies outside": lambda good: with_last(good, OUTSIDE),
    "it is empty": lambda good: with_members(good, []),
    "its box does not begin on the step": lambda good: with_box(good, [5, 0], [10, 0]),
    "its box does not end on the step": lambda good: with_box(good, [0, 0], [5, 0]),
    "its box is no node": lambda good: with_box(good, [0, 0], [10, 1]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_clusters_without_a_fault_pass(kind: str) -> None:
    tested = KINDS[kind]
    assert tested.passes(tested.good, tested.other) == [True, True]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_cluster_with_a_fault_is_refused_and_the_one_beside_it_passes(kind: str, fault: str) -> None:
    tested = KINDS[kind]
    faulty = FAULTS[fault](tested.good)
    assert tested.passes(faulty, tested.other) == [False, True]
    assert tested.passes(tested.other, faulty) == [True, False]


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_stands_in_a_cluster_twice_refuses_it(kind: str) -> None:
    tested = KINDS[kind]
    twice = with_members(tested.good, [*tested.good.members.tolist(), int(tested.good.members[0])])
    assert tested.passes(twice, tested.other) == [False, True]


@pytest.mark.parametrize("kind", KINDS)
def test_clusters_that_share_a_row_are_both_refused(kind: str) -> None:
    tested = KINDS[kind]
    shared = with_id(with_last(tested.good, 13), 9)
    first = with_members(shared, [13]) if len(shared.members) == 1 else with_members(shared, [13, 14, 10])
    second = with_id(tested.good if len(shared.members) > 1 else with_members(tested.good, [13]), 7)
    assert tested.passes(first, tested.other, second) == [False, True, False]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("box", [([0, 0], [20, 0]), ([0, 0], [10, 2]), ([-10, 0], [10, 0])], ids=["age", "city", "low"])
def test_an_id_with_two_boxes_refuses_both_clusters(kind: str, box: Any) -> None:
    tested = KINDS[kind]
    published = boxes(tested.good, tested.other) if tested.good.reused.any() else boxes()
    another = with_box(with_id(tested.other, 7), *box)
    assert tested.passes(tested.good, another, published=published) == [False, False]
    shared = with_members(tested.good, [int(tested.good.members[0])])
    rest = with_members(tested.good, tested.good.members[1:])
    assert tested.passes(shared, rest, another, published=published) == [False, False, False]


def test_nothing_passes_without_rows() -> None:
    empty = rows_of([], [])
    assert passes(one_cluster([10, 11, 12]), empty) == [False]
    assert passes(Release.empty(2), ROWS) == []


# -- fresh -------------------------------------------------------------------------------------------------------------


def test_every_model_must_hold() -> None:
    two = (KAnonymity(3), DistinctDiversity(2))
    assert passes(one_cluster([10, 11]), ROWS, two) == [False], "too few persons"
    assert passes(one_cluster([10, 12, 14]), ROWS, two) == [False], "one value"
    assert passes(one_cluster([10, 11, 12]), ROWS, two) == [True]


def test_rows_of_one_person_are_one_person() -> None:
    rows = rows_of([1, 1, 2, 3], [0, 1, 0, 1])
    assert passes(one_cluster([10, 11, 12]), rows) == [False]
    assert passes(one_cluster([10, 12, 13]), rows) == [True]


# -- reused ------------------------------------------------------------------------------------------------------------


def test_a_reuse_needs_a_published_box_with_the_same_id_and_sides() -> None:
    alone = one_cluster([13], reused=True)
    for kind, models in (("reused", (KAnonymity(3),)), ("history, reused", HISTORY)):
        decision = behind(alone, 3) if "history" in kind else alone
        assert passes(decision, ROWS, models, boxes(with_id(alone, 8))) == [False], "another id"
        assert passes(decision, ROWS, models, boxes(with_box(alone, [0, 0], [20, 0]))) == [False], "another upper end"
        assert passes(decision, ROWS, models, boxes(with_box(alone, [-10, 0], [10, 0]))) == [False], "another lower end"
        assert passes(decision, ROWS, models, boxes(alone)) == [True]


@pytest.mark.parametrize("model", [MaxShare(0.5), TCloseness(1.0), FrequencyDiversity(1.0)])
def test_a_box_is_not_reused_if_one_model_breaks_when_rows_are_added(model: Any) -> None:
    alone = one_cluster([13], reused=True)
    assert passes(alone, ROWS, (KAnonymity(1), model), boxes(alone)) == [False]


def test_a_reuse_of_a_cluster_that_is_refused_for_a_fault_of_its_own_is_refused() -> None:
    """Enough persons are behind the fresh cluster, but one of its rows lies outside, so nobody sees its box."""
    for models, company in (((KAnonymity(3),), -1), (HISTORY, 3)):
        fresh = behind(one_cluster([10, 11, 12, OUTSIDE]), company)
        alone = behind(one_cluster([13], reused=True), company)
        assert passes(Release.concat([fresh, alone]), ROWS, models) == [False, False]
        fresh = behind(one_cluster([10, 11, 12]), company)
        assert passes(Release.concat([fresh, alone]), ROWS, models) == [True, True]


# -- windowed ----------------------------------------------------------------------------------------------------------


WINDOW_ROWS = rows_of(range(1, 9), [0, 0, 0, 1, 0, 0, 0, 0])
CLOSE = (TCloseness(0.2),)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_each_cluster_is_compared_with_its_own_window(order: Any) -> None:
    """Of the first window three quarters have the value that the cluster shows, of both windows seven eighths."""
    short, long = one_cluster([10, 11, 12], window=(10, 13)), with_id(one_cluster([14, 15], window=(10, 17)), 8)
    expected = [False, True]
    pair = [short, long]
    chosen, wanted = [pair[one] for one in order], [expected[one] for one in order]
    assert passes(Release.concat(chosen), WINDOW_ROWS, CLOSE) == wanted
    late = with_id(one_cluster([14, 15, 16], window=(13, 17)), 8)
    also = replace(short, windows=np.array([[10, 17]]))
    assert passes(Release.concat([also, late]), WINDOW_ROWS, CLOSE) == [True, True]


def test_a_window_that_begins_at_the_first_position_of_a_topic_is_a_window() -> None:
    rows = replace(WINDOW_ROWS, positions=np.arange(8))
    assert passes(one_cluster([0, 1, 2], window=(0, 3)), rows, CLOSE) == [False]
    assert passes(one_cluster([0, 1, 2], window=(0, 7)), rows, CLOSE) == [True]


def test_a_window_ends_with_its_last_row() -> None:
    assert passes(one_cluster([10, 11, 12], window=(10, 12)), WINDOW_ROWS, CLOSE) == [True]
    assert passes(one_cluster([10, 11, 12], window=(10, 13)), WINDOW_ROWS, CLOSE) == [False]
    assert passes(one_cluster([13, 14], window=(13, 14)), WINDOW_ROWS, CLOSE) == [True]
    assert passes(one_cluster([14], window=(13, 14)), WINDOW_ROWS, CLOSE) == [False]


# -- passing -----------------------------------------------------------------------------------------------------------


Z = (ZAnonymity(2, 100),)


def test_rows_that_are_published_alone_are_clusters_of_one_row() -> None:
    assert passes(one_cluster([12, 13]), ROWS, Z) == [False]


def test_a_row_is_published_alone_after_enough_persons_and_not_before() -> None:
    rows = rows_of([1, 1, 2], [0, 0, 0])
    each = [with_id(one_cluster([position]), position) for position in (10, 11, 12)]
    assert passes(Release.concat(each), rows, Z) == [False, False, True]


def test_a_row_that_is_published_alone_is_judged_by_its_own_window() -> None:
    """The cluster before it has a fault; the rows before that one are not its own."""
    rows = rows_of([1, 2, 3, 4], [0] * 4)
    near = (ZAnonymity(3, 3),)
    alone = with_id(one_cluster([11]), 8)
    assert passes(Release.concat([one_cluster([12, 13]), alone]), rows, near) == [False, False]
    assert passes(Release.concat([alone, one_cluster([13])]), rows, near) == [False, True]


def test_a_row_that_is_published_alone_is_judged_by_its_own_box() -> None:
    """In the box of the cluster before it, which has a fault, there would be enough persons."""
    wide = with_box(one_cluster([12, 13]), [0, 0], [60, 0])
    narrow = with_box(with_id(one_cluster([OUTSIDE]), 8), [50, 0], [60, 0])
    assert passes(Release.concat([wide, narrow]), ROWS, Z) == [False, False]
    assert passes(Release.concat([wide, with_box(narrow, [0, 0], [60, 0])]), ROWS, Z) == [False, True]


def test_a_reuse_of_a_row_that_is_published_alone_is_refused() -> None:
    alone = one_cluster([13], reused=True)
    assert passes(alone, ROWS, Z, boxes(alone)) == [False]


SIDES = (ChanceOfK(k=2, beta=0.5, universe=10**6, values=(3, 1), tuples=100, pane=1),)


def side(position: int, hi: float, number: int) -> Release:
    return with_box(with_id(one_cluster([position]), number), [0, 0], [hi, 2])


def test_a_box_that_cuts_one_that_was_published_before_is_refused() -> None:
    gate, nothing = Gate(SCHEMA, SIDES), boxes()
    assert gate.passes(side(15, 20, 1), ROWS, nothing).tolist() == [True]
    assert gate.passes(side(16, 10, 2), ROWS, nothing).tolist() == [False], "the rest of the first box shows too"
    assert gate.passes(side(16, 30, 3), ROWS, nothing).tolist() == [True], "it contains the first box"
    assert gate.passes(Release.concat([side(16, 40, 4), side(17, 30, 5)]), ROWS, nothing).tolist() == [True, False]


def test_a_box_that_is_refused_is_not_remembered_as_published() -> None:
    gate, nothing = Gate(SCHEMA, SIDES), boxes()
    first = Release.concat([side(10, 20, 1), side(15, 10, 2)])
    assert gate.passes(first, ROWS, nothing).tolist() == [False, True], "nobody came before the first row"


# -- history -----------------------------------------------------------------------------------------------------------


def test_of_clusters_with_one_box_the_smallest_company_counts() -> None:
    """Two clusters of one box, one with 2 persons behind it and one with 3: k = 3 refuses both."""
    few, enough = behind(one_cluster([10]), 2), behind(one_cluster([12]), 3)
    for pair in ([few, enough], [enough, few]):
        assert passes(Release.concat(pair), ROWS, HISTORY) == [False, False]
    assert passes(Release.concat([enough, behind(one_cluster([10]), 3)]), ROWS, HISTORY) == [True, True]


def test_rows_of_a_refused_cluster_are_no_company_of_a_box() -> None:
    """Of the rows of one box one stands in two clusters; those that are left are of too few persons."""
    models = (KOverTime(3), KAnonymity(3))
    first, second = behind(one_cluster([10, 11, 12]), 3), behind(one_cluster([13, 12]), 3)
    assert passes(Release.concat([first, second]), ROWS, models) == [False, False]
    assert passes(first, ROWS, models) == [True]


def test_values_are_added_up_for_models_that_break_when_rows_are_added() -> None:
    """The second cluster comes after the first, so three of five rows have its value."""
    gate = Gate(SCHEMA, (KOverTime(3), FrequencyDiversity(1.8)))
    assert gate.passes(behind(one_cluster([10, 11]), 3), ROWS, boxes()).tolist() == [True]
    after = behind(with_id(one_cluster([12, 14, 16]), 8), 3, parent=7)
    assert gate.passes(after, ROWS, boxes()).tolist() == [False]


TWO_VALUES = (KOverTime(3), DistinctDiversity(2))


def remembering(parents: Any) -> Gate:
    """A gate that knows of a row with the value 0 of box 7, and one with the value 1 of box 8."""
    gate = Gate(SCHEMA, TWO_VALUES)
    gate.remember(np.array([7, 8], np.uint64), np.array(parents, np.uint64), np.array([[0], [1]], np.int32))
    return gate


def after(parent: int, position: int) -> Release:
    """A box that comes after another one, with a row of its own: of the value 0 at 10, of the value 1 at 11."""
    return behind(with_id(one_cluster([position]), 9), 3, parent=parent)


@pytest.mark.parametrize(
    ("parents", "parent", "position", "passed"),
    [
        ((0, 0), 7, 10, False),
        ((0, 0), 7, 11, True),
        ((0, 0), 8, 10, True),
        ((0, 0), 8, 11, False),
        ((0, 7), 8, 11, True),
        ((0, 7), 7, 10, False),
    ],
)
def test_values_that_are_remembered_count_for_the_boxes_that_had_them(
    parents: Any, parent: int, position: int, passed: bool
) -> None:
    assert remembering(parents).passes(after(parent, position), ROWS, boxes()).tolist() == [passed]


def test_a_gate_that_keeps_a_box_keeps_its_values_and_those_before_it() -> None:
    gate = remembering((0, 7))
    gate.keep(np.array([8], np.uint64))
    assert gate.passes(after(8, 11), ROWS, boxes()).tolist() == [True]
    gate.keep(np.array([], np.uint64))
    assert gate.passes(after(8, 11), ROWS, boxes()).tolist() == [False]


# -- what clusters have achieved ---------------------------------------------------------------------------------------


def test_what_is_reported_as_achieved_is_the_least_safe_cluster() -> None:
    gate = Gate(SCHEMA, (KAnonymity(2), MaxShare(0.7)))
    rows = rows_of([1, 2, 3, 4, 5, 5, 6, 7], [0] * 8)
    for number, members in enumerate(([10, 11, 12, 13], [14, 15, 16], [10, 11, 12])):
        assert gate.passes(with_id(one_cluster(members), number), rows, PublishedBoxes(2)).tolist() == [True]
    assert gate.achieved == {"k-anonymity": 2, "max-share": pytest.approx(2 / 3)}
    assert gate.largest_share == pytest.approx(2 / 3)
    both = Release.concat([with_id(one_cluster([10]), 8), with_id(one_cluster([11, 12]), 9)])
    gate = Gate(SCHEMA, (KAnonymity(2),))
    assert gate.passes(both, rows, PublishedBoxes(2)).tolist() == [False, True]
    assert gate.achieved == {"k-anonymity": 2}, "a refused cluster has achieved nothing"


def test_the_least_of_the_clusters_of_one_publication_is_reported() -> None:
    gate = Gate(SCHEMA, (KAnonymity(2), MaxShare(0.7)))
    rows = rows_of([1, 2, 3, 4, 5, 5, 6, 7], [0] * 8)
    both = Release.concat([one_cluster([10, 11, 12, 13]), with_id(one_cluster([14, 15, 16]), 8)])
    assert gate.passes(both, rows, PublishedBoxes(2)).tolist() == [True, True]
    assert gate.achieved == {"k-anonymity": 2, "max-share": pytest.approx(2 / 3)}
