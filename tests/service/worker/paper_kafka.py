"""A Kafka on paper: topics are lists, a transaction counts when it commits, and every call is written down in order.

Brokers show what happens; this shows in which order it was asked for, and lets a test choose the moment of a rebalance.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import numpy as np

from service.kafka import (
    Committed,
    GroupToken,
    Partition,
    RecordBatch,
    TopicDescription,
    TopicShape,
    UnknownTopicError,
    Watermarks,
)


class Paper:
    """Client, consumer, reader, producer and administrator in one: there is one of each."""

    name = "paper"
    servers = ""
    largest_request = 9_437_184

    def __init__(self, partitions: int = 1, **config: Any) -> None:
        self.logs: defaultdict[Any, list[Any]] = defaultdict(list)
        self.gone: set[Any] = set()
        """Partition and offset of each record that retention took, or that is no record at all."""
        self.low: dict[Any, Any] = {}
        self.committed_offsets: dict[Any, Any] = {}
        self.ids, self.grown = {}, {}  # type: ignore[var-annotated]
        """Ids of topics that were created again, and partitions of topics that have other numbers of them."""
        self.calls: list[Any] = []
        self.owned = frozenset()  # type: ignore[var-annotated]
        self.generation, self.member = 1, "me"
        self.polls = 0
        self.header_names = frozenset[str]()
        """Headers of all records."""
        self.others = 0
        """Members of the group before this one joins."""
        self.errors: dict[Any, Any] = {}
        """What a call of this name raises, once."""
        self._partitions, self._config = partitions, config
        self._positions, self._paused, self._coming, self._open = {}, set(), [], []  # type: ignore[var-annotated]

    def _call(self, name: Any, *about: Any) -> None:
        self.calls.append((name, *about))
        self._fail(name)

    def _fail(self, name: Any) -> None:
        if name in self.errors:
            raise self.errors.pop(name)

    def truncate(self, place: Any, low: int) -> None:
        """Delete the records before an offset."""
        self.low[place] = low
        self.gone |= {(place, offset) for offset in range(low)}

    def assign(self, *numbers: Any) -> None:
        """What the next poll tells the member to own."""
        self._coming.append(frozenset(Partition("raw", number) for number in numbers))

    # -- client

    def group_consumer(self, *_: Any) -> Any:
        return self

    def reader(self, *, dirty: bool = False) -> Any:
        del dirty
        return self

    def admin(self) -> Any:
        return self

    def producer(self, _: Any) -> Any:
        return self

    def close(self) -> None:
        pass

    # -- administrator

    def describe_topic(self, name: Any) -> Any:
        self._fail(f"settings of {name}")
        state = {"cleanup.policy": "compact", "max.message.bytes": "9000000"}
        memory = {"cleanup.policy": "compact", "max.compaction.lag.ms": "86400000"}
        config = {"state": state, "memory": memory}.get(name.rpartition(".")[2], self._config)
        return TopicDescription(name, *self._shape(name), config)  # type: ignore[call-arg]

    def topic_shapes(self, names: Any) -> Any:
        if "shapes" in self.errors:
            raise self.errors.pop("shapes")
        return {name: self._shape(name) for name in names}

    def _shape(self, name: Any) -> Any:
        return TopicShape(self.ids.get(name, UUID(int=7)), self.grown.get(name, self._partitions))

    def group_members(self, _: Any) -> Any:
        return self.others

    def create_topic(self, *_: Any) -> None:
        pass

    def list_topics(self) -> None:
        raise UnknownTopicError

    # -- consumer and reader

    def subscribe(self, _: Any, assigned: Any, revoked: Any, __: Any) -> None:
        self._told = assigned, revoked

    def poll(self, _: Any, most: Any) -> Any:
        self._call("poll")
        self.polls += 1
        if self._coming:
            now = self._coming.pop(0)
            if gone := sorted(self.owned - now):
                self._told[1](gone)
            self.owned = now
            self._told[0](sorted(now))
            self._paused = set(now)
        batches = [self._batch(place, most) for place in sorted(self.owned - self._paused)]
        return [batch for batch in batches if len(batch)]

    def _batch(self, place: Any, most: Any) -> Any:
        start = self._positions[place]
        self._positions[place] = min(start + most, len(self.logs[place]))
        return next(iter(self.read(place, start, self._positions[place], 0)))

    def assignment(self) -> Any:
        return self.owned

    def seek(self, place: Any, offset: Any) -> None:
        self._positions[place] = offset

    def pause(self, places: Any) -> None:
        self._paused |= set(places)

    def resume(self, places: Any) -> None:
        self._paused -= set(places)

    def group_token(self) -> Any:
        self._call("token")
        return GroupToken("g", self.generation, self.member, self.polls)

    def committed(self, places: Any) -> Any:
        self._fail("committed offsets")
        return {place: self.committed_offsets.get(place) for place in places}

    def watermarks(self, place: Any) -> Any:
        self._fail(f"watermarks of {place.topic}")
        return Watermarks(self.low.get(place, 0), len(self.logs[place]))

    def end(self, place: Any, _: Any) -> Any:
        return self.watermarks(place).high

    def read(self, place: Any, start: Any, stop: Any, _: Any) -> Iterator[Any]:
        self._fail(f"read {place.topic}/{place.number}")
        offsets = np.array([n for n in range(start, stop) if (place, n) not in self.gone], np.int64)
        records = [self.logs[place][n] for n in offsets]
        keys, values = [key for key, _ in records], [value for _, value in records]
        yield RecordBatch(place, offsets, offsets, keys, values, self.header_names)

    # -- producer

    def init_transactions(self) -> None:
        self._call("init")
        self._open = []

    def begin(self) -> None:
        self._call("begin")

    def produce(self, place: Any, values: Any, keys: Any = None, timestamp_ms: Any = None) -> None:
        self._call("produce", place.topic, timestamp_ms)
        keys = keys or [None] * len(values)
        self._open += [(place, key, value) for key, value in zip(keys, values, strict=True)]

    def produce_and_wait(self, records: Any, timestamp_ms: Any = None) -> Any:
        (topic,) = {place.topic for place in records}
        self._call("wait", topic, timestamp_ms)
        self._open += [(place, *record) for place, record in records.items()]
        return {place: len(self.logs[place]) + sum(where == place for where, *_ in self._open) - 1 for place in records}

    def flush(self) -> None:
        self._call("flush")

    def send_offsets(self, offsets: Any, token: Any) -> None:
        self._call("offsets", dict(offsets), token)
        self._open.append(offsets)

    def commit(self) -> None:
        self._call("commit")
        for what in self._open:
            if isinstance(what, dict):
                self.committed_offsets |= {place: Committed(*committed) for place, committed in what.items()}
            else:
                self.logs[what[0]].append(what[1:])
        self._open = []
        self._call("committed")

    def abort(self) -> None:
        self._call("abort")
        self._open = []
