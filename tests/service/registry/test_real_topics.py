"""Confluent's own serializers on both sides of a worker, on a real Kafka with a real registry."""

import contextlib
import dataclasses
import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from microdata import PersonSource
from service.codec import Format, TopicFormat
from service.codec.avro_messages import derived_schema
from service.codec.protobuf_messages import derived_protobuf
from service.registry import Registry, RegistrySettings, SchemaConflictError
from tests.service.codec.protobuf_world import classes
from tests.service.codec.test_avro_messages import SCHEMA, TYPES
from tests.service.kafka.worker_world import Town
from tests.service.kafka.world import World
from tests.service.worker.chunks import Chunks

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what it imports
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

pytestmark = [
    pytest.mark.needs_tool("kafka"),
    pytest.mark.needs_tool("registry"),
    pytest.mark.xdist_group("registry"),
]
CITY = {"type": "enum", "name": "City", "symbols": ["a", "b", "c"]}
FIRST = {
    "type": "record",
    "name": "Purchase",
    "fields": [
        {"name": "who", "type": "string"},
        {"name": "age", "type": ["null", "int"], "default": None},
        {"name": "city", "type": CITY},
        {"name": "item", "type": "string"},
        {"name": "trace", "type": "long"},
    ],
}
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "secret", "type": ["null", "string"], "default": None}]}


class Shop:
    """A town whose topics are Avro, and somebody else's programs that write and read them."""

    def __init__(self, town: Town, url: str) -> None:
        both = Format(TopicFormat("avro"), TopicFormat("avro"))
        self.town = town
        town.stream = dataclasses.replace(town.stream, format=both)
        self.registry = SchemaRegistryClient({"url": url})
        self._read = AvroDeserializer(self.registry)

    def serialized(self, schema: Any, *numbers: int, **more: Any) -> list[bytes]:
        return [self.written(schema, purchase(number, **more)) for number in numbers]

    def written(self, schema: Any, value: Any) -> bytes:
        context = SerializationContext(self.town.stream.input, MessageField.VALUE)
        return AvroSerializer(self.registry, json.dumps(schema))(value, context)

    def clusters(self) -> list[Any]:
        context = SerializationContext(self.town.stream.output, MessageField.VALUE)
        return [self._read(value, context) for value in self.town.values(self.town.stream.output)]

    def traces(self) -> list[int]:
        return sorted(row["trace"] for cluster in self.clusters() for row in cluster["rows"])


def purchase(number: int, **more: Any) -> dict[str, Any]:
    fields = {"who": f"p{number}", "age": number % 100, "city": "abc"[number % 3], "item": "xy"[number % 2]}
    return {**fields, "trace": number, **more}


@pytest.fixture(params=["kafka-python", "confluent-kafka"])
def shop(
    request: pytest.FixtureRequest, real_bootstrap: str, real_registry: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shop]:
    monkeypatch.setenv("PORTCULLIS_REGISTRY_URL", real_registry.url)
    monkeypatch.setenv("PORTCULLIS_REGISTRY_TIMEOUT", "2")
    with contextlib.ExitStack() as stack:
        made = Shop(Town(World(request.param, real_bootstrap, stack)), real_registry.url)
        stack.callback(made.town.stop)
        yield made


def test_what_a_serializer_writes_a_deserializer_reads_as_clusters(shop: Shop) -> None:
    shop.town.feed(*shop.serialized(FIRST, *range(30)), b"?", b"\0\0\x7f\0\0junk")
    shop.town.feed(*shop.serialized(SECOND, *range(30, 60), secret="undeclared"))
    worker = shop.town.start()
    shop.town.until(lambda: len(shop.traces()) + worker.metrics.status()["gauges"]["pending"] == 60)
    shop.town.stop()
    assert len(set(shop.traces())) == len(shop.traces()) >= 57
    for cluster in shop.clusters():
        assert len(cluster["rows"]) >= 3
        age = cluster["generalization"]["age"]
        assert all(age["low"] <= row["trace"] % 100 <= age["high"] for row in cluster["rows"])
        assert "secret" not in cluster["rows"][0]
    letters = [json.loads(value)["reason"] for value in shop.town.values(shop.town.stream.dead_letters or "")]
    assert letters == ["malformed", "unknown_schema"]


