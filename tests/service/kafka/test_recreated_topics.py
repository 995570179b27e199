"""Topics that are deleted, created again and filled anew while a worker runs, or is frozen and hears nothing of it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.kafka import KafkaError, Partition
from service.ports import free_port
from service.worker.state import State
from tests.service.kafka.worker_world import Town, people
from tests.service.kafka.world import eventually

POLICY = """
name: {name}
schema:
  person: who
  quasi: {{age: {{type: number, min: 0, max: 99, integer: true}}}}
  public: [trace]
guarantee: {{algorithm: castle, k: 3, delay: {{tuples: 5, seconds: 60}}}}
stream: {{input: {name}.raw, output: {name}.safe, start: earliest}}
"""


def create_again(world: Any, topic: Any, partitions: int = 1) -> None:
    """Delete a topic and create it; a real broker takes a moment to forget the old one."""

    def created() -> Any:
        with contextlib.suppress(KafkaError):
            world.admin.create_topic(topic, partitions)
        return topic in world.admin.list_topics()

    before = world.admin.describe_topic(topic).topic_id
    world.admin.delete_topic(topic)
    eventually(created)
    assert world.admin.describe_topic(topic).topic_id != before


@pytest.fixture
def town(world: Any) -> Iterator[Any]:
    town = Town(world)
    yield town
    town.stop()


class Process:
    """`portcullis run` on a world's broker, with a session so long that nobody takes over from it."""

    def __init__(self, world: Any, directory: Any) -> None:
        self.world, self.port = world, free_port()
        self.policy = directory / "policy.yaml"
        self.policy.write_text(POLICY.format(name=world.name))
        self.input = world.topic(suffix=".raw")
        self.output = world.topic(suffix=".safe")
        self.state = Partition(f"portcullis.{self.output.topic}.state", 0)
        self._process = None

    def start(self) -> None:
        environment = os.environ | {"PORTCULLIS_KAFKA_SESSION_TIMEOUT_MS": "120000"}
        command = [sys.executable, "-m", "service", "run", str(self.policy), "--bootstrap", self.world.bootstrap]
        command += ["--client", self.world._client, "--status-port", str(self.port)]
        self._process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)  # type: ignore[assignment]

    def signal(self, number: Any) -> None:
        self._process.send_signal(number)  # type: ignore[attr-defined]

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)  # type: ignore[unreachable]
            self._process.terminate()
            self._process.wait(120)
            self._process = None

    def status(self) -> Any:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status") as answer:
            return json.load(answer)
        return {"counts": {}, "stopped": {}}

    def feed(self, first: Any, count: Any) -> None:
        rows = [{"who": f"p{n % 9}", "age": n % 90, "trace": n} for n in range(first, first + count)]
        self.world.write(self.input, *(json.dumps(row).encode() for row in rows))

    def traces(self) -> Any:
        clusters = map(json.loads, self.world.read(self.output))
        return [row["trace"] for cluster in clusters for row in cluster["rows"]]


@pytest.fixture
def process(world: Any, tmp_path: Path) -> Iterator[Any]:
    process = Process(world, tmp_path)
    yield process
    process.stop()


def test_a_frozen_worker_wakes_up_to_another_topic_and_stops(process: Any, world: Any) -> None:
    process.feed(0, 20)
    process.start()
    eventually(lambda: process.status()["counts"].get("taken") == 20)
    process.signal(signal.SIGSTOP)
    old = world.admin.describe_topic(process.input.topic).topic_id
    create_again(world, process.input.topic)
    process.feed(1_000, 60)
    process.signal(signal.SIGCONT)
    eventually(lambda: process.status()["stopped"])
    reason = process.status()["stopped"]["0"]
    assert "the input topic was deleted and created again" in reason
    assert "retention" not in reason
    assert process.status()["ready"] is False
    states = [State.decode(value) for value in world.read(process.state)]
    assert {state.origin.topic_id for state in states} == {old}
    assert max(state.position for state in states) <= 21, "20 events and the marker of their transaction"
    assert max(process.traces(), default=0) < 20
    process.stop()

    world.admin.delete_topic(process.state.topic)  # as the reason says
    eventually(lambda: not world.admin.group_offsets(f"portcullis.{world.name}"))  # a broker's own tidying
    process.start()
    eventually(lambda: max(process.traces(), default=0) >= 1_000)
    process.stop()
    assert not process.status()["stopped"]


def test_a_running_worker_notices_that_its_input_is_another(town: Any) -> None:
    town.feed(*people(30, 9))
    worker = town.start()
    town.until(lambda: worker.metrics.status()["counts"].get("released", 0) > 20)
    create_again(town.world, town.stream.input)
    town.feed(*people(90, 9, start=1_000))
    town.until(lambda: worker.metrics.status()["stopped"])
    assert "the input topic was deleted and created again" in worker.metrics.status()["stopped"]["0"]
    town.stop()
    assert max(town.released()) < 1_000


def test_a_running_worker_notices_that_its_state_topic_is_another(town: Any) -> None:
    town.feed(*people(30, 9))
    worker = town.start()
    town.until(lambda: worker.metrics.status()["counts"].get("released", 0) > 20)
    create_again(town.world, town.stream.state_topic)
    town.feed(*people(90, 9, start=1_000))
    town.until(lambda: worker.metrics.status()["stopped"])
    town.stop()
    assert town.values(town.stream.state_topic) == []
    assert max(town.released()) < 1_000


def test_a_running_worker_goes_on_with_an_output_of_other_partitions(town: Any) -> None:
    town.feed(*people(30, 9))
    worker = town.start()
    town.until(lambda: worker.metrics.status()["counts"].get("released", 0) > 20)
    create_again(town.world, town.stream.output, 3)
    town.feed(*people(90, 9, start=1_000))
    town.until(lambda: sum(trace >= 1_000 for trace in town.released()) > 80)
    assert len(town.released()) == len(set(town.released()))


def test_topics_have_shapes_and_those_that_are_missing_have_none(world: Any) -> None:
    topic = world.topic(3).topic
    shapes = world.admin.topic_shapes([topic, "no-such-topic"])
    description = world.admin.describe_topic(topic)
    assert shapes == {topic: (description.topic_id, 3)}
