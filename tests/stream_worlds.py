"""Random small streams, and an observer of what an engine does with them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from worlds import ILLNESS, QUASI, random_table

from microdata import Schema
from service.codec.events import Events
from service.publishing.gate import Gate, box_key
from service.publishing.rows import Rows
from stream_algos import Batch, Engine, Release


def stream(rows, seed, sensitive=(ILLNESS,), persons=None, drift=0.0, quasi=QUASI[:4]):
    """Schema and rows; positions have gaps. `drift` is the share of rows with the sensitive value of their stretch."""
    table = random_table(rows, seed, quasi, sensitive, persons)
    random = np.random.default_rng(seed + 1)
    values = table.sensitive.copy()
    stretch = np.arange(rows) // random.integers(10, 40)
    for column, attribute in enumerate(sensitive):
        moved = random.random(rows) < drift
        usual = random.integers(0, attribute.size, rows + 1)[stretch]
        values[moved, column] = usual[moved]
    batch = Batch(
        positions=np.cumsum(random.integers(1, 4, rows)),
        times=np.cumsum(random.random(rows)),
        persons=table.persons,
        quasi=table.quasi,
        sensitive=values,
    )
    return table.schema, batch


def cut(batch, sizes):
    """The batch in parts of these sizes, over and over."""
    start = turn = 0
    while start < len(batch):
        stop = start + max(1, sizes[turn % len(sizes)])
        yield batch.take(slice(start, stop))
        start, turn = stop, turn + 1


@dataclass
class Observer:
    """Sees every release, and holds it against the gate with all rows that ever came."""

    schema: Schema
    engine: Engine
    rows: Rows = field(init=False)
    release: Release = field(init=False)
    waited: dict[int, int] = field(default_factory=dict)
    """For each decided position, how many rows came after it."""

    def __post_init__(self):
        self.rows, self.release = Rows.empty(self.schema), Release.empty(len(self.schema.quasi))
        self._published = {}
        self._gate = Gate(self.schema, self.engine.models())

    def push(self, batch):
        events = Events(batch.positions, batch.persons, batch.quasi, batch.sensitive, (), [])
        self.rows.append(events, batch.times)
        self._see(self.engine.push(batch))

    def advance(self, position):
        self._see(self.engine.advance(position))

    def expire(self, now):
        self._see(self.engine.expire(now))

    def flush(self):
        self._see(self.engine.flush())
        assert not len(self.engine.pending())

    def run(self, batch, sizes=(7,)):
        """Everything, and the end."""
        for part in cut(batch, sizes):
            self.push(part)
        self.flush()
        return self

    def restarted(self, engine):
        """Go on with a new engine that knows no more than a snapshot and the rows that it asks for."""
        snapshot, start = self.engine.snapshot(), self.engine.needed_from()
        assert all(array.dtype.kind in "iufb" for array in snapshot.values())
        start = self.rows.positions[-1] + 1 if start is None else start
        batch = self.rows.batch(0)
        wanted = batch.positions >= start if engine.windowed else np.isin(batch.positions, self.engine.pending())
        engine.restore({name: array.copy() for name, array in snapshot.items()}, batch.take(wanted))
        assert np.array_equal(engine.pending(), self.engine.pending())
        assert engine.needed_from() == self.engine.needed_from()
        self.engine = engine

    def _see(self, release):
        passed = self._gate.passes(release, self.rows, self._published)
        assert passed.all(), "the gate refuses a release"
        self._published |= {int(i): box_key(release.lo[c], release.hi[c]) for c, i in enumerate(release.ids)}
        for position in (*release.members, *release.suppressed):
            assert position not in self.waited, "decided twice"
            self.waited[int(position)] = len(self.rows) - 1 - int(np.searchsorted(self.rows.positions, position))
        both = [self.release, release]
        self.release = Release.concat(both)

    def clusters(self):
        """Members of each cluster, as sorted lists."""
        return sorted(sorted(part.tolist()) for part in np.split(self.release.members, self.release.starts[1:-1]))

    def chosen(self, cluster):
        """One cluster as a release."""
        return self.release.select(np.arange(len(self.release)) == cluster)

    def assert_complete(self):
        """Every row that came was released or suppressed, once."""
        assert sorted(self.waited) == self.rows.positions.tolist()
