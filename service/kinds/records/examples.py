"""An invented table with a policy for every algorithm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from service.policy.data import Example
from static_algos import STATIC_ALGORITHMS

_ROWS = 64
_ITEMS = ("lamp", "book", "tea")
_ASKED = {"k": 2, "l": 2, "t": 0.9, "beta": 9}
"""As many models as an algorithm takes, each so that an invented table can satisfy it."""


def examples() -> Iterator[Example]:
    """One for every algorithm."""
    rows = (f"{row},{row % 40},{'ab'[row % 2]},{_ITEMS[row % 3]}\n" for row in range(_ROWS))
    table = "id,age,city,item\n" + "".join(rows)
    for entry in STATIC_ALGORITHMS:
        asked = {name: value for name, value in _ASKED.items() if name in entry.parameters.model_fields}
        yield Example(_policy({"algorithm": entry.name, **asked}), table)


def _policy(guarantee: dict[str, Any]) -> dict[str, Any]:
    schema = {
        "person": "id",
        "quasi": {
            "age": {"type": "number", "min": 0, "max": 99, "integer": True},
            "city": {"type": "category", "hierarchy": {"Any": ["a", "b"]}},
        },
        "sensitive": {"item": {"type": "category", "hierarchy": {"Any": list(_ITEMS)}}},
    }
    return {"name": "warm-up", "schema": schema, "guarantee": guarantee}
