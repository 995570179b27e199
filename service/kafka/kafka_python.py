"""The port on kafka-python: pure Python, always there."""

import logging
import ssl
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import numpy as np
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka import errors as kp
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.net.compat import KafkaNetClient
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.structs import OffsetAndMetadata, TopicPartition

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

# The library's debug lines hold whole requests, and so the records in them.
logging.getLogger("kafka").setLevel(logging.WARNING)

_JOIN_SECONDS = 1.0

_KIND: list[tuple[tuple[type[Exception], ...], type[KafkaError]]] = [
    ((kp.ProducerFencedError, kp.InvalidProducerEpochError), FencedError),
    (
        (
            kp.CommitFailedError,
            kp.IllegalGenerationError,
            kp.UnknownMemberIdError,
            kp.RebalanceInProgressError,
            kp.FencedInstanceIdError,
        ),
        StaleGroupError,
    ),
    (
        (
            kp.AuthorizationError,
            kp.SaslAuthenticationFailedError,
            kp.UnsupportedSaslMechanismError,
            ssl.SSLError,
        ),
        DeniedError,
    ),
    ((kp.UnknownTopicOrPartitionError, kp.UnknownTopicIdError), UnknownTopicError),
    ((kp.TopicAlreadyExistsError,), TopicExistsError),
    ((kp.MessageSizeTooLargeError, kp.RecordListTooLargeError), TooLargeError),
    ((kp.RetriableError,), RetriableError),
]


def _translate(error: BaseException) -> KafkaError:
    """Our error for kafka-python's."""
    text = f"{type(error).__name__}: {error}"
    return next((ours(text) for theirs, ours in _KIND if isinstance(error, theirs)), FatalError(text))


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (kp.KafkaError, ssl.SSLError) as error:
        raise _translate(error) from error


class _TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # the library ships no types
    def __init__(self, settings: KafkaSettings) -> None:
        super().__init__()
        self._settings = settings

    def token(self) -> str:
        return fetch_token(self._settings).value


def _config(kind: Any, settings: KafkaSettings) -> dict[str, Any]:
    """The settings in kafka-python's words, for one kind of part."""
    config: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap_servers.split(","),
        "client_id": settings.client_id,
        "security_protocol": settings.security_protocol,
        "metadata_max_age_ms": settings.metadata_max_age_ms,
        "request_timeout_ms": settings.request_timeout_ms,
        "bootstrap_timeout_ms": settings.request_timeout_ms,
        "reconnect_backoff_max_ms": 1_000,
    }
    files = {
        "cafile": settings.tls_ca_file,
        "certfile": settings.tls_cert_file,
        "keyfile": settings.tls_key_file,
    }
    config |= {f"ssl_{name}": str(path) for name, path in files.items() if path is not None}
    if settings.sasl_mechanism is not None:
        config["sasl_mechanism"] = settings.sasl_mechanism
    if settings.sasl_mechanism == "OAUTHBEARER":
        config["sasl_oauth_token_provider"] = _TokenProvider(settings)
    elif settings.sasl_password is not None:
        config["sasl_plain_username"] = settings.sasl_username
        config["sasl_plain_password"] = settings.sasl_password.get_secret_value()
    known = kind.DEFAULT_CONFIG
    return config | {key: value for key, value in settings.extra.items() if key in known}


class _Net(KafkaNetClient):  # type: ignore[misc]  # the library ships no types
    """Remembers a refused login, which the library only logs while it keeps trying."""

    def __init__(self, **config: Any) -> None:
        super().__init__(**config)
        self.denied: Exception | None = None
        self._get_connection = self._manager.get_connection
        self._manager.get_connection = self._watched_connection

    def _watched_connection(self, *arguments: Any, **options: Any) -> Any:
        connection = self._get_connection(*arguments, **options)
        connection.close_future.add_errback(self._note)
        return connection

    def _note(self, error: Exception) -> None:
        if isinstance(_translate(error), DeniedError):
            self.denied = error


def _opened(kind: Callable[..., Any], config: dict[str, Any]) -> Any:
    """A part of the library; when it does not open, its thread and sockets do not stay behind."""
    nets: list[_Net] = []

    def net(**options: Any) -> _Net:
        nets.append(_Net(**options))
        return nets[-1]

    try:
        return kind(**config, kafka_client=net)
    except kp.KafkaError as error:
        for each in nets:
            each.close()
            each._net.stop()  # noqa: SLF001 - what the library's own close does
        raise _translate(nets[0].denied or error if nets else error) from error


