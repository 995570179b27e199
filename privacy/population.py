"""How many people of a population a published row could be about, and how many rows are of people unique there.

Somebody who does not know who is in a table has to look for them among everybody. With a file of everybody, that is
counted: k-map is the fewest who fit a class. With their number alone, it is estimated from the classes of the table
how many people are unique in the population, by models that are fitted to the sizes of the classes: Pitman's where the
table is a tenth of the population or less, else the smaller of Zayatz's and the slide negative binomial's, as Dankar
and others advise.

Hoshino, Applying Pitman's Sampling Formula to Microdata Disclosure Risk Assessment (2001). Zayatz, Estimation of the
Percent of Unique Population Elements on a Microdata File Using the Sample (1991). Chen and Keller-McNulty, Estimation
of Identification Disclosure Risk in Microdata (1998). Dankar, El Emam, Neisa and Roffey,
Estimating the Re-identification Risk of Clinical Data Sets (2012).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microdata import InfeasibleError, Publication, Table
from privacy.attacks import linking
from privacy.exposure import alike
from privacy.model import Groups
from privacy.risk import Risk, risk_of

SMALL = 0.1
"""Share of the population up to which a table is small."""
_GOLDEN = (math.sqrt(5) - 1) / 2
_ROUNDS = 60


@dataclass(frozen=True)
class Journalist:
    """What somebody gets who knows a population and not who of it is in the table."""

    k_map: int | None
    """The fewest people of the population who fit a class; None where they are not known."""
    risk: Risk | None
    """1 / the people who fit a row's class; None where they are not known."""
    unique: float
    """Share of the rows whose person is unique in the population."""
    how: str
    """How that was found: `counted`, or by whose estimate."""


@dataclass(frozen=True)
class PopulationRisk:
    """The same for a table as it was and as it is published."""

    people: int
    before: Journalist
    after: Journalist


def population_risk(publication: Publication, population: Table | int) -> PopulationRisk:
    """Risk with a population: a table of everybody, or how many they are."""
    plain = Publication.of(publication.table, np.where(publication.classes >= 0, alike(publication.table.quasi), -1))
    if isinstance(population, Table):
        people = len(np.unique(population.persons))
        return PopulationRisk(people, _counted(plain, population), _counted(publication, population))
    return PopulationRisk(population, _estimated(plain, population), _estimated(publication, population))


def _groups(publication: Publication) -> Groups:
    table = publication.table
    return Groups.of(table.schema, table.persons, table.sensitive, publication.classes, len(publication.boxes))


def _counted(publication: Publication, population: Table) -> Journalist:
    groups = _groups(publication)
    known = linking(publication.boxes.widened(), groups.rows, population).persons
    # Whoever is in the table is in the population, also where the given one is incomplete.
    fitting = np.maximum(known, groups.persons)
    unique = float(groups.rows[fitting == 1].sum() / max(int(groups.rows.sum()), 1))
    k_map = int(fitting.min()) if len(fitting) else None
    return Journalist(k_map, risk_of(fitting, groups.rows), unique, "counted")


def _estimated(publication: Publication, people: int) -> Journalist:
    found = unique_people(_groups(publication).persons, people)
    return Journalist(None, None, found.share, found.by)


@dataclass(frozen=True)
class Estimate:
    """The share of a population that is unique in it, and whose model says so."""

    share: float
    by: str


def unique_people(sizes: NDArray[np.int64], people: int) -> Estimate:
    """Estimate how many of so many people are alone in their class, from the classes of a sample of them."""
    persons = int(sizes.sum())
    if people < persons:
        reason = f"there are {persons} persons in the table, so there are at least as many in the population"
        raise InfeasibleError(reason, parameter="population", given=people, nearest=persons)
    if persons <= SMALL * people:
        return Estimate(pitman(sizes, people), "pitman")
    found = Estimate(zayatz(sizes, people), "zayatz"), Estimate(slide_negative_binomial(sizes, people), "snb")
    return min(found, key=lambda one: one.share)


def zayatz(sizes: NDArray[np.int64], people: int) -> float:
    """Unique people, if classes of the population are as large as those of the sample.

    A row that is alone in the sample is alone in the population with a chance that Bayes' rule gives.
    """
    size, classes = np.unique(sizes, return_counts=True)
    persons = int(sizes.sum())
    alone = int(classes[size == 1].sum())
    if not alone:
        return 0.0
    weights = classes * np.array([_one_of(int(own), persons, people) for own in size])
    return float(alone / persons * (weights[size == 1].sum() / weights.sum()))


