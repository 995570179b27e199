"""A stream of purchases: adult-like persons who come back, with one row per item of each purchase.

The rows of a purchase follow each other; a person's values stay the same over the whole stream.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from load_tests.generators.adult_like import ADULT_QUASI, attributes, draw_adults
from load_tests.generators.dataset import PERSON, Dataset, Distribution, Rows, choose
from microdata import Category, Hierarchy, Schema

DEPARTMENTS = [
    "Bakery",
    "Books",
    "Clothing",
    "Dairy",
    "Electronics",
    "Garden",
    "Health",
    "Household",
    "Meat and fish",
    "Sports",
    "Toys",
    "Vegetables",
]
ITEMS_PER_DEPARTMENT = 10
PURCHASES_PER_PERSON = 2.0


def transactions(dup: float = 5, quasi: int | Sequence[str] = ADULT_QUASI) -> Dataset:
    """Rows with the sensitive attribute `item`; a purchase has `dup` items on average (the thesis: 5, 10, 15)."""
    if dup < 1:
        raise ValueError(f"dup must be at least 1, got {dup}")
    names = ADULT_QUASI[:quasi] if isinstance(quasi, int) else tuple(quasi)
    items = Category("item", _items())
    schema = Schema(PERSON, choose(attributes(), names), (items,))
    popularity = Distribution(1.0 / np.random.default_rng(0).permutation(np.arange(1, items.size + 1)))

    def draw(rows: int, seed: int) -> Rows:
        random = np.random.default_rng(seed)
        count = max(1, round(rows / (dup * PURCHASES_PER_PERSON)))
        # Every purchase has an item, so `rows` purchases are always enough.
        lengths = 1 + random.poisson(dup - 1, rows)
        enough = int(np.searchsorted(np.cumsum(lengths), rows)) + 1
        persons = np.repeat(random.integers(0, count, rows)[:enough], lengths[:enough])[:rows]
        codes = {name: column[persons] for name, column in draw_adults(random, count).items()}
        return persons, codes | {"item": popularity.draw(random, None, rows)}

    return Dataset("transactions", schema, draw)


def _items() -> Hierarchy:
    numbers = range(1, ITEMS_PER_DEPARTMENT + 1)
    return Hierarchy.from_mapping({"Shop": {name: [f"{name} {number}" for number in numbers] for name in DEPARTMENTS}})
