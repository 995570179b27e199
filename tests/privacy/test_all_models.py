"""The generic checks, over every key of a guarantee; and that each of them can fail."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from privacy import KEYS, KAnonymity, checks
from privacy.checks import MODEL_CHECKS, ModelCase, all_model_cases, model_cases

KEY = KEYS["k"]


@pytest.mark.parametrize("case", all_model_cases(), ids=str)
@pytest.mark.parametrize("check", MODEL_CHECKS, ids=lambda check: check.__name__)
def test_every_model(check: Any, case: Any) -> None:
    check(case)


@pytest.mark.parametrize("key", list(KEYS), ids=lambda key: key.name)
def test_every_model_of_a_key_can_be_asked_for(key: Any) -> None:
    asked = {type(model) for case in model_cases(key) for model in case.models()}
    assert asked == set(key.asks_for)


class Broken(ModelCase):
    """Asks for a model that is wrong, whatever the key reads."""

    def __init__(self, model: Any, stricter: Any = None) -> None:
        super().__init__(replace(KEY, asks_for=(type(model),)), 3, 40)
        object.__setattr__(self, "pair", (model, stricter or model))

    def models(self, *, stricter: bool = False) -> Any:
        return (self.pair[stricter],)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Generous(KAnonymity):
    """Lets classes through that do not achieve it."""

    def holds(self, groups: Any) -> Any:
        return groups.persons >= self.k - 1


@dataclass(frozen=True)
class Comparing(KAnonymity):
    """The first class is better than the others."""

    def holds(self, groups: Any) -> Any:
        return (groups.persons >= self.k) & (np.arange(len(groups)) == 0)


@dataclass(frozen=True)
class Greedy(KAnonymity):
    """Takes it for granted that there is a class."""

    def achieved(self, groups: Any) -> Any:
        return groups.persons / groups.rows[0] * groups.rows[0]


@dataclass(frozen=True)
class Few(KAnonymity):
    """At most so many persons: more rows break it."""

    more_is_safer = False

    def holds(self, groups: Any) -> Any:
        return groups.persons <= self.k


@dataclass(frozen=True)
class Large(KAnonymity):
    """Says that classes must be larger than they must."""

    @property
    def least_persons(self) -> Any:
        return self.k + 3


@dataclass(frozen=True)
class Hopeful(KAnonymity):
    """Names more than there is."""

    def nearest(self, achieved: Any) -> Any:
        return int(achieved) + 1


BROKEN = [
    (checks.it_declares_itself, replace(model_cases(KEY)[0], key=replace(KEY, asks_for=()))),
    (checks.holds_agrees_with_achieved, Broken(Generous(5))),
    (checks.each_class_is_judged_alone, Broken(Comparing(2))),
    (checks.no_class_is_no_trouble, Broken(Greedy(2))),
    (checks.stricter_is_stricter, Broken(KAnonymity(9), KAnonymity(2))),
    (checks.merging_is_survived_where_it_says_so, Broken(Few(3))),
    (checks.adding_is_survived_where_it_says_so, Broken(Few(3))),
    (checks.fewer_persons_never_do, Broken(Large(2))),
    (checks.what_is_nearest_is_feasible, Broken(Hopeful(2))),
]


@pytest.mark.parametrize(("check", "case"), BROKEN, ids=lambda one: getattr(one, "__name__", ""))
def test_every_check_can_fail(check: Any, case: Any) -> None:
    with pytest.raises((AssertionError, IndexError)):
        check(case)


def test_every_check_is_seen_to_fail() -> None:
    assert [check for check, _ in BROKEN] == list(MODEL_CHECKS)
