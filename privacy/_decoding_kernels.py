"""Rows from sums: the linear program of decoding, solved by steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import kernel


@kernel
def decode(
    starts: NDArray[np.int64],
    regions: NDArray[np.int32],
    sizes: NDArray[np.float64],
    known: NDArray[np.float64],
    hard: NDArray[np.bool_],
    first: NDArray[np.float64],
    weight: float,
    rounds: int,
    near: float,
) -> tuple[NDArray[np.float64], int]:
    """The chances of each value in each cell, and the rounds that it took.

    The least sum of what is missing to the `known` sums of all regions, where those that are `hard` are met as they
    are; among the solutions the one that is nearest to `first`, which has that little `weight`. Cell g has `sizes[g]`
    rows that are in the regions from `starts[g]` on; a sum that is not a number is not known.

    Primal and dual steps (Chambolle and Pock, 2011), each as long as its row and column of the program allow.
    """
    cells, values = first.shape
    totals = np.zeros(len(known))
    for cell in range(cells):
        for place in range(starts[cell], starts[cell + 1]):
            totals[regions[place]] += sizes[cell]
    chances, prices = first.copy(), np.zeros(known.shape)
    sums, own = np.zeros(known.shape), np.empty(values)
    for turn in range(rounds):
        sums[:] = 0.0
        farthest = 0.0
        for cell in range(cells):
            begin, end = starts[cell], starts[cell + 1]
            step = 1.0 / max(end - begin, 1)
            for value in range(values):
                price = 0.0
                for place in range(begin, end):
                    price += prices[regions[place], value]
                kept = step * weight
                own[value] = (chances[cell, value] - step * price + kept * first[cell, value]) / (1.0 + kept)
            _to_chances(own)
            for value in range(values):
                moved = own[value] - chances[cell, value]
                farthest = max(farthest, abs(moved))
                chances[cell, value] = own[value]
                for place in range(begin, end):
                    sums[regions[place], value] += sizes[cell] * (own[value] + moved)
        for region in range(len(known)):
            for value in range(values):
                if totals[region] > 0 and not np.isnan(known[region, value]):
                    price = prices[region, value] + (sums[region, value] - known[region, value]) / totals[region]
                    price = price if hard[region] else min(max(price, -1.0), 1.0)
                    farthest = max(farthest, abs(price - prices[region, value]))
                    prices[region, value] = price
        if farthest < near:
            return chances, turn + 1
    return chances, rounds


@kernel
def _to_chances(own: NDArray[np.float64]) -> None:
    """The nearest numbers from 0 that add up to 1 (Michelot, 1986)."""
    count, total = len(own), own.sum()
    while True:
        excess, left, rest = (total - 1.0) / count, 0, 0.0
        for value in own:
            if value > excess:
                left += 1
                rest += value
        if left >= count:  # more only by rounding, which could go on for ever
            break
        count, total = left, rest
    for place in range(len(own)):
        own[place] = max(own[place] - excess, 0.0)
