"""ε-proximity: whose ratings are so close that somebody who knows them roughly cannot tell the persons apart.

Two persons are ε-proximate if they rated the same items, and no item differently by more than ε. It is not transitive.
The neighbourhood of a person is everybody proximate to them, themselves included.

Neighbourhoods are found by slicing: for each item the persons within ε of a rating are a slice of the table, and the
neighbourhood is what all slices have in common. Slices are bit sets, cut a thousand persons at a time, items that tell
most persons apart first, so that most blocks are empty after two or three items. Only persons who rated the same items
are compared at all, and persons with the same ratings are one row.

J. Sun, H. Wang, J. Li, J. Pei: Publishing anonymous survey rating data. Data Mining and Knowledge Discovery 23, 2011.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microdata.ratings import Ratings, Sparse
from privacy.ratings._neighbour_kernels import (
    WORDS,
    pair_counts,
    row_hashes,
    same_as,
    slice_large,
    slice_small,
    windows_of,
)

SMALL = 48
"""Rows up to which comparing pairs is cheaper than cutting slices."""
ROOM = 256 << 20
"""Bytes for the slices of all items; on fine scales the last items are compared one by one instead."""
KEYS = 8
"""Columns by which rows are sorted before they are put into blocks."""


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """What is around every person."""

    counts: NDArray[np.int64]
    """Persons in the neighbourhood of each person, the person included."""
    sums: NDArray[np.int64]
    """For each person and sensitive item: how many neighbours rated it, the sum of their ratings, and of squares."""


def dissimilarity(one: float | None, other: float | None, values: int) -> float:
    """How different two ratings of an item are on a scale of so many values; None is no rating.

    >>> dissimilarity(2, 5, 6), dissimilarity(None, None, 6), dissimilarity(None, 5, 6)
    (3, 0, 6)
    """
    if one is None or other is None:
        return 0 if one is other else values
    return abs(one - other)


def sensitive_dissimilarity(one: float | None, other: float | None, values: int) -> float:
    """The same for sensitive ratings, where a missing one may be anything, also beside another missing one.

    >>> sensitive_dissimilarity(2, 5, 6), sensitive_dissimilarity(None, None, 6)
    (3, 6)
    """
    return values if one is None or other is None else abs(one - other)


def equal_rows(rows: Sparse, *, values: bool) -> NDArray[np.int64]:
    """A number for each row, from 0 and the same for rows with the same items (and ratings, if asked)."""
    if not len(rows):
        return np.empty(0, np.int64)
    hashes = row_hashes(rows.starts, rows.items, rows.values, values)
    order = np.lexsort((hashes[:, 1], hashes[:, 0]))
    new = np.ones(len(order), bool)
    new[1:] = (hashes[order][1:] != hashes[order][:-1]).any(axis=1)
    labels = np.empty(len(order), np.int64)
    labels[order] = np.cumsum(new) - 1
    first = np.empty(int(new.sum()), np.int64)
    first[labels[::-1]] = np.arange(len(labels))[::-1]
    assert same_as(rows.starts, rows.items, rows.values, values, first[labels]), "two rows have one hash"
    # In the order in which they appear, so that nothing depends on the hashes themselves.
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[labels]


def first_rows(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first row of each number."""
    first = np.empty(int(labels.max(initial=-1)) + 1, np.int64)
    first[labels[::-1]] = np.arange(len(labels))[::-1]
    return first


def hamming_groups(rows: Sparse) -> NDArray[np.int64]:
    """A number for each row, the same for persons who rated the same items: nobody else can be proximate."""
    return equal_rows(rows, values=False)


def neighbour_counts(ratings: Ratings, epsilon: float, *, least: int | None = None) -> NDArray[np.int64]:
    """Persons in the neighbourhood of each person.

    With `least`, the search for a person ends when nothing can change any more in what is asked about it: which
    persons have fewer than `least`, and the fewest of all. Other numbers may then be too small.
    """
    return neighbourhoods(ratings, epsilon, least=least, moments=False).counts


