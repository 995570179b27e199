"""Generic checks: what must be true of every engine for streams, whatever it does inside.

A check takes a `StreamCase` (an engine with parameters) and raises `AssertionError` where something is wrong. The cases
of an engine are the example and the variants that it declares, so one is checked as soon as it is registered. Whoever
writes an engine outside of this repository runs them too:

>>> from stream_algos import STREAM_ALGORITHMS
>>> from stream_algos.checks import positions_must_grow, stream_cases
>>> for case in stream_cases(STREAM_ALGORITHMS["castle"]):
...     positions_must_grow(case)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from pydantic import ValidationError

from microdata import EXAMPLE_SENSITIVE, DataError, InfeasibleError, Schema, SchemaError, seeded_words
from static_algos import Entry
from stream_algos.engine import STREAM_ALGORITHMS, Batch, Engine, Hold
from stream_algos.observing import Observer, cut, example_stream, steady


@dataclass(frozen=True)
class StreamCase:
    """An engine with parameters."""

    engine: type[Engine]
    name: str
    given: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self.given.items())})"

    def build(self, schema: Schema, seed: int = 1) -> Engine:
        """The engine, with repeatable words."""
        return self.engine(schema, words=seeded_words(seed), **self.given)

    def observer(self, schema: Schema, seed: int = 1) -> Observer:
        """Somebody who watches the engine."""
        return Observer(schema, self.build(schema, seed))

    def streams(self, rows: int = 150) -> list[tuple[Schema, Batch]]:
        """One row per person or several, one sensitive attribute or two, steady or drifting; what the models take."""
        every = (
            example_stream(rows, 1, EXAMPLE_SENSITIVE[:1]),
            example_stream(rows, 2, EXAMPLE_SENSITIVE[1:], persons=rows // 4, drift=0.8),
            example_stream(rows, 3, EXAMPLE_SENSITIVE, persons=rows // 2, drift=0.3),
        )
        return [one for one in every if self._accepts(one[0])]

    def some_streams(self, rows: int) -> list[tuple[Schema, Batch]]:
        """For what does not depend on the models: all streams for the example, and the last for each of its variants.

        The last has several rows per person, drifts, and has two sensitive attributes where the models take them.
        """
        return self.streams(rows)[0 if self.given == self.engine.example else -1 :]

    def _accepts(self, schema: Schema) -> bool:
        try:
            self.build(schema)
        except (SchemaError, InfeasibleError):
            return False
        return True

    @property
    def hold(self) -> Hold:
        """How long a row may be held."""
        return self.engine.Parameters.model_validate(self.given).hold

    @property
    def positions_waited(self) -> float:
        """How many positions may pass after a row before it is decided."""
        return np.inf if self.hold.tuples is None else self.hold.tuples

    @property
    def seconds_waited(self) -> float:
        """How long a row may wait."""
        return self.hold.seconds or self.hold.window or np.inf


def stream_cases(entry: Entry[Engine]) -> list[StreamCase]:
    """What an engine declares: its example, and the example with each of its variants."""
    example = entry.algorithm.example
    given = [example, *({**example, **variant} for variant in entry.algorithm.variants)]
    return [StreamCase(entry.algorithm, entry.name, one) for one in given]


def all_stream_cases() -> list[StreamCase]:
    """The cases of every registered engine."""
    return [case for entry in STREAM_ALGORITHMS for case in stream_cases(entry)]


def _refused(call: Callable[[], object], *errors: type[Exception]) -> bool:
    try:
        call()
    except errors:
        return True
    return False


def the_models_hold_and_most_rows_are_released(case: StreamCase) -> None:
    """No row is lost. An engine that knows persons again releases most where these stay what they are."""
    for schema, batch in case.streams():
        observer = case.observer(schema).run(batch)
        observer.assert_complete()
        if case.engine.remembers:
            observer = case.observer(schema).run(steady(batch))
        assert len(observer.release.members) > 0.7 * len(batch)


def batch_splits_do_not_matter(case: StreamCase) -> None:
    """Batch splits do not matter."""
    for number, (schema, batch) in enumerate(case.some_streams(90)):
        for sizes in ((1, 13, 2), (1,), (90,))[: 1 if number else 3]:
            observer = case.observer(schema).run(batch, sizes)
            observer.assert_complete()
            assert all(type(model) in case.engine.guarantees for model in observer.engine.models())


def one_push_decides_what_pushes_by_moment_do(case: StreamCase) -> None:
    """Whoever pushes much at once gets the same decisions at the same positions, by the clock of the rows as well."""
    for number, (schema, batch) in enumerate(case.some_streams(90)):
        for times in (np.floor(batch.times), batch.times, batch.times // 15)[: 1 if number else 3]:
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


def a_release_says_where_it_was_decided(case: StreamCase) -> None:
    """The last position that had passed, and none later than the delay allows.

    A window by time is complete before the row that shows it is taken.
    """
    by_time = case.hold.window is not None and case.hold.tuples is None
    for schema, batch in case.some_streams(90):
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
        waiting = {batch.positions[-1]} if case.positions_waited else set()
        assert {*release.decided.tolist(), *release.given_up.tolist()} == waiting


def delay_is_kept(case: StreamCase) -> None:
    """Whatever is refused or left out in between: positions count, not rows."""
    for schema, batch in case.some_streams(90):
        observer = case.observer(schema)
        for part in cut(batch, (1,)):
            observer.push(part)
            pending = observer.engine.pending()
            assert not len(pending) or part.positions[-1] - pending[0] < case.positions_waited


def positions_without_rows_pass_too(case: StreamCase) -> None:
    """Rows, then nothing but positions: what is held is decided as soon as its time in positions is over."""
    for schema, batch in case.some_streams(60):
        if case.positions_waited == np.inf:
            continue
        observer, last = case.observer(schema), int(batch.positions[-1])
        observer.push(batch)
        shift = int(last + case.positions_waited)
        for position in range(last + 1, shift + 1):
            observer.advance(position)
            pending = observer.engine.pending()
            assert not len(pending) or position - pending[0] < case.positions_waited
        observer.assert_complete()
        observer.push(replace(batch, positions=batch.positions + shift, times=batch.times + float(batch.times[-1])))
        observer.flush()
        observer.assert_complete()


def it_does_not_matter_who_tells_that_positions_have_passed(case: StreamCase) -> None:
    """The next row, or somebody before it, one by one or all at once: the same decisions."""
    for schema, batch in case.some_streams(90):
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


def passed_positions_survive_a_restart(case: StreamCase) -> None:
    """Passed positions survive a restart."""
    for schema, batch in case.some_streams(60):
        observer = case.observer(schema)
        observer.push(batch)
        observer.advance(int(batch.positions[-1]) + 5)
        observer.restarted(case.build(schema, 2))
        passed = replace(batch, positions=batch.positions + 5).take(slice(59, 60))
        assert _refused(partial(observer.engine.push, passed), DataError), "a position that has passed is taken"
        if case.positions_waited < np.inf:
            observer.advance(int(batch.positions[-1] + case.positions_waited))
            observer.assert_complete()


def an_idle_stream_is_decided_in_time(case: StreamCase) -> None:
    """An idle stream is decided in time."""
    if case.seconds_waited == np.inf:
        return
    for schema, batch in case.some_streams(60):
        observer = case.observer(schema)
        for one, following in pairwise(cut(batch, (20,))):
            observer.push(one)
            for now in np.linspace(one.times[-1], following.times[0], 4):
                observer.expire(float(now))
                oldest = observer.find(observer.engine.pending())
                assert not len(oldest) or observer.rows.times[oldest[0]] > now - case.seconds_waited
        observer.expire(float(batch.times[-1]) + case.seconds_waited)
        assert not len(observer.engine.pending())


def nothing_happens_without_rows(case: StreamCase) -> None:
    """Nothing happens without rows."""
    schema, batch = case.streams(5)[0]
    engine = case.build(schema)
    for release in (engine.push(Batch.empty(schema)), engine.expire(1e9), engine.flush()):
        assert (len(release), len(release.members), len(release.suppressed)) == (0, 0, 0)
    assert engine.needed_from() is None
    assert not len(engine.pending())
    restored = case.build(schema)
    restored.restore(engine.snapshot(), Batch.empty(schema))
    assert len(restored.push(batch)) >= 0


def a_snapshot_continues(case: StreamCase) -> None:
    """A snapshot continues."""
    for schema, batch in case.some_streams(120):
        for every in (1, 3):
            observer = case.observer(schema)
            for turn, part in enumerate(cut(batch, (11, 4, 25))):
                observer.push(part)
                if turn % every == 0:
                    observer.restarted(case.build(schema, 100 + turn))
            observer.flush()
            observer.assert_complete()


def lost_rows_are_forgotten(case: StreamCase) -> None:
    """A restore without the oldest rows goes on safely with the others."""
    for schema, batch in case.some_streams(100):
        observer = case.observer(schema)
        observer.push(batch.take(slice(0, 57)))
        snapshot, pending = observer.engine.snapshot(), observer.engine.pending()
        lost = pending[: len(pending) // 3]
        observer.rows = observer.rows.take(observer.rows.positions > (lost[-1] if len(lost) else -1))
        engine = case.build(schema, 2)
        engine.restore(snapshot, observer.rows)
        assert np.array_equal(engine.pending(), np.setdiff1d(pending, lost))
        observer.engine = engine
        observer.push(batch.take(slice(57, 100)))
        observer.flush()
        assert observer.waited.keys() >= set(observer.rows.positions[-43:].tolist())
        assert observer.waited.keys().isdisjoint(lost.tolist())


def a_flushed_stream_may_go_on(case: StreamCase) -> None:
    """A flushed stream may go on."""
    for schema, batch in case.some_streams(120):
        observer = case.observer(schema)
        observer.run(batch.take(slice(0, 50)))
        observer.run(batch.take(slice(50, 120)))
        observer.assert_complete()


def same_seed_gives_the_same_release(case: StreamCase) -> None:
    """Same seed gives the same release."""
    for schema, batch in case.some_streams(80):
        one, other = (case.observer(schema, 7).run(batch).release for _ in range(2))
        for name in vars(one):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name


def degenerate_streams_are_decided(case: StreamCase) -> None:
    """Degenerate streams are decided."""
    for schema, batch in case.some_streams(60):
        same = np.zeros(60, np.int64)
        for odd in (
            batch.take(slice(0, 1)),
            batch.take(slice(0, 2)),
            Batch(batch.positions, batch.times, same, batch.quasi, batch.sensitive),
            Batch(batch.positions, batch.times, batch.persons, batch.quasi[same], batch.sensitive[same]),
            Batch(batch.positions, batch.times * 0, batch.persons, batch.quasi, batch.sensitive),
        ):
            case.observer(schema).run(odd).assert_complete()


def one_person_is_never_released(case: StreamCase) -> None:
    """One person is never released."""
    schema, batch = case.streams(60)[0]
    alone = Batch(batch.positions, batch.times, np.zeros(60, np.int64), batch.quasi, batch.sensitive)
    observer = case.observer(schema).run(alone)
    assert not len(observer.release.members)
    assert len(observer.release.suppressed) == 60


def positions_must_grow(case: StreamCase) -> None:
    """Positions must grow."""
    schema, batch = case.streams(20)[0]
    engine = case.build(schema)
    engine.push(batch)
    assert _refused(partial(engine.push, batch), DataError), "rows are taken twice"


def clusters_are_shuffled(case: StreamCase) -> None:
    """Members do not stand in the order of their positions, unless each leaves when it comes; ids do not count."""
    schema, batch = case.streams(100)[0]
    release = case.observer(schema).run(batch).release
    parts = np.split(release.members, release.starts[1:-1])
    assert not case.positions_waited or any((np.diff(part) < 0).any() for part in parts)
    fresh = release.ids[~release.reused]
    assert len(np.unique(fresh)) == len(fresh)
    assert fresh.max() > 2**60


def memory_stays_flat(case: StreamCase) -> None:
    """All that an engine holds, as bytes, after many times as many rows as it may hold."""
    schema, batch = case.streams(80)[0]
    engine = case.build(schema)
    used = []
    for turn in range(8):
        shift = turn * (int(batch.positions[-1]) + 1)
        later = turn * (float(batch.times[-1]) + 1)
        engine.push(Batch(batch.positions + shift, batch.times + later, batch.persons, batch.quasi, batch.sensitive))
        used.append(_held_bytes(engine, type(engine).__module__.partition(".")[0]))
    assert 0 < used[-1] < 1.3 * max(used[:3])


def _held_bytes(value: Any, module: str) -> int:
    """Bytes of the arrays below a value."""
    if isinstance(value, np.ndarray):
        return value.nbytes if value.base is None else _held_bytes(value.base, module)
    if isinstance(value, Mapping):
        return sum(_held_bytes(one, module) for one in value.values())
    if isinstance(value, list | tuple | set | deque):
        return sum(_held_bytes(one, module) for one in value)
    ours = type(value).__module__.startswith(("stream_algos", module))
    return _held_bytes(vars(value), module) if ours and hasattr(value, "__dict__") else 0


def it_says_what_it_promises(case: StreamCase) -> None:
    """Models are among those that it declares; a bound in seconds can be made shorter, and order taken away."""
    asked = case.engine.Parameters.model_validate(case.given)
    assert not asked.shuffled().in_order
    if asked.hold.seconds is not None:
        shorter = asked.within(asked.hold.seconds / 2)
        assert shorter.hold == replace(asked.hold, seconds=asked.hold.seconds / 2)
    for schema, _ in case.streams(5):
        models = case.build(schema).models()
        assert models, "nothing is promised"
        assert {type(model) for model in models} <= set(case.engine.guarantees), "more is promised than declared"


def its_example_runs(case: StreamCase) -> None:
    """On the data that it declares; variants have none of their own."""
    if case.given != case.engine.example:
        return
    schema, batch = case.engine.example_data()
    observer = case.observer(schema).run(batch)
    observer.assert_complete()
    assert len(observer.release.members), "nothing of the example is released"


def unknown_parameters_are_refused(case: StreamCase) -> None:
    """With an error that tells which."""
    schema, _ = case.streams(5)[0]
    given = {**case.given, "no such parameter": 1}
    assert _refused(partial(case.engine, schema, **given), InfeasibleError, ValidationError)


STREAM_CHECKS = (
    the_models_hold_and_most_rows_are_released,
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
    it_says_what_it_promises,
    its_example_runs,
    unknown_parameters_are_refused,
)
