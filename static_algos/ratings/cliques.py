"""Groups among persons who rated the same items: those who are close as they are first, then those who cost least."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from static_algos.ratings._clique_kernels import adjacency, cheapest_groups, components, greedy_cliques

EXACT = 14
"""Persons up to which all ways to cut a component into cliques are tried."""
BLOCK = 4096
"""Persons that are grouped together; more are cut into halves first, where their ratings differ most."""


def groups_of_alike(
    block: NDArray[np.int16], k: int, steps: int, size: int
) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Groups of rows of a dense block, and the rows that are left over: fewer than k."""
    groups: list[NDArray[np.int64]] = []
    rest: list[NDArray[np.int64]] = []
    for rows in _halves(block, np.arange(len(block))):
        own = block[rows]
        near = adjacency(own, steps)
        label = _cliques(near, k)
        groups += [rows[label == number] for number in range(int(label.max(initial=-1)) + 1)]
        left = np.flatnonzero(label < 0)
        more, over = _pooled(own, left, near, k, steps, size)
        groups += [rows[members] for members in more]
        rest.append(rows[over])
    last = np.concatenate(rest) if rest else np.empty(0, np.int64)
    if len(last) >= k:
        more, over = _pooled(block, last, None, k, steps, size)
        groups, last = groups + more, over
    return groups, last


def _halves(block: NDArray[np.int16], rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    if len(rows) <= BLOCK:
        yield rows
        return
    order = rows
    if block.shape[1]:
        widest = int(block[rows].var(axis=0).argmax())
        order = rows[np.argsort(block[rows, widest], kind="stable")]
    for half in (order[: len(order) // 2], order[len(order) // 2 :]):
        yield from _halves(block, np.sort(half))


def _cliques(near: NDArray[np.uint64], k: int) -> NDArray[np.int64]:
    """Cliques of at least k rows; where greed leaves somebody of a small component over, all ways are tried."""
    degrees = np.bitwise_count(near).sum(axis=1)
    label = greedy_cliques(near, np.argsort(degrees, kind="stable"), k)
    component = components(near)
    sizes = np.bincount(component)
    unhappy = np.unique(component[label < 0])
    number = int(label.max(initial=-1)) + 1
    for one in unhappy[(sizes[unhappy] >= k) & (sizes[unhappy] <= EXACT)].tolist():
        rows = np.flatnonzero(component == one)
        cut = _exact_cut(_masks(near, rows), k)
        if cut is not None:
            label[rows] = number + np.array(cut)
            number += max(cut) + 1
    kept, label_of = np.unique(label[label >= 0], return_inverse=True)
    label[label >= 0] = label_of
    assert len(kept) == int(label.max(initial=-1)) + 1
    return label


def _masks(near: NDArray[np.uint64], rows: NDArray[np.int64]) -> list[int]:
    """Neighbours of each of these rows among them, as the bits of a number."""
    bits = (near[rows][:, rows // 64] >> (rows % 64).astype(np.uint64)) & np.uint64(1)
    return [sum(1 << place for place in np.flatnonzero(line).tolist()) for line in bits]


def _exact_cut(near: list[int], k: int) -> list[int] | None:
    """Numbers of disjoint cliques of at least k that cover all, None where there are none."""
    label = [-1] * len(near)

    def cover(free: int, number: int) -> bool:
        if not free:
            return True
        rows = [row for row in range(len(near)) if free >> row & 1]
        seed = min(rows, key=lambda row: ((near[row] & free).bit_count(), row))
        for clique in _cliques_with(near, [seed], near[seed] & free, k):
            for member in clique:
                label[member] = number
            if cover(free & ~sum(1 << member for member in clique), number + 1):
                return True
        return False

    return label if cover((1 << len(near)) - 1, 0) else None


def _cliques_with(near: list[int], clique: list[int], common: int, k: int) -> Iterator[list[int]]:
    """Cliques of at least k that contain these rows, the smallest first."""
    if len(clique) >= k:
        yield clique
    if len(clique) + common.bit_count() < k:
        return
    later = common
    for row in range(len(near)):
        if later >> row & 1:
            later &= ~(1 << row)
            yield from _cliques_with(near, [*clique, row], later & near[row], k)


def _pooled(
    block: NDArray[np.int16], rows: NDArray[np.int64], near: NDArray[np.uint64] | None, k: int, steps: int, size: int
) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Groups of k at least cost, the loneliest first, and who is left over."""
    if len(rows) < k:
        return [], rows
    order = np.arange(len(rows))
    if near is not None:
        inside = np.zeros(near.shape[1], np.uint64)
        np.bitwise_or.at(inside, rows // 64, np.uint64(1) << (rows % 64).astype(np.uint64))
        order = np.argsort(np.bitwise_count(near[rows] & inside).sum(axis=1), kind="stable")
    label = cheapest_groups(block[rows], order, k, steps, size)
    groups = [rows[label == number] for number in range(int(label.max(initial=-1)) + 1)]
    return groups, rows[label < 0]
