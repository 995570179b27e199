"""CASTLE under conditions on categories of sensitivity: weights, categories, and how much of a class one may have."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import Category, GuaranteeError, Hierarchy, InfeasibleError, Number, Schema, Sensitivity
from privacy import Groups, check
from stream_algos import Batch
from tests.stream_algos.castle_streams import MIXED, castle, feed, formations, seeds, stream

ILLNESS = Category("illness", Hierarchy.flat("ABCDEF"), sensitivity=Sensitivity((("A", "B"), ("C",), ("D", "E", "F"))))
WEIGHTS = (Fraction(1, 4), Fraction(1))
INCOME = Number("income", 0, 4, integer=True, sensitivity=Sensitivity((((3, 4),), ((0, 2),)), WEIGHTS))
SCHEMA = replace(MIXED, sensitive=(ILLNESS, INCOME))
CATEGORY = Category("category", Hierarchy.flat("123"))

ASKED: list[dict[str, Any]] = [
    {"p": 3},
    {"p_categories": 2},
    {"p_categories": {"each": {"illness": 3}}},
    {"alpha_weight": 2.5},
    {"alpha_weight": {"every": 1.25, "over": "values"}},
    {"max_category_share": 0.7},
    {"max_category_share": {"each": {"illness": 0.4}, "of": "first"}},
    {"p_categories": 2, "alpha_weight": 2, "max_category_share": {"each": {"illness": 0.6}}, "max_share": 0.5},
]


def assert_meets(engine: Any, outcome: Any) -> int:
    """Every released cluster meets every model; how many rows were released."""
    batch, place, released = outcome.batch, {}, 0
    place = {position: row for row, position in enumerate(batch.positions.tolist())}
    for _, members, *_ in outcome.clusters():
        rows = np.array([place[position] for position in members])
        groups = Groups.of(engine.schema, batch.persons[rows], batch.sensitive[rows], np.zeros(len(rows), np.int64), 1)
        assert check(engine.models(), groups).all()
        released += len(rows)
    return released


@given(formation=formations, seed=seeds, asked=st.sampled_from(ASKED), persons=st.sampled_from([None, 12]))
@settings(max_examples=25)
def test_every_class_meets_its_conditions(formation: Any, seed: Any, asked: Any, persons: Any) -> None:
    data = stream(SCHEMA, seed, 140, persons=persons)
    engine = castle(SCHEMA, seed, formation=formation, k=3, delta=60, eta=3, **asked)
    outcome = feed(engine, data)
    released = assert_meets(engine, outcome)
    assert released + len(outcome.suppressed()) == len(data)


@pytest.mark.parametrize("formation", ["arrival", "deadline"])
@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_even_streams_lose_little(formation: str, asked: Any) -> None:
    data = stream(SCHEMA, 7, 240)
    even = np.random.default_rng(1).integers(0, [6, 5], (240, 2)).astype(np.int32)
    engine = castle(SCHEMA, 7, formation=formation, k=3, delta=100, eta=3, **asked)
    assert assert_meets(engine, feed(engine, replace(data, sensitive=even))) > 0.75 * 240


@pytest.mark.parametrize("formation", ["arrival", "deadline"])
def test_categories_cost_what_diversity_of_categories_costs(formation: str) -> None:
    """p⁺ = 2 decides as ℓ = 2 does where the sensitive value is the category itself."""
    data = stream(MIXED, 5, 300, persons=60)
    plain = replace(data, sensitive=ILLNESS.category_of[data.sensitive[:, :1]])
    by_category = castle(replace(SCHEMA, sensitive=(ILLNESS,)), formation=formation, k=4, delta=80, p_categories=2)
    by_value = castle(replace(SCHEMA, sensitive=(CATEGORY,)), formation=formation, k=4, delta=80, l=2)
    one = feed(by_category, replace(data, sensitive=data.sensitive[:, :1]))
    other = feed(by_value, plain)
    for mine, theirs in zip(one.releases, other.releases, strict=True):
        assert np.array_equal(mine.members, theirs.members)
        assert np.array_equal(mine.lo, theirs.lo)
        assert np.array_equal(mine.suppressed, theirs.suppressed)


def test_a_share_looks_for_others_instead_of_suppressing() -> None:
    """Neighbours of one category surround every row; the others are far away, and still come."""
    rows = 120
    quasi = np.zeros((rows, 1))
    sensitive = np.zeros((rows, 1), np.int32)
    sensitive[::2] = 3
    quasi[::2] = 90.0
    schema = Schema("person", (Number("x", 0, 100),), (ILLNESS,))
    engine = castle(schema, k=4, delta=60, max_category_share=0.5)
    order = np.arange(rows)
    outcome = feed(engine, Batch(order, order / 10, order, quasi, sensitive))
    assert assert_meets(engine, outcome) == rows


def test_what_no_class_can_meet_is_suppressed() -> None:
    data = stream(SCHEMA, 3, 90)
    alone = np.zeros_like(data.sensitive)
    engine = castle(SCHEMA, k=2, delta=30, max_category_share={"each": {"illness": 0.5}})
    outcome = feed(engine, replace(data, sensitive=alone))
    assert len(outcome.suppressed()) == 90


@pytest.mark.parametrize(
    ("asked", "parameter", "nearest"),
    [
        ({"p": 9}, "p", 6),
        ({"p": {"each": {"income": 6}}}, "p", 5),
        ({"p_categories": 3}, "p_categories", 2),
        ({"p_categories": {"each": {"illness": 4}}}, "p_categories", 3),
        ({"alpha_weight": {"every": 4, "over": "values"}}, "alpha_weight", 3.5),
        ({"max_category_share": 0.3}, "max_category_share", 0.3334),
        ({"max_category_share": 0.7, "reuse": True}, "reuse", "false"),
        ({"p_categories": {"each": {"weather": 2}}}, "p_categories", None),
        ({"alpha_weight": 40.5}, "delay", 40),
    ],
    ids=str,
)
def test_what_cannot_be_met_is_refused(asked: Any, parameter: str, nearest: Any) -> None:
    with pytest.raises(InfeasibleError) as refused:
        castle(SCHEMA, k=2, delta=30, **asked)
    assert (refused.value.parameter, refused.value.nearest) == (parameter, nearest)


def test_without_categories_nothing_is_promised_about_them() -> None:
    with pytest.raises(InfeasibleError, match="declare its sensitivity"):
        castle(MIXED, k=2, delta=30, p_categories=2)


@pytest.mark.parametrize(
    ("asked", "broken", "model"),
    [
        ({"p_categories": 3}, ("needs", 1), "p-plus-sensitivity"),
        ({"alpha_weight": 9}, ("needs", 1), "category-weight"),
        ({"max_category_share": 0.4}, ("caps", [1, 1, 0]), "max-category-share"),
    ],
    ids=str,
)
def test_a_release_that_fails_a_condition_is_never_returned(asked: Any, broken: Any, model: str) -> None:
    schema = replace(SCHEMA, sensitive=(ILLNESS,))
    engine = castle(schema, k=2, delta=50, **asked)
    name, harmless = broken
    getattr(engine._packed, name)[:] = harmless
    data = stream(MIXED, 1, 200)
    with pytest.raises(GuaranteeError, match=model):
        feed(engine, replace(data, sensitive=data.sensitive[:, :1]))
