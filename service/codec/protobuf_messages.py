"""Protobuf: from what leaves to messages, and the schema of these.

The number of a field follows from its name alone, and every field of a box or row may be absent: fields come and go
with a policy, and readers of either version read both.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microdata import Attribute, Schema, SchemaError, Show
from microdata.columns import is_text, is_valid
from service.codec._protobuf_kernels import (
    EIGHT_BYTES,
    FOUR_BYTES,
    LENGTH,
    VARINT,
    write_texts,
    write_varints,
    write_words,
)
from service.codec.binary_messages import (
    BinaryMessages,
    column_of,
    field_names,
    filled,
    is_whole,
    joined,
    space_of,
    texts_of,
)
from service.codec.events import EXACT_MOMENT, Emit
from service.codec.protobuf_schema import MOMENT

_FIRST_NUMBER, _LAST_NUMBER = 20_000, (1 << 25) - 1
"""Of fields that a policy names. Protobuf keeps those below for itself; above, a tag would take five bytes."""
_CLUSTER, _PART, _PARTS, _BOX, _ROWS = range(1, 6)
_LOW, _HIGH = 1, 2
_SECOND = 1_000_000
_PLAIN = {
    pa.bool_(): "bool",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.uint64(): "uint64",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.large_binary(): "bytes",
}
"""Everything else is a text."""
_MOMENT = "google.protobuf.Timestamp"


def number_of(name: str) -> int:
    """The number of the field with this name, in every version of every policy."""
    hashed = int.from_bytes(sha256(name.encode()).digest()[:8], "big")
    return _FIRST_NUMBER + hashed % (_LAST_NUMBER - _FIRST_NUMBER + 1)


def derived_protobuf(schema: Schema, public: Mapping[str, pa.DataType], emit: Emit, show: Show, topic: str) -> str:
    """The schema of what leaves for this topic, where public fields have columns of these types."""
    names = field_names(schema, "Protobuf")
    quasi = {names[attribute.name]: _shown(attribute, show) for attribute in schema.quasi}
    row = {names[attribute.name]: _value(attribute) for attribute in schema.sensitive}
    row |= {names[name]: _type(public[name]) for name in schema.public}
    parts = ['syntax = "proto3";', f"package {space_of(topic)};"]
    if _MOMENT in row.values():
        parts.append('import "google/protobuf/timestamp.proto";')
    if emit == "tuples":
        parts.append(_message("Tuple", quasi | row))
    else:
        heads = ("string cluster", "int32 part", "int32 parts", "Generalization generalization", "repeated Row rows")
        lines = [f"  {head} = {number};" for number, head in enumerate(heads, start=_CLUSTER)]
        parts.append("\n".join(["message Cluster {", *lines, "}"]))
        parts += [_message("Generalization", quasi), _message("Row", row)]
    for name, ends in (("WholeInterval", "int64"), ("Interval", "double")):
        if name in quasi.values():
            parts.append(f"message {name} {{\n  {ends} low = {_LOW};\n  {ends} high = {_HIGH};\n}}")
    return "\n".join(parts) + "\n"


def _message(name: str, fields: Mapping[str, str]) -> str:
    numbers = [number_of(own) for own in fields]
    for own, number in zip(fields, numbers, strict=True):
        if numbers.count(number) > 1:
            raise SchemaError("has the number of another field in Protobuf; give one of them another name", at=own)
    lines = [f"  optional {kind} {own} = {number_of(own)};" for own, kind in fields.items()]
    return "\n".join([f"message {name} {{", *lines, "}"])


def _shown(attribute: Attribute, show: Show) -> str:
    """A category is a text, a number two ends, or itself where means are shown."""
    if not attribute.numeric:
        return "string"
    if show == "mean":
        return "double"
    return "WholeInterval" if is_whole(attribute) else "Interval"


def _value(attribute: Attribute) -> str:
    return ("int64" if is_whole(attribute) else "double") if attribute.numeric else "string"


def _type(kind: pa.DataType) -> str:
    if kind == EXACT_MOMENT or (pa.types.is_timestamp(kind) and kind.tz):
        return _MOMENT
    return _PLAIN.get(kind, "string")


class ProtobufMessages(BinaryMessages):
    """Encodes what leaves, of one schema, in messages of at most so many bytes, each behind this prefix."""

    def __init__(self, schema: Schema, message_bytes: int, prefix: bytes = b"") -> None:
        names = field_names(schema, "Protobuf")
        labels = [
            [_label(number_of(names[a.name]), value, whole=is_whole(a)) for value in a.domain()]
            for a in schema.sensitive
        ]
        super().__init__(schema, labels, message_bytes, prefix)
        self._quasi = [number_of(names[attribute.name]) for attribute in schema.quasi]
        self._public = [number_of(names[name]) for name in schema.public]

    def public_bytes(self, place: int, column: pa.Array) -> pa.Array:
        """Each value behind its tag."""
        return _written(self._public[place], column)

    def box_bytes(self, place: int, column: pa.Array) -> Iterator[pa.Array]:
        """A message of two ends, a point or a name."""
        if pa.types.is_list(column.type):
            ends = column.values.cast(pa.int64() if self.whole[place] else pa.float64())
            inner = joined([_written(_LOW, ends[0::2]), _written(_HIGH, ends[1::2])])
            yield _written(self._quasi[place], inner)
        else:
            yield _written(self._quasi[place], column if is_text(column.type) else column.cast(pa.float64()))

    def row_bytes(self, rows: pa.Array) -> pa.Array:
        """A message among the rows."""
        return _written(_ROWS, rows)

    def cluster(self, name: bytes, part: int, parts: int, box: bytes, count: int, rows: bytes) -> bytes:
        """One message."""
        del count
        head = tag(_CLUSTER, LENGTH) + _varint(len(name)) + name
        head += tag(_PART, VARINT) + _varint(part) + tag(_PARTS, VARINT) + _varint(parts)
        return head + tag(_BOX, LENGTH) + _varint(len(box)) + box + rows


@cache
def tag(number: int, wire: int) -> bytes:
    """What stands in front of a value of this field."""
    return _varint(number << 3 | wire)


def _varint(value: int) -> bytes:
    """A whole number as Protobuf writes it; one below zero as if it were of 64 bits without a sign."""
    rest, written = value & (1 << 64) - 1, bytearray()
    while rest > 127:
        written.append(rest & 127 | 128)
        rest >>= 7
    written.append(rest)
    return bytes(written)


def _label(number: int, value: str | float, *, whole: bool) -> bytes:
    if isinstance(value, str):
        text = value.encode()
        return tag(number, LENGTH) + _varint(len(text)) + text
    if whole:
        return tag(number, VARINT) + _varint(int(value))
    return tag(number, EIGHT_BYTES) + struct.pack("<d", value)


def _head(number: int, wire: int) -> NDArray[np.uint8]:
    return np.frombuffer(tag(number, wire), np.uint8)


def _written(number: int, column: pa.Array) -> pa.Array:
    """The bytes of each value behind the tag of its field; nothing where it is null."""
    kind, valid = column.type, is_valid(column)
    if kind == EXACT_MOMENT:
        column = _moments(*(filled(part, 0) for part in column.flatten()))
    elif pa.types.is_timestamp(kind) and kind.tz:
        micros = filled(column.cast(MOMENT).cast(pa.int64()), 0)
        column = _moments(micros // _SECOND, micros % _SECOND * 1_000)
    elif kind not in _PLAIN or is_text(kind):
        pass
    elif pa.types.is_boolean(kind):
        flags = filled(column, False).astype(np.int64)  # noqa: FBT003 - a value
        return column_of(*write_varints(flags, valid, _head(number, VARINT)))
    elif pa.types.is_floating(kind):
        numbers = filled(column, 0.0).astype(kind.to_pandas_dtype())
        wire = FOUR_BYTES if numbers.itemsize == 4 else EIGHT_BYTES
        return column_of(*write_words(numbers.view(np.uint8), numbers.itemsize, valid, _head(number, wire)))
    else:
        return column_of(*write_varints(filled(column, 0).astype(np.int64), valid, _head(number, VARINT)))
    places, data = texts_of(column)
    return column_of(*write_texts(data, places, valid, _head(number, LENGTH)))


def _moments(seconds: NDArray[np.int64], nanos: NDArray[np.integer]) -> pa.Array:
    """Messages of seconds and nanoseconds."""
    every = np.ones(len(seconds), bool)
    parts = (1, seconds), (2, nanos.astype(np.int64))
    return joined([column_of(*write_varints(part, every, _head(number, VARINT))) for number, part in parts])


def warm_up() -> None:
    """Write a value of each kind, so that what writes is compiled."""
    for column in (pa.array([1]), pa.array([1.0]), pa.array(["a"], pa.large_string())):
        _written(1, column)
