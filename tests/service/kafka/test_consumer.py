"""Members of a group: who gets what, from where, and what never comes."""

import logging
import threading
import time
from typing import Any

import numpy as np
import pytest
from kafka import KafkaAdminClient, TopicPartition

from service.kafka import Committed, FatalError, GoneError, Partition
from service.kafka.confluent import consumer as confluent_consumer
from tests.service.kafka.world import eventually

RECENTLY = time.time_ns() // 1_000_000 - 12_345  # a real broker soon deletes what is old


def test_nothing_flows_before_somebody_says_where_from(world: Any) -> None:
    partition = world.topic()
    world.write(partition, b"a", b"b")
    member = world.member(partition.topic)
    member.until_owns(1)
    assert member.told == [("assigned", [partition])]
    assert not any(member.consumer.poll(0.1, 10) for _ in range(5))
    with pytest.raises(FatalError, match="seek"):
        member.consumer.resume([partition])
    with pytest.raises(FatalError, match="seek"):
        member.consumer.position(partition)
    member.begin(1)
    assert member.values(1) == {partition: [b"b"]}


def test_a_batch_holds_columns(world: Any) -> None:
    partition = world.topic()
    world.write(partition, b"a", None, keys=[None, b"k"], timestamp_ms=RECENTLY)
    world.write(partition, b"c", timestamp_ms=RECENTLY + 333)
    member = world.member(partition.topic)
    member.until_owns(1)
    member.begin()
    batches = []
    eventually(lambda: batches.extend(member.consumer.poll(0.2, 100)) or sum(map(len, batches)) == 3)  # type: ignore[func-returns-value, redundant-expr]
    assert {batch.partition for batch in batches} == {partition}
    columns = [np.concatenate([getattr(batch, name) for batch in batches]) for name in ("offsets", "timestamps")]
    assert [column.dtype for column in columns] == [np.int64, np.int64]
    assert columns[0].tolist() == [0, 1, 3], "offset 2 is the marker of the first transaction"
    assert columns[1].tolist() == [RECENTLY, RECENTLY, RECENTLY + 333]
    assert [key for batch in batches for key in batch.keys] == [None, b"k", None]
    assert [value for batch in batches for value in batch.values] == [b"a", None, b"c"]
    assert {type(value) for batch in batches for value in batch.values} == {bytes, type(None)}
    assert b"k" not in repr(batches).encode(), "records never appear in a representation"
    assert member.consumer.position(partition) == 4


def test_a_poll_gives_at_most_as_many_records_as_asked_for(world: Any) -> None:
    partition = world.topic()
    world.write(partition, *(b"%d" % number for number in range(50)))
    member = world.member(partition.topic)
    member.until_owns(1)
    member.begin()
    found: list[Any] = []
    while len(found) < 50:
        batches = member.consumer.poll(1.0, 7)
        assert sum(map(len, batches)) <= 7
        found += [value for batch in batches for value in batch.values]
    assert found == [b"%d" % number for number in range(50)]


def test_a_poll_returns_when_records_come_not_when_time_is_up(world: Any) -> None:
    partition = world.topic()
    member = world.member(partition.topic)
    member.until_owns(1)
    member.begin()
    member.consumer.poll(1.0, 10)
    world.write(partition, b"a")
    assert sum(len(batch) for batch in member.consumer.poll(60.0, 1000)) == 1


def test_after_a_seek_nothing_comes_from_before_it(world: Any) -> None:
    partition = world.topic()
    world.write(partition, *(b"%d" % number for number in range(1000)))
    member = world.member(partition.topic)
    member.until_owns(1)
    member.begin()
    for target in (0, 500, 20, 990, 3):
        member.values(1, max_records=10)  # more has been fetched by now
        member.consumer.seek(partition, target)
        assert member.consumer.position(partition) == target
        assert member.values(1, max_records=5)[partition][0] == b"%d" % target


def test_a_paused_partition_gives_nothing_though_it_was_fetched(world: Any) -> None:
    partition = world.topic()
    world.write(partition, *(b"%d" % number for number in range(1000)))
    member = world.member(partition.topic)
    member.until_owns(1)
    member.begin()
    assert member.values(5, max_records=5)[partition][-1] == b"4"
    member.consumer.pause([partition])
    assert not any(member.consumer.poll(0.1, 10) for _ in range(5))
    member.consumer.resume([partition])
    assert member.values(1, max_records=5)[partition][0] == b"5"
    member.consumer.pause([partition])
    member.consumer.seek(partition, 2)
    assert not any(member.consumer.poll(0.1, 10) for _ in range(5))
    member.consumer.resume([partition])
    assert member.values(1, max_records=5)[partition][0] == b"2"


