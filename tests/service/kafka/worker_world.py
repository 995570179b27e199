"""A stream with a worker on a broker: feeds events, runs workers in threads, reads what left."""

import contextlib
import dataclasses
import json
import threading
from typing import Any

import numpy as np

from microdata import Category, Hierarchy, Number, Schema
from service.kafka import Partition, Reader, RetriableError, UnknownTopicError
from service.worker.loop import Worker
from service.worker.metrics import Metrics
from service.worker.settings import WorkerSettings
from service.worker.stream import Stream
from tests.service.kafka.world import World, eventually
from tests.service.worker.chunks import Chunks

SCHEMA = Schema(
    "who",
    (Number("age", 0, 99, integer=True), Category("city", Hierarchy.flat(["a", "b", "c"]))),
    (Category("item", Hierarchy.flat(["x", "y"])),),
    ("trace",),
)


def event(trace: int | str, person: int, **other: Any) -> bytes:
    fields = {"who": f"p{person}", "age": person % 100, "city": "abc"[person % 3], "item": "xy"[person % 2]}
    return json.dumps({**fields, "trace": trace, "secret": "undeclared", **other}).encode()


class Town:
    """One stream in one world."""

    def __init__(self, world: World, partitions: int = 1, k: int = 3, **engine: Any) -> None:
        self.world = world
        self.client = world.client(session_timeout_ms=20_000, heartbeat_interval_ms=1_000)
        topics = {role: world.topic(partitions, f"-{role}").topic for role in ("raw", "safe", "dead")}
        models = Chunks(SCHEMA, k=k, **engine).models()
        self.stream = Stream(
            world.name,
            topics["raw"],
            topics["safe"],
            SCHEMA,
            models,
            lambda: Chunks(SCHEMA, k=k, **engine),
            "fingerprint",
            "earliest",
            dead_letters=topics["dead"],
        )
        self.running: list[tuple[Worker, threading.Event, threading.Thread]] = []
        self.errors: list[BaseException] = []
        self._readers: dict[bool, Reader] = {}

    def feed(self, *values: bytes | None, partition: int = 0, keys: Any = None) -> None:
        self.world.write(Partition(self.stream.input, partition), *values, keys=keys)

    def worker(self, stream: Stream | None = None, **settings: Any) -> Worker:
        stream = stream or self.stream
        given = {"commit_interval": 0.1, **settings}
        return Worker(stream, self.client, WorkerSettings(**given), Metrics(stream))

    def start(self, worker: Worker | None = None, **settings: Any) -> Worker:
        worker = worker or self.worker(**settings)
        stop = threading.Event()

        def run() -> None:
            try:
                worker.run(stop)
            except BaseException as error:  # noqa: BLE001 - the test looks at it
                self.errors.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.running.append((worker, stop, thread))
        return worker

    def stop(self) -> None:
        for _, stop, _ in self.running:
            stop.set()
        for _, _, thread in self.running:
            thread.join(120)
            assert not thread.is_alive(), "a worker did not stop"
        self.running.clear()

    def until(self, done: Any, seconds: float = 120) -> None:
        def looked() -> bool:
            if self.errors:
                raise self.errors[0]
            with contextlib.suppress(RetriableError, UnknownTopicError):  # whoever looks meets the same broker
                return bool(done())
            return False

        eventually(looked, seconds)

    def until_settled(self, worker: Worker, taken: int) -> None:
        """Until so many records are taken and nothing is pending or owed."""
        self.until(lambda: _settled(worker) >= taken)

    def until_all_left(self, worker: Worker, events: int) -> None:
        """Until every event has left but those that still wait for company."""
        self.until(lambda: len(self.released()) + worker.metrics.status()["gauges"]["pending"] == events)

    def output(self, *, dirty: bool = False) -> list[dict[str, Any]]:
        return [json.loads(value) for value in self.values(self.stream.output, dirty=dirty)]

    def values(self, topic: str, *, dirty: bool = False) -> list[bytes]:
        """Everything that is in a topic; waits while a transaction is open, as `World.read` does."""
        values = []
        for number in range(self.world.admin.describe_topic(topic).partitions):
            low, high = self._reader(dirty=True).watermarks(Partition(topic, number))
            batches = self._reader(dirty=dirty).read(Partition(topic, number), low, high, 60)
            values += [value for batch in batches for value in batch.values]
        return values  # type: ignore[return-value]

    def _reader(self, *, dirty: bool) -> Reader:
        if dirty not in self._readers:
            self._readers[dirty] = self.world.reader(dirty=dirty)
        return self._readers[dirty]

    def released(self) -> list[int]:
        return [row["trace"] for cluster in self.output() for row in cluster["rows"]]

    def assert_each_cluster_has(self, k: int, person_of: Any) -> None:
        for cluster in self.output():
            assert len({person_of(row["trace"]) for row in cluster["rows"]}) >= k

    def assert_never_under_two_boxes(self) -> None:
        """What a reader of uncommitted data could have collected."""
        boxes: dict[int, set[str]] = {}
        for cluster in self.output(dirty=True):
            for row in cluster["rows"]:
                key = cluster["cluster"] + json.dumps(cluster["generalization"])
                boxes.setdefault(row["trace"], set()).add(key)
        assert all(len(own) == 1 for own in boxes.values())


def _settled(worker: Worker) -> int:
    counts = worker.metrics.status()["counts"]
    refused = sum(count for name, count in counts.items() if name.startswith("refused."))
    return counts.get("released", 0) + counts.get("suppressed", 0) + refused


def renamed(stream: Stream, **changes: Any) -> Stream:
    return dataclasses.replace(stream, **changes)


def people(count: int, persons: int, start: int = 0) -> list[bytes]:
    rng = np.random.default_rng(start)
    return [event(start + n, int(p)) for n, p in enumerate(rng.integers(0, persons, count))]
