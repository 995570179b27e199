"""The audit finds what is wrong, in memory and in what an outsider sees."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microdata import (
    Boxes,
    Category,
    GuaranteeError,
    Hierarchy,
    Number,
    PersonSource,
    Publication,
    Published,
    Schema,
    Table,
    published_of,
    read_published,
    write_published,
)
from privacy import (
    BetaLikeness,
    DistinctDiversity,
    Groups,
    KAnonymity,
    MaxShare,
    TCloseness,
    audit,
    audit_linked,
    check,
    require,
)
from privacy.outsider import match

SCHEMA = Schema(
    PersonSource.ROW,
    (Number("age", 0, 9, integer=True), Category("sex", Hierarchy.flat(["F", "M"]))),
    (Category("illness", Hierarchy.flat(["flu", "ulcer", "cancer"])), Number("pay", 1, 3, integer=True)),
)


@st.composite
def publications(draw: Any, one_row_each: bool = False) -> Any:
    rows = draw(st.integers(1, 20))
    count = draw(st.integers(1, 4))

    def column(low: Any, high: Any) -> Any:
        return np.array([draw(st.integers(low, high)) for _ in range(rows)])

    persons = np.arange(rows) if one_row_each else column(0, 5)
    table = Table(
        SCHEMA,
        persons,
        np.stack([column(0, 9), column(0, 1)], axis=1).astype(float),
        np.stack([column(0, 2), column(0, 2)], axis=1).astype(np.int32),
    )
    return Publication.of(table, column(-1, count - 1))


def example() -> Any:
    """Four persons per class, both illnesses in the table's proportion."""
    quasi = np.array([[0, 0], [1, 0], [2, 0], [3, 0], [6, 1], [7, 1], [8, 1], [9, 1]], float)
    illness = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    table = Table(SCHEMA, np.arange(8), quasi, np.stack([illness, illness], axis=1).astype(np.int32))
    return Publication.of(table, np.array([0, 0, 0, 0, 1, 1, 1, 1]))


MODELS = [KAnonymity(4), DistinctDiversity(2), TCloseness(0), BetaLikeness(0.5)]


class TestWhatHolds:
    def test_in_memory(self) -> None:
        publication = example()
        found = audit(publication.table, publication, MODELS)
        assert found.holds
        assert (found.persons, found.classes, found.rows, found.suppressed) == ("exact", 2, 8, 0)
        assert (found.fewest_persons, found.largest_share) == (4, 0.25)
        assert found.loss == pytest.approx((3 / 9 + 0) / 2)
        assert [finding.achieved for finding in found.findings] == [4, 2, 0, 0]

    def test_as_an_outsider_sees_it(self) -> None:
        publication = example()
        found = audit(publication.table, published_of(publication), MODELS)
        assert found == audit(publication.table, publication, MODELS)

    def test_from_the_distribution_alone_rows_are_counted_and_it_is_said(self) -> None:
        publication = example()
        references = [np.bincount(publication.table.sensitive[:, 0], minlength=3)] * 2
        found = audit(references, published_of(publication), MODELS)
        assert found.holds
        assert (found.persons, found.largest_share, found.suppressed) == ("rows", None, None)

    def test_suppressed_rows_stay_in_the_reference(self) -> None:
        publication = example()
        half = Publication.of(publication.table, np.array([0, 0, -1, -1, 1, 1, 1, 1]))
        found = audit(publication.table, half, [TCloseness(0)])
        assert found.suppressed == 2
        assert found.findings[0].classes == ("0",)

    def test_nothing_published(self) -> None:
        publication = example()
        found = audit(publication.table, Publication.of(publication.table, np.full(8, -1)), MODELS)
        assert found.holds
        assert (found.classes, found.suppressed, found.fewest_persons) == (0, 8, None)
        assert {finding.achieved for finding in found.findings} == {None}

    def test_as_json_without_infinities(self) -> None:
        publication = example()
        table = replace(publication.table, sensitive=np.zeros((8, 2), np.int32))
        references = [np.array([0, 8, 0])] * 2
        found = audit(references, published_of(replace(publication, table=table)), [BetaLikeness(1)])
        text = json.loads(json.dumps(found.as_dict(), allow_nan=False))
        assert text["holds"] is False
        assert text["findings"][0]["achieved"] is None


def broken_k(publication: Any) -> Any:
    return Publication.of(publication.table, np.array([0, 0, 0, -1, 1, 1, 1, 1]))


