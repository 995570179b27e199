"""Who is close to whom, compiled. Rows of one block have rated the same items, so that they are compared as vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata.compile import kernel

WORDS = 16
"""Words of 64 rows that are looked at together."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@kernel
def mix(word: np.uint64) -> np.uint64:
    """A word whose every bit depends on all bits of the given one (SplitMix64)."""
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))


@kernel
def row_hashes(
    starts: NDArray[np.int64], items: NDArray[np.int32], values: NDArray[np.int16], with_values: bool
) -> NDArray[np.uint64]:
    """Two words for each row: of its items, and of its ratings too if asked."""
    count = len(starts) - 1
    hashes = np.empty((count, 2), np.uint64)
    for row in range(count):
        one, two = _ODD, _SECOND
        for at in range(starts[row], starts[row + 1]):
            entry = np.uint64(items[at]) * np.uint64(65536)
            if with_values:
                entry += np.uint64(values[at])
            one = mix(one ^ (entry + _ODD))
            two = mix(two + entry * _FIRST + _ODD)
        hashes[row, 0], hashes[row, 1] = one, two
    return hashes


@kernel
def same_as(
    starts: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.int16],
    with_values: bool,
    first: NDArray[np.int64],
) -> bool:
    """Whether every row is what its representative `first` is; hashes alone are no proof."""
    for row in range(len(first)):
        other = first[row]
        length = starts[row + 1] - starts[row]
        if length != starts[other + 1] - starts[other]:
            return False
        for at in range(length):
            if items[starts[row] + at] != items[starts[other] + at]:
                return False
            if with_values and values[starts[row] + at] != values[starts[other] + at]:
                return False
    return True


@kernel
def are_close(starts: NDArray[np.int64], values: NDArray[np.int16], one: int, other: int, steps: int) -> bool:
    """Whether two rows with the same items differ nowhere by more than so many steps."""
    here, there = starts[one], starts[other]
    for at in range(starts[one + 1] - here):  # noqa: SIM110 - numba has no generators
        if abs(values[here + at] - values[there + at]) > steps:
            return False
    return True


@kernel
def slice_small(
    starts: NDArray[np.int64],
    values: NDArray[np.int16],
    order: NDArray[np.int64],
    bounds: NDArray[np.int64],
    steps: int,
    weights: NDArray[np.int64],
    moments: NDArray[np.int64],
    counts: NDArray[np.int64],
    sums: NDArray[np.int64],
) -> None:
    """Neighbours within many small sets of rows, pair by pair. Set c is `order[bounds[c, 0]:bounds[c, 1]]`."""
    for one_set in range(len(bounds)):
        for a in range(bounds[one_set, 0], bounds[one_set, 1]):
            one = order[a]
            counts[one] += weights[one]
            sums[one] += moments[one]
            for b in range(a + 1, bounds[one_set, 1]):
                other = order[b]
                if are_close(starts, values, one, other, steps):
                    counts[one] += weights[other]
                    counts[other] += weights[one]
                    sums[one] += moments[other]
                    sums[other] += moments[one]


