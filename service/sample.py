"""Sample people for the demo: orders by customers who come back, so that rows and persons are not the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

COUNTRIES: Mapping[str, Mapping[str, float]] = {
    "Europe": {"France": 0.18, "Germany": 0.22, "Spain": 0.12, "Norway": 0.03},
    "America": {"Canada": 0.08, "Brazil": 0.12},
    "Asia": {"Japan": 0.15, "India": 0.1},
}
EDUCATION: Mapping[str, Mapping[str, float]] = {
    "School": {"Primary": 0.1, "Secondary": 0.35},
    "University": {"Bachelor": 0.3, "Master": 0.2, "Doctorate": 0.05},
}
ITEMS: Mapping[str, Mapping[str, float]] = {
    "Home": {"Lamp": 0.16, "Chair": 0.14, "Kettle": 0.12},
    "Health": {"Vitamins": 0.15, "Blood pressure monitor": 0.08, "Pregnancy test": 0.05},
    "Books": {"Novel": 0.2, "Divorce guide": 0.04, "Travel guide": 0.06},
}
SHOPS = ("north", "south", "online")


def sample_events(count: int, *, seed: int, persons: int | None = None, first: int = 0) -> pa.Table:
    """`count` orders by about a fifth as many customers (or `persons`); `first` numbers the orders.

    A customer's age, postcode, country and education stay the same from order to order.
    """
    people = persons or max(count // 5, 1)
    traits = _traits(people, np.random.default_rng(seed))
    generator = np.random.default_rng([seed, first, count])
    who = generator.integers(0, people, count)
    return pa.table(
        {
            "order": pa.array(np.arange(first, first + count)),
            "customer_id": pa.array([f"c{person:06d}" for person in who]),
            **{name: column.take(pa.array(who)) for name, column in traits.items()},
            "item": pa.array(_draw(ITEMS, count, generator)),
            "shop": pa.array(generator.choice(SHOPS, count)),
        }
    )


def _traits(people: int, generator: np.random.Generator) -> dict[str, pa.Array]:
    age = np.clip(16 + generator.gamma(4.0, 7.0, people), 16, 90).astype(np.int64)
    return {
        "age": pa.array(age),
        "postcode": pa.array(generator.choice(_postcodes(), people)),
        "country": pa.array(_draw(COUNTRIES, people, generator)),
        "education": pa.array(_draw(EDUCATION, people, generator)),
    }


def _postcodes() -> list[str]:
    return [f"{area}{street}" for area in range(10, 20) for street in range(10)]


def _draw(shares: Mapping[str, Mapping[str, float]], count: int, generator: np.random.Generator) -> Sequence[str]:
    weights = {label: share for leaves in shares.values() for label, share in leaves.items()}
    chances = np.array(list(weights.values()))
    return generator.choice(list(weights), count, p=chances / chances.sum()).tolist()
