"""A worker under a whole policy, on every kind of broker: categories of sensitivity, and classes shown as means."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from service.policy import parse_policy
from service.worker.settings import WorkerSettings
from service.worker.stream import stream_of
from tests.service.codec.avro_world import written
from tests.service.kafka.worker_world import Town
from tests.service.kafka.world import World
from tests.service.registry.fake_registry import FakeRegistry

CATEGORY = {"HIV": 0, "Cancer": 0, "Asthma": 1, "Flu": 2}
POLICY = {
    "schema": {
        "person": "who",
        "quasi": {"age": {"type": "number", "min": 0, "max": 99, "integer": True}},
        "sensitive": {
            "disease": {
                "type": "category",
                "hierarchy": {"Any": ["HIV", "Cancer", "Asthma", "Flu"]},
                "sensitivity": [["HIV", "Cancer"], ["Asthma"], ["Flu"]],
            }
        },
        "public": ["trace"],
    },
    "guarantee": {"algorithm": "castle", "k": 3, "p_categories": 2, "delay": {"tuples": 40}},
    "show": "mean",
}


@pytest.fixture
def town(bootstrap: str) -> Iterator[Any]:
    with contextlib.ExitStack() as stack:
        town = Town(World("confluent-kafka", bootstrap, stack))
        topics = {"input": town.stream.input, "output": town.stream.output, "dead_letters": town.stream.dead_letters}
        policy = parse_policy({**POLICY, "name": town.stream.name, "stream": {**topics, "start": "earliest"}})
        town.stream = stream_of(policy, WorkerSettings())
        yield town
        town.stop()


def test_no_category_is_certain_and_every_class_is_its_mean(town: Any) -> None:
    ages = [number * 37 % 100 for number in range(200)]
    diseases = [["HIV", "Cancer", "Flu", "HIV", "Asthma"][number % 5] for number in range(200)]
    people = zip(ages, diseases, strict=True)
    events = [{"who": f"p{n}", "age": age, "disease": ill, "trace": n} for n, (age, ill) in enumerate(people)]
    town.feed(*(json.dumps(event).encode() for event in events))
    worker = town.start(on_stop="flush")
    town.until(lambda: len(town.released()) >= 150, seconds=600)  # a first worker compiles its kernels
    town.stop()
    released = town.released()
    assert sorted(released) == list(range(200))
    for cluster in town.output():
        members = [row["trace"] for row in cluster["rows"]]
        assert len(members) >= 3
        assert len({CATEGORY[diseases[trace]] for trace in members}) >= 2
        assert abs(cluster["generalization"]["age"] - np.mean([ages[trace] for trace in members])) <= 0.5
    assert worker.metrics.status()["counts"]["refused_releases"] == 0


KEYED = """
name: NAME
schema:
  person: {key: id}
  quasi: {age: {type: number, min: 0, max: 99, integer: true}}
  public: [who]
guarantee: {algorithm: castle, k: 4, delay: {tuples: 16}}
stream: {input: RAW, output: SAFE, start: earliest, format: {key: avro}}
"""
FIRST = {"type": "record", "name": "Customer", "fields": [{"name": "id", "type": "int"}]}
SECOND = {**FIRST, "fields": [{"name": "id", "type": "long"}, {"name": "region", "type": "string", "default": "n"}]}


def test_a_new_version_of_the_keys_schema_makes_nobody_count_twice(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two persons with four keys, again and again: as many keys as k, and half as many persons."""
    town = Town(world)
    names = {"NAME": world.name, "RAW": town.stream.input, "SAFE": town.stream.output}
    text = KEYED
    for name, real in names.items():
        text = text.replace(name, real)
    with FakeRegistry() as registry:
        monkeypatch.setenv("PORTCULLIS_REGISTRY_URL", registry.url)
        heads = [registry.add(f"{town.stream.input}-key", one).to_bytes(5, "big") for one in (FIRST, SECOND)]
        town.stream = stream_of(parse_policy(text), WorkerSettings())
        numbers = [number for low in range(0, 60, 2) for number in (low, low + 1)]
        keys, values = [], []
        for low in numbers[::2]:
            for head, schema in zip(heads, (FIRST, SECOND), strict=True):
                for number in (low, low + 1):
                    keys.append(head + written(schema, {"id": number, "region": "n"}))
                    values.append(json.dumps({"age": number, "who": number}).encode())
        assert len({*keys}) == 2 * len(numbers)
        town.feed(*values, keys=keys)
        worker = town.start()
        town.until(lambda: worker.metrics.status()["counts"].get("released", 0) >= 100)
        town.stop()
        clusters = town.output()
        assert all(len({row["who"] for row in cluster["rows"]}) >= 4 for cluster in clusters)
