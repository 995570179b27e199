"""What left, read again: a record of an output topic in any format as the line of JSON that says the same.

For who looks at what is published: rehearsals and evidence. Record by record, since there are few.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec

from microdata import DataError
from service.codec import _avro_kernels as avro_wire
from service.codec import avro_schema, protobuf_schema
from service.codec.avro_schema import AvroSchemaError, Type
from service.codec.binary_messages import field_names
from service.codec.events import WIRE_PREFIX
from service.codec.formats import AVRO, JSON_SCHEMA, PROTOBUF, Route
from service.codec.protobuf import FIRST_MESSAGE
from service.codec.protobuf_types import Enum, Field, Message, ProtobufSchemaError
from service.codec.protobuf_wire import WireError, walk

_DEEPEST = 16
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WRONG = (WireError, ValueError, TypeError, KeyError, IndexError, OverflowError, struct.error, RecursionError)
"""What reading something else may end in."""


class LeftRecords:
    """Reads records of a stream's output; a registry is asked for their schemas where they carry an id."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._side = route.format.output
        self._read: dict[bytes, Callable[[bytes], Any]] = {}
        self._names = {}
        if self._side.type in {AVRO, PROTOBUF}:
            self._names = {own: name for name, own in field_names(route.schema, self._side.type).items()}
        of_json = route.format.input.type not in {AVRO, PROTOBUF}
        self._texts = {*route.schema.public} if of_json and self._names else set[str]()
        """Public values that are texts of JSON."""

    @property
    def clusters(self) -> bool:
        """Whether a record is a cluster, or a part of one."""
        return self._route.emit == "clusters"

    def line(self, value: bytes) -> bytes:
        """One record, without the end of the line."""
        if self._side.type not in {AVRO, PROTOBUF}:
            prefixed = self._side.type == JSON_SCHEMA
            return (value[WIRE_PREFIX:] if prefixed else value).replace(b"\n", b" ")
        try:
            return msgspec.json.encode(self._message(self._object(value)))
        except _WRONG:
            raise DataError(
                f"topic {self._route.output!r}: has a record that is not of a schema that this policy writes"
            ) from None

    def _message(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """As it is written as JSON."""
        if self._route.emit == "tuples":
            return self._fields(found)
        parts = {"part": found["part"], "parts": found["parts"]} if found["parts"] > 1 else {}
        box, rows = self._fields(found["generalization"]), [self._fields(row) for row in found["rows"]]
        return {"cluster": found["cluster"], **parts, "generalization": box, "rows": rows}

    def _fields(self, found: Mapping[str, Any]) -> dict[str, Any]:
        made = {}
        for own, value in found.items():
            name = self._names.get(own, own)
            if isinstance(value, dict):
                made[name] = [value["low"], value["high"]]
            else:
                made[name] = msgspec.json.decode(value) if name in self._texts and value is not None else value
        return made

    def _object(self, value: bytes) -> Any:
        if self._side.schema is not None:
            return self._reader(b"", self._side.schema, ())(value)
        head = value[:WIRE_PREFIX]
        if len(head) < WIRE_PREFIX or head[0]:
            raise WireError
        read = self._read.get(head)
        if read is None:
            registered = self._route.asked().by_id(int.from_bytes(head[1:], "big"))
            if registered is None:
                raise WireError
            read = self._reader(head, registered.text, registered.references)
        return read(value[WIRE_PREFIX:])

    def _reader(self, head: bytes, text: str, references: tuple[str, ...]) -> Callable[[bytes], Any]:
        """How records of a schema are read; a stream has few of them."""
        found = self._read.get(head)
        if found is None:
            try:
                found = self._reader_of(text, references, prefixed=bool(head))
            except (AvroSchemaError, ProtobufSchemaError):
                raise WireError from None
            self._read[head] = found
        return found

    def _reader_of(self, text: str, references: tuple[str, ...], *, prefixed: bool) -> Callable[[bytes], Any]:
        if self._side.type == AVRO:
            record = avro_schema.parse(text, references)
            return lambda data: _avro_record(record, data)
        file = protobuf_schema.parse(text, references)
        first = protobuf_schema.message_of(file, None)
        if not prefixed:
            return lambda data: _message(first, data)

        def behind_its_place(data: bytes) -> Any:
            if data[:1] != FIRST_MESSAGE:
                raise WireError
            return _message(first, data[1:])

        return behind_its_place


# -- Avro --------------------------------------------------------------------------------------------------------------


def _avro_record(record: Type, data: bytes) -> Any:
    value, end = _avro(record, data, 0, 0)
    if end != len(data):
        raise WireError
    return value


def _avro(one: Type, data: bytes, at: int, depth: int) -> tuple[Any, int]:
    """A value and where it ends."""
    if depth > _DEEPEST:
        raise WireError
    if one.kind == avro_wire.UNION:
        branch, at = _long(data, at)
        if not 0 <= branch < len(one.inner):
            raise WireError
        return _avro(one.inner[branch], data, at, depth + 1)
    if one.kind == avro_wire.ARRAY:
        return _array(one, data, at, depth)
    if one.kind != avro_wire.RECORD:
        return _plain(one, data, at)
    fields = {}
    for each in one.fields:
        fields[each.name], at = _avro(each.type, data, at, depth + 1)
    return fields, at


def _plain(one: Type, data: bytes, at: int) -> tuple[Any, int]:
    match one.kind:
        case avro_wire.NULL:
            return None, at
        case avro_wire.BOOLEAN:
            return bool(data[at]), at + 1
        case avro_wire.INT | avro_wire.LONG:
            number, at = _long(data, at)
            return _logical(one, number), at
        case avro_wire.FLOAT | avro_wire.DOUBLE:
            form, size = ("<f", 4) if one.kind == avro_wire.FLOAT else ("<d", 8)
            return struct.unpack_from(form, data, at)[0], at + size
        case avro_wire.BYTES:
            size, at = _long(data, at)
            if not 0 <= size <= len(data) - at:
                raise WireError
            return _logical(one, data[at : at + size]), at + size
    raise WireError  # nothing else leaves


def _array(one: Type, data: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    values: list[Any] = []
    while True:
        count, at = _long(data, at)
        if not count:
            return values, at
        # Rows without a field take no bytes, but a message of ours has no more of them than bytes.
        if not 0 < count <= len(data) - len(values):
            raise WireError
        for _ in range(count):
            value, at = _avro(one.inner[0], data, at, depth + 1)
            values.append(value)


def _long(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return (value >> 1) ^ -(value & 1), at
    raise WireError


def _logical(one: Type, value: Any) -> Any:
    if one.logical == "decimal":
        return avro_schema.decimal_of(value, one)
    if one.logical == "date":
        return date(1970, 1, 1) + timedelta(days=value)
    if one.logical.startswith(("time-", "timestamp-", "local-")):
        since = timedelta(**{"milliseconds" if one.logical.endswith("millis") else "microseconds": value})
        moment = _EPOCH + since
        if one.logical.startswith("time-"):
            return moment.time()
        return moment if one.logical.startswith("timestamp-") else moment.replace(tzinfo=None)
    return value.decode() if one.name == "string" else value


# -- Protobuf ----------------------------------------------------------------------------------------------------------


def _message(message: Message, data: bytes, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise WireError
    fields = {each.number: each for each in message.fields}
    found: dict[str, Any] = {each.name: _absent(each) for each in message.fields}
    for number, value in walk(data):
        each = fields.get(number)
        if each is None:
            raise WireError
        read = _value(each, value, depth)
        if each.repeated:
            found[each.name].append(read)
        else:
            found[each.name] = read
    if message.full_name == "google.protobuf.Timestamp":
        return _EPOCH + timedelta(seconds=found["seconds"], microseconds=found["nanos"] // 1_000)
    return found


def _absent(each: Field) -> Any:
    if each.repeated:
        return []
    if each.present:
        return None
    return {"string": "", "bytes": b"", "bool": False}.get(each.kind, 0)


def _value(each: Field, value: int | bytes, depth: int) -> Any:
    if isinstance(each.type, Message) and isinstance(value, bytes):
        return _message(each.type, value, depth + 1)
    if isinstance(each.type, Enum) or each.kind in {"group", ""}:
        raise WireError  # neither leaves
    if isinstance(value, bytes):
        match each.kind:
            case "string":
                return value.decode()
            case "bytes":
                return value
            case "double" | "float":
                return struct.unpack("<d" if each.kind == "double" else "<f", value)[0]
        raise WireError
    if each.kind == "bool":
        return bool(value)
    if each.kind not in {"int32", "int64", "uint64"}:
        raise WireError
    return value - (1 << 64) if each.kind != "uint64" and value >> 63 else value
