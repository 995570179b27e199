"""Records whose framing is not read: the partition stops with a sentence before a record is rejected."""

import json
from typing import Any

import pytest

from service.kafka import Partition
from service.policy import load_policy
from tests.service.codec.avro_world import order, record, written
from tests.service.registry.fake_registry import FakeRegistry
from tests.service.worker.paper_kafka import Paper
from tests.service.worker.test_avro_worker import (
    POLICY,
    cycle,
    feed,
    framed,
    letters,
    messages,
    policy_of,
    registry,
    worker_of,
)

__all__ = ["registry"]
SCHEMA = record()
PLAIN = [written(SCHEMA, order(n)) for n in range(6)]
FRAMINGS: dict[str, tuple[str, list[bytes], set[str], str]] = {
    "confluent header": ("avro", PLAIN, {"__value_schema_id"}, "PrefixSchemaIdSerializer"),
    "apicurio header": ("avro", PLAIN, {"apicurio.value.globalId"}, "apicurio.registry.headers.enabled=false"),
    "apicurio id of 8 bytes": (
        "avro",
        [b"\0" + (7).to_bytes(8, "big") + value for value in PLAIN],
        set(),
        "Default4ByteIdHandler",
    ),
    "avro single object": (
        "avro",
        [b"\xc3\x01" + b"finger-p" + value for value in PLAIN],
        set(),
        "single-object encoding",
    ),
    "schema id before json": (
        "json",
        [b"\0\0\0\0\1" + json.dumps(order(n)).encode() for n in range(6)],
        set(),
        "json-schema",
    ),
}


@pytest.mark.parametrize("name", FRAMINGS)
def test_partition_with_a_framing_that_is_not_read_stops_before_a_record_is_rejected(
    registry: FakeRegistry, name: str
) -> None:
    del registry
    topics, values, headers, advice = FRAMINGS[name]
    paper = Paper(1)
    paper.header_names = frozenset(headers)
    worker = worker_of(policy_of(topics), paper)
    feed(paper, *values)
    cycle(worker, 3)
    (reason,) = worker.metrics.status()["stopped"].values()
    assert reason.startswith("raw/0: records ")
    assert advice in reason
    assert not any(str(order(n)["who"]) in reason for n in range(6))
    assert worker.metrics.unready() == "1 partition is stopped"
    worker._finish()
    worker.close()
    assert not letters(paper)
    assert not messages(paper)


def test_odd_records_among_readable_ones_are_rejected_one_by_one(registry: FakeRegistry) -> None:
    number = registry.subjects["raw-value"][0]
    paper = Paper(1)
    worker = worker_of(policy_of(), paper)
    odd = [b"\xc3\x01" + b"finger-p" + value for value in PLAIN[:2]]
    feed(paper, *odd, *(framed(number, SCHEMA, order(n)) for n in range(4)))
    cycle(worker, 3)
    feed(paper, *odd)
    cycle(worker, 3)
    assert not worker.metrics.status()["stopped"]
    worker._finish()
    worker.close()
    assert [reason for _, _, reason in letters(paper)] == ["malformed"] * 4
    assert messages(paper)


def test_records_with_ids_in_headers_are_read_by_a_schema_in_a_file(tmp_path: Any, registry: FakeRegistry) -> None:
    """One of the ways out that the sentence names."""
    del registry
    (tmp_path / "order.avsc").write_text(json.dumps(SCHEMA))
    (tmp_path / "policy.yaml").write_text(POLICY.replace("FORMAT", "{input: {type: avro, schema: order.avsc}}"))
    paper = Paper(1)
    paper.header_names = frozenset({"__value_schema_id"})
    worker = worker_of(load_policy(tmp_path / "policy.yaml"), paper)
    feed(paper, *PLAIN)
    cycle(worker, 3)
    assert not worker.metrics.status()["stopped"]
    worker._finish()
    worker.close()
    assert not letters(paper)
    assert messages(paper)


def test_partition_whose_keys_have_their_ids_in_headers_stops_before_a_record_is_rejected(
    registry: FakeRegistry,
) -> None:
    number = registry.subjects["raw-value"][0]
    registry.add("raw-key", '"string"')
    paper = Paper(1)
    paper.header_names = frozenset({"__key_schema_id"})
    worker = worker_of(policy_of("{input: avro, key: avro}", **{"person: who": "person: {key: true}"}), paper)
    keyed = [(written("string", f"p{n}"), framed(number, SCHEMA, order(n))) for n in range(6)]
    paper.logs[Partition("raw", 0)] += keyed
    cycle(worker, 3)
    (reason,) = worker.metrics.status()["stopped"].values()
    assert "key.schema.id.serializer=" in reason
    worker._finish()
    worker.close()
    assert not letters(paper)
