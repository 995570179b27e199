from typing import Any

import numpy as np
import pytest

from microdata import Boxes, Category, Hierarchy, Number, PersonSource, Publication, Schema, Table, class_loss
from privacy import raising
from privacy.raising import _raised
from static_algos import Mondrian
from tests.worlds import random_table

CITIES = Hierarchy.from_mapping({"Any": {"North": {"Coast": ["a", "b"]}, "South": ["c", "d"]}})


def one_column(attribute: Any, values: list[float], classes: list[int], persons: Any = None) -> Publication:
    schema = Schema(PersonSource.ROW, (attribute,), ())
    owners = np.arange(len(values)) if persons is None else np.array(persons)
    table = Table(schema, owners, np.array(values, float)[:, None], np.empty((len(values), 0), np.int32))
    return Publication.of(table, np.array(classes))


def test_a_category_rises_to_the_next_level_that_says_less() -> None:
    # a and b are all of Coast and of North, so above {a} is Coast, and above Coast is Any.
    found = raising(one_column(Category("city", CITIES), [0, 1, 2, 3], [0, 1, 2, 3]))
    assert found.risk == 1
    assert [(one.attribute, one.risk, one.cost) for one in found.columns] == [("city", 0.5, 0.5)]
    higher = raising(one_column(Category("city", CITIES), [0, 1, 2, 3], [0, 0, 1, 1]))
    assert (higher.risk, higher.columns[0].risk, higher.columns[0].cost) == (0.5, 0.25, 0.5)


def test_a_number_rises_to_a_grid_that_is_twice_as_wide() -> None:
    ages = Number("age", 0, 80)
    found = raising(one_column(ages, [1, 9, 11, 79], [0, 0, 1, 2]))
    # 1 … 9 becomes 0 … 20, which has 11 in it; 11 becomes 10 … 20, 79 becomes 70 … 80.
    assert found.risk == pytest.approx((2 * 0.5 + 1 + 1) / 4)
    assert found.columns[0].risk == pytest.approx((2 / 3 + 1 + 1) / 4)
    assert found.columns[0].cost == pytest.approx((2 * (20 - 8) + 10 + 10) / 80 / 4)


def test_what_is_published_as_its_whole_domain_cannot_rise() -> None:
    assert raising(one_column(Category("city", CITIES), [0, 3], [0, 0])).columns == ()
    assert raising(one_column(Number("age", 0, 80), [0, 80], [0, 0])).columns == ()
    assert raising(one_column(Number("age", 5, 5), [5, 5], [0, 0])).columns == ()


def test_rows_of_one_person_are_one_candidate() -> None:
    assert raising(one_column(Number("age", 0, 80), [1, 9, 11], [0, 0, 0], persons=[4, 4, 4])).risk == 1


def test_nothing_published_has_no_risk() -> None:
    assert raising(one_column(Number("age", 0, 80), [1, 2], [-1, -1])).columns == ()


@pytest.mark.parametrize("rows", [60, 400])
def test_the_risk_is_the_one_counted_row_by_row(rows: int) -> None:
    publication = Mondrian(k=2).anonymize(random_table(rows, 3, persons=rows // 2))
    found, table, shown = raising(publication), publication.table, publication.boxes.widened()
    assert len(shown) <= 256
    chances = []
    for own in publication.classes[publication.classes >= 0]:
        fits = ((shown.lo[own] <= table.quasi) & (table.quasi <= shown.hi[own])).all(axis=1)
        chances.append(1 / len(set(table.persons[fits].tolist())))
    assert found.risk == pytest.approx(np.mean(chances))
    assert all(one.risk <= found.risk + 1e-12 for one in found.columns)
    assert all(one.cost > 0 for one in found.columns)


def test_of_many_classes_some_are_looked_at_by_chance() -> None:
    publication = Mondrian(k=2).anonymize(random_table(3_000, 4))
    assert len(publication.boxes) > 256
    exact = np.mean([1 / size for size in np.repeat(publication.sizes, publication.sizes)])
    assert raising(publication).risk == pytest.approx(exact, abs=0.05)


def test_a_raised_box_covers_what_it_covered() -> None:
    publication = Mondrian(k=3).anonymize(random_table(300, 5))
    shown = publication.boxes.widened()
    for column, attribute in enumerate(publication.table.schema.quasi):
        lo, hi = shown.lo.copy(), shown.hi.copy()
        lo[:, column], hi[:, column] = _raised(attribute, lo[:, column], hi[:, column])
        assert (lo <= shown.lo).all()
        assert (hi >= shown.hi).all()
        assert (class_loss(Boxes(shown.schema, lo, hi)) >= class_loss(shown)).all()


def test_what_is_looked_at_by_chance_does_not_depend_on_the_order_of_rows_and_classes() -> None:
    """Who verifies evidence has the same boxes and sizes, but neither the order of classes nor whose rows they have."""
    publication = Mondrian(k=2).anonymize(random_table(3_000, 4))
    order = np.random.default_rng(1).permutation(len(publication.table))
    numbers = np.random.default_rng(2).permutation(len(publication.boxes))
    boxes = publication.boxes
    again = Publication(
        publication.table.take(order),
        np.argsort(numbers)[publication.classes[order]].astype(np.int32),
        Boxes(boxes.schema, boxes.lo[numbers], boxes.hi[numbers]),
    )
    found, other = raising(publication), raising(again)
    assert other.risk == pytest.approx(found.risk, rel=1e-9)
    assert [one.risk for one in other.columns] == pytest.approx([one.risk for one in found.columns], rel=1e-9)
