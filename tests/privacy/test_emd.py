"""Closed forms of the earth mover's distance against the linear program that defines it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import Category, Hierarchy, Number
from privacy import TCloseness, distance
from tests.privacy.privacy_oracles import emd, ground_distances, shares, transport
from tests.privacy.privacy_worlds import counted, trees

counts = st.integers(0, 6)


@st.composite
def pairs(draw: Any, size: Any) -> Any:
    """Two distributions over one domain, as counts."""
    filled = st.lists(counts, min_size=size, max_size=size).filter(any)
    return draw(filled), draw(filled)


@given(st.data(), trees(), st.sampled_from(["auto", "rank", "equal"]))
@settings(max_examples=80)
def test_categories_against_a_transport_solver(data: Any, tree: Any, ground: Any) -> None:
    attribute = Category("a", tree)
    p, q = data.draw(pairs(tree.size))
    exact = distance(attribute, np.array(p), np.array(q), ground)
    assert exact == emd(attribute, shares(p), shares(q), ground)
    solved = transport(shares(p), shares(q), ground_distances(attribute, either(p, q), ground))
    assert float(exact) == pytest.approx(solved, abs=1e-9)


def either(p: Any, q: Any) -> Any:
    """Which values occur in one of two distributions."""
    return [bool(a or b) for a, b in zip(p, q, strict=True)]


@given(st.data(), st.integers(1, 9), st.sampled_from(["auto", "rank", "domain"]), st.booleans())
@settings(max_examples=120)
def test_numbers_against_a_transport_solver(data: Any, size: int, ground: Any, by_quantiles: bool) -> None:
    inner = st.lists(st.integers(1, max(size - 2, 1)), unique=True, max_size=3).map(sorted)
    quantiles = tuple(data.draw(inner)) if by_quantiles and size > 2 else ()
    attribute = Number("a", 0, size - 1, integer=True, quantiles=quantiles)
    p, q = data.draw(pairs(size))
    exact = distance(attribute, np.array(p), np.array(q), ground)
    assert exact == emd(attribute, shares(p), shares(q), ground)
    solved = transport(shares(p), shares(q), ground_distances(attribute, either(p, q), ground))
    assert float(exact) == pytest.approx(solved, abs=1e-9)


def test_values_that_do_not_occur_have_no_rank() -> None:
    """A heavy tail: in the declared domain of 120,001 values nothing is far, among those present it is."""
    balance = Number("balance", -10_000, 110_000, integer=True)
    table, half = np.zeros((2, balance.size), int)  # type: ignore[type-var]
    table[10_000 + np.arange(0, 1000, 10)] = half[10_000 + np.arange(0, 500, 10)] = 1
    assert distance(balance, table, half, "domain") < 0.003
    assert distance(balance, table, half) == pytest.approx(0.25, abs=0.01)
    told = Number("balance", -10_000, 110_000, integer=True, quantiles=(0, 250, 500, 750, 1000))
    assert distance(told, table, half, "domain") == pytest.approx(1 / 6, abs=0.01)


@given(st.data(), trees())
def test_symmetric_and_zero_for_proportional_counts(data: Any, tree: Any) -> None:
    attribute = Category("a", tree)
    p, q = (np.array(one) for one in data.draw(pairs(tree.size)))
    assert distance(attribute, p, q) == distance(attribute, q, p)
    assert distance(attribute, p, 7 * p) == 0


def test_a_hundred_thousand_values() -> None:
    size = 100_000
    random = np.random.default_rng(1)
    p, q = random.integers(0, 5, size), random.integers(0, 2, size)
    number = Number("a", 0, size - 1, integer=True)
    area = np.abs(np.cumsum(q / q.sum() - p / p.sum()))
    assert float(distance(number, p, q, "domain")) == pytest.approx(area.sum() / (size - 1))
    present = (p > 0) | (q > 0)
    assert float(distance(number, p, q)) == pytest.approx(area[present].sum() / (present.sum() - 1))

    tree = Hierarchy.from_mapping({"all": {f"g{g}": [f"v{g}.{v}" for v in range(100)] for g in range(1_000)}})
    surplus = q / q.sum() - p / p.sum()
    expected = np.maximum(surplus, 0).sum() / 2 + np.maximum(surplus.reshape(1_000, 100).sum(axis=1), 0).sum() / 2
    assert float(distance(Category("a", tree), p, q)) == pytest.approx(expected)


def test_a_domain_of_one_value_is_never_far() -> None:
    assert distance(Number("a", 3, 3, integer=True), np.array([4]), np.array([9])) == 0
    assert distance(Category("a", Hierarchy.flat(["only"])), np.array([4]), np.array([9])) == 0


def test_counts_beyond_64_bits_stay_exact() -> None:
    """n · N · m is about 2⁸⁰ here: nothing may wrap around."""
    huge = 2**38
    attribute = Number("a", 0, 15, integer=True)
    p, q = np.full(16, huge), np.r_[np.full(15, huge), huge + 1]
    assert distance(attribute, p, q) == emd(attribute, shares(p.tolist()), shares(q.tolist()))


def test_an_empty_reference_is_infinitely_far() -> None:
    groups = counted(Number("a", 0, 1, integer=True), [0, 0], [1, 2])
    assert TCloseness(1).achieved(groups).tolist() == [np.inf]
    assert not TCloseness(1).holds(groups).any()
