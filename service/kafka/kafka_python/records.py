"""What kafka-python hands out, as columns."""

from typing import Any

import numpy as np
from kafka.structs import TopicPartition

from service.kafka.kafka_python.connection import translated
from service.kafka.naming import naming
from service.kafka.port import Partition, RecordBatch, Watermarks


def watermarks_of(consumer: Any, partition: Partition) -> Watermarks:
    """First and last (stable) offset of a partition."""
    place = TopicPartition(*partition)
    with naming(partition.topic), translated():
        low = consumer.beginning_offsets([place])[place]
        return Watermarks(low, consumer.end_offsets([place])[place])


def end_of(consumer: Any, partition: Partition, timeout_ms: int) -> int:
    """Last (stable) offset of a partition."""
    place = TopicPartition(*partition)
    with naming(partition.topic), translated():
        return int(consumer.end_offsets([place], timeout_ms=timeout_ms)[place])


def batch_of(partition: Partition, records: list[Any]) -> RecordBatch:
    """Records of one partition as columns."""
    return RecordBatch(
        partition,
        np.fromiter((record.offset for record in records), np.int64, len(records)),
        np.fromiter((record.timestamp for record in records), np.int64, len(records)),
        [record.key for record in records],
        [record.value for record in records],
        frozenset(name for record in records[:1] for name, _ in record.headers),
    )
