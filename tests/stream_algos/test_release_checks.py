"""Engines check what they are about to release: a class that breaks the guarantee, or a row outside of its box."""

from typing import Any

import numpy as np
import pytest

from microdata import Boxes, Category, GuaranteeError, Hierarchy, Number, Schema, seeded_words
from stream_algos import Batch, Blocks, SabreW, Z
from stream_algos.at_once import Verdict
from stream_algos.window import Origin

SCHEMA = Schema("p", (Number("v", 0, 100, step=10),), (Category("illness", Hierarchy.flat(["flu", "gout"])),))
PERSONS = np.array([1, 2, 3, 4, 5, 5])
ILLNESS = np.array([[0], [0], [1], [1], [0], [1]], np.int32)
ROWS = Batch(np.arange(6), np.zeros(6), PERSONS, np.array([1.0, 2, 3, 14, 15, 16])[:, np.newaxis], ILLNESS)
WINDOW = Origin(0, 5, 6, [np.array([3, 3])])


def window_engine(**given: Any) -> SabreW:
    return SabreW(SCHEMA, words=seeded_words(1), **{"t": 0.5, "k": 2, "window": {"size": 6, "advance": 6}, **given})


class TestWindows:
    def test_classes_that_hold_are_released(self) -> None:
        release = window_engine()._released(ROWS, np.array([0, 0, 0, 1, 1, 1], np.int32), WINDOW)
        assert np.diff(release.starts).tolist() == [3, 3]

    def test_a_class_of_too_few_persons_stops_the_engine(self) -> None:
        with pytest.raises(GuaranteeError, match="k-anonymity"):
            window_engine()._released(ROWS, np.array([0, 0, 0, 0, 1, 1], np.int32), WINDOW)

    def test_classes_are_compared_with_their_window_and_not_with_the_rows_that_are_released(self) -> None:
        flu = ROWS.take(np.array([0, 1]))
        with pytest.raises(GuaranteeError, match="t-closeness"):
            window_engine(t=0.4)._released(flu, np.zeros(2, np.int32), WINDOW)
        release = window_engine(t=0.4)._released(flu, np.zeros(2, np.int32), Origin(0, 1, 2, [np.array([2, 0])]))
        assert len(release) == 1

    def test_one_row_outside_of_its_box_stops_the_engine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        around = Boxes.around

        def shrunk(*given: Any) -> Boxes:
            boxes = around(*given)
            return Boxes(SCHEMA, boxes.lo, np.minimum(boxes.hi, 10))

        monkeypatch.setattr(Boxes, "around", shrunk)
        with pytest.raises(GuaranteeError, match="does not cover"):
            window_engine()._released(ROWS, np.array([0, 0, 0, 0, 1, 1], np.int32) * 0, WINDOW)

    def test_fewer_than_k_persons_form_no_classes(self) -> None:
        assert window_engine(k=3)._formed(ROWS.take(np.array([3, 4, 5])), WINDOW, 0.0) is None
        assert window_engine(k=3)._formed(ROWS.take(np.array([0, 1, 2])), WINDOW, 0.0) is not None


def block_engine(**table: Any) -> Blocks:
    return Blocks(SCHEMA, words=seeded_words(1), size=6, table={"algorithm": "mondrian", "k": 2, **table})


class TestBlocks:
    kept = np.ones(6, bool)
    whole = Boxes(SCHEMA, np.array([[0.0], [10.0]]), np.array([[10.0], [20.0]]))

    def released(self, engine: Blocks, labels: Any, boxes: Boxes, kept: Any = None) -> Any:
        kept = self.kept if kept is None else np.array(kept)
        return engine._released(ROWS, kept, np.array(labels, np.int32), boxes, len(boxes))

    def test_classes_that_hold_are_released(self) -> None:
        release = self.released(block_engine(), [0, 0, 0, 1, 1, 1], self.whole)
        assert np.diff(release.starts).tolist() == [3, 3]

    def test_a_class_of_too_few_persons_stops_the_engine(self) -> None:
        wide = Boxes(SCHEMA, np.array([[0.0], [10.0]]), np.array([[20.0], [20.0]]))
        with pytest.raises(GuaranteeError, match="k-anonymity"):
            self.released(block_engine(), [0, 0, 0, 0, 1, 1], wide)

    def test_classes_are_compared_with_their_whole_block(self) -> None:
        """Two rows of flu are kept; of the block half have it."""
        one = Boxes(SCHEMA, np.array([[0.0]]), np.array([[10.0]]))
        kept = [True, True, False, False, False, False]
        with pytest.raises(GuaranteeError, match="t-closeness"):
            self.released(block_engine(t=0.4), [0, 0], one, kept)
        assert len(self.released(block_engine(t=0.5), [0, 0], one, kept)) == 1

    def test_one_row_outside_of_its_box_stops_the_engine(self) -> None:
        narrow = Boxes(SCHEMA, np.array([[0.0], [10.0]]), np.array([[2.0], [20.0]]))
        with pytest.raises(GuaranteeError, match="does not cover"):
            self.released(block_engine(), [0, 0, 0, 1, 1, 1], narrow)


def test_one_row_outside_of_its_box_stops_an_engine_that_decides_at_once() -> None:
    engine = Z(SCHEMA, words=seeded_words(1), z=2, window={"tuples": 10})
    leaves, first = np.ones(6, bool), np.zeros(6, np.int64)
    lo, hi = np.zeros((6, 1)), np.full((6, 1), 20.0)
    assert len(engine._release(ROWS, Verdict(leaves, lo, hi, first))) == 6
    hi[2] = 2.0
    with pytest.raises(GuaranteeError, match="does not cover"):
        engine._release(ROWS, Verdict(leaves, lo, hi, first))
