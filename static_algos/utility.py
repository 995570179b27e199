"""What a publication is still good for: how well counting queries and data cubes can be answered from it.

Whoever uses a publication knows only the boxes, and has to assume that the rows of a class lie evenly in its box.
Query errors and the divergence of cubes compare what follows from that with the original table (J. Cao 2010, sections
3.5.2 and 4.4.2). They are for experiments and reports: their random queries repeat with the seed.

Discernibility, the average class size and the distortion ratio are the measures of the literature on full-domain and
local recoding (X. Sun 2010, section 3.5; T. Sadad 2012, section 5.2). They look at classes and levels alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, Boxes, Category, InfeasibleError, Number, Publication, Table, geometry
from privacy import Groups, Histogram
from static_algos._utility_kernels import Queries, count_rows, estimate, spread
from static_algos.recoding import default_widths

MOST_CELLS = 1 << 25
"""Cells of the largest cube that is laid out."""
FINEST_CELLS = 1024
CONTINUUM_CELLS = 64
"""Cells along a number: at most so many; so many where its values have no grid."""


def median_query_error(
    publication: Publication, *, predicates: int = 3, selectivity: float = 0.1, queries: int = 10_000, seed: int = 0
) -> float:
    """Median of `query_errors`; 0 where no query has an answer."""
    errors = query_errors(publication, predicates=predicates, selectivity=selectivity, queries=queries, seed=seed)
    return float(np.median(errors)) if len(errors) else 0.0


def query_errors(
    publication: Publication, *, predicates: int = 3, selectivity: float = 0.1, queries: int = 10_000, seed: int = 0
) -> NDArray[np.float64]:
    """|estimate - answer| / answer of random COUNT queries, without those whose answer is 0.

    A query has a range in `predicates` random quasi-identifiers and one in a sensitive attribute, each so long that
    uniform rows would be selected with the given share. In discrete domains values are counted, so that a point has
    width 1. Suppressed rows are in the answer, not in the estimate. Without sensitive attributes a query has
    predicates on quasi-identifiers alone.
    """
    table, boxes = publication.table, publication.shown()
    random = np.random.default_rng(seed)
    histograms = _histograms(publication)
    unit = np.array([float(_counted(attribute)) for attribute in table.schema.quasi])
    errors = []
    for column, histogram in enumerate(histograms):
        share = len(range(column, queries, len(histograms)))
        size = len(histogram.reference)
        drawn = _draw(table, size, share, min(predicates, len(table.schema.quasi)), selectivity, random)
        truth = count_rows(drawn, *_ordered(table.quasi, _values(table, column), size))
        before = np.concatenate(([0], np.cumsum(histogram.counts)))
        guess = estimate(drawn, boxes.lo, boxes.hi, unit, histogram.starts, histogram.values, before)
        asked = truth > 0
        errors.append(np.abs(guess[asked] - truth[asked]) / truth[asked])
    return np.concatenate(errors)


def olap_divergence(publication: Publication, level: int = 2) -> float:
    """Kullback-Leibler divergence of the published data cubes from the original ones, in nats; 0 if they are the same.

    A cube counts the rows by `level` quasi-identifiers and a sensitive value. Cells are divided by their sum; the
    divergences of all cubes with that many quasi-identifiers, and of all sensitive attributes, are added up. Numbers
    without a grid are cut into 64 cells, others into at most 1,024. A suppressed row counts as lying anywhere.
    """
    table, published = publication.table, _with_suppressed(publication)
    boxes = published.boxes.widened()
    axes = [_Cells(attribute) for attribute in table.schema.quasi]
    rows, lo, hi = (
        np.stack([axis.of(column) for axis, column in zip(axes, columns.T, strict=True)], axis=1)
        for columns in (table.quasi, boxes.lo, boxes.hi)
    )
    total = 0.0
    for column, histogram in enumerate(_histograms(published)):
        for subset in map(list, itertools.combinations(range(len(axes)), min(level, len(axes)))):
            shape = (*(axes[a].count for a in subset), len(histogram.reference))
            if math.prod(shape) > MOST_CELLS:
                raise InfeasibleError(f"a cube of {math.prod(shape)} cells is too large", parameter="level")
            original = _cube(rows[:, subset], shape, _values(table, column))
            own = original > 0
            seen = _spread_cube(lo[:, subset], hi[:, subset], shape, histogram)[own]
            total += float(original[own] @ np.log(original[own] / seen))
    return total / max(len(table), 1)


def distortion_ratio(publication: Publication, height: int = 4) -> float:
    """Levels by which published values were raised, as a share of the levels up to the roots: 0 as it was, 1 all lost.

    A category is raised from its leaf to the node that it is published as. A number has `height` levels above its
    values, of widths that double up to its domain, and is on the first that is as wide as its interval. A suppressed
    row counts as raised to every root.
    """
    table, classes, boxes = publication.table, publication.classes, publication.boxes.widened()
    kept = classes >= 0
    raised = total = 0
    for a, attribute in enumerate(table.schema.quasi):
        if isinstance(attribute, Category):
            tree = attribute.hierarchy
            depth = _depths(tree.parent)
            above = depth[tree.leaf_nodes[table.quasi[:, a].astype(np.int64)]]
            node = tree.lca(boxes.lo[:, a], boxes.hi[:, a])
            steps = above[kept] - depth[node][classes[kept]]
        else:
            widths = np.array(default_widths(attribute, height))
            above = np.full(len(table), len(widths) + (attribute.high > attribute.low))
            steps = _width_levels(attribute, boxes.lo[:, a], boxes.hi[:, a], widths)[classes[kept]]
        raised += int(steps.sum()) + int(above[~kept].sum())
        total += int(above.sum())
    return raised / total if total else 0.0


def _depths(parent: NDArray[np.int32]) -> NDArray[np.int64]:
    """Steps from the root to each node; nodes are in pre-order."""
    depth = np.zeros(len(parent), np.int64)
    for node in range(1, len(parent)):
        depth[node] = depth[parent[node]] + 1
    return depth


def _width_levels(
    attribute: Number, lo: NDArray[np.float64], hi: NDArray[np.float64], widths: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The first level of these widths, and then of the whole domain, that is as wide as each interval."""
    extent = hi - lo + (1.0 if attribute.integer and attribute.step is None else 0.0)
    single = extent <= (attribute.grid or 0.0)
    level = 1 + np.searchsorted(widths * (1 + 1e-12), extent)
    return np.where(single, 0, np.where((lo <= attribute.low) & (hi >= attribute.high), len(widths) + 1, level))


