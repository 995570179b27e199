"""The port on confluent-kafka (librdkafka): the fast one."""

import functools
import logging
import struct
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID

import confluent_kafka as ck
import numpy as np
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from service.kafka.errors import (
    AbortableError,
    DeniedError,
    FatalError,
    FencedError,
    GoneError,
    KafkaError,
    RetriableError,
    StaleGroupError,
    TooLargeError,
    TopicExistsError,
    UnclearError,
    UnknownTopicError,
)
from service.kafka.membership import Membership
from service.kafka.oauth import fetch_token
from service.kafka.port import (
    Committed,
    GroupToken,
    Partition,
    PartitionsCallback,
    RecordBatch,
    TopicDescription,
    Watermarks,
)
from service.kafka.settings import KafkaSettings

log = logging.getLogger(__name__)

_Code = ck.KafkaError
_KIND: dict[int, type[KafkaError]] = {
    _Code._FENCED: FencedError,  # noqa: SLF001 - librdkafka's own codes start with an underscore
    _Code.PRODUCER_FENCED: FencedError,
    _Code.INVALID_PRODUCER_EPOCH: FencedError,
    _Code.ILLEGAL_GENERATION: StaleGroupError,
    _Code.UNKNOWN_MEMBER_ID: StaleGroupError,
    _Code.REBALANCE_IN_PROGRESS: StaleGroupError,
    _Code.FENCED_INSTANCE_ID: StaleGroupError,
    _Code._ASSIGNMENT_LOST: StaleGroupError,  # noqa: SLF001
    _Code._AUTHENTICATION: DeniedError,  # noqa: SLF001
    _Code._SSL: DeniedError,  # noqa: SLF001
    _Code.SASL_AUTHENTICATION_FAILED: DeniedError,
    _Code.UNSUPPORTED_SASL_MECHANISM: DeniedError,
    _Code.TOPIC_AUTHORIZATION_FAILED: DeniedError,
    _Code.GROUP_AUTHORIZATION_FAILED: DeniedError,
    _Code.CLUSTER_AUTHORIZATION_FAILED: DeniedError,
    _Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: DeniedError,
    _Code._UNKNOWN_TOPIC: UnknownTopicError,  # noqa: SLF001
    _Code._UNKNOWN_PARTITION: UnknownTopicError,  # noqa: SLF001
    _Code.UNKNOWN_TOPIC_OR_PART: UnknownTopicError,
    _Code.TOPIC_ALREADY_EXISTS: TopicExistsError,
    _Code.MSG_SIZE_TOO_LARGE: TooLargeError,
    _Code.RECORD_LIST_TOO_LARGE: TooLargeError,
    _Code._PURGE_QUEUE: AbortableError,  # noqa: SLF001 - thrown away because the transaction had failed
    _Code._PURGE_INFLIGHT: AbortableError,  # noqa: SLF001
    _Code._TIMED_OUT: RetriableError,  # noqa: SLF001
    _Code._TRANSPORT: RetriableError,  # noqa: SLF001
    _Code._ALL_BROKERS_DOWN: RetriableError,  # noqa: SLF001
    _Code.REQUEST_TIMED_OUT: RetriableError,
    _Code.UNSTABLE_OFFSET_COMMIT: RetriableError,
    _Code.LEADER_NOT_AVAILABLE: RetriableError,
    _Code.NOT_LEADER_FOR_PARTITION: RetriableError,
}


def _translate(error: ck.KafkaError) -> KafkaError:
    """Our error for librdkafka's."""
    text = f"{error.name()}: {error.str()}"
    kind = _KIND.get(error.code())
    if kind is not None:
        return kind(text)
    if error.txn_requires_abort():
        return AbortableError(text)
    return RetriableError(text) if error.retriable() else FatalError(text)


