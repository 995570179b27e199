"""A topic that is not there: its stream waits and says so; nothing is ready that does not commit; errors name it."""

import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from service.kafka import AbortableError, Partition, UnknownTopicError
from service.settings import SettingsError
from service.worker.topics import TopicError
from tests.service.kafka.worker_world import Town, people, renamed
from tests.service.kafka.world import eventually


@pytest.fixture
def town(world: Any) -> Iterator[Any]:
    town = Town(world)
    yield town
    town.stop()


def reason(worker: Any) -> Any:
    return worker.metrics.status()["reason"]


def test_a_worker_opens_nothing_before_it_runs(town: Any) -> None:
    missing = f"no-such-{uuid.uuid4().hex[:6]}"
    town.worker(renamed(town.stream, input=missing)).close()
    with pytest.raises(SettingsError, match="different topics"):
        town.worker(renamed(town.stream, output=town.stream.input))


@pytest.mark.parametrize("role", ["input", "output", "dead_letters"])
def test_a_stream_waits_for_its_topic_alive_and_not_ready_and_goes_on_when_it_is_there(town: Any, role: str) -> None:
    town.feed(*people(12, 9))
    missing = f"{town.world.name}-late-{role}"
    stream = renamed(town.stream, **{role: missing})
    worker = town.start(town.worker(stream))
    town.until(lambda: reason(worker) == f"topic {missing!r} does not exist; create it, or set create_topics")
    assert worker.metrics.stuck() is None
    town.world.admin.create_topic(missing, 1)
    if role == "input":
        town.world.write(Partition(missing, 0), *people(12, 9))
    town.until(lambda: worker.metrics.status()["counts"].get("released", 0) >= 3)
    assert worker.metrics.status()["ready"]


def test_a_worker_that_waits_for_a_topic_stops_when_told_to(town: Any) -> None:
    worker = town.start(town.worker(renamed(town.stream, input=f"{town.world.name}-never")))
    town.until(lambda: "does not exist" in (reason(worker) or ""))
    town.stop()
    assert not town.errors


@pytest.mark.parametrize("role", ["output", "dead_letters"])
def test_a_worker_whose_topic_is_deleted_is_not_ready_until_it_is_there_again_and_names_it(
    world: Any, role: str
) -> None:
    town = Town(world)
    town.client = world.client(
        session_timeout_ms=20_000, heartbeat_interval_ms=1_000, transaction_timeout_ms=3_000, request_timeout_ms=5_000
    )
    worker = town.start()
    try:
        town.until(lambda: worker.metrics.status()["ready"])
        topic = getattr(town.stream, role)
        world.admin.delete_topic(topic)
        town.feed(*people(12, 9), b"no event")
        town.until(lambda: repr(topic) in (reason(worker) or ""))
        turns = threading.Event()
        for _ in range(40):
            assert not worker.metrics.status()["ready"]
            assert worker.metrics.stuck() is None
            turns.wait(0.1)
        world.admin.create_topic(topic, 1)
        town.until(lambda: worker.metrics.status()["ready"] and worker.metrics.status()["counts"].get("released", 0))
    finally:
        town.stop()


def test_a_worker_whose_input_is_deleted_names_it(town: Any) -> None:
    worker = town.start()
    town.until(lambda: worker.metrics.status()["ready"])
    town.world.admin.delete_topic(town.stream.input)
    town.until(lambda: town.stream.input in (reason(worker) or ""))


def test_records_that_are_not_acknowledged_name_their_topic(world: Any) -> None:
    there, missing = world.topic(1).topic, f"{world.name}-missing"
    producer = world.producer(transaction_timeout_ms=2_000)
    producer.begin()

    def produce() -> None:
        producer.produce(Partition(there, 0), [b"x"])
        producer.produce(Partition(missing, 0), [b"x"] * 16)
        producer.flush()

    with pytest.raises((AbortableError, UnknownTopicError)) as caught:
        produce()
    assert missing in str(caught.value)
    assert repr(there) not in str(caught.value)


def test_a_drain_beside_running_workers_fails_at_once(town: Any) -> None:
    worker = town.start()
    town.until(lambda: worker.metrics.status()["ready"])
    polled: list[Any] = []
    drain = town.worker()
    drain._own_everything = polled.append
    with pytest.raises(TopicError, match="has 1 running worker: stop them first"):
        drain.drain()
    assert not polled, "it did not wait for partitions"
    town.stop()
    eventually(lambda: not town.world.admin.group_members(town.stream.group))
    assert town.worker().drain() == {0: 0}
