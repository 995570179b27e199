"""A member of a group on librdkafka."""

import logging
import struct
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Any

import confluent_kafka as ck

from service.kafka.confluent.connection import Code, Connection, translate
from service.kafka.confluent.records import batches_of, end_of, note_of, watermarks_of
from service.kafka.errors import FatalError, FinalError, GoneError, InstanceTakenError
from service.kafka.membership import Membership, taken
from service.kafka.port import Committed, GroupToken, Partition, PartitionsCallback, RecordBatch, Watermarks

log = logging.getLogger(__name__)

_START_SECONDS = 3.0
_LEAVE_SECONDS = 30.0
"""How long leaving the group may take."""
_FETCHED_AHEAD = {"queued.max.messages.kbytes": 16_384, "queued.min.messages": 20_000}
"""What waits to be polled, of all partitions and of each. librdkafka's own limits, 64 MiB and 100,000 records, let
small records take much more than that while a worker catches up."""


class ConfluentConsumer:
    """A member of a consumer group."""

    def __init__(self, connection: Connection, group: str, instance: str | None = None) -> None:
        settings = connection.settings
        self._connection = connection
        self._group = group
        self._instance = instance
        self._failures: list[ck.Message] = []
        self._paused: set[Partition] = set()
        self._stranded: set[Partition] = set()  # librdkafka has given them up and does not seek them
        self._consumer = connection.open(
            ck.Consumer,
            _FETCHED_AHEAD,
            group_id=group,
            isolation_level="read_committed",
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            auto_offset_reset="error",
            allow_auto_create_topics=False,
            partition_assignment_strategy="range",
            fetch_wait_max_ms=100,  # what is sought or resumed waits for the fetch under way
            fetch_queue_backoff_ms=10,  # a full queue is taken in less than librdkafka's own second, and then runs dry
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            max_poll_interval_ms=max(settings.max_poll_interval_ms, settings.session_timeout_ms),
            **({} if instance is None else {"group_instance_id": instance}),
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
        messages = self._consume(timeout, max_records)
        self._membership.tell()
        if any(map(ck.Message.error, messages)):
            self._failures += [message for message in messages if message.error()]
            messages = [message for message in messages if not message.error()]
        batches = [batch for batch in batches_of(messages) if batch.partition in self._membership.positions]
        for batch in batches:
            self._membership.positions[batch.partition] = int(batch.offsets[-1]) + 1
        if not batches:
            self._raise_failure()
        return batches

    def _consume(self, timeout: float, max_records: int) -> list[Any]:
        """What there is, as soon as there is something.

        A batch call of the library waits for a full batch. So wait for one record, then take what else is there;
        an error of that second call comes again with the next one and must not cost the first record.
        """
        messages: list[Any] = []
        with self._connection.translated():
            for slice_ in self._membership.slices(timeout):
                messages = self._consumer.consume(1, slice_)
                if messages:
                    break
        if messages and max_records > 1:
            with suppress(ck.KafkaException):
                messages += self._consumer.consume(max_records - 1, 0)
        return messages

    def _raise_failure(self) -> None:
        """Errors come among the messages; they wait until the records before them are handed out."""
        self._connection.raise_denied()
        while self._failures:
            message = self._failures.pop(0)
            error = message.error()
            if error.code() == Code._AUTO_OFFSET_RESET:  # noqa: SLF001 - librdkafka's own code
                place = Partition(message.topic(), message.partition())
                if self._membership.positions.get(place) == message.offset():
                    self._stranded.add(place)
                    raise GoneError(*place, message.offset())
                if place in self._membership.positions:  # a fetch from before the seek: it gave the partition up too
                    self._reassign()
                continue
            if error.code() == Code._FATAL and "group.instance.id" in error.str():  # noqa: SLF001 - of consumers
                raise InstanceTakenError(taken(self._group, self._instance))
            if error.code() == Code._MAX_POLL_EXCEEDED:  # noqa: SLF001 - on_lost tells it
                continue
            raise translate(error)

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
        deadline = time.monotonic() + _START_SECONDS
        with self._connection.translated():
            while True:
                try:
                    self._consumer.seek(place)
                except ck.KafkaException as exception:
                    # librdkafka starts an assigned partition in the background; until then it cannot seek.
                    if exception.args[0].code() != Code._STATE:  # noqa: SLF001
                        raise
                    if time.monotonic() > deadline:  # it fetched before the pause, found nothing, and gave up
                        self._reassign()
                        return
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
        with self._connection.translated():
            handle = self._consumer.consumer_group_metadata()
        # librdkafka's serialized form: magic, generation, group and member as C strings, instance flag.
        magic = b"CGMDv2:"
        if not handle.startswith(magic):
            raise FinalError("confluent-kafka changed its group metadata; supported: CGMDv2")
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
                raise translate(each.error)
        return {
            Partition(each.topic, each.partition): Committed(each.offset, note_of(each)) if each.offset >= 0 else None
            for each in answer
        }

    def watermarks(self, partition: Partition) -> Watermarks:
        """The log's first offset and last stable offset."""
        return watermarks_of(self._connection, self._consumer, partition)

    def end(self, partition: Partition, timeout: float) -> int:
        """The log's last stable offset."""
        return end_of(self._connection, self._consumer, partition, timeout)

    def close(self) -> None:
        """Leave the group.

        Where partitions are assigned at that moment, librdkafka may wait for an answer of its own that never comes. It
        does so beside us, and the session's time-out says goodbye.
        """
        leaving = threading.Thread(target=self._leave, name=f"leaving {self._group}", daemon=True)
        leaving.start()
        leaving.join(_LEAVE_SECONDS)
        if leaving.is_alive():
            log.warning("group %s: the client does not get to leave it; the session's time-out will do so", self._group)
        if hasattr(self, "_membership"):
            self._membership.tell()

    def _leave(self) -> None:
        with suppress(ck.KafkaException):  # the session's time-out says goodbye as well
            self._consumer.close()


def _ours(partitions: list[Any]) -> list[Partition]:
    return [Partition(each.topic, each.partition) for each in partitions]