class _Connection:
    """The settings in librdkafka's words, and what it reports in the background."""

    def __init__(self, settings: KafkaSettings) -> None:
        self.settings = settings
        self.timeout = settings.request_timeout_ms / 1000
        self.serve: Callable[[], object] = lambda: None  # let the handle run callbacks that are due
        self._denied: ck.KafkaError | None = None

    def _config(self, **more: Any) -> dict[str, Any]:
        """A configuration for one librdkafka handle; keyword underscores stand for dots."""
        settings = self.settings
        config: dict[str, Any] = {
            "bootstrap.servers": settings.bootstrap_servers,
            "client.id": settings.client_id,
            "security.protocol": settings.security_protocol,
            "topic.metadata.refresh.interval.ms": settings.metadata_max_age_ms,
            "reconnect.backoff.max.ms": 1_000,
            "error_cb": self._on_error,
            "logger": log,
        }
        files = {
            "ca": settings.tls_ca_file,
            "certificate": settings.tls_cert_file,
            "key": settings.tls_key_file,
        }
        config |= {f"ssl.{name}.location": str(path) for name, path in files.items() if path is not None}
        if settings.sasl_mechanism is not None:
            config["sasl.mechanism"] = settings.sasl_mechanism
        if settings.sasl_mechanism == "OAUTHBEARER":
            config["oauth_cb"] = lambda _: tuple(fetch_token(settings))
        elif settings.sasl_password is not None:
            config["sasl.username"] = settings.sasl_username
            config["sasl.password"] = settings.sasl_password.get_secret_value()
        return config | settings.extra | {name.replace("_", "."): value for name, value in more.items()}

    def open(self, kind: Callable[[dict[str, Any]], Any], **more: Any) -> Any:
        """A librdkafka handle; a setting that it does not take is an error of ours."""
        with self.translated():
            return kind(self._config(**more))

    def raise_denied(self) -> None:
        """A refused login arrives in the background only; calls just time out. So they ask here."""
        if self._denied is not None:
            raise _translate(self._denied)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn librdkafka's exceptions into ours."""
        try:
            yield
        except ck.KafkaException as exception:
            error = _translate(exception.args[0])
            if isinstance(error, RetriableError):
                self.serve()
                self.raise_denied()
            raise error from exception

    def _on_error(self, error: ck.KafkaError) -> None:
        if _KIND.get(error.code()) is DeniedError:
            self._denied = error


class ConfluentClient:
    """Opens consumers, readers, producers and administrators on confluent-kafka."""

    name = "confluent-kafka"

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings

    def group_consumer(self, group: str) -> "ConfluentConsumer":
        """A member of a group; joins with `subscribe`."""
        return ConfluentConsumer(_Connection(self._settings), group)

    def reader(self, *, dirty: bool = False) -> "ConfluentReader":
        """A reader of committed records; a dirty one sees open and aborted transactions too."""
        return ConfluentReader(_Connection(self._settings), dirty=dirty)

    def producer(self, transactional_id: str) -> "ConfluentProducer":
        """A producer; usable after `init_transactions`."""
        return ConfluentProducer(_Connection(self._settings), transactional_id)

    def admin(self) -> "ConfluentAdmin":
        """An administrator."""
        return ConfluentAdmin(_Connection(self._settings))


def _watermarks(connection: _Connection, consumer: Any, partition: Partition) -> Watermarks:
    with connection.translated():
        answer = consumer.get_watermark_offsets(ck.TopicPartition(*partition), timeout=connection.timeout)
    if answer is None:
        raise RetriableError(f"{partition}: no watermarks within {connection.timeout} s")
    return Watermarks(*answer)


def _batches(messages: list[Any]) -> list[RecordBatch]:
    """Messages as columns, one batch per partition, in the order of their offsets."""
    places = [(message.topic(), message.partition()) for message in messages]
    groups: dict[tuple[str, int], list[Any]] = {}
    if places and places.count(places[0]) == len(places):
        groups[places[0]] = messages
    else:
        for place, message in zip(places, messages, strict=True):
            groups.setdefault(place, []).append(message)
    return [_batch(Partition(*place), group) for place, group in groups.items()]


