"""Which boxes have left, by the ids of their clusters: very many of them where rows leave alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import IdTable


class PublishedBoxes:
    """Ids and boxes, in columns."""

    def __init__(self, width: int) -> None:
        self._table = IdTable()
        self._boxes = np.zeros((self._table.room, 2, width))

    def __len__(self) -> int:
        return len(self._table)

    @property
    def ids(self) -> NDArray[np.uint64]:
        """The ids of all of them."""
        return self._table.ids

    def add(self, ids: NDArray[np.uint64], lo: NDArray[np.float64], hi: NDArray[np.float64]) -> None:
        """These leave; of the same ones the last counts."""
        known, places = len(self._table), self._table.add(ids)
        self._make_room(known)
        self._boxes[places, 0], self._boxes[places, 1] = lo, hi

    def find(self, ids: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
        """Of each of these whether it has left, and both sides of its box."""
        places = self._table.find(ids)
        return places != IdTable.NONE, self._boxes[places, 0], self._boxes[places, 1]

    def have(self, ids: NDArray[np.uint64], lo: NDArray[np.float64], hi: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether each of these has left, with this very box."""
        found, known_lo, known_hi = self.find(ids)
        return np.asarray(found & (known_lo == lo).all(axis=1) & (known_hi == hi).all(axis=1))

    def keep(self, ids: NDArray[np.uint64]) -> None:
        """Forget all but these."""
        stay = np.isin(self.ids, ids)
        self._boxes = self._boxes[: len(self)][stay]
        self._table = IdTable(self.ids[stay])
        self._make_room(len(self))

    def _make_room(self, known: int) -> None:
        if self._table.room > len(self._boxes):
            grown = np.zeros((self._table.room, *self._boxes.shape[1:]))
            grown[:known] = self._boxes[:known]
            self._boxes = grown
