"""Small ratings for properties, and oracles that are written from the definitions."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from microdata.ratings import Ratings, Scale, ratings_from_rows

SIZE = 5


def tables(most: int = 14, items: int = 3, *, missing: bool = True, least: int = 1) -> Any:
    """Rows of ratings from 1 to 5, the last item sensitive; everybody rated the first item."""
    cell = st.integers(1, SIZE) | st.none() if missing else st.integers(1, SIZE)
    row = st.tuples(st.integers(1, SIZE), *[cell] * (items - 1), st.integers(1, SIZE) | st.none())
    return st.lists(row, min_size=least, max_size=most)


def survey(rows: Any) -> Ratings:
    width = len(rows[0])
    names = [f"q{number}" for number in range(1, width)] + ["secret"]
    return ratings_from_rows(rows, Scale(1, SIZE), names=names, sensitive=["secret"])


def close(one: Any, other: Any, epsilon: float) -> bool:
    """Definition 1, on rows without the sensitive item."""
    worst = 0
    for a, b in zip(one, other, strict=True):
        worst = max(worst, SIZE if (a is None) != (b is None) else 0 if a is None else abs(a - b))
    return worst <= epsilon


def neighbours(rows: Any, epsilon: float) -> list[list[int]]:
    opened = [row[:-1] for row in rows]
    return [[place for place, other in enumerate(opened) if close(row, other, epsilon)] for row in opened]


def plain_rows(ratings: Ratings) -> list[tuple[int, ...]]:
    """Rows with a column for every item, 0 for a missing rating."""
    codes = np.arange(len(ratings.names))
    dense = ratings.open.dense(codes, len(codes)) + ratings.sensitive.dense(codes, len(codes))
    return [tuple(row) for row in dense.tolist()]
