"""A policy that came by HTTP: checked, with the hierarchy files that came along written into it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from microdata import Category, Hierarchy
from service.policy import Policy, parse_policy
from service.policy.text import parse_text
from service.problems import ProblemError

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
POLICY_PART = {"type": "string", "description": "the policy, YAML or JSON", "example": json.dumps(EXAMPLE)}
"""A policy as a part of a request."""
FILE = {"type": "string", "format": "binary"}
HIERARCHIES_PART = {
    "anyOf": [{"type": "array", "items": FILE}, FILE],
    "description": "CSV files that the policy names, found by the last part of their names",
}


def given_policy(raw: bytes, hierarchies: Mapping[str, bytes]) -> tuple[Policy, str]:
    """The policy in this YAML or JSON text, and as JSON that needs no file beside it."""
    mapping = parse_text(_text(raw, "policy"))
    policy = parse_policy(mapping, sent={name: _text(file, "hierarchy") for name, file in hierarchies.items()})
    for role, attributes in (("quasi", policy.schema.quasi), ("sensitive", policy.schema.sensitive)):
        for attribute in attributes:
            field = mapping["schema"][role][attribute.name]
            if isinstance(attribute, Category) and isinstance(field["hierarchy"], str):
                # Another mapping: in YAML several fields may be one and the same.
                mapping["schema"][role][attribute.name] = {**field, "hierarchy": _nested(attribute.hierarchy)}
    return policy, json.dumps(mapping, ensure_ascii=False)


def _text(raw: bytes, part: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ProblemError("bad-upload", f"The {part} is not UTF-8 text.") from None


def _nested(tree: Hierarchy) -> dict[str, Any]:
    """The tree as a policy writes it."""
    below: list[dict[str, Any]] = [{} for _ in tree.labels]
    for node in range(len(tree.labels) - 1, 0, -1):
        parent = below[int(tree.parent[node])]
        parent[tree.labels[node]] = dict(reversed(below[node].items())) or None
    return {tree.labels[0]: dict(reversed(below[0].items())) or None}