def _batch(partition: Partition, messages: list[Any]) -> RecordBatch:
    return RecordBatch(
        partition,
        np.fromiter(map(ck.Message.offset, messages), np.int64, len(messages)),
        np.fromiter((stamp for _, stamp in map(ck.Message.timestamp, messages)), np.int64, len(messages)),
        list(map(ck.Message.key, messages)),
        list(map(ck.Message.value, messages)),
    )


class ConfluentConsumer:
    """A member of a consumer group."""

    def __init__(self, connection: _Connection, group: str) -> None:
        settings = connection.settings
        self._connection = connection
        self._group = group
        self._failures: list[ck.Message] = []
        self._paused: set[Partition] = set()
        self._stranded: set[Partition] = set()  # librdkafka has given them up and does not seek them
        self._consumer = connection.open(
            ck.Consumer,
            group_id=group,
            isolation_level="read_committed",
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            auto_offset_reset="error",
            allow_auto_create_topics=False,
            partition_assignment_strategy="range",
            fetch_wait_max_ms=100,  # what is sought or resumed waits for the fetch under way
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            max_poll_interval_ms=max(settings.max_poll_interval_ms, settings.session_timeout_ms),
        )

    def subscribe(
        self,
        topics: Collection[str],
        on_assigned: PartitionsCallback,
        on_revoked: PartitionsCallback,
        on_lost: PartitionsCallback,
    ) -> None:
        """Join the group; see the port."""
        self._membership = Membership(on_assigned, on_revoked, on_lost)
        with self._connection.translated():
            self._consumer.subscribe(
                list(topics),
                on_assign=self._assigned,
                on_revoke=lambda _, given: self._membership.note_revoked(_ours(given)),
                on_lost=lambda _, given: self._membership.note_lost(_ours(given)),
            )

    def _assigned(self, consumer: Any, given: list[Any]) -> None:
        # The explicit offset keeps librdkafka from looking up the committed one.
        paused = [ck.TopicPartition(each.topic, each.partition, 0) for each in given]
        consumer.assign(paused)
        consumer.pause(paused)
        self._paused, self._stranded = set(_ours(given)), set()
        self._membership.note_assigned(_ours(given))

    def poll(self, timeout: float, max_records: int) -> list[RecordBatch]:
        """Wait for records; see the port."""
        self._raise_failure()
        with self._connection.translated():
            # A batch call waits for a full batch. So wait for one record, then take what else is there.
            messages = self._consumer.consume(1, timeout)
            if messages and max_records > 1:
                messages += self._consumer.consume(max_records - 1, 0)
        self._membership.tell()
        errors = list(map(ck.Message.error, messages))
        if any(errors):
            self._failures += [message for message, error in zip(messages, errors, strict=True) if error]
            messages = [message for message, error in zip(messages, errors, strict=True) if not error]
        batches = [batch for batch in _batches(messages) if batch.partition in self._membership.positions]
        for batch in batches:
            self._membership.positions[batch.partition] = int(batch.offsets[-1]) + 1
        if not batches:
            self._raise_failure()
        return batches

    def _raise_failure(self) -> None:
        """Errors come among the messages; they wait until the records before them are handed out."""
        self._connection.raise_denied()
        while self._failures:
            message = self._failures.pop(0)
            error = message.error()
            if error.code() == _Code._AUTO_OFFSET_RESET:  # noqa: SLF001 - librdkafka's own code
                place = Partition(message.topic(), message.partition())
                if self._membership.positions.get(place) == message.offset():
                    self._stranded.add(place)
                    raise GoneError(*place, message.offset())
                continue
            if error.code() == _Code._MAX_POLL_EXCEEDED:  # noqa: SLF001 - on_lost tells it
                continue
            failure = _translate(error)
            if not isinstance(failure, RetriableError):
                raise failure

    def assignment(self) -> frozenset[Partition]:
        """The partitions that this member owns."""
        return self._membership.owned

    def seek(self, partition: Partition, offset: int) -> None:
        """Give the record at `offset` next."""
        if partition not in self._membership.owned:
            raise FatalError(f"{partition}: is not assigned")
        self._membership.positions[partition] = offset
        if partition in self._stranded:
            self._reassign()
        else:
            self._seek(ck.TopicPartition(*partition, offset))

    def _seek(self, place: Any) -> None:
        deadline = time.monotonic() + self._connection.timeout
        with self._connection.translated():
            while True:
                try:
                    self._consumer.seek(place)
                except ck.KafkaException as exception:
                    # librdkafka starts an assigned partition in the background; until then it cannot seek.
                    if exception.args[0].code() != _Code._STATE or time.monotonic() > deadline:  # noqa: SLF001
                        raise
                    time.sleep(0.005)
                else:
                    return

    def _reassign(self) -> None:
        """Start every partition anew at its position: the one way to bring back a stranded one."""
        positions = self._membership.positions
        with self._connection.translated():
            self._consumer.assign([ck.TopicPartition(*each, positions.get(each, 0)) for each in self.assignment()])
            self._consumer.pause([ck.TopicPartition(*each) for each in self._paused])
        self._stranded.clear()

    def pause(self, partitions: Collection[Partition]) -> None:
        """Give no records of these partitions until they are resumed."""
        self._paused |= set(partitions)
        with self._connection.translated():
            self._consumer.pause([ck.TopicPartition(*each) for each in partitions])

    def resume(self, partitions: Collection[Partition]) -> None:
        """Give records of these partitions again."""
        for partition in partitions:
            self._membership.require_sought(partition)
        self._paused -= set(partitions)
        with self._connection.translated():
            self._consumer.resume([ck.TopicPartition(*each) for each in partitions])

    def position(self, partition: Partition) -> int:
        """The offset behind the last record given, or the one sought."""
        return self._membership.require_sought(partition)

    def group_token(self) -> GroupToken:
        """Membership as of now."""
        handle = self._consumer.consumer_group_metadata()
        # librdkafka's serialized form: magic, generation, group and member as C strings, instance flag.
        magic = b"CGMDv2:"
        if not handle.startswith(magic):
            raise FatalError("confluent-kafka changed its group metadata; supported: CGMDv2")
        (generation,) = struct.unpack_from("=i", handle, len(magic))
        _, member, *_ = handle[len(magic) + 4 :].split(b"\0")
        return GroupToken(self._group, generation, member.decode(), handle)

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, Committed | None]:
        """The group's stable committed offsets."""
        with self._connection.translated():
            answer = self._consumer.committed(
                [ck.TopicPartition(*each) for each in partitions], timeout=self._connection.timeout
            )
        for each in answer:
            if each.error is not None:
                raise _translate(each.error)
        return {
            Partition(each.topic, each.partition): Committed(each.offset, each.metadata or "")
            if each.offset >= 0
            else None
            for each in answer
        }

    def watermarks(self, partition: Partition) -> Watermarks:
        """The log's first offset and last stable offset."""
        return _watermarks(self._connection, self._consumer, partition)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
        if hasattr(self, "_membership"):
            self._membership.tell()


