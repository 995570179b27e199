"""A small invented stream, and an observer that believes nothing an engine says: what the generic checks stand on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from microdata import EXAMPLE_QUASI, EXAMPLE_SENSITIVE, Attribute, Boxes, Schema, example_table
from privacy import Edges, Groups, Lineages, Passing, PassingModel, Sightings, candidates, check
from stream_algos.engine import Batch, Engine, Release


def example_stream(
    rows: int,
    seed: int,
    sensitive: Sequence[Attribute] = EXAMPLE_SENSITIVE[:1],
    persons: int | None = None,
    drift: float = 0.0,
    quasi: Sequence[Attribute] = EXAMPLE_QUASI,
) -> tuple[Schema, Batch]:
    """Schema and rows; positions have gaps. `drift` is the share of rows with the sensitive value of their stretch."""
    table = example_table(rows, seed, quasi, sensitive, persons)
    random = np.random.default_rng(seed + 1)
    values = table.sensitive.copy()
    stretch = np.arange(rows) // random.integers(10, 40)
    for column, attribute in enumerate(sensitive):
        moved = random.random(rows) < drift
        usual = random.integers(0, attribute.size or 1, rows + 1)[stretch]
        values[moved, column] = usual[moved]
    batch = Batch(
        positions=np.cumsum(random.integers(1, 4, rows)),
        times=np.cumsum(random.random(rows)),
        persons=table.persons,
        quasi=table.quasi,
        sensitive=values,
    )
    return table.schema, batch


def steady(batch: Batch) -> Batch:
    """The same, where nobody's quasi-identifiers ever change."""
    _, first, number = np.unique(batch.persons, return_index=True, return_inverse=True)
    return replace(batch, quasi=batch.quasi[first[number]])


def cut(batch: Batch, sizes: Sequence[int]) -> Iterator[Batch]:
    """The batch in parts of these sizes, over and over."""
    start = turn = 0
    while start < len(batch):
        stop = start + max(1, sizes[turn % len(sizes)])
        yield batch.take(slice(start, stop))
        start, turn = stop, turn + 1


