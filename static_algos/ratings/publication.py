"""What was made of ratings: who is in which group, what leaves, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from microdata.ratings import Ratings, Sparse
from static_algos.ratings._publication_kernels import cliques, compare
from static_algos.ratings.recoding import Recoding


@dataclass(frozen=True)
class Changes:
    """What became of the open ratings."""

    kept: int
    """Published as they were."""
    changed: int
    suppressed: int
    invented: int
    """Published although nobody gave them."""
    distortion: int
    """All differences in steps of the scale, a missing rating counted as 0."""


@dataclass(frozen=True, eq=False)
class RatingsPublication:
    """Ratings in groups."""

    original: Ratings
    groups: NDArray[np.int64]
    """Group of each person, from 0."""
    recoded: Ratings
    """The same persons after recoding; who is withheld has no rating."""
    recoding: Recoding

    @classmethod
    def of(cls, original: Ratings, groups: NDArray[np.int64], recoding: Recoding, k: int) -> RatingsPublication:
        """Recode every group. Who has nothing open left leaves only in the company of k others like that."""
        changed = recoding.recode(original.open, groups)
        bare = changed.rated == 0
        alone = bare & (original.sensitive.rated > 0)
        withheld = bare if alone.sum() < k else np.zeros(len(original), bool)
        sensitive = _without(original.sensitive, withheld) if withheld.any() else original.sensitive
        recoded = Ratings(original.schema, original.names, original.persons, changed, sensitive)
        return cls(original, groups, recoded, recoding)

    def take(self, order: NDArray[np.int64]) -> RatingsPublication:
        """Return the same publication with its persons in this order."""
        return RatingsPublication(
            self.original.take(order), self.groups[order], self.recoded.take(order), self.recoding
        )

    @cached_property
    def released(self) -> Ratings:
        """Who leaves: everybody who has a rating left."""
        rows = self.recoded.open.rated + self.recoded.sensitive.rated
        return self.recoded.take(np.flatnonzero(rows > 0))

    @property
    def withheld(self) -> int:
        """Persons who have no rating left."""
        return len(self.original) - len(self.released)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Persons of each group."""
        return np.bincount(self.groups)

    @cached_property
    def changes(self) -> Changes:
        """What became of the open ratings."""
        before, after = self.original.open, self.recoded.open
        numbers = compare(before.starts, before.items, before.values, after.starts, after.items, after.values)
        return Changes(*(int(number) for number in numbers))

    @property
    def distortion(self) -> int:
        """All differences in steps of the scale, a missing rating counted as 0."""
        return self.changes.distortion

    def groups_are_cliques(self) -> bool:
        """Whether in every group all have the same items, rated within ε of each other."""
        members = np.argsort(self.groups, kind="stable")
        bounds = np.append(0, np.cumsum(self.sizes))
        rows = self.recoded.open
        return bool(cliques(rows.starts, rows.items, rows.values, members, bounds, self.recoding.steps))

    def sensitive_is_untouched(self) -> bool:
        """Whether everybody who leaves has the sensitive ratings that they gave."""
        rows = np.flatnonzero(self.recoded.open.rated + self.recoded.sensitive.rated)
        one, other = self.original.sensitive.take(rows), self.recoded.sensitive.take(rows)
        pairs = ((one.starts, other.starts), (one.items, other.items), (one.values, other.values))
        return all(np.array_equal(before, after) for before, after in pairs)


def _without(rows: Sparse, gone: NDArray[np.bool_]) -> Sparse:
    keep = ~gone[rows.rows]
    return Sparse.of(rows.rows[keep], rows.items[keep], rows.values[keep], len(rows))
