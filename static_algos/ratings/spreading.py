"""Groups united until sensitive ratings are spread around everybody.

The sources only check ℓ. Here a group around which sensitive ratings are too much alike is united with another: of
those that cost least the one that spreads them most. What is around a person is checked anew after each round, because
neighbourhoods reach beyond groups. There are fewer groups after each round; one group of everybody is as spread as the
ratings are, so that ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import InfeasibleError, Progress
from microdata.ratings import Ratings
from privacy.ratings import RatingDiversity, measure, spread
from static_algos.ratings.lending import costs_of_joining
from static_algos.ratings.publication import RatingsPublication
from static_algos.ratings.recoding import Recoding

ASKED = 256
"""Groups that are asked what uniting with them would cost."""
CHEAPEST = 16
"""Those among which spread decides."""


def spread_groups(
    ratings: Ratings,
    groups: list[NDArray[np.int64]],
    recoding: Recoding,
    model: RatingDiversity,
    k: int,
    progress: Progress,
) -> list[NDArray[np.int64]]:
    """The groups, united as far as needed; `InfeasibleError` where not even all persons together are so spread."""
    given = ratings.sensitive_matrix.astype(np.int64)
    moments = np.stack([given > 0, given, given * given], axis=2)
    while True:
        labels = np.empty(len(ratings), np.int64)
        for number, members in enumerate(groups):
            labels[members] = number
        publication = RatingsPublication.of(ratings, labels, recoding, k)
        leaving = np.flatnonzero(publication.recoded.open.rated + publication.recoded.sensitive.rated)
        ((_, failing),) = measure((model,), publication.released)
        bad = np.unique(labels[leaving[failing]]).tolist()
        progress("spread", len(groups) - len(bad), len(groups))
        if not bad:
            return groups
        if len(groups) == 1:
            reached = float(spread(moments.sum(axis=0), ratings.scale.step).min(initial=np.inf))
            nearest = np.floor(reached * 10_000) / 10_000 if np.isfinite(reached) and reached > 0 else None
            raise InfeasibleError("sensitive ratings are not so different", parameter="l", nearest=nearest)
        groups = _united(ratings, groups, bad, moments, recoding)


def _united(
    ratings: Ratings,
    groups: list[NDArray[np.int64]],
    bad: list[int],
    moments: NDArray[np.int64],
    recoding: Recoding,
) -> list[NDArray[np.int64]]:
    """Each group that failed together with one that took no part yet in this round."""
    free = set(range(len(groups)))
    result = []
    for number in bad:
        if number not in free or len(free) < 2:
            continue
        free.remove(number)
        others = sorted(free)
        others = others[:: max(1, len(others) // ASKED)]
        costs = costs_of_joining(
            ratings.open, recoding, groups[number].tolist(), (groups[other].tolist() for other in others)
        )
        own = moments[groups[number]].sum(axis=0)
        cheapest = np.argsort(costs, kind="stable")[:CHEAPEST].tolist()
        spreads = [
            float(spread(own + moments[groups[others[place]]].sum(axis=0), ratings.scale.step).min(initial=np.inf))
            for place in cheapest
        ]
        partner = others[cheapest[int(np.argmax(spreads))]]
        free.remove(partner)
        result.append(np.sort(np.concatenate([groups[number], groups[partner]])))
    return [*result, *(groups[number] for number in sorted(free))]