@kernel
def popcount(word: np.uint64) -> int:
    """Bits that are set."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    # Signed, because numba makes floats of signed and unsigned numbers together.
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))  # type: ignore[return-value]


@kernel
def windows_of(rows: NDArray[np.int16], size: int, steps: int) -> NDArray[np.uint64]:
    """For each block of rows, column and rating: which rows are within so many steps of that rating there, as bits."""
    count, width = rows.shape
    blocks = (count + 64 * WORDS - 1) // (64 * WORDS)
    windows = np.zeros((blocks, width, size, WORDS), np.uint64)
    for row in range(count):
        block, rest = row // (64 * WORDS), row % (64 * WORDS)
        word, bit = rest // 64, np.uint64(1) << np.uint64(rest % 64)
        for column in range(width):
            value = rows[row, column]
            for near in range(max(1, value - steps), min(size, value + steps) + 1):
                windows[block, column, near - 1, word] |= bit
    return windows


@kernel
def slice_large(
    rows: NDArray[np.int16],
    windows: NDArray[np.uint64],
    steps: int,
    least: int,
    weights: NDArray[np.int64],
    moments: NDArray[np.int64],
    counts: NDArray[np.int64],
    sums: NDArray[np.int64],
) -> None:
    """Neighbours of every row: its slices of columns, cut with each other a thousand rows at a time.

    Columns behind those that have `windows` are compared for the rows that are left.

    Without moments a row is left as soon as it has `least` neighbours and no fewer than the loneliest row so far: what
    is told of it may then be too little, but which rows have fewer than `least`, and the fewest of all, are exact.
    """
    count, width = rows.shape
    blocks, cut = windows.shape[:2]
    whole = moments.shape[1] > 0
    plain = not whole and cut == width
    for row in range(count):
        if weights[row] != 1:
            plain = False
            break
    fewest = np.int64(2**62)
    common = np.empty(WORDS, np.uint64)
    for row in range(count):
        own = row // (64 * WORDS)
        found = np.int64(0)
        for turn in range(2 * blocks + 1):
            # Its own block first, then those beside it: rows are sorted, so that its neighbours are near.
            block = own + ((turn + 1) // 2 if turn % 2 else -(turn // 2))
            if block < 0 or block >= blocks:
                continue
            left = np.uint64(0)
            for word in range(WORDS):
                common[word] = windows[block, 0, rows[row, 0] - 1, word]
                left |= common[word]
            for column in range(1, cut):
                if left == np.uint64(0):
                    break
                value = rows[row, column] - 1
                left = np.uint64(0)
                for word in range(WORDS):
                    common[word] &= windows[block, column, value, word]
                    left |= common[word]
            if left == np.uint64(0):
                continue
            for word in range(WORDS):
                bits = common[word]
                if plain:
                    found += popcount(bits)
                    continue
                while bits != np.uint64(0):
                    lowest = bits & (~bits + np.uint64(1))
                    bits ^= lowest
                    other = (block * WORDS + word) * 64 + popcount(lowest - np.uint64(1))
                    close = True
                    for column in range(cut, width):
                        if abs(rows[row, column] - rows[other, column]) > steps:
                            close = False
                            break
                    if not close:
                        continue
                    found += weights[other]
                    if whole:
                        sums[row] += moments[other]
            if not whole and found >= least and found >= fewest:
                break
        counts[row] = found
        fewest = min(fewest, found)


@kernel
def dissimilarity(
    starts: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.int16],
    one: int,
    other: int,
    size: int,
    enough: int,
) -> int:
    """The greatest difference of two rows over all items; an item that only one rated counts `size`.

    The search ends where it exceeds `enough`.
    """
    a, b, worst = starts[one], starts[other], 0
    while a < starts[one + 1] or b < starts[other + 1]:
        if a < starts[one + 1] and b < starts[other + 1] and items[a] == items[b]:
            worst = max(worst, abs(values[a] - values[b]))
            a += 1
            b += 1
        else:
            worst = max(worst, size)
            if b == starts[other + 1] or (a < starts[one + 1] and items[a] < items[b]):
                a += 1
            else:
                b += 1
        if worst > enough:
            break
    return worst


@kernel
def pair_counts(
    starts: NDArray[np.int64], items: NDArray[np.int32], values: NDArray[np.int16], steps: int, size: int
) -> NDArray[np.int64]:
    """Neighbours of every row, by comparing all pairs: the definition, for small data and as an oracle."""
    count = len(starts) - 1
    counts = np.ones(count, np.int64)
    for one in range(count):
        for other in range(one + 1, count):
            if dissimilarity(starts, items, values, one, other, size, steps) <= steps:
                counts[one] += 1
                counts[other] += 1
    return counts
