"""The attack by preferences, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata.compile import kernel


@kernel
def rating_of(
    starts: NDArray[np.int64], items: NDArray[np.int32], values: NDArray[np.int16], row: int, item: int
) -> int:
    """What a row gave an item, 0 where it did not rate it."""
    low, high = starts[row], starts[row + 1]
    while low < high:
        middle = (low + high) // 2
        if items[middle] < item:
            low = middle + 1
        else:
            high = middle
    return int(values[low]) if low < starts[row + 1] and items[low] == item else 0


@kernel
def candidates(
    starts: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.int16],
    raters: NDArray[np.int64],
    rater_starts: NDArray[np.int64],
    known: NDArray[np.int32],
    given: NDArray[np.int16],
    victims: NDArray[np.int64],
    tolerance: int,
    sensitive: NDArray[np.int16],
    found: NDArray[np.int64],
    inside: NDArray[np.bool_],
    told: NDArray[np.bool_],
) -> None:
    """For each victim: rows that fit what is known, whether the victim's own is one, whether all agree on an answer."""
    width = sensitive.shape[1]
    answers = np.empty(width, np.int64)
    for victim in range(len(victims)):
        best, shortest = -1, np.int64(2**62)
        for at in range(known.shape[1]):
            item = known[victim, at]
            if item >= 0 and rater_starts[item + 1] - rater_starts[item] < shortest:
                best, shortest = item, rater_starts[item + 1] - rater_starts[item]
        if best < 0:
            continue
        agree = width > 0
        for place in range(rater_starts[best], rater_starts[best + 1]):
            row = raters[place]
            fits = True
            for at in range(known.shape[1]):
                if known[victim, at] < 0:
                    continue
                value = rating_of(starts, items, values, row, known[victim, at])
                if value == 0 or abs(value - given[victim, at]) > tolerance:
                    fits = False
                    break
            if not fits:
                continue
            found[victim] += 1
            if row == victims[victim]:
                inside[victim] = True
            if agree:
                agree = False
                for column in range(width):
                    if found[victim] == 1:
                        answers[column] = sensitive[row, column]
                    elif answers[column] != sensitive[row, column]:
                        answers[column] = 0
                    agree = agree or answers[column] > 0
        told[victim] = agree and inside[victim]
