"""JSON: from what leaves to messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from microdata import Attribute, Schema, generalizations
from service.codec.events import Emit, Leaving

JSON_VALUE = pa.json_(pa.large_string())
"""Public values of JSON records: any value, as the very text that came in."""
_FRAME = 256
"""More than what stands around box and rows."""
_LONGEST_INTERVAL = 64
"""Two numbers as JSON."""


class JsonMessages:
    """Encodes what leaves, of one schema, in messages of at most so many bytes."""

    def __init__(self, schema: Schema, message_bytes: int) -> None:
        self._limit = message_bytes
        names = [msgspec.json.encode(name) for name in (*schema.roles()["sensitive"], *schema.public)]
        self._row = b",".join(name.replace(b"%", b"%%") + b":%b" for name in names)
        self._labels = [_value_texts(attribute) for attribute in schema.sensitive]
        head = sum(len(msgspec.json.encode(a.name)) + _longest(a) for a in schema.quasi)
        room = _FRAME + head + sum(map(len, names)) + sum(int(max(map(len, texts))) for texts in self._labels)
        self.largest_record = message_bytes - room
        """The largest record whose row surely fits into one message."""

    def encode(self, leaving: Leaving, emit: Emit) -> Iterator[list[bytes]]:
        """The messages of each cluster."""
        texts, write = self._rows(leaving), self._cluster if emit == "clusters" else self._tuples
        boxes = map(msgspec.json.encode, generalizations(leaving.boxes, leaving.show))
        starts = leaving.starts.tolist()
        for number, first, end, box in zip(leaving.ids.tolist(), starts[:-1], starts[1:], boxes, strict=True):
            yield list(write(number, box, texts[first:end]))

    def _rows(self, leaving: Leaving) -> list[bytes]:
        """The members of the row objects, without braces."""
        columns: list[Iterable[bytes]] = [
            texts[leaving.sensitive[:, place]] for place, texts in enumerate(self._labels)
        ]
        columns += [_public_texts(column) for column in leaving.public]
        template = self._row
        return [template % values for values in zip(*columns, strict=True)] if columns else [b""] * leaving.rows

    def _cluster(self, number: int, box: bytes, members: Sequence[bytes]) -> Iterator[bytes]:
        """One message, or several parts where one would exceed the limit."""
        groups = list(_groups(members, self._limit - _FRAME - len(box)))
        for part, group in enumerate(groups, start=1):
            place = b',"part":%d,"parts":%d' % (part, len(groups)) if len(groups) > 1 else b""
            rows = b"},{".join(group)
            yield b'{"cluster":"%016x"%b,"generalization":%b,"rows":[{%b}]}' % (number, place, box, rows)

    def _tuples(self, number: int, box: bytes, members: Sequence[bytes]) -> Iterator[bytes]:
        """One flat record per row, which does not say of which cluster."""
        del number
        inner = box[1:-1]
        for member in members:
            yield b"{%b}" % b",".join(filter(None, (inner, member)))


def _groups(members: Sequence[bytes], limit: int) -> Iterator[Sequence[bytes]]:
    """Rows in runs whose joined length stays below the limit."""
    if sum(map(len, members)) + 3 * len(members) <= limit:
        yield members
        return
    group: list[bytes] = []
    size = 0
    for member in members:
        if group and size + len(member) + 3 > limit:
            yield group
            group, size = [], 0
        group.append(member)
        size += len(member) + 3
    yield group


def _public_texts(column: pa.Array) -> list[bytes]:
    """JSON text of public values, of whatever type they are."""
    if column.type == JSON_VALUE:
        texts: list[bytes] = column.storage.cast(pa.large_binary()).to_pylist()
        return texts
    return [msgspec.json.encode(value) for value in column.to_pylist()]


def _value_texts(attribute: Attribute) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    """JSON text of each value of a sensitive attribute, by its code."""
    values = attribute.domain()
    texts = np.empty(len(values), object)
    texts[:] = [msgspec.json.encode(value) for value in values]
    return texts


def _longest(attribute: Attribute) -> int:
    """Upper bound of the JSON text of a generalized value."""
    return max((len(msgspec.json.encode(name)) for name in attribute.names), default=_LONGEST_INTERVAL)
