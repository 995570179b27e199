"""Avro: from what leaves to messages, and the schema of these.

Every field of a box or row may be null, which is its default: fields come and go with a policy, and readers of either
version read both. Of each row the bytes are joined from columns; a cluster takes those of its rows as they are.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from microdata import Attribute, Schema, SchemaError, Show
from microdata.columns import is_text, is_valid
from microdata.generalizations import box_columns
from service.codec._avro_kernels import write_longs, write_texts, write_words
from service.codec.events import Emit, Leaving, plain_values

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FRAME = 256
"""More than what stands around box and rows."""
_LONGEST = 24
"""More than any number, or what is in front of a text."""
_WHOLE = b"\x02\x02"
"""The first part of one."""
_UNITS = {"ms": "millis", "us": "micros"}
_PLAIN = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
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
    made = set[str]()
    quasi = [_field(attribute.name, _shown(attribute, show, made)) for attribute in schema.quasi]
    row = [_field(attribute.name, _value(attribute)) for attribute in schema.sensitive]
    row += [_field(name, _type(public[name])) for name in schema.public]
    _refuse_twins([*quasi, *row])
    space = "portcullis." + (re.sub(r"[^A-Za-z0-9]+", "_", topic).strip("_").lower() or "topic")
    space = re.sub(r"\.(?=[0-9])", "._", space)
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
    own = name.replace(".", "_")
    if not _NAME.fullmatch(own):
        raise SchemaError("Avro has names of ASCII letters, digits and underscores only", at=name)
    return {"name": own, "type": ["null", kind], "default": None}


def _refuse_twins(fields: Sequence[Mapping[str, Any]]) -> None:
    names = [field["name"] for field in fields]
    for name in names:
        if names.count(name) > 1:
            raise SchemaError("two fields have this name in Avro, where a dot becomes an underscore", at=name)


def _shown(attribute: Attribute, show: Show, made: set[str]) -> Any:
    """A category is a text, a number two ends, or itself where means are shown."""
    if not attribute.numeric:
        return "string"
    if show == "mean":
        return "double"
    whole = _is_whole(attribute)
    name, ends = ("WholeInterval", "long") if whole else ("Interval", "double")
    if name in made:
        return name
    made.add(name)
    fields = [{"name": "low", "type": ends}, {"name": "high", "type": ends}]
    return {"type": "record", "name": name, "fields": fields}


def _is_whole(attribute: Attribute) -> bool:
    return bool(getattr(attribute, "integer", False))


def _value(attribute: Attribute) -> str:
    return ("long" if _is_whole(attribute) else "double") if attribute.numeric else "string"


def _type(kind: pa.DataType) -> Any:
    """The Avro type of a column; public values of JSON are texts of JSON."""
    if isinstance(kind, pa.BaseExtensionType):
        return "string"
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": f"{'' if kind.tz else 'local-'}timestamp-{_UNITS[kind.unit]}"}
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    return _PLAIN[kind]


def largest_row(schema: Schema, message_bytes: int) -> int:
    """The most bytes that public texts of one row may take, so that it surely fits into one message."""
    room = _FRAME + _LONGEST * (2 * len(schema.quasi) + len(schema.public) + len(schema.sensitive))
    room += sum(max((len(name.encode()) for name in a.names), default=0) for a in schema.quasi)
    room += sum(max(len(str(value).encode()) for value in a.domain()) for a in schema.sensitive)
    return message_bytes - room


class AvroMessages:
    """Encodes what leaves, of one schema, in messages of at most so many bytes, each behind this prefix."""

    def __init__(self, schema: Schema, message_bytes: int, prefix: bytes = b"") -> None:
        self._limit = message_bytes - _FRAME
        self._prefix = prefix
        self._whole = [_is_whole(attribute) for attribute in schema.quasi]
        self._labels = [
            pa.array([_optional(value, whole=_is_whole(a)) for value in a.domain()], pa.large_binary())
            for a in schema.sensitive
        ]

    def encode(self, leaving: Leaving, emit: Emit) -> Iterator[list[bytes]]:
        """The messages of each cluster."""
        offsets, data = self._rows(leaving)
        write = self._cluster if emit == "clusters" else self._tuples
        starts = leaving.starts.tolist()
        for number, first, end, box in zip(
            leaving.ids.tolist(), starts[:-1], starts[1:], self._boxes(leaving), strict=True
        ):
            yield list(write(number, box, offsets[first : end + 1], data))

    def _rows(self, leaving: Leaving) -> tuple[list[int], memoryview]:
        """The bytes of all rows, and where each begins."""
        columns = [labels.take(pa.array(leaving.sensitive[:, n])) for n, labels in enumerate(self._labels)]
        columns += [_written(plain_values(column)) for column in leaving.public]
        if not columns:
            return [0] * (leaving.rows + 1), memoryview(b"")
        joined = _joined(columns)
        _, offsets, data = joined.buffers()
        places = np.frombuffer(offsets, np.int64)[joined.offset : joined.offset + len(joined) + 1]
        return places.tolist(), memoryview(data or b"")

    def _boxes(self, leaving: Leaving) -> list[bytes]:
        """The bytes of each box."""
        columns = []
        for column, whole in zip(box_columns(leaving.boxes, leaving.show).values(), self._whole, strict=True):
            if pa.types.is_list(column.type):
                ends = column.values.cast(pa.int64() if whole else pa.float64())
                columns += [_written(ends[0::2]), _written(ends[1::2], optional=False)]
            else:
                columns.append(_written(column if is_text(column.type) else column.cast(pa.float64())))
        boxes: list[bytes] = _joined(columns).to_pylist()
        return boxes

    def _cluster(self, number: int, box: bytes, places: Sequence[int], data: memoryview) -> Iterator[bytes]:
        """One message, or several parts where one would exceed the limit."""
        groups = list(_groups(places, self._limit - len(box)))
        name = _long(16) + b"%016x" % number
        for part, (first, end) in enumerate(groups, start=1):
            place = _WHOLE if len(groups) == 1 else _long(part) + _long(len(groups))
            head = self._prefix + name + place + box
            rows = bytes(data[places[first] : places[end]])
            yield head + _long(end - first) + rows + b"\0" if end > first else head + b"\0"

    def _tuples(self, number: int, box: bytes, places: Sequence[int], data: memoryview) -> Iterator[bytes]:
        """One flat record per row, which does not say of which cluster."""
        del number
        head = self._prefix + box
        for first, end in pairwise(places):
            yield head + bytes(data[first:end])


def _groups(places: Sequence[int], limit: int) -> Iterator[tuple[int, int]]:
    """Rows in runs that take no more bytes than this."""
    first = 0
    for row in range(1, len(places)):
        if places[row] - places[first] > limit and row - 1 > first:
            yield first, row - 1
            first = row - 1
    yield first, len(places) - 1


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


def _joined(columns: Sequence[pa.Array]) -> pa.Array:
    """The bytes of each row, one column behind the other."""
    return pc.binary_join_element_wise(*columns, pa.scalar(b"", pa.large_binary()))


def _written(column: pa.Array, *, optional: bool = True) -> pa.Array:
    """The bytes of each value, if optional behind the branch of a union with null in which it is."""
    kind, valid = column.type, is_valid(column)
    if pa.types.is_null(kind):
        return _array(*write_longs(np.zeros(len(column), np.int64), valid, optional))
    if is_text(kind):
        wide = column.cast(pa.large_binary())
        _, offsets, data = wide.buffers()
        places = np.frombuffer(offsets, np.int64)[wide.offset : wide.offset + len(wide) + 1]
        return _array(*write_texts(np.frombuffer(data or b"", np.uint8), places, valid))
    if pa.types.is_decimal(kind):
        words = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, 2)[column.offset :][: len(column), 0]
        bytes_ = np.empty((len(column), 9), np.uint8)
        bytes_[:, 0] = 16  # eight bytes follow
        bytes_[:, 1:] = words.astype(">i8").reshape(-1, 1).view(np.uint8)
        return _array(*write_words(bytes_.reshape(-1), 9, valid, optional))
    if pa.types.is_boolean(kind):
        return _array(*write_words(_filled(column, False).astype(np.uint8), 1, valid, optional))  # noqa: FBT003 - a value
    if pa.types.is_floating(kind):
        numbers = _filled(column, 0.0).astype(kind.to_pandas_dtype())
        return _array(*write_words(numbers.view(np.uint8), numbers.itemsize, valid, optional))
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    return _array(*write_longs(_filled(column.view(width), 0).astype(np.int64), valid, optional))


def _filled(column: pa.Array, value: Any) -> NDArray[Any]:
    return np.ascontiguousarray(pc.fill_null(column, value).to_numpy(zero_copy_only=False))


def _array(offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def warm_up() -> None:
    """Write a value of each kind, so that what writes is compiled."""
    for column in (pa.array([1]), pa.array([1.0]), pa.array(["a"], pa.large_string())):
        _written(column)