def _ours(partitions: list[Any]) -> list[Partition]:
    return [Partition(each.topic, each.partition) for each in partitions]


class ConfluentReader:
    """Reads exact ranges of offsets."""

    _STEP = 10_000

    def __init__(self, connection: _Connection, *, dirty: bool) -> None:
        self._connection = connection
        self._consumer = connection.open(
            ck.Consumer,
            group_id="portcullis-reader",  # librdkafka wants a name; nothing is joined or committed
            isolation_level="read_uncommitted" if dirty else "read_committed",
            enable_auto_commit=False,
            enable_partition_eof=True,
            auto_offset_reset="earliest",
            allow_auto_create_topics=False,
            fetch_wait_max_ms=50,
        )

    def watermarks(self, partition: Partition) -> Watermarks:
        """The log's first and last (stable) offset."""
        return _watermarks(self._connection, self._consumer, partition)

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
            self._consumer.unassign()

    def _read(self, partition: Partition, start: int, stop: int, timeout: float) -> Iterator[RecordBatch]:
        deadline = time.monotonic() + timeout
        reached = start
        while reached < stop:
            with self._connection.translated():
                messages = self._consumer.consume(1, 0.1)
                messages += self._consumer.consume(self._STEP, 0)
            records = []
            for message in messages:
                error = message.error()
                if error is None:
                    records.append(message)
                elif error.code() != _Code._PARTITION_EOF:  # noqa: SLF001 - librdkafka's own code
                    raise _translate(error)
                reached = max(reached, message.offset() + (error is None))
            wanted = [message for message in records if start <= message.offset() < stop]
            if wanted:
                deadline = time.monotonic() + timeout
                yield _batch(partition, wanted)
            elif time.monotonic() > deadline:
                self._connection.raise_denied()
                raise RetriableError(f"{partition}: stable up to {reached} of {stop} after {timeout} s")

    def close(self) -> None:
        """Let go of the connections."""
        self._consumer.close()


