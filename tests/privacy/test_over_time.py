"""k persons over time: the attack against one written from its definition, the record of a sample, and lineages."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import Category, GuaranteeError, Hierarchy, InfeasibleError, Number, Publication, Schema, example_table
from privacy import DistinctDiversity, Groups, KOverTime, Lineages, Record, Sightings, audit, candidates

ILL = Schema("person", (Number("age", 0, 9),), (Category("illness", Hierarchy.flat(["flu", "ulcer", "gout"])),))


def by_definition(seen: Any, published: Any) -> Any:
    """For each person the number of those whose value lay in each box at the time of its row."""
    values: Any = {}
    for position, person, value in seen:
        values.setdefault(person, []).append((position, value))

    def value_at(person: Any, time: Any) -> Any:
        before = [value for position, value in values[person] if position <= time]
        return before[-1] if before else values[person][0][1]

    return {
        victim: sum(
            all(low <= value_at(person, time) <= high for time, whose, low, high in published if whose == victim)
            for person in values
        )
        for victim in {whose for _, whose, _, _ in published}
    }


@st.composite
def histories(draw: Any) -> Any:
    count = draw(st.integers(1, 25))
    persons = draw(st.lists(st.integers(0, 6), min_size=count, max_size=count))
    changing = draw(st.booleans())
    values = [draw(st.integers(0, 9)) if changing else (3 * person) % 10 for person in persons]
    seen = [(2 * row + 1, person, value) for row, (person, value) in enumerate(zip(persons, values, strict=True))]
    published = [
        (position, person, value - draw(st.integers(0, 4)), value + draw(st.integers(0, 4)))
        for position, person, value in seen
        if draw(st.booleans())
    ]
    return seen, published


def arrays(seen: Any, published: Any) -> Any:
    positions, persons, values = (np.array(column) for column in zip(*seen, strict=True))
    times, whose, low, high = (np.array(column) for column in zip(*published, strict=True))
    boxes = low[:, None].astype(float), high[:, None].astype(float)
    return (positions, persons, values[:, None].astype(float)), (times, whose, *boxes)


@settings(max_examples=60)
@given(histories())
def test_candidates_are_those_of_the_definition(history: Any) -> None:
    seen, published = history
    if not published:
        return
    sighted, left = arrays(seen, published)
    victims, counts = candidates(Sightings(*sighted), *left)
    assert dict(zip(victims.tolist(), counts.tolist(), strict=True)) == by_definition(seen, published)


@settings(max_examples=40)
@given(histories(), st.integers(1, 4))
def test_the_record_of_a_sample_agrees(history: Any, most: Any) -> None:
    seen, published = history
    record, nobody = Record(most), Record()
    assert not len(nobody.linked()[0])
    if not published:
        return
    sighted, left = arrays(seen, published)
    for row in range(len(sighted[0])):
        record.take(*(column[row : row + 1] for column in sighted))
        record._keep_changes()
    for row in range(len(left[0])):
        record.publish(*(column[row : row + 1] for column in left))
    expected = by_definition(seen, published)
    victims, counts = record.linked()
    assert len(victims) <= most
    assert all(expected[victim] == count for victim, count in zip(victims.tolist(), counts.tolist(), strict=True))
    if len(expected) <= most:
        assert len(victims) == len(expected)


def test_the_model_is_about_whoever_stands_behind_a_class() -> None:
    company = np.array([4, 5, 6])
    groups = Groups(company, company, company, (), company)
    assert KOverTime(5).holds(groups).tolist() == [False, True, True]
    assert KOverTime(5).achieved(groups).tolist() == [4, 5, 6]
    assert KOverTime(5).least_persons == KOverTime(5).nearest(5.9) == 5
    with pytest.raises(GuaranteeError, match="record"):
        KOverTime(5).holds(Groups(company, company, company, ()))
    with pytest.raises(InfeasibleError):
        KOverTime(0)


def test_a_lineage_has_the_values_of_all_boxes_before() -> None:
    lineages, two = Lineages(ILL), DistinctDiversity(2)
    ids, parents = np.array([7, 8, 9], np.uint64), np.array([0, 7, 0], np.uint64)
    lineages.add(ids, parents, np.array([0, 0, 1, 2]), np.array([[0], [0], [1], [2]], np.int32))
    three = np.array([3, 3, 3])
    groups = lineages.groups(ids, three, three)
    assert groups.rows.tolist() == [2, 3, 1]
    assert two.achieved(groups).tolist() == [1, 2, 1]
    lineages.add(ids[2:], parents[2:], np.array([0]), np.array([[0]], np.int32))
    assert two.holds(lineages.groups(ids, three, three)).tolist() == [False, True, True]
    lineages.take_back(ids[2:], np.array([0]), np.array([[0]], np.int32))
    assert two.achieved(lineages.groups(ids, three, three)).tolist() == [1, 2, 1]


def test_a_lineage_that_bites_its_tail_is_counted_once() -> None:
    lineages, ids = Lineages(ILL), np.array([7, 8], np.uint64)
    lineages.add(ids, ids[::-1], np.array([0, 1]), np.array([[0], [1]], np.int32))
    assert lineages.groups(ids, np.array([3, 3]), np.array([3, 3])).rows.tolist() == [2, 2]


def test_a_file_cannot_be_audited_for_it() -> None:
    table = example_table(20, persons=8)
    whole = Publication.of(table, np.zeros(20, np.int64))
    with pytest.raises(InfeasibleError, match="does not show whose rows"):
        audit(table, whole, [KOverTime(2)])


def seen_of(*events: tuple[int, int, float, float]) -> Sightings:
    positions, persons, ages, pays = zip(*events, strict=True)
    return Sightings(np.array(positions), np.array(persons), np.column_stack([ages, pays]).astype(float))


def possible(seen: Sightings, position: int, low: float = 0, high: float = 9) -> int:
    """How many persons may be person 1, of whom one row is published with this box."""
    box = np.full((1, 2), float(low)), np.full((1, 2), float(high))
    _, left = candidates(seen, np.array([position]), np.array([1]), *box)
    return int(left[0])


def test_events_before_the_first_readable_one_of_a_person_do_not_count() -> None:
    """Person 2 is seen at 5 for the first time after an event of which one value could not be read."""
    seen = seen_of((0, 1, 5, 5), (1, 2, np.nan, 5), (10, 1, 5, 5), (12, 2, 5, 5))
    assert possible(seen, 10) == 2


def test_a_person_is_no_candidate_from_an_unreadable_event_until_the_next_one() -> None:
    seen = seen_of((0, 1, 5, 5), (1, 2, 5, 5), (3, 2, 5, np.nan), (6, 2, 5, 5), (8, 1, 5, 5))
    assert [possible(seen, position) for position in (2, 3, 5, 6)] == [2, 1, 1, 2]


def test_a_record_takes_all_batches_and_every_column_that_changes() -> None:
    """Person 2 leaves the box in the second column alone."""
    record = Record()
    for events in (((0, 1, 5.0, 5.0), (1, 2, 5.0, 5.0)), ((2, 2, 5.0, 50.0),), ((3, 1, 5.0, 5.0),)):
        positions, persons, *values = zip(*events, strict=True)
        record.take(np.array(positions), np.array(persons), np.column_stack(values))
    lo, hi = np.zeros((2, 2)), np.full((2, 2), 9.0)
    record.publish(np.array([0, 3]), np.array([1, 1]), lo, hi)
    assert [found.tolist() for found in record.linked()] == [[1], [1]]
    assert [found.tolist() for found in record.linked(first=True)] == [[1], [2]]


def test_a_box_without_one_before_it_inherits_nothing_from_another_one() -> None:
    """As many boxes are known as there is room for, and the last of them needs no further values."""
    lineages = Lineages(ILL)
    count = lineages._boxes.room
    ids, none = np.arange(1, count + 1, dtype=np.uint64), np.zeros(count, np.uint64)
    lineages.add(ids, none, np.arange(count), np.zeros((count, 1), np.int32))
    assert lineages._boxes.room == count
    lineages.hold(ids[-1:])
    lineages.add(ids[:1], none[:1], np.array([0]), np.array([[1]], np.int32))
    three = np.array([3])
    assert DistinctDiversity(2).achieved(lineages.groups(ids[:1], three, three)).tolist() == [2]
