"""Purpose: degrees are laid on attributes as the definitions say, trust has an effect, the guarantee always holds."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from microdata import GuaranteeError, InfeasibleError, example_table
from privacy import KAnonymity, audit
from static_algos import Purpose, purpose
from static_algos.purpose import PurposeParameters, attribute_degrees, priorities, rises, steps_after
from static_algos.recoding import recodings

shares = st.floats(0, 1, allow_subnormal=False)
worlds = st.lists(st.tuples(shares, st.integers(1, 7)), min_size=1, max_size=6)


def taken(degrees: Any, priority: Any, degree: float, mode: str) -> Any:
    climb = rises(degrees, priority, mode)
    return steps_after(climb, sum(rise.degree < degree - 1e-9 for rise in climb), len(degrees))


def filled(need: Any, degree: float) -> Any:
    """Degrees min(1, λ · need) whose mean is the given one; what is needed most (0) is filled last, evenly."""
    last = need <= 0
    if degree * len(need) >= (~last).sum():
        return np.where(last, (degree * len(need) - (~last).sum()) / max(last.sum(), 1), 1.0)
    low, high = 0.0, 1 / need[~last].min()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(1, middle * need).mean() < degree else (low, middle)
    return np.minimum(1, high * need)


@settings(max_examples=150)
@given(worlds, st.floats(0.001, 1), st.sampled_from([0.0, 1.0, 2.5]))
def test_the_least_useful_are_filled_first_and_the_mean_is_what_was_asked(
    world: Any, degree: float, power: float
) -> None:
    priority = np.array([own for own, _ in world])
    assume((np.abs(priority - 1) > 1e-3).sum() == (priority < 1).sum())
    degrees = [attribute_degrees(levels, power) for _, levels in world]
    wanted = filled(1 - priority, degree)
    found = taken(degrees, priority, degree, "purpose")
    for own, step, want in zip(degrees, found, wanted, strict=True):
        assert own[step] >= want - 1e-6 or step == len(own) - 1
        assert step == 0 or own[step - 1] < want + 1e-6


@settings(max_examples=100)
@given(worlds, st.floats(0, 1))
def test_the_literal_way_is_that_of_the_source(world: Any, degree: float) -> None:
    priority = np.array([own for own, _ in world])
    assume(priority.sum() > 1e-6)
    degrees = [attribute_degrees(levels, 0) for _, levels in world]
    for own, (one, levels), step in zip(degrees, world, taken(degrees, priority, degree, "literal"), strict=True):
        exact = one / priority.sum() * degree * (levels - 1)
        assert step in {math.ceil(exact - 1e-6), math.ceil(exact + 1e-6)} or exact < 1e-6
        assert step < len(own)


@settings(max_examples=80)
@given(st.lists(st.integers(0, 3), min_size=3, max_size=30), st.permutations(range(4)))
def test_priorities_fall_from_one_to_nothing(seeds: Any, order: Any) -> None:
    random = np.random.default_rng(seeds)
    between = random.random((4, 4))
    between = between + between.T
    found = priorities(between, order)
    assert found[0] == 1
    assert found[-1] == pytest.approx(0, abs=1e-12)
    assert (np.diff(found) <= 1e-12).all()
    # The equations of the source, whose solution this is.
    for place in (1, 2):
        before, after = between[order[place - 1], order[place]], between[order[place], order[place + 1]]
        expected = (after * found[place - 1] + before * found[place + 1]) / (before + after)
        assert found[place] == pytest.approx(expected)
    assert priorities(np.zeros((4, 4)), order) == pytest.approx([1, 2 / 3, 1 / 3, 0])
    assert priorities(between, [2]).tolist() == [1]


def test_trust_becomes_a_degree() -> None:
    def degree(**asked: Any) -> float:
        return PurposeParameters.model_validate({"k": 2, **asked}).degree()

    assert degree(trust=0.6) == pytest.approx(0.64)
    assert degree(trust=0.6, projection="linear") == pytest.approx(0.4)
    assert degree(trust=0.6, projection="steep") == pytest.approx(0.16)
    assert degree(trust=0.75, points=[(0, 1), (0.5, 0.8), (1, 0)]) == pytest.approx(0.4)
    for projection in ("quadratic", "linear", "steep"):
        assert (degree(trust=0, projection=projection), degree(trust=1, projection=projection)) == (1, 0)


@pytest.mark.parametrize(
    ("parameter", "asked"),
    [
        ("order", {"order": ["age", "nobody"]}),
        ("order", {"order": ["age", "age"]}),
        ("points", {"points": [(0, 0.2), (1, 0.8)]}),
        ("points", {"points": [(0.2, 1), (1, 0)]}),
        ("trust", {"trust": 1.5}),
    ],
)
def test_what_makes_no_sense_is_refused(parameter: str, asked: Any) -> None:
    with pytest.raises(InfeasibleError) as refusal:
        Purpose(**{"k": 2, "trust": 0.5, **asked}).anonymize(example_table())
    assert str(refusal.value.parameter).startswith(parameter)


@pytest.mark.parametrize("mode", ["purpose", "literal"])
def test_more_trust_never_costs_more_and_the_purpose_is_served(mode: str) -> None:
    table = example_table(200, 1)
    found = [Purpose(k=2, trust=trust, order=["city", "age"], mode=mode).anonymize(table) for trust in (0, 0.5, 0.9, 1)]
    levels = [tuple(one.details["levels"].values()) for one in found]  # type: ignore[attr-defined]
    for less, more in pairwise(levels):
        assert all(one >= other for one, other in zip(less, more, strict=True))
    for one in found:
        assert one.details["achieved_degree"] >= 0  # type: ignore[operator]
        assert audit(table, one, (KAnonymity(2),)).holds
    if mode == "purpose":
        assert found[0].loss == 1
        assert found[-1].details["priorities"]["city"] == 1  # type: ignore[index]
        other = Purpose(k=2, trust=0.9, order=["age"]).anonymize(table)
        assert other.details["levels"]["age"] <= found[2].details["levels"]["age"]  # type: ignore[index]


@settings(max_examples=25)
@given(
    st.integers(0, 2**32), st.integers(2, 12), st.floats(0, 1), st.sampled_from([{}, {"t": 0.4}, {"max_share": 0.5}])
)
def test_the_degree_is_raised_no_further_than_the_guarantee_needs(seed: int, k: int, trust: float, more: Any) -> None:
    table = example_table(60, seed, persons=40)
    asked = Purpose(k=k, trust=trust, order=["city"], **more)
    models = asked.models(table.schema)
    try:
        publication = asked.anonymize(table)
    except InfeasibleError:
        return
    recoded = recodings(table, 4, {})
    degrees = [attribute_degrees(len(one.levels), 0) for one in recoded]
    climb = rises(degrees, np.array(list(publication.details["priorities"].values())), "purpose")  # type: ignore[attr-defined]
    first = sum(rise.degree < publication.details["requested_degree"] - 1e-9 for rise in climb)  # type: ignore[operator]
    ends = [
        n
        for n in range(first, len(climb) + 1)
        if n in (first, len(climb)) or climb[n].degree > climb[n - 1].degree + 1e-9
    ]
    fitting = next(end for end in ends if purpose._holds(table, recoded, models, steps_after(climb, end, len(recoded))))
    expected = steps_after(climb, fitting, len(recoded))
    assert tuple(publication.details["levels"].values()) == expected  # type: ignore[attr-defined]
    assert publication.details["raised_for_the_guarantee"] is (fitting > first)


def test_where_the_literal_way_ends_what_is_of_no_use_is_generalized_too() -> None:
    table = example_table(12, 1)
    asked = {"k": 12, "trust": 0.5, "order": ["age", "city", "pay", "sex"]}
    publication = Purpose(**asked, mode="literal").anonymize(table)
    assert publication.details["levels"] == Purpose(**asked).anonymize(table).details["levels"]
    assert publication.details["achieved_degree"] == 1
    assert publication.details["priorities"]["sex"] == 0  # type: ignore[index]


def test_a_wrong_level_never_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purpose, "_least", lambda *given: 0)
    with pytest.raises(GuaranteeError, match="k-anonymity"):
        Purpose(k=5, trust=0.5).anonymize(example_table())
