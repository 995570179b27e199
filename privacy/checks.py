"""Generic checks: what must be true of every privacy model, whatever it asks for.

A check takes a `ModelCase` (a key of a guarantee with something to ask for) and raises `AssertionError` where something
is wrong. Cases are the requests that a key declares, so a model is checked as soon as its key is added. Whoever writes
a model outside of this repository runs them too, beside an oracle of its definition:

>>> from privacy import KEYS
>>> from privacy.checks import MODEL_CHECKS, model_cases
>>> for case in model_cases(KEYS["k"]):
...     for check in MODEL_CHECKS:
...         check(case)
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microdata import InfeasibleError, Table, example_table
from privacy.guarantee import Guarantee
from privacy.keys import KEYS, Key
from privacy.model import CHECKED_ON, Groups, Model

TRIES = 25
"""Random tables for each claim."""
SLACK = 1e-9
"""`achieved` is a float; `holds` is exact, or on the safe side."""


@dataclass(frozen=True)
class ModelCase:
    """A key of a guarantee with something to ask for, and something stricter."""

    key: Key
    request: Any
    stricter: Any

    def __str__(self) -> str:
        return f"{self.key.name}: {json.dumps(self.request)}"

    def models(self, *, stricter: bool = False) -> tuple[Model, ...]:
        """What is asked for, of the example's schema."""
        written = json.dumps({self.key.name: self.stricter if stricter else self.request})
        return Guarantee.model_validate_json(written, strict=True).models(example_table(1).schema)


def model_cases(key: Key) -> list[ModelCase]:
    """Every way to ask that a key declares."""
    return [ModelCase(key, *request) for request in key.requests]


def all_model_cases() -> list[ModelCase]:
    """The cases of every key."""
    return [case for key in KEYS for case in model_cases(key)]


@dataclass(frozen=True, eq=False)
class _World:
    """A random table with persons of several rows, in classes; -1 is suppressed."""

    table: Table
    classes: NDArray[np.int64]
    count: int

    def groups(self, classes: NDArray[np.int64] | None = None, count: int | None = None) -> Groups:
        """These classes of the table, or its own."""
        table = self.table
        return Groups.of(
            table.schema,
            table.persons,
            table.sensitive,
            self.classes if classes is None else classes,
            self.count if count is None else count,
            table.schema.histograms(table.sensitive),
        )


def _worlds() -> Iterator[_World]:
    for seed in range(TRIES):
        random = np.random.default_rng(seed)
        rows, count = int(random.integers(8, 60)), int(random.integers(1, 5))
        table = example_table(rows, seed, persons=int(random.integers(3, 40)))
        yield _World(table, np.concatenate([np.arange(count), random.integers(-1, count, rows - count)]), count)


def _just_met(model: Model, groups: Groups) -> Model:
    """The strictest model of its kind that all classes meet, where there is one; else as it was asked for."""
    achieved = model.achieved(groups)
    nearest = model.nearest(float(achieved.min() if model.more_is_safer else achieved.max()))
    if not isinstance(nearest, int | float):
        return model
    try:
        return type(model)(**{**_fields(model), model.parameter: nearest})
    except InfeasibleError:
        return model


def _fields(model: Any) -> dict[str, Any]:
    return {field.name: getattr(model, field.name) for field in dataclasses.fields(model)}


def it_declares_itself(case: ModelCase) -> None:
    """A frozen dataclass with a threshold among its fields, of the kinds that its key names."""
    json.dumps(Guarantee.model_json_schema())
    assert case.key.field.get("description"), "nobody says what the key means"
    for model in case.models():
        assert type(model) in case.key.asks_for, "the key does not name this model"
        assert model.parameter in _fields(model), "the threshold is no field of a dataclass"
        assert hash(model) == hash(type(model)(**_fields(model))), "a model is a value"
        assert model.name
        assert model.label
        assert np.isfinite(model.asked)
        assert isinstance(model.survives_merging, bool)
        assert isinstance(model.survives_adding, bool)
        assert model.checked_on in CHECKED_ON


