"""What an attacker would learn from published classes.

The results hold values and are for the owner of the data: they are returned, never logged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, Boxes, Category, DataError, Publication, Published, Table, published_of
from privacy._kernels import certainties, count_fitting
from privacy.emd import node_reference
from privacy.exact import SLACK, Real, by_class, exact, floor_times
from privacy.likeness import Shares
from privacy.model import Groups, Histogram, pairs
from privacy.outsider import published_groups
from privacy.row_tree import RowTree, row_tree


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


def observed(published: Publication | Published) -> Groups:
    """The classes that the attacks look at, of a publication or of somebody else's file.

    A publication is compared with its table, a file, of which nothing else is known, with all its rows.
    """
    if isinstance(published, Published):
        return published_groups(published)
    table = published.table
    return Groups.of(table.schema, table.persons, table.sensitive, published.classes, len(published.boxes))


def linking(boxes: Boxes, sizes: NDArray[np.int64], known: Table) -> Linking:
    """Join the quasi-identifiers of known persons with published boxes of so many rows each.

    What the attacker does not know of somebody is NaN.
    """
    persons = np.unique(known.persons, return_inverse=True)[1]
    lo, hi, tree = _sides(boxes, known)
    fitting, matching = count_fitting(lo, hi, sizes, tree, persons[tree.rows])
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

    def exposed(self, groups: Groups) -> int:
        """Rows of the classes about which something is known."""
        return int(groups.rows[np.unique(self.classes)].sum())


@dataclass(frozen=True, eq=False)
class Disclosure:
    """What is certain about known persons, of one sensitive attribute; entry i is about row i of what is known."""

    attribute: str
    rows: NDArray[np.int64]
    """Published rows that could be about the person."""
    values: tuple[str | None, ...]
    """The value that the person must have; None where nothing or several are left."""
    categories: tuple[str | None, ...]
    """The same for the value's category of sensitivity; all None where there are none."""


def disclosures(
    published: Publication | Published,
    known: Table,
    excluded: Mapping[int, Mapping[str, Collection[str]]] | None = None,
) -> tuple[Disclosure, ...]:
    """Link known persons with a publication and read off what all rows that could be theirs have in common.

    Homogeneity finds those whose class has one value. Background knowledge finds more: `excluded` tells, by row of what
    is known and by sensitive attribute, which values the person cannot have. What the attacker does not know of a
    person's quasi-identifiers is NaN.
    """
    published = published_of(published) if isinstance(published, Publication) else published
    groups = published_groups(published)
    rows = linking(published.boxes, groups.rows, known).rows
    lo, hi, tree = _sides(published.boxes, known)
    found = []
    for one in groups.histograms:
        attribute, ruled_out = one.attribute, _excluded(one.attribute, excluded or {}, tree)
        names = {value: _text(attribute, value) for value in np.unique(one.values).tolist()}
        every = np.arange(attribute.size or 0, dtype=np.int32)
        values = _certain(one, every, names, (lo, hi), tree, ruled_out)
        categories: tuple[str | None, ...] = (None,) * len(known)
        if attribute.sensitivity is not None:
            of = attribute.category_of
            categories = _certain(one, of, _category_names(attribute), (lo, hi), tree, ruled_out)
        found.append(Disclosure(attribute.name, rows, values, categories))
    return tuple(found)


