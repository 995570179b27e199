"""What the worker needs of Kafka, and nothing else.

Two adapters implement these protocols with the same behaviour; `tests/service/kafka` holds both to it, on two
brokers. They raise only the errors of `service.kafka.errors`. Nothing here may be shared between threads.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.kafka.errors import StaleGroupError


class Partition(NamedTuple):
    """One partition of a topic."""

    topic: str
    number: int


class Committed(NamedTuple):
    """A group's committed offset: the next record to read, and the note that was committed with it."""

    offset: int
    metadata: str = ""


class Watermarks(NamedTuple):
    """The first offset that is still there, and the end: behind the last record, or the last stable one.

    A reader of committed records gets the last stable offset as the end, a dirty reader the high watermark.
    """

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Records of one partition in offset order, as columns; offsets may have gaps."""

    partition: Partition
    offsets: NDArray[np.int64]
    timestamps: NDArray[np.int64]  # milliseconds since 1970
    keys: list[bytes | None] = field(repr=False)
    values: list[bytes | None] = field(repr=False)
    header_names: frozenset[str] = frozenset()
    """Headers of the first record: how producers write is the same for many records."""

    def __len__(self) -> int:
        return len(self.values)

    def between(self, start: int, stop: int) -> Self:
        """Return the records at offsets from `start` to before `stop`."""
        first, end = np.searchsorted(self.offsets, (start, stop)).tolist()
        if end - first == len(self):
            return self
        some = slice(first, end)
        columns = self.offsets[some], self.timestamps[some], self.keys[some], self.values[some]
        return type(self)(self.partition, *columns, self.header_names)


@dataclass(frozen=True, slots=True)
class GroupToken:
    """Proof of membership in a group's generation: it fences off who no longer owns the partitions."""

    group: str
    generation: int
    member: str
    handle: object = field(repr=False, compare=False)  # what the client library wants to see again

    @property
    def is_current(self) -> bool:
        """Whether the broker can check this token at all.

        A consumer that missed its heartbeats holds generation -1 and no member id, and a broker accepts
        exactly that without any check, because it is also what a client without a group sends.
        """
        return self.generation >= 0 and self.member != ""

    def require_current(self) -> None:
        """Refuse a token that the broker would accept unchecked."""
        if not self.is_current:
            raise StaleGroupError(
                f"group {self.group!r}: generation {self.generation} with "
                f"{'a' if self.member else 'no'} member id proves no membership; it is never sent"
            )


class TopicShape(NamedTuple):
    """Which topic it is (one that is deleted and created again has another id) and how many partitions it has."""

    topic_id: UUID
    partitions: int


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """What the broker says about a topic."""

    name: str
    topic_id: UUID
    partitions: int
    config: Mapping[str, str]


PartitionsCallback = Callable[[list[Partition]], None]


class GroupConsumer(Protocol):
    """A member of a consumer group: eager assignment, committed records only, nothing committed by itself."""

    def subscribe(
        self,
        topics: Collection[str],
        on_assigned: PartitionsCallback,
        on_revoked: PartitionsCallback,
        on_lost: PartitionsCallback,
    ) -> None:
        """Join the group. The callbacks run inside `poll` and `close`.

        An assigned partition starts paused and gives no record before `seek` has said where to begin and
        `resume` has let it go. Revoked: the group takes the partitions away in order. Lost: another member
        may have them already.
        """

    def poll(self, timeout: float, max_records: int) -> list[RecordBatch]:
        """Wait up to `timeout` seconds for records; at most one batch per partition.

        Call it at least once per `max_poll_interval_ms`, also while everything is paused. Never gives a
        record of a partition that is paused, or from before its last `seek`. Raises `GoneError` when a
        partition does not hold the offset to read next; the partition waits for another `seek`.
        """

    def assignment(self) -> frozenset[Partition]:
        """The partitions that this member owns, as of the last `poll`."""

    def seek(self, partition: Partition, offset: int) -> None:
        """Give the record at `offset` (or the first one behind it) next."""

    def pause(self, partitions: Collection[Partition]) -> None:
        """Give no records of these partitions until they are resumed."""

    def resume(self, partitions: Collection[Partition]) -> None:
        """Give records of these partitions again, from where they stood."""

    def position(self, partition: Partition) -> int:
        """The offset behind the last record given, or the one sought."""

    def group_token(self) -> GroupToken:
        """Membership as of now; take it right after the `poll` whose records a transaction settles."""

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, Committed | None]:
        """The group's stable committed offsets; waits for transactions that are about to change them."""

    def watermarks(self, partition: Partition) -> Watermarks:
        """The log's first offset and last stable offset, asked of the broker."""

    def end(self, partition: Partition, timeout: float) -> int:
        """The log's last stable offset, asked of a broker that has so many seconds to answer."""

    def close(self) -> None:
        """Leave the group; partitions still owned are revoked first."""


