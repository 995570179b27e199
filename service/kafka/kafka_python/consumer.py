"""A member of a group on kafka-python."""

import time
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from kafka import errors as kp
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.structs import TopicPartition

from service.kafka.errors import FatalError, GoneError, InstanceTakenError, KafkaError, UnknownTopicError
from service.kafka.kafka_python.connection import open_consumer, translated, unpacking
from service.kafka.kafka_python.records import batch_of, end_of, watermarks_of
from service.kafka.membership import Membership, taken
from service.kafka.port import Committed, GroupToken, Partition, PartitionsCallback, RecordBatch, Watermarks
from service.kafka.settings import KafkaSettings

_JOIN_SECONDS = 1.0
_TOPICS_SECONDS = 2.0
_LOOK_SECONDS = 0.02


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


def _gone(error: BaseException | None) -> GoneError | None:
    """What the library says of an offset that it failed to fetch. The same code in another answer names no offset."""
    places = error.args[0] if isinstance(error, kp.OffsetOutOfRangeError) and error.args else None
    if not isinstance(places, dict):
        return None
    (topic, number), offset = next(iter(places.items()))
    return GoneError(topic, number, offset)


class KafkaPythonConsumer:
    """A member of a consumer group."""

    def __init__(self, settings: KafkaSettings, group: str, instance: str | None = None) -> None:
        self._group = group
        self._timeout_ms = settings.request_timeout_ms
        options = {
            "group_id": group,
            "group_instance_id": instance,
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
        self._consumer = open_consumer(settings, options)
        self._instance, self._is_taken = instance, False
        if instance is not None:
            self._watch_heartbeats(self._consumer._coordinator)  # noqa: SLF001 - there is no other way to hear of it

    def _watch_heartbeats(self, coordinator: Any) -> None:
        """Hear of it when another member takes over our instance name: the library only stops its heartbeats then."""
        send = coordinator._send_heartbeat_request  # noqa: SLF001 - see above

        async def watched() -> None:
            try:
                await send()
            except kp.FencedInstanceIdError:
                self._is_taken = True
                raise

        coordinator._send_heartbeat_request = watched  # noqa: SLF001 - see above

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
        self._topics, self._topics_until = frozenset(topics), time.monotonic() + _TOPICS_SECONDS

    def poll(self, timeout: float, max_records: int) -> list[RecordBatch]:
        """Wait for records; see the port."""
        try:
            with unpacking(self._consumer):
                if self._is_taken:
                    raise kp.FencedInstanceIdError
                found = self._found(timeout, max_records)
        except KafkaError as error:
            self._membership.tell()
            self._go_back()
            gone = _gone(error.__cause__)
            if gone is not None:
                raise gone from error
            if isinstance(error, InstanceTakenError):
                raise InstanceTakenError(taken(self._group, self._instance)) from error
            raise
        self._membership.tell()
        batches = [
            batch_of(Partition(*place), records)
            for place, records in found.items()
            if Partition(*place) in self._membership.positions
        ]
        for batch in batches:
            self._membership.positions[batch.partition] = int(batch.offsets[-1]) + 1
        return batches

    def _go_back(self) -> None:
        """To where the worker stands: what the library had unpacked before it failed is lost with the call."""
        for partition, offset in self._membership.positions.items():
            with suppress(kp.KafkaError):  # revoked just now
                self._consumer.seek(TopicPartition(*partition), offset)

    def _found(self, timeout: float, max_records: int) -> dict[Any, list[Any]]:
        self._learn_topics()
        for slice_ in self._membership.slices(timeout):
            self._join()
            found: dict[Any, list[Any]] = self._consumer.poll(int(slice_ * 1000), max_records)
            if found:
                return found
        self._require_topics()
        return {}

    def _learn_topics(self) -> None:
        """Know the partitions before joining, if the broker tells them soon.

        A leader that joins without knowing them gives everybody nothing, and makes the whole group rebalance once it
        does. The library alone may be long in asking: a request under way as it subscribes, which does not name the
        topics, counts for it as the answer.
        """
        coordinator, cluster = self._consumer._coordinator, self._consumer._client.cluster  # noqa: SLF001 - as below
        while time.monotonic() < self._topics_until:
            if all(coordinator._metadata_snapshot.get(topic) for topic in self._topics):  # noqa: SLF001 - as below
                return
            cluster.request_update()
            time.sleep(_LOOK_SECONDS)

    def _require_topics(self) -> None:
        """Say it when a topic is gone: the library takes its partitions away, and goes on with nothing."""
        cluster = self._consumer._client.cluster  # noqa: SLF001 - as below
        missing = [topic for topic in sorted(self._topics) if not cluster.partitions_for_topic(topic)]
        if missing and not self._membership.owned and not self._membership.has_news:
            raise UnknownTopicError(f"topic {missing[0]!r} is not there")

    def _join(self) -> None:
        """Join in one go where the group rebalances.

        A join that ends between two polls is lost to the library: it forgets to take over the assignment and
        stops its heartbeats. While joining nothing is owned, so waiting here holds up nobody.
        """
        coordinator = self._consumer._coordinator  # noqa: SLF001 - there is no other way to see it
        if coordinator.rejoining:
            coordinator.request_rejoin()
        if coordinator.need_rejoin():
            coordinator.poll(timeout_ms=1000 * _JOIN_SECONDS)

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
        with translated():
            handle = self._consumer.group_metadata()
        return GroupToken(self._group, handle.generation_id, handle.member_id, handle)

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, Committed | None]:
        """The group's stable committed offsets."""
        return {each: self._committed(each) for each in partitions}

    def _committed(self, partition: Partition) -> Committed | None:
        with translated():
            found = self._consumer.committed(TopicPartition(*partition), metadata=True, timeout_ms=self._timeout_ms)
        return None if found is None else Committed(found.offset, found.metadata or "")

    def watermarks(self, partition: Partition) -> Watermarks:
        """The log's first offset and last stable offset."""
        return watermarks_of(self._consumer, partition)

    def end(self, partition: Partition, timeout: float) -> int:
        """The log's last stable offset."""
        return end_of(self._consumer, partition, int(timeout * 1000))

    def close(self) -> None:
        """Leave the group."""
        with suppress(kp.KafkaError):  # the session's time-out says goodbye as well
            self._consumer.close()
        if hasattr(self, "_membership"):
            self._membership.tell()
