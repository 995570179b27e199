"""Cliques of persons who are close to each other as they are, and groups of least cost for the others, compiled.

All persons of a block have rated the same items. Who is close to whom is a matrix of bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata.compile import kernel
from privacy.ratings._neighbour_kernels import popcount

TRIED = 64
"""Persons that are looked at where all of them would be too many."""


@kernel
def adjacency(block: NDArray[np.int16], steps: int) -> NDArray[np.uint64]:
    """A bit for each pair of different rows that are close."""
    count, width = block.shape
    near = np.zeros((count, (count + 63) // 64), np.uint64)
    for one in range(count):
        for other in range(one + 1, count):
            close = True
            for column in range(width):
                if abs(block[one, column] - block[other, column]) > steps:
                    close = False
                    break
            if close:
                near[one, other // 64] |= np.uint64(1) << np.uint64(other % 64)
                near[other, one // 64] |= np.uint64(1) << np.uint64(one % 64)
    return near


@kernel
def is_set(bits: NDArray[np.uint64], place: int) -> bool:
    """Whether a bit is set."""
    return (bits[place // 64] >> np.uint64(place % 64)) & np.uint64(1) == np.uint64(1)


@kernel
def components(near: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Number of the connected component of each row."""
    count = len(near)
    label = np.full(count, -1, np.int64)
    stack = np.empty(count, np.int64)
    number = 0
    for seed in range(count):
        if label[seed] >= 0:
            continue
        label[seed] = number
        stack[0], top = seed, 1
        while top:
            top -= 1
            row = stack[top]
            for word in range(near.shape[1]):
                bits = near[row, word]
                while bits != np.uint64(0):
                    lowest = bits & (~bits + np.uint64(1))
                    bits ^= lowest
                    other = word * 64 + popcount(lowest - np.uint64(1))
                    if label[other] < 0:
                        label[other] = number
                        stack[top] = other
                        top += 1
        number += 1
    return label


@kernel
def greedy_cliques(near: NDArray[np.uint64], order: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Disjoint cliques of k rows, begun by the loneliest; -1 for who is in none. Leftovers join where they fit."""
    count, words = near.shape
    label = np.full(count, -1, np.int64)
    free = np.zeros(words, np.uint64)
    for row in range(count):
        free[row // 64] |= np.uint64(1) << np.uint64(row % 64)
    common = np.empty(words, np.uint64)
    clique = np.empty(max(k, 1), np.int64)
    number = 0
    for seed in order:
        if label[seed] >= 0:
            continue
        left = 0
        for word in range(words):
            common[word] = near[seed, word] & free[word]
            left += popcount(common[word])
        clique[0], have = seed, 1
        while have < k and left >= k - have:
            best, most, tried = -1, -1, 0
            for word in range(words):
                bits = common[word]
                while bits != np.uint64(0) and tried < TRIED:
                    lowest = bits & (~bits + np.uint64(1))
                    bits ^= lowest
                    other = word * 64 + popcount(lowest - np.uint64(1))
                    shared = 0
                    for place in range(words):
                        shared += popcount(common[place] & near[other, place])
                    tried += 1
                    if shared > most:
                        best, most = other, shared
            if best < 0:
                break
            clique[have] = best
            have += 1
            left = 0
            for word in range(words):
                common[word] &= near[best, word]
                left += popcount(common[word])
        if have < k:
            continue
        for member in range(k):
            label[clique[member]] = number
            free[clique[member] // 64] &= ~(np.uint64(1) << np.uint64(clique[member] % 64))
        number += 1
    sizes = np.zeros(number, np.int64)
    inside = np.zeros((number, words), np.uint64)
    for row in range(count):
        if label[row] >= 0:
            sizes[label[row]] += 1
            inside[label[row], row // 64] |= np.uint64(1) << np.uint64(row % 64)
    for row in range(count):
        if label[row] >= 0:
            continue
        for group in range(number):
            if sizes[group] >= 2 * k - 1:
                continue
            fits = True
            for word in range(words):
                if inside[group, word] & ~near[row, word] != np.uint64(0):
                    fits = False
                    break
            if fits:
                label[row] = group
                sizes[group] += 1
                inside[group, row // 64] |= np.uint64(1) << np.uint64(row % 64)
                break
    return label


@kernel
def window_costs(counts: NDArray[np.int64], steps: int, costs: NDArray[np.int64]) -> None:
    """What each further rating would cost an item whose ratings are counted in `counts`."""
    size = len(counts)
    costs[:] = np.int64(2**62)
    for start in range(max(size - steps, 1)):
        base = 0
        for value in range(size):
            base += counts[value] * max(start - value, value - start - steps, 0)
        for value in range(size):
            costs[value] = min(costs[value], base + max(start - value, value - start - steps, 0))


@kernel
def cheapest_groups(
    block: NDArray[np.int16], order: NDArray[np.int64], k: int, steps: int, size: int
) -> NDArray[np.int64]:
    """Groups of k rows, each begun by the first left in `order` and filled with who costs least; -1 for fewer than k.

    Who costs least is sought among the rows nearest to the first one.
    """
    count, width = block.shape
    label = np.full(count, -1, np.int64)
    alive = order.copy()
    left = count
    distance = np.empty(count, np.int64)
    chosen = np.empty(count, np.int64)
    counts = np.zeros((width, size), np.int64)
    costs = np.empty((width, size), np.int64)
    reach = (size - 1) * width + 1
    number = 0
    while left >= k:
        seed = alive[0]
        for place in range(left):
            total = 0
            for column in range(width):
                total += abs(int(block[alive[place], column]) - int(block[seed, column]))
            distance[place] = total
        # The nearest so many, in the order of `alive`: a threshold by counting distances, then those below it first.
        most = min(max(TRIED, 2 * k), left)
        limit = nearest_limit(distance, left, most, reach)
        found = 0
        for place in range(1, left):
            if distance[place] < limit:
                chosen[found] = alive[place]
                found += 1
        for place in range(1, left):
            if distance[place] == limit and found < most:
                chosen[found] = alive[place]
                found += 1
        counts[:] = 0
        for column in range(width):
            counts[column, block[seed, column] - 1] += 1
        label[seed] = number
        for _ in range(k - 1):
            for column in range(width):
                window_costs(counts[column], steps, costs[column])
            best, least = -1, 2**62
            for place in range(found):
                row = chosen[place]
                if label[row] >= 0:
                    continue
                total = 0
                for column in range(width):
                    total += costs[column, block[row, column] - 1]
                if total < least or (total == least and row < best):
                    best, least = row, total
            label[best] = number
            for column in range(width):
                counts[column, block[best, column] - 1] += 1
        number += 1
        kept = 0
        for place in range(left):
            if label[alive[place]] < 0:
                alive[kept] = alive[place]
                kept += 1
        left = kept
    return label


@kernel
def nearest_limit(distance: NDArray[np.int64], left: int, most: int, reach: int) -> int:
    """The distance within which at least `most` of the first `left` are."""
    histogram = np.zeros(reach + 1, np.int64)
    for place in range(left):
        histogram[min(distance[place], reach)] += 1
    total = 0
    for limit in range(reach + 1):
        total += histogram[limit]
        if total >= most:
            return limit
    return reach
