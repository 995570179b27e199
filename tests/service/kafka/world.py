"""The world of a contract test: a client of one kind on a broker of one kind, and names of its own."""

import contextlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from service.kafka import (
    Admin,
    Client,
    Committed,
    GroupConsumer,
    KafkaSettings,
    Partition,
    Reader,
    RecordBatch,
    RetriableError,
    TransactionalProducer,
    UnknownTopicError,
    connect,
)
from tests.patience import happens

QUICK = {
    "session_timeout_ms": 20_000,  # machines that run tests are busy
    "heartbeat_interval_ms": 200,
    "max_poll_interval_ms": 60_000,
    "metadata_max_age_ms": 500,
    "transaction_timeout_ms": 30_000,
}


@dataclass
class Member:
    """A group member that remembers what it was told."""

    consumer: GroupConsumer
    told: list[tuple[str, list[Partition]]] = field(default_factory=list)

    def subscribe(self, topic: str) -> None:
        self.consumer.subscribe(
            [topic],
            lambda given: self.told.append(("assigned", given)),
            lambda given: self.told.append(("revoked", given)),
            lambda given: self.told.append(("lost", given)),
        )

    def poll(self, timeout: float, max_records: int) -> list[RecordBatch]:
        """What there is; nothing where a broker asks for patience."""
        try:
            return self.consumer.poll(timeout, max_records)
        except (RetriableError, UnknownTopicError):
            return []

    def until_owns(self, count: int, *others: "Member") -> None:
        """Poll until this member owns so many partitions; members that share the group must poll along."""

        def owns() -> bool:
            for member in (self, *others):
                member.poll(0.05, 100)
            return len(self.consumer.assignment()) == count

        eventually(owns)

    def begin(self, *offsets: int) -> None:
        """Start reading every owned partition, each at its offset (0 where none is given)."""
        for number, partition in enumerate(sorted(self.consumer.assignment())):
            self.consumer.seek(partition, offsets[number] if number < len(offsets) else 0)
        self.consumer.resume(self.consumer.assignment())

    def values(self, count: int, max_records: int = 1000) -> dict[Partition, list[bytes | None]]:
        """Poll until so many records have come."""
        found: dict[Partition, list[bytes | None]] = {}

        def enough() -> bool:
            for batch in self.poll(0.2, max_records):
                found.setdefault(batch.partition, []).extend(batch.values)
            return sum(map(len, found.values())) >= count

        eventually(enough)
        return found


class World:
    """Opens parts of one client and closes them all at the end."""

    def __init__(self, client: str, bootstrap: str, stack: contextlib.ExitStack) -> None:
        self._client = client
        self.bootstrap = bootstrap
        self._stack = stack
        self.admin: Admin = self._closing(self.client().admin())
        self.name = f"t-{uuid.uuid4().hex[:10]}"
        self.group = f"group-of-{self.name}"

    def client(self, **settings: Any) -> Client:
        return connect(KafkaSettings(bootstrap_servers=self.bootstrap, client=self._client, **{**QUICK, **settings}))

    def topic(self, partitions: int = 1, suffix: str = "", **config: str) -> Partition:
        """A new topic's first partition; `cleanup_policy="compact"` and the like configure it."""
        name = self.name + suffix
        self.admin.create_topic(name, partitions, {key.replace("_", "."): value for key, value in config.items()})
        return Partition(name, 0)

    def producer(self, name: str = "producer", **settings: Any) -> TransactionalProducer:
        producer = self.client(**settings).producer(f"{name}-of-{self.name}")
        self._closing(producer)
        producer.init_transactions()
        return producer

    def member(self, topic: str, instance: str | None = None, **settings: Any) -> Member:
        member = Member(self._closing(self.client(**settings).group_consumer(self.group, instance)))
        member.subscribe(topic)
        return member

    def stranger(self) -> GroupConsumer:
        """Somebody with the group's name who has not joined."""
        return self._closing(self.client().group_consumer(self.group))

    def reader(self, *, dirty: bool = False, **settings: Any) -> Reader:
        return self._closing(self.client(**settings).reader(dirty=dirty))

    def write(self, partition: Partition, *values: bytes | None, commit: bool = True, **more: Any) -> None:
        """A transaction of its own, committed or aborted; its producer is gone afterwards, and takes no time."""
        name = f"writer-{uuid.uuid4().hex[:6]}-of-{self.name}"
        with contextlib.closing(self.client(max_request_bytes=20_000_000).producer(name)) as producer:
            producer.init_transactions()
            producer.begin()
            producer.produce(partition, values, **more)
            producer.flush()
            if commit:
                producer.commit()
            else:
                producer.abort()

    def commit_offset(self, partition: Partition, committed: Committed, member: Member) -> None:
        """A transaction that commits one offset."""
        producer = self.producer(f"committer-{uuid.uuid4().hex[:6]}")
        producer.begin()
        producer.send_offsets({partition: committed}, member.consumer.group_token())
        producer.commit()

    def read(self, partition: Partition, *, dirty: bool = False) -> list[bytes | None]:
        """Everything that there is; waits while a transaction is open.

        A real broker answers a commit before its marker is written, so what was committed last may not be stable yet.
        """
        with contextlib.closing(self.client().reader(dirty=True)) as reader:
            low, high = reader.watermarks(partition)
        with contextlib.closing(self.client().reader(dirty=dirty)) as reader:
            return [value for batch in reader.read(partition, low, high, 60) for value in batch.values]

    def _closing(self, part: Any) -> Any:
        self._stack.callback(part.close)
        return part


def eventually(done: Callable[[], object], seconds: float = 120) -> None:
    if not happens(done, seconds):
        pytest.fail(f"did not happen within {seconds} s")


def offsets_of(batches: Any) -> list[int]:
    return [int(each) for each in np.concatenate([np.empty(0, np.int64), *(batch.offsets for batch in batches)])]
