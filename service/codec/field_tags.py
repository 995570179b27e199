"""What a schema of a registry says of its fields beside their types: the tags that a company gave them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from service.codec import avro_schema, protobuf_schema
from service.codec.avro_schema import AvroSchemaError
from service.codec.protobuf_types import Message, ProtobufSchemaError
from service.registry import Registered

_PROPERTIES = ("confluent:tags", "tags", "labels")
"""Where Avro and JSON Schema have them; the first is Confluent's."""
_DEEPEST = 8
MOST_FIELDS = 2_000
"""Of a schema that are looked at; records that hold themselves have no end of them."""


def field_tags(registered: Registered) -> dict[str, tuple[str, ...]]:
    """The tags of each field that has some, by its (dotted) name; none of a schema that cannot be read."""
    try:
        if registered.kind == "AVRO":
            record = avro_schema.parse(registered.text, registered.references)
            leaves = islice(avro_schema.leaves(record), MOST_FIELDS)
            found = {name: _texts(field.properties) for name, field in leaves}
        elif registered.kind == "PROTOBUF":
            file = protobuf_schema.parse(registered.text, registered.references)
            found = dict(islice(_of_message(protobuf_schema.message_of(file, None)), MOST_FIELDS))
        else:
            found = dict(_of_properties(json.loads(registered.text)))
    except (AvroSchemaError, ProtobufSchemaError, ValueError, RecursionError):
        return {}
    return {name: tags for name, tags in found.items() if tags}


def _texts(properties: Mapping[str, Any]) -> tuple[str, ...]:
    """The tags among properties: a text, a list of texts, or the names of labels."""
    found: list[str] = []
    for name in _PROPERTIES:
        given = properties.get(name)
        several = given if isinstance(given, list | dict) else [given]
        found += [each for each in several if isinstance(each, str)]
    return tuple(found)


def _of_message(message: Message, above: str = "", depth: int = 0) -> Iterator[tuple[str, tuple[str, ...]]]:
    for each in message.fields:
        yield f"{above}{each.name}", each.tags
        if isinstance(each.type, Message) and depth < _DEEPEST:
            yield from _of_message(each.type, f"{above}{each.name}.", depth + 1)


def _of_properties(schema: Any, above: str = "", depth: int = 0) -> Iterator[tuple[str, tuple[str, ...]]]:
    inside = schema.get("properties") if isinstance(schema, dict) else None
    for name, each in (inside if isinstance(inside, dict) else {}).items():
        if isinstance(each, dict):
            yield f"{above}{name}", _texts(each)
            if depth < _DEEPEST:
                yield from _of_properties(each, f"{above}{name}.", depth + 1)
