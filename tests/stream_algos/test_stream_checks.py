"""Every generic check of engines fails where an engine is wrong in that way."""

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from microdata import seeded_words, system_words
from privacy import KAnonymity
from stream_algos import DeadlineCastle, Hold, Release, checks
from stream_algos.castle import CastleParameters
from stream_algos.checks import STREAM_CHECKS, StreamCase


class Forgetful(DeadlineCastle):
    """Loses a row of every release."""

    def push(self, batch: Any) -> Any:
        return self._without_one(super().push(batch))

    def flush(self) -> Any:
        return self._without_one(super().flush())

    def _without_one(self, release: Any) -> Any:
        return release.select(np.arange(1, len(release))) if len(release) else release


class Stingy(DeadlineCastle):
    """Releases nothing."""

    def push(self, batch: Any) -> Any:
        return self._suppressed(super().push(batch))

    def advance(self, position: Any) -> Any:
        return self._suppressed(super().advance(position))

    def expire(self, now: Any) -> Any:
        return self._suppressed(super().expire(now))

    def flush(self) -> Any:
        return self._suppressed(super().flush())

    def _suppressed(self, release: Any) -> Any:
        gone = np.concatenate([release.suppressed, release.members])
        given_up = np.concatenate([release.given_up, np.repeat(release.decided, np.diff(release.starts))])
        return replace(Release.empty(release.lo.shape[1]), suppressed=gone, given_up=given_up)


class Clumsy(DeadlineCastle):
    """Drops a row of pushes of thirteen rows."""

    def push(self, batch: Any) -> Any:
        return super().push(batch.take(slice(len(batch) == 13, None)))


class Abrupt(DeadlineCastle):
    """Takes all rows of a push for as old as the first."""

    def push(self, batch: Any) -> Any:
        return super().push(replace(batch, times=np.repeat(batch.times[:1], len(batch))))


class Prophetic(DeadlineCastle):
    """Says that it has decided later than it did."""

    def _collect(self) -> Any:
        release, rows = super()._collect()
        return replace(release, decided=release.decided + 1), rows


