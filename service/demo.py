"""The demo's world: an embedded broker, a worker and a producer, each in a process or thread of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
import pyarrow as pa
import yaml

from microdata import Boxes, PersonKey, PortcullisError, Publication, boxes_from, encode
from privacy import audit
from service.kafka import (
    Client,
    FinalError,
    KafkaError,
    KafkaSettings,
    Partition,
    TopicExistsError,
    connect,
)
from service.policy import Policy, load_policy
from service.ports import free_port, listening
from service.sample import COUNTRIES, EDUCATION, ITEMS, sample_events

_BATCH = 2_000
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

POLICY: dict[str, Any] = {
    "name": "orders",
    "schema": {
        "person": "customer_id",
        "quasi": {
            "age": {"type": "number", "min": 16, "max": 90, "integer": True},
            "postcode": {
                "type": "category",
                "hierarchy": {"*": {f"{area}*": [f"{area}{n}" for n in range(10)] for area in range(10, 20)}},
            },
            "country": {"type": "category", "hierarchy": {"World": {k: list(v) for k, v in COUNTRIES.items()}}},
            "education": {"type": "category", "hierarchy": {"Any": {k: list(v) for k, v in EDUCATION.items()}}},
        },
        "sensitive": {"item": {"type": "category", "hierarchy": {"Item": {k: list(v) for k, v in ITEMS.items()}}}},
        "public": ["shop"],
    },
    "guarantee": {"algorithm": "castle", "k": 10, "l": 3, "delay": {"tuples": 2000, "seconds": 20}},
    "stream": {"input": "orders.raw", "output": "orders.safe", "start": "earliest", "dead_letters": "orders.dead"},
}


@dataclass(frozen=True)
class DemoAudit:
    """What the audit of everything that was published found."""

    summary: list[tuple[str, str]]
    checks: list[tuple[str, bool]]

    @property
    def holds(self) -> bool:
        """Whether every check held."""
        return all(holds for _, holds in self.checks)


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
        policy = json.loads(json.dumps(POLICY))
        if traced:
            policy["schema"]["public"].append("order")
        self._policy_path.write_text(yaml.safe_dump(policy, sort_keys=False))
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
            self._start(
                "run", str(self._policy_path), "--bootstrap", self.bootstrap, "--status-port", str(self._status_port)
            )
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

    def _start(self, *arguments: str) -> None:
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "service", *arguments]
            # In a group of its own: Ctrl-C reaches the demo alone, which ends the worker before its broker.
            part = subprocess.Popen(command, stdout=log, stderr=log, process_group=0)  # noqa: S603 - our own program
            self._processes.append(part)

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
            for number, table in enumerate(_orders(self._events)):
                values = [msgspec.json.encode(row) for row in table.to_pylist()]
                while not self._stop.is_set() and not writer.write(
                    Partition("orders.raw", number % _PARTITIONS), values
                ):
                    self._stop.wait(_PAUSE)
                if self._stop.is_set():
                    break
                self.produced += len(values)
                if self._rate is not None:
                    self._stop.wait(len(values) / self._rate)

    def audit(self) -> DemoAudit:
        """Join what was published with what was produced, and check it as a stranger would."""
        policy = load_policy(self._policy_path)
        clusters = list(self._published())
        orders = np.array([row["order"] for cluster in clusters for row in cluster["rows"]], np.int64)
        sizes = [len(cluster["rows"]) for cluster in clusters]
        publication = _publication(policy, list(_orders(self._events)), clusters, orders, sizes)
        found = audit(publication.table, publication, policy.models())
        counts = self.status()["counts"]
        refused = sum(count for name, count in counts.items() if name.startswith("refused."))
        summary = [
            ("events produced", f"{self.produced:,}"),
            ("events released", f"{len(orders):,}"),
            ("events suppressed", f"{counts.get('suppressed', 0):,}"),
            ("records refused", f"{refused:,}"),
            ("clusters", f"{len(clusters):,}"),
            ("loss", f"{publication.loss:.3f}"),
        ]
        summary += [
            (f"{finding.model}, asked {finding.asked:g}", f"{finding.achieved:g}") for finding in found.findings
        ]
        checks = [
            ("no event left twice", len(orders) == len(set(orders.tolist()))),
            ("every event is accounted for", len(orders) + counts.get("suppressed", 0) + refused == self.produced),
            ("no release was refused by a check", counts.get("refused_releases", 0) == 0),
            ("every row lies inside its cluster's box, and nothing undeclared left", not found.faults),
        ]
        checks += [(f"{finding.model} holds for every cluster", finding.holds) for finding in found.findings]
        return DemoAudit(summary, checks)

    def _published(self) -> Iterator[dict[str, Any]]:
        """Clusters of the output topic as a committed reader sees them; parts of one cluster as one."""
        reader = self._client().reader()
        whole: dict[str, dict[str, Any]] = {}
        for number in range(_PARTITIONS):
            partition = Partition("orders.safe", number)
            low, high = reader.watermarks(partition)
            for batch in reader.read(partition, low, high, _READ_SECONDS):
                for value in batch.values:
                    cluster = msgspec.json.decode(value or b"{}")
                    known = whole.setdefault(cluster["cluster"], cluster)
                    if known is not cluster:
                        known["rows"] += cluster["rows"]
        reader.close()
        yield from whole.values()


class Writer:
    """Writes batches of records, each once, whatever a broker says meanwhile."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name
        self._opened = ExitStack()
        self._is_open = False
        self._begun: int | None = None
        """Where the topic ended before the batch was tried for the first time."""

    def write(self, partition: Partition, values: list[bytes]) -> bool:
        """Whether they are there now; if not, try the same ones again."""
        try:
            self._open()
            if not self._arrived(partition):
                self._transact(partition, values)
        except FinalError:
            raise
        except KafkaError:
            self.close()
            return False
        self._begun = None
        return True

    def _open(self) -> None:
        """A producer that opens ends what the one before has left open."""
        if not self._is_open:
            self._reader = self._opened.enter_context(closing(self._client.reader()))
            self._producer = self._opened.enter_context(closing(self._client.producer(self._name)))
            self._producer.init_transactions()
            self._is_open = True

    def _arrived(self, partition: Partition) -> bool:
        """Whether an earlier try has worked, though nobody said so."""
        end = self._reader.watermarks(partition).high
        if self._begun is None:
            self._begun = end
        return any(len(batch) > 0 for batch in self._reader.read(partition, self._begun, end, _READ_SECONDS))

    def _transact(self, partition: Partition, values: list[bytes]) -> None:
        self._producer.begin()
        self._producer.produce(partition, values)
        self._producer.flush()
        self._producer.commit()

    def close(self) -> None:
        """Let go of the connections."""
        self._opened.close()
        self._is_open = False


def _orders(events: int) -> Iterator[pa.Table]:
    """The same orders whenever they are asked for."""
    persons = max(events // 5, 200)
    for first in range(0, events, _BATCH):
        yield sample_events(min(_BATCH, events - first), seed=_SEED, persons=persons, first=first)


def _publication(
    policy: Policy, orders: list[pa.Table], clusters: list[dict[str, Any]], released: Any, sizes: list[int]
) -> Publication:
    """What left, as a publication over the original rows: persons and boxes are exact."""
    table = encode(policy.schema, pa.concat_tables(orders), person_key=PersonKey.random()).table
    classes = np.full(len(table), -1, np.int32)
    classes[released] = np.repeat(np.arange(len(clusters)), sizes)
    boxes: Boxes = boxes_from(policy.schema, [cluster["generalization"] for cluster in clusters])
    return Publication(table, classes, boxes)


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