def test_an_offset_that_is_gone_is_said_and_another_can_be_sought(world: Any) -> None:
    partition = world.topic()
    world.write(partition, *(b"%d" % number for number in range(10)))
    member = world.member(partition.topic)
    member.until_owns(1)
    admin = KafkaAdminClient(bootstrap_servers=world.bootstrap)
    admin.delete_records({TopicPartition(*partition): 6})
    admin.close()
    assert member.consumer.watermarks(partition).low == 6
    for wrong in (2, 900):
        member.begin(wrong)
        with pytest.raises(GoneError) as caught:
            eventually(lambda: member.consumer.poll(0.2, 10))
        assert (caught.value.topic, caught.value.partition, caught.value.offset) == (*partition, wrong)
    member.begin(6)
    assert member.values(4) == {partition: [b"6", b"7", b"8", b"9"]}


def test_what_was_aborted_or_is_still_open_does_not_come(world: Any) -> None:
    partition = world.topic()
    world.write(partition, b"one")
    world.write(partition, b"aborted", commit=False)
    producer = world.producer("open")
    producer.begin()
    producer.produce(partition, [b"open"])
    producer.flush()
    world.write(partition, b"two")
    member = world.member(partition.topic)
    member.until_owns(1)
    member.begin()
    assert member.values(1) == {partition: [b"one"]}
    assert not any(member.consumer.poll(0.1, 10) for _ in range(5)), "behind an open transaction nothing is stable"
    eventually(lambda: member.consumer.watermarks(partition).high == 4)
    producer.commit()
    assert member.values(2) == {partition: [b"open", b"two"]}


def test_two_members_share_and_one_that_leaves_gives_back(world: Any) -> None:
    topic = world.topic(2).topic
    first, second = world.member(topic), world.member(topic)
    first.until_owns(1, second)
    second.until_owns(1, first)
    assert first.consumer.assignment().isdisjoint(second.consumer.assignment())
    assert first.consumer.group_token().generation == second.consumer.group_token().generation
    given_back = sorted(second.consumer.assignment())
    second.consumer.close()
    assert second.told[-1] == ("revoked", given_back)
    first.until_owns(2)


def test_a_partition_revoked_in_the_middle_of_a_batch_is_dropped_at_once(world: Any) -> None:
    topic = world.topic(2).topic
    for number in (0, 1):
        world.write(Partition(topic, number), *(b"%d" % each for each in range(500)))
    first = world.member(topic)
    first.until_owns(2)
    first.begin()
    first.values(10, max_records=10)  # hundreds more have been fetched by now
    second = world.member(topic)

    def shared() -> Any:
        second.consumer.poll(0.05, 10)
        before = first.consumer.assignment()
        batches = first.consumer.poll(0.05, 10)
        assert {batch.partition for batch in batches} <= first.consumer.assignment() & before
        return len(first.consumer.assignment()) == 1

    eventually(shared)
    assert ("revoked", [Partition(topic, 0), Partition(topic, 1)]) in first.told, "eager: everything goes first"
    (kept,) = first.consumer.assignment()
    assert first.told[-1] == ("assigned", [kept])
    assert not any(first.consumer.poll(0.1, 10) for _ in range(3)), "what came back starts paused"
    with pytest.raises(FatalError):
        first.consumer.position(kept)
    with pytest.raises(FatalError):
        first.consumer.seek(Partition(topic, 1 - kept.number), 0)


def test_new_partitions_are_noticed(world: Any) -> None:
    topic = world.topic(1).topic
    member = world.member(topic)
    member.until_owns(1)
    world.admin.grow_partitions(topic, 3)
    member.until_owns(3)


def test_offsets_are_committed_with_a_note_and_read_back(world: Any) -> None:
    topic = world.topic(2).topic
    zero, one = Partition(topic, 0), Partition(topic, 1)
    member = world.member(topic)
    member.until_owns(2)
    assert member.consumer.committed([zero, one]) == {zero: None, one: None}
    note = '{"state": 12, "sequence": 3, "topic": "0f6e", "größe": "α"}'
    world.commit_offset(zero, Committed(41, note), member)
    assert member.consumer.committed([zero, one]) == {zero: Committed(41, note), one: None}


@pytest.mark.parametrize("world", ["confluent-kafka"], indirect=True)
def test_a_client_that_waits_for_itself_while_it_leaves_keeps_nobody(
    world: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As librdkafka does where partitions are assigned at that moment, seen once in a run of all tests."""
    member, ended = world.stranger(), threading.Event()
    monkeypatch.setattr(confluent_consumer, "_LEAVE_SECONDS", 0.05)
    with monkeypatch.context() as broken, caplog.at_level(logging.WARNING):
        leave = member._leave
        broken.setattr(member, "_leave", lambda: (ended.wait(60), leave()))
        member.close()
        assert "the client does not get to leave it" in caplog.text
    ended.set()
