"""Searching many rows finds what looking at each of them finds."""

from typing import Any

import numpy as np
import pytest

from microdata import Boxes, Number, PersonSource, Publication, Schema, Table, published_of
from privacy import linking
from privacy.outsider import match
from privacy.row_tree import LEAF_ROWS, row_tree

ROWS = 3_000
SCHEMA = Schema(
    PersonSource.ROW,
    tuple(Number(name, 0, 50, integer=True) for name in ("a", "b", "c")),
    (Number("pay", 0, 9, integer=True),),
)


@pytest.fixture(scope="module")
def table() -> Any:
    random = np.random.default_rng(5)
    quasi = random.integers(0, 51, (ROWS, 3)).astype(float)
    quasi[:400] = quasi[0]  # more rows at one point than a leaf takes
    return Table(SCHEMA, random.integers(0, 1_000, ROWS), quasi, random.integers(0, 10, (ROWS, 1)).astype(np.int32))


def test_leaves_hold_every_row_once_inside_their_boxes(table: Any) -> None:
    tree = row_tree(table.quasi)
    assert sorted(tree.rows) == list(range(ROWS))
    assert (tree.end - tree.begin).sum() == ROWS
    assert len(tree.skip) > ROWS / LEAF_ROWS
    for node in range(len(tree.skip)):
        below = slice(tree.begin[node : tree.skip[node]].min(), tree.end[node : tree.skip[node]].max())
        assert (tree.lo[node] <= tree.quasi[below]).all()
        assert (tree.quasi[below] <= tree.hi[node]).all()


def test_linking_many_rows(table: Any) -> None:
    ends = np.sort(np.random.default_rng(6).integers(0, 51, (2, 200, 3)), axis=0).astype(float)
    boxes = Boxes(SCHEMA, ends[0], ends[1])
    found = linking(boxes, np.ones(200, int), table)
    inside = ((ends[0][:, None] <= table.quasi) & (table.quasi <= ends[1][:, None])).all(axis=2)
    assert found.rows.tolist() == inside.sum(axis=0).tolist()
    assert found.persons.tolist() == [len(set(table.persons[row].tolist())) for row in inside]


def test_matching_many_rows(table: Any) -> None:
    classes = np.empty(ROWS, int)
    classes[np.lexsort(table.quasi.T)] = np.arange(ROWS) // 15
    publication = Publication.of(table, classes)
    assert not match(table, published_of(publication)).unplaced.any()

    shifted = Boxes(SCHEMA, publication.boxes.lo + 1, publication.boxes.hi)
    published = published_of(Publication(table, publication.classes, shifted))
    found = match(table, published)
    least = 0
    for one in range(len(shifted)):
        own = published.sensitive[published.classes == one, 0]
        fits = ((shifted.lo[one] <= table.quasi) & (table.quasi <= shifted.hi[one])).all(axis=1)
        lacking = np.bincount(own, minlength=10) - np.bincount(table.sensitive[fits, 0], minlength=10)
        least += np.maximum(lacking, 0).sum()
    assert found.unplaced.sum() >= least > 0, "no class can have more rows than lie in its box"
