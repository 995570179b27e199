from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from microdata import Category, Hierarchy, Number
from static_algos._dichotomy_kernels import allowed
from static_algos.dichotomy import dichotomize
from static_algos.limits import places_of, unit
from static_algos.sabre_buckets import bucketize, closeness_test
from tests.privacy.privacy_oracles import emd, ground_distances, shares, transport
from tests.static_algos.bucket_tables import attributes

thresholds = st.sampled_from([Fraction(0), *(Fraction(n, 20) for n in (1, 2, 5, 8, 12, 20))])


@st.composite
def counted(draw: Any, most: int = 6) -> Any:
    """A sensitive attribute and how often its values occur; at least one does."""
    attribute = draw(attributes("s"))
    counts = draw(st.lists(st.integers(0, most), min_size=attribute.size, max_size=attribute.size))
    assume(sum(counts))
    return attribute, np.array(counts)


def steps(attribute: Any, counts: Any) -> Any:
    """The unit of distances."""
    return unit(attribute, places_of([attribute], [counts], "rank")[0])


def members(bucketing: Any, size: Any) -> Any:
    of = bucketing.of_values(size)
    return [np.flatnonzero(of == number) for number in range(len(bucketing.buckets))]


@given(counted(), thresholds)
def test_buckets_part_the_values_and_stay_below_t(case: Any, t: Any) -> None:
    attribute, counts = case
    bucketing = bucketize(attribute, counts, t)
    occurring = np.flatnonzero(counts)
    for bucket, values in zip(bucketing.buckets, members(bucketing, len(counts)), strict=True):
        inside = np.intersect1d(values, occurring)
        assert (bucket.first, bucket.last) == (inside[0], inside[-1])
        if bucket.node >= 0:
            tree = attribute.hierarchy
            assert tree.first[bucket.node] <= bucket.first <= bucket.last <= tree.last[bucket.node]
    bound = Fraction(bucketing.bound, int(counts.sum()) * steps(attribute, counts))
    assert bound < t or len(bucketing.buckets) == len(occurring)


@given(counted(), thresholds)
def test_the_bound_is_what_the_worst_class_of_each_bucket_costs(case: Any, t: Any) -> None:
    """CETᵁ by definition: the most expensive single value to hold a bucket's whole mass, summed over the buckets."""
    attribute, counts = case
    distances, p = ground_distances(attribute, counts > 0), shares(counts.tolist())
    bucketing = bucketize(attribute, counts, t)
    worst = Fraction(0)
    for values in members(bucketing, len(counts)):
        worst += max(
            sum((p[value] * distances[value][held] for value in values), Fraction(0)) for held in values if counts[held]
        )
    bound = Fraction(bucketing.bound, int(counts.sum()) * steps(attribute, counts))
    if isinstance(attribute, Number):
        assert bound == worst
    else:
        # The bound for categories takes every distance inside a bucket for the largest.
        assert worst <= bound


@settings(max_examples=60)
@given(counted(most=4), thresholds, st.randoms(use_true_random=False))
def test_distances_between_buckets_are_least_transports(case: Any, t: Any, random: Any) -> None:
    attribute, counts = case
    bucketing = bucketize(attribute, counts, t)
    parts = members(bucketing, len(counts))
    draws = np.array([random.randint(0, int(counts[values].sum())) for values in parts])
    assume(draws.sum())
    own = ground_distances(attribute, counts > 0)
    far = [
        [0 if a is b else max(own[y][z] for y in a for z in b if counts[y] and counts[z]) for b in parts] for a in parts
    ]
    sizes = [int(counts[values].sum()) for values in parts]
    expected = transport(shares(sizes), shares(draws.tolist()), far)
    bound = bucketing.bound / (int(counts.sum()) * steps(attribute, counts))
    for slack, verdict in ((1e-6, True), (-1e-6, False)):
        threshold = Fraction(expected + bound + slack)
        if threshold >= 0:
            assert allowed(closeness_test(attribute, counts, bucketing, threshold), draws, draws.sum()) == verdict


@settings(max_examples=60)
@given(counted(most=3), thresholds, st.integers(1, 4))
def test_leaves_are_close_whatever_is_drawn(case: Any, t: Any, least: int) -> None:
    attribute, counts = case
    assume(counts.sum() >= least)
    bucketing = bucketize(attribute, counts, t)
    leaves = np.concatenate(list(dichotomize(closeness_test(attribute, counts, bucketing, t), least)))
    parts = members(bucketing, len(counts))
    assert leaves.sum(axis=0).tolist() == [int(counts[values].sum()) for values in parts]
    assert leaves.sum(axis=1).min() >= least
    for leaf in np.unique(leaves, axis=0)[:3]:
        for held in list(product(*[values[counts[values] > 0] for values in parts]))[:40]:
            drawn = np.zeros(len(counts), int)
            drawn[list(held)] = leaf
            assert emd(attribute, shares(counts.tolist()), shares(drawn.tolist())) <= t


def test_ties_follow_the_hierarchy() -> None:
    tree = Hierarchy.from_mapping({"all": {"a": ["a1", "a2"], "b": ["b1", "b2"], "c": ["c1", "c2"]}})
    bucketing = bucketize(Category("s", tree), np.full(6, 4), Fraction(1, 5))
    assert [tree.labels[bucket.node] for bucket in bucketing.buckets] == ["a1", "a2", "b", "c"]


def test_a_split_that_gains_nothing_is_passed_through() -> None:
    """Only one child occurs: splitting the node gains nothing, splitting that child does."""
    tree = Hierarchy.from_mapping({"all": {"x": {"x1": ["p", "q"], "x2": ["r"]}, "y": ["s"]}})
    bucketing = bucketize(Category("s", tree), np.array([5, 5, 0, 0]), Fraction(1, 10))
    assert [tree.labels[bucket.node] for bucket in bucketing.buckets] == ["p", "q"]


@pytest.mark.parametrize("attribute", [Number("s", 3, 3, integer=True), Category("s", Hierarchy.flat(["only"]))])
@pytest.mark.parametrize("t", [Fraction(0), Fraction(1, 2)])
def test_one_value_is_one_bucket(attribute: Any, t: Any) -> None:
    bucketing = bucketize(attribute, np.array([7]), t)
    assert (len(bucketing.buckets), bucketing.bound) == (1, 0)
    assert len(next(dichotomize(closeness_test(attribute, np.array([7]), bucketing, t), 2))) == 3
