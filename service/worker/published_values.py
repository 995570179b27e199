"""Which sensitive values have left with which box: what the gate must know again after a restart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from microdata import IdTable, Schema
from stream_algos import Columns, Release, Room

TABLE = "published"
_LEAST = 1024


class PublishedValues:
    """Of each box the values that left with it first, if nothing had left before it; else one row, which names that.

    Nothing leaves before the gate has seen that it is enough, and nothing that is added takes away from that: what
    leaves later with the box, or with those that come after it, need not be known.
    """

    loose: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, schema: Schema) -> None:
        self._ids = np.empty((_LEAST, 2), np.uint64)
        self._sensitive = np.empty((_LEAST, len(schema.sensitive)), np.int32)
        self._size = self._kept = 0
        self._left = IdTable()
        """Boxes that something has left with."""

    def add(self, clusters: Release, sensitive: NDArray[np.int32]) -> None:
        """Rows with these values leave with these clusters."""
        cluster = clusters.cluster_of()
        ids, parents = clusters.ids[cluster], clusters.parents[cluster]
        rows = np.flatnonzero(self._left.find(ids) == IdTable.NONE)
        follows = self._left.find(parents[rows]) != IdTable.NONE
        # Of boxes that follow one: the first row. Of the others: a row of each value.
        told = np.where(follows[:, np.newaxis], 0, sensitive[rows]).astype(np.uint64)
        new = rows[np.sort(np.unique(np.column_stack([ids[rows], told]), axis=0, return_index=True)[1])]
        self._left.add(ids[new])
        end = self._size + len(new)
        if end > len(self._ids):
            more = end + end // 2 - len(self._ids)
            self._ids = np.concatenate([self._ids, np.empty((more, 2), np.uint64)])
            self._sensitive = np.concatenate([self._sensitive, np.empty((more, sensitive.shape[1]), np.int32)])
        self._ids[self._size : end, 0], self._ids[self._size : end, 1] = ids[new], parents[new]
        self._sensitive[self._size : end] = sensitive[new]
        self._size = end

    def recall(self, entries: Room) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int32]]:
        """Know these entries again: their boxes, those before them, and values."""
        self._ids, self._sensitive, self._size = entries["ids"][:], entries["sensitive"][:], len(entries["ids"])
        self._left.add(np.unique(self._ids[:, 0]))
        self.kept()
        return self._ids[:, 0], self._ids[:, 1], self._sensitive

    def undone(self) -> Columns:
        """The entries that are kept."""
        return self.entries(TABLE, np.arange(self._kept))

    def room(self, sizes: Mapping[str, int]) -> dict[str, Room]:
        """Columns to be filled, and then recalled."""
        nothing, size = self.entries(TABLE, np.empty(0, np.int64)), sizes.get(TABLE, 0)
        return {TABLE: {name: np.zeros((size, column.shape[1]), column.dtype) for name, column in nothing.items()}}

    def sizes(self) -> dict[str, int]:
        """How many entries there are."""
        return {TABLE: self._size}

    def touched(self) -> dict[str, NDArray[np.int64]]:
        """Entries that are new."""
        return {TABLE: np.arange(self._kept, self._size)}

    def entries(self, table: str, numbers: NDArray[np.int64]) -> Columns:
        """What they hold."""
        assert table == TABLE, table
        return {"ids": self._ids[numbers], "sensitive": self._sensitive[numbers]}

    def kept(self) -> None:
        """They are kept."""
        self._kept = self._size