class ConfluentProducer:
    """A transactional producer."""

    def __init__(self, connection: _Connection, transactional_id: str) -> None:
        settings = connection.settings
        self._connection = connection
        self._patience = settings.transaction_timeout_ms / 1000
        self._failure: ck.KafkaError | None = None
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
        self._failure = None
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
        stamp = 0 if timestamp_ms is None else timestamp_ms  # librdkafka's 0 is "now"
        for number, value in enumerate(values):
            key = None if keys is None else keys[number]
            self._produce(partition, value, key, stamp, self._on_delivery)

    def _produce(self, partition: Partition, value: bytes | None, key: bytes | None, stamp: int, done: Any) -> None:
        deadline = time.monotonic() + self._patience
        with self._in_transaction():
            while True:
                try:
                    self._producer.produce(
                        partition.topic, value, key, partition.number, on_delivery=done, timestamp=stamp
                    )
                except BufferError as full:
                    if time.monotonic() > deadline:
                        raise AbortableError(f"the broker took nothing for {self._patience} s") from full
                    self._producer.poll(0.01)
                else:
                    return

    def _on_delivery(self, error: ck.KafkaError | None, _: Any) -> None:
        if error is not None and self._failure is None:
            self._failure = error

    def produce_and_wait(
        self,
        partition: Partition,
        value: bytes | None,
        key: bytes | None = None,
        timestamp_ms: int | None = None,
    ) -> int:
        """Write one record and wait for its offset."""
        offsets: list[int] = []

        def done(error: ck.KafkaError | None, message: Any) -> None:
            self._on_delivery(error, message)
            offsets.append(message.offset())

        self._produce(partition, value, key, timestamp_ms or 0, done)
        self.flush()
        return offsets[0]

    def flush(self) -> None:
        """Wait until everything is acknowledged."""
        self._require_delivered()
        if self._failure is not None:
            raise _abortable(_translate(self._failure))

    def _require_delivered(self) -> None:
        with self._in_transaction():
            waiting = self._producer.flush(self._patience)
        if waiting:
            raise AbortableError(f"{waiting} records were not acknowledged within {self._patience} s")

    def send_offsets(self, offsets: Mapping[Partition, Committed], token: GroupToken) -> None:
        """Make the group's offsets part of the transaction."""
        token.require_current()
        positions = [
            ck.TopicPartition(*partition, committed.offset, committed.metadata)
            for partition, committed in offsets.items()
        ]
        with self._in_transaction():
            self._producer.send_offsets_to_transaction(positions, token.handle, self._patience)

    def commit(self) -> None:
        """Make everything visible."""
        self._require_delivered()
        try:
            with self._connection.translated():
                self._producer.commit_transaction(self._patience)
        except RetriableError as error:
            raise UnclearError(str(error)) from error

    def abort(self) -> None:
        """Take everything back."""
        with self._connection.translated():
            self._producer.abort_transaction(self._patience)

    def close(self) -> None:
        """Let go at once."""
        # Not Producer.close: that aborts the open transaction, which may be in the middle of its commit.
        self._producer.purge()
        with suppress(ck.KafkaException):  # whatever it still has to say is of no interest any more
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
            raise _abortable(error) from error


