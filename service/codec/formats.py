"""The formats that a policy may name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from microdata import PersonKey, Schema
from service.codec.events import Codec
from service.codec.json import JsonCodec

NewCodec: TypeAlias = Callable[[Schema, int, int, PersonKey], Codec]
"""Makes the codec of a schema for records and messages of at most so many bytes; it compares persons under this key."""

DEFAULT_FORMAT = "json"
CODECS: dict[str, NewCodec] = {DEFAULT_FORMAT: JsonCodec}
"""How the records of a topic are written, by the name of the format. A new format takes a line here."""
