"""k persons over time: whoever ties all published rows of a person together still has k persons to choose from.

The model, and the attack that it withstands, in simple code that has nothing in common with any engine. The attacker
knows everybody's quasi-identifiers at every moment, and which published rows are the victim's. A row's time is its
position in the input; before somebody is first seen they had the first seen values, between two sights the last seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microdata import GuaranteeError
from privacy._over_time_kernels import count_possible
from privacy.model import Groups, Model, require_whole


@dataclass(frozen=True)
class KOverTime(Model):
    """For every person, at least `k` persons lie in every box under which a row of that person was published."""

    k: int

    name = "k-over-time"
    parameter = "k"
    survives_merging = False
    survives_adding = True
    more_is_safer = True
    checked_on = "history"

    def __post_init__(self) -> None:
        require_whole("k", self.k)

    @property
    def least_persons(self) -> int:
        """As many as `k`."""
        return self.k

    def nearest(self, achieved: float) -> int:
        """A number of persons."""
        return int(achieved)

    def achieved(self, groups: Groups) -> NDArray[np.float64]:
        """Persons behind each class, with rows in it or without."""
        if groups.company is None:
            raise GuaranteeError(f"{self.name} is checked on a record of what was published before; there is none")
        return groups.company.astype(np.float64)

    def holds(self, groups: Groups) -> NDArray[np.bool_]:
        """Whether there are enough persons."""
        return self.achieved(groups) >= self.k


@dataclass(frozen=True, eq=False)
class Sightings:
    """Every event of a known person, published or not: who was where, when. A value that could not be read is NaN."""

    positions: NDArray[np.int64]
    persons: NDArray[np.int64]
    quasi: NDArray[np.float64]


def candidates(
    seen: Sightings,
    positions: NDArray[np.int64],
    persons: NDArray[np.int64],
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each person with published rows, how many persons lie in every box that they were published with.

    Of each published row its position, its person and its box are given. A person is no candidate from an event whose
    values could not be read until the next one; what comes before the first readable event of a person is left out.
    """
    order = np.lexsort((seen.positions, seen.persons))
    readable = np.asarray(np.isfinite(seen.quasi[order]).all(axis=1))
    order = order[_from_first_readable(seen.persons[order], readable)]
    starts = np.append(np.unique(seen.persons[order], return_index=True)[1], len(order))
    rows = np.lexsort((positions, persons))
    victims, first = np.unique(persons[rows], return_index=True)
    published = np.append(first, len(rows)), positions[rows], lo[rows], hi[rows]
    return victims, count_possible(starts, seen.positions[order], seen.quasi[order], *published)


def _from_first_readable(persons: NDArray[np.int64], readable: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which rows are the first readable one of their person or come after it; rows of a person are together."""
    readable_so_far: NDArray[np.int64] = np.cumsum(readable)
    starts = np.diff(persons, prepend=persons[:1] - 1) != 0
    before_person = (readable_so_far - readable)[starts]
    return np.asarray(readable_so_far > before_person[np.cumsum(starts) - 1])


MOST_VICTIMS = 1_000
"""Persons for whom a record recomputes candidates; of more it takes a sample."""


class Record:
    """All that was seen and published, as far as it takes to recompute `candidates` for a sample of the persons.

    Everybody is in the sample until there are too many; then those whose codes, which are hashes, end in zeros. Of what
    was seen, only changes are kept.
    """

    def __init__(self, most: int = MOST_VICTIMS) -> None:
        self._most, self._mask = most, 0
        self._seen: list[tuple[NDArray[Any], ...]] = []
        self._published: list[tuple[NDArray[Any], ...]] = []
        self._rows = self._kept = 0

    def take(self, positions: NDArray[np.int64], persons: NDArray[np.int64], quasi: NDArray[np.float64]) -> None:
        """Take the rows of events in the order of positions; NaN is a value that could not be read."""
        self._seen.append((positions, persons, quasi))
        self._rows += len(positions)
        if self._rows > 2 * self._kept + 100_000:
            self._keep_changes()

    def publish(
        self,
        positions: NDArray[np.int64],
        persons: NDArray[np.int64],
        lo: NDArray[np.float64],
        hi: NDArray[np.float64],
    ) -> None:
        """Rows that leave, each with its box."""
        own = (persons & self._mask) == 0
        self._published.append((positions[own], persons[own], lo[own], hi[own]))
        sampled = np.unique(np.concatenate([part[1] for part in self._published]))
        self._published = [_joined(self._published)]
        while ((sampled & self._mask) == 0).sum() > self._most:
            self._mask = 2 * self._mask + 1
        kept = (self._published[0][1] & self._mask) == 0
        self._published = [tuple(column[kept] for column in self._published[0])]

    def linked(self, *, first: bool = False) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The sampled persons, and how many persons lie in every box of each of them, or in that of their first row."""
        if not self._published:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        self._keep_changes()
        rows = _joined(self._published)
        if first:
            order = np.argsort(rows[0], kind="stable")
            own = order[np.unique(rows[1][order], return_index=True)[1]]
            rows = tuple(column[own] for column in rows)
        return candidates(Sightings(*self._seen[0]), *rows)

    def _keep_changes(self) -> None:
        positions, persons, quasi = _joined(self._seen)
        order = np.argsort(persons, kind="stable")
        changed = np.ones(len(order), bool)
        last, now = quasi[order][:-1], quasi[order][1:]
        moved = (now != last) & ~(np.isnan(now) & np.isnan(last))
        changed[1:] = (persons[order][1:] != persons[order][:-1]) | moved.any(axis=1)
        rows = np.sort(order[changed])
        self._seen = [(positions[rows], persons[rows], quasi[rows])]
        self._rows = self._kept = len(rows)


def _joined(parts: Sequence[tuple[NDArray[Any], ...]]) -> tuple[NDArray[Any], ...]:
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))
