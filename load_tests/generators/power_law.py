"""Power-law data: every attribute takes the value v of 1 … N with probability proportional to 1 / v**alpha."""

from __future__ import annotations

import numpy as np

from load_tests.generators.dataset import PERSON, Dataset, Distribution, Rows, integer
from microdata import Schema


def power_law(alpha: float, N: int, attributes: int = 10) -> Dataset:
    """Rows of independent power-law numbers `a1`, `a2`, …; the larger alpha, the more clustered the data."""
    names = [f"a{number + 1}" for number in range(attributes)]
    schema = Schema(PERSON, tuple(integer(name, 1, N) for name in names))
    distribution = Distribution(np.arange(1, N + 1) ** -float(alpha))

    def draw(rows: int, seed: int) -> Rows:
        random = np.random.default_rng(seed)
        codes = {name: distribution.draw(random, None, rows) + 1 for name in names}
        return np.arange(rows, dtype=np.int64), codes

    return Dataset("power_law", schema, draw)
