"""k persons over time: whoever ties all published rows of a person together still has k persons to choose from.

The model, and the attack that it withstands, in simple code that has nothing in common with any engine. The attacker
knows everybody's quasi-identifiers at every moment, and which published rows are the victim's. A row's time is its
position in the input; before somebody is first seen they had the first seen values, between two sights the last seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, GuaranteeError, Schema
from privacy._over_time_kernels import count_possible
from privacy.model import Groups, Histogram, Model, pairs, require_whole


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
    """Every row that came, in the order of positions: who was where, when."""

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

    Of each published row its position, its person and its box are given.
    """
    order = np.lexsort((seen.positions, seen.persons))
    starts = np.append(np.unique(seen.persons[order], return_index=True)[1], len(order))
    rows = np.lexsort((positions, persons))
    victims, first = np.unique(persons[rows], return_index=True)
    published = np.append(first, len(rows)), positions[rows], lo[rows], hi[rows]
    return victims, count_possible(starts, seen.positions[order], seen.quasi[order], *published)


class Record:
    """All that was seen and published, as far as it takes to recompute `candidates` for a sample of the persons.

    Everybody is in the sample until there are too many; then those whose codes, which are hashes, end in zeros. Of what
    was seen, only changes are kept.
    """

    def __init__(self, most: int = 1000) -> None:
        self._most, self._mask = most, 0
        self._seen: list[tuple[NDArray[Any], ...]] = []
        self._published: list[tuple[NDArray[Any], ...]] = []
        self._rows = self._kept = 0

    def take(self, positions: NDArray[np.int64], persons: NDArray[np.int64], quasi: NDArray[np.float64]) -> None:
        """Rows that came, in the order of positions."""
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
        changed[1:] = (persons[order][1:] != persons[order][:-1]) | (quasi[order][1:] != quasi[order][:-1]).any(axis=1)
        rows = np.sort(order[changed])
        self._seen = [(positions[rows], persons[rows], quasi[rows])]
        self._rows = self._kept = len(rows)


def _joined(parts: Sequence[tuple[NDArray[Any], ...]]) -> tuple[NDArray[Any], ...]:
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


class Lineages:
    """Which sensitive values left with each box, and with those that its persons were published with before.

    Boxes have an id, and that of the one before them as a parent (0 for none).
    """

    def __init__(self, schema: Schema) -> None:
        self._attributes = schema.sensitive
        self._parents: dict[int, int] = {}
        self._values: dict[int, tuple[Counter[int], ...]] = {}

    def add(
        self,
        ids: NDArray[np.uint64],
        parents: NDArray[np.uint64],
        boxes: NDArray[np.integer],
        sensitive: NDArray[np.int32],
    ) -> None:
        """Rows with these values leave; `boxes` says for each of them which entry of `ids` it leaves with."""
        self._parents.update(zip(ids.tolist(), parents.tolist(), strict=True))
        self._count(ids, boxes, sensitive, 1)

    def take_back(self, ids: NDArray[np.uint64], boxes: NDArray[np.integer], sensitive: NDArray[np.int32]) -> None:
        """Rows that were added do not leave after all."""
        self._count(ids, boxes, sensitive, -1)

    def keep(self, ids: Iterable[int]) -> None:
        """Forget everything but these boxes and those before them: nothing leaves with the others any more."""
        kept: set[int] = set()
        for own in ids:
            number = own
            while number and number not in kept:
                kept.add(number)
                number = self._parents.get(number, 0)
        self._parents = {number: parent for number, parent in self._parents.items() if number in kept}
        self._values = {number: values for number, values in self._values.items() if number in kept}

    def groups(self, ids: NDArray[np.uint64], company: NDArray[np.int64], persons: NDArray[np.int64]) -> Groups:
        """All that ever left with each of these boxes and those before it, as classes.

        `company` stands behind them; of so many distinct `persons` rows leave with each of them now.
        """
        found = [self._gathered(number) for number in ids.tolist()] if self._attributes else [()] * len(ids)
        rows = np.array([sum(values[0].values()) if values else 0 for values in found], np.int64)
        histograms = (
            _histogram_of(self._attributes[place], [values[place] for values in found])
            for place in range(len(self._attributes))
        )
        return Groups(rows, persons, np.zeros(len(rows), np.int64), tuple(histograms), company)

    def _count(
        self, ids: NDArray[np.uint64], boxes: NDArray[np.integer], sensitive: NDArray[np.int32], turn: int
    ) -> None:
        for attribute in range(len(self._attributes)):
            for box, value, count in zip(
                *(part.tolist() for part in pairs(boxes, sensitive[:, attribute])), strict=True
            ):
                own = self._of(int(ids[box]))[attribute]
                own[value] += turn * count
                if not own[value]:
                    del own[value]

    def _of(self, number: int) -> tuple[Counter[int], ...]:
        return self._values.setdefault(number, tuple(Counter() for _ in self._attributes))

    def _gathered(self, number: int) -> tuple[Counter[int], ...]:
        gathered: tuple[Counter[int], ...] = tuple(Counter() for _ in self._attributes)
        met = {0}
        while number not in met:  # whoever names boxes in a circle gets no answer twice
            met.add(number)
            for place, values in enumerate(self._values.get(number, ())):
                gathered[place].update(values)
            number = self._parents.get(number, 0)
        return gathered


def _histogram_of(attribute: Attribute, found: Sequence[Counter[int]]) -> Histogram:
    values = [sorted(one) for one in found]
    counts = [count for one, own in zip(found, values, strict=True) for count in (one[value] for value in own)]
    return Histogram(
        attribute,
        np.zeros(attribute.size or 0, np.int64),
        np.cumsum([0, *map(len, values)]),
        np.array([value for own in values for value in own], np.int32),
        np.array(counts, np.int64),
    )