@dataclass
class Observer:
    """Drives an engine, sees every release, and holds it against the models with all rows that ever came."""

    schema: Schema
    engine: Engine
    rows: Batch = field(init=False)
    release: Release = field(init=False)
    """Everything that was let out so far."""
    waited: dict[int, int] = field(default_factory=dict)
    """For each decided position, how many rows had come after it."""
    _published: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows, self.release = Batch.empty(self.schema), Release.empty(len(self.schema.quasi))
        self._lineages = Lineages(self.schema)
        self._edges = Edges(self.schema)

    def push(self, batch: Batch) -> None:
        """Let the engine take rows."""
        self.rows = Batch.concat([self.rows, batch])
        self._see(self.engine.push(batch))

    def advance(self, position: int) -> None:
        """Tell the engine that a position has passed."""
        self._see(self.engine.advance(position))

    def expire(self, now: float) -> None:
        """Tell the engine the time."""
        self._see(self.engine.expire(now))

    def flush(self) -> None:
        """Tell the engine that the stream ends."""
        self._see(self.engine.flush())
        assert not len(self.engine.pending()), "rows are held after the end"

    def run(self, batch: Batch, sizes: Sequence[int] = (7,)) -> Observer:
        """Everything, and the end."""
        for part in cut(batch, sizes):
            self.push(part)
        self.flush()
        return self

    def restarted(self, engine: Engine) -> None:
        """Go on with a new engine that knows no more than a snapshot and the rows that it asks for."""
        snapshot, start = self.engine.snapshot(), self.engine.needed_from()
        assert all(array.dtype.kind in "iufb" for array in snapshot.values()), "a snapshot holds numbers only"
        start = int(self.rows.positions[-1]) + 1 if start is None else start
        positions = self.rows.positions
        wanted = positions >= start if engine.windowed else np.isin(positions, self.engine.pending())
        engine.restore({name: array.copy() for name, array in snapshot.items()}, self.rows.take(wanted))
        assert np.array_equal(engine.pending(), self.engine.pending())
        assert engine.needed_from() == self.engine.needed_from()
        self.engine = engine

    def find(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the rows with these positions are among those that came."""
        found = np.searchsorted(self.rows.positions, positions)
        assert np.array_equal(self.rows.positions[np.minimum(found, len(self.rows) - 1)], positions), "an unknown row"
        return found

    def between(self, first: int, last: int) -> NDArray[np.bool_]:
        """Which of the rows that came have a position from the first to the last."""
        return (self.rows.positions >= first) & (self.rows.positions <= last)

    def clusters(self) -> list[list[int]]:
        """Members of each cluster, as sorted lists."""
        return sorted(sorted(part.tolist()) for part in np.split(self.release.members, self.release.starts[1:-1]))

    def assert_complete(self) -> None:
        """Every accepted row was released or suppressed, once; and whoever ties a person's rows together fails."""
        assert sorted(self.waited) == self.rows.accepted().positions.tolist()
        over_time = [model for model in self.engine.models() if model.checked_on == "history"]
        if over_time:
            _, left = self.linked()
            assert check(over_time, Groups(left, left, left, (), left)).all(), "linked rows leave too few persons"

    def linked(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Persons with released rows, and how many persons lie in all boxes of each of them."""
        rows, release, cluster = self.rows, self.release, self.release.cluster_of()
        seen = Sightings(rows.positions, rows.persons, rows.quasi)
        whose = rows.persons[self.find(release.members)]
        return candidates(seen, release.members, whose, release.lo[cluster], release.hi[cluster])

    def _see(self, release: Release) -> None:
        if len(release):
            self.judge(release)
        positions = np.concatenate([release.members, release.suppressed])
        if not len(positions):
            return
        assert len(np.unique(positions)) == len(positions), "decided twice"
        assert self.waited.keys().isdisjoint(positions.tolist()), "decided twice"
        later = len(self.rows) - 1 - self.find(positions)
        self.waited |= dict(zip(positions.tolist(), later.tolist(), strict=True))
        self.release = Release.concat([self.release, release])

    def judge(self, release: Release) -> None:
        """Boxes cover their rows, new clusters meet every model, and what is reused was published."""
        found, cluster = self.find(release.members), release.cluster_of()
        boxes = Boxes(self.schema, release.lo, release.hi)
        assert boxes.cover(self.rows.quasi[found], cluster).all(), "a box does not cover its rows"
        wide = boxes.widened()
        assert np.array_equal(wide.lo, release.lo), "a box is not widened"
        assert np.array_equal(wide.hi, release.hi), "a box is not widened"
        assert (np.diff(release.starts) > 0).all(), "a cluster without rows"
        keys = [(low.tobytes(), high.tobytes()) for low, high in zip(release.lo, release.hi, strict=True)]
        for number, reused, key in zip(release.ids.tolist(), release.reused.tolist(), keys, strict=True):
            assert (number in self._published) == reused, "an id is used twice, or a reused box was never published"
            assert self._published.setdefault(number, key) == key, "a reused box is another one"
        if self.engine.remembers:
            self._lineages.add(release.ids, release.parents, cluster, self.rows.sensitive[found])
            whose = self.rows.persons[found]
            persons = np.array([len(set(part)) for part in np.split(whose, release.starts[1:-1])])
            groups = self._lineages.groups(release.ids, release.company, persons)
            assert check(self.engine.models(), groups).all(), "a cohort does not meet the models"
            return
        for model in self.engine.models():
            if isinstance(model, PassingModel):
                rows = self.rows
                passing = Passing(rows.positions, rows.times, rows.persons, rows.quasi, found, release.lo, release.hi)
                assert np.array_equal(cluster, np.arange(len(release))), "rows leave one by one"
                assert check((model,), model.judged(passing)).all(), "too few persons passed"
                assert not model.only_widens or self._edges.widen(release.lo, release.hi).all(), "a box cuts another"
                return
        for window in np.unique(release.windows[~release.reused], axis=0):
            chosen = ~release.reused & (release.windows == window).all(axis=1)
            assert self._hold(found, cluster, chosen, window).all(), "a cluster does not meet the models"

    def _hold(
        self, found: NDArray[np.int64], cluster: NDArray[np.int64], chosen: NDArray[np.bool_], window: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Whether each of the chosen clusters meets every model, in this window."""
        own = found[chosen[cluster]]
        first, last = window.tolist()
        inside = self.between(first, last)
        groups = Groups.of(
            self.schema,
            self.rows.persons[own],
            self.rows.sensitive[own],
            np.unique(cluster[chosen[cluster]], return_inverse=True)[1],
            int(chosen.sum()),
            None if first < 0 else self.schema.histograms(self.rows.sensitive[inside]),
        )
        return check(self.engine.models(), groups)
