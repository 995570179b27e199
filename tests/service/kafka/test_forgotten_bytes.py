"""Whoever is forgotten is gone from the disks of an Apache Kafka, once it has compacted."""

import contextlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from microdata.encoding import encode_persons
from service.kafka import Partition
from service.worker.packing import unpack
from service.worker.sealing import Keys, add_key, load_keys
from service.worker.warmup import warm_up
from stream_algos import Cohorts
from tests.service.kafka.real_kafka import RealKafka
from tests.service.kafka.worker_world import SCHEMA, Town, event, renamed
from tests.service.kafka.world import World

ENGINE: Any = partial(Cohorts, SCHEMA, k=3, delay={"tuples": 40}, company="standing", founders=6)
EAGER = {
    "cleanup.policy": "compact",
    "max.compaction.lag.ms": "100",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}
"""What takes a day otherwise, at once."""


def sealed(town: Any, keys: Keys, code: int) -> list[bytes]:
    """Records of the memory that hold this person."""
    where, found = Partition(town.stream.memory_topic, 0), []
    low, high = town.world.reader(dirty=True).watermarks(where)
    for batch in town.world.reader().read(where, low, high, 60):
        for key, value in zip(batch.keys, batch.values, strict=True):
            if value is not None:
                arrays = unpack(keys.open(value, where, key)[0])[1]
                found += [value] if code in arrays.get("persons.tag", np.empty((0, 2)))[:, 0] else []
    return found


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.needs_tool("kafka")
@pytest.mark.xdist_group("kafka")
def test_a_forgotten_person_is_gone_from_the_topics_bytes(real_kafka: RealKafka, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        town = Town(World("confluent-kafka", real_kafka.bootstrap, stack))
        stack.callback(town.stop)
        town.stream = renamed(town.stream, engine=ENGINE, models=ENGINE().models(), remembers=True)
        warm_up(town.stream)
        town.world.admin.create_topic(town.stream.memory_topic, 1, EAGER)
        key_file = tmp_path / "keys.json"
        add_key(key_file)
        keys = load_keys(key_file)
        code, other = encode_persons(keys.persons, pa.array(["p1", "p2"]))[0].tolist()
        whose = np.random.default_rng(3).integers(0, 80, 300).tolist()
        town.feed(*(event(number, person) for number, person in enumerate([1, 2, *whose])))
        town.until_settled(town.start(key_file=key_file), 250)
        town.stop()
        written = sealed(town, keys, code)
        assert written

        def on_disk() -> bytes:
            return b"".join(path.read_bytes() for path in real_kafka.segments(town.stream.memory_topic))

        assert any(value in on_disk() for value in written), "else this test would find nobody anywhere"
        assert town.worker(key_file=key_file).forget(["p1"]) == {0: 1}
        # The segment that is written to is never compacted: others come, and it is closed.
        town.start(key_file=key_file)
        feeding = iter(range(1000, 2000))

        def gone() -> bool:
            town.feed(event(next(feeding), 7))
            disk = on_disk()
            return not any(value in disk for value in written)

        town.until(gone, 90)
        town.stop()
        assert not sealed(town, keys, code)
        assert sealed(town, keys, other), "nobody else is forgotten"
