"""Protobuf schemas: from a text or a descriptor to where declared fields are in records, and what columns they are."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from service.codec import _protobuf_kernels as wire
from service.codec._protobuf_kernels import Program
from service.codec.avro_schema import Aliases
from service.codec.protobuf_descriptors import parse_descriptors
from service.codec.protobuf_text import parse_text
from service.codec.protobuf_types import Enum, Field, File, Message, ProtobufSchemaError

_WELL_KNOWN = """
syntax = "proto3";
package google.protobuf;
message Timestamp { int64 seconds = 1; int32 nanos = 2; }
message DoubleValue { double value = 1; }
message FloatValue { float value = 1; }
message Int64Value { int64 value = 1; }
message UInt64Value { uint64 value = 1; }
message Int32Value { int32 value = 1; }
message UInt32Value { uint32 value = 1; }
message BoolValue { bool value = 1; }
message StringValue { string value = 1; }
message BytesValue { bytes value = 1; }
"""
"""Messages that stand for one value; everybody has them, so nobody registers them."""
_TIMESTAMP = "google.protobuf.Timestamp"
MOMENT = pa.timestamp("us", "UTC")
"""What it becomes."""
_KINDS = {
    "double": (wire.DOUBLE, wire.EIGHT_BYTES, pa.float64()),
    "float": (wire.FLOAT, wire.FOUR_BYTES, pa.float32()),
    "int64": (wire.WHOLE, wire.VARINT, pa.int64()),
    "uint64": (wire.WHOLE, wire.VARINT, pa.uint64()),
    "int32": (wire.WHOLE32, wire.VARINT, pa.int32()),
    "fixed64": (wire.FIXED, wire.EIGHT_BYTES, pa.uint64()),
    "fixed32": (wire.FIXED32, wire.FOUR_BYTES, pa.int64()),
    "bool": (wire.BOOLEAN, wire.VARINT, pa.bool_()),
    "string": (wire.BYTES, wire.LENGTH, pa.large_string()),
    "bytes": (wire.BYTES, wire.LENGTH, pa.large_binary()),
    "uint32": (wire.UNSIGNED32, wire.VARINT, pa.int64()),
    "enum": (wire.WHOLE32, wire.VARINT, pa.large_string()),
    "sfixed32": (wire.SFIXED32, wire.FOUR_BYTES, pa.int32()),
    "sfixed64": (wire.FIXED, wire.EIGHT_BYTES, pa.int64()),
    "sint32": (wire.SIGNED32, wire.VARINT, pa.int32()),
    "sint64": (wire.SIGNED, wire.VARINT, pa.int64()),
}
DEEPEST = 8
"""Messages inside of each other whose fields are listed; one may hold itself."""
Path: TypeAlias = tuple[Field, ...]
"""From a field of a message to one inside of it."""


@cache
def _well_known() -> Mapping[str, Message | Enum]:
    return parse_text(_WELL_KNOWN).declared


def parse(text: str, references: Sequence[str] = ()) -> File:
    """What this schema declares, as a text or a descriptor; names may come from those that it refers to."""
    known = dict(_well_known())
    *others, own = [file for each in (*references, text) for file in _files(each)]
    for file in (*others, own):
        file.link(known)
        known = {**file.declared, **known}
    return own


def _files(text: str) -> list[File]:
    try:
        data = b64decode(text.strip(), validate=True)
    except (NotBase64, ValueError):
        return [parse_text(text)]
    files = parse_descriptors(data) if data else []
    if not files:
        raise ProtobufSchemaError("declares nothing")
    return files


def message_of(file: File, name: str | None) -> Message:
    """The message of this name, with or without package; the first where none is asked for."""
    if name is None:
        found = file.messages[:1]
    else:
        every = [one for one in file.every() if one.is_called(name)]
        found = [one for one in every if one.full_name == name] or every
    if not found:
        raise ProtobufSchemaError("declares no message" + (f" {name}" if name else ""))
    if len(found) > 1:
        raise ProtobufSchemaError(f"declares several messages {name}: say which, with the package")
    return found[0]


def same_declarations(one: str, other: str) -> bool:
    """Whether two schemas declare the same, however they are written."""
    try:
        return _declared(parse(one)) == _declared(parse(other))
    except ProtobufSchemaError:
        return False


def _declared(file: File) -> dict[str, set[tuple[str, int, str, str, bool, bool, str]]]:
    return {
        message.full_name: {
            (each.name, each.number, each.kind, type_name(each), each.repeated, each.present, each.oneof)
            for each in message.fields
        }
        for message in file.every()
    }


def type_name(one: Field) -> str:
    """The type of a field, by its full name where it has one."""
    return one.type.full_name if one.type is not None else one.kind


# -- one field ---------------------------------------------------------------------------------------------------------


def path_of(message: Message, name: str, aliases: Aliases = ()) -> Path | None:
    """The way to a (dotted) field, by its name or an alias; None where there is no such field."""
    here: Message | Enum | None = message
    path: list[Field] = []
    others, above = dict(aliases), ""
    for part in name.split("."):
        above = f"{above}.{part}" if above else part
        found = None
        if isinstance(here, Message):
            found = next(filter(None, map(here.field, (part, *others.get(above, ())))), None)
        if found is None:
            return None
        path.append(found)
        here = found.type
    return tuple(path)


def complaint(path: Path) -> str | None:
    """Why a field is of no use."""
    for each in path:
        if each.repeated:
            return "is repeated or a map, which holds many values"
        if each.kind == "group":
            return "is a group, which is not read"
        if not each.kind:
            return "is of a type that the schema does not have"
    if arrow_type(path[-1]) is None:
        return "is of type message, which holds many values"
    return None


def leaves(message: Message, above: Path = ()) -> Iterator[tuple[str, Path]]:
    """Every field that is no message with fields of its own, by its (dotted) name, and the way to it."""
    for each in message.fields:
        path = (*above, each)
        inside = each.type if isinstance(each.type, Message) and not each.repeated else None
        if inside is None or arrow_type(each) is not None:
            yield ".".join(one.name for one in path), path
        elif len(path) <= DEEPEST:
            yield from leaves(inside, path)


def _value_of(one: Field) -> Field | None:
    """The one field of a wrapper."""
    is_known = isinstance(one.type, Message) and _well_known().get(one.type.full_name) is one.type
    return one.type.field("value") if is_known and isinstance(one.type, Message) else None


def arrow_type(one: Field) -> pa.DataType | None:
    """The column that values of a field become; None for what holds further values."""
    if one.kind == "message" and isinstance(one.type, Message):
        inside = _value_of(one)
        if inside is not None:
            return arrow_type(inside)
        return MOMENT if one.type is _well_known()[_TIMESTAMP] else None
    return _KINDS[one.kind][2] if one.kind in _KINDS else None


# -- where declared fields are -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Leaf:
    """Where the values of a declared field are noted."""

    field: Field
    """What its values are; the one inside of a wrapper."""
    slot: int
    nanos: int = -1
    """Where the rest of a moment is noted."""


@dataclass(frozen=True, eq=False)
class Plan:
    """How records of one message are read for declared fields."""

    program: Program
    slots: int
    leaves: Mapping[str, Leaf]
    """Of the declared fields those that the message has."""


@dataclass(eq=False)
class _Node:
    """A message on the way to declared fields."""

    message: Message
    entries: dict[int, tuple[Field, int, int]] = field(default_factory=dict)
    """By number: the field, what it is, and where it is noted or which node it is."""


class _Assembler:
    def __init__(self, message: Message) -> None:
        self._nodes = [_Node(message)]
        self.slots = 0

    def add(self, path: Path) -> int:
        """Note the values at the end of this path; where."""
        node = 0
        for each in path[:-1]:
            assert isinstance(each.type, Message), "the way leads through messages"
            entries = self._nodes[node].entries
            if each.number not in entries:
                self._nodes.append(_Node(each.type))
                entries[each.number] = each, wire.MESSAGE, len(self._nodes) - 1
            node = entries[each.number][2]
        last, entries = path[-1], self._nodes[node].entries
        if last.number not in entries:  # not where somebody declares a moment and its seconds
            entries[last.number] = last, _KINDS[last.kind][0], self.slots
            self.slots += 1
        return entries[last.number][2]

    def _below(self, entry: tuple[Field, int, int]) -> list[int]:
        """Where everything inside of a field is noted."""
        _, kind, target = entry
        if kind == wire.MESSAGE:
            return [slot for each in self._nodes[target].entries.values() for slot in self._below(each)]
        return [] if kind == wire.NOTHING else [target]

    def program(self) -> Program:
        for node in self._nodes:
            chosen = {entry[0].oneof for entry in node.entries.values() if entry[0].oneof}
            for each in node.message.fields:
                if each.oneof in chosen:
                    node.entries.setdefault(each.number, (each, wire.NOTHING, 0))
        first, rows, rivals, cleared = [0], list[list[int]](), [0], list[int]()
        for node in self._nodes:
            for number, entry in sorted(node.entries.items()):
                one, kind, target = entry
                how = wire.LENGTH if kind == wire.MESSAGE else _KINDS[one.kind][1] if kind else 0
                absent = -1
                if kind not in {wire.MESSAGE, wire.NOTHING}:
                    absent = wire.DEFAULT if one.default is not None else -1 if one.present else wire.VALUE
                rows.append([number, kind, how, target, absent])
                for other, rival in node.entries.items():
                    if one.oneof and rival[0].oneof == one.oneof and other != number:
                        cleared += self._below(rival)
                rivals.append(len(cleared))
            first.append(len(rows))
        numbers, kinds, wires, targets, absents = np.ascontiguousarray(np.array(rows, np.int64).reshape(-1, 5).T)
        places = np.array(first, np.int64), numbers, kinds, wires, targets, absents, np.array(rivals, np.int64)
        return Program(*places, np.array(cleared or [0], np.int64))


def plan(
    message: Message, fields: Sequence[str], aliases: Aliases = (), paths: Mapping[str, str] | None = None
) -> Plan:
    """How records of this message are read; a field that is of no use there is as one that is not there."""
    assembler, leaves = _Assembler(message), {}
    for name in fields:
        path = path_of(message, (paths or {}).get(name, name), aliases)
        if path is None or complaint(path) is not None:
            continue
        last = path[-1]
        inside = _value_of(last)
        if inside is not None:
            leaves[name] = Leaf(inside, assembler.add((*path, inside)))
        elif isinstance(last.type, Message):
            seconds, nanos = last.type.field("seconds"), last.type.field("nanos")
            assert seconds is not None
            assert nanos is not None
            leaves[name] = Leaf(last, assembler.add((*path, seconds)), assembler.add((*path, nanos)))
        else:
            leaves[name] = Leaf(last, assembler.add(path))
    return Plan(assembler.program(), assembler.slots, leaves)
