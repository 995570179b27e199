"""SABRE's buckets: runs of neighbouring sensitive values, as coarse as the threshold allows.

Inside a bucket a class may hold any of the values. What that can cost at most (CETᵁ) is known in advance; buckets are
split, the one that gains most first, until these bounds sum up to less than t.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, Category, Hierarchy
from privacy.emd import Ground
from static_algos._dichotomy_kernels import CATEGORY, NUMBER, SplitTest
from static_algos.limits import Places, Reference, places_of, unit
from static_algos.ratios import rounded_down

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Bucket:
    """The values `first … last`, of which at least these two occur."""

    first: int
    last: int
    node: int = -1
    """Of the hierarchy, where there is one."""


@dataclass(frozen=True)
class Bucketing:
    """Disjoint buckets in the order of their values, and the bound U on what moving earth inside them costs.

    U is in units of 1 / (rows · unit of the attribute's distances).
    """

    buckets: tuple[Bucket, ...]
    bound: int

    def of_values(self, size: int) -> NDArray[np.int32]:
        """Bucket of each value of the domain; values that do not occur may have any."""
        starts = np.array([bucket.first for bucket in self.buckets])
        return np.maximum(np.searchsorted(starts, np.arange(size), side="right") - 1, 0).astype(np.int32)


def bucketize(attribute: Attribute, counts: Reference, t: Fraction, ground: Ground = "rank") -> Bucketing:
    """The buckets of a sensitive attribute whose values occur this often."""
    if isinstance(attribute, Category):
        return category_buckets(attribute.hierarchy, counts, t)
    return number_buckets(counts, t, places_of([attribute], [counts], ground)[0])


def category_buckets(tree: Hierarchy, counts: Reference, t: Fraction) -> Bucketing:
    """bucketCat: buckets are nodes of the hierarchy; a split replaces a node by its children."""
    before = np.concatenate(([0], np.cumsum(counts)))
    occurring = np.flatnonzero(counts)
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(tree.parent):
        if before[tree.last[node] + 1] > before[tree.first[node]]:
            children.setdefault(int(parent), []).append(node)

    def bucket_of(node: int) -> Bucket:
        low, high = np.searchsorted(occurring, (tree.first[node], tree.last[node] + 1))
        return Bucket(int(occurring[low]), int(occurring[high - 1]), node)

    def cost(bucket: Bucket) -> int:
        inside = counts[bucket.first : bucket.last + 1]
        together = int(tree.height[tree.lca(bucket.first, bucket.last)])
        return together * int(inside.sum() - inside[inside > 0].min())

    def parts(bucket: Bucket) -> list[Bucket]:
        return [bucket_of(child) for child in children.get(bucket.node, ())]

    limit = t * int(before[-1]) * max(int(tree.height[0]), 1)
    return _split_until_below(bucket_of(0), limit, cost, parts)


def number_buckets(counts: Reference, t: Fraction, places: Places) -> Bucketing:
    """bucketNum: buckets are runs of values; a split cuts a run where the bounds of both parts are least."""
    occurring = np.flatnonzero(counts)
    rows = np.concatenate(([0], np.cumsum(counts[occurring])))
    rank = places[occurring]
    moments = np.concatenate(([0], np.cumsum(counts[occurring] * rank)))

    def costs(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
        """CETᵁ of the occurring values low … high: all rows at one end is the worst, the cost is convex between."""
        mass, moment = rows[high + 1] - rows[low], moments[high + 1] - moments[low]
        return np.maximum(moment - mass * rank[low], mass * rank[high] - moment)

    def ends(bucket: Bucket) -> tuple[int, int]:
        return int(np.searchsorted(occurring, bucket.first)), int(np.searchsorted(occurring, bucket.last))

    def cost(bucket: Bucket) -> int:
        low, high = ends(bucket)
        return int(costs(np.array([low]), np.array([high]))[0])

    def parts(bucket: Bucket) -> list[Bucket]:
        low, high = ends(bucket)
        if low == high:
            return []
        cut = np.arange(low, high)
        left = costs(np.full_like(cut, low), cut)
        right = costs(cut + 1, np.full_like(cut, high))
        best = int(cut[np.argmin(left + right)])
        return [Bucket(bucket.first, int(occurring[best])), Bucket(int(occurring[best + 1]), bucket.last)]

    limit = t * int(rows[-1]) * max(int(places[-1]), 1)
    return _split_until_below(Bucket(int(occurring[0]), int(occurring[-1])), limit, cost, parts)


def _split_until_below(
    root: Bucket, limit: Fraction, cost: Callable[[Bucket], int], parts: Callable[[Bucket], list[Bucket]]
) -> Bucketing:
    """Split the bucket of greatest gain first, until the bounds sum up to less than `limit` or nothing can be split."""
    leaves = {root.first: root}
    bound = cost(root)
    waiting: list[_Waiting] = []
    _wait(waiting, root, cost, parts)
    # At t = 0 no sum is below the limit, and all buckets end up with a single value.
    while bound >= limit and waiting:
        chosen = heapq.heappop(waiting)
        del leaves[chosen.bucket.first]
        leaves.update({part.first: part for part in chosen.parts})
        bound -= chosen.gain
        for part in chosen.parts:
            _wait(waiting, part, cost, parts)
    return Bucketing(tuple(leaves[first] for first in sorted(leaves)), bound)


@dataclass(frozen=True)
class _Waiting:
    """A bucket that can be split."""

    bucket: Bucket
    parts: list[Bucket]
    gain: int
    cost: int

    def __lt__(self, other: _Waiting) -> bool:
        """Greater gain first, then greater cost, then the order of the hierarchy or of the values."""
        return self._rank() < other._rank()

    def _rank(self) -> tuple[int, int, int, int]:
        return -self.gain, -self.cost, self.bucket.node, self.bucket.first


def _wait(
    waiting: list[_Waiting],
    bucket: Bucket,
    cost: Callable[[Bucket], int],
    parts: Callable[[Bucket], list[Bucket]],
) -> None:
    halves = parts(bucket)
    if halves:
        own = cost(bucket)
        heapq.heappush(waiting, _Waiting(bucket, halves, own - sum(map(cost, halves)), own))


def closeness_test(
    attribute: Attribute, counts: Reference, bucketing: Bucketing, t: Fraction, ground: Ground = "rank"
) -> SplitTest:
    """When a class is t-close to `counts` whichever rows it draws from the buckets: D + U ≤ t."""
    first = np.array([bucket.first for bucket in bucketing.buckets])
    last = np.array([bucket.last for bucket in bucketing.buckets])
    before = np.concatenate(([0], np.cumsum(counts)))
    over, under = rounded_down(t)
    places = places_of([attribute], [counts], ground)[0]
    parent = weight = place = _NONE
    if isinstance(attribute, Category):
        parent, weight, place = _tree_above(attribute.hierarchy, [bucket.node for bucket in bucketing.buckets])
    return SplitTest(
        kind=CATEGORY if isinstance(attribute, Category) else NUMBER,
        sizes=before[last + 1] - before[first],
        total=int(before[-1]),
        unit=unit(attribute, places),
        bound=bucketing.bound,
        t_over=over,
        t_under=under,
        parent=parent,
        weight=weight,
        place=place,
        low=places[first],
        high=places[last],
        cap_over=_NONE,
        cap_under=_NONE,
    )


def _tree_above(tree: Hierarchy, buckets: list[int]) -> tuple[NDArray[np.int64], ...]:
    """Parent and height of the nodes above the buckets, and where the buckets stand among them, as leaves."""
    kept: set[int] = set()
    for bucket in buckets:
        node = bucket
        while node >= 0 and node not in kept:
            kept.add(node)
            node = int(tree.parent[node])
    nodes = np.array(sorted(kept))
    place = np.searchsorted(nodes, buckets)
    parent = np.searchsorted(nodes, tree.parent[nodes])
    parent[0] = -1
    weight = tree.height[nodes].astype(np.int64)
    weight[place] = 0
    return parent, weight, place
