"""What a stream is still good for: how well counting queries on stretches of it can be answered from what left.

Every stretch of equally many events is judged like a table whose suppressed rows are missing; the mean over the
stretches is the workload error. A stretch is judged, and forgotten, as soon as all of its events are decided.

J. Cao, thesis 2010, chapter 5.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from microdata import Boxes, Publication, Schema, Table
from static_algos import median_query_error
from stream_algos.engine import Batch, Release

STRETCH = 10_000
"""Events of a stretch, unless other ones are asked for."""
QUERIES = 2_000
"""Random queries on each stretch."""
SELECTIVITY = 0.1

UNDECIDED, SUPPRESSED = -2, -1


@dataclass
class _Stretch:
    """Events and what became of them: a mark, or the number of the box that they left with."""

    rows: Batch
    marks: NDArray[np.int32] = field(init=False)
    boxes: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self.marks = np.full(len(self.rows), UNDECIDED, np.int32)

    def grow(self, rows: Batch) -> None:
        self.rows = Batch.concat([self.rows, rows])
        self.marks = np.append(self.marks, np.full(len(rows), UNDECIDED, np.int32))

    def decide(self, release: Release, cluster: NDArray[np.int64]) -> None:
        """Note the events of this stretch that are in a release."""
        first, last = self.rows.positions[[0, -1]]
        own = (release.members >= first) & (release.members <= last)
        if own.any():
            used, labels = np.unique(cluster[own], return_inverse=True)
            self._mark(release.members[own], self.count + labels)
            self.boxes.append((release.lo[used], release.hi[used]))
            self.count += len(used)
        gone = release.suppressed
        self._mark(gone[(gone >= first) & (gone <= last)], SUPPRESSED)

    def _mark(self, positions: NDArray[np.int64], mark: NDArray[np.int64] | int) -> None:
        self.marks[np.searchsorted(self.rows.positions, positions)] = mark

    def error(self, schema: Schema, selectivity: float) -> float:
        nothing = [np.empty((0, len(schema.quasi)))]
        lo, hi = (np.concatenate([*(box[side] for box in self.boxes), *nothing]) for side in range(2))
        table = Table(schema, self.rows.persons, self.rows.quasi, self.rows.sensitive)
        published = Publication(table, self.marks, Boxes(schema, lo, hi))
        return median_query_error(published, selectivity=selectivity, queries=QUERIES)


class Workload:
    """Counts on the way of a stream: `take` every batch, then hear what became of it."""

    def __init__(self, schema: Schema, stretch: int = STRETCH, selectivity: float = SELECTIVITY) -> None:
        self._schema, self._length, self._selectivity = schema, stretch, selectivity
        self._open: deque[_Stretch] = deque()
        self._errors = 0.0
        self._judged = 0

    def take(self, batch: Batch) -> None:
        """Rows that go into the engine."""
        while len(batch):
            if not self._open or len(self._open[-1].rows) == self._length:
                self._open.append(_Stretch(batch.take(slice(0, 0))))
            room = self._length - len(self._open[-1].rows)
            self._open[-1].grow(batch.take(slice(0, room)))
            batch = batch.take(slice(room, None))

    def decided(self, release: Release) -> None:
        """What the engine let out, or gave up."""
        cluster = release.cluster_of()
        for one in self._open:
            one.decide(release, cluster)
        while self._open and len(self._open[0].rows) == self._length and (self._open[0].marks != UNDECIDED).all():
            self._errors += self._open.popleft().error(self._schema, self._selectivity)
            self._judged += 1

    def error(self) -> float | None:
        """The mean over all whole stretches, or what there is of the only one; None where nothing was decided.

        For the end of a stream: events that are undecided then count as suppressed.
        """
        if self._judged:
            return self._errors / self._judged
        return self._open[0].error(self._schema, self._selectivity) if self._open else None


def workload_error(table: Table, release: Release, stretch: int, selectivity: float = SELECTIVITY) -> float | None:
    """The workload error of a whole table that went through an engine, its rows being the positions."""
    workload, positions = Workload(table.schema, stretch, selectivity), np.arange(len(table))
    workload.take(Batch(positions, np.zeros(len(table)), table.persons, table.quasi, table.sensitive))
    workload.decided(release)
    return workload.error()