def _certain(
    histogram: Histogram,
    code_of: NDArray[np.int32],
    names: Mapping[int, str],
    boxes: tuple[NDArray[np.float64], NDArray[np.float64]],
    tree: RowTree,
    excluded: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> tuple[str | None, ...]:
    """The name of the one code that is left for each known row; None where it is not one."""
    certain = np.empty(len(tree.rows), np.int64)
    certain[tree.rows] = certainties(*boxes, histogram.starts, histogram.values, code_of, tree, *excluded)
    return tuple(names.get(code) for code in certain.tolist())


def homogeneity(groups: Groups, certainty: Real = 1) -> tuple[Inference, ...]:
    """Classes in which a single value has at least this share, per sensitive attribute."""
    needed = -floor_times(-exact(certainty), groups.rows)
    return tuple(_about(groups, one, one.counts >= needed[one.classes]) for one in groups.histograms)


def inference(groups: Groups, certainty: Real = 0.5) -> tuple[Inference, ...]:
    """Values, and categories of sensitivity, that at least this share of a class's rows have: what to bet on."""
    categories = [_by_category(one) for one in groups.histograms if one.attribute.sensitivity is not None]
    return (*homogeneity(groups, certainty), *(_likely(groups, one, certainty) for one in categories))


def skewness(groups: Groups, factor: Real = 2) -> tuple[Inference, ...]:
    """Values that are at least this many times as frequent in a class as in the reference."""
    gain = (float(factor) - 1) * (1 - SLACK)
    return tuple(_about(groups, one, Shares.of(groups, one).gain() >= gain) for one in groups.histograms)


def similarity(groups: Groups, height: int = 1, width: Real = 0.1) -> tuple[Inference, ...]:
    """Classes whose values are all alike.

    Attributes with a sensitivity: all of one category. Other categories: all below one inner node (or leaf) of at most
    this height, the root excepted. Other numbers: all within this share of the domain.
    """
    return tuple(
        _alike(one, height, width) if one.attribute.sensitivity is None else _likely(groups, _by_category(one), 1)
        for one in groups.histograms
    )


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


def _sides(boxes: Boxes, known: Table) -> tuple[NDArray[np.float64], NDArray[np.float64], RowTree]:
    """Boxes and known rows without the quasi-identifiers that the attacker knows of nobody."""
    unknown = np.isnan(known.quasi).all(axis=0)
    lo, hi = np.where(unknown, -np.inf, boxes.lo), np.where(unknown, np.inf, boxes.hi)
    return lo, hi, row_tree(np.where(unknown, 0.0, known.quasi))


def _excluded(
    attribute: Attribute, excluded: Mapping[int, Mapping[str, Collection[str]]], tree: RowTree
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The codes that are excluded for each row of the tree, and where each row's begin."""
    codes: list[list[int]] = [[] for _ in tree.rows]
    for row, known in excluded.items():
        for text in known.get(attribute.name, ()):
            code = attribute.code_of(text)
            if code is None:
                raise DataError(f"{attribute.name}: a value is excluded that is not in the domain")
            codes[row].append(code)
    ordered = [codes[row] for row in tree.rows.tolist()]
    starts = np.cumsum([0, *map(len, ordered)])
    return starts, np.array([code for own in ordered for code in own], np.int64)


@dataclass(frozen=True, eq=False)
class _Categories:
    """How often each category of sensitivity occurs in each class, ordered by class, then category."""

    attribute: Attribute
    reference: NDArray[np.int64]
    classes: NDArray[np.int64]
    categories: NDArray[np.int64]
    counts: NDArray[np.int64]


def _by_category(histogram: Histogram) -> _Categories:
    attribute = histogram.attribute
    assert attribute.sensitivity is not None
    rows = np.repeat(np.arange(len(histogram.values)), histogram.counts)
    counted = pairs(histogram.classes[rows], attribute.category_of[histogram.values[rows]])
    reference = np.zeros(len(attribute.sensitivity), np.int64)
    np.add.at(reference, attribute.category_of, histogram.reference)
    return _Categories(attribute, reference, *counted)


def _likely(groups: Groups, categories: _Categories, certainty: Real) -> Inference:
    needed = -floor_times(-exact(certainty), groups.rows)[categories.classes]
    chosen = (categories.counts >= needed).astype(bool)
    names, codes = _category_names(categories.attribute), categories.categories[chosen]
    return Inference(
        attribute=categories.attribute.name,
        classes=categories.classes[chosen],
        values=tuple(names[code] for code in codes.tolist()),
        prior=categories.reference[codes] / max(int(categories.reference.sum()), 1),
        posterior=categories.counts[chosen] / groups.rows[categories.classes[chosen]],
    )


def _category_names(attribute: Attribute) -> dict[int, str]:
    sensitivity = attribute.sensitivity
    return {} if sensitivity is None else {one: sensitivity.label(one) for one in range(len(sensitivity))}