def test_without_a_registry_a_worker_and_its_successor_wait_and_lose_nothing(shop: Shop, real_registry: Any) -> None:
    first, second = shop.serialized(FIRST, *range(10)), shop.serialized(SECOND, *range(10, 40), secret="x")
    shop.town.feed(*first)
    worker = shop.town.start()
    shop.town.until(shop.traces)
    real_registry.pause()
    try:
        shop.town.feed(*second)
        shop.town.until(lambda: "asking the schema registry" in (worker.metrics.unready() or ""))
        shop.town.stop()
        after = shop.town.start()
        shop.town.until(lambda: "schema registry" in (after.metrics.unready() or ""))
    finally:
        real_registry.go_on()
    shop.town.until(lambda: len(shop.traces()) + after.metrics.status()["gauges"]["pending"] == 40)
    assert len(set(shop.traces())) == len(shop.traces())
    assert not shop.town.values(shop.town.stream.dead_letters or "")


def test_a_new_version_of_the_keys_schema_makes_nobody_count_twice(shop: Shop) -> None:
    """Two persons with four keys, again and again: as many keys as k, and half as many persons."""
    town, sides = shop.town, (TopicFormat("avro"), TopicFormat("avro"), TopicFormat("avro"))
    by_key = dataclasses.replace(town.stream.schema, person=PersonSource.KEY)
    models = Chunks(by_key, k=4).models()
    town.stream = dataclasses.replace(
        town.stream, schema=by_key, format=Format(*sides), engine=lambda: Chunks(by_key, k=4), models=models
    )
    context = SerializationContext(town.stream.input, MessageField.KEY)
    versions = "string", {"type": "string", "doc": "the second version"}
    first, second = (AvroSerializer(shop.registry, json.dumps(version)) for version in versions)
    numbers = [n for n in range(0, 40, 2) for _ in range(2)]
    values = [value for n in numbers for value in shop.serialized(FIRST, n, n + 1)]
    keys = [write(f"p{n}", context) for low in range(0, 40, 2) for write in (first, second) for n in (low, low + 1)]
    assert len({*keys}) == 80
    town.feed(*values, keys=keys)
    worker = town.start()
    town.until(lambda: worker.metrics.status()["counts"].get("released", 0) >= 64)
    town.stop()
    for cluster in shop.clusters():
        assert len({row["trace"] for row in cluster["rows"]}) >= 4
    assert not town.values(town.stream.dead_letters or "")


PURCHASE = """
syntax = "proto3";
package shop;
message Receipt { string number = 1; }
message Purchase { string who = 1; optional int32 age = 2; City city = 3; string item = 4; int64 trace = 5; MORE }
enum City { a = 0; b = 1; c = 2; }
"""
PLAIN = {"use.deprecated.format": False}


def with_protobuf(shop: Shop) -> tuple[list[bytes], list[bytes]]:
    """Its topics are Protobuf from here on; thirty messages of a first and of a second schema."""
    town = shop.town
    side = TopicFormat("protobuf", record="Purchase")
    town.stream = dataclasses.replace(town.stream, format=Format(side, TopicFormat("protobuf")))
    context = SerializationContext(town.stream.input, MessageField.VALUE)
    written = []
    # The serializer registers the schema that its class was compiled from; the message is the second in it.
    for more, numbers in (("", range(30)), ("string secret = 9;", range(30, 60))):
        made = classes(PURCHASE.replace("MORE", more))["shop.Purchase"]
        write, extra = ProtobufSerializer(made, shop.registry, PLAIN), {"secret": "undeclared"} if more else {}
        written.append([write(made(**purchase(n, city=n % 3), **extra), context) for n in numbers])
    return written[0], written[1]


def protobuf_clusters(shop: Shop) -> list[Any]:
    newest = shop.registry.get_latest_version(f"{shop.town.stream.output}-value")
    (cluster,) = [made for name, made in classes(newest.schema.schema_str).items() if name.endswith(".Cluster")]
    read, context = ProtobufDeserializer(cluster, PLAIN), SerializationContext(shop.town.stream.output, "value")
    return [read(value, context) for value in shop.town.values(shop.town.stream.output)]


