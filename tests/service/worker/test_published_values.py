"""Which values left with which box: enough for the gate to go on, and no more."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from microdata import Category, Hierarchy, Number, Schema
from privacy import DistinctDiversity, Lineages
from service.worker.published_values import PublishedValues
from stream_algos import Release

SCHEMA = Schema("person", (Number("age", 0, 99),), (Category("illness", Hierarchy.flat(["flu", "ulcer", "gout"])),))
FLU, ULCER, GOUT = range(3)


def leave(published: PublishedValues, box: int, before: int, *codes: int) -> int:
    """Rows with these codes leave, each in a cluster of its own; how many entries that takes."""
    size = published.sizes()["published"]
    clusters = clusters_of(np.full(len(codes), box), np.full(len(codes), before))
    published.add(clusters, np.array(codes, np.int32)[:, np.newaxis])
    return published.sizes()["published"] - size


def clusters_of(ids: NDArray[np.int64], parents: NDArray[np.int64]) -> Release:
    """One row each."""
    count, nothing = len(ids), np.empty(0, np.int64)
    return Release(
        ids=ids.astype(np.uint64),
        lo=np.zeros((count, 1)),
        hi=np.ones((count, 1)),
        starts=np.arange(count + 1),
        members=np.arange(count),
        reused=np.zeros(count, bool),
        windows=np.full((count, 2), -1),
        suppressed=nothing,
        decided=np.zeros(count, np.int64),
        given_up=nothing,
        company=np.full(count, 9),
        parents=parents.astype(np.uint64),
    )


def test_values_are_kept_of_what_left_first_and_then_none() -> None:
    published = PublishedValues(SCHEMA)
    assert leave(published, 7, 0, FLU, GOUT, FLU) == 2
    assert leave(published, 7, 0, ULCER, GOUT) == 0
    assert leave(published, 8, 7, ULCER, GOUT, FLU) == 1  # says what it comes after
    assert leave(published, 8, 7, FLU) == 0
    assert leave(published, 9, 8, GOUT) == 1
    assert leave(published, 11, 10, GOUT, FLU) == 2  # nothing left with 10


def test_boxes_with_ids_that_hardly_differ_are_told_apart() -> None:
    published, large = PublishedValues(SCHEMA), 2**62
    assert [leave(published, large + turn, 0, FLU) for turn in range(50)] == [1] * 50
    assert [leave(published, large + turn, 0, FLU) for turn in range(50)] == [0] * 50


def test_what_left_takes_no_memory_again() -> None:
    published, boxes = PublishedValues(SCHEMA), np.arange(1, 5_001)
    for turn in range(20):
        published.add(clusters_of(boxes, 0 * boxes), np.full((len(boxes), 1), turn % 3, np.int32))
    assert published.sizes() == {"published": len(boxes)}
    assert published._left.room < 2 * len(boxes)


@given(st.integers(0, 2**32))
def test_after_a_restart_what_left_is_enough_for_all_that_comes_after_it(seed: int) -> None:
    random, published, asked = np.random.default_rng(seed), PublishedValues(SCHEMA), DistinctDiversity(2)
    gate = Lineages(SCHEMA)
    parents: dict[int, int] = {}
    for _ in range(6):
        # A box comes after one that left, or after none.
        left = np.unique(published.entries("published", np.arange(published.sizes()["published"]))["ids"][:, 0])
        for box in random.integers(1, 12, random.integers(1, 9)).tolist():
            parents.setdefault(box, int(random.choice([0, *left.tolist()])))
        ids = random.choice(list(parents), random.integers(1, 20))
        clusters = clusters_of(ids, np.array([parents[one] for one in ids.tolist()]))
        codes = random.integers(0, 3, (len(ids), 1)).astype(np.int32)
        gate.add(clusters.ids, clusters.parents, np.arange(len(ids)), codes)
        passed = asked.holds(gate.groups(clusters.ids, clusters.company, clusters.company))
        gate.take_back(clusters.ids, np.flatnonzero(~passed), codes[~passed])
        # Its values may have been what others passed with: only who passes without them leaves.
        passed &= asked.holds(gate.groups(clusters.ids, clusters.company, clusters.company))
        gate.hold(clusters.ids[passed])
        published.add(clusters.select(passed), codes[passed])
        again, restarted = PublishedValues(SCHEMA), Lineages(SCHEMA)
        own, before, values = again.recall(published.entries("published", np.arange(published.sizes()["published"])))
        restarted.add(own, before, np.arange(len(own)), values)
        some, nine = np.unique(own), np.full(len(np.unique(own)), 9)
        assert asked.holds(restarted.groups(some, nine, nine)).all()
