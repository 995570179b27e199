"""What CASTLE holds: consistent after every step, bounded, and nothing raw in a snapshot."""

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import DataError
from stream_algos import Batch
from stream_algos import _arrival_kernels as arrival
from stream_algos import _chain_kernels as chain
from stream_algos import _held_kernels as held
from stream_algos import _neighbour_kernels as blocks
from stream_algos.castle import CHUNK
from tests.stream_algos.castle_streams import MIXED, NUMBERS, Outcome, assert_safe, castle, formations, seeds, stream


def assert_ring_consistent(state: Any) -> Any:
    """Counts of held rows, persons and values are those of the rows in the ring."""
    rows = state.rows
    slots = np.flatnonzero(rows.slots[:, held.CLUSTER] != held.NONE)
    assert rows.meta[held.HELD] == len(slots)
    assert rows.meta[held.PERSONS] == len(np.unique(rows.slots[slots, held.CODE]))
    for condition in range(rows.codes.shape[1]):
        assert rows.amounts[condition] == len(np.unique(rows.codes[slots, condition]))
    return slots


def assert_clusters_consistent(state: Any, eta: Any) -> None:
    rows, clusters = state.rows, state.clusters
    slots = assert_ring_consistent(state)
    members = {place: slots[rows.slots[slots, held.CLUSTER] == place] for place in range(eta)}
    assert rows.meta[held.OPEN] == sum(len(own) > 0 for own in members.values())
    for place, own in members.items():
        here = clusters.places[place]
        assert here[arrival.SIZE] == len(own)
        if not len(own):
            continue
        assert here[arrival.PERSONS] == len(np.unique(rows.slots[own, held.CODE]))
        for condition in range(rows.codes.shape[1]):
            assert here[arrival.VALUES + condition] == len(np.unique(rows.codes[own, condition]))
        np.testing.assert_array_equal(clusters.boxes[arrival.LO, :, place], rows.quasi[own].min(axis=0))
        np.testing.assert_array_equal(clusters.boxes[arrival.HI, :, place], rows.quasi[own].max(axis=0))
        linked, slot = [], here[arrival.FIRST]
        while slot != held.NONE:
            linked.append(int(slot))
            slot = rows.slots[slot, held.AFTER]
        assert sorted(linked) == sorted(own.tolist())
        assert np.all(np.diff(rows.slots[linked, held.POSITION]) > 0)


def assert_chains_consistent(state: Any, slots: Any) -> None:
    """Every person's chain leads to all of its held rows, oldest first."""
    rows = state.rows
    for person in np.unique(rows.slots[slots, held.PERSON]):
        own = slots[rows.slots[slots, held.PERSON] == person]
        found = np.zeros(len(own), np.int64)
        assert chain.held_rows(rows, state.chains, person, found) == len(own)
        assert sorted(found) == sorted(own)
        assert np.all(np.diff(rows.slots[found, held.POSITION]) > 0)


def assert_blocks_consistent(state: Any) -> None:
    rows, index = state.rows, state.blocks
    slots = assert_ring_consistent(state)
    assert_chains_consistent(state, slots)
    assert index.counts.sum() == len(slots)
    for slot in slots:
        block, place = rows.slots[slot, [held.CLUSTER, held.AFTER]]
        assert place < index.counts[block]
        assert index.slots[block, place] == slot
        column = index.columns[block, :, place]
        assert np.all(index.boxes[blocks.LO, :, block] <= column)
        assert np.all(column <= index.boxes[blocks.HI, :, block])


@settings(max_examples=20, deadline=None)
@given(formations, seeds, st.integers(2, 6), st.booleans())
def test_the_state_is_consistent_after_every_step(formation: Any, seed: Any, k: int, share: bool) -> None:
    batch = stream(MIXED, seed, 120, persons=25, gaps=bool(seed % 2))
    more = {"max_share": 0.3} if share else {"reuse": True}
    engine = castle(MIXED, seed, formation=formation, k=k, l=2, delta=30, eta=4, **more)
    for row in range(len(batch)):
        engine.push(batch.take(slice(row, row + 1)))
        if formation == "arrival":
            assert_clusters_consistent(engine._state, 4)
        else:
            assert_blocks_consistent(engine._state)


