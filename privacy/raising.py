"""What one level more in a single column would change: fewer people told apart, for some more loss.

A row's risk is 1 / the number of persons who fit its published box, whatever class they are in. Raising a category puts
the parent in the place of the published node; raising a number widens its interval to a grid at least twice as wide,
halves, quarters and eighths of the domain. Everything else stays as it is published.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, Boxes, Category, Publication, attribute_loss
from privacy._kernels import count_fitting
from privacy.row_tree import row_tree

MOST_BOXES = 256
"""Boxes that are looked at; of more, those of rows drawn by chance."""
_FEWEST_BOXES = 16
_VISITS = 30_000_000
"""Rows that may lie in all boxes together, so that tables of any length take about as long."""
_HALVINGS = 3


@dataclass(frozen=True)
class Raised:
    """One quasi-identifier, published one level higher than it is."""

    attribute: str
    risk: float
    """Mean risk of a row then."""
    cost: float
    """What it adds to the loss of the table."""


@dataclass(frozen=True)
class Raising:
    """The risk as it is, and with one level more in each quasi-identifier that has one."""

    risk: float
    columns: tuple[Raised, ...]


def raising(publication: Publication) -> Raising:
    """Raise each quasi-identifier by itself."""
    table, published = publication.table, publication.boxes.widened()
    chosen, weights = _chosen(publication.sizes, published, len(table))
    if not len(chosen):
        return Raising(0.0, ())
    tree = row_tree(table.quasi)
    persons = np.unique(table.persons, return_inverse=True)[1].ravel()[tree.rows]
    nothing = np.zeros(len(chosen), np.int64)
    share = publication.sizes / publication.sizes.sum()

    def risk(lo: NDArray[np.float64], hi: NDArray[np.float64]) -> float:
        return float(weights @ (1 / count_fitting(lo[chosen], hi[chosen], nothing, tree, persons)[0]))

    loss = attribute_loss(published)
    found = []
    for column, (attribute, weight) in enumerate(zip(table.schema.quasi, table.schema.weights, strict=True)):
        lo, hi = published.lo.copy(), published.hi.copy()
        lo[:, column], hi[:, column] = _raised(attribute, lo[:, column], hi[:, column])
        higher = attribute_loss(Boxes(table.schema, lo, hi))[:, column]
        cost = float(share @ (higher - loss[:, column])) * weight
        if cost > 0:
            found.append(Raised(attribute.name, risk(lo, hi), cost))
    return Raising(risk(published.lo, published.hi), tuple(found))


def _chosen(sizes: NDArray[np.int64], published: Boxes, rows: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return classes to look at, and the share of the rows that each stands for.

    Which ones are drawn depends on boxes and sizes alone, not on the order of classes or rows: whoever has only the
    published file draws the same.
    """
    most = int(np.clip(_VISITS // max(rows, 1), _FEWEST_BOXES, MOST_BOXES))
    if len(sizes) <= most:
        return np.arange(len(sizes)), sizes / max(int(sizes.sum()), 1)
    order = np.lexsort((sizes, *published.hi.T, *published.lo.T))
    drawn = np.random.default_rng(0).choice(np.repeat(order, sizes[order]), most)
    chosen, counts = np.unique(drawn, return_counts=True)
    return chosen.astype(np.int64), counts / most


def _raised(
    attribute: Attribute, low: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same intervals one level higher; the whole domain stays."""
    if isinstance(attribute, Category):
        tree = attribute.hierarchy
        nodes = tree.lca(low, high)
        # An only child covers what its parent does: the level above it is the next one that says less.
        above = np.maximum(tree.parent[nodes], 0)
        while (again := (tree.leaf_count[above] == tree.leaf_count[nodes]) & (above > 0)).any():
            above = np.where(again, np.maximum(tree.parent[above], 0), above)
        return tree.first[above].astype(np.float64), tree.last[above].astype(np.float64)
    extent = attribute.high - attribute.low
    widths = extent / 2.0 ** np.arange(_HALVINGS, -1, -1)
    # The narrowest that is at least twice as wide as what is published.
    width = widths[np.minimum(np.searchsorted(widths, 2 * (high - low)), _HALVINGS)]
    steps = np.divide(1.0, width, out=np.zeros_like(width), where=width > 0)
    below = np.minimum(attribute.low + np.floor((low - attribute.low) * steps) * width, attribute.high - width)
    over = np.maximum(attribute.low + np.ceil((high - attribute.low) * steps) * width, below + width)
    return np.minimum(below, low), np.maximum(np.minimum(over, attribute.high), high)