class KafkaPythonClient:
    """Opens consumers, readers, producers and administrators on kafka-python."""

    name = "kafka-python"

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings

    def group_consumer(self, group: str) -> "KafkaPythonConsumer":
        """A member of a group; joins with `subscribe`."""
        return KafkaPythonConsumer(self._settings, group)

    def reader(self, *, dirty: bool = False) -> "KafkaPythonReader":
        """A reader of committed records; a dirty one sees open and aborted transactions too."""
        return KafkaPythonReader(self._settings, dirty=dirty)

    def producer(self, transactional_id: str) -> "KafkaPythonProducer":
        """A producer; usable after `init_transactions`."""
        return KafkaPythonProducer(self._settings, transactional_id)

    def admin(self) -> "KafkaPythonAdmin":
        """An administrator."""
        return KafkaPythonAdmin(self._settings)


def _watermarks(consumer: Any, partition: Partition) -> Watermarks:
    place = TopicPartition(*partition)
    with _translated():
        low = consumer.beginning_offsets([place])[place]
        return Watermarks(low, consumer.end_offsets([place])[place])


def _batch(partition: Partition, records: list[Any]) -> RecordBatch:
    return RecordBatch(
        partition,
        np.fromiter((record.offset for record in records), np.int64, len(records)),
        np.fromiter((record.timestamp for record in records), np.int64, len(records)),
        [record.key for record in records],
        [record.value for record in records],
    )


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # the library ships no types
    """Runs on the library's thread: it notes, and holds new partitions still."""

    def __init__(self, consumer: Any, membership: Membership) -> None:
        self._consumer = consumer
        self._membership = membership

    def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        for place in assigned:
            # The explicit offset keeps the library from looking up the committed one.
            self._consumer.pause(place)
            self._consumer.seek(place, 0)
        self._membership.note_assigned([Partition(*place) for place in assigned])

    def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        self._membership.note_revoked([Partition(*place) for place in revoked])

    def on_partitions_lost(self, lost: Collection[Any]) -> None:
        self._membership.note_lost([Partition(*place) for place in lost])


