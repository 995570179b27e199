"""Genetic searches over bits, to compare ordered greed with: tradGA and Iyengar's.

tradGA has a bit for each value of each column: 0 suppresses it in all rows. Iyengar's has one for each boundary between
neighbouring leaves: 1 ends an interval, which must be a node of the hierarchy. In both, rows whose class is still too
small are suppressed as a whole. The search is the one of ordered greed (ten members, the two best have a child, the
worst makes room for it, mutation, an end after many generations without a better one), with a crossover at one point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from microdata import Category, Hierarchy, Table
from static_algos._full_domain_kernels import gather
from static_algos.orders import MUTATION, PATIENCE, POPULATION

Bits = NDArray[np.bool_]


def evolve(bits: int, cost_of: Callable[[Bits], float], generations: int, seed: int) -> float:
    """The least cost that a search over so many bits finds; it begins with members of few and of many set bits."""
    random = np.random.default_rng(seed)
    members = [random.random(bits) < (one + 0.5) / POPULATION for one in range(POPULATION)]
    costs = [cost_of(one) for one in members]
    best, stale = min(costs), 0
    for _ in range(generations):
        one, other = np.argsort(costs, kind="stable")[:2]
        cut = int(random.integers(0, bits + 1))
        child = np.concatenate([members[one][:cut], members[other][cut:]])
        born, worst = cost_of(child), int(np.argmax(costs))
        if born < costs[worst]:
            members[worst], costs[worst] = child, born
        for place in np.flatnonzero(random.random(POPULATION) < MUTATION):
            members[place] = members[place].copy()
            members[place][random.integers(0, bits)] ^= True
            costs[place] = cost_of(members[place])
        found = min(born, *costs)
        best, stale = min(best, found), 0 if found < best else stale + 1
        if stale == PATIENCE * bits:  # a bit is less than a column
            break
    return best


def _small(codes: NDArray[np.int32], k: int) -> NDArray[np.bool_]:
    """Rows whose class has fewer than k rows."""
    label, _ = gather(codes)
    return np.bincount(label)[label] < k


def suppressed_values(table: Table, k: int, *, generations: int, seed: int) -> float:
    """tradGA: the share of cells that are left."""
    codes = [np.unique(column, return_inverse=True)[1].astype(np.int32) for column in table.quasi.T]
    starts = np.concatenate(([0], np.cumsum([one.max() + 1 for one in codes])))

    def cost(bits: Bits) -> float:
        kept = np.stack([bits[start + one] for start, one in zip(starts, codes, strict=False)], axis=1)
        small = _small(np.where(kept, np.stack(codes, axis=1), -1).astype(np.int32), k)
        return float((~kept[~small]).sum() + small.sum() * kept.shape[1])

    return 1 - evolve(int(starts[-1]), cost, generations, seed) / table.quasi.size


def merged_intervals(table: Table, k: int, *, generations: int, seed: int) -> float:
    """Iyengar's: the loss LM per cell, where a leaf costs 0 and the root 1."""
    columns = [column.astype(np.int64) for column in table.quasi.T]
    lows = [0 if isinstance(one, Category) else int(one.low) for one in table.schema.quasi]
    sizes = [int(one.size or 1) for one in table.schema.quasi]
    starts = np.concatenate(([0], np.cumsum([size - 1 for size in sizes])))

    def cost(bits: Bits) -> float:
        codes, lost = [], np.zeros(len(table))
        for column, one in enumerate(table.schema.quasi):
            own = bits[starts[column] : starts[column + 1]]
            ends = repaired(own, one.hierarchy) if isinstance(one, Category) else own
            group = np.concatenate(([0], np.cumsum(ends)))
            wide = (np.bincount(group) - 1) / max(sizes[column] - 1, 1)
            codes.append(group[columns[column] - lows[column]])
            lost += wide[codes[-1]]
        small = _small(np.stack(codes, axis=1).astype(np.int32), k)
        return float(lost[~small].sum() + small.sum() * len(columns))

    return evolve(int(starts[-1]), cost, generations, seed) / table.quasi.size


def runs(ends: Sequence[bool] | Bits) -> list[tuple[int, int]]:
    """First and last leaf of every interval."""
    last = [place for place, end in enumerate(ends) if end] + [len(ends)]
    return list(zip([0, *(place + 1 for place in last[:-1])], last, strict=True))


def legal(ends: Sequence[bool] | Bits, tree: Hierarchy) -> bool:
    """Whether every interval is a node of the hierarchy."""
    nodes = [(int(tree.lca(first, last)), first, last) for first, last in runs(ends)]
    return all((tree.first[node], tree.last[node]) == (first, last) for node, first, last in nodes)


def repaired(ends: Bits, tree: Hierarchy) -> Bits:
    """The intervals, widened until each is a node."""
    result = ends.copy()
    while not legal(result, tree):
        for first, last in runs(result):
            node = int(tree.lca(first, last))
            result[tree.first[node] : tree.last[node]] = False
    return result
