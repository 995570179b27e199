"""People who act in bursts: their waiting rows leave together, within the guarantee and the delay."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from load_tests.generators import bursts
from microdata import Boxes, class_loss
from stream_algos import Batch
from tests.stream_algos.castle_streams import (
    MIXED,
    NUMBERS,
    SCHEMAS,
    STEPPED,
    Outcome,
    assert_safe,
    castle,
    feed,
    seeds,
    stream,
)

QUASI = ("age", "occupation", "marital-status", "education-num")


def in_bursts(schema: Any, seed: Any, rows: Any, *, fixed: bool = True) -> Any:
    """Few persons, one after the other, who each have many rows in a row."""
    batch = stream(schema, seed, rows, persons=max(2, rows // 12), fixed_quasi=fixed)
    order = np.argsort(batch.persons + np.random.default_rng(seed).normal(0, 4 * 7919, rows), kind="stable")
    some = batch.take(order)
    return Batch(batch.positions, batch.times, some.persons, some.quasi, some.sensitive)


def loss_with_suppressed(schema: Any, outcome: Any) -> Any:
    lost = sum(class_loss(Boxes(schema, r.lo, r.hi)) @ np.diff(r.starts) for r in outcome.releases)
    return (lost + len(outcome.suppressed())) / len(outcome.batch)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(list(SCHEMAS)), seeds, st.integers(2, 6), st.integers(10, 60), st.booleans(), st.booleans())
def test_no_waiting_row_inside_the_box_of_its_person_stays_behind(
    name: Any, seed: Any, k: int, delta: int, fixed: bool, reuse: bool
) -> None:
    schema = SCHEMAS[name]
    batch = in_bursts(schema, seed, 160, fixed=fixed)
    engine = castle(schema, seed, k=k, l=1 + seed % 2 if schema.sensitive else 1, delta=delta, reuse=reuse)
    index, held = {int(p): row for row, p in enumerate(batch.positions)}, set()
    for row in range(len(batch)):
        held.add(int(batch.positions[row]))
        release = engine.push(batch.take(slice(row, row + 1)))
        for c in range(len(release)):
            members = release.members[release.starts[c] : release.starts[c + 1]].tolist()
            held -= {*members}
            if not release.reused[c]:
                persons = {int(batch.persons[index[m]]) for m in members}
                waiting = [index[p] for p in held if int(batch.persons[index[p]]) in persons]
                box = Boxes(schema, release.lo[[c]], release.hi[[c]])
                assert not box.cover(batch.quasi[waiting], np.zeros(len(waiting), int)).any()
        held -= {*release.suppressed.tolist()}
    assert held == {*engine.pending().tolist()}


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(2, 6), st.integers(10, 80), st.sampled_from([None, 0.2, 0.5]))
def test_guarantee_share_and_delay_hold_in_bursts(seed: Any, k: int, delta: int, share: Any) -> None:
    batch, l = in_bursts(MIXED, seed, 200, fixed=bool(seed % 2)), 1 + seed % 3  # noqa: E741
    engine = castle(MIXED, seed, k=k, l=l, delta=delta, max_share=share)
    outcome = feed(engine, batch, range(0, 200, 7))
    assert_safe(MIXED, outcome, k=k, l=l, max_share=share)
    shares = [
        np.unique(batch.persons[np.isin(batch.positions, m)], return_counts=True)[1].max() / len(m)
        for m, _, _ in outcome.new_clusters()
    ]
    assert engine.status()["largest_share"] == pytest.approx(max(shares, default=0))
    decided = set()
    for release, after in zip(outcome.releases[:-1], outcome.after, strict=False):
        decided |= {*release.members.tolist(), *release.suppressed.tolist()}
        assert decided.issuperset(batch.positions[batch.positions <= after - delta].tolist())


@settings(max_examples=15, deadline=None)
@given(seeds, st.integers(1, 159), st.sampled_from([NUMBERS, STEPPED]))
def test_restoring_in_the_middle_of_a_burst_loses_and_repeats_nothing_and_always_gives_the_same(
    seed: Any, cut: int, schema: Any
) -> None:
    """Rarity is measured anew, so the classes may differ from those of an engine that went on."""
    batch = in_bursts(schema, seed, 160)
    stopped = castle(schema, seed, k=4, delta=40)
    outcome = feed(stopped, batch.take(slice(0, cut)), flush=False)
    waiting = batch.take(np.isin(batch.positions, stopped.pending()))
    ends = []
    for _ in range(2):
        engine = castle(schema, seed + 1, k=4, delta=40)  # other words, as cluster ids are drawn from them
        engine.restore(stopped.snapshot(), waiting)
        ends.append(feed(engine, batch.take(slice(cut, None))))
    assert list(ends[0].clusters()) == list(ends[1].clusters())
    assert ends[0].suppressed() == ends[1].suppressed()
    whole = Outcome(batch, [*outcome.releases, *ends[0].releases])
    assert_safe(schema, whole, k=4)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("k", "delta"), [(10, 1000), (5, 300)])
def test_bursts_lose_at_most_what_formation_on_arrival_loses(k: int, delta: int, seed: Any) -> None:
    """Suppressed rows counted as lost altogether; before, a third of all rows was suppressed."""
    table = bursts(0.7, QUASI).table(100_000, seed)
    positions = np.arange(len(table))
    batch = Batch(positions, positions * 1e-3, table.persons, table.quasi, table.sensitive)  # type: ignore[arg-type]
    ours, thesis = (
        feed(castle(table.schema, 1, formation=formation, k=k, delta=delta), batch)
        for formation in ("deadline", "arrival")
    )
    assert loss_with_suppressed(table.schema, ours) <= loss_with_suppressed(table.schema, thesis)
    assert len(ours.suppressed()) < 15_000
