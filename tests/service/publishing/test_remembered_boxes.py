"""A gate that is told what left before it was made."""

import numpy as np

from microdata import Category, Hierarchy, Number, Schema
from privacy import DistinctDiversity, KOverTime
from service.publishing.gate import Gate

SCHEMA = Schema("person", (Number("age", 0, 99),), (Category("illness", Hierarchy.flat(["flu", "ulcer", "gout"])),))


def test_boxes_that_left_with_many_values_take_room_once_and_count_all_of_them() -> None:
    gate = Gate(SCHEMA, (KOverTime(2), DistinctDiversity(2)))
    ids = np.tile(np.array([11, 12, 13], np.uint64), 1_000)
    parents = np.tile(np.array([0, 11, 0], np.uint64), 1_000)
    sensitive = np.where(ids == 13, 2, np.where(ids == 12, 1, 0)).astype(np.int32)[:, np.newaxis]
    gate.remember(ids, parents, sensitive)
    lineages = gate._lineages
    assert lineages is not None
    assert lineages._boxes.room < 100
    (histogram,) = lineages.groups(np.array([12, 13], np.uint64), np.full(2, 9), np.ones(2, np.int64)).histograms
    assert histogram.starts.tolist() == [0, 2, 3]
    assert histogram.values.tolist() == [0, 1, 2]
    assert histogram.counts.tolist() == [1_000] * 3
