"""The earth mover's distance over a hierarchy, in whole numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import kernel


@kernel
def hierarchy_work(
    parent: NDArray[np.int64], height: NDArray[np.int64], extra: NDArray[np.int64], surplus: NDArray[np.int64]
) -> int:
    """Least work that levels what nodes have too much (`extra` > 0) and too little; nodes stand in pre-order.

    At every node, what its children have too much meets, at the node's height, what other children lack. `extra` is
    given at the leaves and 0 above them, `surplus` is 0; both are used up.
    """
    work = 0
    for node in range(parent.shape[0] - 1, -1, -1):
        # What the children lack is their surplus less the node's own extra.
        work += height[node] * min(surplus[node], surplus[node] - extra[node])
        above = parent[node]
        if above >= 0:
            extra[above] += extra[node]
            surplus[above] += max(extra[node], 0)
    return work