class Slow(DeadlineCastle):
    """Promises less time than it takes."""

    class Parameters(CastleParameters):
        @property
        def hold(self) -> Any:
            return Hold(self.delta // 2, self.seconds)


class Deaf(DeadlineCastle):
    """Does not hear that positions pass."""

    def advance(self, position: Any) -> Any:
        return Release.empty(len(self.schema.quasi))


class Hasty(DeadlineCastle):
    """Takes a position that passes for the end."""

    def advance(self, position: Any) -> Any:
        return Release.concat([super().advance(position), self.flush()])


class Timeless(DeadlineCastle):
    """Does not hear the time."""

    def expire(self, now: Any) -> Any:
        return Release.empty(len(self.schema.quasi))


class Demanding(DeadlineCastle):
    """Wants rows where it holds none."""

    def needed_from(self) -> Any:
        return super().needed_from() or 0


class Forgiving(DeadlineCastle):
    """Forgets in a restart which positions have passed."""

    def restore(self, snapshot: Any, rows: Any) -> None:
        super().restore(snapshot | {"last": np.append(-1, snapshot["positions"])[-1:]}, rows)


class Amnesic(DeadlineCastle):
    """Loses the oldest row in a restart."""

    def restore(self, snapshot: Any, rows: Any) -> None:
        super().restore(snapshot, rows.take(slice(1, None)))


class Faithful(DeadlineCastle):
    """Waits for rows that are lost."""

    def restore(self, snapshot: Any, rows: Any) -> None:
        super().restore(snapshot, rows)
        self.lost = np.setdiff1d(snapshot["positions"], rows.positions)

    def pending(self) -> Any:
        return np.union1d(super().pending(), getattr(self, "lost", []))


class Final(DeadlineCastle):
    """Takes nothing after the end."""

    ended = False

    def push(self, batch: Any) -> Any:
        return Release.empty(len(self.schema.quasi)) if self.ended else super().push(batch)

    def flush(self) -> Any:
        self.ended = True
        return super().flush()


class Moody(DeadlineCastle):
    """Listens to no seed."""

    turn = count()

    def __init__(self, schema: Any, *, words: Any = system_words, **given: Any) -> None:
        del words
        super().__init__(schema, words=seeded_words(next(self.turn)), **given)


class Sociable(DeadlineCastle):
    """Forgets a row that nobody else has followed."""

    taken = 0

    def push(self, batch: Any) -> Any:
        self.taken += len(batch)
        return super().push(batch)

    def flush(self) -> Any:
        release = super().flush()
        return Release.empty(len(self.schema.quasi)) if self.taken == 1 else release


class Modest(DeadlineCastle):
    """Promises classes of one person, whatever it is asked for."""

    def models(self) -> Any:
        return (KAnonymity(1),)

    def push(self, batch: Any) -> Any:
        return super().push(replace(batch, persons=batch.positions))


class Lenient(DeadlineCastle):
    """Passes over rows that it has taken before."""

    def push(self, batch: Any) -> Any:
        new = batch.take(batch.positions > getattr(self, "seen", -1))
        self.seen = max([getattr(self, "seen", -1), *batch.positions.tolist()])
        return super().push(new)


class Sorted(DeadlineCastle):
    """Lets rows out in the order in which they came."""

    def _collect(self) -> Any:
        release, rows = super()._collect()
        order = np.lexsort((release.members, release.cluster_of()))
        return replace(release, members=release.members[order]), rows.take(order)


class Hoarder(DeadlineCastle):
    """Keeps all rows for good."""

    def push(self, batch: Any) -> Any:
        self.kept = [*getattr(self, "kept", []), np.repeat(batch.quasi, 200, axis=0)]
        return super().push(batch)


class Stubborn(DeadlineCastle):
    """Cannot be asked to decide earlier."""

    class Parameters(CastleParameters):
        def within(self, seconds: Any) -> Any:
            return self


class Greedy(DeadlineCastle):
    """Its example asks for more than its data has."""

    example = DeadlineCastle.example | {"k": 200, "delay": {"tuples": 400}}  # type: ignore[operator]


class Indifferent(DeadlineCastle):
    """Does not mind parameters that it does not know."""

    def __init__(self, schema: Any, *, words: Any = system_words, **given: Any) -> None:
        known = {"k", "l", "delay", *CastleParameters.model_fields}
        super().__init__(schema, words=words, **{name: value for name, value in given.items() if name in known})


def case(engine: Any, **given: Any) -> Any:
    return StreamCase(engine, engine.__name__, {"k": 3, "delay": {"tuples": 40, "seconds": 10.0}, **given})


BROKEN = [
    (checks.the_models_hold_and_most_rows_are_released, Forgetful),
    (checks.the_models_hold_and_most_rows_are_released, Stingy),
    (checks.batch_splits_do_not_matter, Clumsy),
    (checks.one_push_decides_what_pushes_by_moment_do, Abrupt),
    (checks.a_release_says_where_it_was_decided, Prophetic),
    (checks.delay_is_kept, Slow),
    (checks.positions_without_rows_pass_too, Deaf),
    (checks.it_does_not_matter_who_tells_that_positions_have_passed, Hasty),
    (checks.passed_positions_survive_a_restart, Forgiving),
    (checks.an_idle_stream_is_decided_in_time, Timeless),
    (checks.nothing_happens_without_rows, Demanding),
    (checks.a_snapshot_continues, Amnesic),
    (checks.lost_rows_are_forgotten, Faithful),
    (checks.a_flushed_stream_may_go_on, Final),
    (checks.same_seed_gives_the_same_release, Moody),
    (checks.degenerate_streams_are_decided, Sociable),
    (checks.one_person_is_never_released, Modest),
    (checks.positions_must_grow, Lenient),
    (checks.clusters_are_shuffled, Sorted),
    (checks.memory_stays_flat, Hoarder),
    (checks.it_says_what_it_promises, Stubborn),
    (checks.its_example_runs, Greedy),
    (checks.unknown_parameters_are_refused, Indifferent),
]


@pytest.mark.parametrize(("check", "engine"), BROKEN, ids=lambda one: one.__name__)
def test_a_check_finds_what_it_looks_for(check: Any, engine: Any) -> None:
    sound, broken = case(DeadlineCastle), case(engine)
    if check is checks.its_example_runs:  # of a variant there is nothing to run
        sound, broken = (replace(one, given=one.engine.example) for one in (sound, broken))
    check(sound)
    with pytest.raises(AssertionError):
        check(broken)


def test_every_check_is_seen_to_fail() -> None:
    assert list(dict.fromkeys(check for check, _ in BROKEN)) == list(STREAM_CHECKS)
