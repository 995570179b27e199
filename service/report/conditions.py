"""Attacks that a policy makes a condition: how far each got, and how far it may get.

An attack that looks at all rows is held against its share of them. One that is tried on some people, with a control, is
held against the upper end of its interval: what could not be shown to hold does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from privacy import ATTACKS, TRIALS
from service.report.sections import Exposed, Trial


@dataclass(frozen=True)
class Condition:
    """An attack that was tried, and how far it may get."""

    name: str
    got: float
    most: float

    @property
    def holds(self) -> bool:
        """Whether it gets no further."""
        return self.got <= self.most

    @property
    def failure(self) -> str:
        """What to say where it does."""
        return f"{self.name} gets {self.got:.4g}, allowed is {self.most:g}"

    @property
    def finding(self) -> tuple[str, str, str, str]:
        """As a line between those of the models."""
        return self.name, f"{self.most:g}", f"{self.got:.4g}", "yes" if self.holds else "NO"


def conditions(
    allowed: Mapping[str, float], attacks: Sequence[Exposed], tried: Sequence[Trial]
) -> tuple[Condition, ...]:
    """Hold what attacks got against what a policy allows."""
    return (*_of_all_rows(allowed, attacks), *_with_control(allowed, tried))


def needs_control(allowed: Mapping[str, float]) -> bool:
    """Whether a policy names an attack that is tried with a control."""
    return not TRIALS.keys().isdisjoint(allowed)


def _of_all_rows(allowed: Mapping[str, float], attacks: Sequence[Exposed]) -> Iterator[Condition]:
    for one in attacks:
        if one.attack in ATTACKS and one.attack in allowed:
            yield Condition(f"{one.attack} attack{_of(one.attribute)}", one.after, allowed[one.attack])


def _with_control(allowed: Mapping[str, float], tried: Sequence[Trial]) -> Iterator[Condition]:
    names = {attack.name: name for name, attack in TRIALS.items()}
    for one in tried:
        most = allowed.get(names[one.attack])
        if most is not None:
            yield Condition(f"{one.attack}{_of(one.attribute)} with a control", one.risk_high, most)


def _of(attribute: str | None) -> str:
    return "" if attribute is None else f" of {attribute}"