def broken_closeness(publication: Any) -> Any:
    return Publication.of(publication.table, np.array([0, 0, 0, 0, 1, 1, 1, 0]))


class TestWhatMustFail:
    @pytest.mark.parametrize("view", [lambda one: one, published_of], ids=["in memory", "outsider"])
    def test_a_class_of_one_person_too_few(self, view: Any) -> None:
        publication = example()
        found = audit(publication.table, view(broken_k(publication)), [KAnonymity(4)])
        assert not found.holds
        assert (found.findings[0].achieved, found.findings[0].failing, found.findings[0].classes) == (3, 1, ("0",))

    @pytest.mark.parametrize("view", [lambda one: one, published_of], ids=["in memory", "outsider"])
    def test_closeness_slightly_exceeded(self, view: Any) -> None:
        publication = example()
        broken = broken_closeness(publication)
        worst = audit(publication.table, view(broken), [TCloseness(1)]).findings[0].achieved
        assert worst > 0  # type: ignore[operator]
        assert audit(publication.table, view(broken), [TCloseness(worst + 1e-9)]).holds  # type: ignore[operator]
        assert not audit(publication.table, view(broken), [TCloseness(worst - 1e-9)]).holds  # type: ignore[operator]

    @pytest.mark.parametrize("view", [lambda one: one, published_of], ids=["in memory", "outsider"])
    def test_a_row_outside_its_box(self, view: Any) -> None:
        publication = example()
        narrow = publication.boxes.hi.copy()
        narrow[1, 0] = 8
        broken = replace(publication, boxes=Boxes(SCHEMA, publication.boxes.lo, narrow))
        found = audit(publication.table, view(broken), MODELS)
        assert not found.holds
        assert [(fault.kind, fault.count) for fault in found.faults] == [("uncovered", 1)]

    def test_a_column_that_nobody_declared(self) -> None:
        published = replace(published_of(example()), undeclared=("customer_id",))
        found = audit(example().table, published, MODELS)
        assert not found.holds
        assert "customer_id" in found.faults[0].reason

    def test_a_duplicated_row(self) -> None:
        publication = example()
        published = published_of(publication)
        twice = np.r_[np.arange(8), 0]
        more = replace(published, classes=published.classes[twice], sensitive=published.sensitive[twice])
        found = audit(publication.table, more, [KAnonymity(4)])
        assert not found.holds
        assert {fault.kind for fault in found.faults} == {"surplus", "uncovered"}

    def test_a_row_that_nobody_had(self) -> None:
        publication = example()
        published = published_of(publication)
        invented = published.sensitive.copy()
        invented[0] = [2, 2]
        found = audit(publication.table, replace(published, sensitive=invented), [KAnonymity(3)])
        assert {fault.kind for fault in found.faults} == {"surplus", "uncovered"}

    def test_a_row_moved_to_the_wrong_class(self) -> None:
        """The values as a whole are right, but one class has a row that no original row in its box explains."""
        publication = example()
        published = published_of(publication)
        moved = published.classes.copy()
        moved[0] = 1
        found = audit(publication.table, replace(published, classes=moved), [KAnonymity(3)])
        assert [(fault.kind, fault.count) for fault in found.faults] == [("uncovered", 1)]

    def test_a_missing_row_is_a_suppressed_one(self) -> None:
        publication = example()
        published = published_of(publication)
        fewer = replace(published, classes=published.classes[1:], sensitive=published.sensitive[1:])
        found = audit(publication.table, fewer, [KAnonymity(4)])
        assert found.suppressed == 1
        assert found.findings[0].classes == ("0",)

    def test_a_publication_of_another_table_is_seen_as_an_outsider_does(self) -> None:
        publication = example()
        other = replace(publication.table, quasi=publication.table.quasi[::-1].copy())
        assert not audit(other, publication, [KAnonymity(4)]).faults  # the illnesses repeat in both halves
        moved = replace(publication.table, quasi=np.zeros((8, 2)))
        assert audit(moved, publication, [KAnonymity(4)]).faults[0].kind == "uncovered"

    def test_many_failing_classes_are_counted_and_some_listed(self) -> None:
        rows = 50
        table = Table(SCHEMA, np.arange(rows), np.zeros((rows, 2)), np.zeros((rows, 2), np.int32))
        (finding,) = audit(table, Publication.of(table, np.arange(rows)), [KAnonymity(2)]).findings
        assert finding.failing == rows
        assert finding.classes == tuple(map(str, range(20)))


