"""Ids and their places: very many numbers of 64 bits, of which each stands somewhere in the columns of others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import _id_table_kernels as kernels
from microdata._id_table_kernels import NONE

_LEAST = 64


class IdTable:
    """Every id has a place, from 0 on, in the order in which they came.

    >>> table = IdTable()
    >>> table.add(np.array([70, 30, 70], np.uint64)).tolist(), table.find(np.array([30, 50], np.uint64)).tolist()
    ([0, 1, 0], [1, -1])
    """

    NONE = NONE
    """The place of an id that is not there."""

    def __init__(self, ids: NDArray[np.uint64] | None = None) -> None:
        self._ids = np.empty(0, np.uint64) if ids is None else ids
        self._size = len(self._ids)
        self._make_room(self._size)

    def __len__(self) -> int:
        return self._size

    @property
    def ids(self) -> NDArray[np.uint64]:
        """All of them, by their places."""
        return self._ids[: self._size]

    @property
    def room(self) -> int:
        """As many may be there before columns beside them have to grow."""
        return len(self._ids)

    def find(self, ids: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The place of each id, NONE where it is not there."""
        return kernels.find(self._table, self._ids, np.ascontiguousarray(ids))

    def add(self, ids: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The place of each id; those that are not there come to stand behind the others."""
        if self._size + len(ids) > len(self._ids):
            # Most of them may be there already.
            new = int((self.find(ids) == NONE).sum())
            if self._size + new > len(self._ids):
                self._make_room(self._size + new + self._size // 2)
        places = kernels.add(self._table, self._ids, self._size, np.ascontiguousarray(ids))
        self._size = max(self._size, int(places.max(initial=NONE)) + 1)
        return places

    def _make_room(self, room: int) -> None:
        grown = np.zeros(max(room, _LEAST), np.uint64)
        grown[: self._size] = self.ids
        self._ids = grown
        self._table = np.full(1 << (2 * len(grown) - 1).bit_length(), NONE, np.int32)
        kernels.fill(self._table, self._ids, self._size)
