"""Categories of sensitivity: every value in one of them, or a refusal that names the value."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microdata import Category, Hierarchy, Number, PersonSource, Schema, SchemaError, Sensitivity

TREE = Hierarchy.from_mapping({"any": {"lungs": ["flu", "asthma", "sars"], "gut": ["ulcer", "colic"]}})


def illness(*categories: Any, weights: Any = ()) -> Category:
    return Category("illness", TREE, sensitivity=Sensitivity(categories, weights))


def pay(*categories: Any, **given: Any) -> Number:
    return Number("pay", 0, 10, **{"integer": True, **given}, sensitivity=Sensitivity(categories))


def test_values_nodes_and_ranges() -> None:
    assert illness(("sars", "gut"), ("flu", "asthma")).category_of.tolist() == [1, 1, 0, 0, 0]
    assert illness(("any",)).category_of.tolist() == [0] * 5
    assert pay(((8, 10), 0), ((1, 7),)).category_of.tolist() == [0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0]
    assert pay(((0.3, 10),), ((0, 0.2),), integer=False, step=0.1).category_of.tolist() == [1] * 3 + [0] * 98


@pytest.mark.parametrize(
    ("make", "given_value"),
    [
        (lambda: illness(("sars", "gut"), ("flu",)), "asthma"),
        (lambda: illness(("sars", "gut"), ("flu", "asthma", "ulcer")), "ulcer"),
        (lambda: illness(("lungs", "gut", "sars")), "sars"),
        (lambda: illness(("any", "fever")), "'fever'"),
        (lambda: illness(("any",), (3,)), "3"),
        (lambda: pay(((0, 4),), ((6, 10),)), "5"),
        (lambda: pay(((0, 5),), ((5, 10),)), "5"),
        (lambda: pay(((0, 11),)), "(0, 11)"),
        (lambda: pay(((5, 0), (6, 10))), "(5, 0)"),
        (lambda: pay((0, "much")), "much"),
        (lambda: pay(((0, 10),), ((4.2, 4.8),)), "(4.2, 4.8)"),
    ],
)
def test_what_is_missing_twice_or_unknown_is_refused_by_name(make: Any, given_value: str) -> None:
    with pytest.raises(SchemaError) as refused:
        make()
    assert refused.value.given == given_value
    assert refused.value.at in {"illness", "pay"}
    assert "sensitivity" in refused.value.reason


@pytest.mark.parametrize("weights", [(0, 1, 1), (1, 0), (-0.5, 1), (0, 1.5), (0, 0), (0.1234567, 1)])
def test_weights_that_are_none(weights: Any) -> None:
    with pytest.raises(SchemaError, match="weigh"):
        illness(("lungs",), ("gut",), weights=weights)


def test_weights() -> None:
    given = illness(("sars",), ("gut",), ("flu", "asthma"), weights=(0.1, 0.25, 1)).sensitivity
    assert given is not None
    assert (given.weights, given.parts, given.units.tolist()) == (
        (Fraction(1, 10), Fraction(1, 4), Fraction(1)),
        20,
        [2, 5, 20],
    )


@given(st.integers(1, 12))
def test_even_weights_are_those_of_the_literature(count: int) -> None:
    weights = Sensitivity(tuple((str(number),) for number in range(count))).weights
    expected = [Fraction(number, count - 1) for number in range(count - 1)] + [Fraction(1)]
    assert list(weights) == expected


@pytest.mark.parametrize("categories", [(), ((),)])
def test_there_must_be_something(categories: Any) -> None:
    with pytest.raises(SchemaError, match="at least one category"):
        Sensitivity(categories)


def test_only_sensitive_attributes_of_few_values_have_one() -> None:
    with pytest.raises(SchemaError, match="only sensitive"):
        Schema(PersonSource.ROW, (illness(("any",)),))
    with pytest.raises(SchemaError, match="declare a step"):
        Number("pay", 0, 10, sensitivity=Sensitivity((((0, 10),),)))


def test_what_makes_two_of_them_the_same() -> None:
    assert "sensitivity" not in Category("illness", TREE).declaration()
    one, other = illness(("lungs",), ("gut",)), illness(("gut",), ("lungs",))
    assert one.declaration() == illness(("lungs",), ("gut",)).declaration() != other.declaration()
    assert one.declaration() != illness(("lungs",), ("gut",), weights=(0.5, 1)).declaration()


def test_labels_name_few_values() -> None:
    assert Sensitivity((("a", "b", "c", "d"), (1.5, (2, 3)))).label(0) == "a, b, c, …"
    assert Sensitivity((("a", "b", "c", "d"), (1.5, (2, 3)))).label(1) == "1.5, 2 … 3"
