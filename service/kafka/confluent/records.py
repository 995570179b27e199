"""What librdkafka hands out, as columns."""

from typing import Any

import confluent_kafka as ck
import numpy as np

from service.kafka.confluent.connection import Connection
from service.kafka.errors import RetriableError
from service.kafka.port import Partition, RecordBatch, Watermarks


def watermarks_of(connection: Connection, consumer: Any, partition: Partition) -> Watermarks:
    """First and last (stable) offset of a partition."""
    with connection.translated():
        answer = consumer.get_watermark_offsets(ck.TopicPartition(*partition), timeout=connection.timeout)
    if answer is None:
        raise RetriableError(f"{partition}: no watermarks within {connection.timeout} s")
    return Watermarks(*answer)


def batches_of(messages: list[Any]) -> list[RecordBatch]:
    """Messages as columns, one batch per partition, in the order of their offsets."""
    places = [(message.topic(), message.partition()) for message in messages]
    groups: dict[tuple[str, int], list[Any]] = {}
    if places and places.count(places[0]) == len(places):
        groups[places[0]] = messages
    else:
        for place, message in zip(places, messages, strict=True):
            groups.setdefault(place, []).append(message)
    return [batch_of(Partition(*place), group) for place, group in groups.items()]


def batch_of(partition: Partition, messages: list[Any]) -> RecordBatch:
    """Messages of one partition as columns."""
    return RecordBatch(
        partition,
        np.fromiter(map(ck.Message.offset, messages), np.int64, len(messages)),
        np.fromiter((stamp for _, stamp in map(ck.Message.timestamp, messages)), np.int64, len(messages)),
        list(map(ck.Message.key, messages)),
        list(map(ck.Message.value, messages)),
    )
