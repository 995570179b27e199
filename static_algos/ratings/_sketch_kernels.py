"""Persons with similar items found by sketches, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata.compile import kernel
from privacy.ratings._neighbour_kernels import mix, popcount

REACH = 64
"""Neighbours on either side that are looked at in each order."""


@kernel
def min_hashes(starts: NDArray[np.int64], items: NDArray[np.int32], sketches: int) -> NDArray[np.uint64]:
    """For each row and hash function the least hash of its items: two rows agree as often as they share items."""
    count = len(starts) - 1
    result = np.full((count, sketches), np.uint64(2**64 - 1), np.uint64)
    for row in range(count):
        for at in range(starts[row], starts[row + 1]):
            word = mix(np.uint64(items[at]) + np.uint64(0x9E3779B97F4A7C15))
            for sketch in range(sketches):
                # One strong hash per item, and a cheap one of it for each sketch.
                word = mix(word + np.uint64(sketch))
                result[row, sketch] = min(result[row, sketch], word)
    return result


@kernel
def item_bits(
    starts: NDArray[np.int64], items: NDArray[np.int32], place: NDArray[np.int64], words: int
) -> NDArray[np.uint64]:
    """A bit for each item with a place that a row has."""
    count = len(starts) - 1
    bits = np.zeros((count, words), np.uint64)
    for row in range(count):
        for at in range(starts[row], starts[row + 1]):
            bit = place[items[at]]
            if bit >= 0:
                bits[row, bit // 64] |= np.uint64(1) << np.uint64(bit % 64)
    return bits


@kernel
def unlink(before: NDArray[np.int32], after: NDArray[np.int32], row: int) -> None:
    """Take a row out of every order."""
    for sketch in range(before.shape[1]):
        left, right = before[row, sketch], after[row, sketch]
        if left >= 0:
            after[left, sketch] = right
        if right >= 0:
            before[right, sketch] = left


@kernel
def sketched_groups(
    bits: NDArray[np.uint64],
    seeds: NDArray[np.int64],
    before: NDArray[np.int32],
    after: NDArray[np.int32],
    k: int,
) -> NDArray[np.int64]:
    """Groups of k rows that share many items; -1 for the fewer than k that are left.

    A group begins with the first row left in `seeds` and takes, k - 1 times, the row that keeps most of the items
    which all of it share; of equals the one that loses fewest. Rows are sought near the first one in all orders of
    sketches.
    """
    count, words = bits.shape
    label = np.full(count, -1, np.int64)
    own = np.zeros(count, np.int64)
    for row in range(count):
        for word in range(words):
            own[row] += popcount(bits[row, word])
    stamp = np.full(count, -1, np.int64)
    chosen = np.empty(2 * REACH * before.shape[1] + 2 * k + REACH, np.int64)
    common = np.empty(words, np.uint64)
    left, number, turn = count, 0, 0
    for seed in seeds:
        if left < k:
            break
        if label[seed] >= 0:
            turn += 1
            continue
        found = 0
        stamp[seed] = number
        for sketch in range(before.shape[1]):
            low, high = before[seed, sketch], after[seed, sketch]
            for _ in range(REACH):
                if low >= 0:
                    if stamp[low] != number:
                        stamp[low] = number
                        chosen[found] = low
                        found += 1
                    low = before[low, sketch]
                if high >= 0:
                    if stamp[high] != number:
                        stamp[high] = number
                        chosen[found] = high
                        found += 1
                    high = after[high, sketch]
        # Large groups need more than the orders offer: the next in line fill up.
        place = turn
        while found < 2 * k and place < count:
            row = seeds[place]
            if label[row] < 0 and stamp[row] != number:
                stamp[row] = number
                chosen[found] = row
                found += 1
            place += 1
        common[:] = bits[seed]
        label[seed] = number
        unlink(before, after, seed)
        for _ in range(k - 1):
            best, most, lost = -1, -1, 0
            for at in range(found):
                row = chosen[at]
                if label[row] >= 0:
                    continue
                shared = 0
                for word in range(words):
                    shared += popcount(common[word] & bits[row, word])
                if shared > most or (shared == most and (own[row] < lost or (own[row] == lost and row < best))):
                    best, most, lost = row, shared, own[row]
            label[best] = number
            unlink(before, after, best)
            for word in range(words):
                common[word] &= bits[best, word]
        number += 1
        left -= k
        turn += 1
    return label
