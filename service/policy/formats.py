"""The formats that a policy names for its topics, with the schemas that it has in files."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace

from service.codec import Format, TopicFormat
from service.policy.data import Beside
from service.policy.errors import PolicyProblem
from service.policy.file import StreamSection, TopicFormatSection

_MOST_BYTES = 1 << 20
"""Of a schema."""
_CONTROL = re.compile(rb"[\0-\x08\x0e-\x1f]")
"""What no text has."""


def format_of(stream: StreamSection, beside: Beside, problems: list[PolicyProblem]) -> Format:
    """How the records of both topics are written; what cannot be read is added to `problems`."""
    given, envelope = stream.format, None if stream.envelope == "none" else stream.envelope
    if isinstance(given, str):
        return Format(TopicFormat(given, envelope=envelope), TopicFormat(given))
    return Format(
        replace(_topic_format(given.input, "stream.format.input", beside, problems), envelope=envelope),
        _topic_format(given.output, "stream.format.output", beside, problems),
        None if given.key is None else _topic_format(given.key, "stream.format.key", beside, problems),
    )


def _topic_format(
    given: str | TopicFormatSection, at: str, beside: Beside, problems: list[PolicyProblem]
) -> TopicFormat:
    if isinstance(given, str):
        return TopicFormat(given)
    text = None
    if given.schema_ is not None:
        text = _text(given.schema_, beside)
        if text is None:
            problems.append(
                PolicyProblem(f"{at}.schema", "no such file beside the policy, or above 1 MB", given.schema_)
            )
    aliases = tuple((name, tuple(others)) for name, others in sorted(given.aliases.items()))
    name = given.record or given.message
    return TopicFormat(given.type, text, given.subject, name, given.register_, aliases=aliases)


def _text(name: str, beside: Beside) -> str | None:
    """The file of this name beside the policy, or sent along with it."""
    if beside.base is None:
        return (beside.sent or {}).get(name)
    path = beside.base / name
    try:
        data = path.read_bytes() if path.stat().st_size <= _MOST_BYTES else None
    except OSError:
        return None
    if data is None:
        return None
    if _CONTROL.search(data):
        return b64encode(data).decode()  # a compiled schema: this is how registries have it as a text
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
