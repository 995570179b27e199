"""Cohorts behind Kafka: people are known again by the next owner, on both clients and both brokers."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource

from microdata import PersonSource
from privacy.over_time import Sightings, candidates
from service.kafka import Partition
from service.kafka.partitioners import partitions_of
from service.worker.sealing import add_key
from service.worker.warmup import warm_up
from stream_algos import Cohorts
from tests.service.kafka.test_worker import stopped_reason
from tests.service.kafka.worker_world import SCHEMA, Town, event, renamed

K = 3
PARTITIONS = 2
BY_KEY = replace(SCHEMA, person=PersonSource.KEY)
ENGINE: Any = partial(Cohorts, BY_KEY, k=K, l=2, delay={"tuples": 40}, company="standing", founders=6)


@pytest.fixture
def town(world: Any) -> Iterator[Any]:
    town = Town(world, PARTITIONS)
    town.stream = renamed(
        town.stream, schema=BY_KEY, keyed="murmur2", engine=ENGINE, models=ENGINE().models(), remembers=True
    )
    warm_up(town.stream)
    yield town
    town.stop()


def feed(town: Any, whose: list[int], first: int, last: int) -> None:
    """These events, each where its person's key says."""
    keys = [f"p{person}".encode() for person in whose[first:last]]
    events = [event(number, whose[number]) for number in range(first, last)]
    places = partitions_of("murmur2", keys, PARTITIONS)
    for place in range(PARTITIONS):
        own = np.flatnonzero(places == place).tolist()
        town.feed(*[events[one] for one in own], partition=place, keys=[keys[one] for one in own])


def known(worker: Any) -> float:
    return sum(own.engine.status()["persons"] for own in worker._owned.running.values())


def least(town: Any, whose: list[int]) -> int:
    """The fewest persons in all boxes of somebody, dirty reads included."""
    boxes = {}
    for cluster in town.output(dirty=True):
        age, city = cluster["generalization"]["age"], cluster["generalization"]["city"]
        ages = age if isinstance(age, list) else [age, age]
        cities = (0, 2) if city not in "abc" else ("abc".index(city),) * 2
        for row in cluster["rows"]:
            boxes[row["trace"]] = ((ages[0], cities[0]), (ages[1], cities[1]))
    rows = np.array(sorted(boxes))
    persons = np.array(whose)
    quasi = np.stack([persons % 100, persons % 3], axis=1).astype(float)
    lo, hi = (np.array([boxes[row][side] for row in rows.tolist()], float) for side in range(2))
    _, left = candidates(Sightings(np.arange(len(persons)), persons, quasi), rows, persons[rows], lo, hi)
    return int(left.min())


def truncate(town: Any, place: Partition) -> None:
    """Delete the records of a partition, as somebody with too many rights may: its offsets go on."""
    low, high = town.world.reader(dirty=True).watermarks(place)
    admin = KafkaAdminClient(bootstrap_servers=town.world.bootstrap)
    for policy in ("compact,delete", "compact"):  # a broker deletes no records of a topic that is compacted alone
        admin.alter_configs([ConfigResource("TOPIC", place.topic, {"cleanup.policy": policy})])
        town.until(lambda policy=policy: cleanup(town, place) == policy)
        if policy != "compact":
            admin.delete_records({TopicPartition(*place): high})
    admin.close()
    town.until(lambda: town.world.reader().watermarks(place).low > low)


def cleanup(town: Any, place: Partition) -> str:
    return str(town.world.admin.describe_topic(place.topic).config["cleanup.policy"])


@pytest.mark.slow
def test_a_successor_knows_everybody_and_one_without_the_memory_stops(town: Any, tmp_path: Path) -> None:
    key_file = tmp_path / "keys.json"
    add_key(key_file)
    whose = np.random.default_rng(3).integers(0, 80, 600).tolist()
    feed(town, whose, 0, 300)
    first = town.start(key_file=key_file)
    town.until_settled(first, 250)
    town.stop()
    feed(town, whose, 300, 600)
    second = town.start(key_file=key_file)
    town.until_settled(second, 280)
    town.stop()
    status = second.metrics.status()
    assert status["counts"]["refused_releases"] == 0
    released = town.released()
    assert len(released) == len(set(released)) > 400
    assert least(town, whose) >= K
    town.assert_never_under_two_boxes()
    assert "undeclared" not in json.dumps(town.output())
    assert town.world.admin.describe_topic(town.stream.memory_topic).config["max.compaction.lag.ms"] == "86400000"
    # Persons are forgotten on request, and the next owner knows all the others.
    persons = len(set(whose))
    forgotten = town.worker(key_file=key_file).forget(["p1", "p2", "nobody"])
    assert sum(forgotten.values()) == 2
    third = town.start(key_file=key_file)
    town.until(lambda: third.metrics.unready() is None and len(third._owned.running) == PARTITIONS)
    assert known(third) == persons - 2
    town.stop()
    # Whoever deletes records of what is remembered stops their partition, and whoever deletes the topic the stream.
    released = sorted(town.released())
    truncate(town, Partition(town.stream.memory_topic, 0))
    truncated = town.start(key_file=key_file)
    assert "records are missing or old" in stopped_reason(town, truncated)
    person = next(one for one in whose if partitions_of("murmur2", [b"p%d" % one], PARTITIONS)[0] == 0)
    feed(town, [person] * 620, 600, 620)
    town.until(lambda: len(truncated._owned.running) == 1)
    town.stop()
    assert sorted(town.released()) == released
    town.world.admin.delete_topic(town.stream.memory_topic)
    town.until(lambda: town.stream.memory_topic not in town.world.admin.list_topics())
    fourth = town.start(key_file=key_file)
    assert "was deleted and created again" in stopped_reason(town, fourth)
