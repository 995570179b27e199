"""Events in the envelope of CloudEvents: what would lead from what leaves back to an event stays behind."""

import json
from typing import Any

import pytest

from service.kafka import Partition
from tests.service.codec import avro_world, protobuf_world
from tests.service.codec.avro_world import order, record
from tests.service.codec.protobuf_world import order_text
from tests.service.registry.fake_registry import FakeRegistry
from tests.service.worker.test_avro_worker import messages, policy_of, registry, run

__all__ = ["registry"]
LINKS = ("id", "source", "time", "traceparent", "tracestate")
ENVELOPE = {"specversion": "1.0", "type": "order", "subject": "marked-subject"} | {
    name: f"marked-{name}" for name in LINKS
}
AVRO = record(*({"name": name, "type": "string"} for name in ENVELOPE))
PROTOBUF = order_text(" ".join(f"string {name} = {20 + number};" for number, name in enumerate(ENVELOPE)))


def event(kind: str, number: int, head: bytes) -> bytes:
    if kind == "avro":
        return head + avro_world.written(AVRO, order(number, **ENVELOPE))
    if kind == "protobuf":
        return head + b"\0" + protobuf_world.written(PROTOBUF, protobuf_world.order(number, **ENVELOPE))
    return (head if kind == "json-schema" else b"") + json.dumps(order(number, **ENVELOPE)).encode()


@pytest.mark.parametrize("target", ["json", "avro", "protobuf", "json-schema"])
@pytest.mark.parametrize("source", ["json", "avro", "protobuf", "json-schema"])
def test_nothing_of_the_envelope_leaves(registry: FakeRegistry, source: str, target: str) -> None:
    registry.subjects.clear()
    schemas: Any = {"avro": (AVRO, "AVRO"), "protobuf": (PROTOBUF, "PROTOBUF"), "json-schema": ({}, "JSON")}
    # An id that no byte of an output has by chance.
    registry.schemas |= {number: {"schema": "unused"} for number in range(len(registry.schemas) + 1, 0xABCD)}
    number = registry.add("raw-value", *schemas.get(source, ({}, "JSON")))
    head = b"\0" + number.to_bytes(4, "big")
    paper = run(policy_of(f"{{input: {source}, output: {target}}}"), *(event(source, n, head) for n in range(6)))
    left = messages(paper)
    assert left
    assert not paper.logs[Partition("dead", 0)]
    assert not any(b"marked" in one or head[1:] in one for one in left)
    # Not as a field either, of a message or of its schema, and no key says which event a record was.
    said = b"".join(left) + str([registry.schemas[one] for one in registry.subjects.get("safe-value", [])]).encode()
    assert not [name for name in LINKS if f'"{name}"'.encode() in said or f" {name} = ".encode() in said]
    assert all(key is None for number in range(2) for key, _ in paper.logs[Partition("safe", number)])


@pytest.mark.parametrize("kind", ["json", "avro"])
def test_a_link_leaves_only_where_somebody_declares_it(registry: FakeRegistry, kind: str) -> None:
    """So that the test above can fail."""
    registry.subjects.clear()
    head = b"\0" + registry.add("raw-value", AVRO).to_bytes(4, "big")
    policy = policy_of(kind, **{"[amount, note]": "[amount, note, traceparent]"})
    paper = run(policy, *(event(kind, n, head) for n in range(6)))
    assert all(b"marked-traceparent" in one for one in messages(paper))