def brute_force(original: Table, published: Published) -> Iterator[Any]:
    """Fewest persons and most rows of one, by trying every choice of original rows for each class."""
    for one in range(len(published.boxes)):
        wanted = sorted(map(tuple, published.sensitive[published.classes == one].tolist()))
        inside = [
            row for row in range(len(original)) if published.boxes.cover(original.quasi[[row]], np.array([one]))[0]
        ]
        choices = [
            [int(original.persons[row]) for row in chosen]
            for chosen in combinations(inside, len(wanted))
            if sorted(tuple(original.sensitive[row].tolist()) for row in chosen) == wanted
        ]
        yield (
            min(len(set(persons)) for persons in choices),
            max(max(map(persons.count, persons)) for persons in choices),
        )


def of_persons(persons: Any, ages: Any = None) -> Any:
    """A table in which all rows are alike, but for their persons and ages."""
    ages = np.ones(len(persons)) if ages is None else np.array(ages)
    quasi = np.column_stack([ages, np.zeros(len(persons))])
    return Table(SCHEMA, np.array(persons), quasi, np.zeros((len(persons), 2), np.int32))


def rows(numbers: Any) -> list[Any]:
    """Links of single rows."""
    return list(np.array(numbers).reshape(-1, 1))


class TestOutsider:
    @given(publications())
    def test_bounds_are_sound(self, publication: Any) -> None:
        table, published = publication.table, published_of(publication)
        found = match(table, published)
        truth = Groups.of(SCHEMA, table.persons, table.sensitive, publication.classes, len(publication.boxes))
        assert not found.unplaced.any()
        assert found.surplus == 0
        assert (found.fewest_persons <= truth.persons).all()
        assert (found.fewest_persons >= np.minimum(truth.rows, 1)).all()
        assert (found.most_rows >= truth.most).all()
        assert (found.most_persons >= truth.persons).all()
        assert (found.most_persons <= truth.rows).all()
        assert (found.safest(truth).most <= truth.most).all()

    @given(publications())
    def test_bounds_are_what_the_original_allows(self, publication: Any) -> None:
        table, published = publication.table, published_of(publication)
        small = Table(SCHEMA, table.persons[:9], table.quasi[:9], table.sensitive[:9])
        publication = Publication.of(small, publication.classes[:9])
        published = published_of(publication)
        found = match(small, published)
        for one, (fewest, most) in enumerate(brute_force(small, published)):
            assert found.fewest_persons[one] <= fewest
            assert found.most_rows[one] == most

    @given(publications(one_row_each=True))
    def test_one_row_per_person_is_exact(self, publication: Any) -> None:
        found = match(publication.table, published_of(publication))
        assert found.fewest_persons.tolist() == publication.sizes.tolist()
        assert (found.most_rows == 1).all()

    def test_two_classes_that_need_the_same_row_are_not_both_covered(self) -> None:
        """Each class by itself is explained by an original row; all of them together are not."""
        ages = np.array([0.0, 5.0, 8.0])
        quasi, sensitive = np.column_stack([ages, np.zeros(3)]), np.zeros((3, 2), np.int32)
        original = Table(SCHEMA, np.arange(3), quasi, sensitive)
        made = Publication.of(original, np.array([0, 1, 2]))
        lo, hi = np.zeros((3, 2)), np.array([[1.0, 0.0], [1.0, 0.0], [9.0, 0.0]])
        forged = replace(published_of(made), boxes=Boxes(SCHEMA, lo, hi))
        found = audit(original, forged, [KAnonymity(1)])
        assert [(fault.kind, fault.count) for fault in found.faults] == [("uncovered", 1)]

    def test_every_class_is_bounded_by_its_own_persons(self) -> None:
        publication = example()
        table = replace(publication.table, persons=np.array([1, 1, 2, 2, 3, 3, 4, 5]))
        found = match(table, published_of(Publication.of(table, publication.classes)))
        assert found.fewest_persons.tolist() == [2, 3]
        assert found.most_rows.tolist() == [2, 2]

    def test_repeated_persons_give_a_lower_bound_and_it_is_said(self) -> None:
        publication = example()
        table = replace(publication.table, persons=np.array([1, 1, 2, 3, 4, 5, 6, 7]))
        publication = Publication.of(table, publication.classes)
        exact = audit(table, publication, [KAnonymity(3), MaxShare(0.5)])
        assert exact.holds
        assert (exact.persons, exact.fewest_persons, exact.largest_share) == ("exact", 3, 0.5)
        seen = audit(table, published_of(publication), [KAnonymity(3), MaxShare(0.49)])
        assert (seen.persons, seen.fewest_persons, seen.largest_share) == ("at least", 3, 0.5)
        assert [finding.holds for finding in seen.findings] == [True, False]
        share = seen.findings[1]
        assert (share.outcome, share.failing, share.achieved) == ("does not hold", 1, 0.5), "4 rows of 3 persons"

    def test_a_lower_bound_below_k_is_no_violation(self) -> None:
        """Four rows of one class, in a box in which person 1 has two more rows: nobody can tell whose rows they are."""
        table = of_persons([1, 1, 1, 2, 3, 4])
        published = published_of(Publication.of(table, np.array([0, -1, -1, 0, 0, 0])))
        assert audit(table, Publication.of(table, np.array([0, -1, -1, 0, 0, 0])), [KAnonymity(4)]).holds
        (found,) = audit(table, published, [KAnonymity(4)]).findings
        assert (found.outcome, found.failing, found.not_shown, found.classes) == ("not shown", 0, 1, ("0",))
        assert (found.achieved, found.bound, found.as_dict()["holds"]) == (2, "at least", False)
        seen = audit(table, published, [MaxShare(0.5), DistinctDiversity(1, "pay")])
        assert (seen.outcome, seen.holds, seen.as_dict()["outcome"]) == ("not shown", False, "not shown")
        assert (seen.findings[0].achieved, seen.findings[0].bound) == (0.75, "at most")
        (enough,) = audit(table, published, [KAnonymity(2)]).findings
        assert (enough.outcome, enough.achieved, enough.bound) == ("holds", 2, "at least")

    def test_too_few_persons_in_a_box_are_a_violation_however_many_rows_they_have(self) -> None:
        table = of_persons([1, 1, 1, 2, 2, 2])
        published = published_of(Publication.of(table, np.zeros(6, int)))
        found = audit(table, published, [KAnonymity(3), MaxShare(0.4), MaxShare(0.5)])
        k, low, half = found.findings
        assert (k.outcome, k.failing, k.achieved, k.bound) == ("does not hold", 1, 2, None)
        assert (low.outcome, half.outcome) == ("does not hold", "holds")
        assert found.outcome == "does not hold"

    def test_fewer_rows_than_persons_that_are_asked_for_are_a_violation(self) -> None:
        table = of_persons([1, 1, 1, 2, 3, 4])
        published = published_of(Publication.of(table, np.array([0, 0, -1, 0, -1, -1])))
        (found,) = audit(table, published, [KAnonymity(4)]).findings
        assert (found.outcome, found.achieved, found.bound) == ("does not hold", 3, "at most")

    def test_a_fault_outweighs_what_is_not_shown(self) -> None:
        table = of_persons([1, 1, 1, 2, 3, 4])
        published = replace(published_of(Publication.of(table, np.array([0, -1, -1, 0, 0, 0]))), undeclared=("id",))
        assert audit(table, published, [KAnonymity(4)]).outcome == "does not hold"

    def test_what_is_about_no_person_stays_exact(self) -> None:
        table = of_persons([1, 1, 1, 2, 3, 4])
        published = published_of(Publication.of(table, np.array([0, -1, -1, 0, 0, 0])))
        (found,) = audit(table, published, [DistinctDiversity(2, "pay")]).findings
        assert (found.outcome, found.bound) == ("does not hold", None)


