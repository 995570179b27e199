"""Which sensitive values have left with which box: what the gate must know again after a restart."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from microdata import Schema
from stream_algos import Columns, Release

TABLE = "published"


class PublishedValues:
    """One entry for each row that left with a value that none had before with its box; the others add nothing."""

    loose: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, schema: Schema) -> None:
        self._ids = np.empty((0, 2), np.uint64)
        self._sensitive = np.empty((0, len(schema.sensitive)), np.int32)
        self._known: set[tuple[int, int, int]] = set()
        self._kept = 0

    def add(self, clusters: Release, sensitive: NDArray[np.int32]) -> None:
        """Rows with these values leave with these clusters."""
        cluster = clusters.cluster_of()
        ids = np.stack([clusters.ids[cluster], clusters.parents[cluster]], axis=1)
        rows = np.unique(np.column_stack([ids.view(np.int64), sensitive]), axis=0, return_index=True)[1]
        new = [row for row in rows.tolist() if self._is_new(int(ids[row, 0]), sensitive[row])]
        self._ids = np.concatenate([self._ids, ids[new]])
        self._sensitive = np.concatenate([self._sensitive, sensitive[new]])

    def _is_new(self, box: int, values: NDArray[np.int32]) -> bool:
        own = {(box, attribute, value) for attribute, value in enumerate(values.tolist())} - self._known
        self._known |= own
        return bool(own)

    def recall(self, entries: Columns) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int32]]:
        """Know these entries again: their boxes, those before them, and values."""
        self._ids, self._sensitive = entries["ids"], entries["sensitive"]
        for box, values in zip(self._ids[:, 0].tolist(), self._sensitive, strict=True):
            self._is_new(box, values)
        self.kept()
        return self._ids[:, 0], self._ids[:, 1], self._sensitive

    def sizes(self) -> dict[str, int]:
        """How many entries there are."""
        return {TABLE: len(self._ids)}

    def touched(self) -> dict[str, NDArray[np.int64]]:
        """Entries that are new."""
        return {TABLE: np.arange(self._kept, len(self._ids))}

    def entries(self, table: str, numbers: NDArray[np.int64]) -> Columns:
        """What they hold."""
        assert table == TABLE, table
        return {"ids": self._ids[numbers], "sensitive": self._sensitive[numbers]}

    def kept(self) -> None:
        """They are kept."""
        self._kept = len(self._ids)
