"""JSON: from what leaves to messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microdata import Attribute, Schema, Show, generalizations
from service.codec.events import EXACT_MOMENT, Emit, Leaving, micros_of

Texts: TypeAlias = NDArray[np.object_]
"""A column of bytes: what is added to it is added to each of them."""
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
        labels = [_value_texts(attribute) for attribute in schema.sensitive]
        head = sum(len(msgspec.json.encode(a.name)) + _longest(a) for a in schema.quasi)
        room = _FRAME + head + sum(map(len, names)) + sum(int(max(map(len, texts))) for texts in labels)
        self.largest_record = message_bytes - room
        """The largest record whose row surely fits into one message."""
        self._bare = not names
        """Whether rows have nothing but their box."""
        before = [_constant(b"%b%b:" % (b"," if place else b"", name)) for place, name in enumerate(names)]
        self._labels = [name + texts for name, texts in zip(before, labels, strict=False)]
        """Of each sensitive attribute its values as they stand in rows, by their codes."""
        self._public = before[len(labels) :]
        """What stands before the value of each public field."""
        self._known: dict[bytes, bytes] = {}
        """Texts of boxes that have left."""
        self._shown: Show = "interval"

    def encode(self, leaving: Leaving, emit: Emit) -> Iterator[list[bytes]]:
        """The messages of each cluster."""
        rows, (texts, box) = self._rows(leaving), self._boxes(leaving)
        spans = pairwise(leaving.starts.tolist())
        if emit == "tuples":  # one flat record per row, which does not say of which cluster
            heads = _objects([b"{%b" % text[1:-1] if self._bare else b"{%b," % text[1:-1] for text in texts])
            messages = (np.repeat(heads[box], np.diff(leaving.starts)) + rows + _constant(b"}")).tolist()
            return (messages[first:end] for first, end in spans)
        members = rows.tolist()
        clusters = zip(leaving.ids.tolist(), box.tolist(), spans, strict=True)
        return (list(self._cluster(number, texts[own], members[first:end])) for number, own, (first, end) in clusters)

    def _boxes(self, leaving: Leaving) -> tuple[list[bytes], NDArray[np.int64]]:
        """Texts of boxes, and which of them each cluster has.

        Where rows leave alone, one after the other, the same boxes leave again and again.
        """
        sides = np.ascontiguousarray(np.hstack([leaving.boxes.lo, leaving.boxes.hi]))
        _, first, box = np.unique(leaving.ids, return_index=True, return_inverse=True)
        if not np.array_equal(sides[first][box], sides):
            first = box = np.arange(len(sides))
        keys = sides[first].view(f"V{sides.itemsize * sides.shape[1]}").ravel().tolist()
        if leaving.show != self._shown or len(self._known) > _MOST_BOXES:
            self._known, self._shown = {}, leaving.show
        known = self._known
        new = {key: place for place, key in enumerate(keys) if key not in known}
        if new:
            places = first[np.fromiter(new.values(), np.int64, len(new))]
            boxes = replace(leaving.boxes, lo=leaving.boxes.lo[places], hi=leaving.boxes.hi[places])
            known |= zip(new, map(msgspec.json.encode, generalizations(boxes, leaving.show)), strict=True)
        return [known[key] for key in keys], box

    def _rows(self, leaving: Leaving) -> Texts:
        """The members of the row objects, without braces."""
        columns = [texts[leaving.sensitive[:, place]] for place, texts in enumerate(self._labels)]
        for name, values in zip(self._public, leaving.public, strict=True):
            columns.append(name + _objects(_public_texts(values)))
        rows = _objects([b""] * leaving.rows) if self._bare else columns[0]
        for column in columns[1:]:
            rows = rows + column
        return rows

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
    if column.type == EXACT_MOMENT:
        moments = zip(micros_of(column).to_pylist(), column.flatten()[1].to_pylist(), strict=True)
        return [_moment_text(moment, nanos) for moment, nanos in moments]
    return [msgspec.json.encode(value) for value in column.to_pylist()]


def _moment_text(moment: datetime | None, nanos: int | None) -> bytes:
    """JSON text of a moment, with nanoseconds where it has some."""
    if moment is None or nanos is None or nanos % 1_000 == 0:
        return msgspec.json.encode(moment)
    return b'"%b.%09dZ"' % (moment.replace(tzinfo=None, microsecond=0).isoformat().encode(), nanos)


def _value_texts(attribute: Attribute) -> Texts:
    """JSON text of each value of a sensitive attribute, by its code."""
    return _objects([msgspec.json.encode(value) for value in attribute.domain()])


def _objects(texts: Sequence[bytes]) -> Texts:
    """Texts in a column, to which others can be added at once."""
    column = np.empty(len(texts), object)
    column[:] = texts
    return column


def _constant(text: bytes) -> Texts:
    """What is the same in every row of a column."""
    return np.array(text, object)


def _longest(attribute: Attribute) -> int:
    """Upper bound of the JSON text of a generalized value."""
    return max((len(msgspec.json.encode(name)) for name in attribute.names), default=_LONGEST_INTERVAL)
