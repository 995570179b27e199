"""Random small tables for the tests of SABRE and BUREL."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from microdata import Category, Hierarchy, Number, Schema, Table
from tests.privacy.privacy_worlds import trees

COUNTRIES = Hierarchy.from_mapping({"World": {"Europe": ["France", "Spain", "Italy"], "Asia": ["Japan", "China"]}})
QUASI = (Number("age", 0, 50, integer=True), Category("country", COUNTRIES), Number("income", -1.0, 1.0))


def table_of(sensitive: Any, values: Any, quasi: Any = None, persons: Any = None, seed: int = 0) -> Table:
    """A table with these columns of sensitive codes; quasi-identifiers are random unless given."""
    columns = np.array(values, np.int32).reshape(len(sensitive), -1).T
    rows = len(columns)
    if quasi is None:
        random = np.random.default_rng(seed)
        quasi = np.stack(
            [random.integers(0, 51, rows), random.integers(0, 5, rows), random.uniform(-1, 1, rows)], axis=1
        ).astype(float)
    persons = np.arange(rows) if persons is None else np.asarray(persons)
    return Table(Schema("id", QUASI, tuple(sensitive)), persons.astype(np.int64), quasi, columns)


def one_attribute(attribute: Any, counts: Any, **more: Any) -> Table:
    """A table whose one sensitive attribute has these counts."""
    return table_of([attribute], np.repeat(np.arange(len(counts)), counts), **more)


@st.composite
def attributes(draw: Any, name: Any) -> Any:
    """A sensitive category with any tree, or a sensitive number."""
    if draw(st.booleans()):
        return Category(name, draw(trees()))
    return Number(name, 0, draw(st.integers(0, 11)), integer=True)


@st.composite
def tables(draw: Any, most_rows: int = 80, most_attributes: int = 2, repeated: bool = True) -> Any:
    """Tables of one or two sensitive attributes; values skewed, some absent; persons may have several rows."""
    sensitive = [draw(attributes(f"s{number}")) for number in range(draw(st.integers(1, most_attributes)))]
    rows = draw(st.integers(1, most_rows))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    skew = draw(st.sampled_from([0.3, 1.0, 3.0]))
    values = [(random.random(rows) ** skew * attribute.size).astype(int) for attribute in sensitive]
    persons = random.integers(0, max(1, rows // 2), rows) if repeated and draw(st.booleans()) else None
    return table_of(sensitive, values, persons=persons, seed=int(random.integers(1000)))


def persons_of(table: Table) -> int:
    return len(np.unique(table.persons))
