"""The privacy hash table: whether a table that grows and shrinks keeps k, ℓ and p, answered at once.

Rows with the same (generalized) quasi-identifiers are a class. For each class the table counts its persons and the
distinct values of each sensitive column, and for each count how many classes have it. Adding or removing a row moves
its class from one bucket to the next; whether all classes have enough is whether the lower buckets are empty, which
takes the same time for ten rows and for ten million.

X. Sun, Privacy Preserving Data Sharing in Data Mining Environment (thesis 2010), sections 2.3 and 2.4; persons are
counted in the place of rows, and removal is ours.

>>> import numpy as np
>>> live = PrivacyTable(quasi=1, k=2, distinct=[2])
>>> live.add(np.array([[30], [30], [40]]), np.arange(3), np.array([[0], [1], [0]]))
>>> live.holds, live.achieved
(False, (1, 1))
>>> live.remove(np.array([[40]]), np.array([2]), np.array([[0]]))
>>> live.holds, live.achieved
(True, (2, 2))
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from microdata import DataError, InfeasibleError
from static_algos._privacy_table_kernels import Counts, add_rows, copy_counted, remove_rows

MOST_DISTINCT = 1_000_000
"""Largest k, ℓ and p."""


class PrivacyTable:
    """Counts of every class under additions and removals; `holds` answers in constant time."""

    def __init__(self, quasi: int, k: int = 1, distinct: Sequence[int] = ()) -> None:
        """For rows of `quasi` codes.

        A class needs k distinct persons, and in each sensitive column so many distinct codes: ℓ or p of values, or
        p⁺ of categories, where the column has the category of each value.
        """
        for parameter, least in (("k", k), *(("distinct", one) for one in distinct)):
            if not 1 <= least <= MOST_DISTINCT:
                nearest = min(max(least, 1), MOST_DISTINCT)
                raise InfeasibleError(
                    f"must be from 1 to {MOST_DISTINCT}", parameter=parameter, given=least, nearest=nearest
                )
        self._quasi = quasi
        self._least = np.array([k, *distinct], np.int64)
        self._counts = self._new(1)

    def _new(self, rows: int) -> Counts:
        """Empty tables with room for so many rows."""
        columns = len(self._least)
        pairs = rows * columns
        return Counts(
            class_slots=np.full(_slots(rows), -1),
            codes=np.zeros((rows, self._quasi), np.int64),
            rows=np.zeros(rows, np.int64),
            distinct=np.zeros((rows, columns), np.int64),
            pair_slots=np.full(_slots(pairs), -1),
            pairs=np.zeros((pairs, 3), np.int64),
            times=np.zeros(pairs, np.int64),
            used=np.zeros(3, np.int64),
            least=self._least,
            buckets=np.zeros((columns, int(self._least.max()) + 1), np.int64),
        )

    def add(self, codes: NDArray[np.integer], persons: NDArray[np.integer], sensitive: NDArray[np.integer]) -> None:
        """Count rows: their codes, persons and sensitive codes, one row each."""
        given = self._columns(codes, persons, sensitive)
        self._make_room(len(given[0]))
        add_rows(self._counts, *given)

    def remove(self, codes: NDArray[np.integer], persons: NDArray[np.integer], sensitive: NDArray[np.integer]) -> None:
        """Take rows away that were added; `DataError` and no change if one of them was not."""
        given = self._columns(codes, persons, sensitive)
        removed = remove_rows(self._counts, *given)
        if removed < len(given[0]):
            add_rows(self._counts, given[0][:removed], given[1][:removed])
            raise DataError("a row that was never added, or was removed before, cannot be removed")

    @property
    def holds(self) -> bool:
        """Whether every class has enough persons, and enough distinct values in every column."""
        return not self._failing().any()

    @property
    def achieved(self) -> tuple[int, ...]:
        """The least count of a class: of persons, then of each column; at most what was asked. 0 without rows."""
        found = [np.flatnonzero(bucket) for bucket in self._counts.buckets]
        return tuple(int(some[0]) if len(some) else 0 for some in found)

    @property
    def failing(self) -> tuple[int, ...]:
        """How many classes have too few persons, and too few distinct values of each column."""
        return tuple(self._failing().tolist())

    def __len__(self) -> int:
        """Number of classes."""
        return int(self._counts.used[2])

    def _failing(self) -> NDArray[np.int64]:
        columns = np.arange(len(self._least))
        return np.asarray(self._counts.used[2] - self._counts.buckets[columns, self._least])

    def _columns(
        self, codes: NDArray[np.integer], persons: NDArray[np.integer], sensitive: NDArray[np.integer]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        expected = (len(persons), self._quasi), (len(persons), len(self._least) - 1)
        if (codes.shape, sensitive.shape) != expected:
            raise DataError(f"codes and sensitive codes must have the shapes {expected[0]} and {expected[1]}")
        values = np.column_stack([persons, sensitive]).astype(np.int64)
        return np.ascontiguousarray(codes, np.int64), values

    def _make_room(self, rows: int) -> None:
        """New tables, twice as large as needed, where the old ones have too little room."""
        old = self._counts
        if old.used[0] + rows <= len(old.rows) and old.used[1] + rows * len(self._least) <= len(old.times):
            return
        live = max(int((old.rows > 0).sum()), -(-int((old.times > 0).sum()) // len(self._least)))
        new = self._new(2 * (live + rows))
        new.buckets[:], new.used[2] = old.buckets, old.used[2]
        copy_counted(old, new)
        self._counts = new


def _slots(entries: int) -> int:
    """Places of a hash table, a power of two, that such many entries leave half empty."""
    return 1 << max(3, (2 * entries - 1).bit_length())
