"""What leaves: cluster or tuple messages, and dead letters.

Nothing links a message back to its source: no key, header, offset or timestamp of the input; rows stand in the shuffled
order of their decision, so that a republication writes the same bytes again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
import numpy as np

from microdata import Attribute, Boxes, Schema, generalizations
from service.codec.events import Refused
from service.kafka import Partition
from service.publishing.publication import Publication
from service.publishing.rows import Rows

_LONGEST_INTERVAL = 64
"""Two numbers as JSON."""


class MessageEncoder:
    """Encodes the publications of one stream for an output of so many partitions and this message limit."""

    def __init__(
        self, schema: Schema, emit: Literal["clusters", "tuples"], partitions: int, message_bytes: int
    ) -> None:
        self._schema = schema
        self._clusters = emit == "clusters"
        self._partitions = partitions
        self._limit = message_bytes
        names = [msgspec.json.encode(name) for name in (*schema.roles()["sensitive"], *schema.public)]
        members = b",".join(name.replace(b"%", b"%%") + b":%b" for name in names)
        self._row = members
        self._labels = [_value_texts(attribute) for attribute in schema.sensitive]
        head = sum(len(msgspec.json.encode(a.name)) + _longest(a) for a in schema.quasi)
        self._room = 256 + head + sum(map(len, names)) + sum(int(max(map(len, texts))) for texts in self._labels)

    @property
    def largest_event(self) -> int:
        """The largest input record whose row surely fits into one message."""
        return self._limit - self._room

    def encode(self, publication: Publication, rows: Rows) -> dict[int, list[bytes]]:
        """Messages by output partition."""
        messages: dict[int, list[bytes]] = defaultdict(list)
        clusters, texts = publication.clusters, self._rows(publication, rows)
        boxes = map(msgspec.json.encode, generalizations(Boxes(self._schema, clusters.lo, clusters.hi)))
        for number, first, end, box in zip(
            clusters.ids.tolist(), clusters.starts[:-1].tolist(), clusters.starts[1:].tolist(), boxes, strict=True
        ):
            members = texts[first:end]
            written = self._cluster(number, box, members) if self._clusters else self._tuples(box, members)
            messages[number % self._partitions].extend(written)
        return messages

    def _rows(self, publication: Publication, rows: Rows) -> list[bytes]:
        """The members of the row objects, without braces."""
        chosen = publication.rows
        columns = [texts[rows.sensitive[chosen, place]] for place, texts in enumerate(self._labels)]
        columns += [rows.public[chosen, place] for place in range(rows.public.shape[1])]
        template = self._row
        return [template % values for values in zip(*columns, strict=True)] if columns else [b""] * len(chosen)

    def _cluster(self, number: int, box: bytes, members: Sequence[bytes]) -> Iterator[bytes]:
        """One message, or several parts where one would exceed the topic's limit."""
        groups = list(_groups(members, self._limit - 256 - len(box)))
        for part, group in enumerate(groups, start=1):
            place = b',"part":%d,"parts":%d' % (part, len(groups)) if len(groups) > 1 else b""
            rows = b"},{".join(group)
            yield b'{"cluster":"%016x"%b,"generalization":%b,"rows":[{%b}]}' % (number, place, box, rows)

    def _tuples(self, box: bytes, members: Sequence[bytes]) -> Iterator[bytes]:
        """One flat record per row."""
        inner = box[1:-1]
        for member in members:
            yield b"{%b}" % b",".join(filter(None, (inner, member)))


def commit_tick(now: float, interval: float) -> int:
    """The time in milliseconds that leaves with records: the commit's, rounded down so that it tells no arrival."""
    step = round(1000 * max(1.0, interval))
    return int(1000 * now) // step * step


def dead_letter(place: Partition, refused: Refused) -> bytes:
    """Where a refused record is and why it was refused; never what it holds."""
    return msgspec.json.encode(
        {
            "topic": place.topic,
            "partition": place.number,
            "offset": refused.offset,
            "field": refused.field,
            "reason": refused.reason.code,
        }
    )


def _groups(members: Sequence[bytes], limit: int) -> Iterator[list[bytes]]:
    """Rows in runs whose joined length stays below the limit."""
    if sum(map(len, members)) + 3 * len(members) <= limit:
        yield list(members)
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


def _value_texts(attribute: Attribute) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    """JSON text of each value of a sensitive attribute, by its code."""
    values = attribute.domain()
    texts = np.empty(len(values), object)
    texts[:] = [msgspec.json.encode(value) for value in values]
    return texts


def _longest(attribute: Attribute) -> int:
    """Upper bound of the JSON text of a generalized value."""
    return max((len(msgspec.json.encode(name)) for name in attribute.names), default=_LONGEST_INTERVAL)
