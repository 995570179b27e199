"""`keyed`: where producers who know nothing of us put their records, and what becomes of records elsewhere."""

import contextlib
import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Producer
from kafka import KafkaProducer

from service.kafka import Partition
from service.kafka.partitioners import partitions_of
from tests.service.kafka.test_worker import stopped_reason
from tests.service.kafka.worker_world import Town, event, renamed
from tests.service.kafka.world import World

PARTITIONS = 7
KEYS = [b"", b"\x00", b"alice", "Jürgen".encode(), *(random.Random(4).randbytes(n) for n in range(1, 90))]


def by_confluent(bootstrap: str, topic: str, partitioner: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": partitioner})
    for key in KEYS:
        producer.produce(topic, key, key)
    assert producer.flush(60) == 0


def by_kafka_python(bootstrap: str, topic: str, _: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for key in KEYS:
        producer.send(topic, key, key)
    producer.flush(60)
    producer.close()


@pytest.mark.parametrize(
    ("produce", "theirs", "ours"),
    [
        (by_confluent, "consistent", "crc32"),
        (by_confluent, "murmur2", "murmur2"),
        (by_confluent, "fnv1a", "fnv1a"),
        (by_kafka_python, "", "murmur2"),
    ],
)
def test_every_record_is_where_its_key_says(embedded_kafka: str, produce: Any, theirs: str, ours: Any) -> None:
    with contextlib.ExitStack() as stack:
        world = World("confluent-kafka", embedded_kafka, stack)
        topic = world.topic(PARTITIONS).topic
        produce(embedded_kafka, topic, theirs)
        reader, found = world.reader(), 0
        for number in range(PARTITIONS):
            low, high = reader.watermarks(Partition(topic, number))
            for batch in reader.read(Partition(topic, number), low, high, 30):
                assert (partitions_of(ours, batch.keys, PARTITIONS) == number).all()
                found += len(batch)
        assert found == len(KEYS)


def keyed_event(trace: int) -> tuple[bytes, bytes]:
    return f"p{trace}".encode(), event(trace, trace)


@pytest.fixture
def town(world: Any) -> Iterator[Any]:
    town = Town(world, partitions=2)
    town.stream = renamed(town.stream, keyed="murmur2")
    yield town
    town.stop()


@pytest.mark.slow
def test_a_record_elsewhere_is_refused_and_a_topic_that_has_grown_stops_the_stream_until_it_is_drained(
    town: Any,
) -> None:
    records = [keyed_event(trace) for trace in range(40)]
    places = partitions_of("murmur2", [key for key, _ in records], 2)
    for number in range(2):
        own = [record for record, place in zip(records, places, strict=True) if place == number]
        town.feed(*[value for _, value in own], partition=number, keys=[key for key, _ in own])
    strange = int(np.flatnonzero(places == 1)[0])
    town.feed(event(100, 1), event(101, 2), keys=[records[strange][0], None])
    worker = town.start()
    town.until(lambda: worker.metrics.status()["counts"].get("taken", 0) == 42)
    town.until_all_left(worker, 40)
    letters = sorted(map(json.loads, town.values(town.stream.dead_letters)), key=lambda letter: letter["offset"])
    assert [(one["partition"], one["field"], one["reason"]) for one in letters] == [
        (0, "(key)", "other_partition"),
        (0, "(key)", "missing"),
    ]
    assert not {100, 101} & set(town.released())
    town.world.admin.grow_partitions(town.stream.input, 3)
    assert "the input has 3 partitions and had 2" in stopped_reason(town, worker)
    town.stop()
    released = len(town.released())
    assert town.worker().drain()[2] == 0
    assert len(town.released()) >= released
    # The new run counts by the new number.
    moved = [keyed_event(200 + trace) for trace in range(30)]
    now = partitions_of("murmur2", [key for key, _ in moved], 3)
    for number in range(3):
        own = [record for record, place in zip(moved, now, strict=True) if place == number]
        town.feed(*[value for _, value in own], partition=number, keys=[key for key, _ in own])
    second = town.start()
    town.until(lambda: second.metrics.status()["counts"].get("taken", 0) == 30)
    assert not [name for name in second.metrics.status()["counts"] if name.startswith("refused.")]
