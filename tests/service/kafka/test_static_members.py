"""Members with a name: who comes back under it has its partitions at once, and who had it before is shut out."""

import time
from typing import Any

import pytest
from kafka.cluster import ClusterMetadata

from service.kafka import AbortableError, Committed, FencedError, InstanceTakenError, UnclearError
from tests.service.kafka.worker_world import Town, people
from tests.service.kafka.world import eventually


def test_who_comes_back_under_its_name_has_its_partitions_and_the_others_keep_theirs(world: Any) -> None:
    _come_back(world)


def _come_back(world: Any, polls_after: int = 0) -> None:
    partition = world.topic(4)
    one, two = world.member(partition.topic, "one"), world.member(partition.topic, "two")
    one.until_owns(2, two)
    two.until_owns(2, one)
    before, token, told = one.consumer.assignment(), two.consumer.group_token(), list(two.told)
    one.consumer.close()
    again = world.member(partition.topic, "one")
    again.until_owns(2, two)
    for member in [again, two] * polls_after:
        member.poll(0.05, 100)
    assert again.consumer.assignment() == before
    assert two.told == told, "nobody else was disturbed"
    assert two.consumer.group_token() == token


@pytest.mark.parametrize("world", ["kafka-python"], indirect=True)
def test_who_comes_back_learns_the_partitions_before_it_joins(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, where the topic is missing from the first answers, as it is from one that was asked for before."""
    metadata_request = ClusterMetadata.metadata_request
    started: dict[Any, float] = {}

    def late(cluster: Any) -> Any:
        request = metadata_request(cluster)
        if time.monotonic() < started.setdefault(cluster, time.monotonic()) + 0.5:
            request.topics = []
        return request

    monkeypatch.setattr(ClusterMetadata, "metadata_request", late)
    _come_back(world, polls_after=20)


def test_who_lost_its_name_commits_nothing_and_hears_of_it(world: Any) -> None:
    """The generation is still the same: the name alone shuts it out."""
    partition = world.topic()
    first = world.member(partition.topic, "worker")
    first.until_owns(1)
    token = first.consumer.group_token()
    second = world.member(partition.topic, "worker")
    second.until_owns(1)
    assert second.consumer.group_token().generation == token.generation
    world.commit_offset(partition, Committed(7, "by the second"), second)
    producer = world.producer("zombie")
    producer.begin()
    with pytest.raises(InstanceTakenError):
        producer.send_offsets({partition: Committed(3, "by the first")}, token)
    assert second.consumer.committed([partition]) == {partition: Committed(7, "by the second")}

    def is_told() -> Any:
        try:
            first.consumer.poll(0.1, 10)
        except InstanceTakenError:
            return True
        second.consumer.poll(0.1, 10)
        return False

    eventually(is_told)
    world.commit_offset(partition, Committed(8, "by the second"), second)


def test_of_two_workers_with_one_name_the_first_ends_and_the_second_goes_on(world: Any) -> None:
    town = Town(world)
    try:
        town.feed(*people(30, 9))
        first = town.start(instance="same")
        town.until(lambda: first.metrics.status()["counts"].get("released", 0) > 20)
        second = town.start(instance="same")
        eventually(lambda: town.errors)
        assert isinstance(town.errors.pop(), InstanceTakenError)
        town.feed(*people(60, 9, start=100))
        town.until(lambda: second.metrics.unready() is None)
        town.until_all_left(second, 90)
    finally:
        town.stop()
    assert len(town.released()) == len(set(town.released()))
    town.assert_never_under_two_boxes()


class Death(BaseException):
    """As SIGKILL, in a thread."""


@pytest.mark.parametrize("when", ["before the commit", "in a claim"])
def test_a_transaction_that_a_dead_worker_left_open_holds_up_nobody(world: Any, when: str) -> None:
    """The broker would give it up after 15 minutes."""
    town = Town(world)
    town.client = world.client(session_timeout_ms=20_000, transaction_timeout_ms=900_000)
    try:
        town.feed(*people(60, 9))
        first = town.worker(commit_events=20, poll_records=20)
        _dies(first, town.client, commits=0 if when == "in a claim" else 2)
        town.start(first)
        eventually(lambda: town.errors)
        assert isinstance(town.errors.pop(), Death)
        second = town.start()
        town.until(lambda: second.metrics.unready() is None)
        town.until_all_left(second, 60)
    finally:
        town.stop()
    assert len(town.released()) == len(set(town.released()))
    town.assert_never_under_two_boxes()


def _dies(worker: Any, client: Any, commits: Any) -> None:
    """Let a worker die in the commit after so many."""
    done: list[Any] = []

    class Mortal:
        def __init__(self, producer: Any) -> None:
            self._producer = producer

        def __getattr__(self, name: Any) -> Any:
            return getattr(self._producer, name)

        def commit(self) -> None:
            if len(done) == commits:
                raise Death
            done.append(self._producer.commit())

    class Client:
        def __getattr__(self, name: Any) -> Any:
            return getattr(client, name)

        def producer(self, transactional_id: Any) -> Any:
            return Mortal(client.producer(transactional_id))

    worker._transactions._client = Client()


def test_whoever_ended_a_transaction_has_shut_out_its_owner(world: Any) -> None:
    """Should it live: what it does next under its id is refused."""
    town = Town(world)
    try:
        town.feed(*people(30, 9))
        worker = town.start()
        town.until(lambda: worker.metrics.status()["counts"].get("released", 0) > 20)
        zombie, place = world.producer("zombie"), world.topic(suffix="-zombie")
        zombie.begin()
        world.producer("zombie")
        with pytest.raises((AbortableError, FencedError, UnclearError)):
            zombie.produce_and_wait({place: (None, b"late")})
        world.client().producer(worker._transactions.owner).init_transactions()
        town.feed(*people(30, 9, start=30))
        town.until_all_left(worker, 60)
    finally:
        town.stop()
    assert len(town.released()) == len(set(town.released()))
