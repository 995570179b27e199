"""A real broker that is killed and comes back: what was unclear is all or nothing, and life goes on."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pytest

from service.demo import Writer
from service.kafka import AbortableError, Committed, Partition, RetriableError, UnclearError
from tests.service.kafka.real_kafka import RealKafka
from tests.service.kafka.worker_world import Town, people
from tests.service.kafka.world import World, eventually

pytestmark = [pytest.mark.needs_tool("kafka"), pytest.mark.kafka, pytest.mark.xdist_group("kafka")]


@pytest.fixture(scope="module")
def mortal_kafka() -> Iterator[Any]:
    """A broker of our own, to kill."""
    with RealKafka() as kafka:
        yield kafka


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])
def test_a_broker_dies_in_the_middle_of_a_transaction_and_comes_back(mortal_kafka: Any, client: str) -> None:
    with contextlib.ExitStack() as stack:
        world = World(client, mortal_kafka.bootstrap, stack)
        partition = world.topic()
        world.write(partition, b"before")
        member = world.member(partition.topic, session_timeout_ms=180_000)  # a broker may be long in coming back
        member.until_owns(1)
        member.begin()
        assert member.values(1) == {partition: [b"before"]}
        producer = world.producer("worker", transaction_timeout_ms=4_000)
        producer.begin()
        producer.produce_and_wait({partition: (None, b"unclear")})
        mortal_kafka.kill()
        with pytest.raises(UnclearError):
            producer.commit()
        mortal_kafka.start()
        eventually(lambda: _taken_over(world, "worker"))
        world.write(partition, b"after")
        found = read_on(member, 2, b"after")
        assert found in ([b"after"], [b"unclear", b"after"]), "all or nothing: the commit may arrive late"
        assert world.read(partition) == [b"before", *found]


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])
def test_what_a_broker_does_not_take_in_time_fails_the_transaction_and_nothing_else(
    mortal_kafka: Any, client: str
) -> None:
    with contextlib.ExitStack() as stack:
        world = World(client, mortal_kafka.bootstrap, stack)
        partition = world.topic()
        producer = world.producer("impatient", transaction_timeout_ms=3_000)
        producer.begin()
        mortal_kafka.kill()
        try:
            with pytest.raises(AbortableError):
                producer.produce_and_wait({partition: (None, b"too late")})
        finally:
            mortal_kafka.start()


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])
def test_offsets_that_no_coordinator_takes_fail_the_transaction_in_time(mortal_kafka: Any, client: str) -> None:
    with contextlib.ExitStack() as stack:
        world = World(client, mortal_kafka.bootstrap, stack)
        partition = world.topic()
        member = world.member(partition.topic, session_timeout_ms=30_000)
        member.until_owns(1)
        token = member.consumer.group_token()
        producer = world.producer("patient", transaction_timeout_ms=3_000)
        producer.begin()
        producer.produce_and_wait({partition: (None, b"record")})
        producer.send_offsets({partition: Committed(1)}, token)  # so that the coordinator is known
        mortal_kafka.kill()
        started = time.monotonic()
        try:
            with pytest.raises((AbortableError, UnclearError)):
                producer.send_offsets({partition: Committed(2)}, token)
            assert time.monotonic() - started < 60, "it would never have come back"
        finally:
            mortal_kafka.start()
        eventually(lambda: _taken_over(world, "patient"))


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])
def test_a_worker_outlives_a_broker_that_freezes_for_longer_than_requests_wait(mortal_kafka: Any, client: str) -> None:
    with contextlib.ExitStack() as stack:
        world = World(client, mortal_kafka.bootstrap, stack)
        town = Town(world)
        town.client = world.client(request_timeout_ms=3_000, transaction_timeout_ms=3_000, session_timeout_ms=30_000)
        stack.callback(town.stop)
        town.feed(*people(100, 9))
        worker = town.start()
        town.until_all_left(worker, 100)
        town.feed(*people(100, 9, start=100))
        mortal_kafka.freeze(10)
        with contextlib.closing(Writer(world.client(), f"feeder-of-{world.name}")) as feeder:
            records = {Partition(town.stream.input, 0): [(None, value) for value in people(100, 9, start=200)]}
            eventually(lambda: feeder.write(records))
        town.until_all_left(worker, 300)
        town.stop()
        assert len(set(town.released())) == len(town.released())
        town.assert_never_under_two_boxes()


def read_on(member: Any, position: Any, last: Any) -> Any:
    """What comes from there to that value.

    A broker that is just back may not know its topics yet: then members own nothing for a while, and begin again.
    """
    found = []

    def read() -> Any:
        told = len(member.told)
        for batch in member.poll(0.2, 100):
            found.extend(batch.values)
        if any(what == "assigned" for what, _ in member.told[told:]):
            member.begin(position)
            found.clear()
        return last in found

    eventually(read)
    return found


def _taken_over(world: Any, transactional_id: Any) -> Any:
    with contextlib.suppress(RetriableError):
        world.producer(transactional_id)
        return True
