"""CASTLE's guarantee, delay and parameters over random streams, policies and batch splits."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from microdata import Boxes, DataError, InfeasibleError, class_loss
from privacy import DistinctDiversity, KAnonymity, MaxShare, PPlusSensitivity
from stream_algos import STREAM_ALGORITHMS, Batch, Castle
from tests.stream_algos.castle_streams import (
    MIXED,
    NUMBERS,
    SCHEMAS,
    assert_safe,
    castle,
    feed,
    formations,
    seeds,
    stream,
)

cuts = st.lists(st.integers(0, 200), max_size=6)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(list(SCHEMAS)), formations, seeds, st.integers(1, 8), st.integers(8, 80), st.booleans(), cuts)
def test_every_row_leaves_once_in_time_and_safe(
    name: Any, formation: Any, seed: Any, k: int, delta: int, reuse: bool, where: Any
) -> None:
    schema, repeating = SCHEMAS[name], seed % 3
    l = 1 + seed % 2 if schema.sensitive else 1  # noqa: E741
    batch = stream(schema, seed, 200, persons=[None, 30, 5][repeating], gaps=bool(seed % 5), fixed_quasi=seed % 7 == 0)
    engine = castle(schema, seed, formation=formation, k=k, l=l, delta=delta, reuse=reuse, eta=4, reuse_bound=5)
    outcome = feed(engine, batch, where)
    assert_safe(schema, outcome, k=k, l=l)
    decided = set()
    for release, after in zip(outcome.releases, outcome.after, strict=True):
        decided |= {*release.members.tolist(), *release.suppressed.tolist()}
        due = batch.positions[batch.positions <= after - delta] if after < 2**62 else batch.positions
        assert decided.issuperset(due.tolist())
    assert len(engine.pending()) == 0
    assert engine.needed_from() is None


@settings(max_examples=20, deadline=None)
@given(formations, seeds, st.sampled_from([0.1, 0.25, 0.6]), cuts)
def test_no_person_has_more_than_its_share(formation: Any, seed: Any, share: Any, where: Any) -> None:
    batch = stream(MIXED, seed, 200, persons=9)
    engine = castle(MIXED, seed, formation=formation, k=4, l=1 + seed % 3, delta=60, max_share=share)
    assert_safe(MIXED, feed(engine, batch, where), k=4, l=1 + seed % 3, max_share=share)
    assert MaxShare(share) in engine.models()


@settings(max_examples=20, deadline=None)
@given(formations, seeds, cuts)
def test_one_push_of_n_is_n_pushes_of_one(formation: Any, seed: Any, where: Any) -> None:
    batch = stream(NUMBERS, seed, 200, persons=60)
    parameters = {"formation": formation, "k": 4, "delta": 50, "reuse": True}
    whole = feed(castle(NUMBERS, seed, **parameters), batch)
    pieces = feed(castle(NUMBERS, seed, **parameters), batch, where)
    single = feed(castle(NUMBERS, seed, **parameters), batch, range(200))
    assert list(whole.clusters()) == list(pieces.clusters()) == list(single.clusters())
    assert whole.suppressed() == pieces.suppressed() == single.suppressed()


@settings(max_examples=15, deadline=None)
@given(formations, seeds)
def test_bounds_and_tau(formation: Any, seed: Any) -> None:
    batch = stream(NUMBERS, seed, 300)
    engine = castle(NUMBERS, seed, formation=formation, k=3, delta=30, eta=6, mu=5, reuse=True, reuse_bound=3)
    losses = []
    assert engine.status()["tau"] == 0
    for row in range(len(batch)):
        release = engine.push(batch.take(slice(row, row + 1)))
        new = ~release.reused
        losses += class_loss(Boxes(NUMBERS, release.lo[new], release.hi[new])).tolist()
        status = engine.status()
        assert status["open_clusters"] <= 6
        assert status["reusable_boxes"] <= 3
        assert status["held_rows"] <= 31
        assert status["tau"] == pytest.approx(np.mean(losses[-5:]) if losses else 0)


@settings(max_examples=20, deadline=None)
@given(formations, seeds, cuts)
def test_order_preserving_output(formation: Any, seed: Any, where: Any) -> None:
    batch = stream(NUMBERS, seed, 200, persons=80, gaps=bool(seed % 2))
    engine = castle(NUMBERS, seed, formation=formation, k=4, delta=40, order="arrival", reuse=seed % 3 == 0)
    outcome = feed(engine, batch, where)
    positions = [position for release in outcome.releases for position in release.members.tolist()]
    assert positions == sorted(positions)
    assert sorted(positions + outcome.suppressed()) == batch.positions.tolist()
    out = set()
    for release, after in zip(outcome.releases, outcome.after, strict=True):
        out |= {*release.members.tolist(), *release.suppressed.tolist()}
        assert out.issuperset(batch.positions[batch.positions <= min(after, 2**60) - 40].tolist())
        assert (np.diff(release.starts) == 1).all()


@pytest.mark.parametrize("formation", ["arrival", "deadline"])
def test_rows_expire_by_the_clock(formation: str) -> None:
    batch = stream(NUMBERS, 5, 100)
    engine = castle(NUMBERS, formation=formation, k=10, delay={"tuples": 1000, "seconds": 3})
    for row in range(len(batch)):
        assert not len(engine.push(batch.take(slice(row, row + 1))))
    assert not len(engine.expire(2.9).members)
    late = batch.positions[batch.times <= 5.0]
    release = engine.expire(8.0)
    assert {*release.members.tolist(), *release.suppressed.tolist()} >= {*late.tolist()}
    assert np.diff(release.starts).min() >= 10
    assert not len(engine.expire(8.0).members)
    rest = engine.expire(1e9)
    everything = [*release.members, *release.suppressed, *rest.members, *rest.suppressed]
    assert sorted(everything) == batch.positions.tolist()


def test_without_a_time_bound_nothing_expires() -> None:
    engine = castle(NUMBERS, k=2, delta=1000)
    engine.push(stream(NUMBERS, 5, 50))
    assert not len(engine.expire(1e18).members)


@pytest.mark.parametrize("formation", ["arrival", "deadline"])
def test_a_clock_that_goes_back_makes_nothing_late(formation: str) -> None:
    batch = stream(NUMBERS, 5, 40)
    times = np.full(40, 100.0)
    times[20] = 1.0
    engine = castle(NUMBERS, formation=formation, k=5, delta=1000, seconds=10)
    pushed = Batch(batch.positions, times, batch.persons, batch.quasi, batch.sensitive)
    for part in (slice(0, 20), slice(20, 21), slice(21, 40)):
        assert not len(engine.push(pushed.take(part)))
    release = engine.expire(11.0)
    assert batch.positions[20] in [*release.members, *release.suppressed]


@pytest.mark.parametrize("formation", ["arrival", "deadline"])
@pytest.mark.parametrize("rows", [0, 1, 4, 5])
def test_short_streams(formation: str, rows: int) -> None:
    batch = stream(NUMBERS, 1, rows)
    outcome = feed(castle(NUMBERS, formation=formation, k=5, delta=10), batch)
    assert len(outcome.suppressed()) == (rows if rows < 5 else 0)


@pytest.mark.parametrize("formation", ["arrival", "deadline"])
def test_equal_rows_lose_nothing(formation: str) -> None:
    batch = stream(NUMBERS, 1, 300)
    equal = Batch(batch.positions, batch.times, batch.persons, np.tile(batch.quasi[:1], (300, 1)), batch.sensitive)
    outcome = feed(castle(NUMBERS, formation=formation, k=5, delta=50, reuse=True), equal)
    assert not outcome.suppressed()
    assert all(lo == hi for _, _, lo, hi, _ in outcome.clusters())


@pytest.mark.parametrize("formation", ["arrival", "deadline"])
def test_one_person_alone_is_never_released(formation: str) -> None:
    batch = stream(NUMBERS, 1, 200, persons=1)
    outcome = feed(castle(NUMBERS, formation=formation, k=2, delta=50), batch)
    assert outcome.suppressed() == batch.positions.tolist()


@settings(max_examples=15, deadline=None)
@given(formations, seeds)
def test_sensitive_values_do_not_touch_decisions_for_k_alone(formation: Any, seed: Any) -> None:
    batch = stream(MIXED, seed, 200, persons=80)
    shuffled = batch.sensitive[np.random.default_rng(seed).permutation(200)]
    other = Batch(batch.positions, batch.times + 7, batch.persons, batch.quasi, shuffled)
    parameters = {"formation": formation, "k": 5, "delta": 60, "reuse": bool(seed % 2)}
    one = feed(castle(MIXED, seed, **parameters), batch)
    two = feed(castle(MIXED, seed, **parameters), other)
    assert list(one.clusters()) == list(two.clusters())
    assert one.suppressed() == two.suppressed()


def test_the_input_is_not_modified() -> None:
    batch = stream(MIXED, 4, 100)
    copies = [column.copy() for column in batch.columns()]
    for column in batch.columns():
        column.setflags(write=False)
    feed(castle(MIXED, k=3, l=2, delta=20), batch)
    assert all(np.array_equal(a, b) for a, b in zip(copies, batch.columns(), strict=True))


def test_a_stricter_k_has_an_effect() -> None:
    batch = stream(NUMBERS, 8, 400)
    for formation in ("arrival", "deadline"):
        sizes = [
            min(
                len(members)
                for _, members, *_ in feed(castle(NUMBERS, formation=formation, k=k, delta=100), batch).clusters()
            )
            for k in (2, 20)
        ]
        assert sizes[0] < 20 <= sizes[1]


def test_the_catalogue_knows_castle() -> None:
    entry = STREAM_ALGORITHMS["castle"]
    assert entry.algorithm is Castle
    assert entry.summary.startswith("Clusters of at least k persons")
    schema = entry.parameters.model_json_schema()
    assert {"k", "l", "delay", "formation", "reuse", "eta", "mu", "max_share", "order"} <= schema["properties"].keys()
    assert {KAnonymity, DistinctDiversity, MaxShare, PPlusSensitivity} <= set(Castle.guarantees)


@pytest.mark.parametrize(
    ("given", "parameter", "nearest"),
    [
        ({"k": 10, "delta": 8}, "delay", 9),
        ({"k": 10, "delta": 50, "l": 6}, "l", 5),
        ({"k": 2, "delta": 50, "reuse": True, "max_share": 0.5}, "reuse", "false"),
    ],
)
def test_infeasible_requests_are_refused_with_the_nearest_value(given: Any, parameter: str, nearest: Any) -> None:
    with pytest.raises(InfeasibleError) as error:
        castle(MIXED, **given)
    assert (error.value.parameter, error.value.nearest) == (parameter, nearest)


def test_diversity_needs_a_sensitive_attribute() -> None:
    with pytest.raises(InfeasibleError, match="nothing is sensitive"):
        castle(NUMBERS, k=2, l=2, delta=10)


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0, "delta": 5},
        {"k": 2},
        {"k": 2, "delta": 0},
        {"k": 2, "delta": 5, "eta": 0},
        {"k": 2, "delta": 5, "mu": 0},
        {"k": 2, "delta": 5, "seconds": 0},
        {"k": 2, "delta": 5, "max_share": 0},
        {"k": 2, "delta": 5, "delay": {"tuples": 5}},
        {"k": 2, "delta": 5, "unknown": 1},
    ],
)
def test_wrong_parameters_are_refused(wrong: Any) -> None:
    with pytest.raises((ValidationError, InfeasibleError)):
        castle(NUMBERS, **wrong)


def test_the_delay_may_be_given_either_way() -> None:
    flat = castle(NUMBERS, k=2, delta=5, seconds=3).parameters
    nested = castle(NUMBERS, k=2, delay={"tuples": 5, "seconds": 3}).parameters
    assert flat == nested
    assert (flat.delta, flat.seconds) == (5, 3)


def test_positions_must_grow() -> None:
    batch = stream(NUMBERS, 1, 10)
    engine = castle(NUMBERS, k=2, delta=50)
    engine.push(batch)
    with pytest.raises(DataError, match="positions must grow"):
        engine.push(batch.take(slice(9, 10)))
    with pytest.raises(DataError, match="positions must grow"):
        castle(NUMBERS, k=2, delta=50).push(batch.take(np.array([1, 0])))
