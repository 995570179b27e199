"""Reads compiled schemas of Protobuf: a file's descriptor as some clients register it, or a set of them in a file."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, TypeAlias

from service.codec.protobuf_types import SCALARS, Enum, Field, File, Message, ProtobufSchemaError, check_message
from service.codec.protobuf_wire import WireError, walk

_DEEPEST = 32
_REPEATED, _MAP_ENTRY = 3, 7
_MESSAGE_OPTIONS, _FIELD_OPTIONS = 7, 8
_TAGS, _META = 3, 1088
"""Of `confluent.Meta`, and where it is among the options of a message or field."""
_Fields: TypeAlias = Mapping[int, list[Any]]


def parse_descriptors(data: bytes) -> list[File]:
    """What a descriptor or a set of them declares, in its order."""
    whole = _fields(data)
    # A file has a name, and is a descriptor of more than that; a set has nothing but files.
    inner = whole[1] if set(whole) == {1} else [data]
    return [_file(_fields(_bytes(each))) for each in inner]


def _fields(data: bytes) -> _Fields:
    """The values of each field number of a message."""
    found: dict[int, list[Any]] = defaultdict(list)
    try:
        for number, value in walk(data):
            found[number].append(value)
    except WireError:
        raise ProtobufSchemaError("is not a descriptor of Protobuf, or one that is cut off") from None
    return found


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise ProtobufSchemaError("is not a descriptor of Protobuf")
    return value


def _text(fields: _Fields, number: int) -> str:
    try:
        return _bytes(fields[number][-1]).decode() if number in fields else ""
    except UnicodeDecodeError:
        raise ProtobufSchemaError("is not a descriptor of Protobuf") from None


def _number(fields: _Fields, number: int) -> int:
    value = fields[number][-1] if number in fields else 0
    if not isinstance(value, int):
        raise ProtobufSchemaError("is not a descriptor of Protobuf")
    (signed,) = struct.unpack("<i", struct.pack("<I", value & 0xFFFFFFFF))
    return int(signed)


def _file(fields: _Fields) -> File:
    syntax = _text(fields, 12)
    if syntax not in {"", "proto2", "proto3"}:
        raise ProtobufSchemaError("is of an edition; proto2 and proto3 are understood")
    made = File(_text(fields, 2))
    for each in fields.get(5, ()):
        _enum(_fields(_bytes(each)), made.package, made)
    for each in fields.get(4, ()):
        message = _message(_fields(_bytes(each)), made.package, made, syntax == "proto3", 0)
        made.messages.append(message)
    return made


def _full(fields: _Fields, scope: str) -> str:
    name = _text(fields, 1)
    if not name:
        raise ProtobufSchemaError("is not a descriptor of Protobuf")
    return f"{scope}.{name}" if scope else name


def _message(fields: _Fields, scope: str, file: File, new: bool, depth: int) -> Message:
    if depth >= _DEEPEST:
        raise ProtobufSchemaError("is nested too deeply")
    made = Message(_full(fields, scope))
    file.add(made)
    for each in fields.get(4, ()):
        _enum(_fields(_bytes(each)), made.full_name, file)
    for each in fields.get(3, ()):
        inner = _fields(_bytes(each))
        message = _message(inner, made.full_name, file, new, depth + 1)
        if not (7 in inner and _number(_fields(_bytes(inner[7][-1])), _MAP_ENTRY)):
            made.messages.append(message)
    oneofs = [_text(_fields(_bytes(each)), 1) for each in fields.get(8, ())]
    made.fields = [_field(_fields(_bytes(each)), oneofs, new) for each in fields.get(2, ())]
    made.tags = _tags(fields, _MESSAGE_OPTIONS)
    check_message(made)
    return made


def _field(fields: _Fields, oneofs: list[str], new: bool) -> Field:
    kind, oneof = _number(fields, 5), _number(fields, 9)
    if not 1 <= kind <= len(SCALARS) or not _text(fields, 1) or not 0 <= oneof <= len(oneofs):
        raise ProtobufSchemaError("is not a descriptor of Protobuf")
    made = Field(_text(fields, 1), _number(fields, 3), SCALARS[kind - 1], _text(fields, 6))
    optional = _number(fields, 17) != 0  # a oneof of its own, which nobody has written
    made.oneof = oneofs[oneof] if 9 in fields and oneof < len(oneofs) and not optional else ""
    made.repeated = _number(fields, 4) == _REPEATED
    made.present = not made.repeated and (not new or optional or bool(made.oneof))
    made.default = _text(fields, 7) if 7 in fields else None
    if made.default is not None and made.kind == "string":  # the one default that is not escaped here
        made.default = made.default.replace("\\", "\\\\")
    made.tags = _tags(fields, _FIELD_OPTIONS)
    return made


def _tags(fields: _Fields, options: int) -> tuple[str, ...]:
    """Return the tags among the options of a message or field, which have this number."""
    given = _fields(_bytes(fields[options][-1])) if options in fields else {}
    metas = [_fields(_bytes(meta)) for meta in given.get(_META, ())]
    return tuple(_bytes(tag).decode("utf-8", "replace") for meta in metas for tag in meta.get(_TAGS, ()))


def _enum(fields: _Fields, scope: str, file: File) -> None:
    made = Enum(_full(fields, scope))
    file.add(made)
    for each in fields.get(2, ()):
        value = _fields(_bytes(each))
        made.names.setdefault(_number(value, 2), _text(value, 1))
