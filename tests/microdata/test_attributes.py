"""What an attribute answers for itself, alike for numbers and categories."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microdata import Category, Hierarchy, Number, SchemaError

CITY = Category("city", Hierarchy.from_mapping({"world": {"north": ["oslo", "umea"], "south": ["rome"]}}), other="rome")
DEBT = Number("debt", -1, 2, step=0.5)
AGE = Number("age", 17, 20, integer=True)


@pytest.mark.parametrize("attribute", [CITY, DEBT, AGE], ids=lambda one: one.name)
def test_every_value_has_a_code_and_a_label(attribute: Any) -> None:
    domain = attribute.domain()
    assert len(domain) == attribute.size
    assert [attribute.code_of(str(value)) for value in domain] == list(range(attribute.size))
    assert attribute.label(0, 0) == str(domain[0]).removesuffix(".0")
    assert attribute.label(0, 2).count(" … ") == 1
    assert all(type(value) is type(domain[0]) for value in domain)


def test_what_is_no_value_has_no_code() -> None:
    assert [CITY.code_of(text) for text in (" oslo ", "paris", "")] == [0, None, None]
    assert [AGE.code_of(text) for text in ("x", "nan", "inf", "")] == [None] * 4


def test_numbers_have_intervals_and_categories_have_names() -> None:
    assert (AGE.names, AGE.numeric) == ((), True)
    assert (set(CITY.names), CITY.numeric) == ({"world", "north", "south", "oslo", "umea", "rome"}, False)


@given(st.integers(1, 50))
def test_a_spread_lies_in_the_domain_and_reaches_its_ends(count: int) -> None:
    for attribute, low, high in ((CITY, 0, 2), (AGE, 17, 20), (DEBT, -1, 2)):
        values = attribute.spread(count)
        assert len(values) == count
        assert ((values >= low) & (values <= high)).all()
        assert count < 3 or {low, high} <= set(values.tolist())


def test_a_declaration_changes_with_whatever_changes_the_encoding() -> None:
    same = Category("city", Hierarchy.from_mapping({"world": {"north": ["oslo", "umea"], "south": ["rome"]}}), "rome")
    assert json.dumps(same.declaration()) == json.dumps(CITY.declaration())
    others = [
        Category("city", CITY.hierarchy),
        Category("town", CITY.hierarchy, "rome"),
        Category("city", Hierarchy.flat(["oslo", "umea", "rome"]), "rome"),
        DEBT,
        Number("debt", -1, 2, step=0.25),
        Number("debt", -1, 2, step=0.5, quantiles=(0.0,)),
        AGE,
        Number("age", 17, 20),
    ]
    texts = {json.dumps(one.declaration()) for one in [CITY, *others]}  # type: ignore[attr-defined]
    assert len(texts) == 1 + len(others)
    with pytest.raises(SchemaError):
        Category("city", CITY.hierarchy, "paris")
