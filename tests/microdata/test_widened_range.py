"""Kernels widen boxes as `Boxes.widened` does."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from microdata import Boxes, Category, Hierarchy, Number, Schema, geometry, widened_range

TREES = [
    Hierarchy.from_mapping({"*": {"a": ["1", "2", "3"], "b": {"c": ["4", "5"], "d": ["6"]}, "e": ["7"]}}),
    Hierarchy.flat("1234"),
    Hierarchy.flat(["only"]),
]
SCHEMA = Schema(
    "p",
    (
        *(Category(f"c{number}", tree) for number, tree in enumerate(TREES)),
        Number("plain", -3, 8),
        Number("tenths", 0, 1, step=0.1),
        Number("uneven", 1, 9.5, step=3),
    ),
)
SPACE = geometry(SCHEMA)


@given(st.data())
def test_a_range_is_widened_as_boxes_are(data: Any) -> None:
    ends = []
    for attribute in SCHEMA.quasi:
        if isinstance(attribute, Category):
            one = st.integers(0, attribute.size - 1)
        else:
            one = st.floats(attribute.low, attribute.high)  # type: ignore[assignment]
        ends.append(sorted((float(data.draw(one)), float(data.draw(one)))))
    lo, hi = np.array(ends).T
    expected = Boxes(SCHEMA, lo[None], hi[None]).widened()
    for attribute in range(len(ends)):  # type: ignore[assignment]
        got = widened_range(SPACE, attribute, lo[attribute], hi[attribute])  # type: ignore[arg-type]
        assert got == (expected.lo[0, attribute], expected.hi[0, attribute])  # type: ignore[index]
