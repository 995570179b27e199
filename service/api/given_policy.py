"""A policy that came by HTTP: checked, with the hierarchy files that came along written into it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from service.policy import Policy, parse_policy
from service.policy.text import parse_text
from service.problems import utf8_text

EXAMPLE: dict[str, Any] = {
    "name": "shop",
    "schema": {
        "person": "customer",
        "quasi": {"age": {"type": "number", "min": 0, "max": 120}},
        "sensitive": {"item": {"type": "category", "hierarchy": {"Any": ["lamp", "book", "tea"]}}},
    },
    "guarantee": {"algorithm": "mondrian", "k": 5, "l": 2},
}
"""A policy, for those who read the API's description."""
NO_POLICY = "There is no stored policy of this name. GET /v1/policies lists those that there are."
POLICY_PART = {"type": "string", "description": "the policy, YAML or JSON", "example": json.dumps(EXAMPLE)}
"""A policy as a part of a request."""
FILE = {"type": "string", "format": "binary"}
HIERARCHIES_PART = {
    "anyOf": [{"type": "array", "items": FILE}, FILE],
    "description": "CSV files that the policy names, found by the last part of their names",
}


def given_policy(raw: bytes, hierarchies: Mapping[str, bytes]) -> tuple[Policy, str]:
    """The policy in this YAML or JSON text, and as JSON that needs no file beside it."""
    mapping = parse_text(utf8_text(raw, "policy"))
    policy = parse_policy(mapping, sent={name: utf8_text(file, "hierarchy") for name, file in hierarchies.items()})
    policy.data.embed(mapping, policy.schema)
    return policy, json.dumps(mapping, ensure_ascii=False)
