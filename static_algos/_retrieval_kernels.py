"""Kernels that draw rows from buckets: along a curve, or by exact distance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import kernel


class Curve(NamedTuple):
    """Buckets whose rows stand in the order of a curve and leave one after the other.

    Slots hold the rows of all buckets, bucket after bucket, with a guard before each bucket and one after the last.
    """

    row: NDArray[np.int32]
    """Row in each slot; -1 for guards."""
    key: NDArray[np.uint64]
    """Position on the curve of each slot."""
    base: NDArray[np.int64]
    """First slot of each bucket; one more entry than buckets."""
    right: NDArray[np.int32]
    """A slot that still holds its row points to itself, an emptied one to some later slot (guards never empty)."""
    left: NDArray[np.int32]
    """The nearest slot to the left that still holds its row, for slots that do themselves."""


@kernel
def _holding(right: NDArray[np.int32], slot: int) -> int:
    """First slot from here on that still holds its row; halves the way for those who come later."""
    while right[slot] != slot:
        right[slot] = right[right[slot]]
        slot = right[slot]
    return slot


@kernel
def _first_from(curve: Curve, bucket: int, key: np.uint64) -> int:
    """First slot of the bucket whose key is not below this one, by bisection."""
    low, high = curve.base[bucket], curve.base[bucket + 1] - 1
    while low < high:
        middle = (low + high) // 2
        if curve.key[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def seed_bucket(draws: NDArray[np.int64], word: np.uint64) -> int:
    """A random one of the buckets that the class draws from."""
    drawn = 0
    for bucket in range(draws.shape[0]):
        drawn += draws[bucket] > 0
    chosen = np.int64((word >> np.uint64(32)) % np.uint64(drawn))
    for bucket in range(draws.shape[0]):
        if draws[bucket] > 0:
            if chosen == 0:
                return bucket
            chosen -= 1
    return -1


@kernel
def _seed_slot(curve: Curve, bucket: int, word: np.uint64) -> int:
    """A random slot of the bucket that still holds its row."""
    base, end = curve.base[bucket], curve.base[bucket + 1] - 1
    offset = np.int64((word & np.uint64(0xFFFFFFFF)) % np.uint64(end - base))
    slot = _holding(curve.right, base + offset)
    return slot if slot < end else _holding(curve.right, base)


@kernel
def draw_along_curve(
    curve: Curve, draws: NDArray[np.int64], words: NDArray[np.uint64], first: int, classes: NDArray[np.int32]
) -> None:
    """Form the classes `first`, `first` + 1, …: around a random row, the nearest along the curve of each bucket."""
    for number in range(draws.shape[0]):
        own = draws[number]
        origin = seed_bucket(own, words[number])
        seed = curve.key[_seed_slot(curve, origin, words[number])]
        for bucket in range(own.shape[0]):
            if own[bucket] == 0:
                continue
            start, end = curve.base[bucket], curve.base[bucket + 1] - 1
            after = _holding(curve.right, _first_from(curve, bucket, seed))
            before = curve.left[after]
            for _ in range(own[bucket]):
                if before < start or (after < end and curve.key[after] - seed <= seed - curve.key[before]):
                    taken = after
                    after = _holding(curve.right, after + 1)
                else:
                    taken = before
                    before = curve.left[before]
                classes[curve.row[taken]] = first + number
                curve.right[taken] = taken + 1
            curve.left[after] = before


class Cloud(NamedTuple):
    """Buckets whose rows are points and leave in any order: what is left of a bucket stands at its beginning."""

    row: NDArray[np.int32]
    point: NDArray[np.float32]
    base: NDArray[np.int64]
    """First slot of each bucket; one more entry than buckets."""
    left: NDArray[np.int64]
    """Rows that are left in each bucket."""


class Nearest(NamedTuple):
    """A heap of the nearest slots so far, the farthest of them first."""

    distance: NDArray[np.float32]
    slot: NDArray[np.int64]


@kernel
def _sink(heap: Nearest, place: int, size: int, distance: np.float32, slot: int) -> None:
    """Put an entry where the heap has a hole at `place`."""
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and heap.distance[child + 1] > heap.distance[child]:
            child += 1
        if heap.distance[child] <= distance:
            break
        heap.distance[place] = heap.distance[child]
        heap.slot[place] = heap.slot[child]
        place = child
    heap.distance[place] = distance
    heap.slot[place] = slot


@kernel
def _find_nearest(cloud: Cloud, heap: Nearest, bucket: int, seed: NDArray[np.float32], wanted: int) -> None:
    """Fill the heap with the `wanted` slots of the bucket that are nearest to the seed."""
    base = cloud.base[bucket]
    for place in range(wanted):
        heap.distance[place] = np.inf
    for slot in range(base, base + cloud.left[bucket]):
        distance = np.float32(0.0)
        for axis in range(seed.shape[0]):
            step = cloud.point[slot, axis] - seed[axis]
            distance += step * step
        if distance < heap.distance[0]:
            _sink(heap, 0, wanted, distance, slot)


@kernel
def draw_by_distance(
    cloud: Cloud,
    heap: Nearest,
    draws: NDArray[np.int64],
    words: NDArray[np.uint64],
    first: int,
    classes: NDArray[np.int32],
) -> None:
    """Form the classes `first`, `first` + 1, …: around a random row, the nearest of each bucket."""
    for number in range(draws.shape[0]):
        own = draws[number]
        origin = seed_bucket(own, words[number])
        chosen = np.int64((words[number] & np.uint64(0xFFFFFFFF)) % np.uint64(cloud.left[origin]))
        seed = cloud.point[cloud.base[origin] + chosen].copy()
        for bucket in range(own.shape[0]):
            _find_nearest(cloud, heap, bucket, seed, own[bucket])
            # Later slots first, so that what moves into a gap is never itself drawn.
            for slot in np.sort(heap.slot[: own[bucket]])[::-1]:
                classes[cloud.row[slot]] = first + number
                cloud.left[bucket] -= 1
                last = cloud.base[bucket] + cloud.left[bucket]
                cloud.row[slot] = cloud.row[last]
                cloud.point[slot] = cloud.point[last]
