"""Last seen quasi-identifiers of persons: very many numbers, most of which are small and whole.

A value that is a whole number of ones above the least of its domain, and not too far, is kept as that number. Any other
one is kept as it is, in a second table, whose memory is taken only where something is written. So whatever comes is
given back as it came.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import kernel, part

ELSEWHERE = 65_535
"""In the narrow table: the value is in the other one."""


@part
def value_at(
    narrow: NDArray[np.uint16], exact: NDArray[np.float64], lows: NDArray[np.float64], person: int, attribute: int
) -> float:
    """One value of a person."""
    steps = narrow[person, attribute]
    return exact[person, attribute] if steps == ELSEWHERE else lows[attribute] + np.float64(steps)


@part
def take_values(
    narrow: NDArray[np.uint16],
    exact: NDArray[np.float64],
    lows: NDArray[np.float64],
    person: int,
    into: NDArray[np.float64],
) -> None:
    """Copy the values of a person; as if all were narrow, in a loop without a branch, and then those that are not."""
    others = False
    for attribute in range(len(lows)):
        steps = narrow[person, attribute]
        others |= steps == ELSEWHERE
        into[attribute] = lows[attribute] + np.float64(steps)
    if others:
        for attribute in range(len(lows)):
            into[attribute] = value_at(narrow, exact, lows, person, attribute)


@part
def has_values(
    narrow: NDArray[np.uint16],
    exact: NDArray[np.float64],
    lows: NDArray[np.float64],
    person: int,
    quasi: NDArray[np.float64],
    index: int,
) -> bool:
    """Whether the values of a person are those of a row; looked at as in `take_values`."""
    others, same = False, True
    for attribute in range(len(lows)):
        steps = narrow[person, attribute]
        others |= steps == ELSEWHERE
        same &= lows[attribute] + np.float64(steps) == quasi[index, attribute]
    if others:
        same = True
        for attribute in range(len(lows)):
            same &= value_at(narrow, exact, lows, person, attribute) == quasi[index, attribute]
    return same


@part
def put_values(
    narrow: NDArray[np.uint16],
    exact: NDArray[np.float64],
    lows: NDArray[np.float64],
    person: int,
    values: NDArray[np.float64],
) -> None:
    """These are the values of a person now."""
    for attribute in range(len(lows)):
        value, low, steps = values[attribute], lows[attribute], np.uint16(ELSEWHERE)
        if 0.0 <= value - low < ELSEWHERE:
            steps = np.uint16(value - low)
        if steps == ELSEWHERE or low + np.float64(steps) != value:
            steps = np.uint16(ELSEWHERE)
            exact[person, attribute] = value
        narrow[person, attribute] = steps


@kernel
def read_values(
    narrow: NDArray[np.uint16],
    exact: NDArray[np.float64],
    lows: NDArray[np.float64],
    who: NDArray[np.int64],
    into: NDArray[np.float64],
) -> None:
    """Copy the values of many persons."""
    for index in range(len(who)):
        take_values(narrow, exact, lows, who[index], into[index])


@kernel
def write_values(
    narrow: NDArray[np.uint16],
    exact: NDArray[np.float64],
    lows: NDArray[np.float64],
    who: NDArray[np.int64],
    values: NDArray[np.float64],
) -> None:
    """These are the values of many persons now."""
    for index in range(len(who)):
        put_values(narrow, exact, lows, who[index], values[index])
