"""Disjoint groups by slicing, and the least ε and largest k that ratings satisfy as they are.

There are two readings of (k,ε). *Neighbourhood*: around everybody there are k persons; exact, and what a release is
checked for. *Partition*: persons fall into disjoint groups of k who are all proximate to each other; stronger, and
found here greedily (slice, keep who is close to all kept so far, then let small groups borrow from large ones), so
that a failure means that no partition was found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microdata.ratings import Ratings
from privacy.ratings._neighbour_kernels import dissimilarity as greatest_difference
from privacy.ratings.models import RatingDiversity, measure, spread
from privacy.ratings.neighbours import hamming_groups, neighbour_counts


@dataclass(frozen=True)
class Minimum:
    """The least ε, and what holds there."""

    epsilon: float
    k: int
    sd: float | None
    """Standard deviation of the least spread sensitive item; None where nothing sensitive was rated."""


def largest_k(ratings: Ratings, epsilon: float) -> int:
    """The largest k for which these ratings are (k,ε)-anonymous."""
    return int(neighbour_counts(ratings, epsilon, least=0).min(initial=len(ratings)))


def least_epsilon(ratings: Ratings, k: int, *, partition: bool = False) -> Minimum | None:
    """The least ε for which these ratings are (k,ε)-anonymous as they are; None where no ε below the scale does.

    Neighbourhoods only grow with ε, so that the search halves what is left. Of partitions every ε is tried: slicing may
    fail at an ε and succeed below it.
    """
    if k > len(ratings):
        return None
    scale = ratings.scale
    if partition:
        for steps in range(scale.size):
            groups = slices(ratings, steps * scale.step, k)
            sizes = np.bincount(groups)
            if sizes.min() >= k:
                return Minimum(steps * scale.step, int(sizes.min()), _least_spread(ratings, groups))
        return None
    low, high = -1, scale.size - 1
    if largest_k(ratings, high * scale.step) < k:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if largest_k(ratings, middle * scale.step) >= k else (middle, high)
    epsilon = high * scale.step
    return Minimum(epsilon, largest_k(ratings, epsilon), _around(ratings, epsilon))


def least_epsilon_for_spread(ratings: Ratings, sd: float, *, k: int = 2, partition: bool = False) -> Minimum | None:
    """The least ε at which sensitive ratings are spread by `sd` among k persons; None where none below the scale does.

    More neighbours may be less spread, so that every ε is tried.
    """
    scale = ratings.scale
    for steps in range(scale.size):
        epsilon = steps * scale.step
        if partition:
            groups = slices(ratings, epsilon, k)
            least, own = int(np.bincount(groups).min()), _least_spread(ratings, groups)
        else:
            least, own = largest_k(ratings, epsilon), _around(ratings, epsilon)
        if least >= k and (own is None or own >= sd - 1e-9):
            return Minimum(epsilon, least, own)
    return None


def slices(ratings: Ratings, epsilon: float, k: int = 1) -> NDArray[np.int64]:
    """Number of the group of each person: disjoint, all pairs proximate, small ones filled up to k where that works."""
    steps, size = ratings.scale.steps(epsilon), ratings.scale.size
    patterns = hamming_groups(ratings.open) if steps < size else np.zeros(len(ratings), np.int64)
    groups: list[list[int]] = []
    for pattern in range(int(patterns.max(initial=-1)) + 1):
        members = np.flatnonzero(patterns == pattern).tolist()
        groups += _adjusted(ratings, _cut(ratings, members, steps), steps, k)
    labels = np.empty(len(ratings), np.int64)
    for number, group in enumerate(groups):
        labels[group] = number
    return labels


def _cut(ratings: Ratings, alive: list[int], steps: int) -> list[list[int]]:
    """Take the first person left and everybody who is close to all that are taken with them; again for the rest."""
    groups = []
    while alive:
        group: list[int] = []
        for person in alive:
            if all(_distance(ratings, person, other) <= steps for other in group):
                group.append(person)
        groups.append(group)
        taken = set(group)
        alive = [person for person in alive if person not in taken]
    return groups


def _adjusted(ratings: Ratings, groups: list[list[int]], steps: int, k: int) -> list[list[int]]:
    """Let groups below k borrow the closest person that a larger group can spare, until nobody moves any more."""
    moved = True
    while moved:
        moved = False
        for small in groups:
            if len(small) >= k:
                continue
            offers = [
                (max(_distance(ratings, person, own) for own in small), person, large)
                for large in groups
                if len(large) > k
                for person in large
            ]
            offers = [offer for offer in offers if offer[0] <= steps]
            if offers:
                _, person, large = min(offers, key=lambda offer: offer[:2])
                large.remove(person)
                small.append(person)
                moved = True
    return groups


def _distance(ratings: Ratings, one: int, other: int) -> int:
    rows, size = ratings.open, ratings.scale.size
    return greatest_difference(rows.starts, rows.items, rows.values, one, other, size, size)


def _least_spread(ratings: Ratings, groups: NDArray[np.int64]) -> float | None:
    """The standard deviation of the least spread item in any of the groups."""
    given = ratings.sensitive_matrix.astype(np.int64)
    sums = np.zeros((int(groups.max()) + 1, given.shape[1], 3), np.int64)
    np.add.at(sums, groups, np.stack([given > 0, given, given * given], axis=2))
    least = float(spread(sums, ratings.scale.step).min(initial=np.inf))
    return least if np.isfinite(least) else None


def _around(ratings: Ratings, epsilon: float) -> float | None:
    """The standard deviation of the least spread item around anybody."""
    ((finding, _),) = measure((RatingDiversity(1.0, epsilon),), ratings)
    return finding.achieved
