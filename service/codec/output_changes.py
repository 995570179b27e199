"""What is different between two schemas of what leaves, field by field."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from service.codec import avro_schema, protobuf_schema
from service.codec._avro_kernels import ARRAY, RECORD
from service.codec.avro_schema import AvroSchemaError, Type
from service.codec.protobuf_types import ProtobufSchemaError

WHOLE = "the message"
"""The name of what leaves as such."""


class Changes(NamedTuple):
    """Sentences about fields."""

    types: list[str]
    """Of those that have another type than before, which readers of one schema cannot read from the other."""
    others: list[str]
    """Of those that came, went, or have a wider type than before; whether they are compatible the registry decides."""


_INTEGERS = ("int32", "uint32", "int64", "uint64", "bool")
_WIDER = {
    "AVRO": {
        *(("int", wider) for wider in ("long", "float", "double")),
        *(("long", wider) for wider in ("float", "double")),
        ("float", "double"),
        ("string", "bytes"),
        ("bytes", "string"),
    },
    "PROTOBUF": {(one, other) for one in _INTEGERS for other in _INTEGERS} | {("string", "bytes"), ("bytes", "string")},
}
"""Types before and after that each format lets a reader of the schema after read alike."""


def changes(kind: str, before: str, after: str) -> Changes:
    """What is different in the schema after."""
    try:
        old, new = dict(_FIELDS[kind](before)), dict(_FIELDS[kind](after))
    except (AvroSchemaError, ProtobufSchemaError, ValueError, RecursionError, AttributeError):
        return Changes(["what was there before is no schema of what leaves"], [])
    types, others = list[str](), list[str]()
    for name, own in new.items():
        if name in old and own != old[name]:
            is_wider = name != WHOLE and (old[name], own) in _WIDER.get(kind, ())
            (others if is_wider else types).append(f"{name} is {own} and was {old[name]}")
    others += [f"{name} is gone" for name in old if name not in new]
    others += [f"{name} is new" for name in new if name not in old]
    return Changes(types, others)


def _avro(text: str) -> Iterator[tuple[str, str]]:
    record = avro_schema.parse(text)
    yield WHOLE, record.own_name()
    for each in record.fields:
        for one in each.type.choices():
            inside = one.inner[0] if one.kind == ARRAY else one
            if inside.kind == RECORD:  # box and rows
                yield from ((below.name, _avro_type(below.type)) for below in inside.fields)
            else:
                yield each.name, _avro_type(each.type)


def _avro_type(one: Type) -> str:
    said = []
    for each in one.choices():
        digits = "({}, {})".format(*each.digits) if each.logical == "decimal" else ""
        said.append(each.own_name() or f"{each.logical or each.name}{digits}")
    return " or ".join(said)


def _protobuf(text: str) -> Iterator[tuple[str, str]]:
    file = protobuf_schema.parse(text)
    yield WHOLE, file.messages[0].own_name() if file.messages else "nothing"
    for message in file.messages:
        if not message.own_name().endswith("Interval"):
            for each in message.fields:
                yield each.name, protobuf_schema.type_name(each).rpartition(".")[2]


def _json(text: str) -> Iterator[tuple[str, str]]:
    schema = json.loads(text)
    yield WHOLE, str(schema.get("title"))
    yield from _properties(schema.get("properties", {}))


def _properties(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, one in given.items():
        inside = one.get("items", one) if name == "rows" else one
        if "properties" in inside:
            yield from _properties(inside["properties"])
        else:
            yield name, " of ".join(filter(None, [one.get("type", "anything"), one.get("items", {}).get("type")]))


_FIELDS: dict[str, Callable[[str], Iterator[tuple[str, str]]]] = {"AVRO": _avro, "PROTOBUF": _protobuf, "JSON": _json}
