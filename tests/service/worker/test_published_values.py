"""Which values left with which box: rows that add nothing take no memory."""

import numpy as np

from microdata import Category, Hierarchy, Number, Schema
from service.worker.published_values import PublishedValues

SCHEMA = Schema("person", (Number("age", 0, 99),), (Category("illness", Hierarchy.flat(["flu", "ulcer", "gout"])),))


def test_rows_with_known_values_are_not_new_and_take_no_memory() -> None:
    published, boxes = PublishedValues(SCHEMA), np.arange(1, 501, dtype=np.uint64)
    flu, gout = (np.full((len(boxes), 1), code, np.int32) for code in (0, 2))
    assert published._are_new(boxes, flu).all()
    assert published._are_new(boxes, gout).all()
    assert not published._are_new(boxes, gout).any()
    room = len(published._known)
    assert room < 10 * len(boxes)
    for turn in range(200):
        assert not published._are_new(boxes, flu if turn % 2 else gout).any()
    assert len(published._known) == room
    assert published._are_new(boxes + np.uint64(500), flu).all()
