"""What models survive: merging two classes, adding rows. Each claim is tried, each denial has an example."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
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
from tests.privacy.privacy_worlds import counted, worlds
from tests.privacy.test_models_against_oracles import MODELS

HAIR = Fraction(1, 10**9)


def just_met(model: Any, groups: Any) -> Any:
    """The strictest model of its kind that all classes meet, up to a hair."""
    achieved = model.achieved(groups)
    worst = achieved.min() if model.more_is_safer else achieved.max()
    assume(np.isfinite(worst))
    if isinstance(model, KAnonymity | DistinctDiversity):
        asked = int(worst)
    elif model.more_is_safer:
        asked = max(Fraction(worst) - HAIR, 1)  # type: ignore[assignment]
    else:
        limit = 1 if isinstance(model, TCloseness | AlphaK | MaxShare) else np.inf
        asked = min(Fraction(worst) + HAIR, limit)  # type: ignore[assignment]
    return replace(model, **{model.parameter: asked})


@pytest.mark.parametrize("model", [one for one in MODELS if one.survives_merging], ids=str)
@given(world=worlds(most_classes=3))
@settings(max_examples=60)
def test_merging(model: Any, world: Any) -> None:
    model = just_met(model, world.groups)
    assert model.holds(world.groups).all()
    merged = world.regrouped(np.where(world.classes > 0, 0, world.classes), 1)
    assert model.holds(merged).all()


@pytest.mark.parametrize("model", [one for one in MODELS if one.survives_adding], ids=str)
@given(world=worlds(most_classes=1), added=st.integers(0, 2**24 - 1))
@settings(max_examples=60)
def test_adding(model: Any, world: Any, added: int) -> None:
    model = just_met(model, world.groups)
    joins = np.array([bool(added >> row & 1) for row in range(len(world.classes))])
    grown = world.regrouped(np.where(joins, 0, world.classes), 1)
    assert model.holds(grown).all()


PAIR = Category("illness", Hierarchy.flat(["flu", "cancer"]))
TREE = Category("illness", Hierarchy.from_mapping({"all": {"lungs": ["flu", "cough"], "gut": ["ulcer", "colic"]}}))
PAY = Number("pay", 1, 4, integer=True)

ADDING = [
    (EntropyDiversity(2), PAIR, [8, 8], [2, 2], [3, 2]),
    (RecursiveDiversity(1.5, 2), PAIR, [8, 8], [2, 2], [3, 2]),
    (FrequencyDiversity(2), PAIR, [8, 8], [2, 2], [3, 2]),
    (AlphaK(0.5, 2), PAIR, [8, 8], [2, 2], [3, 2]),
    (TCloseness(0), PAIR, [8, 8], [2, 2], [3, 2]),
    (BetaLikeness(0.1), PAIR, [8, 8], [2, 2], [3, 2]),
    (SemanticLikeness(0.1, 1), TREE, [4, 4, 4, 4], [1, 1, 1, 1], [2, 1, 1, 1]),
    (RangeLikeness(0.1, 1), PAY, [4, 4, 4, 4], [1, 1, 1, 1], [2, 1, 1, 1]),
    (DeltaDisclosure(0.1), PAIR, [8, 8], [2, 2], [3, 2]),
]


@pytest.mark.parametrize(("model", "attribute", "reference", "before", "after"), ADDING, ids=lambda one: str(one)[:40])
def test_what_does_not_survive_adding(model: Any, attribute: Any, reference: Any, before: Any, after: Any) -> None:
    assert not model.survives_adding
    assert model.holds(counted(attribute, reference, before, after)).tolist() == [True, False]


def test_max_share_survives_merging_but_not_adding() -> None:
    """Merging two classes that share all persons keeps the share; adding a second row of one person does not."""
    schema = Schema(PersonSource.ROW, (Number("age", 0, 99),))
    model, none = MaxShare(0.5), np.empty((4, 0), np.int32)
    persons = np.array([1, 2, 1, 2])
    assert model.survives_merging
    assert model.holds(Groups.of(schema, persons, none, np.array([0, 0, 1, 1]), 2)).tolist() == [True, True]
    assert model.holds(Groups.of(schema, persons, none, np.zeros(4, int), 1)).tolist() == [True]
    assert not model.survives_adding
    assert model.holds(Groups.of(schema, persons, none, np.array([0, 0, 0, -1]), 1)).tolist() == [False]


def test_max_share_counts_classes_with_one_row_per_person() -> None:
    """Three persons with a row each have a third of the class each, which is more than a quarter."""
    schema = Schema(PersonSource.ROW, (Number("age", 0, 99),))
    groups = Groups.of(schema, np.arange(3), np.empty((3, 0), np.int32), np.zeros(3, int), 1)
    assert MaxShare(0.25).achieved(groups).tolist() == [1 / 3]
    assert MaxShare(0.25).holds(groups).tolist() == [False]
    assert MaxShare(0.25).least_persons == 4
    assert MaxShare(0.34).holds(groups).tolist() == [True]


def test_every_denial_has_its_example() -> None:
    denied = {type(model) for model in MODELS if not model.survives_adding}
    assert denied == {type(model) for model, *_ in ADDING} | {MaxShare}
    assert all(model.survives_merging for model in MODELS)
