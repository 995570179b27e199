"""JSON behind the id of a JSON Schema: the id is checked, and the document is read as any other.

A schema of JSON may say anything about values; the policy says what they must be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from microdata import Attribute, Reason, Schema, Show
from service.codec.envelopes import EnvelopeDecoder
from service.codec.events import WHOLE_RECORD, WIRE_PREFIX, Emit, Events, GivenRecords, Leaving, Records, Refused
from service.codec.json import JsonCodec
from service.codec.json_messages import JsonMessages
from service.registry import Registry


@dataclass(frozen=True, eq=False)
class JsonSchemaDecoder:
    """Reads documents of schemas that the registry knows."""

    codec: JsonCodec | EnvelopeDecoder
    registry: Registry

    def decode(self, batch: Records) -> Events:
        """Rows and refusals of one batch."""
        judged: dict[bytes, Reason | None] = {}
        refused, rows = [], []
        for row, value in enumerate(batch.values):
            reason: Reason | None = Reason.TOMBSTONE
            if value is not None:
                head = value[:WIRE_PREFIX]
                if head not in judged:
                    judged[head] = judged_head(head, self.registry)
                reason = judged[head]
            if reason is None:
                rows.append(row)
            else:
                refused.append(Refused(int(batch.offsets[row]), WHOLE_RECORD, reason))
        values = [(batch.values[row] or b"")[WIRE_PREFIX:] for row in rows]
        documents = GivenRecords(batch.offsets[rows], [batch.keys[row] for row in rows], values)
        events = self.codec.decode(documents)
        if not refused:
            return events
        return Events.merged([events], refused, self.codec.rejected_whole(batch, refused))


def judged_head(head: bytes, registry: Registry) -> Reason | None:
    """Return why a document that begins with these bytes is rejected, None if its schema is one of JSON."""
    if len(head) < WIRE_PREFIX or head[0]:
        return Reason.MALFORMED
    found = registry.by_id(int.from_bytes(head[1:], "big"))
    if found is None:
        return Reason.UNKNOWN_SCHEMA
    return None if found.kind == "JSON" else Reason.OTHER_SCHEMA


@dataclass(frozen=True, eq=False)
class JsonSchemaMessages:
    """Messages of JSON, each behind the id of its schema."""

    messages: JsonMessages
    prefix: bytes

    def encode(self, leaving: Leaving, emit: Emit) -> Iterator[list[bytes]]:
        """The messages of each cluster."""
        for written in self.messages.encode(leaving, emit):
            yield [self.prefix + message for message in written]


def derived_json_schema(schema: Schema, emit: Emit, show: Show) -> str:
    """The JSON Schema of what leaves; public values may be anything."""
    quasi = {attribute.name: _shown(attribute, show) for attribute in schema.quasi}
    row = {attribute.name: _value(attribute) for attribute in schema.sensitive} | {name: {} for name in schema.public}
    if emit == "tuples":
        return _text("Tuple", quasi | row, [*quasi])
    properties = {
        "cluster": {"type": "string"},
        "part": {"type": "integer"},
        "parts": {"type": "integer"},
        "generalization": {"type": "object", "properties": quasi},
        "rows": {"type": "array", "items": {"type": "object", "properties": row}},
    }
    return _text("Cluster", properties, ["cluster", "generalization", "rows"])


def _text(title: str, properties: Mapping[str, Any], required: list[str]) -> str:
    dialect = "http://json-schema.org/draft-07/schema#"
    made = {"$schema": dialect, "title": title, "type": "object", "properties": properties, "required": required}
    return json.dumps(made, separators=(",", ":"))


def _shown(attribute: Attribute, show: Show) -> dict[str, Any]:
    """A category is a text, a number a list of two ends, or itself where means are shown."""
    if not attribute.numeric:
        return {"type": "string"}
    if show == "mean":
        return {"type": "number"}
    return {"type": "array", "items": _value(attribute), "minItems": 2, "maxItems": 2}


def _value(attribute: Attribute) -> dict[str, Any]:
    if not attribute.numeric:
        return {"type": "string"}
    return {"type": "integer" if getattr(attribute, "integer", False) else "number"}
