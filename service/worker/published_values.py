"""Which sensitive values have left with which box: what the gate must know again after a restart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from microdata import Schema
from service.worker._published_kernels import add_new
from stream_algos import Columns, Release, Room

TABLE = "published"
_LEAST = 1024
_ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


class PublishedValues:
    """One entry for each row that left with a value that none had before with its box; the others add nothing.

    Of what is known there are hashes. Should two be the same by chance, an entry is missing after a restart, and the
    gate takes a box to have shown fewer values than it has: it may let out less, never more.
    """

    loose: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, schema: Schema) -> None:
        self._ids = np.empty((_LEAST, 2), np.uint64)
        self._sensitive = np.empty((_LEAST, len(schema.sensitive)), np.int32)
        self._size = self._kept = 0
        self._known = np.zeros(2 * _LEAST, np.uint64)
        self._hashes = 0
        """How many may be in `_known`."""

    def add(self, clusters: Release, sensitive: NDArray[np.int32]) -> None:
        """Rows with these values leave with these clusters."""
        cluster = clusters.cluster_of()
        new = np.flatnonzero(self._are_new(clusters.ids[cluster], sensitive))
        end = self._size + len(new)
        if end > len(self._ids):
            more = end + end // 2 - len(self._ids)
            self._ids = np.concatenate([self._ids, np.empty((more, 2), np.uint64)])
            self._sensitive = np.concatenate([self._sensitive, np.empty((more, sensitive.shape[1]), np.int32)])
        own = cluster[new]
        self._ids[self._size : end, 0], self._ids[self._size : end, 1] = clusters.ids[own], clusters.parents[own]
        self._sensitive[self._size : end] = sensitive[new]
        self._size = end

    def _are_new(self, boxes: NDArray[np.uint64], sensitive: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether each row has a value that its box did not have; from now on it has."""
        more = self._hashes + sensitive.size
        if 2 * more > len(self._known):
            known, self._known = self._known[self._known != 0], np.zeros(1 << (2 * more).bit_length(), np.uint64)
            add_new(self._known, known[:, np.newaxis])
            self._hashes = len(known)
        new = add_new(self._known, _hashes_of(boxes, sensitive))
        self._hashes += int(new.sum()) * sensitive.shape[1]
        return new

    def recall(self, entries: Room) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int32]]:
        """Know these entries again: their boxes, those before them, and values."""
        self._ids, self._sensitive, self._size = entries["ids"][:], entries["sensitive"][:], len(entries["ids"])
        self._are_new(self._ids[:, 0], self._sensitive)
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


def _hashes_of(boxes: NDArray[np.uint64], sensitive: NDArray[np.int32]) -> NDArray[np.uint64]:
    """One of each box, attribute and value; never 0."""
    width = sensitive.shape[1]
    values: NDArray[np.uint64] = sensitive.astype(np.uint64) * np.uint64(width)
    values += np.arange(width, dtype=np.uint64)
    hashes: NDArray[np.uint64] = (boxes[:, np.newaxis] ^ (values * _ODD[0])) * _ODD[1]
    return (hashes ^ (hashes >> np.uint64(32))) * _ODD[0] | np.uint64(1)