def holds_agrees_with_achieved(case: ModelCase) -> None:
    """A class that meets the model achieves what is asked for; one that does not, does not."""
    for world in _worlds():
        groups = world.groups()
        for model in (*case.models(), *case.models(stricter=True)):
            achieved, holds = model.achieved(groups), model.holds(groups)
            assert achieved.shape == holds.shape == (world.count,)
            room = (achieved - model.asked) * (1 if model.more_is_safer else -1)
            assert (room[holds] >= -SLACK).all(), "a class holds that does not achieve it"
            assert (room[~holds] <= SLACK).all(), "a class achieves it that does not hold"


def each_class_is_judged_alone(case: ModelCase) -> None:
    """Neither the order of the classes nor the others matter."""
    for world in _worlds():
        for model in case.models():
            holds = model.holds(world.groups())
            turned = np.where(world.classes < 0, -1, world.count - 1 - world.classes)
            assert np.array_equal(holds, model.holds(world.groups(turned))[::-1])
            for one in range(world.count):
                alone = np.where(world.classes == one, 0, -1)
                assert model.holds(world.groups(alone, 1))[0] == holds[one]


def no_class_is_no_trouble(case: ModelCase) -> None:
    """Everything may be suppressed."""
    for world in _worlds():
        nothing = world.groups(np.full(len(world.classes), -1), 0)
        for model in case.models():
            assert len(model.holds(nothing)) == len(model.achieved(nothing)) == 0


def stricter_is_stricter(case: ModelCase) -> None:
    """What meets the stricter request meets the other."""
    for world in _worlds():
        groups = world.groups()
        for loose, strict in zip(case.models(), case.models(stricter=True), strict=True):
            assert not (strict.holds(groups) & ~loose.holds(groups)).any()


def merging_is_survived_where_it_says_so(case: ModelCase) -> None:
    """The union of all classes of a table meets what each of them meets."""
    for world in _worlds():
        united = world.groups(np.minimum(world.classes, 0), 1)
        for model in case.models():
            tight = _just_met(model, world.groups())
            if model.survives_merging and tight.holds(world.groups()).all():
                assert tight.holds(united)[0], "it does not survive merging"


def adding_is_survived_where_it_says_so(case: ModelCase) -> None:
    """A class with further rows of the table meets what it met without."""
    for seed, world in enumerate(_worlds()):
        joins = np.random.default_rng(seed).random(len(world.classes)) < 0.5
        before = world.groups(np.where(world.classes == 0, 0, -1), 1)
        after = world.groups(np.where(joins | (world.classes == 0), 0, -1), 1)
        for model in case.models():
            tight = _just_met(model, before)
            if model.survives_adding and tight.holds(before)[0]:
                assert tight.holds(after)[0], "it does not survive adding"


def fewer_persons_never_do(case: ModelCase) -> None:
    """No class with fewer persons than `least_persons` meets it."""
    for world in _worlds():
        groups = world.groups()
        for model in (*case.models(), *case.models(stricter=True)):
            assert not model.holds(groups)[groups.persons < model.least_persons].any()


def what_is_nearest_is_feasible(case: ModelCase) -> None:
    """Whoever is refused is told something that is not."""
    for world in _worlds():
        whole = world.groups(np.zeros(len(world.classes), np.int64), 1)
        for model in case.models(stricter=True):
            nearer = _just_met(model, whole)
            assert nearer is model or nearer.holds(whole)[0]


MODEL_CHECKS = (
    it_declares_itself,
    holds_agrees_with_achieved,
    each_class_is_judged_alone,
    no_class_is_no_trouble,
    stricter_is_stricter,
    merging_is_survived_where_it_says_so,
    adding_is_survived_where_it_says_so,
    fewer_persons_never_do,
    what_is_nearest_is_feasible,
)
