"""Loss, boxes and kernels against brute force and small cases worked out by hand."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microdata import (
    Boxes,
    Category,
    Hierarchy,
    Number,
    PersonSource,
    Publication,
    Schema,
    Table,
    attribute_loss,
    average_class_size,
    box_loss,
    class_loss,
    discernibility,
    entropy_loss,
    geometry,
    range_loss,
    table_loss,
    widened_range,
)
from tests.microdata.trees import NaiveTree, nested_trees

STEPS = st.sampled_from([None, 0.1, 0.25, 1, 3, 1 / 3, 7.5])


@st.composite
def spaces(draw: Any) -> Any:
    """A schema, the naive trees of its categories, and rows with their classes."""
    trees, quasi = {}, []
    for position in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            nested = draw(nested_trees(most_nodes=14))
            quasi.append(Category(f"c{position}", Hierarchy.from_mapping(nested)))
            trees[position] = NaiveTree(nested)
        else:
            low = draw(st.integers(-30, 30)) / draw(st.sampled_from([1, 10]))
            high = low + draw(st.integers(0, 40)) / draw(st.sampled_from([1, 4]))
            quasi.append(Number(f"n{position}", low, high, step=draw(STEPS)))  # type: ignore[arg-type]
    weights = draw(st.lists(st.integers(1, 5), min_size=len(quasi), max_size=len(quasi)))
    schema = Schema(PersonSource.ROW, tuple(quasi), weights=tuple(weights))
    rows = draw(st.integers(1, 12))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    columns = [
        random.integers(0, one.size, rows)
        if isinstance(one, Category)  # type: ignore[redundant-expr]
        else np.clip(one.low + random.integers(0, 9, rows) / 8 * (one.high - one.low), one.low, one.high)
        for one in quasi
    ]
    classes = np.unique(random.integers(0, 4, rows), return_inverse=True)[1]
    return schema, trees, np.stack(columns, axis=1).astype(float), classes


def naive_ends(attribute: Any, values: Any) -> Any:
    """Published ends of a number's values, found by trying every place of the grid."""
    low, high = min(values), max(values)
    if attribute.step is None:
        return low, high
    grid = attribute.values().tolist()
    return max(place for place in grid if place <= low), min(
        place for place in [*grid, attribute.high] if place >= high
    )


@given(spaces())
def test_boxes_and_losses_agree_with_brute_force_and_kernels(space: Any) -> None:
    schema, trees, quasi, classes = space
    count = classes.max() + 1
    boxes = Boxes.around(schema, quasi, classes, count)
    published, losses = boxes.widened(), attribute_loss(boxes)
    arrays = geometry(schema)
    for one in range(count):
        rows = quasi[classes == one]
        for column, attribute in enumerate(schema.quasi):
            values = rows[:, column].tolist()
            if isinstance(attribute, Category):
                naive = trees[column]
                label = naive.lca([naive.leaves[int(value)] for value in values])
                leaves = naive.leaves_below(label)
                expected = 0 if len(leaves) == 1 else len(leaves) / len(naive.leaves)
                ends = naive.leaves.index(leaves[0]), naive.leaves.index(leaves[-1])
            else:
                ends = naive_ends(attribute, values)
                expected = (
                    (ends[1] - ends[0]) / (attribute.high - attribute.low) if attribute.high > attribute.low else 0
                )
            assert (published.lo[one, column], published.hi[one, column]) == ends
            assert widened_range(arrays, column, boxes.lo[one, column], boxes.hi[one, column]) == ends
            assert losses[one, column] == pytest.approx(expected, abs=1e-12)
            by_kernel = range_loss(arrays, column, boxes.lo[one, column], boxes.hi[one, column])
            assert by_kernel == pytest.approx(losses[one, column], abs=1e-12)
        assert box_loss(arrays, boxes.lo[one], boxes.hi[one]) == pytest.approx(class_loss(boxes)[one], abs=1e-12)
    expected_total = sum(class_loss(boxes)[one] for one in classes) / len(classes)
    assert table_loss(boxes, np.bincount(classes)) == pytest.approx(expected_total)


@given(spaces())
def test_widening_covers_and_is_done_once(space: Any) -> None:
    schema, _, quasi, classes = space
    boxes = Boxes.around(schema, quasi, classes, classes.max() + 1)
    widened = boxes.widened()
    assert boxes.cover(quasi, classes).all()
    assert widened.cover(quasi, classes).all()
    again = widened.widened()
    assert again.lo.tolist() == widened.lo.tolist()
    assert again.hi.tolist() == widened.hi.tolist()
    for column, attribute in enumerate(schema.quasi):
        if isinstance(attribute, Number):
            assert (widened.lo[:, column] >= attribute.low).all()
            assert (widened.hi[:, column] <= attribute.high).all()


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.3, 0.3, (0.3, 0.3)), (0.31, 0.59, (0.3, 0.6)), (0.7, 0.7, (0.7, 0.7)), (0.95, 1.0, (0.9, 1.0)), (0, 0, (0, 0))],
)
def test_steps_are_decimal(low: Any, high: Any, expected: Any) -> None:
    schema = Schema("id", (Number("x", 0, 1.05, step=0.1),))
    box = Boxes(schema, np.array([[low]]), np.array([[high]])).widened()
    assert (box.lo[0, 0], box.hi[0, 0]) == expected
    assert Boxes(schema, np.array([[1.01]]), np.array([[1.03]])).widened().hi[0, 0] == 1.05


