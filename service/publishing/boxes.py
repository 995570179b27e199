"""Which boxes have left, by the ids of their clusters: very many of them where rows leave alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from service.publishing._boxes_kernels import NONE, enter, places_of

_LEAST = 1024


class PublishedBoxes:
    """Ids and boxes, in columns."""

    def __init__(self, width: int) -> None:
        self._ids = np.zeros(_LEAST, np.uint64)
        self._boxes = np.zeros((_LEAST, 2, width))
        self._size = 0
        self._table = np.full(2 * _LEAST, NONE, np.int32)

    def __len__(self) -> int:
        return self._size

    @property
    def ids(self) -> NDArray[np.uint64]:
        """The ids of all of them."""
        return self._ids[: self._size]

    def add(self, ids: NDArray[np.uint64], lo: NDArray[np.float64], hi: NDArray[np.float64]) -> None:
        """These leave, and are not there yet."""
        first, self._size = self._size, self._size + len(ids)
        if self._size > len(self._ids):
            room = self._size + self._size // 2
            old, boxes = self._ids, self._boxes
            self._ids, self._boxes = np.zeros(room, np.uint64), np.zeros((room, *boxes.shape[1:]))
            self._ids[:first], self._boxes[:first] = old[:first], boxes[:first]
            self._table = np.full(1 << (2 * room - 1).bit_length(), NONE, np.int32)
            enter(self._table, self._ids, 0, first)
        own = slice(first, self._size)
        self._ids[own], self._boxes[own, 0], self._boxes[own, 1] = ids, lo, hi
        enter(self._table, self._ids, first, self._size)

    def find(self, ids: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
        """Of each of these whether it has left, and both sides of its box."""
        places = places_of(self._table, self._ids, np.ascontiguousarray(ids))
        return places != NONE, self._boxes[places, 0], self._boxes[places, 1]

    def have(self, ids: NDArray[np.uint64], lo: NDArray[np.float64], hi: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether each of these has left, with this very box."""
        found, known_lo, known_hi = self.find(ids)
        return np.asarray(found & (known_lo == lo).all(axis=1) & (known_hi == hi).all(axis=1))

    def keep(self, ids: NDArray[np.uint64]) -> None:
        """Forget all but these."""
        stay = np.isin(self.ids, ids)
        kept, boxes = self.ids[stay], self._boxes[: self._size][stay]
        self._size = 0
        self._table.fill(NONE)
        self.add(kept, boxes[:, 0], boxes[:, 1])
