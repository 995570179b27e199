"""Avro: from what leaves to messages, and the schema of these.

Every field of a box or row may be null, which is its default: fields come and go with a policy, and readers of either
version read both.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from microdata import Attribute, Schema, Show
from microdata.columns import is_text, is_valid
from service.codec._avro_kernels import write_longs, write_texts, write_words
from service.codec.avro_schema import MOST_CALCULATED_DIGITS
from service.codec.binary_messages import BinaryMessages, column_of, field_names, filled, is_whole, space_of, texts_of
from service.codec.events import EXACT_MOMENT, Emit, micros_of

_WHOLE = b"\x02\x02"
"""The first part of one."""
_UNITS = {"ms": "millis", "us": "micros"}
_PLAIN = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.uint64(): "string",  # Avro has no such number
    pa.float32(): "float",
    pa.float64(): "double",
    pa.large_string(): "string",
    pa.large_binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
}


def derived_schema(schema: Schema, public: Mapping[str, pa.DataType], emit: Emit, show: Show, topic: str) -> str:
    """The schema of what leaves for this topic, where public fields have columns of these types."""
    made, names = set[str](), field_names(schema, "Avro")
    quasi = [_field(names[attribute.name], _shown(attribute, show, made)) for attribute in schema.quasi]
    row = [_field(names[attribute.name], _value(attribute)) for attribute in schema.sensitive]
    row += [_field(names[name], _type(public[name])) for name in schema.public]
    space = space_of(topic)
    if emit == "tuples":
        return _text({"type": "record", "name": "Tuple", "namespace": space, "fields": [*quasi, *row]})
    fields: list[Any] = [
        {"name": "cluster", "type": "string"},
        {"name": "part", "type": "int", "default": 1},
        {"name": "parts", "type": "int", "default": 1},
        {"name": "generalization", "type": {"type": "record", "name": "Generalization", "fields": quasi}},
        {"name": "rows", "type": {"type": "array", "items": {"type": "record", "name": "Row", "fields": row}}},
    ]
    return _text({"type": "record", "name": "Cluster", "namespace": space, "fields": fields})


def _text(schema: Any) -> str:
    return json.dumps(schema, separators=(",", ":"))


def _field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def _shown(attribute: Attribute, show: Show, made: set[str]) -> Any:
    """A category is a text, a number two ends, or itself where means are shown."""
    if not attribute.numeric:
        return "string"
    if show == "mean":
        return "double"
    whole = is_whole(attribute)
    name, ends = ("WholeInterval", "long") if whole else ("Interval", "double")
    if name in made:
        return name
    made.add(name)
    fields = [{"name": "low", "type": ends}, {"name": "high", "type": ends}]
    return {"type": "record", "name": name, "fields": fields}


def _value(attribute: Attribute) -> str:
    return ("long" if is_whole(attribute) else "double") if attribute.numeric else "string"


def _type(kind: pa.DataType) -> Any:
    """The Avro type of a column; public values of JSON are texts of JSON."""
    if isinstance(kind, pa.BaseExtensionType):
        return "string"
    if kind == EXACT_MOMENT:
        return _type(pa.timestamp("us", "UTC"))
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": f"{'' if kind.tz else 'local-'}timestamp-{_UNITS[kind.unit]}"}
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    return _PLAIN[kind]


class AvroMessages(BinaryMessages):
    """Encodes what leaves, of one schema, in messages of at most so many bytes, each behind this prefix."""

    def __init__(self, schema: Schema, message_bytes: int, prefix: bytes = b"") -> None:
        labels = [[_optional(value, whole=is_whole(a)) for value in a.domain()] for a in schema.sensitive]
        super().__init__(schema, labels, message_bytes, prefix)

    def public_bytes(self, place: int, column: pa.Array) -> pa.Array:
        """Each value, behind the branch of a union with null in which it is."""
        del place
        return _written(column)

    def box_bytes(self, place: int, column: pa.Array) -> Iterator[pa.Array]:
        """Two ends, a point or a name."""
        if pa.types.is_list(column.type):
            ends = column.values.cast(pa.int64() if self.whole[place] else pa.float64())
            yield from (_written(ends[0::2]), _written(ends[1::2], optional=False))
        else:
            yield _written(column if is_text(column.type) else column.cast(pa.float64()))

    def cluster(self, name: bytes, part: int, parts: int, box: bytes, count: int, rows: bytes) -> bytes:
        """One record."""
        head = _long(len(name)) + name + (_WHOLE if parts == 1 else _long(part) + _long(parts)) + box
        return head + _long(count) + rows + b"\0" if count else head + b"\0"


def _optional(value: str | float, *, whole: bool) -> bytes:
    """A value behind the branch of a union with null in which it is."""
    if isinstance(value, str):
        text = value.encode()
        return b"\x02" + _long(len(text)) + text
    return b"\x02" + (_long(int(value)) if whole else struct.pack("<d", value))


def _long(value: int) -> bytes:
    """A whole number as Avro writes it."""
    rest = (value << 1) ^ (value >> 63)
    written = bytearray()
    while rest > 127:
        written.append(rest & 127 | 128)
        rest >>= 7
    written.append(rest)
    return bytes(written)


def _written(column: pa.Array, *, optional: bool = True) -> pa.Array:
    """The bytes of each value, if optional behind the branch of a union with null in which it is."""
    if column.type == EXACT_MOMENT:
        column = micros_of(column)
    kind, valid = column.type, is_valid(column)
    if pa.types.is_null(kind):
        return column_of(*write_longs(np.zeros(len(column), np.int64), valid, optional))
    if is_text(kind) or kind == pa.uint64():
        places, data = texts_of(column)
        return column_of(*write_texts(data, places, valid))
    if pa.types.is_decimal(kind):
        words = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, 2)[column.offset :][: len(column)]
        size = 8 if kind.precision <= MOST_CALCULATED_DIGITS else 16
        bytes_ = np.empty((len(column), 1 + size), np.uint8)
        bytes_[:, 0] = 2 * size  # as Avro writes a length
        bytes_[:, 1:] = np.ascontiguousarray(words[:, : size // 8][:, ::-1].astype(">i8")).view(np.uint8)
        return column_of(*write_words(bytes_.reshape(-1), 1 + size, valid, optional))
    if pa.types.is_boolean(kind):
        return column_of(*write_words(filled(column, False).astype(np.uint8), 1, valid, optional))  # noqa: FBT003 - a value
    if pa.types.is_floating(kind):
        numbers = filled(column, 0.0).astype(kind.to_pandas_dtype())
        return column_of(*write_words(numbers.view(np.uint8), numbers.itemsize, valid, optional))
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    return column_of(*write_longs(filled(column.view(width), 0).astype(np.int64), valid, optional))


def warm_up() -> None:
    """Write a value of each kind, so that what writes is compiled."""
    for column in (pa.array([1]), pa.array([1.0]), pa.array(["a"], pa.large_string())):
        _written(column)