class TestLinks:
    """The owner keeps which row of the original each published row is."""

    classes = np.array([0, -1, -1, 0, 0, 0])

    def test_persons_are_exact(self) -> None:
        table = of_persons([1, 1, 1, 2, 3, 4])
        published = published_of(Publication.of(table, self.classes))
        found = audit_linked(table, published, rows([0, 3, 4, 5]), [KAnonymity(4), MaxShare(0.25)])
        assert (found.outcome, found.persons, found.fewest_persons) == ("holds", "exact", 4)
        found = audit_linked(table, published, rows([0, 1, 2, 3]), [KAnonymity(4)])
        assert (found.outcome, found.findings[0].achieved) == ("does not hold", 2)

    def test_a_row_that_is_linked_twice_is_a_fault(self) -> None:
        table = of_persons([1, 1, 1, 2, 3, 4])
        published = published_of(Publication.of(table, self.classes))
        (fault,) = audit_linked(table, published, rows([0, 3, 4, 4]), [KAnonymity(2)]).faults
        assert (fault.kind, fault.count) == ("unlinked", 1)

    def test_closeness_compares_with_all_of_the_original(self) -> None:
        publication = example()
        table, published = publication.table, published_of(publication)
        flu = table.sensitive[:, 0] == 0
        some = Publication.of(table, np.where(flu, 0, -1))
        model = TCloseness(0.4, attribute="illness")
        found = audit_linked(table, published_of(some), rows(np.flatnonzero(flu)), [model]).findings
        assert found == audit(table, some, [model]).findings
        assert (found[0].achieved, found[0].outcome) == (0.5, "does not hold"), "half of all have it"
        assert (
            audit_linked(table, published, rows(np.arange(len(table))), MODELS).findings
            == audit(table, publication, MODELS).findings
        )

    def test_rows_of_means_are_compared_with_their_class(self) -> None:
        table = of_persons([1, 1, 1, 2, 3, 4], ages=[1, 2, 9, 4, 5, 6])
        published = published_of(Publication.of(table, self.classes, show="mean"))
        assert audit_linked(table, published, rows([0, 3, 4, 5]), [KAnonymity(4)]).holds
        (fault,) = audit_linked(table, published, rows([2, 3, 4, 5]), [KAnonymity(4)]).faults
        assert fault.kind == "uncovered"


