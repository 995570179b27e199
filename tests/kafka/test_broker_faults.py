"""A real broker that is killed and comes back: what was unclear is all or nothing, and life goes on."""

import contextlib
import gc

import pytest

from service.kafka import AbortableError, RetriableError, UnclearError
from tests.kafka.real_kafka import RealKafka
from tests.kafka.world import World, eventually

pytestmark = [pytest.mark.needs_tool("kafka"), pytest.mark.kafka, pytest.mark.xdist_group("kafka")]


@pytest.fixture(scope="module")
def mortal_kafka():
    """A broker of our own, to kill."""
    with RealKafka() as kafka:
        yield kafka


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])
def test_a_broker_dies_in_the_middle_of_a_transaction_and_comes_back(mortal_kafka, client):
    with contextlib.ExitStack() as stack:
        world = World(client, mortal_kafka.bootstrap, stack)
        partition = world.topic()
        world.write(partition, b"before")
        member = world.member(partition.topic, session_timeout_ms=30_000)
        member.until_owns(1)
        member.begin()
        assert member.values(1) == {partition: [b"before"]}
        producer = world.producer("worker", transaction_timeout_ms=4_000)
        producer.begin()
        producer.produce_and_wait(partition, b"unclear")
        mortal_kafka.kill()
        with pytest.raises(UnclearError):
            producer.commit()
        mortal_kafka.start()

        def taken_over():
            with contextlib.suppress(RetriableError):
                world.producer("worker")
                return True

        eventually(taken_over, seconds=60)
        world.write(partition, b"after")
        assert member.values(1) == {partition: [b"after"]}, "the position survives, and the commit never arrived"
        assert world.read(partition) == [b"before", b"after"]
    gc.collect()  # kafka-python leaves the sockets of failed connections to the collector


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])
def test_what_a_broker_does_not_take_in_time_fails_the_transaction_and_nothing_else(mortal_kafka, client):
    with contextlib.ExitStack() as stack:
        world = World(client, mortal_kafka.bootstrap, stack)
        partition = world.topic()
        producer = world.producer("impatient", transaction_timeout_ms=3_000)
        producer.begin()
        mortal_kafka.kill()
        try:
            with pytest.raises(AbortableError):
                producer.produce_and_wait(partition, b"too late")
        finally:
            mortal_kafka.start()
    gc.collect()
