"""Grouping at scale: persons who rated hardly the same items, found by MinHash instead of by comparing all pairs.

Where patterns differ nobody is proximate, so a group publishes the items that all its members rated and suppresses the
rest: which persons come together decides what is left. Each person has a sketch: for some hash functions the least
hash of their items, which two persons share as often as they share items. Sorted by each of them, persons with similar
items stand near each other; a group is chosen among those few, by how many of the popular items it keeps. Time is
linear in the ratings.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata.ratings import Sparse
from static_algos.ratings._sketch_kernels import item_bits, min_hashes, sketched_groups

SKETCHES = 16
POPULAR = 1024
"""Items that are counted exactly: what k persons share is hardly ever another one."""


def groups_by_sketch(rows: Sparse, k: int, width: int) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Groups of k rows with many items in common, and the rows that are left over: fewer than k."""
    popularity = np.bincount(rows.items, minlength=width)
    popular = np.argsort(-popularity, kind="stable")[:POPULAR]
    place = np.full(width, -1, np.int64)
    place[popular] = np.arange(len(popular))
    bits = item_bits(rows.starts, rows.items, place, max((len(popular) + 63) // 64, 1))
    seeds = np.argsort(-np.bitwise_count(bits).sum(axis=1).astype(np.int64), kind="stable")
    before, after = _orders(min_hashes(rows.starts, rows.items, SKETCHES))
    label = sketched_groups(bits, seeds, before, after, k)
    order = np.argsort(label, kind="stable")
    rest = int((label < 0).sum())
    return [*order[rest:].reshape(-1, k)], np.sort(order[:rest])


def _orders(hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Who stands before and after each row in the order of each sketch; -1 at the ends."""
    before, after = np.full(hashes.shape, -1, np.int32), np.full(hashes.shape, -1, np.int32)
    for sketch in range(hashes.shape[1]):
        order = np.argsort(hashes[:, sketch], kind="stable")
        before[order[1:], sketch] = order[:-1]
        after[order[:-1], sketch] = order[1:]
    return before, after