class TestFiles:
    @pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
    def test_what_was_written_holds_when_it_is_read(self, tmp_path: Path, suffix: str) -> None:
        publication = example()
        path = tmp_path / f"published.{suffix}"
        write_published(publication, path)
        found = audit(publication.table, read_published(path, SCHEMA), MODELS)
        assert found == audit(publication.table, publication, MODELS)

    def test_failing_classes_by_the_name_that_the_file_gives_them(self, tmp_path: Path) -> None:
        path = tmp_path / "published.csv"
        path.write_text('class,age,sex,illness,pay\na,"[0,1]",F,flu,1\na,"[0,1]",F,flu,1\nb,"[2,3]",F,ulcer,2\n')
        (finding,) = audit(example().table, read_published(path, SCHEMA), [KAnonymity(2)]).findings
        assert finding.classes == ("b",)
        path.write_text("age,sex,illness,pay\n3,F,ulcer,2\n")
        (finding,) = audit(example().table, read_published(path, SCHEMA), [KAnonymity(2)]).findings
        assert finding.classes == ("0",)

    def test_a_column_or_a_row_too_many_in_the_file(self, tmp_path: Path) -> None:
        publication = example()
        path = tmp_path / "published.csv"
        write_published(publication, path)
        header, *rows = path.read_text().splitlines()
        path.write_text("\n".join([header + ",row", *(f"{row},{number}" for number, row in enumerate(rows))]))
        faults = audit(publication.table, read_published(path, SCHEMA), MODELS).faults
        assert [fault.kind for fault in faults] == ["undeclared"]
        path.write_text("\n".join([header, *rows, rows[0]]))
        faults = audit(publication.table, read_published(path, SCHEMA), MODELS).faults
        assert {fault.kind for fault in faults} == {"surplus", "uncovered"}


class TestCheck:
    groups = Groups.of(
        SCHEMA, np.arange(5), np.array([[0, 0], [1, 1], [0, 0], [0, 0], [1, 2]], np.int32), np.array([0, 0, 1, 1, 1]), 2
    )

    def test_classes_that_meet_every_model(self) -> None:
        assert check([KAnonymity(2), DistinctDiversity(2)], self.groups).tolist() == [True, True]
        assert check([KAnonymity(3), DistinctDiversity(2)], self.groups).tolist() == [False, True]
        assert check([], self.groups).tolist() == [True, True]

    def test_require_names_models_and_no_values(self) -> None:
        require([KAnonymity(2)], self.groups)
        with pytest.raises(GuaranteeError, match=r"k-anonymity \(3\) fails in 1 of 2 classes"):
            require([KAnonymity(3)], self.groups)

    def test_a_model_without_anything_to_protect_does_not_pass(self) -> None:
        bare = Schema(PersonSource.ROW, SCHEMA.quasi)
        groups = Groups.of(bare, np.arange(2), np.empty((2, 0), np.int32), np.zeros(2, int), 1)
        with pytest.raises(Exception, match="needs a sensitive attribute"):
            check([DistinctDiversity(2)], groups)
        with pytest.raises(Exception, match="not sensitive, given 'wage'"):
            check([TCloseness(0.2, attribute="wage")], self.groups)
