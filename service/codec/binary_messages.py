"""What writers of Avro and of Protobuf have in common: the bytes of rows and boxes are joined from those of columns.

Of each row the bytes are made once; a cluster takes those of its rows as they are.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from microdata import Attribute, Schema, SchemaError
from microdata.columns import is_text
from microdata.generalizations import box_columns
from service.codec.events import Emit, Leaving, plain_values

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FRAME = 256
"""More bytes than what stands around box and rows."""
_LONGEST = 40
"""More than any number or moment, or what is in front of a text."""


def field_names(schema: Schema, format_name: str) -> dict[str, str]:
    """What the fields that leave are called in this format."""
    fields = [*(a.name for a in schema.quasi), *(a.name for a in schema.sensitive), *schema.public]
    names = {name: name.replace(".", "_") for name in fields}
    for name, own in names.items():
        if not _NAME.fullmatch(own):
            raise SchemaError(f"{format_name} has names of ASCII letters, digits and underscores only", at=name)
    for own in names.values():
        if list(names.values()).count(own) > 1:
            raise SchemaError(f"two fields have this name in {format_name}, where a dot becomes an underscore", at=own)
    return names


def space_of(topic: str) -> str:
    """The namespace of what leaves for a topic."""
    own = re.sub(r"[^A-Za-z0-9]+", "_", topic).strip("_").lower() or "topic"
    return f"portcullis.{'_' if own[0].isdigit() else ''}{own}"


def largest_row(schema: Schema, message_bytes: int) -> int:
    """The most bytes that public texts of one row may take, so that it surely fits into one message."""
    room = _FRAME + _LONGEST * (2 * len(schema.quasi) + len(schema.public) + len(schema.sensitive))
    room += sum(max((len(name.encode()) for name in a.names), default=0) for a in schema.quasi)
    room += sum(max(len(str(value).encode()) for value in a.domain()) for a in schema.sensitive)
    return message_bytes - room


def is_whole(attribute: Attribute) -> bool:
    """Whether an attribute has whole numbers only."""
    return bool(getattr(attribute, "integer", False))


class BinaryMessages(ABC):
    """Encodes what leaves, of one schema, in messages of at most so many bytes, each behind this prefix."""

    def __init__(
        self, schema: Schema, labels: Sequence[Sequence[bytes]], message_bytes: int, prefix: bytes = b""
    ) -> None:
        self._limit = message_bytes - _FRAME
        self._prefix = prefix
        self.whole = [is_whole(attribute) for attribute in schema.quasi]
        """Which numbers of a box are whole."""
        self._labels = [pa.array(each, pa.large_binary()) for each in labels]

    @abstractmethod
    def public_bytes(self, place: int, column: pa.Array) -> pa.Array:
        """What stands in a row for each value of this public field."""

    @abstractmethod
    def box_bytes(self, place: int, column: pa.Array) -> Iterator[pa.Array]:
        """What stands in a box for each value of this quasi-identifier, in columns to be joined."""

    @abstractmethod
    def cluster(self, name: bytes, part: int, parts: int, box: bytes, count: int, rows: bytes) -> bytes:
        """A message with these rows."""

    def row_bytes(self, rows: pa.Array) -> pa.Array:
        """What stands in a cluster for each row."""
        return rows

    def encode(self, leaving: Leaving, emit: Emit) -> Iterator[list[bytes]]:
        """The messages of each cluster."""
        rows = self._rows(leaving)
        offsets, data = texts_of(self.row_bytes(rows) if emit == "clusters" else rows)
        write, starts = self._clusters if emit == "clusters" else self._tuples, leaving.starts.tolist()
        places, view = offsets.tolist(), data.data
        for number, first, end, box in zip(
            leaving.ids.tolist(), starts[:-1], starts[1:], self._boxes(leaving), strict=True
        ):
            yield list(write(number, box, places[first : end + 1], view))

    def _rows(self, leaving: Leaving) -> pa.Array:
        """The bytes of all rows."""
        columns = [labels.take(pa.array(leaving.sensitive[:, n])) for n, labels in enumerate(self._labels)]
        columns += [self.public_bytes(n, plain_values(column)) for n, column in enumerate(leaving.public)]
        return joined(columns) if columns else pa.array([b""] * leaving.rows, pa.large_binary())

    def _boxes(self, leaving: Leaving) -> list[bytes]:
        """The bytes of each box."""
        columns = box_columns(leaving.boxes, leaving.show).values()
        boxes: list[bytes] = joined(
            [written for place, column in enumerate(columns) for written in self.box_bytes(place, column)]
        ).to_pylist()
        return boxes

    def _clusters(self, number: int, box: bytes, places: Sequence[int], data: memoryview) -> Iterator[bytes]:
        """One message, or several parts where one would exceed the limit."""
        groups = list(_groups(places, self._limit - len(box)))
        name = b"%016x" % number
        for part, (first, end) in enumerate(groups, start=1):
            rows = bytes(data[places[first] : places[end]])
            yield self._prefix + self.cluster(name, part, len(groups), box, end - first, rows)

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


def joined(columns: Sequence[pa.Array]) -> pa.Array:
    """The bytes of each row, one column behind the other."""
    return pc.binary_join_element_wise(*columns, pa.scalar(b"", pa.large_binary()))


def texts_of(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Where the text of each value begins, and the bytes of all."""
    wide = column if is_text(column.type) else column.cast(pa.large_string())
    wide = wide.cast(pa.large_binary())
    _, offsets, data = wide.buffers()
    places = np.frombuffer(offsets, np.int64)[wide.offset : wide.offset + len(wide) + 1]
    return places, np.frombuffer(data or b"", np.uint8)


def filled(column: pa.Array, value: Any) -> NDArray[Any]:
    """The values of a column, this one where there is none."""
    return np.ascontiguousarray(pc.fill_null(column, value).to_numpy(zero_copy_only=False))


def column_of(offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> pa.Array:
    """Bytes side by side as a column."""
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
