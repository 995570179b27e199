"""What published ratings are still good for.

Every measure compares the publication with its original, row by row where it needs to. Where all persons or items
would be too many, the most rated items and a fixed sample of persons stand for them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microdata.ratings import Ratings
from static_algos.ratings.publication import RatingsPublication

PERSONS = 2_000
"""Persons of the sample that clusters and recommenders are made of."""
ITEMS = 100
"""Most rated items that they look at."""
QUERIES = 100
CLUSTERS = 8
ROUNDS = 20
HELD_OUT = 0.1
"""Share of the ratings that a recommender is asked for."""
OFTEN_RATED = 0.1
"""Share of the persons who rated an item that queries ask for, so that there is something to count."""


@dataclass(frozen=True)
class Recommender:
    """Root mean square error of predicted ratings: learnt from the original, and from what was published."""

    original: float
    published: float


@dataclass(frozen=True)
class Utility:
    """What is left, in numbers. None where there is nothing to measure."""

    mean_error: float | None
    """Relative error of the mean rating of an item, on average over items."""
    count_error: float | None
    """Relative error of counts of persons by their ratings of three items, on average."""
    moved: float | None
    """Share of the persons who fall into another of eight clusters."""
    centroid: float | None
    """Cosine between the mean ratings of all items before and after."""
    spread_before: float | None
    """Standard deviation of an item's ratings, on average over items."""
    spread_after: float | None
    item_means: Recommender | None
    """Of a recommender that predicts the mean of the item."""
    neighbours: Recommender | None
    """Of one that predicts what persons with similar ratings gave."""


def utility(publication: RatingsPublication, *, seed: int = 0) -> Utility:
    """All measures. The seed chooses queries, sample and what is held out; it is no secret."""
    before, after = publication.original, publication.recoded
    items = most_rated(before, ITEMS)
    means = [_means(one) for one in (before, after)]
    generator = np.random.default_rng(seed)
    rows = np.arange(len(before))
    if len(rows) > PERSONS:
        rows = np.sort(generator.choice(rows, PERSONS, replace=False))
    width = len(before.names)
    dense = [one.open.take(rows).dense(items, width) for one in (before, after)]
    item_means, neighbours = _recommenders(dense[0], dense[1], before.scale.step, generator)
    return Utility(
        mean_error=_mean_error(*means),
        count_error=count_error(before, after, generator),
        moved=_moved(*dense) if len(rows) >= CLUSTERS and len(items) else None,
        centroid=_cosine(*means),
        spread_before=_spread(before),
        spread_after=_spread(after),
        item_means=item_means,
        neighbours=neighbours,
    )


def most_rated(ratings: Ratings, most: int) -> NDArray[np.int64]:
    """The open items with most ratings, the most rated first."""
    counts = np.bincount(ratings.open.items, minlength=len(ratings.names))
    order = np.argsort(-counts, kind="stable")[:most]
    return order[counts[order] > 0]


def _sums(ratings: Ratings, power: int) -> NDArray[np.float64]:
    values = ratings.scale.values(ratings.open.values).astype(np.float64) ** power
    return np.bincount(ratings.open.items, values, minlength=len(ratings.names)).astype(np.float64)


def _means(ratings: Ratings) -> NDArray[np.float64]:
    """Mean rating of each item, not a number where nobody rated it."""
    counts = _sums(ratings, 0)
    return np.where(counts > 0, _sums(ratings, 1) / np.maximum(counts, 1), np.nan)


def _mean_error(before: NDArray[np.float64], after: NDArray[np.float64]) -> float | None:
    """Over items that are still rated; what is gone is told by the share of suppressed ratings."""
    own = np.isfinite(before) & np.isfinite(after) & (np.abs(before) > 0)
    return float(np.mean(np.abs(after[own] - before[own]) / np.abs(before[own]))) if own.any() else None


def _cosine(before: NDArray[np.float64], after: NDArray[np.float64]) -> float | None:
    one, other = np.nan_to_num(before), np.nan_to_num(after)
    norm = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other / norm) if norm else None


def _spread(ratings: Ratings) -> float | None:
    counts = _sums(ratings, 0)
    own = counts > 0
    mean = _sums(ratings, 1)[own] / counts[own]
    variance = np.maximum(_sums(ratings, 2)[own] / counts[own] - mean**2, 0)
    return float(np.sqrt(variance).mean()) if own.any() else None


def predicate_size(values: int, selectivity: float, predicates: int) -> int:
    """How many ratings a predicate allows, so that all together select about this share.

    >>> [predicate_size(5, *one) for one in ((0.1, 3), (0.05, 2), (0.05, 3), (0.1, 4))]
    [3, 2, 2, 3]
    """
    return math.ceil(values * selectivity ** (1 / predicates))


