"""Samarati: the generalization of the fewest steps, by halving the heights of the lattice.

The height of a combination of levels is the sum of its levels. If no combination of a height keeps the guarantee, none
of a smaller height does: so the heights between the table as it is and nothing known are halved, again and again.
Of the combinations of the least height that works, the one that loses least is published. What fails for some of the
quasi-identifiers alone, as in Incognito, is not looked at.

Where the guarantee is not inherited along the lattice (see `full_domain.py`), heights cannot be halved: then they are
looked at one after the other, from below.

P. Samarati, Protecting Respondents' Identities in Microdata Release (2001).

>>> import numpy as np
>>> from microdata import Number, PersonSource, Schema, Table
>>> schema = Schema(PersonSource.ROW, (Number("age", 0, 99, integer=True),))
>>> ages = np.array([[21.0], [22.0], [25.0], [61.0], [63.0], [70.0]])
>>> table = Table(schema, np.arange(6), ages, np.empty((6, 0), np.int32))
>>> Samarati(k=3, widths={"age": [10, 50]}).anonymize(table).details["levels"]
{'age': 2}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from microdata import Progress
from static_algos.algorithm import STATIC_ALGORITHMS
from static_algos.full_domain import (
    FullDomain,
    FullDomainParameters,
    Generalization,
    Ladder,
    Lattice,
    allowed_by_subsets,
    below,
)


class SamaratiParameters(FullDomainParameters):
    """Any guarantee, what may be left out, and the levels of numbers."""


@STATIC_ALGORITHMS.register("samarati", SamaratiParameters)
class Samarati(FullDomain):
    """Generalizes each quasi-identifier to one level for all rows, with the fewest steps in all."""

    Parameters = SamaratiParameters
    parameters: SamaratiParameters

    def search(
        self, lattice: Lattice, progress: Progress
    ) -> tuple[Generalization | None, Sequence[Generalization] | None]:
        """The best of the least height that works."""
        heights = _Heights(lattice, progress)
        found = heights.halved() if not lattice.others else heights.upwards()
        return min(found, default=None), None


class _Heights:
    """The combinations of a lattice by their height."""

    def __init__(self, lattice: Lattice, progress: Progress) -> None:
        self.lattice, self.progress = lattice, progress
        self.height: NDArray[np.int64] = np.indices(lattice.heights).sum(axis=0)
        self.top = int(self.height.max())
        self.possible = allowed_by_subsets(lattice, progress)
        """What is not known to fail."""
        self.ladder = Ladder(lattice, range(len(lattice.heights)), self.possible)

    def halved(self) -> list[Generalization]:
        """All of the least height, found by halving."""
        low, high = 0, self.top
        while low < high:
            half = (low + high) // 2
            if next(self._at(half), None) is None:
                low = half + 1
            else:
                high = half
        return list(self._at(low))

    def upwards(self) -> list[Generalization]:
        """All of the least height, found from below."""
        for height in range(self.top + 1):
            found = list(self._at(height))
            if found:
                return found
        return []

    def _at(self, height: int) -> Iterator[Generalization]:
        """Those of a height that keep the guarantee, one after the other."""
        for levels in np.argwhere(self.possible & (self.height == height)).tolist():
            node = tuple(levels)
            if not self.possible[node]:
                continue
            self.progress("searching", int((~self.possible).sum()), self.possible.size)
            outcome = self.lattice.outcome(self.ladder.climb(node), node)
            if outcome is None:
                self.possible[below(node)] = False
            elif outcome.suppressed <= self.lattice.limit:
                yield outcome
