"""Somebody who sees all output and knows every quasi-identifier learns nobody's row."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from microdata import Category, Hierarchy, Number, Schema, seeded_words
from stream_algos import Batch
from stream_algos import _release_kernels as kernels
from tests.stream_algos.castle_streams import MIXED, NUMBERS, castle, feed, formations, seeds, stream


@settings(max_examples=20, deadline=None)
@given(formations, seeds)
def test_a_released_row_fits_at_least_k_persons(formation: Any, seed: Any) -> None:
    """The attacker's candidates for a row of a class: persons with an input row inside the box that was released."""
    k = 3 + seed % 4
    batch = stream(MIXED, seed, 250, persons=100, fixed_quasi=bool(seed % 2))
    engine = castle(MIXED, seed, formation=formation, k=k, delta=80, reuse=bool(seed % 3), reuse_bound=10)
    outcome = feed(engine, batch)
    classes, lo, hi = outcome.classes()
    released = np.flatnonzero(classes >= 0)
    for number in range(len(lo)):
        inside = ((lo[number] <= batch.quasi) & (batch.quasi <= hi[number])).all(axis=1)
        in_class = released[classes[released] == number]
        assert len(np.unique(batch.persons[inside])) >= k
        # Who is in the class is hidden among those who are in it: at least k persons, none of them told apart.
        assert len(np.unique(batch.persons[in_class])) >= k


EDUCATION = Hierarchy.from_mapping(
    {"Any": {"School": ["Primary School", "Secondary School"], "University": ["Bachelor", "Master", "Ph.D."]}}
)
SCHEMA = Schema("pid", (Number("age", 18, 120), Category("education", EDUCATION)))
C2 = np.array([26.0, 2.0]), np.array([28.0, 4.0])
C3 = np.array([24.0, 2.0]), np.array([27.0, 4.0])


def observed(rule: Any, person: Any, seed: Any) -> Any:
    """Which of the boxes C2 and C3 an expiring row is released with: 2, 3 or None."""
    covering = [number for number, (lo, hi) in ((2, C2), (3, C3)) if np.all((lo <= person) & (person <= hi))]
    return rule(covering, np.random.default_rng(seed)) if covering else None


def lowest_loss(covering: Any, random: Any) -> Any:
    return min(covering)  # IL(C2) = 0.3098 < IL(C3) = 0.3147


def drawn(covering: Any, random: Any) -> Any:
    """The engine's own kernel."""
    published = kernels.new_published(10, 2, 5)
    for number, box in ((2, C2), (3, C3)):
        kernels.keep(published, np.uint64(number), *box)
    out = kernels.new_output(8, 2)._replace(words=random.integers(0, 2**64, 4, dtype=np.uint64))
    row = {(2,): C2[1], (3,): C3[0], (2, 3): np.array([26.0, 3.0])}[tuple(covering)]
    box = kernels.draw(published, out, row, np.zeros(10, np.int64))  # type: ignore[assignment]
    return int(published.ids[box])


@pytest.mark.parametrize(("rule", "leaks"), [(lowest_loss, True), (drawn, False)])
def test_examples_5_5_to_5_7_the_lowest_loss_tells_where_a_row_is_not(rule: Any, leaks: bool) -> None:
    people = {"P1": (24, 2), "P2": (25, 3), "P3": (26, 2), "P4": (27, 3)}
    could_be_c3 = {
        name for name, person in people.items() if any(observed(rule, np.array(person), s) == 3 for s in range(60))
    }
    # k = 4: whoever sees a row released with C3 must still think of all four.
    assert could_be_c3 == ({"P1", "P2"} if leaks else set(people))


def test_example_5_4_and_5_6_a_row_in_the_overlap_is_seen_with_either_box_equally_often() -> None:
    seen = [observed(drawn, np.array([26.0, 3.0]), seed) for seed in range(2000)]
    assert 0.46 < np.mean(np.array(seen) == 2) < 0.54


def test_identical_boxes_count_once_in_the_draw() -> None:
    published = kernels.new_published(10, 2, 5)
    for number in (7, 8, 9):
        kernels.keep(published, np.uint64(number), *C2)
    kernels.keep(published, np.uint64(3), *C3)
    assert published.meta[kernels.KEPT] == 2
    words = seeded_words(1)
    ids = []
    for _ in range(1000):
        out = kernels.new_output(8, 2)._replace(words=words(4))
        box = kernels.draw(published, out, np.array([26.0, 3.0]), np.zeros(10, np.int64))
        ids.append(int(published.ids[box]))
    assert set(ids) == {3, 7}
    assert 0.45 < np.mean(np.array(ids) == 7) < 0.55


@pytest.mark.parametrize("formation", ["arrival", "deadline"])
def test_in_the_whole_engine_overlapping_boxes_are_drawn_evenly(formation: str) -> None:
    """Over many seeds, the same expiring row gets each of the boxes that cover it about equally often."""
    random = np.random.default_rng(0)
    values = np.concatenate([np.linspace(40, 49, 10), np.linspace(45, 54, 10), [0, 90, 5, 95], [47]])
    schema = Schema("p", (Number("v", 0, 100),))
    counts: dict[Any, Any] = {}
    for seed in range(300):
        engine = castle(schema, seed, formation=formation, k=10, delta=60, reuse=True, eta=2)
        state = engine._state
        for number, (lo, hi) in enumerate([(40.0, 49.0), (45.0, 54.0)]):
            kernels.keep(state.published, np.uint64(number), np.array([lo]), np.array([hi]))
        engine._published_ids = np.array([0, 1], np.uint64)
        row = Batch(np.array([0]), np.zeros(1), np.array([1]), values[-1:, None], np.empty((1, 0), np.int32))
        engine.push(row)
        gone = Batch(np.array([100]), np.zeros(1), np.array([2]), random.uniform(0, 1, (1, 1)), row.sensitive)
        release = engine.push(gone)
        assert release.reused.tolist() == [True]
        counts[int(release.ids[0])] = counts.get(int(release.ids[0]), 0) + 1
    assert counts.keys() == {0, 1}
    assert 110 < counts[0] < 190


@pytest.mark.parametrize("formation", ["arrival", "deadline"])
def test_members_are_shuffled_and_ids_are_random(formation: str) -> None:
    batch = stream(NUMBERS, 6, 400)
    engine = castle(NUMBERS, formation=formation, k=20, delta=100)
    outcome = feed(engine, batch)
    ordered = ids = 0
    seen = set()
    for release in outcome.releases:
        for c in range(len(release)):
            members = release.members[release.starts[c] : release.starts[c + 1]]
            ordered += bool(np.all(np.diff(members) > 0))
            ids += 1
            seen.add(int(release.ids[c]))
    assert ordered == 0
    assert len(seen) == ids
    assert max(seen) > 2**60
    again = feed(castle(NUMBERS, seed=2, formation=formation, k=20, delta=100), batch)
    assert seen.isdisjoint(int(i) for release in again.releases for i in release.ids)
