"""Exact ranges of offsets, committed or dirty."""

import threading
import time
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient, TopicPartition

from service.kafka import Partition, RetriableError, UnknownTopicError
from tests.service.kafka.world import eventually, offsets_of


def test_a_range_is_read_exactly(world: Any) -> None:
    partition = world.topic()
    world.write(partition, *(b"%d" % number for number in range(100)))
    reader = world.reader()
    for start, stop in ((0, 100), (10, 11), (0, 1), (99, 100), (37, 63), (50, 50), (5, 3)):
        batches = list(reader.read(partition, start, stop, 10))
        assert offsets_of(batches) == list(range(start, stop))
        assert [value for batch in batches for value in batch.values] == [b"%d" % n for n in range(start, stop)]


def test_partitions_do_not_mix(world: Any) -> None:
    topic = world.topic(2).topic
    for number in (0, 1):
        world.write(Partition(topic, number), *(b"%d-%d" % (number, each) for each in range(20)))
    reader = world.reader()
    for number in (0, 1, 0):
        batches = list(reader.read(Partition(topic, number), 3, 5, 10))
        assert [value for batch in batches for value in batch.values] == [b"%d-3" % number, b"%d-4" % number]


def test_aborted_records_are_there_for_dirty_readers_only(world: Any) -> None:
    partition = world.topic()
    world.write(partition, b"one")
    world.write(partition, b"two", b"three", commit=False)
    world.write(partition, b"four")
    assert world.read(partition) == [b"one", b"four"]
    assert world.read(partition, dirty=True) == [b"one", b"two", b"three", b"four"]


def test_interleaved_transactions_are_told_apart(world: Any) -> None:
    partition = world.topic()
    kept, dropped = world.producer("kept"), world.producer("dropped")
    for producer in (kept, dropped):
        producer.begin()
    for number in range(3):
        kept.produce_and_wait({partition: (None, b"kept %d" % number)})
        dropped.produce_and_wait({partition: (None, b"dropped %d" % number)})
    dropped.abort()
    kept.commit()
    world.write(partition, b"later")
    assert world.read(partition) == [b"kept 0", b"kept 1", b"kept 2", b"later"]
    assert len(world.read(partition, dirty=True)) == 7


def test_the_end_is_the_last_stable_offset_for_who_reads_committed_records(world: Any) -> None:
    partition = world.topic()
    world.write(partition, b"one")
    producer = world.producer()
    producer.begin()
    assert producer.produce_and_wait({partition: (None, b"two")}) == {partition: 2}
    assert world.reader().watermarks(partition) == (0, 2)
    assert world.reader(dirty=True).watermarks(partition) == (0, 3)
    producer.abort()
    eventually(lambda: world.reader().watermarks(partition) == (0, 4))


def test_a_range_that_is_not_stable_yet_is_waited_for(world: Any) -> None:
    partition = world.topic()
    producer = world.producer()
    producer.begin()
    offset = producer.produce_and_wait({partition: (None, b"state")})[partition]
    reader = world.reader()
    with pytest.raises(RetriableError):
        list(reader.read(partition, offset, offset + 1, 0.5))
    threading.Timer(0.5, producer.commit).start()
    (batch,) = reader.read(partition, offset, offset + 1, 60)
    assert batch.values == [b"state"]


def test_what_is_gone_is_left_out(world: Any) -> None:
    partition = world.topic()
    world.write(partition, *(b"%d" % number for number in range(10)))
    admin = KafkaAdminClient(bootstrap_servers=world.bootstrap)
    admin.delete_records({TopicPartition(*partition): 7})
    admin.close()
    reader = world.reader()
    eventually(lambda: reader.watermarks(partition) == (7, 11))
    assert offsets_of(reader.read(partition, 2, 9, 10)) == [7, 8]
    assert offsets_of(reader.read(partition, 2, 6, 10)) == []


def test_what_compaction_leaves_of_transactions_is_passed_over(world: Any) -> None:
    """The embedded broker compacts what is written here; each writer's marker leaves an empty batch behind."""
    partition, large = world.topic(cleanup_policy="compact"), bytes(20_000)
    for number in range(12):
        world.write(partition, b"%d" % number + large, keys=[b"key"])
        world.write(partition, b"aborted" + large, keys=[b"key"], commit=False)
    assert world.read(partition)[-1] == b"11" + large
    world.write(partition, b"next", keys=[b"key"])
    member = world.member(partition.topic)
    member.until_owns(1)
    member.begin(0)
    eventually(lambda: b"next" in [value for batch in member.poll(1, 1000) for value in batch.values])


def test_who_takes_long_for_a_batch_is_not_told_that_the_broker_did(world: Any) -> None:
    partition = world.topic()
    world.write(partition, b"1", b"2")
    values = []
    reader = world.reader()
    # Up to the end of the transaction, which is no record: after the batch nothing is left that would come.
    for batch in reader.read(partition, 0, reader.watermarks(partition).high, 1):
        values += batch.values
        time.sleep(1.2)
    assert values == [b"1", b"2"]


def test_there_are_no_watermarks_of_what_does_not_exist(world: Any) -> None:
    with pytest.raises((UnknownTopicError, RetriableError)):
        world.reader(request_timeout_ms=2_000).watermarks(Partition("no-" + world.name, 0))


def test_batch_names_the_headers_of_its_first_record(world: Any) -> None:
    partition = world.topic()
    producer = Producer({"bootstrap.servers": world.bootstrap})
    for headers in ([("__value_schema_id", b"1"), ("trace", b"2")], None):
        producer.produce(partition.topic, b"value", partition=0, headers=headers)
    producer.flush()
    (batch,) = world.reader().read(partition, 0, 2, 10)
    assert batch.header_names == {"__value_schema_id", "trace"}
    (batch,) = world.reader().read(partition, 1, 2, 10)
    assert batch.header_names == frozenset()
