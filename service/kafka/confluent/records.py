"""What librdkafka hands out, as columns."""

from itertools import compress
from operator import itemgetter
from typing import Any

import confluent_kafka as ck
import numpy as np

from service.kafka.confluent.connection import Connection
from service.kafka.errors import RetriableError
from service.kafka.naming import naming
from service.kafka.port import Partition, RecordBatch, Watermarks

_STAMP = itemgetter(1)


def watermarks_of(connection: Connection, consumer: Any, partition: Partition) -> Watermarks:
    """First and last (stable) offset of a partition.

    Two questions: `get_watermark_offsets` asks both at once, and where one is refused it may forget that and give the
    end for the first offset too, as if everything were gone.
    """
    with naming(partition.topic), connection.translated():
        low = _offset(consumer, partition, ck.OFFSET_BEGINNING, connection.timeout)
        return Watermarks(low, _offset(consumer, partition, ck.OFFSET_END, connection.timeout))


def end_of(connection: Connection, consumer: Any, partition: Partition, timeout: float) -> int:
    """Last (stable) offset of a partition."""
    with naming(partition.topic), connection.translated():
        return _offset(consumer, partition, ck.OFFSET_END, timeout)


def _offset(consumer: Any, partition: Partition, end: int, timeout: float) -> int:
    asked = ck.TopicPartition(*partition, end)  # in place of a time, as the protocol has it
    (answer,) = consumer.offsets_for_times([asked], timeout=timeout)
    if answer.error is not None:
        raise ck.KafkaException(answer.error)
    if answer.offset < 0:
        raise RetriableError(f"{partition}: the broker named no offset")
    return int(answer.offset)


def note_of(committed: Any) -> str:
    """The note of a committed offset; rarely, confluent-kafka 2.16 reads beyond its end and finds no text there."""
    try:
        return committed.metadata or ""
    except UnicodeDecodeError:
        place = Partition(committed.topic, committed.partition)
        raise RetriableError(f"{place}: the client could not read the note of the committed offset") from None


def batches_of(messages: list[Any]) -> list[RecordBatch]:
    """Messages as columns, one batch per partition, in the order of their offsets."""
    topics = list(map(ck.Message.topic, messages))
    batches: list[RecordBatch] = []
    for topic in dict.fromkeys(topics):
        own = np.empty(topics.count(topic), object)
        own[:] = messages if len(own) == len(messages) else list(compress(messages, map(topic.__eq__, topics)))
        numbers = np.fromiter(map(ck.Message.partition, own), np.int64, len(own))
        order = np.argsort(numbers, kind="stable")
        firsts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
        groups = np.split(own[order], firsts[1:])
        batches += [batch_of(Partition(topic, group[0].partition()), group.tolist()) for group in groups]
    return batches


def batch_of(partition: Partition, messages: list[Any]) -> RecordBatch:
    """Messages of one partition as columns."""
    return RecordBatch(
        partition,
        np.fromiter(map(ck.Message.offset, messages), np.int64, len(messages)),
        np.fromiter(map(_STAMP, map(ck.Message.timestamp, messages)), np.int64, len(messages)),
        list(map(ck.Message.key, messages)),
        list(map(ck.Message.value, messages)),
        frozenset(name for message in messages[:1] for name, _ in message.headers() or ()),
    )
