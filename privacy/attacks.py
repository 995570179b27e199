"""What an attacker would learn from published classes.

The results hold values and are for the owner of the data: they are returned, never logged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, Boxes, Category, Table
from privacy._kernels import count_fitting
from privacy.emd import node_reference
from privacy.exact import SLACK, Real, by_class, exact, floor_times
from privacy.likeness import Shares
from privacy.model import Groups, Histogram
from privacy.row_tree import row_tree


@dataclass(frozen=True, eq=False)
class Linking:
    """What joining a table of known persons with published boxes tells."""

    persons: NDArray[np.int64]
    """Known persons that fit each class's box: whom its rows could be about, as far as the attacker knows."""
    rows: NDArray[np.int64]
    """Published rows whose box each known row fits."""

    @property
    def singled_out(self) -> NDArray[np.int64]:
        """Known rows that fit exactly one published row."""
        return np.flatnonzero(self.rows == 1)


def linking(boxes: Boxes, sizes: NDArray[np.int64], known: Table) -> Linking:
    """Join the quasi-identifiers of known persons with published boxes of so many rows each."""
    persons = np.unique(known.persons, return_inverse=True)[1]
    tree = row_tree(known.quasi)
    fitting, matching = count_fitting(boxes.lo, boxes.hi, sizes, tree, persons[tree.rows])
    rows = np.empty_like(matching)
    rows[tree.rows] = matching
    return Linking(fitting, rows)


@dataclass(frozen=True, eq=False)
class Inference:
    """Something that is known about a class's sensitive values; entry i of each array belongs together."""

    attribute: str
    classes: NDArray[np.int64]
    values: tuple[str, ...]
    """A value, the label of a group of values, or a range of numbers."""
    prior: NDArray[np.float64]
    """Its share in the reference: what the attacker believed before."""
    posterior: NDArray[np.float64]
    """Its share in the class: what the attacker believes now."""

    def __len__(self) -> int:
        return len(self.classes)


def homogeneity(groups: Groups, certainty: Real = 1) -> tuple[Inference, ...]:
    """Classes in which a single value has at least this share, per sensitive attribute."""
    needed = -floor_times(-exact(certainty), groups.rows)
    return tuple(_about(groups, one, one.counts >= needed[one.classes]) for one in groups.histograms)


def skewness(groups: Groups, factor: Real = 2) -> tuple[Inference, ...]:
    """Values that are at least this many times as frequent in a class as in the reference."""
    gain = (float(factor) - 1) * (1 - SLACK)
    return tuple(_about(groups, one, Shares.of(groups, one).gain() >= gain) for one in groups.histograms)


def similarity(groups: Groups, height: int = 1, width: Real = 0.1) -> tuple[Inference, ...]:
    """Classes whose values are all alike.

    Categories: all below one inner node (or leaf) of at most this height, the root excepted. Numbers: all within this
    share of the domain.
    """
    return tuple(_alike(histogram, height, width) for histogram in groups.histograms)


def divergence(groups: Groups, histogram: Histogram) -> NDArray[np.float64]:
    """Jensen-Shannon divergence of each class from the reference, in bits: from 0 (equal) to 1 (nothing shared)."""
    shares = Shares.of(groups, histogram)
    p, q = shares.reference / max(shares.total, 1), shares.inside / shares.rows
    middle = (p + q) / 2
    own = q * np.log2(q / middle) + p * np.log2(np.where(p > 0, p, 1.0) / middle)
    # A value that the class lacks has q = 0 and adds its whole p, as one bit.
    absent = 1 - by_class(np.add, p, histogram.starts, empty=0.0)
    return np.clip((by_class(np.add, own, histogram.starts, empty=0.0) + absent) / 2, 0.0, 1.0)


def _about(groups: Groups, histogram: Histogram, chosen: NDArray[np.bool_]) -> Inference:
    """The chosen entries of a histogram."""
    shares = Shares.of(groups, histogram)
    return Inference(
        attribute=histogram.attribute.name,
        classes=histogram.classes[chosen],
        values=tuple(_text(histogram.attribute, int(value)) for value in histogram.values[chosen]),
        prior=shares.reference[chosen] / max(shares.total, 1),
        posterior=shares.inside[chosen] / shares.rows[chosen],
    )


def _alike(histogram: Histogram, height: int, width: Real) -> Inference:
    attribute = histogram.attribute
    filled = np.flatnonzero(np.diff(histogram.starts))
    lowest = histogram.values[histogram.starts[:-1][filled]]
    highest = histogram.values[histogram.starts[1:][filled] - 1]
    if isinstance(attribute, Category):
        tree = attribute.hierarchy
        nodes = tree.lca(lowest, highest)
        alike = (tree.height[nodes] <= height) & (nodes > 0)
        texts = tuple(tree.labels[node] for node in nodes[alike])
        inside = node_reference(histogram)[nodes[alike]]
    else:
        alike = highest - lowest <= int(exact(width) * (len(histogram.reference) - 1))
        ends = zip(lowest[alike].tolist(), highest[alike].tolist(), strict=True)
        texts = tuple(f"{_text(attribute, low)} … {_text(attribute, high)}" for low, high in ends)
        before = np.concatenate(([0], np.cumsum(histogram.reference)))
        inside = before[highest[alike] + 1] - before[lowest[alike]]
    prior = inside / max(histogram.total, 1)
    return Inference(attribute.name, filled[alike], texts, prior, np.ones(len(prior)))


def _text(attribute: Attribute, value: int) -> str:
    if isinstance(attribute, Category):
        return attribute.hierarchy.leaves[value]
    return f"{attribute.low + value * (attribute.grid or 0):g}"
