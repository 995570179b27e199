"""The attack on k over time, on a few persons, while a stream runs and before anything of it leaves.

Of each person who is followed the rows that leave are tied together, and it is counted who lies in all of their boxes,
each with the values of the time of the row. The engine is asked once, when somebody begins to be followed, who is alike
at that moment, and then only who is new; everything else is seen from what comes and what leaves. So what it counts is
at most what an attacker is left with, who also has those of other cohorts.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from microdata import IdTable
from stream_algos import Batch, Memory, Release

_PERSONS = 8
"""So many are followed at a time."""
_MOST_OTHERS = 4096
"""Whoever has more candidates is not followed: it would take long, and they are in no danger."""
_MOST_WAITING = 64
"""Whoever has more rows that wait is followed no longer, or anew."""
_TURN = 1000
"""Cycles after which somebody else takes the place of the person who was followed longest."""


@dataclass(eq=False)
class _Person:
    """Somebody who is followed."""

    code: int
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    """What all boxes have in common."""
    others: NDArray[np.int64]
    """Who may be taken for this person: codes, this person's too."""
    first: NDArray[np.float64]
    """Their values when they came to be among these."""
    last: NDArray[np.float64]
    """Their values now; put in the place of what was there, and never changed."""
    left: NDArray[np.bool_]
    """Who of them was in every box."""
    waiting: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    """Of each row that has not left yet: `last` at its position."""
    rows: int = 0

    def narrowed(self, position: int, lo: NDArray[np.float64], hi: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Who is left once this row leaves with this box. Whoever came later had their first values before."""
        known = self.waiting[position]
        values = np.concatenate([known, self.first[len(known) :]])
        return np.asarray(self.left & ((lo <= values) & (values <= hi)).all(axis=1))

    def joined(self, codes: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """These persons came for the first time; those in what all boxes have in common may be taken for this one."""
        inside = ((self.lo <= values) & (values <= self.hi)).all(axis=1)
        codes, values = codes[inside], values[inside]
        self.others = np.concatenate([self.others, codes])
        self.first, self.last = (np.concatenate([known, values]) for known in (self.first, self.last))
        self.left = np.concatenate([self.left, np.ones(len(codes), bool)])

    def saw(self, rows: Batch) -> None:
        """Rows of anybody, in their order."""
        order = np.argsort(self.others)
        place = np.minimum(np.searchsorted(self.others, rows.persons, sorter=order), len(order) - 1)
        entry = order[place]
        for row in np.flatnonzero(self.others[entry] == rows.persons).tolist():
            if not np.array_equal(self.last[entry[row]], rows.quasi[row]):
                self.last = self.last.copy()
                self.last[entry[row]] = rows.quasi[row]
            if rows.persons[row] == self.code:
                self.waiting[int(rows.positions[row])] = self.last


class FollowedPersons:
    """A few persons of one partition, other ones in turn. `least` is the fewest candidates that anybody had."""

    def __init__(self, engine: Memory, k: int) -> None:
        self.rows = 0
        """Rows that left of persons who were followed."""
        self.least: int | None = None
        self._engine = engine
        self._k = k
        self._persons: list[_Person] = []
        self._cycles = 0

    def __len__(self) -> int:
        return len(self._persons)

    def refused(self, decisions: Release) -> NDArray[np.bool_]:
        """Which clusters must not leave: somebody would be left with fewer than k candidates. It changes nothing."""
        refused = np.zeros(len(decisions), bool)
        for person, found in self._of(decisions):
            left = person.left
            for cluster, position in found:
                narrowed = person.narrowed(position, decisions.lo[cluster], decisions.hi[cluster]) & left
                if int(narrowed.sum()) < self._k:
                    refused[cluster] = True
                else:
                    left = narrowed
        return refused

    def passed(self, published: Release, came: Batch, waiting: NDArray[np.int64]) -> None:
        """A cycle ends: this leaves, these rows came, and those at these positions have not left yet."""
        self._note(published)
        new = self._engine.newcomers()
        if new is None:  # who cannot be told from others can be nobody's candidate, and would be missed
            self._persons = []
            return
        if self._persons:
            self._saw(came, new, waiting)
        self._persons = [
            one for one in self._persons if len(one.others) <= _MOST_OTHERS and len(one.waiting) <= _MOST_WAITING
        ]
        self._turn(came)

    def _saw(self, came: Batch, new: NDArray[np.int64], waiting: NDArray[np.int64]) -> None:
        # Very many come, and few of them lie where one of these persons may be.
        near = np.concatenate([came.persons[_within(one.lo, one.hi, came.quasi)] for one in self._persons])
        codes, values = _first_values(came, new[_are_among(new, near)])
        for person in self._persons:
            person.joined(codes, values)
        seen = came.take(_are_among(came.persons, np.concatenate([one.others for one in self._persons])))
        for person in self._persons:
            person.saw(seen)
        still = set(waiting[_are_among(waiting, self._waiting())].tolist())
        for person in self._persons:
            person.waiting = {place: then for place, then in person.waiting.items() if place in still}

    def _waiting(self) -> NDArray[np.int64]:
        """Positions of rows of those who are followed that have not left yet."""
        return np.array([place for one in self._persons for place in one.waiting], np.int64)

    def _of(self, decisions: Release) -> list[tuple[_Person, list[tuple[int, int]]]]:
        """Of each person whose rows are in decisions: their clusters and positions, in the order of these."""
        index = np.flatnonzero(_are_among(decisions.members, self._waiting()))
        index = index[np.argsort(decisions.members[index])]
        found = list(zip(decisions.cluster_of()[index].tolist(), decisions.members[index].tolist(), strict=True))
        return [(one, [pair for pair in found if pair[1] in one.waiting]) for one in self._persons]

    def _note(self, published: Release) -> None:
        for person, found in self._of(published):
            for cluster, position in found:
                lo, hi = published.lo[cluster], published.hi[cluster]
                person.left = person.narrowed(position, lo, hi)
                person.lo, person.hi = np.maximum(person.lo, lo), np.minimum(person.hi, hi)
                left = int(person.left.sum())
                self.least = left if self.least is None else min(self.least, left)
                self.rows += 1
                del person.waiting[position]

    def _turn(self, came: Batch) -> None:
        """Follow one person more, of those who came, if there is room; now and then there is."""
        self._cycles += 1
        if self._cycles % _TURN == 0:
            self._persons = self._persons[1:]
        if len(self._persons) >= _PERSONS or not len(came):
            return
        chosen = secrets.randbelow(len(came))
        code = int(came.persons[chosen])
        alike = self._engine.alike((code, 0 if came.more is None else int(came.more[chosen])), _MOST_OTHERS // 2)
        if alike is not None and code not in {one.code for one in self._persons}:
            (lo, hi), others, values = alike
            self._persons.append(_Person(code, lo, hi, others, values, values, np.ones(len(others), bool)))


def _first_values(came: Batch, new: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Of persons who came for the first time: codes, and the values of their first row that can be read."""
    rows = came.take(_are_among(came.persons, new) & ~np.isnan(came.quasi).any(axis=1))
    codes, first = np.unique(rows.persons, return_index=True)
    return codes, rows.quasi[first]


def _are_among(many: NDArray[np.int64], few: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each of very many numbers is one of a few."""
    table = IdTable()
    table.add(few.view(np.uint64))
    return np.asarray(table.find(many.view(np.uint64)) != IdTable.NONE)


def _within(lo: NDArray[np.float64], hi: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Which of very many rows lie in a box: what is left after each attribute is little."""
    left = np.arange(len(values))
    for attribute in range(values.shape[1]):
        column = values[left, attribute]
        left = left[(lo[attribute] <= column) & (column <= hi[attribute])]
    return left
