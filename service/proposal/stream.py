"""What a proposed policy says about a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator

from service.policy.data import TopicFacts

TUPLES, SECONDS = 1000, 60
"""How long an event may wait, to begin with."""


def stream_lines(topic: TopicFacts, k: int, format_said: str, *, sensitive: bool) -> Iterator[str]:
    """Guarantee and topics; `format_said` is what the policy says of formats, empty for plain JSON."""
    diversity = ", l: 2" if sensitive else ""
    yield "# k persons share each cluster" + (", and it has two sensitive values or more." if sensitive else ".")
    yield f"guarantee: {{algorithm: castle, k: {k}{diversity}, delay: {{tuples: {TUPLES}, seconds: {SECONDS}}}}}"
    yield "stream:"
    topics = ("input", topic.name), ("output", f"{topic.name}.safe"), ("dead_letters", f"{topic.name}.dead")
    for key, name in topics:
        yield f"  {key}: {json.dumps(name)}"
    if format_said:
        yield f"  format: {format_said}"
    if topic.envelope is not None:
        yield f"  envelope: {topic.envelope}  # the fields above are those inside"
    yield "  start: latest  # or earliest: also what is in the topic already"