def _histograms(publication: Publication) -> tuple[Histogram, ...]:
    """The sensitive values of each class; without sensitive attributes, its rows as one value."""
    table, count = publication.table, len(publication.boxes)
    groups = Groups.of(table.schema, table.persons, table.sensitive, publication.classes, count)
    if groups.histograms:
        return groups.histograms
    rows = Number("rows", 0, 0, integer=True)
    return (Histogram(rows, np.array([len(table)]), np.arange(count + 1), np.zeros(count, np.int32), groups.rows),)


def _values(table: Table, column: int) -> NDArray[np.int32]:
    return table.sensitive[:, column] if table.schema.sensitive else np.zeros(len(table), np.int32)


def _draw(
    table: Table, values: int, queries: int, predicates: int, selectivity: float, random: np.random.Generator
) -> Queries:
    quasi = table.schema.quasi
    share = selectivity ** (1 / (predicates + bool(table.schema.sensitive)))
    attribute = random.random((queries, len(quasi))).argsort(axis=1)[:, :predicates]
    low = np.array([0.0 if isinstance(one, Category) else one.low for one in quasi])[attribute]
    extent = np.array([_extent(one) for one in quasi])[attribute]
    counted = np.array([_counted(one) for one in quasi])[attribute]

    whole = np.maximum(np.rint(extent * share), 1)
    length = np.where(counted, whole, extent * share)
    offset = random.random(attribute.shape) * (extent - length + counted)
    lo = low + np.where(counted, np.floor(offset), offset)
    run = max(round(values * share), 1) if table.schema.sensitive else values
    first = random.integers(0, values - run + 1, queries)
    return Queries(attribute, lo, lo + length - counted, first, first + run - 1)


def _counted(attribute: Attribute) -> bool:
    """Whether the values can be counted; otherwise they are a continuum."""
    return isinstance(attribute, Category) or attribute.integer


def _extent(attribute: Attribute) -> float:
    """Number of values, or the length of the continuum."""
    if isinstance(attribute, Category):
        return attribute.size
    return attribute.high - attribute.low + attribute.integer


def _ordered(
    rows: NDArray[np.float64], values: NDArray[np.int32], size: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Columns of the rows ordered by value, and where each value begins."""
    starts = np.concatenate(([0], np.cumsum(np.bincount(values, minlength=size))))
    return np.ascontiguousarray(rows[np.argsort(values, kind="stable")].T), starts


class _Cells:
    """The cells of one axis of a cube."""

    def __init__(self, attribute: Attribute) -> None:
        if isinstance(attribute, Category):
            self.low, self.width, self.count = 0.0, 1.0, attribute.size
        elif attribute.size is None:
            self.count = CONTINUUM_CELLS
            self.low, self.width = attribute.low, (attribute.high - attribute.low or 1.0) / self.count
        else:
            self.count = min(attribute.size, FINEST_CELLS)
            self.low, self.width = attribute.low, (attribute.grid or 1.0) * attribute.size / self.count

    def of(self, column: NDArray[np.float64]) -> NDArray[np.int64]:
        """Cell of each value."""
        cells = np.floor((column - self.low) / self.width).astype(np.int64)
        return np.clip(cells, 0, self.count - 1)


def _with_suppressed(publication: Publication) -> Publication:
    """The suppressed rows as one more class whose box is the whole domain."""
    if not publication.suppressed:
        return publication
    table, boxes = publication.table, publication.boxes
    space = geometry(table.schema)
    lo, hi = np.vstack([boxes.lo, space.low]), np.vstack([boxes.hi, space.high])
    classes = np.where(publication.classes < 0, len(boxes), publication.classes).astype(np.int32)
    return Publication(table, classes, Boxes(table.schema, lo, hi))


def _cube(rows: NDArray[np.int64], shape: Sequence[int], values: NDArray[np.int32]) -> NDArray[np.float64]:
    """Rows counted by cell and value."""
    keys = np.ravel_multi_index((*rows.T, values), shape)
    return np.bincount(keys, minlength=math.prod(shape)).astype(np.float64)


def _spread_cube(
    lo: NDArray[np.int64], hi: NDArray[np.int64], shape: Sequence[int], histogram: Histogram
) -> NDArray[np.float64]:
    """The same from classes whose rows lie evenly in their boxes."""
    *axes, values = shape
    longer = np.array(axes) + 1
    cube = np.zeros(math.prod(longer) * values)
    spread(cube, longer, lo, hi, histogram.starts, histogram.values, histogram.counts)
    cube = cube.reshape(*longer, values)
    for axis in range(len(axes)):
        np.cumsum(cube, axis=axis, out=cube)
    return cube[(slice(-1),) * len(axes)].ravel()