def _abortable(error: KafkaError) -> KafkaError:
    return AbortableError(str(error)) if isinstance(error, RetriableError) else error


class ConfluentAdmin:
    """Topics and groups."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self._admin = connection.open(AdminClient)
        connection.serve = functools.partial(self._admin.poll, 0)

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        """Create a topic and wait until it can be used."""
        topic = NewTopic(name, partitions, -1, config=dict(config or {}))
        self._result(self._admin.create_topics([topic], request_timeout=self._connection.timeout)[name])
        self._wait_for_partitions(name, partitions)

    def describe_topic(self, name: str) -> TopicDescription:
        """Partitions, id and configuration."""
        topic = self._metadata(name)
        resource = ConfigResource(ResourceType.TOPIC, name)
        answer = self._admin.describe_configs([resource], request_timeout=self._connection.timeout)
        entries = self._result(answer[resource])
        config = {key: entry.value for key, entry in entries.items() if entry.value is not None}
        return TopicDescription(name, _uuid(topic.topic_id), len(topic.partitions), config)

    def grow_partitions(self, name: str, partitions: int) -> None:
        """Raise the number of partitions and wait until they can be used."""
        wanted = [NewPartitions(name, partitions)]
        self._result(self._admin.create_partitions(wanted, request_timeout=self._connection.timeout)[name])
        self._wait_for_partitions(name, partitions)

    def list_topics(self) -> list[str]:
        """The names of all topics but Kafka's own."""
        with self._connection.translated():
            topics = self._admin.list_topics(timeout=self._connection.timeout).topics
        return sorted(name for name in topics if not name.startswith("__"))

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until it is gone."""
        self._result(self._admin.delete_topics([name], request_timeout=self._connection.timeout)[name])
        self._wait_for_partitions(name, 0)

    def list_groups(self) -> list[str]:
        """The ids of all consumer groups."""
        answer = self._result(self._admin.list_consumer_groups(request_timeout=self._connection.timeout))
        return sorted(group.group_id for group in answer.valid)

    def group_offsets(self, group: str) -> dict[Partition, Committed]:
        """Everything that a group has committed."""
        asked = [ck.ConsumerGroupTopicPartitions(group)]
        answer = self._admin.list_consumer_group_offsets(asked, request_timeout=self._connection.timeout)
        return {
            Partition(each.topic, each.partition): Committed(each.offset, each.metadata or "")
            for each in self._result(answer[group]).topic_partitions
            if each.offset >= 0
        }

    def close(self) -> None:
        """Let go of the connections."""
        self._connection.serve = lambda: None
        del self._admin

    def _metadata(self, name: str) -> Any:
        asked = ck.TopicCollection([name])
        return self._result(self._admin.describe_topics(asked, request_timeout=self._connection.timeout)[name])

    def _wait_for_partitions(self, name: str, partitions: int) -> None:
        """A broker answers before it leads new partitions or has let go of old ones."""
        deadline = time.monotonic() + self._connection.timeout
        while time.monotonic() < deadline:
            try:
                led = [each for each in self._metadata(name).partitions if each.leader is not None]
            except UnknownTopicError:
                led = []
            if len(led) >= partitions > 0 or len(led) == partitions == 0:
                return
            time.sleep(0.02)
        raise RetriableError(f"topic {name!r} does not show {partitions} partitions yet")

    def _result(self, future: Any) -> Any:
        with self._connection.translated():
            return future.result(self._connection.timeout + 1)


def _uuid(topic_id: Any) -> UUID:
    bits = (topic_id.get_most_significant_bits() << 64) | (topic_id.get_least_significant_bits() & (2**64 - 1))
    return UUID(int=bits & (2**128 - 1))
