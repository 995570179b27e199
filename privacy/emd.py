"""Earth mover's distance between a class's sensitive values and the reference, for all classes at once.

The ground distances have closed forms, which are computed in whole numbers from the values that occur in a class:
the rest of the domain, however large, enters through prefix sums of the reference.

- rank (numbers): d(vᵢ, vⱼ) = |i - j| / (m - 1) over the m values that occur; the distance is the area between the two
  cumulative distributions.
- domain: the same for numbers over the declared domain, whether its values occur or not, or over the quantiles that are
  declared for it. It does not change from window to window; over heavy tails without quantiles it says little.
- hierarchy (categories): d = height of the lowest common ancestor / height of the tree. What a node has too much of
  must leave it, so the distance is Σ over nodes of that surplus times the height gained by climbing to the parent.
- equal: any two values are 1 apart; the distance is the sum of the surpluses.

Li, Li and Venkatasubramanian, t-Closeness (2007); Cao and Karras (2010), section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, Category, Number
from privacy.exact import Integers, Real, by_class, exact, floor_times, integers
from privacy.model import Histogram

Ground: TypeAlias = Literal["auto", "rank", "domain", "hierarchy", "equal"]
"""`auto`: by rank of the values that occur for numbers; `domain`: by rank in the declared domain. Both by hierarchy for
categories."""


@dataclass(frozen=True, eq=False)
class Work:
    """Distances as fractions: class c is `amount[c] / (unit · rows[c])` away from the reference."""

    amount: Integers
    unit: int
    rows: NDArray[np.int64]

    def distance(self) -> NDArray[np.float64]:
        """The distances; infinite from an empty reference."""
        if self.unit == 0:
            return np.where(self.rows > 0, np.inf, 0.0)
        return np.asarray(self.amount / (np.maximum(self.rows, 1) * float(self.unit)), np.float64)

    def at_most(self, t: Real) -> NDArray[np.bool_]:
        """Whether each distance is at most `t`, exactly."""
        if self.unit == 0:
            return self.rows == 0
        return np.asarray(self.amount <= floor_times(exact(t) * self.unit, self.rows), bool)


def work(histogram: Histogram, rows: NDArray[np.int64], ground: Ground = "auto") -> Work:
    """How far each class, of so many rows, is from the reference."""
    ground = ground_of(histogram.attribute, ground)
    if ground in {"rank", "domain"}:
        present = histogram.reference > 0
        present[histogram.values] = True
        return _rank(histogram, rows, ranks(histogram.attribute, ground, present))
    return _hierarchy(histogram, rows) if ground == "hierarchy" else _equal(histogram, rows)


def distance(
    attribute: Attribute, reference: NDArray[np.integer], counts: NDArray[np.integer], ground: Ground = "auto"
) -> Fraction:
    """Distance between two distributions given as counts over the whole domain of `attribute`."""
    values = np.flatnonzero(counts).astype(np.int32)
    held = counts[values].astype(np.int64)
    histogram = Histogram(attribute, reference.astype(np.int64), np.array([0, len(values)]), values, held)
    rows = np.array([held.sum()])
    result = work(histogram, rows, ground)
    return Fraction(int(result.amount[0]), result.unit * int(rows[0]))


def ground_of(attribute: Attribute, ground: Ground) -> Ground:
    """The ground distance that is meant for this attribute."""
    if isinstance(attribute, Category):
        return "hierarchy" if ground in {"auto", "domain"} else ground
    return "rank" if ground == "auto" else ground


def ground_name(attribute: Attribute, ground: Ground) -> str:
    """The ground distance of this attribute in words."""
    meant = ground_of(attribute, ground)
    if meant == "domain" and isinstance(attribute, Number) and attribute.quantiles:
        return "rank in the declared distribution"
    return _NAMES[meant]


_NAMES: dict[Ground, str] = {
    "rank": "rank of the values that occur",
    "domain": "rank in the declared domain",
    "hierarchy": "hierarchy",
    "equal": "equal",
}


def ranks(attribute: Attribute, ground: Ground, present: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Rank of every value of the domain, from 0, where these are present; those that are not may have any."""
    if ground == "domain" and isinstance(attribute, Number):
        return attribute.ranks
    return np.maximum(np.cumsum(present) - 1, 0)


def _rank(histogram: Histogram, rows: NDArray[np.int64], rank: NDArray[np.int64]) -> Work:
    size, total = len(histogram.reference), histogram.total
    steps = max(int(rank[-1]), 1)
    unit = steps * total
    largest = (steps + 1) * total * int(rows.max(initial=1))
    below = np.cumsum(histogram.reference)
    rank = np.append(rank, rank[-1])
    gaps = integers(np.diff(rank), largest)
    area = np.concatenate(([0], np.cumsum(integers(below, largest) * gaps)))
    counts, starts = integers(histogram.counts, largest), histogram.starts
    n = integers(rows, largest)[histogram.classes]

    # The class's cumulative count is constant from one of its values to the next; the reference's grows and crosses it
    # at most once on the way.
    running = np.cumsum(counts)
    level = (running - (running - counts)[starts[histogram.classes]]) * total
    begin = histogram.values.astype(np.int64)
    end = np.append(begin[1:], size)
    filled = np.diff(starts) > 0
    end[starts[1:][filled] - 1] = size
    # Empty classes have no entries, hence no zero in n.
    crossing = np.searchsorted(below, (-(-level // n)).astype(np.int64))
    crossing = np.clip(crossing, begin, end)
    over = level * (rank[crossing] - rank[begin]) - n * (area[crossing] - area[begin])
    under = n * (area[end] - area[crossing]) - level * (rank[end] - rank[crossing])
    amount = by_class(np.add, over + under, starts, empty=0)
    amount[filled] += integers(rows, largest)[filled] * area[begin[starts[:-1][filled]]]
    return Work(amount, unit, rows)


def _hierarchy(histogram: Histogram, rows: NDArray[np.int64]) -> Work:
    attribute = histogram.attribute
    assert isinstance(attribute, Category)
    tree, total = attribute.hierarchy, histogram.total
    height = max(int(tree.height[0]), 1)
    largest = height * total * int(rows.max(initial=1))
    n = integers(rows, largest)
    reference = node_reference(histogram)
    amount = np.zeros_like(n)
    for level in histogram.nodes():
        surplus = integers(level.counts, largest) * total - n[level.classes] * reference[level.nodes]
        climb = tree.height[tree.parent[level.nodes]] - level.height
        np.add.at(amount, level.classes, np.maximum(surplus, 0) * climb)
    return Work(amount, height * total, rows)


def node_reference(histogram: Histogram) -> NDArray[np.int64]:
    """Count of every node of the hierarchy in the reference."""
    assert isinstance(histogram.attribute, Category)
    tree = histogram.attribute.hierarchy
    before = np.concatenate(([0], np.cumsum(histogram.reference)))
    return np.asarray(before[tree.last + 1] - before[tree.first])


def _equal(histogram: Histogram, rows: NDArray[np.int64]) -> Work:
    largest = histogram.total * int(rows.max(initial=1))
    n = integers(rows, largest)[histogram.classes]
    surplus = integers(histogram.counts, largest) * histogram.total - n * histogram.reference[histogram.values]
    amount = by_class(np.add, np.maximum(surplus, 0), histogram.starts, empty=0)
    return Work(amount, histogram.total, rows)
