"""Every fault that an audit finds, for each way in which a publication can be audited.

The ways are: in memory, as a published file, as a file with the distribution of the sensitive values alone, and as a
file with the links that its owner has kept, of single rows and of rows that were published together.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from microdata import (
    Boxes,
    Category,
    Hierarchy,
    InfeasibleError,
    Number,
    Publication,
    Schema,
    Table,
    published_of,
)
from privacy import (
    ChanceOfK,
    DistinctDiversity,
    KAnonymity,
    KOverTime,
    MaxShare,
    Sightings,
    TCloseness,
    ZAnonymity,
    audit,
    audit_linked,
)
from privacy.outsider import match

SCHEMA = Schema(
    "who",
    (Number("age", 0, 9, integer=True), Category("sex", Hierarchy.flat(["F", "M", "X"]))),
    (Category("illness", Hierarchy.flat(["flu", "ulcer", "gout"])), Number("pay", 1, 3, integer=True)),
)
AGES = [0, 1, 2, 3, 6, 7, 8, 9]
SEXES = [0, 0, 0, 0, 1, 1, 1, 1]
ILLNESS = [0, 1, 0, 1, 0, 1, 0, 1]
PAY = [0, 0, 1, 1, 0, 0, 1, 1]
CLASSES = np.array([0, 0, 0, 0, 1, 1, 1, 1])
K = (KAnonymity(4),)


def table_of(persons: Any = range(8), **changes: Any) -> Table:
    quasi = np.column_stack([changes.get("ages", AGES), changes.get("sexes", SEXES)]).astype(float)
    sensitive = np.column_stack([changes.get("illness", ILLNESS), changes.get("pay", PAY)]).astype(np.int32)
    return Table(SCHEMA, np.array(list(persons)), quasi, sensitive, rejected=changes.get("rejected", 0))


TABLE = table_of()
PUBLICATION = Publication.of(TABLE, CLASSES)
PUBLISHED = published_of(PUBLICATION)
SINGLY = list(np.arange(8).reshape(-1, 1))
TOGETHER = [np.array([3, 1, 0, 2]), np.array([4, 5]), np.array([7, 6])]


def kinds(found: Any) -> Any:
    return [(fault.kind, fault.count) for fault in found.faults]


def every_way(published: Any, original: Table = TABLE) -> Any:
    """The audits of a published file."""
    return {
        "file": audit(original, published, K),
        "counts": audit(original.schema.histograms(original.sensitive), published, K),
        "links": audit_linked(original, published, SINGLY, K),
        "links of clusters": audit_linked(original, published, TOGETHER, K),
    }


def test_what_is_right_has_no_fault_whichever_way_it_is_audited() -> None:
    assert audit(TABLE, PUBLICATION, K).holds
    for way, found in every_way(PUBLISHED).items():
        assert (kinds(found), found.outcome) == ([], "holds"), way


def test_number_of_two_classes_is_a_fault_each_way_it_is_audited() -> None:
    for way, found in every_way(replace(PUBLISHED, labels=("1", "1"))).items():
        assert kinds(found) == [("ambiguous", 1)], way
        assert not found.holds, way
    for labels in (("1", "2"), ("", ""), ()):
        for way, found in every_way(replace(PUBLISHED, labels=labels)).items():
            assert kinds(found) == [], (way, labels)


def test_clusters_of_a_stream_may_be_published_with_several_means() -> None:
    means = replace(published_of(replace(PUBLICATION, show="mean")), labels=("1", "1"))
    assert ("ambiguous", 1) not in kinds(audit(TABLE, means, K))


def test_an_undeclared_column_is_a_fault_whichever_way_it_is_audited() -> None:
    for way, found in every_way(replace(PUBLISHED, undeclared=("customer",))).items():
        assert (kinds(found), found.outcome) == ([("undeclared", 1)], "does not hold"), way


def test_a_row_outside_of_its_box_is_a_fault_wherever_rows_are_known() -> None:
    hi = PUBLICATION.boxes.hi.copy()
    hi[0, 0] = 2
    narrow = replace(PUBLICATION, boxes=Boxes(SCHEMA, PUBLICATION.boxes.lo, hi))
    assert kinds(audit(TABLE, narrow, K)) == [("uncovered", 1)]
    found = every_way(published_of(narrow))
    assert kinds(found.pop("counts")) == []
    for way, one in found.items():
        assert (kinds(one), one.outcome) == ([("uncovered", 1)], "does not hold"), way


def test_a_changed_sensitive_value_is_a_fault_though_every_model_holds() -> None:
    """The values change places between rows of two classes, so every value is published as often as it should be."""
    sensitive = PUBLISHED.sensitive.copy()
    sensitive[[0, 5]] = sensitive[[5, 0]]
    found = every_way(replace(PUBLISHED, sensitive=sensitive))
    assert kinds(found["file"]) == [("uncovered", 2)]
    assert kinds(found["links"]) == [("unlinked", 2)]
    assert kinds(found["links of clusters"])[0][0] == "unlinked"
    assert {one.outcome for way, one in found.items() if way != "counts"} == {"does not hold"}


def test_one_changed_attribute_of_one_row_is_a_fault() -> None:
    sensitive = PUBLISHED.sensitive.copy()
    sensitive[0, 1] = 2
    found = every_way(replace(PUBLISHED, sensitive=sensitive))
    assert kinds(found["file"]) == [("uncovered", 1), ("surplus", 1)]
    assert kinds(found["links"]) == [("unlinked", 1)]
    assert kinds(found["links of clusters"]) == [("unlinked", 1)]


def test_rows_of_one_link_may_stand_in_any_order_but_in_one_class_only() -> None:
    order = np.array([2, 0, 1, 3, 5, 4, 6, 7])
    mixed = replace(PUBLISHED, sensitive=PUBLISHED.sensitive[order])
    assert kinds(audit_linked(TABLE, mixed, TOGETHER, K)) == []
    links = [np.array([0, 1, 2, 3, 4]), np.array([5, 6, 7])]
    wide = replace(PUBLISHED, boxes=Boxes(SCHEMA, np.array([[0.0, 0], [0, 0]]), np.array([[9.0, 2], [9, 2]])))
    assert kinds(audit_linked(TABLE, wide, links, K)) == [("unlinked", 1)]


def test_an_original_row_that_is_linked_twice_is_a_fault_though_all_else_is_right() -> None:
    """Two rows are alike in everything but their person; both published ones are linked with the first of them."""
    alike = table_of(ages=[0, 0, 2, 3, 6, 7, 8, 9], illness=[0, 0, 0, 1, 0, 1, 0, 1])
    published = published_of(Publication.of(alike, CLASSES))
    assert kinds(audit_linked(alike, published, SINGLY, K)) == []
    twice = [np.array([0]), *SINGLY[:1], *SINGLY[2:]]
    found = audit_linked(alike, published, twice, (KAnonymity(3),))
    assert (kinds(found), found.outcome) == ([("unlinked", 1)], "does not hold")


def test_a_value_that_is_published_too_often_is_a_fault() -> None:
    sensitive = PUBLISHED.sensitive.copy()
    sensitive[0] = sensitive[1]
    found = every_way(replace(PUBLISHED, sensitive=sensitive))
    assert kinds(found["file"]) == [("uncovered", 1), ("surplus", 1)]
    assert kinds(found["links"]) == [("unlinked", 1)]


@pytest.mark.parametrize(
    "change",
    [{"persons": [0, 0, 1, 1, 2, 2, 3, 3]}, {"ages": AGES[::-1]}, {"illness": [2] * 8}],
    ids=["persons", "quasi-identifiers", "sensitive values"],
)
def test_a_publication_of_another_table_is_audited_as_a_file(change: Any) -> None:
    """A publication says which rows it has, but they are not those of the original."""
    original = table_of(change.pop("persons", range(8)), **change)
    found = audit(original, PUBLICATION, K)
    assert found == audit(original, PUBLISHED, K)
    assert found.outcome != "holds"


def test_suppressed_and_rejected_rows_are_counted() -> None:
    original = replace(TABLE, rejected=3)
    half = Publication.of(original, np.array([0, 0, 0, 0, -1, -1, -1, -1]))
    for found in (
        audit(original, half, K),
        audit(original, published_of(half), K),
        audit_linked(original, published_of(half), SINGLY[:4], K),
    ):
        assert (found.rows, found.suppressed, found.rejected) == (4, 4, 3)
    counts = audit(SCHEMA.histograms(TABLE.sensitive), published_of(half), K)
    assert (counts.rows, counts.suppressed, counts.rejected) == (4, None, None)


def test_closeness_is_measured_from_the_original_whichever_way_it_is_audited() -> None:
    """The published half has flu alone; of all rows half have it."""
    flu = np.array(ILLNESS) == 0
    half = Publication.of(TABLE, np.where(flu, 0, -1))
    close = (TCloseness(0.4, attribute="illness"),)
    counts = SCHEMA.histograms(TABLE.sensitive)
    for found in (
        audit(TABLE, half, close),
        audit(TABLE, published_of(half), close),
        audit(counts, published_of(half), close),
        audit_linked(TABLE, published_of(half), list(np.flatnonzero(flu).reshape(-1, 1)), close),
    ):
        assert (found.findings[0].achieved, found.outcome) == (0.5, "does not hold")


# -- persons that a file does not show ---------------------------------------------------------------------------------


def test_a_row_that_nothing_explains_may_be_about_anybody() -> None:
    """Of four published rows one has a value that nobody in the box has, so four persons may be behind them."""
    sensitive = PUBLISHED.sensitive.copy()
    sensitive[0] = [2, 2]
    twice = table_of([0, 1, 2, 3, 4, 5, 6, 6])
    found = match(twice, replace(PUBLISHED, sensitive=sensitive))
    assert (found.most_persons.tolist(), found.unplaced.tolist()) == ([4, 3], [1, 0])


def test_only_persons_with_a_row_of_the_published_values_can_be_meant() -> None:
    """In the box are rows of five persons; some of them have other values, or the values of the other class."""
    table = table_of(
        [1, 2, 2, 3, 4, 5, 6, 7], ages=[0] * 5 + [9] * 3, sexes=[0] * 8, illness=[0, 0, 0, 1, 2, 2, 2, 1], pay=[0] * 8
    )
    published = published_of(Publication.of(table, np.array([1, 1, 1, -1, -1, 0, 0, -1])))
    found = match(table, published)
    order = np.argsort(published.boxes.lo[:, 0])
    assert found.most_persons[order].tolist() == [2, 2]
    assert found.fewest_persons[order].tolist() == [2, 2]


def test_the_fewest_persons_are_rounded_up() -> None:
    """Three rows of two persons, each of whom has two rows in the box, are about both of them."""
    table = table_of([1, 1, 2, 2, 5, 6, 7, 8], ages=[0] * 4 + [9] * 4, illness=[0] * 8, pay=[0] * 8)
    published = published_of(Publication.of(table, np.array([0, 0, 0, -1, 1, 1, 1, 1])))
    assert match(table, published).fewest_persons.tolist() == [2, 4]


def test_means_are_about_no_more_persons_than_there_are() -> None:
    few = table_of([0, 0, 0, 0, 1, 1, 1, 1])
    found = match(few, published_of(Publication.of(few, CLASSES, show="mean")))
    assert found.most_persons.tolist() == [2, 2]
    audited = audit(few, published_of(Publication.of(few, CLASSES, show="mean")), (KAnonymity(3),))
    assert (audited.outcome, audited.findings[0].achieved) == ("does not hold", 2)


def test_every_row_is_a_person_where_only_counts_are_known_and_no_share_is_told() -> None:
    found = audit(SCHEMA.histograms(TABLE.sensitive), PUBLISHED, (KAnonymity(4), MaxShare(0.25)))
    assert (found.persons, found.fewest_persons, found.largest_share, found.holds) == ("rows", 4, None, True)


# -- means with links --------------------------------------------------------------------------------------------------


def test_rows_that_were_published_together_are_shown_as_their_own_mean() -> None:
    """Two clusters have one class each; the mean of either is that of its own rows."""
    published = published_of(Publication.of(TABLE, np.array([0, 0, 0, 0, 1, 1, 2, 2]), show="mean"))
    assert kinds(audit_linked(TABLE, published, TOGETHER, ())) == []
    # Two clusters that show the same mean are one class of the file, and no mean is that of all of its rows.
    ages = [0, 2, 0, 2, 1, 1, 8, 9]
    one = table_of(ages=ages, sexes=[0] * 8)
    shown = published_of(Publication.of(one, np.array([0, 0, 0, 0, 0, 0, 1, 1]), show="mean"))
    links = [np.array([0, 1, 2, 3]), np.array([4, 5]), np.array([6, 7])]
    assert kinds(audit_linked(one, shown, links, ())) == []
    uneven = [np.array([0, 2, 4, 5]), np.array([1, 3]), np.array([6, 7])]
    order = np.array([0, 2, 4, 5, 1, 3, 6, 7])
    moved = replace(shown, classes=shown.classes[order], sensitive=shown.sensitive[order])
    assert kinds(audit_linked(one, moved, uneven, ())) == [("uncovered", 6)]


def test_a_mean_must_be_right_in_every_attribute_and_at_both_ends() -> None:
    published = published_of(PUBLICATION.of(TABLE, CLASSES, show="mean"))
    for side, column, value in (("lo", 0, 0), ("hi", 0, 9), ("lo", 1, 1), ("hi", 1, 2)):
        ends = {"lo": published.boxes.lo.copy(), "hi": published.boxes.hi.copy()}
        ends[side][0, column] = value
        if ends["lo"][0, column] > ends["hi"][0, column]:
            continue
        wrong = replace(published, boxes=Boxes(SCHEMA, ends["lo"], ends["hi"]))
        assert kinds(audit_linked(TABLE, wrong, SINGLY, ())) == [("uncovered", 4)], (side, column)


# -- models that an audit cannot check ---------------------------------------------------------------------------------


ALONE = (ZAnonymity(2, 10), ChanceOfK(2, 0.5, 10**6, (3, 1), 100, 1))


@pytest.mark.parametrize("model", ALONE, ids=["z", "chance"])
def test_models_of_rows_that_passed_cannot_be_audited(model: Any) -> None:
    for published in (PUBLICATION, PUBLISHED):
        with pytest.raises(InfeasibleError, match="does not show when its rows came"):
            audit(TABLE, published, [KAnonymity(2), model])
    with pytest.raises(InfeasibleError, match="does not show when its rows came"):
        audit_linked(TABLE, PUBLISHED, SINGLY, [model])


def test_a_model_of_the_history_needs_links() -> None:
    for published in (PUBLICATION, PUBLISHED):
        with pytest.raises(InfeasibleError, match="does not show whose rows"):
            audit(TABLE, published, [KAnonymity(2), KOverTime(2)])
    assert audit_linked(TABLE, PUBLISHED, SINGLY, [KOverTime(4)]).findings[0].achieved == 4


# -- rows of one person, tied together ---------------------------------------------------------------------------------


MOVING = table_of([1, 2, 3, 1, 2, 3, 4, 5], ages=[1, 1, 1, 1, 9, 1, 9, 9], sexes=[0] * 8)
"""Person 2 is in the first box at first and in the second one later; persons 1 and 3 stay."""
BOXES = np.array([0, 0, 0, 0, 1, 0, 1, 1])


def test_rows_of_a_person_are_tied_together() -> None:
    """Classes have three persons each, but nobody else is in both boxes of person 2."""
    published = published_of(Publication.of(MOVING, BOXES))
    found = audit_linked(MOVING, published, SINGLY, [KAnonymity(3), KOverTime(2)])
    assert [(one.outcome, one.achieved) for one in found.findings] == [("holds", 3), ("does not hold", 1)]
    assert found.findings[1].failing == 1


def test_rejected_events_count_as_sightings_and_rows_by_their_positions() -> None:
    """Person 3 was seen elsewhere before the last row of person 1, in an event that was rejected."""
    ages = [1, 1, 1, 1, 1, 1, 1, 1]
    still = table_of([1, 2, 3, 1, 2, 2, 1, 2], ages=ages, sexes=[0] * 8)
    published = published_of(Publication.of(still, np.zeros(8, int)))
    assert audit_linked(still, published, SINGLY, [KOverTime(3)]).outcome == "holds"
    positions = np.array([0, 1, 2, 3, 14, 15, 16, 17, 9])
    seen = Sightings(positions, np.append(still.persons, 3), np.vstack([still.quasi, [[9.0, 0.0]]]))
    (found,) = audit_linked(still, published, SINGLY, [KOverTime(3)], seen).findings
    assert (found.outcome, found.achieved, found.failing) == ("does not hold", 2, 2)
    early = np.flatnonzero(positions[:8] < 9)
    few = published_of(Publication.of(still, np.where(positions[:8] < 9, 0, -1)))
    assert audit_linked(still, few, list(early.reshape(-1, 1)), [KOverTime(3)], seen).outcome == "holds"
    late = np.arange(4, 8)
    rest = published_of(Publication.of(still, np.where(positions[:8] > 9, 0, -1)))
    assert audit_linked(still, rest, list(late.reshape(-1, 1)), [KOverTime(3)], seen).outcome == "does not hold"


def test_values_of_every_class_are_checked_beside_the_history() -> None:
    published = published_of(Publication.of(MOVING, BOXES))
    found = audit_linked(MOVING, published, SINGLY, [KOverTime(1), DistinctDiversity(3, "illness")])
    assert [one.outcome for one in found.findings] == ["holds", "does not hold"]