class KafkaPythonConsumer:
    """A member of a consumer group."""

    def __init__(self, settings: KafkaSettings, group: str) -> None:
        self._group = group
        self._timeout_ms = settings.request_timeout_ms
        options = {
            "group_id": group,
            "isolation_level": "read_committed",
            "enable_auto_commit": False,
            "auto_offset_reset": "none",
            "allow_auto_create_topics": False,
            "partition_assignment_strategy": [RangePartitionAssignor],
            "session_timeout_ms": settings.session_timeout_ms,
            "heartbeat_interval_ms": settings.heartbeat_interval_ms,
            "max_poll_interval_ms": settings.max_poll_interval_ms,
            "metrics_enabled": False,
        }
        self._consumer = _opened(KafkaConsumer, _config(KafkaConsumer, settings) | options)

    def subscribe(
        self,
        topics: Collection[str],
        on_assigned: PartitionsCallback,
        on_revoked: PartitionsCallback,
        on_lost: PartitionsCallback,
    ) -> None:
        """Join the group; see the port."""
        self._membership = Membership(on_assigned, on_revoked, on_lost)
        self._consumer.subscribe(list(topics), listener=_Listener(self._consumer, self._membership))

    def poll(self, timeout: float, max_records: int) -> list[RecordBatch]:
        """Wait for records; see the port."""
        try:
            with _translated():
                self._join(timeout)
                found = self._consumer.poll(int(timeout * 1000), max_records)
        except KafkaError as error:
            self._membership.tell()
            if isinstance(error.__cause__, kp.OffsetOutOfRangeError):
                (((topic, number), offset),) = error.__cause__.args[0].items()
                raise GoneError(topic, number, offset) from error
            if isinstance(error, RetriableError):
                return []
            raise
        self._membership.tell()
        batches = [
            _batch(Partition(*place), records)
            for place, records in found.items()
            if Partition(*place) in self._membership.positions
        ]
        for batch in batches:
            self._membership.positions[batch.partition] = int(batch.offsets[-1]) + 1
        return batches

    def _join(self, timeout: float) -> None:
        """Join in one go where the group rebalances.

        A join that ends between two polls is lost to the library: it forgets to take over the assignment and
        stops its heartbeats. While joining nothing is owned, so waiting here holds up nobody.
        """
        coordinator = self._consumer._coordinator  # noqa: SLF001 - there is no other way to see it
        if coordinator.rejoining:
            coordinator.request_rejoin()
        if coordinator.need_rejoin():
            coordinator.poll(timeout_ms=1000 * max(timeout, _JOIN_SECONDS))

    def assignment(self) -> frozenset[Partition]:
        """The partitions that this member owns."""
        return self._membership.owned

    def seek(self, partition: Partition, offset: int) -> None:
        """Give the record at `offset` next."""
        if partition not in self._membership.owned:
            raise FatalError(f"{partition}: is not assigned")
        self._consumer.seek(TopicPartition(*partition), offset)
        self._membership.positions[partition] = offset

    def pause(self, partitions: Collection[Partition]) -> None:
        """Give no records of these partitions until they are resumed."""
        self._consumer.pause(*(TopicPartition(*each) for each in partitions))

    def resume(self, partitions: Collection[Partition]) -> None:
        """Give records of these partitions again."""
        for partition in partitions:
            self._membership.require_sought(partition)
        self._consumer.resume(*(TopicPartition(*each) for each in partitions))

    def position(self, partition: Partition) -> int:
        """The offset behind the last record given, or the one sought."""
        return self._membership.require_sought(partition)

    def group_token(self) -> GroupToken:
        """Membership as of now."""
        handle = self._consumer.group_metadata()
        return GroupToken(self._group, handle.generation_id, handle.member_id, handle)

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, Committed | None]:
        """The group's stable committed offsets."""
        return {each: self._committed(each) for each in partitions}

    def _committed(self, partition: Partition) -> Committed | None:
        with _translated():
            found = self._consumer.committed(TopicPartition(*partition), metadata=True, timeout_ms=self._timeout_ms)
        return None if found is None else Committed(found.offset, found.metadata or "")

    def watermarks(self, partition: Partition) -> Watermarks:
        """The log's first offset and last stable offset."""
        return _watermarks(self._consumer, partition)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
        if hasattr(self, "_membership"):
            self._membership.tell()


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
        self._consumer = _opened(KafkaConsumer, _config(KafkaConsumer, settings) | options)

    def watermarks(self, partition: Partition) -> Watermarks:
        """The log's first and last (stable) offset."""
        return _watermarks(self._consumer, partition)

    def read(self, partition: Partition, start: int, stop: int, timeout: float) -> Iterator[RecordBatch]:
        """Every record of a range; see the port."""
        start = max(start, self.watermarks(partition).low)
        place = TopicPartition(*partition)
        with _translated():
            self._consumer.assign([place])
            self._consumer.seek(place, start)
        deadline = time.monotonic() + timeout
        while (reached := self._consumer.position(place)) < stop:
            with _translated():
                records = self._consumer.poll(100, self._STEP).get(place, [])
            wanted = [record for record in records if start <= record.offset < stop]
            if wanted:
                deadline = time.monotonic() + timeout
                yield _batch(partition, wanted)
            elif time.monotonic() > deadline:
                raise RetriableError(f"{partition}: stable up to {reached} of {stop} after {timeout} s")

    def close(self) -> None:
        """Let go of the connections."""
        self._consumer.close()


