"""What the thesis leaves open or gets wrong, each closed; and checks that fire when the code is broken on purpose."""

from typing import Any

import numpy as np
import pytest

from microdata import GuaranteeError, Number, Schema
from stream_algos import Batch, Castle, Release
from tests.stream_algos.castle_streams import MIXED, NUMBERS, assert_safe, castle, feed, stream

ONE = Schema("p", (Number("v", 0, 100),))


def batch(*rows: Any) -> Any:
    positions, persons, values = zip(*rows, strict=True)
    return Batch(
        np.array(positions),
        np.zeros(len(rows)),
        np.array(persons),
        np.array(values, float)[:, None],
        np.empty((len(rows), 0), np.int32),
    )


@pytest.mark.parametrize("formation", ["arrival", "deadline"])
def test_a_person_in_two_clusters_counts_once_when_a_class_is_looked_for(formation: str) -> None:
    """5.6, line 10: C1 = {a}, C2 = {a, b} sum up to 3, but the union has 2 persons."""
    engine = castle(ONE, formation=formation, k=3, delta=3, eta=2)
    release = engine.push(batch((1, 1, 10), (2, 1, 80), (3, 2, 80), (4, 2, 80)))
    assert not len(release)
    assert release.suppressed.tolist() == [1]


def test_a_cluster_shrinks_when_its_row_is_suppressed() -> None:
    """5.6, lines 8 and 11: ranges stay minimal after a removal, so the box does not reach to the row that is gone."""
    engine = castle(ONE, formation="arrival", k=3, delta=3, eta=1)
    release = engine.push(batch((1, 1, 0), (2, 2, 50), (3, 2, 51), (4, 2, 52), (5, 3, 53), (6, 4, 54)))
    assert release.suppressed.tolist() == [1, 2]
    assert sorted(release.members) == [3, 4, 5, 6]
    assert (release.lo[0, 0], release.hi[0, 0]) == (51, 54)


def test_no_cluster_stays_empty() -> None:
    engine = castle(ONE, formation="arrival", k=3, delta=2, eta=5)
    engine.push(batch((1, 1, 0), (2, 2, 90)))
    assert engine.status()["open_clusters"] == 2
    engine.push(batch((10, 1, 50)))
    assert engine.status()["open_clusters"] == 1
    assert engine.status()["held_rows"] == 1


def test_gaps_in_positions_expire_everything_that_is_due() -> None:
    engine = castle(ONE, formation="arrival", k=2, delta=5, eta=1)
    engine.push(batch((1, 1, 0), (3, 2, 1), (4, 1, 2)))
    release = engine.push(batch((1000, 5, 3)))
    assert sorted([*release.members, *release.suppressed]) in ([1, 3, 4], [1, 3, 4, 1000])


@pytest.mark.parametrize("formation", ["arrival", "deadline"])
def test_splits_keep_every_value_although_shares_are_fractions(formation: str) -> None:
    """5.11: rounding a small bucket's share down would lose its value."""
    for seed in range(25):
        rows = stream(MIXED, seed, 160, persons=None)
        skewed = rows.sensitive.copy()
        skewed[:, 0] = np.where(np.arange(160) % 9 == 0, 1 + np.arange(160) // 9 % 3, 0)
        skewed[:, 1] = np.arange(160) % 5
        data = Batch(rows.positions, rows.times, rows.persons, rows.quasi, skewed)
        outcome = feed(castle(MIXED, seed, formation=formation, k=5, l=3, delta=150, eta=1), data)
        assert_safe(MIXED, outcome, k=5, l=3)
        assert len(list(outcome.clusters())) > 1


def test_a_cluster_whose_one_row_per_person_lacks_values_is_released_whole() -> None:
    """5.11: generateBuckets may leave fewer than ℓ values although the cluster has them."""
    rows = stream(MIXED, 3, 60, persons=20)
    only = rows.sensitive.copy()
    only[:] = 0
    only[rows.persons == rows.persons[0]] = 1
    only[np.flatnonzero(rows.persons == rows.persons[0])[0]] = 0
    data = Batch(rows.positions, rows.times, rows.persons, rows.quasi, only)
    for seed in range(20):
        outcome = feed(castle(MIXED, seed, formation="arrival", k=5, l=2, delta=59, eta=1), data)
        assert_safe(MIXED, outcome, k=5, l=2)
        assert not outcome.suppressed()


@pytest.mark.parametrize("formation", ["arrival", "deadline"])
def test_values_of_a_member_help_when_nobody_else_has_them(formation: str) -> None:
    rows = stream(MIXED, 3, 20)
    persons = np.arange(20) % 10
    sensitive = np.zeros((20, 2), np.int32)
    sensitive[persons == 0] = [[0, 0], [1, 1]]
    data = Batch(rows.positions, rows.times, persons, rows.quasi, sensitive)
    outcome = feed(castle(MIXED, formation=formation, k=10, l=2, delta=1000), data)
    assert_safe(MIXED, outcome, k=10, l=2)
    assert len(outcome.suppressed()) < 20


@pytest.mark.parametrize("formation", ["arrival", "deadline"])
def test_a_release_below_k_is_never_returned(formation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = castle(NUMBERS, formation=formation, k=5, delta=50)
    engine._rules = engine._rules._replace(k=4)
    with pytest.raises(GuaranteeError, match="k-anonymity"):
        feed(engine, stream(NUMBERS, 1, 300, persons=12))


def test_a_release_that_counts_rows_as_persons_is_never_returned() -> None:
    engine = castle(NUMBERS, k=5, delta=50)
    rows = stream(NUMBERS, 1, 200, persons=3)
    collect = engine._collect

    def forget_persons() -> Any:
        release, released = collect()
        return release, Batch(*(*released.columns()[:2], np.zeros(len(released), np.int64), *released.columns()[3:]))

    engine._collect = forget_persons
    with pytest.raises(GuaranteeError):
        feed(engine, stream(NUMBERS, 1, 200))
    assert rows.persons.size


def test_a_release_without_its_values_is_never_returned() -> None:
    engine = castle(MIXED, k=3, l=4, delta=50)
    engine._packed.needs[:] = 1
    with pytest.raises(GuaranteeError, match="l-diversity"):
        feed(engine, stream(MIXED, 1, 200))


def test_a_box_that_misses_a_row_is_never_returned() -> None:
    engine = castle(NUMBERS, k=3, delta=50)
    collect = engine._collect

    def shift() -> Any:
        release, rows = collect()
        release.lo[:, 0] += 1
        return release, rows

    engine._collect = shift
    with pytest.raises(GuaranteeError, match="cover"):
        feed(engine, stream(NUMBERS, 1, 200))


def test_a_reuse_of_an_unknown_box_is_never_returned() -> None:
    engine = castle(NUMBERS, formation="arrival", k=3, delta=20, reuse=True)
    rows = stream(NUMBERS, 1, 400)
    collect = engine._collect

    def mark() -> Any:
        release, released = collect()
        return Release(**{**vars(release), "reused": np.ones(len(release), bool)}), released

    engine._collect = mark
    with pytest.raises(GuaranteeError, match="never published"):
        feed(engine, rows)


def test_randomness_comes_from_the_operating_system_unless_a_test_says_otherwise() -> None:
    assert Castle(NUMBERS, k=2, delta=5).words.__name__ == "system_words"
