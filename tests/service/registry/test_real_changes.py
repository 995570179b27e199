"""Schemas that change under a running worker, and change events, on a real Kafka with a real registry."""

import dataclasses
import json
import warnings
from typing import Any

import pytest
from confluent_kafka import Producer

from service.codec import Format, TopicFormat
from tests.service.codec.protobuf_world import classes
from tests.service.registry.test_real_topics import FIRST, PLAIN, Shop, protobuf_clusters, purchase, shop

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what it imports
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

__all__ = ["shop"]
pytestmark = [
    pytest.mark.needs_tool("kafka"),
    pytest.mark.needs_tool("registry"),
    pytest.mark.xdist_group("registry"),
]
FIELDS: Any = FIRST["fields"]
RENAMED: dict[str, Any] = {
    **FIRST,
    "fields": [
        {"name": "years", "type": ["null", "int"], "default": None, "aliases": ["age"]}
        if each["name"] == "age"
        else each
        for each in FIELDS
    ],
}
PURCHASE = """
syntax = "proto3";
package shop;
message Purchase { string who = 1; int32 age = 2; City city = 3; string item = 4; TYPE trace = 5; }
enum City { a = 0; b = 1; c = 2; }
"""
BIG = 2**40


def released(worker: Any) -> int:
    return int(worker.metrics.status()["counts"].get("released", 0))


@pytest.mark.parametrize("shop", ["confluent-kafka"], indirect=True)
def test_field_that_is_renamed_with_an_alias_is_read_by_a_running_worker(shop: Shop) -> None:
    town = shop.town
    town.feed(*shop.serialized(FIRST, *range(20)))
    worker = town.start()
    town.until(lambda: released(worker) >= 17)
    renamed = [{**purchase(n), "years": n} for n in range(20, 50)]
    town.feed(*(shop.serialized(RENAMED, one["trace"], years=one["years"])[0] for one in renamed))
    town.feed(*shop.serialized(FIRST, *range(50, 60)))
    town.until(lambda: released(worker) >= 57)
    town.stop()
    assert len(set(shop.traces())) == len(shop.traces()) >= 57
    assert not town.values(town.stream.dead_letters or "")


@pytest.mark.parametrize("shop", ["confluent-kafka"], indirect=True)
def test_number_of_protobuf_that_gets_wider_is_read_by_a_running_worker(shop: Shop) -> None:
    town, context = shop.town, SerializationContext(shop.town.stream.input, MessageField.VALUE)
    both = TopicFormat("protobuf", record="Purchase"), TopicFormat("protobuf")
    town.stream = dataclasses.replace(town.stream, format=Format(*both))

    def written(kind: str, numbers: range, above: int = 0) -> list[bytes]:
        made = classes(PURCHASE.replace("TYPE", kind))["shop.Purchase"]
        write = ProtobufSerializer(made, shop.registry, PLAIN)
        return [write(made(**{**purchase(n, city=n % 3), "trace": n + above}), context) for n in numbers]

    town.feed(*written("int32", range(20)))
    worker = town.start()
    town.until(lambda: released(worker) >= 17)
    town.feed(*written("int64", range(20, 50), BIG))
    town.until(lambda: released(worker) >= 47)
    town.stop()
    traces = [row.trace for one in protobuf_clusters(shop) for row in one.rows]
    assert len(set(traces)) == len(traces) >= 47
    assert max(traces) > BIG
    assert not town.values(town.stream.dead_letters or "")


@pytest.mark.parametrize("kind", ["avro", "json"])
@pytest.mark.parametrize("shop", ["confluent-kafka"], indirect=True)
def test_change_events_of_debezium_go_through_and_deletes_are_skipped(shop: Shop, kind: str) -> None:
    town = shop.town
    side = TopicFormat(kind, envelope="debezium")
    town.stream = dataclasses.replace(town.stream, format=Format(side, TopicFormat("json")))
    row = {**FIRST, "name": "Value"}
    envelope = {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "op", "type": "string"},
        ],
    }
    changes = [{"before": None, "after": purchase(n), "op": "rcu"[n % 3]} for n in range(20)]
    changes[5:5] = [{"before": purchase(n), "after": None, "op": "d"} for n in range(3)]
    if kind == "avro":
        values: list[bytes | None] = [shop.written(envelope, change) for change in changes]
    else:
        values = [json.dumps({"schema": None, "payload": change}).encode() for change in changes]
    town.feed(*values, None)
    worker = town.start()
    town.until(lambda: released(worker) >= 17)
    town.stop()
    assert worker.metrics.status()["counts"]["skipped"] == 4
    assert len(set(town.released())) == len(town.released()) >= 17
    assert not town.values(town.stream.dead_letters or "")


@pytest.mark.parametrize("shop", ["kafka-python", "confluent-kafka"], indirect=True)
def test_partition_with_schema_ids_in_headers_stops_before_a_record_is_rejected(shop: Shop) -> None:
    town = shop.town
    producer = Producer({"bootstrap.servers": town.world.bootstrap})
    for value in shop.serialized(FIRST, *range(10)):
        producer.produce(town.stream.input, value[5:], partition=0, headers=[("__value_schema_id", b"\1" + bytes(16))])
    producer.flush()
    worker = town.start()
    town.until(lambda: worker.metrics.status()["stopped"])
    (reason,) = worker.metrics.status()["stopped"].values()
    town.stop()
    assert "PrefixSchemaIdSerializer" in reason
    assert not town.values(town.stream.dead_letters or "")