def _producer_config(settings: KafkaSettings) -> dict[str, Any]:
    """A record that is not delivered within the life of its transaction never needs to be."""
    life, linger = settings.transaction_timeout_ms, 5
    return _config(KafkaProducer, settings) | {
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
        self._producer = _opened(KafkaProducer, config)
        self._manager = self._producer._transaction_manager  # noqa: SLF001 - see the class

    def init_transactions(self) -> None:
        """Take over the transactional id."""
        with _translated():
            done = self._request(self._manager.initialize_transactions, self._timeout)
        if not done:
            raise RetriableError(f"the transaction coordinator did not answer within {self._timeout} s")

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
        with self._in_transaction():
            for index, value in enumerate(values):
                key = None if keys is None else keys[index]
                self._sent.append(self._producer.send(topic, value, key, None, number, timestamp_ms))

    def produce_and_wait(
        self,
        partition: Partition,
        value: bytes | None,
        key: bytes | None = None,
        timestamp_ms: int | None = None,
    ) -> int:
        """Write one record and wait for its offset."""
        self.produce(partition, [value], [key], timestamp_ms)
        sent = self._sent[-1]
        self.flush()
        return int(sent.value.offset)

    def flush(self) -> None:
        """Wait until everything is acknowledged."""
        with self._in_transaction():
            self._producer.flush(self._patience)
            failed = next((each.exception for each in self._sent if each.failed()), None)
            if failed is not None:
                raise failed
            if not all(each.is_done for each in self._sent):
                raise AbortableError(f"records were not acknowledged within {self._patience} s")
        self._sent.clear()

    def send_offsets(self, offsets: Mapping[Partition, Committed], token: GroupToken) -> None:
        """Make the group's offsets part of the transaction."""
        token.require_current()
        positions = {
            TopicPartition(*partition): OffsetAndMetadata(committed.offset, committed.metadata, -1)
            for partition, committed in offsets.items()
        }
        with self._in_transaction():
            done = self._request(
                lambda: self._manager.send_offsets_to_transaction(positions, token.handle), self._patience
            )
        if not done:
            raise AbortableError(f"the group coordinator did not answer within {self._patience} s")

    def commit(self) -> None:
        """Make everything visible."""
        self.flush()
        with self._in_transaction():
            done = self._request(self._manager.begin_commit, self._patience)
        if not done:
            raise UnclearError(f"the transaction coordinator did not answer within {self._patience} s")

    def abort(self) -> None:
        """Take everything back."""
        with _translated():
            done = self._request(self._manager.begin_abort, self._patience)
        if not done:
            raise RetriableError(f"the transaction coordinator did not answer within {self._patience} s")

    def close(self) -> None:
        """Let go at once."""
        # Not KafkaProducer.close: that first sends what is left.
        self._producer._sender.force_close()  # noqa: SLF001 - see above
        self._producer._sender.join(self._patience)  # noqa: SLF001
        self._producer._unregister_cleanup()  # noqa: SLF001
        self._producer._closed = True  # noqa: SLF001

    def _request(self, start: Callable[[], Any], seconds: float) -> bool:
        """Send a request of the transaction manager; False when no answer came in time."""
        result = start()
        self._producer._sender.wakeup()  # noqa: SLF001 - what the library's own methods do
        return bool(result.wait(seconds * 1000))

    @contextmanager
    def _in_transaction(self) -> Iterator[None]:
        """Inside a transaction nothing is tried again: what might work later is a reason to abort now."""
        try:
            yield
        except kp.KafkaError as error:
            # In an error state the library only says so; the manager knows why.
            failure = _translate(self._manager.last_error or error)
            if isinstance(failure, RetriableError):
                raise AbortableError(str(failure)) from error
            if isinstance(failure, FatalError) and self._manager.has_abortable_error():
                raise AbortableError(str(failure)) from error
            raise failure from error


class KafkaPythonAdmin:
    """Topics and groups."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._timeout_ms = settings.request_timeout_ms
        self._admin = _opened(KafkaAdminClient, _config(KafkaAdminClient, settings))

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        """Create a topic and wait until it can be used."""
        topic = {"num_partitions": partitions, "configs": dict(config or {})}
        with _translated():
            self._admin.create_topics({name: topic})
        self._wait_for_partitions(name, partitions)

    def describe_topic(self, name: str) -> TopicDescription:
        """Partitions, id and configuration."""
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        with _translated():
            (topic,) = self._admin.describe_topics([name])
            if topic["error_code"]:
                raise kp.for_code(topic["error_code"])(name)
            entries = self._admin.describe_configs([resource], config_filter="all")["topic"][name]
        config = {key: entry["value"] for key, entry in entries.items() if entry["value"] is not None}
        return TopicDescription(name, UUID(topic["topic_id"]), len(topic["partitions"]), config)

    def grow_partitions(self, name: str, partitions: int) -> None:
        """Raise the number of partitions and wait until they can be used."""
        with _translated():
            self._admin.create_partitions({name: partitions})
        self._wait_for_partitions(name, partitions)

    def list_topics(self) -> list[str]:
        """The names of all topics but Kafka's own."""
        with _translated():
            return sorted(name for name in self._admin.list_topics() if not name.startswith("__"))

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until it is gone."""
        with _translated():
            self._admin.delete_topics([name])
        self._wait_for_partitions(name, 0)

    def list_groups(self) -> list[str]:
        """The ids of all consumer groups."""
        with _translated():
            return sorted(group["group_id"] for group in self._admin.list_groups())

    def group_offsets(self, group: str) -> dict[Partition, Committed]:
        """Everything that a group has committed."""
        with _translated():
            found = self._admin.list_group_offsets({group: None}).get(group, {})
        return {
            Partition(*place): Committed(each.offset, each.metadata or "")
            for place, each in found.items()
            if each.offset >= 0
        }

    def close(self) -> None:
        """Let go of the connections."""
        self._admin.close()

    def _wait_for_partitions(self, name: str, partitions: int) -> None:
        """A broker answers before it leads new partitions or has let go of old ones."""
        deadline = time.monotonic() + self._timeout_ms / 1000
        while time.monotonic() < deadline:
            with _translated():
                (topic,) = self._admin.describe_topics([name])
            led = [each for each in topic["partitions"] if each["leader_id"] >= 0]
            if len(led) >= partitions > 0 or len(led) == partitions == 0:
                return
            time.sleep(0.02)
        raise RetriableError(f"topic {name!r} does not show {partitions} partitions yet")
