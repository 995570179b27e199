"""Which group takes a person most cheaply, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata.compile import kernel
from static_algos.ratings._recode_kernels import group_cost


@kernel
def joining_costs(
    starts: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.int16],
    joining: NDArray[np.int64],
    members: NDArray[np.int64],
    bounds: NDArray[np.int64],
    steps: int,
    majority: bool,
    size: int,
    seen: NDArray[np.int32],
    touched: NDArray[np.int32],
    slot: NDArray[np.int32],
) -> NDArray[np.int64]:
    """By how much the cost of each group grows if these rows join it. Group g is `members[bounds[g]:bounds[g + 1]]`."""
    result = np.empty(len(bounds) - 1, np.int64)
    for group in range(len(result)):
        own = members[bounds[group] : bounds[group + 1]]
        both = np.empty(len(own) + len(joining), np.int64)
        both[: len(own)] = own
        both[len(own) :] = joining
        after = group_cost(starts, items, values, both, steps, majority, size, seen, touched, slot)
        result[group] = after - group_cost(starts, items, values, own, steps, majority, size, seen, touched, slot)
    return result
