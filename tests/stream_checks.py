"""Generic checks of stream engines: what must be true of every one, whatever it does inside.

The cases of an engine are the requests that its parameters accept, so a new one is checked as soon as it is registered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from stream_worlds import Observer, cut, stream
from worlds import DEBT, ILLNESS

from microdata import DataError, InfeasibleError, PortcullisError, SchemaError, seeded_words
from static_algos import Entry
from stream_algos import STREAM_ALGORITHMS, Batch, Engine

REQUESTS: tuple[Mapping[str, Any], ...] = (
    {"k": 3, "delay": {"tuples": 40}},
    {"k": 3, "delay": {"tuples": 40, "seconds": 10.0}},
    {"k": 2, "l": 2, "delay": {"tuples": 60}},
    {"k": 2, "max_share": 0.6, "delay": {"tuples": 60}},
    {"k": 3, "delay": {"tuples": 40}, "reuse": True},
    {"k": 3, "delay": {"tuples": 40}, "formation": "arrival"},
    {"k": 3, "t": 0.3, "window": {"size": 40, "advance": 10}},
    {"k": 3, "t": 0.3, "window": {"size": 40, "advance": 40}, "delay": {"seconds": 10.0}},
    {"k": 3, "t": 0.3, "window": {"seconds": 20.0, "advance_seconds": 5.0}},
    {"k": 3, "t": 0.3, "window": {"size": 40, "advance": 10}, "floor": 0.0, "refine": "none"},
    {"k": 3, "window": {"size": 40, "advance": 10}, "first": 15},
    {"k": 3, "window": {"size": 40, "advance": 40}, "delay": {"seconds": 10.0}},
    {"k": 3, "window": {"seconds": 20.0, "advance_seconds": 5.0}},
    {"k": 3, "beta": 1.0, "window": {"size": 40, "advance": 10}},
    {"k": 3, "beta": 1.0, "window": {"seconds": 20.0, "advance_seconds": 5.0}},
    {"k": 3, "beta": {"semantic": {"beta": 2, "height": 1}}, "window": {"size": 40, "advance": 20}},
    {"k": 3, "beta": {"range": {"beta": 2, "width": 2}}, "window": {"size": 40, "advance": 20}},
)
"""What may be asked of an engine; requests that its parameters refuse are not meant for it."""


@dataclass(frozen=True)
class StreamCase:
    """An engine with parameters."""

    engine: type[Engine]
    name: str
    given: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self.given.items())})"

    def build(self, schema, seed=1):
        return self.engine(schema, words=seeded_words(seed), **self.given)

    def observer(self, schema, seed=1):
        return Observer(schema, self.build(schema, seed))

    def streams(self, rows=150):
        """One row per person or several, one sensitive attribute or two, steady or drifting; what the models take."""
        every = (
            stream(rows, 1, (ILLNESS,)),
            stream(rows, 2, (DEBT,), persons=rows // 4, drift=0.8),
            stream(rows, 3, (ILLNESS, DEBT), persons=rows // 2, drift=0.3),
        )
        return [one for one in every if self._accepts(one[0])]

    def _accepts(self, schema):
        try:
            self.build(schema)
        except (SchemaError, InfeasibleError):
            return False
        return True

    @property
    def positions_waited(self) -> float:
        """How many positions may pass after a row before it is decided."""
        window = self.given.get("window")
        if window is not None:
            return window.get("size", np.inf)
        return self.given["delay"]["tuples"]

    @property
    def seconds_waited(self) -> float:
        """How long a row may wait."""
        delay, window = self.given.get("delay", {}), self.given.get("window", {})
        return delay.get("seconds", window.get("seconds", np.inf))


def stream_cases(entry: Entry[Engine]) -> list[StreamCase]:
    return [StreamCase(entry.algorithm, entry.name, one) for one in REQUESTS if _valid(entry, one)]


def all_stream_cases() -> list[StreamCase]:
    return [case for entry in STREAM_ALGORITHMS for case in stream_cases(entry)]


def _valid(entry: Entry[Engine], given: Mapping[str, Any]) -> bool:
    try:
        entry.parameters.model_validate(given)
    except (ValidationError, PortcullisError):
        return False
    return True


def the_gate_agrees_and_no_row_is_lost(case):
    for schema, batch in case.streams():
        case.observer(schema).run(batch).assert_complete()


def most_rows_are_released(case):
    for schema, batch in case.streams():
        observer = case.observer(schema).run(batch)
        assert len(observer.release.members) > 0.7 * len(batch)


def batch_splits_do_not_matter(case):
    for schema, batch in case.streams(90):
        for sizes in ((1,), (90,), (1, 13, 2)):
            observer = case.observer(schema).run(batch, sizes)
            observer.assert_complete()
            assert all(type(model) in case.engine.guarantees for model in observer.engine.models())


def one_push_decides_what_pushes_by_moment_do(case):
    """Whoever pushes much at once gets the same decisions at the same positions, by the clock of the rows as well."""
    for schema, batch in case.streams():
        for times in (batch.times, np.floor(batch.times), batch.times // 15):
            one, many = case.observer(schema), case.observer(schema)
            at_once = replace(batch, times=times)
            one.push(at_once)
            for moment in np.unique(times):
                many.expire(float(moment))
                many.push(at_once.take(times == moment))
            for observer in (one, many):
                observer.flush()
                observer.assert_complete()
            for name in vars(one.release):
                assert np.array_equal(getattr(one.release, name), getattr(many.release, name)), name


def a_release_says_where_it_was_decided(case):
    """The last position that had passed, and none later than the delay allows.

    A window by time is complete before the row that shows it is taken.
    """
    by_time = "seconds" in case.given.get("window", {})
    for schema, batch in case.streams():
        engine = case.build(schema)
        engine.push(batch.take(slice(0, 1)))
        for before, row in pairwise(range(len(batch))):
            release = engine.push(batch.take(slice(row, row + 1)))
            reached = np.concatenate([release.decided, release.given_up])
            assert (reached >= batch.positions[before]).all()
            assert (reached <= batch.positions[before if by_time else row]).all()
            waited = release.given_up - release.suppressed
            waited = np.append(waited, np.repeat(release.decided, np.diff(release.starts)) - release.members)
            assert waited.max(initial=0) <= case.positions_waited
            assert len(release.decided) == len(release)
            assert len(release.given_up) == len(release.suppressed)
        release = engine.flush()
        assert {*release.decided.tolist(), *release.given_up.tolist()} == {batch.positions[-1]}


def delay_is_kept(case):
    """Whatever is refused or left out in between: positions count, not rows."""
    for schema, batch in case.streams():
        observer = case.observer(schema)
        for part in cut(batch, (1,)):
            observer.push(part)
            pending = observer.engine.pending()
            assert not len(pending) or part.positions[-1] - pending[0] < case.positions_waited


def positions_without_rows_pass_too(case):
    """Rows, then nothing but positions: what is held is decided as soon as its time in positions is over."""
    for schema, batch in case.streams(60):
        if case.positions_waited == np.inf:
            continue
        observer, last = case.observer(schema), int(batch.positions[-1])
        observer.push(batch)
        for position in range(last + 1, last + case.positions_waited + 1):
            observer.advance(position)
            pending = observer.engine.pending()
            assert not len(pending) or position - pending[0] < case.positions_waited
        observer.assert_complete()
        shift = last + case.positions_waited
        observer.push(replace(batch, positions=batch.positions + shift, times=batch.times + float(batch.times[-1])))
        observer.flush()
        observer.assert_complete()


def it_does_not_matter_who_tells_that_positions_have_passed(case):
    """The next row, or somebody before it, one by one or all at once: the same decisions."""
    for schema, batch in case.streams(90):
        gaps = replace(batch, positions=batch.positions + 25 * (np.arange(90) // 30))
        quiet, told = case.observer(schema, 3), case.observer(schema, 3)
        quiet.run(gaps, (90,))
        for part in cut(gaps, (1, 7)):
            told.expire(float(part.times[0]))
            for position in range(int(part.positions[0]) - 3, int(part.positions[0])):
                told.advance(position)
            told.push(part)
            told.advance(int(part.positions[-1]))
        told.flush()
        assert quiet.clusters() == told.clusters()


def passed_positions_survive_a_restart(case):
    for schema, batch in case.streams(60):
        observer = case.observer(schema)
        observer.push(batch)
        observer.advance(int(batch.positions[-1]) + 5)
        observer.restarted(case.build(schema, 2))
        with pytest.raises(DataError, match="positions must grow"):
            observer.engine.push(replace(batch, positions=batch.positions + 5).take(slice(59, 60)))
        if case.positions_waited < np.inf:
            observer.advance(int(batch.positions[-1]) + case.positions_waited)
            observer.assert_complete()


def an_idle_stream_is_decided_in_time(case):
    if case.seconds_waited == np.inf:
        return
    for schema, batch in case.streams(60):
        observer = case.observer(schema)
        for one, following in pairwise(cut(batch, (20,))):
            observer.push(one)
            for now in np.linspace(one.times[-1], following.times[0], 4):
                observer.expire(float(now))
                oldest = observer.rows.find(observer.engine.pending())
                assert not len(oldest) or observer.rows.times[oldest[0]] > now - case.seconds_waited
        observer.expire(float(batch.times[-1]) + case.seconds_waited)
        assert not len(observer.engine.pending())


def nothing_happens_without_rows(case):
    schema, batch = case.streams(5)[0]
    engine = case.build(schema)
    for release in (engine.push(Batch.empty(schema)), engine.expire(1e9), engine.flush()):
        assert (len(release), len(release.members), len(release.suppressed)) == (0, 0, 0)
    assert engine.needed_from() is None
    assert not len(engine.pending())
    restored = case.build(schema)
    restored.restore(engine.snapshot(), Batch.empty(schema))
    assert len(restored.push(batch)) >= 0


def a_snapshot_continues(case):
    for schema, batch in case.streams(120):
        for every in (1, 3):
            observer = case.observer(schema)
            for turn, part in enumerate(cut(batch, (11, 4, 25))):
                observer.push(part)
                if turn % every == 0:
                    observer.restarted(case.build(schema, turn))
            observer.flush()
            observer.assert_complete()


def lost_rows_are_forgotten(case):
    """A restore without the oldest rows goes on safely with the others."""
    for schema, batch in case.streams(100):
        observer = case.observer(schema)
        observer.push(batch.take(slice(0, 57)))
        snapshot, pending = observer.engine.snapshot(), observer.engine.pending()
        lost = pending[: len(pending) // 3]
        observer.rows.keep(observer.rows.positions, None)
        observer.rows._select(observer.rows.positions > (lost[-1] if len(lost) else -1))
        engine = case.build(schema, 2)
        engine.restore(snapshot, observer.rows.batch(0))
        assert np.array_equal(engine.pending(), np.setdiff1d(pending, lost))
        observer.engine = engine
        observer.push(batch.take(slice(57, 100)))
        observer.flush()
        assert set(observer.waited) >= set(observer.rows.positions[-43:].tolist())
        assert set(lost.tolist()).isdisjoint(observer.waited)


def a_flushed_stream_may_go_on(case):
    for schema, batch in case.streams(120):
        observer = case.observer(schema)
        observer.run(batch.take(slice(0, 50)))
        observer.run(batch.take(slice(50, 120)))
        observer.assert_complete()


def same_seed_gives_the_same_release(case):
    for schema, batch in case.streams(80):
        one, other = (case.observer(schema, 7).run(batch).release for _ in range(2))
        for name in vars(one):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name


def degenerate_streams_are_decided(case):
    for schema, batch in case.streams(60):
        same = np.zeros(60, np.int64)
        for odd in (
            batch.take(slice(0, 1)),
            batch.take(slice(0, 2)),
            Batch(batch.positions, batch.times, same, batch.quasi, batch.sensitive),
            Batch(batch.positions, batch.times, batch.persons, batch.quasi[same], batch.sensitive[same]),
            Batch(batch.positions, batch.times * 0, batch.persons, batch.quasi, batch.sensitive),
        ):
            case.observer(schema).run(odd).assert_complete()


def one_person_is_never_released(case):
    schema, batch = case.streams(60)[0]
    alone = Batch(batch.positions, batch.times, np.zeros(60, np.int64), batch.quasi, batch.sensitive)
    observer = case.observer(schema).run(alone)
    assert not len(observer.release.members)
    assert len(observer.release.suppressed) == 60


def positions_must_grow(case):
    schema, batch = case.streams(20)[0]
    engine = case.build(schema)
    engine.push(batch)
    with pytest.raises(DataError, match="positions must grow"):
        engine.push(batch)


def clusters_are_shuffled(case):
    """Members do not stand in the order of their positions, and ids do not count."""
    schema, batch = case.streams(300)[0]
    release = case.observer(schema).run(batch).release
    parts = np.split(release.members, release.starts[1:-1])
    assert any((np.diff(part) < 0).any() for part in parts)
    assert len(np.unique(release.ids)) > len(release) // 2
    assert release.ids.max() > 2**60


def memory_stays_flat(case):
    """All that an engine holds, as bytes, after many times as many rows as it may hold."""
    schema, batch = case.streams()[0]
    engine = case.build(schema)
    used = []
    for turn in range(8):
        shift = turn * (int(batch.positions[-1]) + 1)
        later = turn * (float(batch.times[-1]) + 1)
        engine.push(Batch(batch.positions + shift, batch.times + later, batch.persons, batch.quasi, batch.sensitive))
        used.append(_held_bytes(engine))
    assert 0 < used[-1] < 1.3 * max(used[:3])


def _held_bytes(value):
    """Bytes of the arrays below a value."""
    if isinstance(value, np.ndarray):
        return (value if value.base is None else value.base).nbytes
    if isinstance(value, Mapping):
        return sum(map(_held_bytes, value.values()))
    if isinstance(value, list | tuple | set | deque):
        return sum(map(_held_bytes, value))
    ours = type(value).__module__.startswith("stream_algos")
    return _held_bytes(vars(value)) if ours and hasattr(value, "__dict__") else 0


def infeasible_requests_name_the_nearest(case):
    schema, _ = case.streams(5)[0]
    with pytest.raises((InfeasibleError, ValidationError)):
        case.engine(schema, **{**case.given, "k": 0})


STREAM_CHECKS = (
    the_gate_agrees_and_no_row_is_lost,
    most_rows_are_released,
    batch_splits_do_not_matter,
    one_push_decides_what_pushes_by_moment_do,
    a_release_says_where_it_was_decided,
    delay_is_kept,
    positions_without_rows_pass_too,
    it_does_not_matter_who_tells_that_positions_have_passed,
    passed_positions_survive_a_restart,
    an_idle_stream_is_decided_in_time,
    nothing_happens_without_rows,
    a_snapshot_continues,
    lost_rows_are_forgotten,
    a_flushed_stream_may_go_on,
    same_seed_gives_the_same_release,
    degenerate_streams_are_decided,
    one_person_is_never_released,
    positions_must_grow,
    clusters_are_shuffled,
    memory_stays_flat,
    infeasible_requests_name_the_nearest,
)
