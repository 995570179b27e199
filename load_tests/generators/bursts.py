"""A stream of ratings as MovieLens has it: a person comes once or twice, rates for some minutes and is gone.

Most bursts follow each other and few overlap, so that a stretch of the stream holds many rows about few persons. How
often somebody rates has a heavy tail; a person's values stay the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from load_tests.generators.adult_like import ADULT_QUASI, attributes, draw_adults
from load_tests.generators.dataset import PERSON, Dataset, Rows, choose, integer
from microdata import Schema

ROWS_PER_PERSON = 100_000 / 943
"""As many as MovieLens 100K has."""
LEAST, SPREAD = 20, 1.1
"""Everybody rates about so often at least; beyond that, standard deviation of the number's logarithm."""
BURSTS = 2
"""Times that a person comes."""
RATINGS = [0.06, 0.11, 0.27, 0.34, 0.22]


def bursts(at_once: float = 0.7, quasi: int | Sequence[str] = ADULT_QUASI) -> Dataset:
    """Rows with the sensitive attribute `rating`; on average so many persons rate at the same time."""
    if at_once <= 0:
        raise ValueError(f"at_once must be above 0, got {at_once}")
    names = ADULT_QUASI[:quasi] if isinstance(quasi, int) else tuple(quasi)
    schema = Schema(PERSON, choose(attributes(), names), (integer("rating", 1, 5),))

    def draw(rows: int, seed: int) -> Rows:
        random = np.random.default_rng(seed)
        count = max(1, round(rows / ROWS_PER_PERSON))
        persons = _order(random, count, rows, at_once)
        codes = {name: column[persons] for name, column in draw_adults(random, count).items()}
        return persons, codes | {"rating": 1 + random.choice(len(RATINGS), rows, p=RATINGS)}

    return Dataset("bursts", schema, draw)


def _order(random: np.random.Generator, count: int, rows: int, at_once: float) -> NDArray[np.int64]:
    """Who rates, row by row."""
    beyond = max(rows / count - LEAST, 1.0)
    often = LEAST + random.lognormal(np.log(beyond) - SPREAD**2 / 2, SPREAD, count)
    sizes = np.repeat(often, BURSTS) * random.gamma(1.0, 1.0, BURSTS * count)
    burst = np.repeat(np.arange(BURSTS * count), random.multinomial(rows, sizes / sizes.sum()))
    # A rating takes a unit of time, so all of them, one after the other, would take `rows` units.
    begins = random.uniform(0, rows / at_once, BURSTS * count)
    since = np.cumsum(random.exponential(1.0, rows))
    times = begins[burst] + since - since[np.searchsorted(burst, burst)]
    return burst[np.argsort(times, kind="stable")] // BURSTS
