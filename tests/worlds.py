"""Random small tables and guarantees, for property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from microdata import EXAMPLE_QUASI, EXAMPLE_SENSITIVE, Category, Hierarchy, Number, example_table

CITIES = EXAMPLE_QUASI[1].hierarchy  # type: ignore[union-attr]
NARROW = Hierarchy.from_mapping({"all": {"one": {"only": ["x"]}}})

QUASI = (
    *EXAMPLE_QUASI,
    Number("score", -1, 1),
    Category("narrow", NARROW),
    Number("constant", 3, 3, integer=True),
)
ILLNESS, DEBT = EXAMPLE_SENSITIVE


def random_table(
    rows: Any, seed: Any, quasi: Any = QUASI, sensitive: Any = EXAMPLE_SENSITIVE, persons: Any = None
) -> Any:
    """An example table with odd quasi-identifiers too."""
    return example_table(rows, seed, quasi, sensitive, persons)


@st.composite
def tables(draw: Any, most_rows: int = 60, quasi: Any = QUASI) -> Any:
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