def _one_of(size: int, persons: int, people: int) -> float:
    """The chance that a sample of so many persons has exactly one of a class of this size (hypergeometric)."""
    if size - 1 > people - persons:
        return 0.0
    logs = _log_choose(people - size, persons - 1) - _log_choose(people, persons)
    return size * math.exp(logs)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def slide_negative_binomial(sizes: NDArray[np.int64], people: int) -> float:
    """Unique people, if a class of the population has one person and a negative binomial number of others.

    Three things are known of its three unknowns, the number of classes and the two parameters: all people, the classes
    that a sample is expected to see, and those that it is expected to see one person of. Both expectations grow with
    what is solved for, so that two bisections find it.
    """
    persons, seen, alone = int(sizes.sum()), len(sizes), int((sizes == 1).sum())
    if not alone or persons == people:
        return alone / max(persons, 1)
    rate = persons / people
    low, high = float(seen), min(seen / rate, float(people))
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        too_many = _Sliding.fitted(people, middle, rate, seen).seen_once > alone
        low, high = (low, middle) if too_many else (middle, high)
    # Who is unique among all is unique among some.
    return min(_Sliding.fitted(people, (low + high) / 2, rate, seen).unique / people, alone / persons)


@dataclass(frozen=True)
class _Sliding:
    """A population of so many classes, of which one person in 1 / rate is seen."""

    classes: float
    rate: float
    size: float
    chance: float
    """Parameters of how many others there are in a class: (chance / (1 - (1 - chance) s)) ** size generates them."""

    @classmethod
    def fitted(cls, people: int, classes: float, rate: float, seen: int) -> _Sliding:
        """The one with so many people that is expected to show so many classes."""
        low, high = 0.0, 1 - 1e-12
        others = max(people / classes - 1, 0.0)
        for _ in range(_ROUNDS):
            chance = (low + high) / 2
            tried = cls(classes, rate, others * chance / (1 - chance), chance)
            low, high = (chance, high) if classes * (1 - tried.unseen) < seen else (low, chance)
        return tried

    @property
    def _none_of_others(self) -> float:
        """The chance that none of the others of a class is seen."""
        return float((self.chance / (1 - (1 - self.chance) * (1 - self.rate))) ** self.size)

    @property
    def unseen(self) -> float:
        """The chance that nobody of a class is."""
        return (1 - self.rate) * self._none_of_others

    @property
    def seen_once(self) -> float:
        """Classes of which one person is seen: the one, or one of the others."""
        kept = (1 - self.chance) * (1 - self.rate)
        return self.classes * self.rate * self._none_of_others * (1 + self.size * kept / (1 - kept))

    @property
    def unique(self) -> float:
        """Classes without others."""
        return float(self.classes * self.chance**self.size)


def pitman(sizes: NDArray[np.int64], people: int) -> float:
    """Unique people, by the random partition that makes classes of these sizes likeliest.

    It has two parameters, found where its likelihood is largest: θ for every α, and α by golden section.
    """
    size, classes = np.unique(sizes, return_counts=True)
    alone, persons = int(classes[size == 1].sum()), int(sizes.sum())
    if alone in {0, persons}:
        return float(alone > 0)
    low, high = 1e-6, 1 - 1e-6
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    (at_left, theta), (at_right, _) = _profile(left, size, classes), _profile(right, size, classes)
    for _ in range(_ROUNDS):
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right, theta = _profile(right, size, classes)
        else:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left, theta = _profile(left, size, classes)
    alpha = (low + high) / 2
    logs = math.lgamma(theta + 1) - math.lgamma(theta + alpha) + (alpha - 1) * math.log(people)
    # Who is unique among all is unique among some.
    return min(math.exp(logs), alone / persons)


def _profile(alpha: float, size: NDArray[np.int64], classes: NDArray[np.int64]) -> tuple[float, float]:
    """The log likelihood of α with the θ that fits it best, and that θ."""
    persons, count = int(size @ classes), int(classes.sum())

    def slope(theta: float) -> float:
        together = _digamma(theta / alpha + count) - _digamma(theta / alpha + 1)
        return together / alpha - (_digamma(theta + persons) - _digamma(theta + 1))

    theta = _falls_through(slope)
    logs = (count - 1) * math.log(alpha) + math.lgamma(theta / alpha + count) - math.lgamma(theta / alpha + 1)
    logs -= math.lgamma(theta + persons) - math.lgamma(theta + 1)
    inside = [math.lgamma(own - alpha) - math.lgamma(1 - alpha) for own in size.tolist()]
    return logs + float(classes @ np.array(inside)), theta


def _falls_through(slope: Callable[[float], float]) -> float:
    """Where a slope becomes negative, from 0 on."""
    low, high = -9.0, 12.0
    if slope(10**low) <= 0:
        return 0.0
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(10**middle) > 0 else (low, middle)
    return float(10**low)


def _digamma(x: float) -> float:
    """The derivative of log Γ: up to where its series is exact, then the series."""
    below = 0.0
    while x < 10:
        below, x = below - 1 / x, x + 1
    square = 1 / (x * x)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132))))
    return below + math.log(x) - 0.5 / x - series