class Reader(Protocol):
    """Reads exact ranges of offsets, outside of any group."""

    def watermarks(self, partition: Partition) -> Watermarks:
        """The log's first and last (stable) offset, asked of the broker."""

    def read(self, partition: Partition, start: int, stop: int, timeout: float) -> Iterator[RecordBatch]:
        """Every record there is from `start` up to but without `stop`, in batches.

        Records that are gone (retention, compaction), aborted or markers are left out. Waits while the range
        is not stable yet, and raises `RetriableError` when that takes longer than `timeout` seconds.
        """

    def close(self) -> None:
        """Let go of the connections."""


class TransactionalProducer(Protocol):
    """Writes records and offsets that become visible together or not at all.

    After any error (but a `RetriableError` of `init_transactions`) and after any abort, discard it and open
    another.
    """

    def init_transactions(self) -> None:
        """Take over the transactional id: fence older owners and abort what they left open."""

    def begin(self) -> None:
        """Open a transaction."""

    def produce(
        self,
        partition: Partition,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """Hand over records, in order; `flush` says whether they arrived."""

    def produce_and_wait(
        self, records: Mapping[Partition, tuple[bytes | None, bytes | None]], timestamp_ms: int | None = None
    ) -> dict[Partition, int]:
        """Write one record, key and value, to each of these partitions, wait once for all of them: their offsets."""

    def flush(self) -> None:
        """Wait until every record handed over is acknowledged; raise the first failure."""

    def send_offsets(self, offsets: Mapping[Partition, Committed], token: GroupToken) -> None:
        """Make the group's offsets part of it; `StaleGroupError` for a token that proves no membership."""

    def commit(self) -> None:
        """Make everything visible. `UnclearError` means that nobody knows whether it happened."""

    def abort(self) -> None:
        """Take everything back."""

    def close(self) -> None:
        """Let go at once; a transaction still open is left to its time-out or the next owner of the id."""


class Admin(Protocol):
    """Topics and groups."""

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        """Create a topic with the broker's default replication, and wait until every broker that answers knows it.

        `TopicExistsError` if it is there.
        """

    def describe_topic(self, name: str) -> TopicDescription:
        """Partitions, id and configuration; `UnknownTopicError` if there is none."""

    def topic_shapes(self, names: Collection[str]) -> dict[str, TopicShape]:
        """Id and partitions of those of these topics that exist, asked of the broker in one request."""

    def grow_partitions(self, name: str, partitions: int) -> None:
        """Raise the number of partitions to `partitions`."""

    def list_topics(self) -> list[str]:
        """The names of all topics but Kafka's own."""

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until it is gone; `UnknownTopicError` if there is none."""

    def list_groups(self) -> list[str]:
        """The ids of all consumer groups."""

    def group_members(self, group: str) -> int:
        """How many members a group has; one that was killed counts until its session has timed out."""

    def group_offsets(self, group: str) -> dict[Partition, Committed]:
        """Everything that a group has committed; a transaction that has just ended may take a moment to show."""

    def close(self) -> None:
        """Let go of the connections."""


class Client(Protocol):
    """Opens the parts above with one set of settings."""

    name: str
    servers: str
    """Where it connects: host:port, comma-separated."""
    largest_request: int
    """Bytes that its producers send at once at most, and so in one record."""

    def group_consumer(self, group: str, instance: str | None = None) -> GroupConsumer:
        """A member of a group; joins with `subscribe`.

        With an instance name it is a static member: who joins under the same name takes over its place and its
        partitions at once, and shuts it out (`InstanceTakenError`); it does not leave the group when it is closed.
        """

    def reader(self, *, dirty: bool = False) -> Reader:
        """A reader of committed records; a dirty one sees open and aborted transactions too."""

    def producer(self, transactional_id: str) -> TransactionalProducer:
        """A producer; usable after `init_transactions`."""

    def admin(self) -> Admin:
        """An administrator."""
