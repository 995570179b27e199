"""What leaves, by output partition.

Nothing links a message back to its source: no key, header, offset or timestamp of the input; rows stand in the shuffled
order of their decision, so that a republication writes the same bytes again. How a message is written is the codec's.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from microdata import Boxes, GuaranteeError, Schema, Show, means
from service.codec import Codec, Emit, Leaving
from service.publishing.departure import Departure
from service.publishing.rows import Rows
from stream_algos import Release


class MessageEncoder:
    """Encodes the departures of one stream for an output of so many partitions."""

    def __init__(self, schema: Schema, codec: Codec, emit: Emit, partitions: int, *, show: Show = "interval") -> None:
        self._schema = schema
        self._codec = codec
        self._emit = emit
        self._partitions = partitions
        self._show = show

    def encode(self, departure: Departure, rows: Rows) -> dict[int, list[bytes]]:
        """Messages by output partition."""
        messages: dict[int, list[bytes]] = defaultdict(list)
        clusters = departure.clusters
        sensitive, public = rows.values(departure.rows)
        boxes = shown(self._schema, self._show, clusters, rows.quasi[departure.rows])
        leaving = Leaving(clusters.ids, boxes, clusters.starts, sensitive, public, self._show)
        places = (clusters.ids % np.uint64(self._partitions)).tolist()
        for place, written in zip(places, self._codec.encode(leaving, self._emit), strict=True):
            messages[place].extend(written)
        return messages


def shown(schema: Schema, show: Show, clusters: Release, members: NDArray[np.float64]) -> Boxes:
    """What is published of each cluster with these members: its box, or their mean, which must lie inside of it."""
    boxes = Boxes(schema, clusters.lo, clusters.hi)
    if show == "interval":
        return boxes
    if clusters.reused.any():
        raise GuaranteeError("rows that leave alone cannot be shown as means")
    points = means(schema, members, clusters.cluster_of(), len(clusters))
    strange = int((~((boxes.lo <= points.lo) & (points.hi <= boxes.hi)).all(axis=1)).sum())
    if strange:
        raise GuaranteeError(f"{strange} clusters are shown outside of their box")
    return points


def commit_tick(now: float, interval: float) -> int:
    """The time in milliseconds that leaves with records: the commit's, rounded down so that it tells no arrival."""
    step = round(1000 * max(1.0, interval))
    return int(1000 * now) // step * step
