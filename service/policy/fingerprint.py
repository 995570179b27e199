"""What makes two policies the same for a running stream.

Everything that decides how a record is encoded, clustered and published is in it, the contents of hierarchies included.
What only says where to begin or whom to tell (`name`, `start`, `dead_letters`, `table`) is not: it may change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from microdata import Show
from service.policy.file import DEFAULT

DECODER_VERSION = 2
"""Raised whenever the same record would be encoded to another row than before."""


def fingerprint(
    data: str,
    schema: Mapping[str, Any],
    guarantee: Mapping[str, Any],
    route: Mapping[str, Any],
    show: Show = "interval",
) -> str:
    """SHA-256, in hexadecimal, over the canonical JSON form."""
    content = {
        "decoder": DECODER_VERSION,
        "schema": schema,
        "guarantee": guarantee,
        "route": route,
        # Only where it is another: policies that name no kind, or no way to show classes, keep their fingerprint.
        **({"data": data} if data != DEFAULT else {}),
        **({"show": show} if show != "interval" else {}),
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
