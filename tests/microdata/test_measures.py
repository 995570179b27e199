from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import (
    Boxes,
    Category,
    Hierarchy,
    Number,
    PersonSource,
    Publication,
    Schema,
    hidden_cells,
    leaf_loss,
    normalized_error,
    rank_difference,
    weighted_discernibility,
)
from tests.worlds import tables

WORK = Hierarchy.from_mapping(
    {
        "*": {
            "Private": None,
            "Self-emp": ["Self-emp-not-inc", "Self-emp-inc"],
            "Gov": ["Federal-gov", "Local-gov", "State-gov"],
            "Unemployed": ["Without-pay", "Never-worked"],
        }
    }
)


def boxes_of(attribute: Any, *sides: Any) -> Any:
    lo, hi = np.array(sides, np.float64).T
    return Boxes(Schema(PersonSource.ROW, (attribute,)), lo[:, None], hi[:, None])


def test_lm_of_work_class() -> None:
    """The printed example: one of eight leaves, generalized to a node of two, and suppressed."""
    boxes = boxes_of(Category("work", WORK), (1, 1), (1, 2), (0, 7))
    assert leaf_loss(boxes)[:, 0].tolist() == pytest.approx([0, 1 / 7, 1])
    assert hidden_cells(boxes)[:, 0].tolist() == [False, False, True]


def test_lm_of_numbers() -> None:
    assert leaf_loss(boxes_of(Number("age", 17, 90, integer=True), (20, 29), (17, 90)))[:, 0].tolist() == [9 / 73, 1]
    assert leaf_loss(boxes_of(Number("pay", 0, 1), (0.25, 0.5)))[:, 0].tolist() == [0.25]
    assert leaf_loss(boxes_of(Number("debt", 0, 100, step=8), (8, 24), (0, 100)))[:, 0].tolist() == [2 / 12, 1]
    assert leaf_loss(boxes_of(Number("one", 3, 3, integer=True), (3, 3)))[:, 0].tolist() == [0]


def test_weighted_discernibility() -> None:
    boxes = boxes_of(Number("age", 0, 100, integer=True), (0, 50), (60, 70))
    # 4 rows that lose a half, 6 that lose a tenth, 10 suppressed.
    assert weighted_discernibility(boxes, np.array([4, 6]), 10) == pytest.approx((16 * 0.5 + 36 * 0.1 + 10 * 20) / 400)
    assert weighted_discernibility(boxes, np.array([0, 0])) == 0


@given(tables(30))
@settings(max_examples=30, deadline=None)
def test_nothing_and_everything(table: Any) -> None:
    rows = len(table)
    exact = Publication.of(table, np.unique(table.quasi, axis=0, return_inverse=True)[1].ravel())
    whole = Publication.of(table, np.zeros(rows, np.int32))
    for one, other in ((exact, whole), (whole, whole)):
        assert (leaf_loss(one.boxes) >= 0).all()
        assert (leaf_loss(one.boxes) <= 1).all()
        small, large = (weighted_discernibility(each.boxes, each.sizes) for each in (one, other))
        assert 0 <= small <= large + 1e-12 <= 1 + 1e-9
    assert (leaf_loss(whole.boxes)[hidden_cells(whole.boxes)] == 1).all()


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=20), st.randoms())
@settings(max_examples=50, deadline=None)
def test_errors_of_guesses(values: Any, random: Any) -> None:
    assert normalized_error(values, values) == 0
    assert rank_difference(values, values) == 0
    mean = [float(np.mean(values))] * len(values)
    assert normalized_error(values, mean) == pytest.approx(1) or np.std(values) < 1e-6
    shuffled = random.sample(values, len(values))
    assert 0 <= rank_difference(values, shuffled) <= len(values) ** 2 / 2