def test_messages_of_protobuf_go_through_as_well(shop: Shop) -> None:
    town = shop.town
    first, second = with_protobuf(shop)
    receipt = classes(PURCHASE.replace("MORE", ""))["shop.Receipt"]
    context = SerializationContext(town.stream.input, MessageField.VALUE)
    town.feed(*first, *second)
    town.feed(ProtobufSerializer(receipt, shop.registry, PLAIN)(receipt(number="7"), context), b"\0\0\x7f\0\0\0junk")
    worker = town.start()
    town.until(lambda: worker.metrics.status()["counts"].get("released", 0) >= 57)
    town.until(lambda: len(town.values(town.stream.dead_letters or "")) == 2)
    town.stop()
    found = protobuf_clusters(shop)
    for one in found:
        age = one.generalization.age
        assert len(one.rows) >= 3
        assert all(age.low <= row.trace % 100 <= age.high for row in one.rows)
    traces = [row.trace for one in found for row in one.rows]
    assert len(set(traces)) == len(traces) >= 57
    assert not any(b"undeclared" in value for value in town.values(town.stream.output))
    letters = [json.loads(value)["reason"] for value in town.values(town.stream.dead_letters or "")]
    assert letters == ["other_schema", "unknown_schema"]


@pytest.mark.parametrize("shop", ["confluent-kafka"], indirect=True)
def test_messages_of_protobuf_wait_for_a_registry_that_was_stopped_and_is_back(shop: Shop, real_registry: Any) -> None:
    town = shop.town
    first, second = with_protobuf(shop)
    town.feed(*first)
    worker = town.start()
    town.until(lambda: worker.metrics.status()["counts"].get("released", 0) >= 27)
    real_registry.stop()
    try:
        town.feed(*second)
        town.until(lambda: "asking the schema registry" in (worker.metrics.unready() or ""))
        trouble = worker.metrics.status()["trouble"]["asking the schema registry"]
        assert trouble["code"] == "REGISTRY_NO_ANSWER"
    finally:
        real_registry.start()
    town.until(lambda: worker.metrics.status()["counts"].get("released", 0) >= 57)
    town.until(lambda: worker.metrics.unready() is None)
    town.stop()
    traces = [row.trace for one in protobuf_clusters(shop) for row in one.rows]
    assert len(set(traces)) == len(traces) >= 57
    assert not town.values(town.stream.dead_letters or "")


RULES = {
    "AVRO": {"BACKWARD": (True, True), "FORWARD": (True, True), "FULL": (True, True)},
    "PROTOBUF": {"BACKWARD": (False, True), "FORWARD": (True, False), "FULL": (True, True)},
}
"""Of each rule of Apicurio, whether it lets a field go, and come."""


@pytest.mark.parametrize("kind", RULES)
def test_rules_of_the_registry_take_fields_that_come_and_go(kind: str, real_registry: Any) -> None:
    """What the page on topics with a schema says of them."""
    client, ours = SchemaRegistryClient({"url": real_registry.url}), Registry(RegistrySettings(url=real_registry.url))
    derive: Any = derived_schema if kind == "AVRO" else derived_protobuf
    fewer = dataclasses.replace(SCHEMA, public=SCHEMA.public[:-1])
    texts = [derive(each, TYPES, "clusters", "interval", "ruled") for each in (SCHEMA, fewer)]
    found = {}
    for name in RULES[kind]:
        taken = []
        for step, (one, other) in enumerate((texts, texts[::-1])):
            subject = f"ruled-{kind}-{name}-{step}"
            ours.register(subject, kind, one)
            client.set_compatibility(subject, name)
            try:
                taken.append(ours.register(subject, kind, other) > 0)
            except SchemaConflictError:
                taken.append(False)
        found[name] = tuple(taken)
    assert found == RULES[kind]


def test_documents_of_a_json_schema_go_through_as_well(shop: Shop) -> None:
    town = shop.town
    town.stream = dataclasses.replace(
        town.stream, format=Format(TopicFormat("json-schema"), TopicFormat("json-schema"))
    )
    dialect = "http://json-schema.org/draft-07/schema#"
    schema = json.dumps({"$schema": dialect, "title": "Purchase", "type": "object"})
    write = JSONSerializer(schema, shop.registry)
    context = SerializationContext(town.stream.input, MessageField.VALUE)
    town.feed(*(write(purchase(number), context) for number in range(12)))
    worker = town.start()
    town.until(lambda: worker.metrics.status()["counts"].get("released", 0) >= 9)
    town.stop()
    newest = shop.registry.get_latest_version(f"{town.stream.output}-value")
    # It holds each document against its schema.
    read = JSONDeserializer(newest.schema.schema_str, schema_registry_client=shop.registry)
    context = SerializationContext(town.stream.output, MessageField.VALUE)
    clusters = [read(value, context) for value in town.values(town.stream.output)]
    assert all(len(cluster["rows"]) >= 3 for cluster in clusters)
