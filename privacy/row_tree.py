"""Rows in a tree of boxes, so that those inside a given box are found without looking at all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEAF_ROWS = 128


class RowTree(NamedTuple):
    """Nodes in pre-order. To search: go on to the next node where boxes meet, to `skip` where they do not."""

    rows: NDArray[np.int64]
    """Index of each row in the table; a node's rows stand together."""
    quasi: NDArray[np.float64]
    """Quasi-identifiers of the rows, in that order."""
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    """Box around the rows of each node: nodes × quasi-identifiers."""
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    """The rows of a leaf; none for inner nodes."""
    skip: NDArray[np.int64]
    """First node that is not below this one."""


def row_tree(quasi: NDArray[np.float64], leaf_rows: int = LEAF_ROWS, *, first_column_first: bool = False) -> RowTree:
    """Halve the rows along the widest side until few are left together; if asked, along the first column first."""
    rows = np.arange(len(quasi))
    width = np.ptp(quasi, axis=0) if len(quasi) else np.ones(quasi.shape[1])
    scale = np.divide(1.0, width, out=np.zeros_like(width), where=width > 0)
    if first_column_first:
        scale[0] *= 2 * (width[0] + 1)
    boxes: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
    nodes: list[list[int]] = []

    def grow(begin: int, end: int) -> None:
        part = quasi[rows[begin:end]]
        low, high = part.min(axis=0), part.max(axis=0)
        node = [begin, end, 0]
        boxes.append((low, high))
        nodes.append(node)
        axis = int(np.argmax((high - low) * scale))
        if end - begin > leaf_rows and low[axis] < high[axis]:
            middle = (end - begin) // 2
            rows[begin:end] = rows[begin:end][np.argpartition(part[:, axis], middle)]
            grow(begin, begin + middle)
            grow(begin + middle, end)
            node[1] = begin
        node[2] = len(nodes)

    if len(quasi):
        grow(0, len(quasi))
    lo, hi = np.array(boxes).reshape(len(boxes), 2, quasi.shape[1]).transpose(1, 0, 2).copy()
    begin, end, skip = np.array(nodes, np.int64).reshape(len(nodes), 3).T.copy()
    return RowTree(rows, quasi[rows], lo, hi, begin, end, skip)
