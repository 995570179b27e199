"""The rows that are kept of a partition: which are forgotten, and when each of them was taken."""

from dataclasses import replace

import numpy as np

from tests.service.publishing.test_gate import rows_of


def test_rows_are_kept_by_position_and_from_a_position_on() -> None:
    rows = rows_of(range(6), [0] * 6)
    rows.keep(np.array([11]), 13)
    assert rows.positions.tolist() == [11, 13, 14, 15]
    rows.keep(np.array([14]), None)
    assert rows.positions.tolist() == [14]


def test_times_are_told_from_the_first_row_on_whatever_they_are() -> None:
    rows = replace(rows_of(range(4), [0] * 4), times=np.array([0.0, 0.0, 5.0, 0.0]))
    assert [part.tolist() for part in rows.clock()] == [[10, 12, 13], [0.0, 5.0, 0.0]]
