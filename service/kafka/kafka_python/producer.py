"""Transactions on kafka-python."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kafka import KafkaProducer
from kafka import errors as kp
from kafka.structs import OffsetAndMetadata, TopicPartition

from service.kafka.delivery import offset_of
from service.kafka.errors import (
    AbortableError,
    FencedError,
    FinalError,
    KafkaError,
    RetriableError,
    UnclearError,
    UnknownTopicError,
)
from service.kafka.kafka_python.connection import config_of, opened, translate, translated
from service.kafka.port import Committed, GroupToken, Partition
from service.kafka.settings import KafkaSettings


def _producer_config(settings: KafkaSettings) -> dict[str, Any]:
    """A record that is not delivered within the life of its transaction never needs to be."""
    life, linger = settings.transaction_timeout_ms, 5
    return config_of(KafkaProducer, settings) | {
        "transaction_timeout_ms": life,
        "delivery_timeout_ms": life,
        "request_timeout_ms": min(settings.request_timeout_ms, life - linger - 1),
        "max_block_ms": life,
        "linger_ms": linger,
        "batch_size": min(262_144, settings.max_request_bytes),
        "max_request_size": settings.max_request_bytes,
        "compression_type": None if settings.compression == "none" else settings.compression,
        "allow_auto_create_topics": False,
        "metrics_enabled": False,
    }


class KafkaPythonProducer:
    """A transactional producer.

    The library's own transaction methods wait for ever; here the same requests are waited for with a limit.
    """

    def __init__(self, settings: KafkaSettings, transactional_id: str) -> None:
        self._patience = settings.transaction_timeout_ms / 1000
        self._timeout = settings.request_timeout_ms / 1000
        self._sent: list[Any] = []
        config = _producer_config(settings) | {"transactional_id": transactional_id}
        self._producer = opened(KafkaProducer, config)
        self._manager = self._producer._transaction_manager  # noqa: SLF001 - see the class

    def init_transactions(self) -> None:
        """Take over the transactional id."""
        with translated():
            self._wait(self._manager.initialize_transactions(), self._timeout, RetriableError)

    def begin(self) -> None:
        """Open a transaction."""
        self._sent.clear()
        with self._in_transaction():
            self._producer.begin_transaction()

    def produce(
        self,
        partition: Partition,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """Hand over records, in order."""
        topic, number = partition
        with self._in_transaction(topic):
            for index, value in enumerate(values):
                key = None if keys is None else keys[index]
                self._sent.append(self._producer.send(topic, value, key, None, number, timestamp_ms))

    def produce_and_wait(
        self, records: Mapping[Partition, tuple[bytes | None, bytes | None]], timestamp_ms: int | None = None
    ) -> dict[Partition, int]:
        """Write a record to each of these partitions and wait for their offsets."""
        sent = {}
        for partition, (key, value) in records.items():
            self.produce(partition, [value], [key], timestamp_ms)
            sent[partition] = self._sent[-1]
        self.flush()
        return {partition: offset_of(partition, each.value.offset) for partition, each in sent.items()}

    def flush(self) -> None:
        """Wait until everything is acknowledged."""
        with self._in_transaction():
            self._producer.flush(self._patience)
        failed = next((each for each in self._sent if each.failed()), None)
        if failed is not None:
            with self._in_transaction(_topic_of(failed)):
                raise failed.exception
        waiting = [each for each in self._sent if not each.is_done]
        if waiting:
            topics = ", ".join(sorted({repr(_topic_of(each)) for each in waiting}))
            raise AbortableError(
                f"{len(waiting)} records were not acknowledged within {self._patience} s: is topic {topics} there, and "
                "its broker?"
            )
        self._sent.clear()

    def send_offsets(self, offsets: Mapping[Partition, Committed], token: GroupToken) -> None:
        """Make the group's offsets part of the transaction."""
        token.require_current()
        positions = {
            TopicPartition(*partition): OffsetAndMetadata(committed.offset, committed.metadata, -1)
            for partition, committed in offsets.items()
        }
        with self._in_transaction():
            request = self._manager.send_offsets_to_transaction(positions, token.handle)
            self._wait(request, self._patience, AbortableError)

    def commit(self) -> None:
        """Make everything visible."""
        self.flush()
        with self._in_transaction():
            request = self._manager.begin_commit()
        try:
            self._wait(request, self._patience, UnclearError)
        except kp.KafkaError as error:
            failure = translate(self._manager.last_error or error)
            known = isinstance(failure, FencedError | FinalError)
            raise failure if known else UnclearError(str(failure), failure.code) from error

    def abort(self) -> None:
        """Take everything back."""
        with translated():
            self._wait(self._manager.begin_abort(), self._patience, RetriableError)

    def close(self) -> None:
        """Let go at once."""
        # Not KafkaProducer.close: that first sends what is left.
        self._producer._sender.force_close()  # noqa: SLF001 - see above
        self._producer._sender.join(self._patience)  # noqa: SLF001
        self._producer._unregister_cleanup()  # noqa: SLF001
        self._producer._closed = True  # noqa: SLF001

    def _wait(self, request: Any, seconds: float, unanswered: type[KafkaError]) -> None:
        """Wait for a request of the transaction manager; `unanswered` is what it means if nothing comes in time."""
        self._producer._sender.wakeup()  # noqa: SLF001 - what the library's own methods do
        if not request.wait(seconds * 1000):
            raise unanswered(f"the coordinator did not answer within {seconds} s")

    @contextmanager
    def _in_transaction(self, topic: str | None = None) -> Iterator[None]:
        """Inside a transaction nothing is tried again: what might work later is a reason to abort now."""
        try:
            yield
        except kp.KafkaError as error:
            # In an error state the library only says so; the manager knows why.
            failure = translate(self._manager.last_error or error)
            if topic is not None:
                failure = failure.about(topic)
            if isinstance(failure, RetriableError | UnknownTopicError):
                raise AbortableError(str(failure), failure.code) from error
            raise failure from error


def _topic_of(sent: Any) -> str:
    return str(sent._produce_future.topic_partition.topic)  # noqa: SLF001 - the library names it nowhere else
