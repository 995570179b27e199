"""What readers of binary records have found: room for it that kernels fill."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Found(NamedTuple):
    """Declared fields × records."""

    choice: NDArray[np.int64]
    """Which of the field's types is there; -1 where there is none."""
    begins: NDArray[np.int64]
    """Where its bytes begin, or the whole number that it is."""
    ends: NDArray[np.int64]
    numbers: NDArray[np.float64]


def nothing_found(fields: int, records: int) -> Found:
    """Room for what is found."""
    shape = fields, records
    return Found(np.full(shape, -1), np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape))


def found_of(found: Found, wanted: NDArray[np.bool_]) -> Found:
    """What was found of these records."""
    places = found.choice[:, wanted], found.begins[:, wanted], found.ends[:, wanted]
    return Found(*places, found.numbers[:, wanted])
