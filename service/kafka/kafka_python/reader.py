"""Exact ranges of offsets on kafka-python."""

import time
from collections.abc import Iterator

from kafka.structs import TopicPartition

from service.kafka.errors import RetriableError
from service.kafka.kafka_python.connection import open_consumer, translated, unpacking
from service.kafka.kafka_python.records import batch_of, watermarks_of
from service.kafka.port import Partition, RecordBatch, Watermarks
from service.kafka.settings import KafkaSettings


class KafkaPythonReader:
    """Reads exact ranges of offsets."""

    _STEP = 10_000

    def __init__(self, settings: KafkaSettings, *, dirty: bool) -> None:
        options = {
            "isolation_level": "read_uncommitted" if dirty else "read_committed",
            "auto_offset_reset": "earliest",
            "allow_auto_create_topics": False,
            "fetch_max_wait_ms": 50,
            "metrics_enabled": False,
        }
        self._consumer = open_consumer(settings, options)

    def watermarks(self, partition: Partition) -> Watermarks:
        """The log's first and last (stable) offset."""
        return watermarks_of(self._consumer, partition)

    def read(self, partition: Partition, start: int, stop: int, timeout: float) -> Iterator[RecordBatch]:
        """Every record of a range; see the port."""
        start = max(start, self.watermarks(partition).low)
        place = TopicPartition(*partition)
        with translated():
            self._consumer.assign([place])
            self._consumer.seek(place, start)
        deadline, given = time.monotonic() + timeout, start
        while (reached := self._position(place)) < stop:
            with unpacking(self._consumer):
                records = self._consumer.poll(100, self._STEP).get(place, [])
            # A client that lost its place begins anew at the log's start: what was given is not given twice.
            wanted = [record for record in records if given <= record.offset < stop]
            if wanted:
                given = wanted[-1].offset + 1
                yield batch_of(partition, wanted)
                # The broker's time alone counts, not what the caller took for the batch.
                deadline = time.monotonic() + timeout
            elif time.monotonic() > deadline:
                raise RetriableError(f"{partition}: stable up to {reached} of {stop} after {timeout} s")

    def _position(self, place: TopicPartition) -> int:
        with translated():
            return int(self._consumer.position(place))

    def close(self) -> None:
        """Let go of the connections."""
        self._consumer.close()
