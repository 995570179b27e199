"""What identifies, against counting by hand."""

import itertools
import random
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata.field_keys import FieldGatherer
from privacy import alone_in, identifying
from privacy.counting import unique_share

FIELDS = ("a", "b", "c", "d")


def keys_of(columns: Any) -> Any:
    gatherer = FieldGatherer()
    gatherer.add(pa.table({name: [str(value) for value in values] for name, values in columns.items()}))
    return gatherer.fields()


def by_hand(columns: Any, names: Any, persons: Any = None) -> Any:
    """Share of the rows whose combination belongs to one person."""
    rows = list(zip(*(columns[name] for name in names), strict=True))
    who = defaultdict(set)
    for place, row in enumerate(rows):
        who[row].add(place if persons is None else persons[place])
    return sum(len(who[row]) == 1 for row in rows) / len(rows)


def follows(columns: Any, one: Any, other: Any) -> Any:
    pairs = set(zip(columns[one], columns[other], strict=True))
    return len(pairs) == len(set(columns[one]))


@st.composite
def tables(draw: Any) -> Any:
    rows = draw(st.integers(1, 25))
    sizes = draw(st.tuples(*(st.integers(1, 6) for _ in FIELDS)))
    columns = {
        name: draw(st.lists(st.integers(0, size), min_size=rows, max_size=rows))
        for name, size in zip(FIELDS, sizes, strict=True)
    }
    persons = draw(st.none() | st.lists(st.integers(0, 8), min_size=rows, max_size=rows))
    return columns, persons


@settings(max_examples=150, deadline=None)
@given(tables(), st.sampled_from([0.1, 0.5, 1.0]))
def test_minimal_sets_are_those_of_counting_by_hand(world: Any, share: Any) -> None:
    columns, persons = world
    data = keys_of(columns if persons is None else {**columns, "who": persons})
    found = identifying(data, person=None if persons is None else "who", share=share, size=3)
    assert found.complete == 3
    for one in (found.together, *found.sets, *found.closest):
        if one.fields:
            assert one.alone == pytest.approx(by_hand(columns, one.fields, persons))
            assert one.error == 0
    twins = {one.name for one in found.fields if one.same_as}
    told = [name for name in FIELDS if name not in twins]
    every = [set(names) for size in (1, 2, 3) for names in itertools.combinations(told, size)]
    identify = [names for names in every if by_hand(columns, sorted(names), persons) >= share]
    minimal = [names for names in identify if not any(other < names for other in identify)]
    assert sorted(map(sorted, minimal)) == sorted(sorted(one.fields) for one in found.sets)


@settings(max_examples=80, deadline=None)
@given(tables())
def test_fields_are_those_of_counting_by_hand(world: Any) -> None:
    columns, _ = world
    found = identifying(keys_of(columns), share=0.4, size=1)
    rows = len(columns["a"])
    for one in found.fields:
        values = columns[one.name]
        assert one.distinct == len(set(values))
        assert one.alone == pytest.approx(by_hand(columns, [one.name]))
        repeated = 2 * one.distinct <= rows
        expected = [
            other
            for other in FIELDS
            if other != one.name and repeated and len(set(columns[other])) > 1 and follows(columns, one.name, other)
        ]
        assert list(one.determines) == expected
        if one.falls is not None:
            rest = [name for name in found.together.fields if name != one.name]
            left = by_hand(columns, rest) if rest else 0
            assert one.falls == pytest.approx(found.together.alone - left)
        if one.same_as:
            assert follows(columns, one.name, one.same_as)
            assert follows(columns, one.same_as, one.name)


def test_one_person_is_alone_however_many_rows_it_has() -> None:
    columns = {"city": ["Oslo"] * 3 + ["Rome"] * 3, "who": [1, 1, 1, 2, 2, 3]}
    data = keys_of(columns)
    assert alone_in(data, ["city"]) == 0, "every row counts as another person"
    assert alone_in(data, ["city"], "who") == 0.5
    assert identifying(data, person="who", size=1).sets[0].alone == 0.5


def test_a_sample_of_combinations_is_near_and_tells_how_near(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("microdata.field_keys.secrets.randbits", random.Random(5).getrandbits)
    generator = np.random.default_rng(3)
    columns = {name: generator.integers(0, 60, 40_000) for name in ("a", "b", "c")}
    data = keys_of(columns)
    exact = identifying(data, share=0.05, size=3)
    truth = exact.sets[0].alone
    missed, estimates = 0, []
    for _ in range(40):  # secrets are others each time, and with them the sample
        found = identifying(keys_of(columns), share=0.05, size=3, looked_at=4000)
        (one,) = found.sets
        assert found.looked_at == pytest.approx(0.1)
        assert 0 < one.error < 0.03
        missed += abs(one.alone - truth) > one.error
        estimates.append(one.alone)
    assert missed <= 6, "95 % of them hold, so that about 2 of 40 do not"
    assert np.mean(estimates) == pytest.approx(truth, abs=0.01)


def test_a_search_that_would_take_too_long_says_how_far_it_came() -> None:
    generator = np.random.default_rng(4)
    columns = {f"f{number}": generator.integers(0, 9, 200) for number in range(12)}
    data = keys_of(columns)
    assert identifying(data, share=1, size=4).complete == 4
    assert identifying(data, share=1, size=4, effort=200 * 12 + 200 * 66 + 200 * 10).complete == 2


def test_the_bound_is_about_the_population_and_known_values_only() -> None:
    columns = {"sex": [0, 1] * 200, "age": [number % 80 for number in range(400)], "key": range(400)}
    found = identifying(keys_of(columns), share=0.001, size=2, population=1000)
    bounds = {one.fields: one.bound for one in (*found.sets, *found.closest)}
    assert bounds["key",] is None
    assert found.together.fields == ("sex", "age")
    assert found.together.bound == unique_share(2 * 80, 1000)
    assert identifying(keys_of(columns)).together.bound is None
