"""Every model decides as a plain program in fractions does."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import Category, Hierarchy, Number, PersonSource, Schema
from privacy import (
    AlphaK,
    BetaLikeness,
    DeltaDisclosure,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    Groups,
    KAnonymity,
    MaxShare,
    RangeLikeness,
    RecursiveDiversity,
    SemanticLikeness,
    TCloseness,
)
from tests.privacy.privacy_oracles import (
    counts_of,
    disclosure,
    distinct,
    emd,
    entropy_reaches,
    likeness,
    ranges,
    recursive,
    semantic,
    shares,
)
from tests.privacy.privacy_worlds import counted, worlds

whole = st.integers(1, 5)
factors = st.sampled_from([0.1, 0.25, 0.5, 1, 1.5, 2, 3.75])
portions = st.sampled_from([0.1, 0.2, 0.25, 0.5, 0.75, 1])


def sensitive_rows(world: Any, one: Any) -> Iterator[Any]:
    """Per sensitive attribute: attribute, reference counts, class counts."""
    for column, attribute in enumerate(world.schema.sensitive):
        values = world.sensitive[:, column].tolist()
        members = [values[row] for row in world.members(one)]
        yield attribute, counts_of(values, attribute.size), counts_of(members, attribute.size)


def assert_agrees(model: Any, world: Any, condition: Any) -> None:
    """`condition` of an attribute, its shares in the table and the class, and the counts in the class."""
    holds = model.holds(world.groups)
    for one in range(world.count):
        expected = all(
            condition(attribute, shares(reference), shares(counts), counts)
            for attribute, reference, counts in sensitive_rows(world, one)
            if model.attribute in {None, attribute.name}
        )
        assert holds[one] == expected, one


@given(worlds(), whole)
def test_k_anonymity_counts_distinct_persons(world: Any, k: Any) -> None:
    model = KAnonymity(k)
    persons = [len({int(world.persons[row]) for row in world.members(one)}) for one in range(world.count)]
    assert model.achieved(world.groups).tolist() == persons
    assert model.holds(world.groups).tolist() == [count >= k for count in persons]


@given(worlds(), portions)
def test_max_share(world: Any, share: Any) -> None:
    for one, holds in enumerate(MaxShare(share).holds(world.groups)):
        members = world.persons[world.members(one)].tolist()
        most = max(members.count(person) for person in members)
        assert holds == (Fraction(most, len(members)) <= Fraction(str(share)))


@given(worlds(), whole)
def test_distinct_diversity(world: Any, ell: Any) -> None:
    assert_agrees(DistinctDiversity(ell), world, lambda _a, _p, q, _c: distinct(q) >= ell)


@given(worlds(), st.sampled_from([1, 1.5, 2, 2.75, 3]))
def test_entropy_diversity(world: Any, ell: Any) -> None:
    assert_agrees(EntropyDiversity(ell), world, lambda _a, _p, _q, counts: entropy_reaches(counts, ell))


@given(worlds(), factors, whole)
def test_recursive_diversity(world: Any, c: Any, ell: Any) -> None:
    assert_agrees(RecursiveDiversity(c, ell), world, lambda _a, _p, _q, counts: recursive(counts, c, ell))


@given(worlds(), st.sampled_from([1, 1.5, 2, 3]))
def test_frequency_diversity(world: Any, ell: Any) -> None:
    assert_agrees(FrequencyDiversity(ell), world, lambda _a, _p, q, _c: max(q) * Fraction(str(ell)) <= 1)


@given(worlds(), portions, whole)
def test_alpha_k(world: Any, alpha: Any, k: Any) -> None:
    model = AlphaK(alpha, k)
    holds = model.holds(world.groups)
    for one in range(world.count):
        enough = len({int(world.persons[row]) for row in world.members(one)}) >= k
        rare = all(max(shares(counts)) <= Fraction(str(alpha)) for _a, _r, counts in sensitive_rows(world, one))
        assert holds[one] == (enough and rare)


@given(worlds(), portions, st.sampled_from(["auto", "rank", "domain", "equal"]))
def test_closeness(world: Any, t: Any, ground: Any) -> None:
    model = TCloseness(t, ground)
    assert_agrees(model, world, lambda a, p, q, _c: emd(a, p, q, ground) <= Fraction(str(t)))


@given(worlds(), st.sampled_from(["auto", "rank", "domain", "equal"]))
def test_closeness_at_the_very_threshold(world: Any, ground: Any) -> None:
    for one in range(world.count):
        exact = max(emd(a, shares(r), shares(c), ground) for a, r, c in sensitive_rows(world, one))
        assert TCloseness(exact, ground).holds(world.groups)[one]
        assert TCloseness(ground=ground, t=float(exact)).achieved(world.groups)[one] == pytest.approx(float(exact))
        if exact > 0:
            assert not TCloseness(exact * (1 - Fraction(1, 10**15)), ground).holds(world.groups)[one]


@given(worlds(), factors, st.sampled_from(["enhanced", "basic"]))
def test_likeness(world: Any, beta: Any, kind: Any) -> None:
    model = BetaLikeness(beta, kind)
    assert_agrees(model, world, lambda _a, p, q, _c: likeness(p, q, beta, enhanced=kind == "enhanced"))


@given(worlds())
def test_basic_likeness_at_the_very_threshold(world: Any) -> None:
    for one in range(world.count):
        gain = max(
            (b - a) / a
            for _, reference, counts in sensitive_rows(world, one)
            for a, b in zip(shares(reference), shares(counts), strict=True)
            if a > 0
        )
        if gain > 0:
            assert BetaLikeness(gain, "basic").holds(world.groups)[one]
            assert not BetaLikeness(gain * (1 - Fraction(1, 10**15)), "basic").holds(world.groups)[one]


@given(worlds(), factors, whole)
def test_semantic_likeness(world: Any, beta: Any, height: Any) -> None:
    model = SemanticLikeness(beta, height, attribute="illness")
    assert_agrees(model, world, lambda a, p, q, _c: semantic(a, p, q, beta, height))


@given(worlds(), factors, st.sampled_from([0, 0.4, 0.5, 1, 2.5, 100]), st.booleans())
def test_range_likeness(world: Any, beta: Any, width: Any, relative: bool) -> None:
    model = RangeLikeness(beta, width, relative, attribute="pay")
    assert_agrees(model, world, lambda a, p, q, _c: ranges(a, p, q, beta, width, relative=relative))


@given(worlds(), st.sampled_from([0.1, 0.5, 1, 2, 4]))
def test_disclosure(world: Any, delta: Any) -> None:
    assert_agrees(DeltaDisclosure(delta), world, lambda _a, p, q, _c: disclosure(p, q, delta))


MODELS = [
    KAnonymity(3),
    MaxShare(0.4),
    DistinctDiversity(2),
    EntropyDiversity(1.9),
    RecursiveDiversity(1.1, 2),
    FrequencyDiversity(1.7),
    AlphaK(0.6, 2),
    TCloseness(0.3),
    TCloseness(0.3, "equal"),
    BetaLikeness(0.9),
    BetaLikeness(0.9, "basic"),
    SemanticLikeness(0.3, 2, "illness"),
    RangeLikeness(0.8, 2, attribute="pay"),
    DeltaDisclosure(1.1),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
@given(world=worlds())
@settings(max_examples=40)
def test_achieved_says_which_parameter_would_hold(model: Any, world: Any) -> None:
    achieved, holds = model.achieved(world.groups), model.holds(world.groups)
    away = np.abs(achieved - model.asked) > 1e-9
    safer = achieved > model.asked if model.more_is_safer else achieved < model.asked
    assert (holds == safer)[away].all()


@pytest.mark.parametrize("model", MODELS, ids=str)
@given(world=worlds())
@settings(max_examples=20)
def test_large_products_fall_back_to_unbounded_integers(model: Any, world: Any, with_unbounded_integers: Any) -> None:
    assert (model.holds(world.groups) == with_unbounded_integers(model, world.groups)).all()


@given(worlds(), factors)
def test_range_likeness_implies_enhanced_likeness(world: Any, beta: Any) -> None:
    stronger = RangeLikeness(beta, 1, attribute="pay").holds(world.groups)
    assert (stronger <= BetaLikeness(beta, attribute="pay").holds(world.groups)).all()


ILLNESS = Category("illness", Hierarchy.from_mapping({"all": {"lungs": ["flu", "cough"], "gut": ["ulcer", "colic"]}}))
PAY = Number("pay", 1, 4, integer=True)
UNKNOWN = [
    (BetaLikeness(9), ILLNESS),
    (BetaLikeness(9, "basic"), ILLNESS),
    (SemanticLikeness(9, 1), ILLNESS),
    (RangeLikeness(9, 1), PAY),
    (DeltaDisclosure(9), ILLNESS),
]


@pytest.mark.parametrize(("model", "attribute"), UNKNOWN, ids=str)
@pytest.mark.parametrize("reference", [[5, 5, 0, 0], [0, 0, 0, 0]], ids=["unknown value", "empty reference"])
def test_what_the_reference_does_not_have_violates(model: Any, attribute: Any, reference: Any) -> None:
    groups = counted(attribute, reference, [1, 1, 1, 0])
    assert not model.holds(groups)[0]
    assert model.achieved(groups)[0] == np.inf


def test_disclosure_stays_below_its_bound() -> None:
    groups = counted(ILLNESS, [5, 5, 5, 5], [3, 2, 2, 2])
    (achieved,) = DeltaDisclosure(1).achieved(groups).tolist()
    assert DeltaDisclosure(achieved * (1 + 1e-9)).holds(groups).all()
    assert not DeltaDisclosure(achieved).holds(groups).any()


def test_disclosure_needs_every_value_of_the_reference() -> None:
    groups = counted(ILLNESS, [5, 5, 5, 5], [2, 2, 2, 0], [2, 2, 2, 2])
    assert DeltaDisclosure(9).holds(groups).tolist() == [False, True]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_no_classes(model: Any) -> None:
    schema = Schema(PersonSource.ROW, (Number("age", 0, 9),), (ILLNESS, PAY))
    groups = Groups.of(schema, np.arange(2), np.zeros((2, 2), np.int32), np.full(2, -1), 0)
    assert model.holds(groups).shape == model.achieved(groups).shape == (0,)


def test_entropy_of_many_equal_counts_is_met_exactly() -> None:
    groups = counted(ILLNESS, [1, 1, 1, 1], [10**6, 10**6, 10**6, 0])
    assert EntropyDiversity(3).holds(groups).all()
    assert not EntropyDiversity(3.0000001).holds(groups).any()
