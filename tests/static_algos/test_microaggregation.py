"""MDAV and AMA: the groups are those of the definition, k counts persons, and what is lost is measured."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import (
    Category,
    GuaranteeError,
    Hierarchy,
    Number,
    PersonSource,
    Schema,
    Squares,
    Table,
    means,
    squared_error,
)
from static_algos import Ama, Mdav, dependency_tree, key_attributes, microaggregation, variation_of_information
from static_algos._microaggregation_kernels import PERSONS
from static_algos.dependency import cells, distances
from static_algos.microaggregation import group_rows, standardized


def table_of(rows: Any, persons: Any = None) -> Any:
    rows = np.asarray(rows, float)
    schema = Schema(PersonSource.ROW, tuple(Number(f"a{n}", -1000, 1000) for n in range(rows.shape[1])))
    return Table(schema, np.arange(len(rows)) if persons is None else persons, rows, np.empty((len(rows), 0), np.int32))


def by_definition(values: Any, persons: Any, k: int) -> Any:
    """MDAV as it is written down, row by row: `values` are rows × attributes, standardized."""
    left = list(range(len(values)))
    groups: list[list[int]] = []

    def square(row: int, point: Any) -> float:
        return float(((values[row] - point) ** 2).sum())

    def take(seed: int, but: int | None) -> None:
        group: list[int] = []
        for row in [seed, *sorted(set(left) - {seed, but}, key=lambda row: (square(row, values[seed]), row))]:
            if len({persons[one] for one in group}) < k:
                group.append(row)
        left[:] = [row for row in left if row not in group]
        groups.append(group)

    while len({persons[row] for row in left}) >= 2 * k:
        middle = values[left].mean(axis=0)
        one = max(left, key=lambda row: (square(row, middle), -row))
        other = max((row for row in left if row != one), key=lambda row: (square(row, values[one]), -row))
        take(one, other)
        take(other, None)
    if left and (len({persons[row] for row in left}) >= k or not groups):
        groups.append(left)
    elif left:
        middle = values[left].mean(axis=0)
        nearest = min(groups, key=lambda group: float(((values[group].mean(axis=0) - middle) ** 2).sum()))
        nearest += left
    return {frozenset(group) for group in groups}


def partition(groups: Any) -> Any:
    return {frozenset(np.flatnonzero(groups == one).tolist()) for one in np.unique(groups)}


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 90), st.integers(1, 4), st.integers(1, 6), st.booleans())
def test_the_groups_are_those_of_the_definition(seed: int, rows: int, width: int, k: int, repeated: bool) -> None:
    random = np.random.default_rng(seed)
    persons = random.integers(0, max(rows // 2, 1), rows) if repeated else np.arange(rows)
    k = min(k, len(np.unique(persons)))
    table = table_of(random.normal(size=(rows, width)), persons)
    found = group_rows(table, range(width), k, lambda *_: None)
    assert partition(found) == by_definition(standardized(table.quasi).T, persons, k)
    assert min(len(np.unique(persons[found == one])) for one in np.unique(found)) >= k
    if not repeated:
        assert np.bincount(found).max() <= 2 * k - 1


def test_of_equal_rows_the_first_are_together_and_no_row_is_its_own_farthest() -> None:
    found = group_rows(table_of(np.zeros((7, 2))), range(2), 2, lambda *_: None)
    # The second of a pair of groups begins with the row farthest from the first one's, and that is another one.
    assert partition(found) == {frozenset({0, 2}), frozenset({1, 3}), frozenset({4, 5, 6})}


def test_attributes_count_alike_whatever_their_scale() -> None:
    rows = np.random.default_rng(1).normal(size=(60, 3))
    small, large = (table_of(rows * scale) for scale in ([1, 1, 1], [100, 0.01, 1]))
    assert np.array_equal(Mdav(k=4).anonymize(small).classes, Mdav(k=4).anonymize(large).classes)
    constant = np.column_stack([rows, np.full(60, 0.1)])
    assert np.array_equal(Mdav(k=4).anonymize(small).classes, Mdav(k=4).anonymize(table_of(constant)).classes)


def test_one_person_with_most_of_the_rows_makes_no_group_of_her_own() -> None:
    persons = np.array([0] * 40 + list(range(1, 9)))
    rows = np.random.default_rng(2).normal(size=(48, 2))
    classes = Mdav(k=3).anonymize(table_of(rows, persons)).classes
    assert min(len(np.unique(persons[classes == one])) for one in np.unique(classes)) == 3


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(2, 60))
def test_approximately_is_exactly_where_all_attributes_are_keys(seed: int, width: int, rows: int) -> None:
    random = np.random.default_rng(seed)
    table = table_of(random.integers(0, 4, (rows, width)))
    tree = dependency_tree(distances([cells(column) for column in table.quasi.T]))
    keys = key_attributes(tree, width)
    publication = Ama(k=2).anonymize(table)
    assert partition(publication.classes) == partition(group_rows(table, keys, 2, lambda *_: None))
    if width <= 2:
        assert sorted(keys) == list(range(width))
        if keys == sorted(keys):
            assert partition(publication.classes) == partition(Mdav(k=2).anonymize(table).classes)
    else:
        assert len(tree) == width - 1
        assert 1 <= len(keys) <= math.ceil(width / 2)


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(2, 40))
def test_the_distance_between_attributes_is_a_metric(seed: int, rows: int) -> None:
    one, two, three = np.random.default_rng(seed).integers(0, 4, (3, rows))
    assert variation_of_information(one, two) == pytest.approx(variation_of_information(two, one))
    assert variation_of_information(one, three) <= (
        variation_of_information(one, two) + variation_of_information(two, three) + 1e-9
    )
    # By the definition: what each leaves open, from conditional shares.
    expected = 0.0
    for a, b in ((one, two), (two, one)):
        for value in np.unique(b):
            inside = a[b == value]
            shares = np.unique(inside, return_counts=True)[1] / len(inside)
            expected -= len(inside) / rows * float((shares * np.log2(shares)).sum())
    assert variation_of_information(one, two) == pytest.approx(expected, abs=1e-9)
    assert variation_of_information(one, 3 - one) == pytest.approx(0, abs=1e-9)


def test_values_that_hardly_repeat_are_compared_in_runs() -> None:
    column = np.random.default_rng(3).normal(size=5000)
    codes = cells(column)
    assert codes.max() == 99
    assert np.bincount(codes).tolist() == [50] * 100
    assert (np.diff(codes[np.argsort(column)]) >= 0).all()
    few = np.array([3.0, 1.0, 1.0, 7.0])
    assert cells(few).tolist() == [1, 0, 0, 2]
    # As they are, two columns of numbers that never repeat would determine each other.
    other = np.random.default_rng(4).normal(size=5000)
    assert variation_of_information(codes, cells(other)) > 5


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(4, 60), st.integers(1, 3))
def test_the_means_keep_the_mean_of_the_table_and_lose_what_is_said(seed: int, rows: int, width: int) -> None:
    table = table_of(np.random.default_rng(seed).normal(size=(rows, width)))
    publication = Mdav(k=2).anonymize(table)
    shown = means(table.schema, table.quasi, publication.classes, len(publication.boxes)).lo[publication.classes]
    assert shown.mean(axis=0) == pytest.approx(table.quasi.mean(axis=0))
    lost = ((table.quasi - shown) ** 2).sum(axis=0) / ((table.quasi - table.quasi.mean(axis=0)) ** 2).sum(axis=0)
    error = squared_error(table.schema, table.quasi, publication.classes)
    assert error.attributes == pytest.approx(lost)
    assert error.total == pytest.approx(lost.mean())
    assert error.total == publication.details["squared_error"]
    assert 0 <= (error.total or 0) <= 1
    # Part by part it is the same, wherever the classes are.
    squares, early = Squares(table.schema), publication.classes < len(publication.boxes) // 2
    for part in (early, ~early):
        squares.add(table.quasi[part], publication.classes[part])
    assert squares.error().attributes == pytest.approx(lost)


def test_what_has_no_order_has_no_squares_and_what_does_not_vary_loses_nothing() -> None:
    tree = Hierarchy.flat(["a", "b", "c"])
    quasi = (Category("c", tree), Category("o", tree, ordered=True), Number("n", 0, 9))
    rows = np.array([[0.0, 0, 5], [1, 2, 5], [2, 0, 5], [0, 2, 5]])
    error = squared_error(Schema(PersonSource.ROW, quasi), rows, np.array([0, 0, 1, 1]))
    assert error == ((None, 1.0, 0.0), 1.0)
    assert squared_error(Schema(PersonSource.ROW, quasi[:1]), rows[:, :1], np.array([0, 0, 1, 1])).total is None


def test_groups_that_are_too_small_never_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(np.random.default_rng(5).normal(size=(30, 2)))
    monkeypatch.setattr(microaggregation, "form_groups", lambda work, k, most: _wrongly(work))
    with pytest.raises(GuaranteeError, match="k-anonymity"):
        Mdav(k=5).anonymize(table)


def _wrongly(work: Any) -> None:
    """Groups of two."""
    work.groups[:] = np.arange(len(work.groups)) // 2
    work.meta[PERSONS] = 0
