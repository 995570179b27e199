"""Transactions on librdkafka."""

import functools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

import confluent_kafka as ck

from service.kafka.confluent.connection import Connection, translate
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
from service.kafka.port import Committed, GroupToken, Partition

_GRACE_SECONDS = 2.0
_GIVEN_UP = {"_PURGE_QUEUE", "_PURGE_INFLIGHT", "_STATE"}


class ConfluentProducer:
    """A transactional producer."""

    def __init__(self, connection: Connection, transactional_id: str) -> None:
        settings = connection.settings
        self._connection = connection
        self._patience = settings.transaction_timeout_ms / 1000
        self._failure: ck.KafkaError | None = None
        self._failed_topic = ""
        self._waiting: dict[str, int] = {}
        self._producer = connection.open(
            ck.Producer,
            transactional_id=transactional_id,
            transaction_timeout_ms=settings.transaction_timeout_ms,
            compression_type=settings.compression,
            message_max_bytes=settings.max_request_bytes,
            linger_ms=5,
            queue_buffering_max_messages=1_000_000,
        )
        connection.serve = functools.partial(self._producer.poll, 0)

    def init_transactions(self) -> None:
        """Take over the transactional id."""
        with self._connection.translated():
            self._producer.init_transactions(self._connection.timeout)

    def begin(self) -> None:
        """Open a transaction."""
        self._failure, self._failed_topic = None, ""
        self._waiting = {}  # a new one: what is told late of an older transaction counts in its own
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
        records = zip(values, [None] * len(values) if keys is None else keys, strict=True)
        self._hand_over(partition, records, timestamp_ms, self._on_delivery(partition.topic))

    def _hand_over(
        self,
        partition: Partition,
        records: Iterable[tuple[bytes | None, bytes | None]],
        timestamp_ms: int | None,
        done: Callable[[ck.KafkaError | None, Any], None],
    ) -> None:
        (topic, number), produce = partition, self._producer.produce
        stamp = timestamp_ms or 0  # librdkafka's 0 is "now"
        waiting = self._waiting
        waiting.setdefault(topic, 0)
        with self._in_transaction():
            for value, key in records:
                try:
                    produce(topic, value, key, number, on_delivery=done, timestamp=stamp)
                except BufferError:
                    self._make_room()
                    produce(topic, value, key, number, on_delivery=done, timestamp=stamp)
                waiting[topic] += 1

    def _make_room(self) -> None:
        """Wait until the broker has taken half of what the queue holds."""
        half, deadline = len(self._producer) // 2, time.monotonic() + self._patience
        while len(self._producer) > half:
            if time.monotonic() > deadline:
                raise AbortableError(f"the broker did not keep up for {self._patience} s")
            self._producer.poll(0.01)

    def _on_delivery(self, topic: str) -> Callable[[ck.KafkaError | None, Any], None]:
        """What is called for every record of this topic, so it does little."""
        waiting = self._waiting

        def done(error: ck.KafkaError | None, _: Any) -> None:
            if error is not None and self._failure is None:
                self._failure = error  # before anything else: a fatal error that arrives meanwhile ends this call
                self._failed_topic = topic
            waiting[topic] -= 1

        return done

    def produce_and_wait(
        self, records: Mapping[Partition, tuple[bytes | None, bytes | None]], timestamp_ms: int | None = None
    ) -> dict[Partition, int]:
        """Write a record to each of these partitions and wait for their offsets."""
        offsets: dict[Partition, int | None] = {}
        for partition, (key, value) in records.items():
            done = functools.partial(self._note_offset, self._on_delivery(partition.topic), offsets)
            self._hand_over(partition, [(value, key)], timestamp_ms, done)
        self.flush()
        for partition in records.keys() - offsets.keys():
            # The call that should have told was ended by a fatal error, see `_require_delivered`.
            raise AbortableError(f"topic {partition.topic!r}: nobody said whether the record was acknowledged")
        return {partition: offset_of(partition, offsets[partition]) for partition in records}

    @staticmethod
    def _note_offset(
        note: Callable[[ck.KafkaError | None, Any], None],
        offsets: dict[Partition, int | None],
        error: ck.KafkaError | None,
        message: Any,
    ) -> None:
        note(error, message)
        offsets[Partition(message.topic(), message.partition())] = message.offset()

    def flush(self) -> None:
        """Wait until everything is acknowledged."""
        self._require_delivered()
        if self._failure is not None:
            error = _abortable(self._explained(translate(self._failure)))
            raise error.about(self._failed_topic) if self._failed_topic else error

    def _explained(self, error: KafkaError) -> KafkaError:
        """Why a transaction was given up, where librdkafka has only said that it was: asked for another, it tells."""
        if error.code in _GIVEN_UP:
            try:
                with self._connection.translated():
                    self._producer.begin_transaction()
            except KafkaError as cause:
                return cause
        return error

    def _require_delivered(self) -> None:
        with self._in_transaction():
            try:
                waiting = self._producer.flush(self._patience)
            except SystemError:  # confluent-kafka 2.16, rarely, when a fatal error arrives meanwhile: it names none
                waiting = self._producer.flush(self._patience)
        if waiting:
            topics = ", ".join(repr(topic) for topic, count in sorted(self._waiting.items()) if count > 0)
            raise AbortableError(
                f"{waiting} records were not acknowledged within {self._patience} s: is topic {topics} there, and its "
                "broker?"
            )

    def send_offsets(self, offsets: Mapping[Partition, Committed], token: GroupToken) -> None:
        """Make the group's offsets part of the transaction."""
        token.require_current()
        positions = [
            ck.TopicPartition(*partition, committed.offset, committed.metadata)
            for partition, committed in offsets.items()
        ]
        send = functools.partial(self._producer.send_offsets_to_transaction, positions, token.handle, self._patience)
        with self._in_transaction():
            self._within_patience(send)

    def _within_patience(self, call: Callable[[], None]) -> None:
        """Give up on a call that does not come back: its own time-out does not end it (librdkafka's issue 5456).

        The call is left to its thread, which lets go of the handle when a coordinator answers. Whoever takes over the
        transactional id shuts it out.
        """
        outcome: Future[None] = Future()

        def run() -> None:
            try:
                call()
                outcome.set_result(None)
            except BaseException as error:  # noqa: BLE001 - raised again by the caller
                outcome.set_exception(error)

        threading.Thread(target=run, name="send-offsets", daemon=True).start()
        try:
            outcome.result(self._patience + _GRACE_SECONDS)
        except TimeoutError:
            raise UnclearError(f"the group's coordinator did not answer for {self._patience} s") from None

    def commit(self) -> None:
        """Make everything visible."""
        self._require_delivered()
        try:
            with self._connection.translated():
                self._producer.commit_transaction(self._patience)
        except (AbortableError, FencedError, FinalError):
            raise
        except KafkaError as error:
            raise UnclearError(str(error), error.code) from error

    def abort(self) -> None:
        """Take everything back."""
        with self._connection.translated():
            self._producer.abort_transaction(self._patience)

    def close(self) -> None:
        """Let go at once."""
        # Not Producer.close: that aborts the open transaction, which may be in the middle of its commit.
        with suppress(ck.KafkaException):  # whatever it still has to say is of no interest any more
            self._producer.purge()
            self._producer.poll(0)
        self._connection.serve = lambda: None
        del self._producer

    @contextmanager
    def _in_transaction(self) -> Iterator[None]:
        """Inside a transaction nothing is tried again: what might work later is a reason to abort now."""
        try:
            with self._connection.translated():
                yield
        except KafkaError as error:
            raise _abortable(self._explained(error)) from error


def _abortable(error: KafkaError) -> KafkaError:
    passing = isinstance(error, RetriableError | UnknownTopicError)
    return AbortableError(str(error), error.code) if passing else error
