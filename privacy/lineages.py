"""Which sensitive values left with each box, and with those that its persons were published with before.

For models that hold over all that ever left of a cohort. Very many boxes are known at a time, each with a few values,
so they are in columns, which kernels look at.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from microdata import IdTable, Schema
from privacy import _lineage_kernels as kernels
from privacy._lineage_kernels import NONE, OWNER
from privacy.model import Groups, Histogram

_LEAST = 64


class Lineages:
    """Boxes have an id, and that of the one before them as a parent (0 for none)."""

    def __init__(self, schema: Schema) -> None:
        self._attributes = schema.sensitive
        self._used = 0
        """Entries of values."""
        self._most = 0
        """The largest value."""
        self._boxes = IdTable()
        self._above = np.full(self._boxes.room, NONE, np.int32)
        self._enough = np.zeros(self._boxes.room, np.bool_)
        """Of boxes: what left with them, or before, is enough for all that is asked, whatever is added."""
        self._lists = np.full(self._boxes.room * len(schema.sensitive), NONE, np.int32)
        self._entries = np.zeros((_LEAST, 3), np.int32)
        self._counts = np.zeros(_LEAST, np.int64)

    def add(
        self,
        ids: NDArray[np.uint64],
        parents: NDArray[np.uint64],
        boxes: NDArray[np.integer],
        sensitive: NDArray[np.int32],
    ) -> None:
        """Rows with these values leave; `boxes` says for each of them which entry of `ids` it leaves with."""
        follow = parents != 0
        before = np.full(len(ids), NONE, np.int32)
        before[follow] = self._boxes.add(parents[follow])
        own = self._boxes.add(ids)
        self._make_room()
        kernels.inherit(self._above, self._enough, own, before)
        self._count(ids, boxes, sensitive, 1)

    def take_back(self, ids: NDArray[np.uint64], boxes: NDArray[np.integer], sensitive: NDArray[np.int32]) -> None:
        """Rows that were added do not leave after all."""
        self._count(ids, boxes, sensitive, -1)

    def hold(self, ids: NDArray[np.uint64]) -> None:
        """What left with these boxes is enough, and what is added takes nothing away: no more need be known of them.

        The same holds for boxes that come after them. Very many rows leave, and nearly all of them with such boxes.
        """
        places = self._boxes.find(ids)
        self._enough[places[places != NONE]] = True

    def keep(self, ids: NDArray[np.uint64]) -> None:
        """Forget everything but these boxes and those before them: nothing leaves with the others any more."""
        wanted = self._boxes.find(ids)
        known = len(self._boxes)
        kept = kernels.mark_above(self._above[:known], wanted[wanted != NONE])
        place = np.append(np.cumsum(kept) - 1, NONE).astype(np.int32)  # NONE stays what it is
        self._above, self._enough = place[self._above[:known][kept]], self._enough[:known][kept]
        entries, width = self._entries[: self._used], len(self._attributes)
        stay = kept[entries[:, OWNER] // width] if width else np.zeros(0, bool)
        entries, self._counts = entries[stay], self._counts[: self._used][stay]
        if width:
            entries[:, OWNER] = place[entries[:, OWNER] // width] * width + entries[:, OWNER] % width
        self._boxes = IdTable(self._boxes.ids[kept])
        self._entries, self._used = entries, len(entries)
        self._lists = np.full(len(self._boxes) * width, NONE, np.int32)
        kernels.link(self._lists, self._entries, self._used)
        self._make_room()

    def groups(self, ids: NDArray[np.uint64], company: NDArray[np.int64], persons: NDArray[np.int64]) -> Groups:
        """All that ever left with each of these boxes and those before it, as classes.

        `company` stands behind them; of so many distinct `persons` rows leave with each of them now.
        """
        boxes, above, width = self._boxes.find(ids), self._above[: len(self._boxes)], len(self._attributes)
        histograms = []
        for place, attribute in enumerate(self._attributes):
            starts, values, counts = kernels.gather(
                above, self._lists, self._entries, self._counts, boxes, place, width, self._most
            )
            histograms.append(Histogram(attribute, np.zeros(attribute.size or 0, np.int64), starts, values, counts))
        rows = np.zeros(len(ids), np.int64)
        if histograms:
            sums = np.append(0, np.cumsum(histograms[0].counts))
            rows = np.diff(sums[histograms[0].starts])
        return Groups(rows, persons, np.zeros(len(rows), np.int64), tuple(histograms), company)

    def _count(
        self, ids: NDArray[np.uint64], boxes: NDArray[np.integer], sensitive: NDArray[np.int32], turn: int
    ) -> None:
        width = len(self._attributes)
        if not width:
            return
        owners = self._boxes.find(ids)[boxes]
        counted = ~self._enough[owners]
        owners, boxes, sensitive = owners[counted], boxes[counted], sensitive[counted]
        if self._used + len(boxes) * width > len(self._counts):
            room = self._used + len(boxes) * width + self._used // 2
            self._entries = _grown(self._entries, room, 0)
            self._counts = _grown(self._counts, room, 0)
        self._most = max(self._most, int(sensitive.max(initial=0)))
        lists = owners.astype(np.int64) * width
        for attribute in range(width):
            self._used = kernels.count_values(
                self._lists,
                self._entries,
                self._counts,
                self._used,
                lists + attribute,
                np.ascontiguousarray(sensitive[:, attribute]),
                turn,
            )

    def _make_room(self) -> None:
        room = self._boxes.room
        if room > len(self._above):
            self._above = _grown(self._above, room, NONE)
            self._enough = _grown(self._enough, room, 0)
            self._lists = _grown(self._lists, room * len(self._attributes), NONE)


def _grown(array: NDArray[Any], size: int, empty: int) -> NDArray[Any]:
    """The same with room for more."""
    shape = (size, *array.shape[1:])
    # Zeros that nobody writes take no memory.
    grown = np.full(shape, empty, array.dtype) if empty else np.zeros(shape, array.dtype)
    grown[: len(array)] = array
    return grown
