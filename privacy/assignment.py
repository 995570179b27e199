"""Which row of an original each published row can have come from, when no links were kept.

A published row shows its box, its sensitive and its public values. The rows of the original that lie in that box and
have these values could all be it. A maximum flow finds one way in which as many published rows as possible have a row
of their own. If rows are left over, no way places all of them: the file was not made from this original.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacy import _assignment_kernels as kernels
from privacy.row_tree import RowTree, row_tree


@dataclass(frozen=True, eq=False)
class Assignment:
    """One way in which published rows can have come from the original."""

    rows: NDArray[np.int64]
    """Row of the original that each published row is taken for; -1 where none is left that could be it."""
    certain: NDArray[np.bool_]
    """Whether only one row of the original could be it."""


def assign(
    contents: NDArray[np.int64],
    quasi: NDArray[np.float64],
    published: NDArray[np.int64],
    classes: NDArray[np.integer],
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
) -> Assignment:
    """Place as many published rows as possible, each on a row of its own with the same contents and inside of its box.

    `contents` and `published` number the values that rows show beside their box, in the original and in the file.
    `classes` tells the class of each published row, `lo` and `hi` the box of each class.
    """
    count = len(published)
    if not count or not len(contents):
        return Assignment(np.full(count, -1), np.zeros(count, bool))
    columns = [contents, *quasi.T]
    values = [np.unique(column) for column in columns]
    # Ranks begin with 1, so that a box below all values ends at 0.
    ranks = np.column_stack([1 + np.searchsorted(own, column) for own, column in zip(values, columns, strict=True)])
    point_of, first_row = _numbers(ranks)
    tree = row_tree(ranks[first_row].astype(np.float64), kernels.LEAF_POINTS, first_column_first=True)
    of_class, first_class = _numbers(np.column_stack([_low(values[1:], lo), _high(values[1:], hi)]))
    box_of, first = _numbers(np.column_stack([published, of_class[classes]]))
    ends, shown = first_class[of_class[classes[first]]], published[first, np.newaxis]
    low = np.column_stack([_low(values[:1], shown), _low(values[1:], lo[ends])])
    high = np.column_stack([_high(values[:1], shown), _high(values[1:], hi[ends])])
    points, boxes = _points(tree), kernels.Boxes(low.astype(np.uint32), high.astype(np.uint32))
    supply, demand = np.bincount(point_of)[tree.rows], np.bincount(box_of)
    fitting = np.empty(len(demand), np.int64)
    kernels.count_inside(points, boxes, supply, 2, fitting)
    flow = kernels.Flow(
        box=np.zeros(count + 2, np.int64),
        amount=np.zeros(count + 2, np.int64),
        after=np.append(np.arange(1, count + 2), kernels.NONE),
        head=np.full(len(supply), kernels.NONE),
        free=np.zeros(1, np.int64),
    )
    # Small boxes first: they have the fewest rows to choose from.
    widths = ((high - low)[:, 1:] / [len(own) for own in values[1:]]).sum(axis=1)
    kernels.fill(points, boxes, np.argsort(widths, kind="stable"), flow, supply, demand)
    return Assignment(_rows_of(flow, tree, point_of, box_of), (fitting == 1)[box_of])


def _rows_of(
    flow: kernels.Flow, tree: RowTree, point_of: NDArray[np.int64], box_of: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Give each unit of the flow to a row of its box, and to a row of its point."""
    points, boxes = np.empty(len(box_of), np.int64), np.empty(len(box_of), np.int64)
    count = kernels.unroll(flow, points, boxes)
    points, boxes = tree.rows[points[:count]], boxes[:count]
    rows = np.full(len(box_of), -1)
    rows[_places(boxes, box_of)] = _places(points, point_of)
    return rows


def _places(units: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each unit, which are of these numbers, an entry of `numbers` that has the same and is nobody else's."""
    order = np.argsort(numbers, kind="stable")
    starts = np.searchsorted(numbers[order], np.arange(numbers.max() + 1))
    by_number = np.argsort(units, kind="stable")
    ordered = units[by_number]
    turn = np.arange(len(units)) - np.searchsorted(ordered, ordered)
    places = np.empty(len(units), np.int64)
    places[by_number] = order[starts[ordered] + turn]
    return places


def _numbers(table: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a number for each row of a table, the same for equal rows, and the first row of each number."""
    codes = np.zeros(len(table), np.int64)
    for column in table.T:
        codes = np.unique(codes * (int(column.max()) + 1) + column, return_inverse=True)[1]
    return codes, np.unique(codes, return_index=True)[1]


def _low(values: Sequence[NDArray[Any]], ends: NDArray[Any]) -> NDArray[np.int64]:
    """Return the least rank that lies at or above each end; of each attribute these are the values."""
    return np.column_stack([1 + np.searchsorted(own, end) for own, end in zip(values, ends.T, strict=True)])


def _high(values: Sequence[NDArray[Any]], ends: NDArray[Any]) -> NDArray[np.int64]:
    """Return the greatest rank that lies at or below each end."""
    return np.column_stack([np.searchsorted(own, end, side="right") for own, end in zip(values, ends.T, strict=True)])


def _points(tree: RowTree) -> kernels.Points:
    """Return the tree of distinct rows, which are ranks, as the kernels want it."""
    above = np.full(len(tree.skip), kernels.NONE)
    open_nodes: list[int] = []
    for node, skip in enumerate(tree.skip.tolist()):
        while open_nodes and tree.skip[open_nodes[-1]] <= node:
            open_nodes.pop()
        above[node] = open_nodes[-1] if open_nodes else kernels.NONE
        open_nodes.append(node)
        assert skip > node, "nodes are in pre-order"
    return kernels.Points(
        ranks=np.ascontiguousarray(tree.quasi.T.astype(np.uint32)),
        low=tree.lo.astype(np.uint32),
        high=tree.hi.astype(np.uint32),
        begin=tree.begin,
        end=tree.end,
        skip=tree.skip,
        above=above,
        leaf=np.repeat(np.arange(len(above)), tree.end - tree.begin),
    )
