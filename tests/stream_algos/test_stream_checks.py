"""Every generic check of engines fails where an engine is wrong in that way."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from microdata import seeded_words
from stream_algos import Batch, DeadlineCastle, Hold, Release, checks
from stream_algos.castle import CastleParameters
from stream_algos.checks import STREAM_CHECKS, StreamCase


class Forgetful(DeadlineCastle):
    """Loses a row of every release."""

    def push(self, batch):
        return self._without_one(super().push(batch))

    def flush(self):
        return self._without_one(super().flush())

    def _without_one(self, release):
        return release.select(np.arange(1, len(release))) if len(release) else release


class Stingy(DeadlineCastle):
    """Releases nothing."""

    def push(self, batch):
        return self._suppressed(super().push(batch))

    def advance(self, position):
        return self._suppressed(super().advance(position))

    def expire(self, now):
        return self._suppressed(super().expire(now))

    def flush(self):
        return self._suppressed(super().flush())

    def _suppressed(self, release):
        gone = np.concatenate([release.suppressed, release.members])
        given_up = np.concatenate([release.given_up, np.repeat(release.decided, np.diff(release.starts))])
        return replace(Release.empty(release.lo.shape[1]), suppressed=gone, given_up=given_up)


class Slow(DeadlineCastle):
    """Promises less time than it takes."""

    class Parameters(CastleParameters):
        @property
        def hold(self):
            return Hold(self.delta // 2, self.seconds)


class Deaf(DeadlineCastle):
    """Does not hear that positions pass."""

    def advance(self, position):
        return Release.empty(len(self.schema.quasi))


class Timeless(DeadlineCastle):
    """Does not hear the time."""

    def expire(self, now):
        return Release.empty(len(self.schema.quasi))


class Amnesic(DeadlineCastle):
    """Restores nothing."""

    def restore(self, snapshot, rows):
        super().restore(snapshot | {"last": np.array([-1])}, Batch.empty(self.schema))


class Moody(DeadlineCastle):
    """Listens to no seed."""

    turn = count()

    def __init__(self, schema, *, words, **given):
        super().__init__(schema, words=seeded_words(next(self.turn)), **given)


class Sorted(DeadlineCastle):
    """Lets rows out in the order in which they came."""

    def _collect(self):
        release, rows = super()._collect()
        order = np.lexsort((release.members, release.cluster_of()))
        return replace(release, members=release.members[order]), rows.take(order)


class Hoarder(DeadlineCastle):
    """Keeps all rows for good."""

    def push(self, batch):
        self.kept = [*getattr(self, "kept", []), np.repeat(batch.quasi, 200, axis=0)]
        return super().push(batch)


class Stubborn(DeadlineCastle):
    """Cannot be asked to decide earlier."""

    class Parameters(CastleParameters):
        def within(self, seconds):
            return self


class Greedy(DeadlineCastle):
    """Its example asks for more than its data has."""

    example = DeadlineCastle.example | {"k": 200, "delay": {"tuples": 400}}


def case(engine, **given):
    return StreamCase(engine, engine.__name__, {"k": 3, "delay": {"tuples": 40, "seconds": 10.0}, **given})


@pytest.mark.parametrize(
    ("check", "engine"),
    [
        (checks.the_models_hold_and_no_row_is_lost, Forgetful),
        (checks.most_rows_are_released, Stingy),
        (checks.batch_splits_do_not_matter, Forgetful),
        (checks.a_release_says_where_it_was_decided, Slow),
        (checks.delay_is_kept, Slow),
        (checks.positions_without_rows_pass_too, Deaf),
        (checks.an_idle_stream_is_decided_in_time, Timeless),
        (checks.passed_positions_survive_a_restart, Amnesic),
        (checks.a_snapshot_continues, Amnesic),
        (checks.lost_rows_are_forgotten, Amnesic),
        (checks.same_seed_gives_the_same_release, Moody),
        (checks.clusters_are_shuffled, Sorted),
        (checks.memory_stays_flat, Hoarder),
        (checks.it_says_what_it_promises, Stubborn),
        (checks.its_example_runs, Greedy),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_check_finds_what_it_looks_for(check, engine):
    check(case(DeadlineCastle))
    assert check in STREAM_CHECKS
    with pytest.raises(AssertionError):
        check(case(engine))
