"""The newest records of a topic of which nobody said yet what they are: as keys without values, or as a sample."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from microdata import DataError, FieldKeys, Progress, Sample
from microdata.field_keys import FieldGatherer
from service.codec import Columns, GivenRecords, TopicRecords, undescribed
from service.kafka import Client, Partition, RecordBatch, reach
from service.registry import Registry, RegistrySettings
from service.settings import settings_of

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
        return (batch for batch, _ in self.parted(0))

    def parted(self, newest: int) -> Iterator[tuple[RecordBatch, int]]:
        """The same; with each batch the offset where so many of the newest begin in its partition."""
        reach(self.client.servers, _REACH_SECONDS)
        with closing(self.client.admin()) as admin:
            partitions = admin.describe_topic(self.topic).partitions
        with closing(self.client.reader()) as reader:
            for number in range(partitions):
                partition = Partition(self.topic, number)
                low, high = reader.watermarks(partition)
                start, begin = (max(low, high - -(-count // partitions)) for count in (self.sample, newest))
                self.whole = self.whole and start == low
                for batch in reader.read(partition, start, high, _SECONDS):
                    yield batch, begin

    def nothing(self) -> DataError:
        """What to say where there is no record to look at."""
        return DataError(
            f"topic {self.topic!r}: no record among the newest {self.sample} can be read; without a schema in the "
            "registry they must be JSON objects"
        )


def topic_records(topic: str) -> TopicRecords:
    """How the records of a topic are read: by its newest schema, where a registry is named that has one."""
    settings = settings_of(RegistrySettings, {})
    return undescribed(topic, Registry(settings) if settings.url is not None else None)


def topic_fields(client: Client, topic: str, sample: int, read: int, progress: Progress) -> FieldKeys:
    """Every field of the newest records, as keys; of more records that are read, how many values there are."""
    newest, gathered, other = _Newest(client, topic, max(sample, read)), FieldGatherer(), 0
    columns = topic_records(topic).columns
    for batch, begin in newest.parted(sample):
        before = int(np.searchsorted(batch.offsets, begin))
        for keep, values in ((False, batch.values[:before]), (True, batch.values[before:])):
            table, taken = columns.read([value for value in values if value is not None])
            other += int((~taken).sum())
            gathered.add(table, keep=keep and gathered.rows < gathered.most_rows())
        progress("reading", gathered.counted, newest.sample)
    if not gathered.rows:
        raise newest.nothing()
    return gathered.fields(whole=newest.whole and gathered.rows == gathered.counted, misshapen=other)


@dataclass(frozen=True, eq=False)
class TopicSample:
    """Records of a topic, for a proposal and a rehearsal of it."""

    sample: Sample
    fullest: GivenRecords = field(repr=False)
    """The records of the partition that has most of them, in their order: a worker decides on each by itself."""
    rate: float
    """Records per second there; 1000 where they do not tell."""
    keyed: bool
    """Whether records have keys that come back, as those of persons do."""


def topic_sample(client: Client, topic: str, sample: int, progress: Progress, columns: Columns) -> TopicSample:
    """The newest records with their values."""
    newest, size = _Newest(client, topic, sample), 0
    keys: list[bytes | None] = []
    values: list[bytes] = []
    where: list[tuple[int, int]] = []
    for batch in newest.batches():
        for key, value, at in zip(batch.keys, batch.values, batch.timestamps.tolist(), strict=True):
            if value is not None:
                keys.append(key)
                values.append(value)
                where.append((batch.partition.number, at))
                size += len(value)
        progress("reading", len(values), sample)
        if size >= MOST_BYTES:
            newest.whole = False
            break
    table, taken = columns.read(values)
    if not table.num_rows:
        raise newest.nothing()
    own = [keys[row] for row in np.flatnonzero(taken).tolist()]
    partitions, times = np.array(where, np.int64).T
    fullest = np.flatnonzero(taken & (partitions == np.bincount(partitions[taken]).argmax()))
    return TopicSample(
        Sample(table, newest.whole, int((~taken).sum())),
        GivenRecords.without_keys([values[row] for row in fullest.tolist()]),
        _rate(times[fullest]),
        keyed=None not in own and len(set(own)) < len(own),
    )


def _rate(times: NDArray[np.int64]) -> float:
    seconds = (times[-1] - times[0]) / 1000
    return float(len(times) / seconds) if seconds > 0 else 1000.0
