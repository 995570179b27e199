"""What attackers learn, and how likely they find somebody."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microdata import Boxes, Category, Hierarchy, Number, PersonSource, Publication, Schema, Table
from privacy import Groups, divergence, homogeneity, linking, risks, risks_before, similarity, skewness
from tests.privacy.privacy_worlds import counted, worlds

TREE = Category("illness", Hierarchy.from_mapping({"all": {"lungs": ["flu", "cough"], "gut": ["ulcer", "colic"]}}))
PAY = Number("pay", 10, 110, step=10)
SCHEMA = Schema(PersonSource.ROW, (Number("age", 0, 9, integer=True),))


def table_of(ages: Any, persons: Any = None) -> Any:
    persons = np.arange(len(ages)) if persons is None else np.array(persons)
    return Table(SCHEMA, persons, np.array(ages, float)[:, None], np.empty((len(ages), 0), np.int32))


class TestAttacks:
    def test_homogeneity_with_a_certainty(self) -> None:
        groups = counted(TREE, [4, 2, 2, 2], [3, 0, 0, 0], [9, 1, 0, 0], [1, 1, 1, 1])
        (certain,) = homogeneity(groups)
        assert certain.classes.tolist() == [0]
        assert certain.values == ("flu",)
        (likely,) = homogeneity(groups, certainty=0.9)
        assert likely.classes.tolist() == [0, 1]
        assert likely.prior.tolist() == [0.4, 0.4]
        assert likely.posterior.tolist() == [1, 0.9]
        assert len(homogeneity(groups, certainty=0.901)[0]) == 1

    def test_similarity_of_categories(self) -> None:
        groups = counted(TREE, [4, 2, 2, 2], [2, 2, 0, 0], [1, 0, 1, 0], [0, 0, 0, 3])
        (alike,) = similarity(groups, height=1)
        assert alike.classes.tolist() == [0, 2]
        assert alike.values == ("lungs", "colic")
        assert alike.prior.tolist() == [0.6, 0.2]
        assert len(similarity(groups, height=9)[0]) == 2, "the root says nothing"

    def test_similarity_of_numbers(self) -> None:
        groups = counted(PAY, [1] * 11, [0, 1, 1] + [0] * 8, [1, 0, 1] + [0] * 8)
        (alike,) = similarity(groups, width=0.1)
        assert alike.classes.tolist() == [0]
        assert alike.values == ("20 … 30",)
        assert alike.prior == pytest.approx([2 / 11])
        assert len(similarity(groups, width=0.2)[0]) == 2

    def test_skewness(self) -> None:
        groups = counted(TREE, [4, 2, 2, 2], [8, 0, 1, 1])
        (learned,) = skewness(groups, factor=2)
        assert learned.values == ("flu",)
        assert learned.prior == pytest.approx([0.4])
        assert learned.posterior == pytest.approx([0.8])

    def test_nothing_published_teaches_nothing(self) -> None:
        schema = Schema(PersonSource.ROW, SCHEMA.quasi, (TREE,))
        empty = Groups.of(schema, np.arange(1), np.zeros((1, 1), np.int32), np.array([-1]), 0)
        assert [len(found) for attack in (homogeneity, similarity, skewness) for found in attack(empty)] == [0, 0, 0]

    @given(worlds())
    def test_divergence_against_the_definition(self, world: Any) -> None:
        groups = world.groups
        for histogram in groups.histograms:
            p = histogram.reference / histogram.total
            for one, found in enumerate(divergence(groups, histogram)):
                q = np.zeros(len(p))
                entries = slice(histogram.starts[one], histogram.starts[one + 1])
                q[histogram.values[entries]] = histogram.counts[entries] / groups.rows[one]
                middle = (p + q) / 2
                bits = sum(
                    share * np.log2(share / centre) / 2
                    for shares in (p, q)
                    for share, centre in zip(shares, middle, strict=True)
                    if share > 0
                )
                assert found == pytest.approx(bits, abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6), st.data())
def test_linking_against_counting(ranges: Any, data: Any) -> None:
    lo = np.array([[min(pair)] for pair in ranges], float)
    hi = np.array([[max(pair)] for pair in ranges], float)
    ages = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=12))
    persons = data.draw(st.lists(st.integers(0, 4), min_size=len(ages), max_size=len(ages)))
    sizes = np.arange(1, len(ranges) + 1)
    found = linking(Boxes(SCHEMA, lo, hi), sizes, table_of(ages, persons))
    for one, (low, high) in enumerate(zip(lo[:, 0], hi[:, 0], strict=True)):
        inside = {person for age, person in zip(ages, persons, strict=True) if low <= age <= high}
        assert found.persons[one] == len(inside)
    for row, age in enumerate(ages):
        fits = (lo[:, 0] <= age) & (age <= hi[:, 0])
        assert found.rows[row] == sizes[fits].sum()
    assert found.singled_out.tolist() == np.flatnonzero(found.rows == 1).tolist()


class TestRisk:
    def test_before_and_after(self) -> None:
        table = table_of([1, 1, 1, 1, 5, 6])
        before = risks_before(table)
        assert (before.prosecutor.highest, before.prosecutor.average) == (1, pytest.approx((4 / 4 + 1 + 1) / 6))  # type: ignore[comparison-overlap]
        assert before.prosecutor.above == 1
        after = risks(Publication.of(table, np.zeros(6, int)))
        assert after.prosecutor.highest == after.prosecutor.average == pytest.approx(1 / 6)
        assert after.prosecutor.above == 0
        assert after.marketer == after.prosecutor.average
        assert after.journalist is None

    def test_a_risk_at_the_threshold_is_not_above_it(self) -> None:
        publication = Publication.of(table_of([1] * 5), np.zeros(5, int))
        assert risks(publication, threshold=0.2).prosecutor.above == 0
        assert risks(publication, threshold=0.1999).prosecutor.above == 1

    def test_a_person_with_many_rows_is_one_person(self) -> None:
        publication = Publication.of(table_of([1, 1, 1, 1], [7, 7, 7, 8]), np.zeros(4, int))
        assert risks(publication).prosecutor.highest == 0.5

    def test_a_journalist_has_the_population_to_search(self) -> None:
        table = table_of([1, 2, 8, 9])
        publication = Publication.of(table, np.array([0, 0, 1, 1]))
        population = table_of([1, 1, 2, 2, 2, 8, 9, 5, 5])
        found = risks(publication, population)
        assert found.journalist is not None
        assert found.journalist.highest == 0.5
        assert found.journalist.average == pytest.approx((2 / 5 + 2 / 2) / 4)
        assert found.marketer == found.journalist.average
        assert found.prosecutor.highest == 0.5

    def test_an_incomplete_population_does_not_raise_the_risk(self) -> None:
        publication = Publication.of(table_of([1, 2, 8, 9]), np.zeros(4, int))
        found = risks(publication, table_of([5]))
        assert found.journalist is not None
        assert found.journalist.highest == 0.25

    def test_nothing_published(self) -> None:
        assert risks(Publication.of(table_of([1, 2]), np.array([-1, -1]))).prosecutor.highest == 0
