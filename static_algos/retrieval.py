"""Which rows each class draws from each bucket: neighbours along the Hilbert curve, or exact nearest neighbours.

Sensitive values play no part: a class is safe whichever rows it draws.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from microdata import Progress, Table, Words, geometry, silent
from static_algos import _retrieval_kernels as kernels
from static_algos.hilbert import hilbert_keys

_PAIRS = 1 << 25
"""Distances that are measured between two calls of the progress: a fraction of a second."""


def draw_along_curve(
    table: Table,
    buckets: NDArray[np.integer],
    draws: Iterable[NDArray[np.int64]],
    words: Words,
    progress: Progress = silent,
) -> NDArray[np.int32]:
    """Class of each row, where `buckets` names the bucket of each row and `draws` the sizes of all classes.

    Around a random row, each class takes the nearest rows along the Hilbert curve.
    """
    keys = hilbert_keys(table.schema, table.quasi, progress)
    order, base = _by_bucket(buckets, np.argsort(keys))
    slots = np.arange(base[-1], dtype=np.int32)
    curve = kernels.Curve(
        row=order, key=np.where(order < 0, np.uint64(0), keys[order]), base=base, right=slots, left=slots - 1
    )
    classes = np.full(len(table), -1, np.int32)
    formed = done = 0
    for part in draws:
        progress("draw", done, len(table))
        kernels.draw_along_curve(curve, part, words(len(part)), formed, classes)
        formed += len(part)
        done += int(part.sum())
    return classes


def draw_by_distance(
    table: Table,
    buckets: NDArray[np.integer],
    draws: Iterable[NDArray[np.int64]],
    words: Words,
    progress: Progress = silent,
) -> NDArray[np.int32]:
    """The same by exact distance, every quasi-identifier scaled by its domain and weight."""
    space = geometry(table.schema)
    order, base = _by_bucket(buckets, np.arange(len(table)))
    points = (table.quasi[order] - space.low) * (space.scale * np.sqrt(space.weight))
    cloud = kernels.Cloud(order, points.astype(np.float32), base, np.diff(base) - 1)
    heap = kernels.Nearest(np.empty(len(table), np.float32), np.empty(len(table), np.int64))
    classes = np.full(len(table), -1, np.int32)
    formed = done = 0
    for part in draws:
        few = max(1, _PAIRS // (len(table) - done))
        for start in range(0, len(part), few):
            progress("draw", done, len(table))
            some = part[start : start + few]
            kernels.draw_by_distance(cloud, heap, some, words(len(some)), formed, classes)
            formed += len(some)
            done += int(some.sum())
    return classes


def _by_bucket(buckets: NDArray[np.integer], order: NDArray[np.integer]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Rows bucket after bucket in the given order, with a guard (-1) before each and one after the last.

    The second array holds the first slot of each bucket, and the end.
    """
    small = buckets.astype(np.uint16) if buckets.max(initial=0) < 1 << 16 else buckets
    order = order[np.argsort(small[order], kind="stable")]
    base = np.append(0, np.cumsum(np.bincount(buckets) + 1)) + 1
    slots = np.full(base[-1], -1, np.int32)
    slots[np.arange(len(order)) + buckets[order] + 1] = order
    return slots, base
