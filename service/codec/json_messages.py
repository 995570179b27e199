"""JSON: from what leaves to messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pyarrow as pa

from microdata import Attribute, Schema, Show, generalizations
from service.codec.events import Emit, Leaving

JSON_VALUE = pa.json_(pa.large_string())
"""Public values of JSON records: any value, as the very text that came in."""
_FRAME = 256
"""More than what stands around box and rows."""
_MOST_BOXES = 50_000
"""Boxes whose texts are known at a time."""
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
        self._known: dict[bytes, bytes] = {}
        """Texts of boxes that have left."""
        self._shown: Show = "interval"

    def encode(self, leaving: Leaving, emit: Emit) -> Iterator[list[bytes]]:
        """The messages of each cluster."""
        texts, boxes, starts = self._rows(leaving), self._boxes(leaving), leaving.starts.tolist()
        if emit == "tuples":  # one flat record per row, which does not say of which cluster
            frame = b"{%b,%b}" if self._row else b"{%b%b}"
            for first, end, box in zip(starts[:-1], starts[1:], boxes, strict=True):
                inner = box[1:-1]
                yield [frame % (inner, member) for member in texts[first:end]]
            return
        for number, first, end, box in zip(leaving.ids.tolist(), starts[:-1], starts[1:], boxes, strict=True):
            yield list(self._cluster(number, box, texts[first:end]))

    def _boxes(self, leaving: Leaving) -> list[bytes]:
        """The text of each box. Where rows leave alone, one after the other, the same boxes leave again and again."""
        sides = np.ascontiguousarray(np.hstack([leaving.boxes.lo, leaving.boxes.hi]))
        keys = sides.view(f"V{sides.itemsize * sides.shape[1]}").ravel().tolist()
        if leaving.show != self._shown or len(self._known) > _MOST_BOXES:
            self._known, self._shown = {}, leaving.show
        known = self._known
        new = {key: place for place, key in enumerate(keys) if key not in known}
        if new:
            places = np.fromiter(new.values(), np.int64, len(new))
            boxes = replace(leaving.boxes, lo=leaving.boxes.lo[places], hi=leaving.boxes.hi[places])
            known |= zip(new, map(msgspec.json.encode, generalizations(boxes, leaving.show)), strict=True)
        return [known[key] for key in keys]

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
