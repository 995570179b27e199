"""Who no longer owns a partition commits nothing for it, on every client and broker."""

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from service.kafka import AbortableError, Committed, GroupToken, StaleGroupError
from tests.service.kafka.world import eventually

SLEEPY = {"session_timeout_ms": 2_000, "heartbeat_interval_ms": 100, "max_poll_interval_ms": 2_500}


def test_who_missed_its_time_holds_a_token_that_is_refused_before_anything_is_sent(world: Any) -> None:
    partition = world.topic()
    member = world.member(partition.topic, **SLEEPY)
    member.until_owns(1)
    assert member.consumer.group_token().is_current
    eventually(lambda: not member.consumer.group_token().is_current)  # and nobody polls
    producer = world.producer()
    producer.begin()
    with pytest.raises(StaleGroupError, match="never sent"):
        producer.send_offsets({partition: Committed(99)}, member.consumer.group_token())
    producer.abort()
    assert world.admin.group_offsets(world.group) == {}
    member.consumer.poll(0.1, 10)
    assert ("lost", [partition]) in member.told or ("revoked", [partition]) in member.told


def test_without_the_refusal_a_broker_takes_a_token_of_nobody(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks the check on purpose: this is what it is good for."""
    partition = world.topic()
    owner = world.member(partition.topic)
    owner.until_owns(1)
    world.commit_offset(partition, Committed(10), owner)
    nobody = world.stranger().group_token()
    assert (nobody.generation, nobody.member) == (-1, "")
    monkeypatch.setattr(GroupToken, "require_current", lambda _: None)
    producer = world.producer()
    producer.begin()
    producer.send_offsets({partition: Committed(3)}, nobody)
    producer.commit()
    assert owner.consumer.committed([partition]) == {partition: Committed(3)}


@pytest.mark.parametrize("part", ["generation", "member"])
def test_half_a_membership_is_none(world: Any, part: str) -> None:
    token = GroupToken("g", 3, "m", None)
    assert token.is_current
    half = dataclasses.replace(token, **{part: -1 if part == "generation" else ""})  # type: ignore[arg-type]
    assert not half.is_current
    with pytest.raises(StaleGroupError):
        half.require_current()


def test_the_broker_refuses_a_token_of_an_earlier_generation(world: Any) -> None:
    partition = world.topic(2)
    first = world.member(partition.topic)
    first.until_owns(2)
    token = first.consumer.group_token()
    second = world.member(partition.topic)
    second.until_owns(1, first)
    producer = world.producer()
    producer.begin()
    producer.produce(partition, [b"made under the old assignment"])
    with pytest.raises(StaleGroupError):
        producer.send_offsets({partition: Committed(5)}, token)
    with pytest.raises(AbortableError):
        producer.commit()
    producer.abort()
    assert first.consumer.committed([partition]) == {partition: None}
    assert world.read(partition) == []


def test_the_broker_refuses_a_token_of_a_member_that_left(world: Any) -> None:
    partition = world.topic()
    first = world.member(partition.topic)
    first.until_owns(1)
    token = first.consumer.group_token()
    first.consumer.close()
    second = world.member(partition.topic)
    second.until_owns(1)
    producer = world.producer()
    producer.begin()
    with pytest.raises(StaleGroupError):
        producer.send_offsets({partition: Committed(5)}, token)
    producer.abort()


def test_committed_offsets_are_stable_only_when_their_transaction_has_ended(world: Any) -> None:
    partition = world.topic()
    member = world.member(partition.topic)
    member.until_owns(1)
    world.commit_offset(partition, Committed(1, "old"), member)
    producer = world.producer()
    producer.begin()
    producer.send_offsets({partition: Committed(2, "new")}, member.consumer.group_token())
    commit = threading.Timer(1.0, producer.commit)
    commit.start()
    assert not commit.finished.is_set(), "it is pending when asked for"
    assert member.consumer.committed([partition]) == {partition: Committed(2, "new")}
    commit.join()


def test_a_worker_that_is_stopped_and_wakes_up_commits_nothing(world: Any) -> None:
    """SIGSTOP past the session time-out: another member takes over, then the first one goes on as if nothing was."""
    partition = world.topic()
    world.write(partition, b"a", b"b", b"c")
    sleeper = subprocess.Popen(
        [sys.executable, __file__, world._client, world.bootstrap, *map(str, partition), world.group],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
    )  # fmt: skip
    try:
        assert sleeper.stdout.readline().strip() == "has a batch"  # type: ignore[union-attr]
        sleeper.send_signal(signal.SIGSTOP)
        owner = world.member(partition.topic)
        owner.until_owns(1)
        world.commit_offset(partition, Committed(1, "by the owner"), owner)
        sleeper.send_signal(signal.SIGCONT)
        sleeper.stdin.write("go on\n")  # type: ignore[union-attr]
        sleeper.stdin.flush()  # type: ignore[union-attr]
        eventually(lambda: owner.consumer.poll(0.05, 10) or sleeper.poll() is not None)
        assert sleeper.stdout.read().strip() == "StaleGroupError"  # type: ignore[union-attr]
        assert owner.consumer.committed([partition]) == {partition: Committed(1, "by the owner")}
    finally:
        sleeper.kill()
        sleeper.communicate()


def _sleeper(client: str, bootstrap: str, topic: str, number: str, group: str) -> None:
    """The worker that is put to sleep: takes a batch, waits for a word, commits."""
    from service.kafka import KafkaSettings, Partition, connect  # noqa: PLC0415 - another process

    partition = Partition(topic, int(number))
    settings = KafkaSettings(
        bootstrap_servers=bootstrap, client=client, session_timeout_ms=2_000, heartbeat_interval_ms=200
    )
    opened = connect(settings)
    consumer, producer = opened.group_consumer(group), opened.producer("sleeper-of-" + group)
    producer.init_transactions()
    consumer.subscribe([topic], *[lambda _: None] * 3)
    while not consumer.assignment():
        consumer.poll(0.1, 10)
    consumer.seek(partition, 0)
    consumer.resume([partition])
    while not consumer.poll(0.1, 10):
        pass
    token = consumer.group_token()
    print("has a batch", flush=True)  # noqa: T201 - speaks to its parent
    sys.stdin.readline()
    producer.begin()
    try:
        producer.send_offsets({partition: Committed(3, "by the sleeper")}, token)
        producer.commit()
        print("committed", flush=True)  # noqa: T201
    except StaleGroupError:
        print("StaleGroupError", flush=True)  # noqa: T201
    time.sleep(0.1)
    os._exit(0)


if __name__ == "__main__":
    _sleeper(*sys.argv[1:])
