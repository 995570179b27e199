"""What a proposed policy says about a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator

TUPLES, SECONDS = 1000, 60
"""How long an event may wait, to begin with."""


def stream_lines(topic: str, k: int, format_said: str, *, sensitive: bool) -> Iterator[str]:
    """Guarantee and topics; `format_said` is what the policy says of formats, empty for plain JSON."""
    diversity = ", l: 2" if sensitive else ""
    yield "# k persons share each cluster" + (", and it has two sensitive values or more." if sensitive else ".")
    yield f"guarantee: {{algorithm: castle, k: {k}{diversity}, delay: {{tuples: {TUPLES}, seconds: {SECONDS}}}}}"
    yield "stream:"
    for key, name in (("input", topic), ("output", f"{topic}.safe"), ("dead_letters", f"{topic}.dead")):
        yield f"  {key}: {json.dumps(name)}"
    if format_said:
        yield f"  format: {format_said}"
    yield "  start: latest  # or earliest: also what is in the topic already"
