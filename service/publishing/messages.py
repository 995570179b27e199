"""What leaves, by output partition.

Nothing links a message back to its source: no key, header, offset or timestamp of the input; rows stand in the shuffled
order of their decision, so that a republication writes the same bytes again. How a message is written is the codec's.
"""

from __future__ import annotations

from collections import defaultdict

from microdata import Boxes, Schema
from service.codec import Codec, Emit, Leaving
from service.publishing.departure import Departure
from service.publishing.rows import Rows


class MessageEncoder:
    """Encodes the departures of one stream for an output of so many partitions."""

    def __init__(self, schema: Schema, codec: Codec, emit: Emit, partitions: int) -> None:
        self._schema = schema
        self._codec = codec
        self._emit = emit
        self._partitions = partitions

    def encode(self, departure: Departure, rows: Rows) -> dict[int, list[bytes]]:
        """Messages by output partition."""
        messages: dict[int, list[bytes]] = defaultdict(list)
        clusters = departure.clusters
        sensitive, public = rows.values(departure.rows)
        boxes = Boxes(self._schema, clusters.lo, clusters.hi)
        leaving = Leaving(clusters.ids, boxes, clusters.starts, sensitive, public)
        for number, written in zip(clusters.ids.tolist(), self._codec.encode(leaving, self._emit), strict=True):
            messages[number % self._partitions].extend(written)
        return messages


def commit_tick(now: float, interval: float) -> int:
    """The time in milliseconds that leaves with records: the commit's, rounded down so that it tells no arrival."""
    step = round(1000 * max(1.0, interval))
    return int(1000 * now) // step * step