def test_cover_sees_every_side() -> None:
    schema = Schema("id", (Number("x", 0, 9), Number("y", 0, 9)))
    boxes = Boxes(schema, np.array([[1.0, 1.0], [5.0, 5.0]]), np.array([[2.0, 2.0], [6.0, 6.0]]))
    rows = np.array([[1, 2], [0.9, 1], [2.1, 1], [1, 0.9], [1, 2.1], [5, 6]])
    assert boxes.cover(rows, np.array([0, 0, 0, 0, 0, 1])).tolist() == [True, False, False, False, False, True]


def test_no_classes_no_boxes() -> None:
    schema = Schema("id", (Number("x", 0, 9),))
    boxes = Boxes.around(schema, np.ones((3, 1)), np.full(3, -1), 0)
    assert len(boxes) == 0
    assert class_loss(boxes).tolist() == []
    assert table_loss(boxes, np.array([], int)) == 0


@given(st.lists(st.integers(1, 50), max_size=20), st.integers(0, 30))
def test_discernibility_counts_pairs(sizes: Any, suppressed: int) -> None:
    rows = [one for one, size in enumerate(sizes) for _ in range(size)] + [None] * suppressed
    pairs = sum(len(rows) if row is None else rows.count(row) for row in rows)
    assert discernibility(np.array(sizes, np.int64), suppressed) == pairs


def test_discernibility_does_not_overflow() -> None:
    assert discernibility(np.array([2**40, 2**40])) == 2**81


def test_average_class_size() -> None:
    assert average_class_size(np.array([4, 6]), 5) == 1
    assert average_class_size(np.array([10, 20]), 5) == 3
    assert average_class_size(np.array([], int), 5) == 0


def naive_entropy(column: Any, published: Any) -> Any:
    """Bits by hand: -log2 of the chance to guess a row's value from its interval, by how often values occur."""
    counts = Counter(column)
    spent, most = 0.0, 0.0
    for value, (low, high) in zip(column, published, strict=True):
        inside = sum(counts[other] for other in counts if low <= other <= high)
        spent -= math.log2(counts[value] / inside)
        most -= math.log2(counts[value] / len(column))
    return spent / most if most else 0.0


@given(spaces())
def test_entropy_agrees_with_counting(space: Any) -> None:
    schema, _, quasi, classes = space
    boxes = Boxes.around(schema, quasi, classes, classes.max() + 1)
    widened = boxes.widened()
    found = entropy_loss(quasi, classes, boxes)
    for column in range(len(schema.quasi)):
        ends = list(zip(widened.lo[classes, column], widened.hi[classes, column], strict=True))
        assert found[column] == pytest.approx(naive_entropy(quasi[:, column].tolist(), ends), abs=1e-12)


def test_entropy_by_hand() -> None:
    schema = Schema("id", (Number("x", 0, 9),))
    quasi = np.array([[1.0], [1.0], [2.0], [9.0], [5.0]])
    classes = np.array([0, 0, 0, 1, -1])
    boxes = Boxes.around(schema, quasi, classes, 2)
    # Of the four kept rows, three hide among {1, 1, 2}; to tell all four apart would take 2·1 + 2·2 bits.
    spent = 2 * math.log2(3 / 2) + math.log2(3)
    assert entropy_loss(quasi, classes, boxes) == pytest.approx([spent / 6])
    assert entropy_loss(quasi, np.full(5, -1), Boxes.around(schema, quasi, np.full(5, -1), 0)).tolist() == [0]


def test_publications_number_classes_without_gaps() -> None:
    schema = Schema(PersonSource.ROW, (Number("x", 0, 9),))
    table = Table(schema, np.arange(5), np.arange(5.0)[:, None], np.empty((5, 0), np.int32))
    publication = Publication.of(table, np.array([7, -1, 7, 3, 3]), {"why": "test"})
    assert publication.classes.tolist() == [1, -1, 1, 0, 0]
    assert publication.sizes.tolist() == [2, 2]
    assert publication.suppressed == 1
    assert publication.boxes.lo.tolist() == [[3], [0]]
    assert publication.loss == pytest.approx((2 * 1 / 9 + 2 * 2 / 9) / 4)
    assert publication.details == {"why": "test"}
