"""The rows of one partition that somebody may still ask for: pending, decided, or part of a window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microdata import RejectedRows, Schema
from service.codec.events import Events, Public, joined
from stream_algos import Batch


@dataclass(eq=False)
class Rows:
    """Encoded rows by position, ascending.

    Appending puts longer columns in the place of those that are there and changes none of them: whoever looks only at
    rows that were there before can do so meanwhile.
    """

    positions: NDArray[np.int64]
    times: NDArray[np.float64]
    persons: NDArray[np.int64]
    quasi: NDArray[np.float64]
    sensitive: NDArray[np.int32]
    public: Public
    more: NDArray[np.int64] | None = None
    """Second code of each person, where there is one."""

    @classmethod
    def empty(cls, schema: Schema) -> Rows:
        """No rows of this schema."""
        return cls(
            np.empty(0, np.int64),
            np.empty(0),
            np.empty(0, np.int64),
            np.empty((0, len(schema.quasi))),
            np.empty((0, len(schema.sensitive)), np.int32),
            tuple(pa.nulls(0) for _ in schema.public),
        )

    def __len__(self) -> int:
        return len(self.positions)

    def append(self, events: Events, times: NDArray[np.float64]) -> None:
        """Add rows, taken at these times, behind all that are there."""
        self.public = joined([self.public, events.public]) if len(self) else events.public
        if self.more is None or events.more is None or not len(self):
            assert not len(self) or (self.more is None and events.more is None), "all rows have a second code, or none"
            self.more = events.more
        else:
            self.more = np.concatenate((self.more, events.more))
        self.positions = np.concatenate((self.positions, events.positions))
        self.times = np.concatenate((self.times, times))
        self.persons = np.concatenate((self.persons, events.persons))
        self.quasi = np.concatenate((self.quasi, events.quasi))
        self.sensitive = np.concatenate((self.sensitive, events.sensitive))

    def keep(self, positions: NDArray[np.int64], start: int | None) -> None:
        """Forget every row that is neither at one of these positions nor at `start` or behind it."""
        wanted = np.isin(self.positions, positions, assume_unique=True)
        if start is not None:
            wanted |= self.positions >= start
        if not wanted.all():
            self._select(wanted)

    def _select(self, wanted: NDArray[np.bool_]) -> None:
        self.positions, self.times, self.persons = self.positions[wanted], self.times[wanted], self.persons[wanted]
        self.quasi, self.sensitive = self.quasi[wanted], self.sensitive[wanted]
        self.more = None if self.more is None else self.more[wanted]
        self.public = tuple(column.filter(pa.array(wanted)) for column in self.public)

    def values(self, index: NDArray[np.int64]) -> tuple[NDArray[np.int32], Public]:
        """What rows are published with beside their box: sensitive and public values."""
        chosen = pa.array(index)
        return self.sensitive[index], tuple(column.take(chosen) for column in self.public)

    def find(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Index of the row at each position, -1 where it is gone."""
        index = np.searchsorted(self.positions, positions)
        found = index < len(self.positions)
        found[found] = self.positions[index[found]] == positions[found]
        return np.where(found, index, -1)

    def between(self, first: int, last: int) -> slice:
        """The rows at the positions first … last."""
        low, high = np.searchsorted(self.positions, [first, last + 1])
        return slice(int(low), int(high))

    def clock(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The times of the rows as steps: from each of these positions on, this time."""
        new = np.diff(self.times, prepend=-np.inf) != 0
        return self.positions[new], self.times[new]

    def batch(self, start: int) -> Batch:
        """The rows from this index on, as an engine takes them."""
        return Batch(
            self.positions[start:],
            self.times[start:],
            self.persons[start:],
            self.quasi[start:],
            self.sensitive[start:],
            None if self.more is None else self.more[start:],
        )


def rejected_batch(schema: Schema, rejected: RejectedRows, times: NDArray[np.float64]) -> Batch:
    """Return rejected rows, which came at these times, as an engine that remembers persons takes them."""
    return Batch(
        positions=rejected.rows,
        times=times,
        persons=rejected.persons,
        quasi=rejected.quasi,
        sensitive=np.zeros((len(rejected), len(schema.sensitive)), np.int32),
        more=rejected.more,
        rejected=np.ones(len(rejected), bool),
    )