@settings(max_examples=30, deadline=None)
@given(formations, seeds, st.lists(st.integers(1, 199), min_size=1, max_size=4, unique=True), st.booleans())
def test_restoring_at_random_points_loses_and_repeats_nothing(
    formation: Any, seed: Any, points: Any, in_order: bool
) -> None:
    batch = stream(MIXED, seed, 200, persons=70, gaps=bool(seed % 2))
    parameters = {"formation": formation, "k": 4, "l": 1 + seed % 2, "delta": 50, "reuse": bool(seed % 3), "eta": 6}
    parameters["order"] = "arrival" if in_order else "shuffled"
    engine, outcome, begin = castle(MIXED, seed, **parameters), Outcome(batch), 0
    for end in [*sorted(points), 200]:
        piece = batch.take(slice(begin, end))
        outcome.note(engine.push(piece), int(piece.positions[-1]))
        snapshot, pending = engine.snapshot(), engine.pending()
        again = batch.take(np.isin(batch.positions, pending))
        assert engine.needed_from() in (None, *pending[:1])
        old, engine = engine, castle(MIXED, seed + end, **parameters)
        engine.restore(snapshot, again)
        assert engine.pending().tolist() == pending.tolist()
        assert engine.status() == pytest.approx(old.status())
        for mine, theirs in zip(engine.reusable(), old.reusable(), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        begin = end
    outcome.note(engine.flush(), 2**62)
    assert_safe(MIXED, outcome, k=4, l=1 + seed % 2)
    decided = set()
    for release, after in zip(outcome.releases[:-1], outcome.after[:-1], strict=True):
        decided |= {*release.members.tolist(), *release.suppressed.tolist()}
        assert decided.issuperset(batch.positions[batch.positions <= after - 50].tolist())


def test_a_state_without_the_largest_share_is_still_read() -> None:
    engine = castle(NUMBERS, k=3, delta=20)
    engine.push(stream(NUMBERS, 1, 60, persons=10))
    assert engine.status()["largest_share"] > 0
    older = {name: array for name, array in engine.snapshot().items() if name != "largest_share"}
    again = castle(NUMBERS, k=3, delta=20)
    again.restore(older, Batch.empty(NUMBERS))
    assert again.status()["largest_share"] == 0


def test_take_times_survive_a_restore() -> None:
    batch = stream(NUMBERS, 1, 50)
    engine = castle(NUMBERS, k=5, delta=1000, seconds=10)
    engine.push(batch)
    later = batch.take(slice(None))
    other = castle(NUMBERS, k=5, delta=1000, seconds=10)
    other.restore(engine.snapshot(), type(batch)(*(later.positions, later.times + 1e6, *later.columns()[2:])))
    assert len(other.expire(batch.times[-1] + 10).members) == 50


def test_rows_that_are_gone_are_forgotten() -> None:
    batch = stream(NUMBERS, 1, 50)
    engine = castle(NUMBERS, k=5, delta=1000)
    engine.push(batch)
    other = castle(NUMBERS, k=5, delta=1000)
    other.restore(engine.snapshot(), batch.take(slice(10, 50)))
    assert other.pending().tolist() == batch.positions[10:].tolist()
    assert sorted(other.flush().members) == batch.positions[10:].tolist()


@pytest.mark.parametrize("formation", ["arrival", "deadline"])
def test_a_snapshot_holds_no_person_and_no_value(formation: str) -> None:
    batch = stream(MIXED, 9, 200, grid=False)
    strange = type(batch)(
        batch.positions, batch.times, batch.persons * 1_000_003 + 77_777_777, batch.quasi, batch.sensitive
    )
    engine = castle(MIXED, formation=formation, k=20, delta=150, reuse=True)
    engine.push(strange)
    snapshot = engine.snapshot()
    assert len(snapshot["positions"]) > 15
    values = strange.quasi[np.isin(strange.positions, snapshot["positions"]), 0]
    values = values[values % 1 > 0]  # whole numbers also count clusters
    for name, array in snapshot.items():
        assert not np.isin(array, strange.persons).any(), name
        assert not np.isin(array, values).any(), name
        assert array.size <= max(len(snapshot["positions"]), 500 * 3)


def test_a_snapshot_of_another_policy_is_refused() -> None:
    engine = castle(NUMBERS, formation="arrival", k=5, delta=100, eta=50)
    batch = stream(NUMBERS, 1, 90)
    engine.push(batch)
    with pytest.raises(DataError, match="more clusters than there can be"):
        castle(NUMBERS, formation="arrival", k=5, delta=100, eta=2).restore(engine.snapshot(), batch)


@pytest.mark.parametrize("formation", ["arrival", "deadline"])
def test_the_ring_grows_with_the_delay_and_not_beyond(formation: str) -> None:
    rows = 5 * CHUNK
    batch = stream(NUMBERS, 2, rows, persons=400)
    engine = castle(NUMBERS, formation=formation, k=3, delta=3 * CHUNK)
    outcome = Outcome(batch)
    outcome.note(engine.push(batch), rows)
    capacity = len(engine._state.rows.slots)
    assert 3 * CHUNK < capacity <= 8 * CHUNK
    outcome.note(engine.flush(), 2**62)
    assert_safe(NUMBERS, outcome, k=3)
    short = castle(NUMBERS, formation=formation, k=3, delta=100)
    short.push(batch)
    assert len(short._state.rows.slots) == 2 * CHUNK


@pytest.mark.slow
@pytest.mark.parametrize("formation", ["arrival", "deadline"])
def test_memory_stays_flat(formation: str) -> None:
    batch = stream(NUMBERS, 2, 2000)

    def growth() -> Any:
        engine = castle(NUMBERS, formation=formation, k=5, delta=500, reuse=True)
        traced = []
        for base in range(0, 250_000, 10_000):
            engine.push(type(batch)(batch.positions + base, *batch.columns()[1:]))
            if base in (50_000, 240_000):
                gc.collect()
                traced.append(tracemalloc.get_traced_memory()[0])
        return traced[1] - traced[0]

    tracemalloc.start()
    growth()  # the same pushes once before, so that every kernel they need is loaded
    grown = growth()
    tracemalloc.stop()
    assert grown < 200_000
