"""Persons whose kind is too rare for a group of its own: they borrow, are united, or join a group that exists.

*Needy* sets are what is left of a pattern of items that has no group; *spare* persons are left over beside groups of
their pattern. A needy set takes whoever makes it whole at the least cost: a spare person, a person of a group whose
place a spare one can take, a person of a group with more than k, or another needy set. Recoding one group never
touches another, so nothing that was done is undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata.ratings import Sparse
from static_algos.ratings._lending_kernels import joining_costs
from static_algos.ratings.recoding import Recoding
from static_algos.ratings.sketches import groups_by_sketch

FEW = 64
"""Needy and spare persons up to which every way is tried; more are grouped by sketches."""
MOST_GROUPS = 32
"""Groups that are asked whether they lend somebody."""
MOST_SPARE = 8
"""Spare persons that are tried in the place of somebody who is lent."""


class _Offer(NamedTuple):
    cost: float
    order: int
    """Of offers that cost the same, the first made is taken."""
    person: int
    group: int
    """The group that gives the person away, -1 for none."""
    instead: int
    """The spare person that takes the place, -1 for none."""
    needy: int
    """The needy set that is united with this one, -1 for none."""


class Lending:
    """Groups, needy sets and spare persons, until everybody is in a group."""

    def __init__(self, rows: Sparse, patterns: NDArray[np.int64], recoding: Recoding, k: int) -> None:
        self._rows, self._patterns, self._recoding, self._k = rows, patterns, recoding, k
        self.groups: list[list[int]] = []
        self.needy: list[list[int]] = []
        self.spare: list[int] = []

    def settle(self) -> list[list[int]]:
        """Everybody in a group of at least k."""
        left = [*self.spare, *(person for members in self.needy for person in members)]
        if len(left) > FEW and sum(map(len, self.needy)) >= self._k:
            self._sketch(np.sort(np.array(left, np.int64)))
        else:
            self._lend()
        for person in self.spare:
            self._attach(person)
        return self.groups

    def _sketch(self, left: NDArray[np.int64]) -> None:
        groups, rest = groups_by_sketch(self._rows.take(left), self._k, self._recoding.width)
        self.groups += [left[members].tolist() for members in groups]
        self.needy, self.spare = [], left[rest].tolist()

    def _lend(self) -> None:
        self.needy.sort(key=lambda members: (-len(members), members))
        while self.needy:
            members = self.needy.pop(0)
            while len(members) < self._k:
                offer = min(self._offers(members), default=None)
                if offer is None:
                    break
                self._accept(offer, members)
            if len(members) >= self._k:
                self.groups.append(members)
            else:
                self.spare += members

    def _offers(self, members: list[int]) -> Iterator[_Offer]:
        cost, order = self._cost, 0
        for person in self.spare:
            yield _Offer(cost([*members, person]), (order := order + 1), person, -1, -1, -1)
        for number, group in enumerate(self.groups[:MOST_GROUPS]):
            before = cost(group)
            instead = [one for one in self.spare if self._patterns[one] == self._patterns[group[0]]][:MOST_SPARE]
            for person in group:
                rest = [one for one in group if one != person]
                with_person = cost([*members, person]) - before
                if len(group) > self._k:
                    yield _Offer(with_person + cost(rest), (order := order + 1), person, number, -1, -1)
                for spare in instead:
                    change = with_person + cost([*rest, spare])
                    yield _Offer(change, (order := order + 1), person, number, spare, -1)
        for number, other in enumerate(self.needy):
            each = cost([*members, *other]) / len(other)
            yield _Offer(each, (order := order + 1), -1, -1, -1, number)

    def _accept(self, offer: _Offer, members: list[int]) -> None:
        if offer.needy >= 0:
            members += self.needy.pop(offer.needy)
            return
        members.append(offer.person)
        if offer.group < 0:
            self.spare.remove(offer.person)
            return
        self.groups[offer.group].remove(offer.person)
        if offer.instead >= 0:
            self.spare.remove(offer.instead)
            self.groups[offer.group].append(offer.instead)

    def _attach(self, person: int) -> None:
        """To the group that takes it most cheaply, among those of its own pattern if there are any."""
        same = [
            number for number, group in enumerate(self.groups) if self._patterns[group[0]] == self._patterns[person]
        ]
        numbers = same or range(len(self.groups))
        costs = self.joining([person], (self.groups[number] for number in numbers))
        self.groups[numbers[int(costs.argmin())]].append(person)

    def joining(self, persons: list[int], groups: Iterable[list[int]]) -> NDArray[np.int64]:
        """By how much the cost of each group grows if these persons join it."""
        return costs_of_joining(self._rows, self._recoding, persons, groups)

    def _cost(self, members: list[int]) -> int:
        return self._recoding.cost(self._rows, members)


def costs_of_joining(
    rows: Sparse, recoding: Recoding, persons: list[int], groups: Iterable[list[int]]
) -> NDArray[np.int64]:
    """By how much the cost of each group grows if these persons join it."""
    listed = [np.asarray(group, np.int64) for group in groups]
    bounds = np.append(0, np.cumsum([len(group) for group in listed])).astype(np.int64)
    return joining_costs(
        rows.starts,
        rows.items,
        rows.values,
        np.asarray(persons, np.int64),
        np.concatenate(listed),
        bounds,
        recoding.steps,
        recoding.majority,
        recoding.size,
        *recoding.room(),
    )
