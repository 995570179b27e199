"""The demo's world: an embedded broker, a worker and a producer, each in a process or thread of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

import msgspec
import pyarrow as pa
import yaml

from microdata import PortcullisError
from service.demo.audit import DemoAudit, Ordered, audited
from service.demo.policy import KEYED, POLICY, remembering
from service.demo.writer import Records, Writer
from service.kafka import Client, FinalError, KafkaError, KafkaSettings, Partition, TopicExistsError, connect
from service.kafka.partitioners import partitions_of
from service.policy import load_policy
from service.ports import free_port, listening
from service.sample import sample_events
from service.worker.sealing import add_key

_BATCH = 2_000
_MOST_CUSTOMERS = 10_000
"""So few that most of them have come back before somebody who looks on has lost patience."""
_PARTITIONS = 2
_PAUSE = 0.5
"""Between two tries to write orders."""
_READ_SECONDS = 30.0
_STOP_SECONDS = 60.0
"""For the producer to end what it is at; without its broker it would complain."""
_SEED = 2010
_START_SECONDS = 3600.0
"""The first start ever compiles the kernels: a minute or two, more on a busy machine. Whoever dies is noticed."""
_TOLD_EVERY = 15.0
"""Seconds between two words of patience."""


class Demo:
    """A context: everything runs inside of it and is stopped, by its id, at the end.

    `traced` makes the order's number a public field, so that the audit can join input and output. Never do that with
    data that matters: it undoes the anonymization for whoever sees both topics. Where nothing is traced, people look
    on: they get the console too. `waiting` is told now and then for how many seconds the worker is not ready yet.
    """

    def __init__(
        self,
        directory: Path,
        events: int,
        *,
        rate: int | None,
        traced: bool,
        port: int = 0,
        waiting: Callable[[float], None] = lambda _: None,
    ) -> None:
        self.produced = 0
        self._waiting = waiting
        self._events = events
        self._rate = rate
        self._traced = traced
        self._policy_path = directory / "orders.yaml"
        policy = remembering(POLICY)
        if traced:
            policy["schema"]["public"].append("order")
        self._policy_path.write_text(yaml.safe_dump(policy, sort_keys=False))
        keys = directory / "keys.json"
        self._sealing = {"PORTCULLIS_WORKER_KEY_FILE": str(keys), "PORTCULLIS_WORKER_KEY_ID": add_key(keys)}
        self._log = directory / "log"
        if port:
            # Not only its broker: whoever listens there could be another Kafka, which would get the demo's orders.
            for each in listening("127.0.0.1", port, "choose another port with --port (0 takes any free one)"):
                each.close()
        self._port = port or free_port()
        self.bootstrap = f"127.0.0.1:{self._port}"
        self._status_port = free_port()
        self.status_url = f"http://127.0.0.1:{self._status_port}/"
        self._console_port = free_port()
        self.console_url = f"http://127.0.0.1:{self._console_port}/"
        self._data = directory / "api"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._stop = threading.Event()
        self._producer = threading.Thread(target=self._produce, name="producer", daemon=True)

    def __enter__(self) -> Self:
        try:
            self._start("broker", "--port", str(self._port))
            for topic in ("orders.raw", "orders.safe", "orders.dead"):
                _eventually(partial(self._created, topic), "the embedded broker does not answer")
            where = ["--bootstrap", self.bootstrap, "--status-port", str(self._status_port)]
            self._start("run", str(self._policy_path), *where, **self._sealing)
            _eventually(self._ready, "the worker does not get ready", self._waiting)
            if not self._traced:
                where = ["--port", str(self._console_port), "--data", str(self._data)]
                self._start("serve", *where, "--worker", self.status_url.rstrip("/"))
            self._producer.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._producer.is_alive():
            self._producer.join(_STOP_SECONDS)
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, *arguments: str, **settings: str) -> None:
        with self._log.open("ab") as log:
            self._processes.append(
                subprocess.Popen(  # noqa: S603 - our own program
                    [sys.executable, "-m", "service", *arguments],
                    stdout=log,
                    stderr=log,
                    env=os.environ | settings,
                    # In a group of its own: Ctrl-C reaches the demo alone, which ends the worker before its broker.
                    process_group=0,
                )
            )

    def _client(self) -> Client:
        return connect(KafkaSettings(bootstrap_servers=self.bootstrap))

    def _created(self, topic: str) -> bool:
        self.check_alive()
        try:
            with closing(self._client().admin()) as admin:
                admin.create_topic(topic, _PARTITIONS)
        except TopicExistsError:  # it was created, and its broker too busy to say so
            return True
        except FinalError:
            raise
        except KafkaError:
            return False
        return True

    def check_alive(self) -> None:
        """Raise when a part has died."""
        for process in self._processes:
            if process.poll() is not None:
                tail = self._log.read_text(errors="replace")[-2000:]
                raise PortcullisError(f"a part of the demo ended with status {process.returncode}:\n{tail}")

    def _ready(self) -> bool:
        self.check_alive()
        return bool(self.status().get("ready"))

    def status(self) -> dict[str, Any]:
        """What the worker says of itself; empty while it does not answer."""
        with suppress(urllib.error.URLError, OSError), urllib.request.urlopen(f"{self.status_url}status") as answer:  # noqa: S310 - loopback
            return dict(msgspec.json.decode(answer.read()))
        return {}

    def settled(self) -> bool:
        """Whether every produced event is released, suppressed or refused."""
        if self._producer.is_alive() or not self.produced:
            return False
        status = self.status()
        counts = status.get("counts", {})
        done = sum(
            count for name, count in counts.items() if name in {"released", "suppressed"} or name.startswith("refused.")
        )
        return bool(done >= self.produced)

    def _produce(self) -> None:
        with closing(Writer(self._client(), "demo-producer")) as writer:
            for table in _orders(self._events):
                records = _records(table)
                while not self._stop.is_set() and not writer.write(records):
                    self._stop.wait(_PAUSE)
                if self._stop.is_set():
                    break
                self.produced += len(table)
                if self._rate is not None:
                    self._stop.wait(len(table) / self._rate)

    def audit(self) -> DemoAudit:
        """Join what was published with what was produced, and check it as a stranger would."""
        policy = load_policy(self._policy_path)
        orders = pa.concat_tables(_orders(self._events)).slice(0, self.produced)
        keys = _customers(orders)
        ordered = Ordered.of(policy, orders, keys, partitions_of(KEYED, keys, _PARTITIONS))
        return audited(policy, ordered, self._published(), self.status()["counts"])

    def _published(self) -> Iterator[dict[str, Any]]:
        """The messages of the output topic as a committed reader sees them."""
        with closing(self._client().reader()) as reader:
            for number in range(_PARTITIONS):
                partition = Partition("orders.safe", number)
                low, high = reader.watermarks(partition)
                for batch in reader.read(partition, low, high, _READ_SECONDS):
                    yield from (msgspec.json.decode(value or b"{}") for value in batch.values)


def _orders(events: int) -> Iterator[pa.Table]:
    """The same orders whenever they are asked for."""
    persons = min(max(events // 5, 200), _MOST_CUSTOMERS)
    for first in range(0, events, _BATCH):
        yield sample_events(min(_BATCH, events - first), seed=_SEED, persons=persons, first=first)


def _customers(orders: pa.Table) -> list[bytes]:
    """The key of each order: whom it is about."""
    return [customer.encode() for customer in orders["customer_id"].to_pylist()]


def _records(orders: pa.Table) -> Records:
    """Orders as records, each where any producer puts the orders of its customer."""
    records: dict[Partition, list[tuple[bytes | None, bytes]]] = {}
    keys = _customers(orders)
    for key, number, row in zip(
        keys, partitions_of(KEYED, keys, _PARTITIONS).tolist(), orders.to_pylist(), strict=True
    ):
        records.setdefault(Partition("orders.raw", number), []).append((key, msgspec.json.encode(row)))
    return records


def _eventually(done: Any, complaint: str, waiting: Callable[[float], None] = lambda _: None) -> None:
    started = told = time.monotonic()
    while not done():
        now = time.monotonic()
        if now > started + _START_SECONDS:
            raise PortcullisError(complaint)
        if now >= told + _TOLD_EVERY:
            waiting(now - started)
            told = now
        time.sleep(0.1)
