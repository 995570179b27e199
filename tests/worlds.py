"""Random small tables, for generic checks and property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from microdata import Category, Hierarchy, Number, PersonSource, Schema, Table

CITIES = Hierarchy.from_mapping(
    {"world": {"europe": {"france": ["paris", "lyon"], "spain": ["madrid"]}, "asia": ["tokyo", "kyoto"], "oz": None}}
)
SEXES = Hierarchy.flat(["female", "male"])
ILLNESSES = Hierarchy.from_mapping({"any": {"lungs": ["flu", "asthma", "sars"], "gut": ["ulcer", "colic"]}})
NARROW = Hierarchy.from_mapping({"all": {"one": {"only": ["x"]}}})

QUASI = (
    Number("age", 17, 90, integer=True),
    Category("city", CITIES),
    Number("pay", 0, 100, step=8),
    Category("sex", SEXES),
    Number("score", -1, 1),
    Category("narrow", NARROW),
    Number("constant", 3, 3, integer=True),
)
ILLNESS = Category("illness", ILLNESSES)
DEBT = Number("debt", 0, 6, integer=True)


def random_column(attribute, rows, random):
    """Values of a quasi-identifier: few distinct ones, so that ties are common."""
    if isinstance(attribute, Category):
        return random.integers(0, attribute.size, rows)
    steps = random.integers(0, 25, rows)
    if attribute.integer:
        return np.minimum(attribute.low + 3 * steps, attribute.high)
    return attribute.low + steps / 24 * (attribute.high - attribute.low)


def random_table(rows, seed, quasi=QUASI, sensitive=(ILLNESS, DEBT), persons=None):
    """A table whose sensitive values lean on the first quasi-identifier; `persons` draws them from so many."""
    random = np.random.default_rng(seed)
    columns = [random_column(one, rows, random) for one in quasi]
    lean = np.argsort(np.argsort(columns[0], kind="stable")) / max(rows, 1)
    values = [
        np.clip((random.random(rows) * 0.7 + lean * 0.3) * one.size, 0, one.size - 1).astype(np.int32)
        for one in sensitive
    ]
    return Table(
        Schema(PersonSource.ROW if persons is None else "person", quasi, sensitive),
        np.arange(rows) if persons is None else random.integers(0, persons, rows),
        np.stack(columns, axis=1).astype(np.float64),
        np.stack(values, axis=1) if values else np.empty((rows, 0), np.int32),
    )


@st.composite
def tables(draw, most_rows=60, quasi=QUASI):
    """Tables of some of the quasi-identifiers, in any order, with single or repeated persons."""
    chosen = tuple(draw(st.lists(st.sampled_from(quasi), min_size=1, max_size=4, unique_by=lambda one: one.name)))
    rows = draw(st.integers(1, most_rows))
    persons = draw(st.one_of(st.none(), st.integers(1, rows)))
    return random_table(rows, draw(st.integers(0, 2**32)), chosen, persons=persons)


guarantees = st.fixed_dictionaries(
    {"k": st.integers(1, 4)},
    optional={
        "l": st.one_of(
            st.integers(1, 3),
            st.fixed_dictionaries({"entropy": st.sampled_from([1.5, 2.0])}),
            st.just({"recursive": {"c": 3, "l": 2}}),
            st.just({"frequency": 1.5}),
        ),
        "alpha": st.sampled_from([0.5, 0.8]),
        "t": st.sampled_from([0.1, 0.3, {"threshold": 0.2, "ground": "equal"}]),
        "beta": st.sampled_from(
            [1, {"basic": 2}, {"semantic": {"beta": 2, "height": 1}}, {"range": {"beta": 2, "width": 2}}]
        ),
        "disclosure": st.sampled_from([1.0, 3.0]),
        "max_share": st.sampled_from([0.4, 0.7]),
    },
)
"""Guarantees of every kind, mixed."""
