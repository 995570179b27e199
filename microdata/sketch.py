"""How many different values there are, of more rows than are kept.

A theta sketch (Dasgupta, Lang, Rhodes and Thaler, 2016; the family that Apache DataSketches has): of the keys of all
values, which are as good as random numbers, the smallest few thousand are kept. Until there are more than that the
count is exact; beyond, the largest kept key tells how densely keys lie and so how many there are. Keys are made with a
secret of the run, so that a sketch says nothing about a value and cannot be compared with that of another run.

The package of Apache DataSketches takes one value at a time from Python, at about 200 ns each; keys come in arrays, and
of most of them one comparison is all that is needed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

KEPT = 1 << 14
"""Keys that are kept: 128 KB for each field."""
ERROR = 1.96 / math.sqrt(KEPT - 2)
"""Beyond, the count is this near to the true one, as a share of it, with 95 % confidence."""
_ALL = 2.0**64


class DistinctSketch:
    """Counts the different keys of all arrays that it is shown."""

    def __init__(self, kept: int = KEPT) -> None:
        self._most = kept
        self._keys = np.empty(0, np.uint64)
        self._full = False

    def add(self, keys: NDArray[np.uint64]) -> None:
        """The keys of the next rows."""
        new = keys[keys < self._keys[-1]] if self._full else keys
        if not len(new):
            return
        self._keys = np.unique(np.concatenate([self._keys, new]))
        if len(self._keys) > self._most:
            # One more than it says: it is the largest that tells the density of those below.
            self._keys, self._full = self._keys[: self._most + 1].copy(), True

    @property
    def exact(self) -> bool:
        """Whether no key was given up."""
        return not self._full

    @property
    def count(self) -> int:
        """Different keys, as far as it is known."""
        if not self._full:
            return len(self._keys)
        return round(self._most * _ALL / float(self._keys[-1]))