def pairwise_counts(ratings: Ratings, epsilon: float) -> NDArray[np.int64]:
    """The same by comparing all pairs of persons."""
    rows, scale = ratings.open, ratings.scale
    return pair_counts(rows.starts, rows.items, rows.values, scale.steps(epsilon), scale.size)


def neighbourhoods(
    ratings: Ratings, epsilon: float, *, least: int | None = None, moments: bool = True
) -> Neighbourhoods:
    """What is around every person; `moments` also sums up the sensitive ratings there."""
    steps, size = ratings.scale.steps(epsilon), ratings.scale.size
    own = _moments(ratings) if moments else np.empty((len(ratings), 0), np.int64)
    width = own.shape[1] // 3
    if steps >= size:
        counts, sums = np.full(len(ratings), len(ratings)), np.broadcast_to(own.sum(axis=0), own.shape)
        return Neighbourhoods(counts, sums.reshape(len(ratings), width, 3))
    labels = equal_rows(ratings.open, values=True)
    first = first_rows(labels)
    weights = np.bincount(labels, minlength=len(first))
    merged = np.zeros((len(first), own.shape[1]), np.int64)
    np.add.at(merged, labels, own)
    if steps == 0:
        counts, sums = weights, merged
    else:
        enough = np.iinfo(np.int64).max if least is None else least
        counts, sums = _sliced(ratings.open.take(first), steps, size, enough, weights, merged)
    return Neighbourhoods(counts[labels], sums[labels].reshape(len(ratings), width, 3))


def _moments(ratings: Ratings) -> NDArray[np.int64]:
    """Number, sum and sum of squares of each sensitive item, side by side."""
    given = ratings.sensitive_matrix.astype(np.int64)
    return np.stack([given > 0, given, given * given], axis=2).reshape(len(ratings), 3 * given.shape[1])


def _sliced(
    rows: Sparse, steps: int, size: int, least: int, weights: NDArray[np.int64], moments: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    counts, sums = np.zeros(len(rows), np.int64), np.zeros_like(moments)
    patterns = hamming_groups(rows)
    order = np.argsort(patterns, kind="stable")
    edges = np.append(0, np.cumsum(np.bincount(patterns)))
    lengths = np.diff(edges)
    # Who has rated nothing open has one row, and so no other pattern is empty.
    small = (lengths <= SMALL) | (rows.rated[order[edges[:-1]]] == 0)
    bounds = np.stack([edges[:-1][small], edges[1:][small]], axis=1)
    slice_small(rows.starts, rows.values, order, bounds, steps, weights, moments, counts, sums)
    for start, end in zip(edges[:-1][~small].tolist(), edges[1:][~small].tolist(), strict=True):
        members = order[start:end]
        block = rows.take(members).values.reshape(len(members), -1)
        block = np.ascontiguousarray(block[:, _telling_first(block, steps, size)])
        sort = np.lexsort(block[:, : min(KEYS, block.shape[1])].T[::-1])
        block, members = block[sort], members[sort]
        each = 8 * WORDS * size * (1 + len(block) // (64 * WORDS))
        windows = windows_of(block[:, : max(1, ROOM // each)], size, steps)
        own_counts, own_sums = np.zeros(len(members), np.int64), np.zeros((len(members), moments.shape[1]), np.int64)
        slice_large(block, windows, steps, least, weights[members], moments[members], own_counts, own_sums)
        counts[members], sums[members] = own_counts, own_sums
    return counts, sums


def _telling_first(block: NDArray[np.int16], steps: int, size: int) -> NDArray[np.int64]:
    """Columns in the order of how few pairs of rows are close in them."""
    shares = np.stack([np.bincount(column, minlength=size + 1)[1:] for column in block.T]) / len(block)
    close = np.zeros(block.shape[1])
    for shift in range(-steps, steps + 1):
        low, high = max(0, shift), min(size, size + shift)
        close += (shares[:, low:high] * shares[:, low - shift : high - shift]).sum(axis=1)
    return np.argsort(close, kind="stable")
