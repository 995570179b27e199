"""Worked examples of the specification, sections 1.3, 1.6 and the education tree: generalizations and their loss."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from microdata import (
    Boxes,
    Category,
    Hierarchy,
    Number,
    Publication,
    Schema,
    attribute_loss,
    box_loss,
    class_loss,
    generalizations,
    geometry,
    prefix_hierarchy,
    table_loss,
)
from tests.one_key import encode

SEX = Category("sex", Hierarchy.from_mapping({"Person": ["Male", "Female"]}))


def published(schema: Any, names: Any, columns: Any, classes: Any) -> Any:
    """The publication of a printed table."""
    table = encode(schema, pa.table(dict(zip(names, zip(*columns, strict=True), strict=True))))
    assert not len(table.refusals)
    return Publication.of(table.table, np.array(classes))


def kernel_loss(publication: Any) -> Any:
    boxes = publication.boxes
    return [box_loss(geometry(boxes.schema), lo, hi) for lo, hi in zip(boxes.lo, boxes.hi, strict=True)]


def test_tables_1_1_and_1_3() -> None:
    schema = Schema("name", (Number("age", 20, 30, integer=True), SEX, Number("zip", 53700, 53720, integer=True)))
    people = [
        ("Bob", 26, "Male", 53711),
        ("Mike", 27, "Male", 53710),
        ("John", 27, "Male", 53712),
        ("Jack", 25, "Male", 53711),
        ("Kate", 25, "Female", 53712),
        ("Jane", 28, "Female", 53711),
    ]
    publication = published(schema, ["name", "age", "sex", "zip"], people, [0, 0, 0, 1, 1, 1])
    assert generalizations(publication.boxes.widened()) == [
        {"age": [26, 27], "sex": "Male", "zip": [53710, 53712]},
        {"age": [25, 28], "sex": "Person", "zip": [53711, 53712]},
    ]
    exact = [Fraction(1, 10) + 0 + Fraction(2, 20), Fraction(3, 10) + 1 + Fraction(1, 20)]
    assert class_loss(publication.boxes) == pytest.approx([float(one / 3) for one in exact], abs=1e-15)
    assert kernel_loss(publication) == pytest.approx([float(one / 3) for one in exact], abs=1e-15)
    assert publication.loss == pytest.approx(float(sum(exact) / 6), abs=1e-15)


def test_tables_1_4_and_1_5() -> None:
    schema = Schema("name", (Number("weight", 50, 80, integer=True), Number("age", 40, 70, integer=True)))
    people = [
        ("Mike", 60, 40),
        ("Alice", 70, 50),
        ("John", 60, 60),
        ("Bob", 50, 50),
        ("Beth", 80, 50),
        ("Carol", 70, 70),
    ]
    publication = published(schema, ["name", "weight", "age"], people, [0, 1, 0, 0, 1, 1])
    assert generalizations(publication.boxes.widened()) == [
        {"weight": [50, 60], "age": [40, 60]},
        {"weight": [70, 80], "age": [50, 70]},
    ]
    assert class_loss(publication.boxes) == pytest.approx([0.5, 0.5], abs=1e-15)
    assert publication.loss == pytest.approx(0.5, abs=1e-15)
    assert Publication.of(publication.table, np.zeros(6, int)).loss == 1


def test_tables_5_1_and_5_2() -> None:
    schema = Schema(
        "cid",
        (
            Category("sex", Hierarchy.from_mapping({"Person": ["M", "F"]})),
            Number("zip", 53700, 53720, integer=True),
            Number("age", 20, 40, integer=True),
        ),
    )
    people = [
        ("C01", "M", 53708, 31),
        ("C02", "F", 53715, 21),
        ("C03", "M", 53703, 28),
        ("C04", "M", 53706, 26),
        ("C05", "F", 53703, 24),
        ("C06", "F", 53706, 22),
    ]
    publication = published(schema, ["cid", "sex", "zip", "age"], people, [0, 1, 0, 0, 1, 1])
    assert generalizations(publication.boxes.widened()) == [
        {"sex": "M", "zip": [53703, 53708], "age": [26, 31]},
        {"sex": "F", "zip": [53703, 53715], "age": [21, 24]},
    ]
    expected = [(0 + 5 / 20 + 5 / 20) / 3, (0 + 12 / 20 + 3 / 20) / 3]
    assert class_loss(publication.boxes) == pytest.approx(expected, abs=1e-15)


EDUCATION = Category(
    "education",
    Hierarchy.from_mapping(
        {
            "Any": {
                "Pre-university": ["Primary School", "Secondary School"],
                "University": ["Bachelor", "Master", "Ph.D."],
            }
        }
    ),
)


@pytest.mark.parametrize(
    ("values", "label", "loss"),
    [
        (["Master"], "Master", 0),
        (["Primary School", "Secondary School"], "Pre-university", 2 / 5),
        (["Bachelor", "Ph.D."], "University", 3 / 5),
        (["Bachelor", "Master"], "University", 3 / 5),
        (["Secondary School", "Bachelor"], "Any", 1),
    ],
)
def test_education_tree(values: Any, label: str, loss: Any) -> None:
    schema = Schema("id", (EDUCATION,))
    table = encode(schema, pa.table({"id": values, "education": values})).table
    boxes = Boxes.around(schema, table.quasi, np.zeros(len(table), int), 1)
    assert generalizations(boxes.widened()) == [{"education": label}]
    assert attribute_loss(boxes).tolist() == [[loss]]
    assert box_loss(geometry(schema), boxes.lo[0], boxes.hi[0]) == loss


def test_weights_and_domains_of_one_value() -> None:
    schema = Schema("id", (Number("a", 0, 10), Number("b", 7, 7), EDUCATION), weights=(2, 1, 1))
    boxes = Boxes(schema, np.array([[0.0, 7, 2]]), np.array([[5.0, 7, 4]]))
    assert attribute_loss(boxes).tolist() == [[0.5, 0, 0.6]]
    assert class_loss(boxes) == pytest.approx([0.5 * 0.5 + 0.25 * 0.6])
    assert table_loss(boxes, np.array([3])) == pytest.approx(0.4)


def test_postcodes_as_prefixes() -> None:
    zips = Category("zip", prefix_hierarchy(["53711", "53710", "53712", "53903"]))
    schema = Schema("id", (zips,))
    table = encode(schema, pa.table({"id": [1, 2], "zip": [53710, 53712]})).table
    boxes = Boxes.around(schema, table.quasi, np.zeros(2, int), 1)
    assert generalizations(boxes.widened()) == [{"zip": "537**"}]
    assert attribute_loss(boxes).tolist() == [[3 / 4]]
