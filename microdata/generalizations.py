"""Generalizations as people and programs read them, and back.

A number is an interval, `[25,30]` as text and a list of two numbers in JSON; a point may be the number alone, and where
means are shown it is. A category is the label of a node. `*` stands for the whole domain, unless a hierarchy gives that
label another meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from microdata.boxes import Boxes
from microdata.columns import is_valid, texts
from microdata.decoding import number_column
from microdata.errors import DataError
from microdata.lines import Lines
from microdata.refusals import Reason
from microdata.schema import Attribute, Category, Schema
from microdata.showing import Show

SUPPRESSED = "*"
_END = r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*"
_POINT = re.compile(_END, re.ASCII)
_INTERVAL = re.compile(rf"\s*\[{_END},{_END}\]\s*", re.ASCII)


def node_labels(attribute: Category, low: NDArray[np.float64], high: NDArray[np.float64]) -> pa.Array:
    """Label of the lowest node above each range of leaves."""
    return pa.array(attribute.hierarchy.labels, pa.string()).take(pa.array(attribute.hierarchy.lca(low, high)))


def box_cells(boxes: Boxes, lines: Lines, show: Show = "interval") -> list[pa.Array]:
    """Cells of a line format for every box (or mean), one array per quasi-identifier."""
    cells = []
    for column, attribute in enumerate(boxes.schema.quasi):
        low, high = boxes.lo[:, column], boxes.hi[:, column]
        if isinstance(attribute, Category):
            cells.append(lines.cells(attribute.name, node_labels(attribute, low, high)))
        elif show == "mean":
            cells.append(lines.cells(attribute.name, number_column(attribute, low)))
        else:
            ends = number_column(attribute, low), number_column(attribute, high)
            cells.append(lines.intervals(attribute.name, *ends))
    return cells


def box_columns(boxes: Boxes, show: Show = "interval") -> dict[str, pa.Array]:
    """Columns with one row per box: labels, and lists of two numbers; where means are shown, numbers."""
    columns = {}
    for column, attribute in enumerate(boxes.schema.quasi):
        low, high = boxes.lo[:, column], boxes.hi[:, column]
        if isinstance(attribute, Category):
            columns[attribute.name] = node_labels(attribute, low, high)
        elif show == "mean":
            columns[attribute.name] = number_column(attribute, low)
        else:
            ends = number_column(attribute, np.stack([low, high], axis=1).ravel())
            columns[attribute.name] = pa.ListArray.from_arrays(
                pa.array(np.arange(len(low) + 1, dtype=np.int32) * 2), ends
            )
    return columns


def generalizations(boxes: Boxes, show: Show = "interval") -> list[dict[str, Any]]:
    """One object per box (or mean), ready for JSON.

    >>> from microdata import Category, Hierarchy, Number, Schema
    >>> schema = Schema("id", (Number("age", 0, 120, integer=True), Category("sex", Hierarchy.flat(["F", "M"]))))
    >>> generalizations(Boxes(schema, np.array([[25.0, 0.0]]), np.array([[30.0, 1.0]])))
    [{'age': [25, 30], 'sex': '*'}]
    """
    columns = box_columns(boxes, show)
    names, values = list(columns), [column.to_pylist() for column in columns.values()]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def boxes_from(schema: Schema, objects: Sequence[Mapping[str, Any]]) -> Boxes:
    """The boxes of objects as `generalizations` makes them; `DataError` where one is not understood."""
    lo, hi = np.empty((2, len(objects), len(schema.quasi)))
    for column, attribute in enumerate(schema.quasi):
        for row, item in enumerate(objects):
            label = as_text(item.get(attribute.name))
            low, high, reason = parse_label(attribute, label) if label else (0.0, 0.0, int(Reason.MISSING))
            if reason:
                raise DataError(f"{attribute.name}: {Reason(reason).sentence}")
            lo[row, column], hi[row, column] = low, high
    return Boxes(schema, lo, hi)


def as_text(value: Any) -> str | None:
    """Text of a published value that comes from JSON."""
    if value is None or isinstance(value, str):
        return value
    return "[" + ",".join(map(str, value)) + "]" if isinstance(value, list) else str(value)


def side_texts(column: pa.Array) -> tuple[pa.Array, NDArray[np.int8]]:
    """Published values of one quasi-identifier as texts (lists of two as `[low,high]`), and reasons against them."""
    kind = column.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        return texts(column)
    pairs = pc.fill_null(pc.equal(pc.list_value_length(column), 2), fill_value=False).to_numpy(zero_copy_only=False)
    ends, _ = texts(column.filter(pa.array(pairs)).flatten())
    joined = pc.binary_join_element_wise("[", ends[0::2], ",", ends[1::2], "]", "")
    position = np.cumsum(pairs) - 1
    reasons = np.where(~pairs & is_valid(column), Reason.NOT_AN_INTERVAL, 0).astype(np.int8)
    return joined.take(pa.array(position, mask=~pairs)), reasons


def parse_label(attribute: Attribute, label: str) -> tuple[float, float, int]:
    """Both ends of one published value, and the reason against it or 0."""
    if isinstance(attribute, Category):
        tree = attribute.hierarchy
        node = tree.nodes.get(label.strip(), 0 if label.strip() == SUPPRESSED else -1)
        found = node >= 0
        return (float(tree.first[node]), float(tree.last[node]), 0) if found else (0.0, 0.0, Reason.UNKNOWN_LABEL)
    if label.strip() == SUPPRESSED:
        return attribute.low, attribute.high, 0
    ends = _INTERVAL.fullmatch(label) or _POINT.fullmatch(label)
    if ends is None:
        return 0.0, 0.0, Reason.NOT_AN_INTERVAL
    low, high = float(ends[1]), float(ends[ends.lastindex or 1])
    if low > high:
        return 0.0, 0.0, Reason.NOT_AN_INTERVAL
    return low, high, 0 if attribute.low <= low and high <= attribute.high else Reason.OUT_OF_DOMAIN
