"""What attacks get, against counting by hand; and the examples of the literature."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import Category, Hierarchy, Number, PersonSource, Publication, Schema, Table
from privacy import ATTACKS, contributions, exposures
from static_algos import Mondrian
from tests.worlds import DEBT, ILLNESS, QUASI, random_table

ILLNESSES = Hierarchy.from_mapping({"Any": {"Stomach": ["ulcer", "inflammation"], "Lung": ["flu", "asthma"]}})
CONDITION = Category("condition", ILLNESSES)


def published(rows: Any, classes: Any, persons: Any = None, *, schema: Any = None) -> Any:
    """Of (age, number of the condition)."""
    schema = schema or Schema(PersonSource.ROW, (Number("age", 0, 100),), (CONDITION,))
    quasi = np.array([row[0] for row in rows], float)[:, None]
    sensitive = np.array([row[1:] for row in rows], np.int32)
    who = np.arange(len(rows)) if persons is None else np.array(persons)
    return Publication.of(Table(schema, who, quasi, sensitive), np.array(classes))


def got(publication: Any) -> Any:
    return {one.attack.name: (one.before, one.after, one.baseline) for one in exposures(publication)}


def by_hand(rows: Any, classes: Any, persons: Any) -> Any:
    """Every number from its sentence, of the rows that are in a class."""
    own = [place for place, number in enumerate(classes) if number >= 0]
    if not own:
        return dict.fromkeys(ATTACKS, 0.0)
    members = {number: [place for place in own if classes[place] == number] for number in {classes[p] for p in own}}
    overall = Counter(row[1] for row in rows)
    kinds = [0, 0, 1, 1]
    counts = dict.fromkeys(ATTACKS, 0.0)
    for inside in members.values():
        people = len({persons[place] for place in inside})
        values = Counter(rows[place][1] for place in inside)
        counts["prosecutor"] = max(counts["prosecutor"], len(own) / people)
        counts["marketer"] += len(inside) / people
        counts["homogeneity"] += len(inside) * (len(values) == 1)
        counts["background"] += len(inside) * (len(values) <= 2)
        skewed = any(n / len(inside) >= 2 * overall[value] / len(rows) - 1e-9 for value, n in values.items())
        counts["skewness"] += len(inside) * skewed
        counts["inference"] += max(values.values())
        counts["similarity"] += len(inside) * (len({kinds[value] for value in values}) == 1)
    ages = {number: [rows[place][0] for place in inside] for number, inside in members.items()}
    for place in own:
        fits = [number for number, inside in ages.items() if min(inside) <= rows[place][0] <= max(inside)]
        counts["linking"] += sum(len(members[number]) for number in fits) == 1
    return {name: count / len(own) for name, count in counts.items()}


WORLDS = st.integers(1, 14).flatmap(
    lambda rows: st.tuples(
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=rows, max_size=rows),
        st.lists(st.integers(-1, 3), min_size=rows, max_size=rows),
        st.lists(st.integers(0, 9), min_size=rows, max_size=rows),
    )
)


@settings(max_examples=100, deadline=None)
@given(WORLDS)
def test_every_number_is_the_one_of_its_sentence(world: Any) -> None:
    rows, classes, persons = world
    known = sorted({number for number in classes if number >= 0})
    classes = [known.index(number) if number >= 0 else -1 for number in classes]
    found = got(published(rows, classes, persons))
    ages = sorted({row[0] for row in rows})
    before, after = by_hand(rows, [ages.index(row[0]) for row in rows], persons), by_hand(rows, classes, persons)
    assert set(found) == set(ATTACKS)
    for name, (was, now, _) in found.items():
        assert was == pytest.approx(before[name]), name
        assert now == pytest.approx(after[name]), name


def test_the_examples_of_the_literature() -> None:
    # Stomach diseases only, three different ones' worth of two: nobody's is certain, everybody's kind is.
    found = got(published([(26, 0), (28, 1), (29, 0), (51, 2), (55, 0), (53, 3)], [0, 0, 0, 1, 1, 1]))
    assert found["similarity"][1] == 0.5
    assert found["homogeneity"][1] == 0
    assert found["background"][1] == 0.5
    # Ten rows of one class, eight with one value: 80 % sure.
    found = got(published([(20, 0)] * 8 + [(20, 2), (20, 3)], [0] * 10))
    assert found["inference"][1:] == (0.8, 0.8)
    # 99 % against 1 %, and a class of half and half.
    rows = [(20, 0)] * 97 + [(30, 0), (30, 1)]
    assert got(published(rows, [0] * 97 + [1] * 2))["skewness"][1] == pytest.approx(2 / 99)


def test_what_nobody_gets_without_the_table() -> None:
    found = got(published([(20, 0), (21, 0), (22, 2), (23, 3)], [0, 0, 1, 1], [7, 7, 8, 9]))
    assert found["inference"][2] == 0.5
    assert found["prosecutor"][2] == pytest.approx(1 / 3)
    assert found["homogeneity"][2] == 0


def test_an_algorithm_keeps_what_it_says() -> None:
    table = random_table(300, 5, QUASI[:4], (ILLNESS, DEBT), persons=300)
    found = exposures(Mondrian(k=5, l=3).anonymize(table))
    assert [one.attribute for one in found] == [None] * 3 + ["illness"] * 5 + ["debt"] * 5
    by_name = {(one.attack.name, one.attribute): one for one in found}
    assert by_name["prosecutor", None].after <= 0.2 < by_name["prosecutor", None].before
    assert by_name["linking", None].after == 0
    for attribute in ("illness", "debt"):
        assert by_name["homogeneity", attribute].after == by_name["background", attribute].after == 0
        assert by_name["homogeneity", attribute].before > 0.5


def test_nothing_published_gives_nothing_away() -> None:
    found = exposures(published([(20, 0), (30, 1)], [-1, -1]))
    assert [one.after for one in found] == [0] * len(found)


def test_what_a_column_adds() -> None:
    schema = Schema(PersonSource.ROW, (Number("key", 0, 100), Number("half", 0, 100), Number("same", 0, 100)), ())
    quasi = np.array([[row, row // 2, 7] for row in range(10)], float)
    nothing = np.empty((10, 0), np.int32)
    assert contributions(Table(schema, np.arange(10), quasi, nothing)) == (1, 0, 0)
    assert contributions(Table(schema, np.arange(10) // 2, quasi, nothing)) == (0, 0, 0), "halves are persons here"
