"""The newest records of a topic of which nobody said yet what they are: as keys without values, or as a sample."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import orjson

from microdata import DataError, FieldKeys, Progress, Sample
from microdata.field_keys import FieldGatherer
from microdata.sampling import json_object, json_table
from service.kafka import Client, Partition, RecordBatch, reach

_REACH_SECONDS = 10.0
_SECONDS = 30.0
"""How long a broker may take for the next records."""
MOST_BYTES = 256 << 20
"""Of all records that are kept as a sample."""


@dataclass
class _Newest:
    """Reads up to so many of the newest records, the same number of each partition."""

    client: Client
    topic: str
    sample: int
    whole: bool = True
    """Whether these are all records, as far as it is known."""

    def batches(self) -> Iterator[RecordBatch]:
        """The records, one partition after the other."""
        reach(self.client.servers, _REACH_SECONDS)
        with closing(self.client.admin()) as admin:
            partitions = admin.describe_topic(self.topic).partitions
        with closing(self.client.reader()) as reader:
            for number in range(partitions):
                partition = Partition(self.topic, number)
                low, high = reader.watermarks(partition)
                start = max(low, high - -(-self.sample // partitions))
                self.whole = self.whole and start == low
                yield from reader.read(partition, start, high, _SECONDS)

    def nothing(self) -> DataError:
        """What to say where there is no record to look at."""
        return DataError(f"topic {self.topic!r}: no record among the newest {self.sample} is a JSON object")


def topic_fields(client: Client, topic: str, sample: int, progress: Progress) -> FieldKeys:
    """Every field of the newest records, as keys; they must be JSON objects."""
    newest, gathered, other = _Newest(client, topic, sample), FieldGatherer(), 0
    for batch in newest.batches():
        events = [json_object(value) for value in batch.values if value is not None]
        given = [event for event in events if event is not None]
        other += len(events) - len(given)
        gathered.add(json_table(given))
        progress("reading", gathered.rows, sample)
    if not gathered.rows:
        raise newest.nothing()
    return gathered.fields(whole=newest.whole, misshapen=other)


@dataclass(eq=False)
class _Stretch:
    """The sampled records of one partition."""

    events: list[dict[str, Any]] = field(default_factory=list)
    first: int | None = None
    last: int = 0
    """When the first and the last of them were written, in milliseconds."""


@dataclass(frozen=True, eq=False)
class TopicSample:
    """Records of a topic, for a proposal and a rehearsal of it."""

    sample: Sample
    fullest: list[bytes] = field(repr=False)
    """The records of the partition that has most of them, in their order: a worker decides on each by itself."""
    rate: float
    """Records per second there; 1000 where they do not tell."""
    keyed: bool
    """Whether records have keys that come back, as those of persons do."""


def topic_sample(client: Client, topic: str, sample: int, progress: Progress, in_front: int = 0) -> TopicSample:
    """The newest records with their values; they must be JSON objects, behind so many bytes."""
    newest, stretches, keys, other, size, rows = _Newest(client, topic, sample), dict[int, _Stretch](), [], 0, 0, 0
    for batch in newest.batches():
        own = stretches.setdefault(batch.partition.number, _Stretch())
        for key, value, at in zip(batch.keys, batch.values, batch.timestamps.tolist(), strict=True):
            event = None if value is None else json_object(value[in_front:])
            if event is None:
                other += value is not None
                continue
            own.events.append(event)
            own.first, own.last = at if own.first is None else own.first, at
            keys.append(key)
            size, rows = size + len(value or b""), rows + 1
        progress("reading", rows, sample)
        if size >= MOST_BYTES:
            newest.whole = False
            break
    if not rows:
        raise newest.nothing()
    fullest = max(stretches.values(), key=lambda own: len(own.events))
    return TopicSample(
        Sample(json_table([event for own in stretches.values() for event in own.events]), newest.whole, other),
        [orjson.dumps(event) for event in fullest.events],
        _rate(fullest),
        keyed=None not in keys and len(set(keys)) < len(keys),
    )


def _rate(own: _Stretch) -> float:
    seconds = (own.last - (own.first or 0)) / 1000
    return len(own.events) / seconds if seconds > 0 else 1000.0
