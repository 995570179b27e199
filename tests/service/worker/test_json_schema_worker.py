"""A worker on topics of JSON with a JSON Schema: what is in front is checked, then it is read as any other."""

import json
from typing import Any

import jsonschema
import pytest

from service.kafka import Partition
from tests.service.codec.avro_world import order
from tests.service.registry.fake_registry import FakeRegistry
from tests.service.worker.paper_kafka import Paper
from tests.service.worker.test_avro_worker import cycle, feed, letters, messages, policy_of, registry, run, worker_of

__all__ = ["registry"]
OPEN = {"type": "object"}


def framed(number: int, value: Any) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + json.dumps(value).encode()


def read(paper: Any, known: FakeRegistry) -> list[Any]:
    """What left, held against its schema by somebody else."""
    (number,) = known.subjects["safe-value"]
    assert known.schemas[number]["schemaType"] == "JSON"
    schema, found = json.loads(known.schemas[number]["schema"]), []
    for message in messages(paper):
        assert message[:5] == b"\0" + number.to_bytes(4, "big")
        found.append(json.loads(message[5:]))
        jsonschema.validate(found[-1], schema)
    return found


def test_documents_with_a_known_id_leave_with_the_id_of_their_schema(registry: FakeRegistry) -> None:
    known = registry.add("raw-json", OPEN, "JSON")
    values = [framed(known, order(n)) for n in range(6)]
    bad = [None, b"{}", b"\0\0\0", framed(99, order(1)), framed(1, order(1)), framed(known, order(7))[:-1]]
    paper = run(policy_of("json-schema"), *values, *bad)
    rows = [row for cluster in read(paper, registry) for row in cluster["rows"]]
    assert sorted(row["amount"] - 2**40 for row in rows) == [*range(6)]
    reasons = ["tombstone", "malformed", "malformed", "unknown_schema", "other_schema", "not_json"]
    assert letters(paper) == [(6 + n, "(record)", reason) for n, reason in enumerate(reasons)]


@pytest.mark.parametrize("topics", ["{output: json-schema}", "{input: json-schema, output: avro}"])
def test_it_mixes_with_other_formats(registry: FakeRegistry, topics: str) -> None:
    known = registry.add("raw-json", OPEN, "JSON")
    written = [order(n) if "input" not in topics else framed(known, order(n)) for n in range(4)]
    paper = run(
        policy_of(topics), *(each if isinstance(each, bytes) else json.dumps(each).encode() for each in written)
    )
    if "avro" in topics:
        assert registry.schemas[registry.subjects["safe-value"][0]]["schemaType"] == "AVRO"
        assert messages(paper)
    else:
        assert sum(len(cluster["rows"]) for cluster in read(paper, registry)) == 4


def test_tuples_and_means_are_as_their_schema_says(registry: FakeRegistry) -> None:
    tuples = policy_of("{output: json-schema}", **{"start: earliest": "start: earliest, emit: tuples"})
    found = read(run(tuples, *(json.dumps(order(n)).encode() for n in range(4))), registry)
    assert all(len(one["age"]) == 2 for one in found)


def test_documents_wait_for_a_registry_that_is_away(registry: FakeRegistry) -> None:
    known = registry.add("raw-json", OPEN, "JSON")
    paper = Paper(1)
    worker = worker_of(policy_of("json-schema"), paper)
    registry.mood = "500"
    feed(paper, *(framed(known, order(n)) for n in range(4)))
    cycle(worker, 2)
    assert "asking the schema registry" in (worker.metrics.unready() or "")
    registry.mood = ""
    cycle(worker, 3)
    worker._finish()
    worker.close()
    assert sum(len(cluster["rows"]) for cluster in read(paper, registry)) == 4
    assert not paper.logs[Partition("dead", 0)]
