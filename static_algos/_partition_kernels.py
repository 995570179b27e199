"""The optimal partition of one column, by dynamic programming."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import kernel

MEDIAN, CENTER, CELLULAR = 0, 1, 2


@kernel
def cut_column(
    values: NDArray[np.float64], counts: NDArray[np.int64], k: int, cost: int
) -> tuple[NDArray[np.int64], float]:
    """Where the parts of least cost begin, and that cost; values ascend and are distinct, counts add up to k or more.

    A part that could be cut into two of k rows need not be looked at: cutting never costs more.
    """
    size = len(values)
    rows = np.zeros(size + 1, np.int64)
    total = np.zeros(size + 1)
    for v in range(size):
        rows[v + 1] = rows[v] + counts[v]
        total[v + 1] = total[v] + counts[v] * values[v]
    least = np.full(size + 1, np.inf)
    begins = np.zeros(size + 1, np.int64)
    least[0] = 0.0
    latest = 0
    for end in range(1, size + 1):
        # The last beginning that leaves k rows; it only moves on.
        while latest + 1 < end and rows[end] - rows[latest + 1] >= k:
            latest += 1
        if rows[end] - rows[latest] < k:
            continue
        begin = latest
        while begin >= 0 and (begin == latest or rows[latest] - rows[begin] < k):
            if least[begin] < np.inf:
                radius = (values[end - 1] - values[begin]) / 2.0
                if cost == MEDIAN:
                    middle = rows[begin] + (rows[end] - rows[begin] + 1) // 2
                    at = np.searchsorted(rows[begin + 1 : end + 1], middle) + begin
                    below = values[at] * (rows[at] - rows[begin]) - (total[at] - total[begin])
                    above = total[end] - total[at] - values[at] * (rows[end] - rows[at])
                    whole = least[begin] + below + above
                elif cost == CENTER:
                    whole = max(least[begin], radius)
                else:
                    whole = least[begin] + radius * (rows[end] - rows[begin])
                if whole < least[end]:
                    least[end], begins[end] = whole, begin
            begin -= 1
    parts = 0
    end = size
    while end > 0:
        end = begins[end]
        parts += 1
    starts = np.empty(parts, np.int64)
    end = size
    for part in range(parts - 1, -1, -1):
        starts[part] = begins[end]
        end = begins[end]
    return starts, least[size]