def count_error(before: Ratings, after: Ratings, generator: np.random.Generator) -> float | None:
    """Counts of persons who gave two often rated items, and a sensitive one if there is any, certain ratings.

    Counts of nothing are asked again; a missing rating satisfies no predicate.
    """
    often = most_rated(before, len(before.names))
    raters = np.bincount(before.open.items, minlength=len(before.names))
    often = often[raters[often] >= OFTEN_RATED * len(before)][:ITEMS]
    hidden = before.sensitive_matrix.shape[1]
    if len(often) < 2:
        return None
    dense = [one.open.dense(often, len(before.names)) for one in (before, after)]
    size, predicates = before.scale.size, 2 + bool(hidden)
    allowed = predicate_size(size, 0.1, predicates)
    errors: list[float] = []
    for _ in range(10 * QUERIES):
        columns = generator.choice(len(often), 2, replace=False)
        wanted = [_subset(size, allowed, generator) for _ in range(predicates)]
        answer = int(generator.integers(hidden)) if hidden else 0
        counts = []
        for own, ratings in zip(dense, (before, after), strict=True):
            fits = wanted[0][own[:, columns[0]]] & wanted[1][own[:, columns[1]]]
            if hidden:
                fits &= wanted[2][ratings.sensitive_matrix[:, answer]]
            counts.append(int(fits.sum()))
        if counts[0]:
            errors.append(abs(counts[0] - counts[1]) / counts[0])
        if len(errors) == QUERIES:
            break
    return float(np.mean(errors)) if errors else None


def _subset(size: int, allowed: int, generator: np.random.Generator) -> NDArray[np.bool_]:
    """Which ratings a predicate allows; never the missing one."""
    wanted = np.zeros(size + 1, bool)
    wanted[1 + generator.choice(size, allowed, replace=False)] = True
    return wanted


def _moved(before: NDArray[np.int16], after: NDArray[np.int16]) -> float:
    """Share of rows that k-means puts elsewhere, begun with the same rows both times; missing ratings count 0.

    Which cluster is which after that goes by the rows that they share, the largest share first.
    """
    first = np.linspace(0, len(before) - 1, CLUSTERS).round().astype(np.int64)
    shared = np.zeros((CLUSTERS, CLUSTERS), np.int64)
    np.add.at(shared, (_clusters(before, first), _clusters(after, first)), 1)
    stayed = 0
    for _ in range(CLUSTERS):
        one, other = np.unravel_index(int(shared.argmax()), shared.shape)
        stayed += int(shared[one, other])
        shared[one, :], shared[:, other] = 0, 0
    return 1 - stayed / len(before)


def _clusters(rows: NDArray[np.int16], first: NDArray[np.int64]) -> NDArray[np.int64]:
    points = rows.astype(np.float64)
    centres = points[first]
    label = np.zeros(len(points), np.int64)
    for _ in range(ROUNDS):
        distance = (centres**2).sum(axis=1) - 2 * points @ centres.T
        label = distance.argmin(axis=1)
        for cluster in range(len(centres)):
            if (label == cluster).any():
                centres[cluster] = points[label == cluster].mean(axis=0)
    return label


def _recommenders(
    before: NDArray[np.int16], after: NDArray[np.int16], step: float, generator: np.random.Generator
) -> tuple[Recommender | None, Recommender | None]:
    """Hide some ratings from both, learn from the rest, and compare with what was really given."""
    hidden = (before > 0) & (generator.random(before.shape) < HELD_OUT)
    if not hidden.any():
        return None, None
    truth = before[hidden].astype(np.float64)
    errors = []
    for seen in (before, after):
        known = np.where(hidden, 0, seen).astype(np.float64)
        errors.append([step * float(np.sqrt(np.mean((made[hidden] - truth) ** 2))) for made in _predictions(known)])
    return Recommender(errors[0][0], errors[1][0]), Recommender(errors[0][1], errors[1][1])


def _predictions(known: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What everybody gives every item: its mean, and what similar persons gave it."""
    rated = known > 0
    overall = known.sum() / max(int(rated.sum()), 1)
    means = np.where(rated.any(axis=0), known.sum(axis=0) / np.maximum(rated.sum(axis=0), 1), overall)
    centred = np.where(rated, known - means, 0)
    norms = np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-9)
    alike = np.maximum((centred / norms) @ (centred / norms).T, 0)
    np.fill_diagonal(alike, 0)
    near = means + (alike @ centred) / np.maximum(alike @ rated, 1e-9)
    return np.broadcast_to(means, known.shape), near
