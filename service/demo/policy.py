"""What is asked of the demo's orders."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from service.kafka.partitioners import Partitioner
from service.sample import COUNTRIES, EDUCATION, ITEMS

KEYED: Partitioner = "murmur2"

POLICY: dict[str, Any] = {
    "name": "orders",
    "schema": {
        "person": "customer_id",
        "quasi": {
            "age": {"type": "number", "min": 16, "max": 90, "integer": True},
            "postcode": {
                "type": "category",
                "hierarchy": {"*": {f"{area}*": [f"{area}{n}" for n in range(10)] for area in range(10, 20)}},
            },
            "country": {"type": "category", "hierarchy": {"World": {k: list(v) for k, v in COUNTRIES.items()}}},
            "education": {"type": "category", "hierarchy": {"Any": {k: list(v) for k, v in EDUCATION.items()}}},
        },
        "sensitive": {"item": {"type": "category", "hierarchy": {"Item": {k: list(v) for k, v in ITEMS.items()}}}},
        "public": ["shop"],
    },
    "guarantee": {"algorithm": "castle", "k": 10, "l": 3, "delay": {"tuples": 2000, "seconds": 20}},
    "stream": {"input": "orders.raw", "output": "orders.safe", "start": "earliest", "dead_letters": "orders.dead"},
}
"""Orders as if nobody came back: the least that a worker needs."""


def remembering(policy: Mapping[str, Any]) -> dict[str, Any]:
    """The same policy with `cohorts`: records have their customer as key, and a worker needs a key file."""
    known: dict[str, Any] = json.loads(json.dumps(policy))
    known["schema"]["person"] = {"key": True}
    known["guarantee"] |= {"algorithm": "cohorts", "company": "standing"}
    known["stream"]["keyed"] = KEYED
    return known
