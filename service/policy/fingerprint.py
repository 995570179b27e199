"""What makes two policies the same for a running stream.

Everything that decides how a record is encoded, clustered and published is in it, the contents of hierarchies included.
What only says where to begin or whom to tell (`name`, `start`, `dead_letters`, `table`) is not: it may change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from microdata import Attribute, Category, Schema

DECODER_VERSION = 2
"""Raised whenever the same record would be encoded to another row than before."""


def fingerprint(schema: Schema, guarantee: Mapping[str, Any], route: Mapping[str, Any]) -> str:
    """SHA-256, in hexadecimal, over the canonical JSON form."""
    content = {
        "decoder": DECODER_VERSION,
        "schema": {
            "person": schema.person if isinstance(schema.person, str) else {"source": schema.person.value},
            "quasi": [_attribute(attribute) for attribute in schema.quasi],
            "sensitive": [_attribute(attribute) for attribute in schema.sensitive],
            "public": schema.public,
            "weights": schema.weights,
        },
        "guarantee": guarantee,
        "route": route,
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _attribute(attribute: Attribute) -> dict[str, Any]:
    if isinstance(attribute, Category):
        tree = attribute.hierarchy
        return {"name": attribute.name, "tree": [tree.labels, tree.parent.tolist()], "other": attribute.other}
    return {
        "name": attribute.name,
        "domain": [float(attribute.low), float(attribute.high)],
        "integer": attribute.integer,
        "step": attribute.step,
        # Only where they are given: policies without keep their fingerprint.
        **({"quantiles": attribute.quantiles} if attribute.quantiles else {}),
    }
