"""How many rows each class draws from each bucket: SABRE's ECSize and BUREL's biSplit.

The whole table is halved again and again, every bucket at once, as long as both halves pass a test that does not
depend on which rows are drawn. The leaves of this tree are the classes to be.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from static_algos._dichotomy_kernels import SplitTest, next_leaves

_CHUNK = 4096
_CELLS = 1 << 20


def dichotomize(test: SplitTest, least: int) -> Iterator[NDArray[np.int64]]:
    """Draws of every class, left to right, in arrays of classes × buckets; each class has at least `least` rows."""
    chunk = max(1, min(_CHUNK, _CELLS // len(test.sizes)))
    depth = int(test.sizes.max(initial=1)).bit_length() + 3
    stack = np.zeros((depth, len(test.sizes)), np.int64)
    stack[0] = test.sizes
    height = np.ones(1, np.int64)
    while height[0]:
        leaves = np.empty((chunk, len(test.sizes)), np.int64)
        yield leaves[: next_leaves(test, least, stack, height, leaves)]
