"""Made surveys: people with one of a few tastes, who rate most of a short list or little of a long one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata.ratings import Ratings, RatingSchema, Scale, Sparse


def made_survey(
    persons: int,
    items: int,
    *,
    values: int = 5,
    tastes: int = 8,
    noise: float = 0.7,
    missing: float = 0.0,
    sensitive: int = 1,
    seed: int = 1,
) -> Ratings:
    """Everybody is asked all `items`, and leaves out each with the probability `missing`.

    Every taste has its own answer to every question, from which its people differ by normally distributed noise.
    Answers to the sensitive questions have nothing to do with taste.
    """
    random = np.random.default_rng(seed)
    centre = random.uniform(1, values, (tastes, items))
    given = centre[random.integers(0, tastes, persons)] + noise * random.standard_normal((persons, items))
    answers = np.clip(np.rint(given), 1, values).astype(np.int16)
    answers[random.random(answers.shape) < missing] = 0
    secrets = random.integers(1, values + 1, (persons, sensitive)).astype(np.int16)
    return _ratings(np.hstack([answers, secrets]), items, values)


def sparse_ratings(
    persons: int,
    items: int,
    *,
    each: float = 100.0,
    tastes: int = 12,
    popularity: float = 0.8,
    seed: int = 1,
) -> Ratings:
    """Like a film club: everybody rated some of very many items, popular ones more often, on a scale of 1 to 5.

    How many somebody rated is log-normal with the mean `each`; which ones depends on popularity and on taste.
    """
    random = np.random.default_rng(seed)
    popular = 1.0 / np.arange(1, items + 1) ** popularity
    weights = popular * np.exp(random.standard_normal((tastes, items)))
    weights /= weights.sum(axis=1, keepdims=True)
    taste = random.integers(0, tastes, persons)
    numbers = np.clip(random.lognormal(np.log(each) - 0.5, 1.0, persons), 10, items / 4).astype(np.int64)
    liked = random.uniform(2, 4.5, (tastes, items))
    rows, codes = [], []
    for person in range(persons):
        drawn = np.unique(random.choice(items, numbers[person], p=weights[taste[person]]))
        rows.append(np.full(len(drawn), person))
        codes.append(drawn)
    row, item = np.concatenate(rows), np.concatenate(codes)
    values = np.clip(np.rint(liked[taste[row], item] + 0.9 * random.standard_normal(len(row))), 1, 5)
    schema = RatingSchema("person", Scale(1, 5))
    names = tuple(f"item{number:06}" for number in range(items))
    return Ratings.of(schema, names, np.arange(persons), row, item, values.astype(np.int16))


def _ratings(answers: NDArray[np.int16], items: int, values: int) -> Ratings:
    names = (*(f"q{number:04}" for number in range(items)), *(f"s{at}" for at in range(answers.shape[1] - items)))
    schema = RatingSchema("person", Scale(1, values), item="question", rating="stars", sensitive=("s*",))
    parts = []
    for own, first in ((answers[:, :items], 0), (answers[:, items:], items)):
        rows, columns = np.nonzero(own)
        parts.append(Sparse.of(rows, (columns + first).astype(np.int32), own[rows, columns], len(own)))
    return Ratings(schema, names, np.arange(len(answers)), *parts)
