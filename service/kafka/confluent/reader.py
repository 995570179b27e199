"""Exact ranges of offsets on librdkafka."""

import time
from collections.abc import Iterator
from contextlib import suppress

import confluent_kafka as ck

from service.kafka.confluent.connection import Code, Connection, translate
from service.kafka.confluent.records import batch_of, watermarks_of
from service.kafka.errors import RetriableError
from service.kafka.port import Partition, RecordBatch, Watermarks

_FETCHED_AHEAD = {"queued.max.messages.kbytes": 8_192}
"""What waits to be taken; librdkafka's own 64 MiB would be in memory twice once they are taken."""


class ConfluentReader:
    """Reads exact ranges of offsets."""

    _STEP = 10_000

    def __init__(self, connection: Connection, *, dirty: bool) -> None:
        self._connection = connection
        self._consumer = connection.open(
            ck.Consumer,
            _FETCHED_AHEAD,
            group_id="portcullis-reader",  # librdkafka wants a name; nothing is joined or committed
            isolation_level="read_uncommitted" if dirty else "read_committed",
            enable_auto_commit=False,
            enable_partition_eof=True,
            auto_offset_reset="earliest",
            allow_auto_create_topics=False,
            fetch_wait_max_ms=50,
            fetch_queue_backoff_ms=10,  # a full queue is taken in less than librdkafka's own second, and then runs dry
        )

    def watermarks(self, partition: Partition) -> Watermarks:
        """The log's first and last (stable) offset."""
        return watermarks_of(self._connection, self._consumer, partition)

    def read(self, partition: Partition, start: int, stop: int, timeout: float) -> Iterator[RecordBatch]:
        """Every record of a range; see the port."""
        start = max(start, self.watermarks(partition).low)
        if start >= stop:
            return
        with self._connection.translated():
            self._consumer.assign([ck.TopicPartition(*partition, start)])
        try:
            yield from self._read(partition, start, stop, timeout)
        finally:
            with suppress(ck.KafkaException):  # the next range is assigned over it
                self._consumer.unassign()

    def _read(self, partition: Partition, start: int, stop: int, timeout: float) -> Iterator[RecordBatch]:
        deadline = time.monotonic() + timeout
        reached = given = start
        while reached < stop:
            with self._connection.translated():
                messages = self._consumer.consume(1, 0.1)
                messages += self._consumer.consume(self._STEP, 0)
            records = []
            for message in messages:
                error = message.error()
                if error is None:
                    records.append(message)
                elif error.code() != Code._PARTITION_EOF:  # noqa: SLF001 - librdkafka's own code
                    raise translate(error)
                reached = max(reached, message.offset() + (error is None))
            # A client that lost its place begins anew at the log's start: what was given is not given twice.
            wanted = [message for message in records if given <= message.offset() < stop]
            if wanted:
                given = wanted[-1].offset() + 1
                yield batch_of(partition, wanted)
                # The broker's time alone counts, not what the caller took for the batch.
                deadline = time.monotonic() + timeout
            elif reached < stop and time.monotonic() > deadline:
                self._connection.raise_denied()
                raise RetriableError(f"{partition}: stable up to {reached} of {stop} after {timeout} s")

    def close(self) -> None:
        """Let go of the connections."""
        with suppress(ck.KafkaException):  # it has nothing to say goodbye to
            self._consumer.close()
