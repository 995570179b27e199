"""Events in the envelopes of Debezium and CloudEvents, from a topic to what is published."""

import json
from base64 import b64encode
from typing import Any

import fastavro
import pytest

from service.codec import undescribed
from service.kafka import Partition
from service.policy import PolicyError, parse_policy
from service.replay import Replay, replay_file
from tests.service.codec.avro_world import written
from tests.service.codec.protobuf_world import written as protobuf_written
from tests.service.registry.fake_registry import FakeRegistry
from tests.service.worker.paper_kafka import Paper
from tests.service.worker.test_avro_worker import cycle, feed, letters, messages, registry, worker_of

__all__ = ["registry"]
POLICY = """\
name: customers
schema:
  person: id
  quasi:
    age: {type: number, min: 0, max: 99, integer: true}
    born: {type: category, hierarchy: {Any: ["1990-01-01", "1990-01-02"]}}
  public: [balance, changed]
guarantee: {algorithm: castle, k: 2, delay: {tuples: 3}}
stream: {input: raw, output: safe, start: earliest, dead_letters: dead, envelope: ENVELOPE, format: FORMAT}
"""
DAY = 7305  # 1990-01-01
MICROS = 1_600_000_000_123_456
CONNECT: dict[str, dict[str, Any]] = {
    "id": {"type": "int32"},
    "age": {"type": "int32"},
    "born": {"type": "int32", "name": "io.debezium.time.Date"},
    "balance": {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2", "connect.decimal.precision": "10"},
    },
    "changed": {"type": "int64", "name": "io.debezium.time.MicroTimestamp"},
}


def policy_of(envelope: str, formats: str = "json") -> Any:
    return parse_policy(POLICY.replace("ENVELOPE", envelope).replace("FORMAT", formats))


def cents(number: int) -> bytes:
    return number.to_bytes(2, "big", signed=True)


def row(number: int) -> dict[str, Any]:
    """As Debezium writes a row to JSON."""
    balance = b64encode(cents(100 * number + 5)).decode()
    return {"id": number, "age": number, "born": DAY + number % 2, "balance": balance, "changed": MICROS}


def change(op: str, number: int, **more: Any) -> dict[str, Any]:
    before, after = (row(number), None) if op == "d" else (None, row(number))
    if op == "u":
        before = row(number)
    if op in "tm":
        after = None
    return {"before": before, "after": after, "source": {"table": "customers"}, "op": op, "ts_ms": 1, **more}


def schema(*fields: Any) -> dict[str, Any]:
    inside = [{**kind, "field": name, "optional": True} for name, kind in CONNECT.items()]
    named = [{"type": "struct", "fields": inside, "field": name} for name in ("before", "after")]
    return {"type": "struct", "fields": [*named, {"type": "string", "field": "op"}, *fields]}


def connect(given: dict[str, Any]) -> bytes:
    return json.dumps({"schema": schema(), "payload": given}).encode()


def run(policy: Any, *values: bytes | None) -> tuple[Paper, dict[str, Any]]:
    paper = Paper(1)
    worker = worker_of(policy, paper)
    feed(paper, *values)
    cycle(worker, 3)
    worker._finish()
    counts = worker.metrics.status()["counts"]
    worker.close()
    return paper, counts


def rows_of(paper: Any) -> list[dict[str, Any]]:
    return [row for message in messages(paper) for row in json.loads(message)["rows"]]


def boxes_of(paper: Any) -> list[dict[str, Any]]:
    return [json.loads(message)["generalization"] for message in messages(paper)]


def test_connect_json_of_debezium_is_read_with_its_types_and_deletes_are_skipped() -> None:
    values: list[bytes | None] = [connect(change(op, n)) for n, op in enumerate("rcucru")]
    skipped = [connect(change(op, 7)) for op in "dtm"]
    values[2:2] = [*skipped, None, b'{"schema": null, "payload": null}']
    paper, counts = run(policy_of("debezium"), *values)
    assert not letters(paper)
    assert counts["skipped"] == 5
    assert counts["taken"] == 11
    assert counts["released"] == 6
    assert sorted(row["balance"] for row in rows_of(paper)) == [0.05, 1.05, 2.05, 3.05, 4.05, 5.05]
    assert {row["changed"] for row in rows_of(paper)} == {"2020-09-13T12:26:40.123456"}
    assert {box["born"] for box in boxes_of(paper)} <= {"Any", "1990-01-01", "1990-01-02"}


def test_change_events_without_a_schema_are_read_as_they_are() -> None:
    values = [json.dumps({**change("c", n), "after": {**row(n), "born": "1990-01-01"}}).encode() for n in range(4)]
    paper, counts = run(policy_of("debezium"), *values, json.dumps(change("d", 1)).encode())
    assert not letters(paper)
    assert (counts["skipped"], counts["released"]) == (1, 4)
    assert {row["changed"] for row in rows_of(paper)} == {MICROS}


def test_update_without_a_changed_quasi_identifier_counts_as_an_event() -> None:
    values = [connect(change("u", n)) for n in (1, 2, 1, 2, 1, 2)]
    paper, counts = run(policy_of("debezium"), *values)
    assert counts["released"] == len(rows_of(paper)) == 6


@pytest.mark.parametrize(
    ("value", "field", "reason"),
    [
        (b"[1]", "(record)", "wrong_type"),
        (b'{"op": 1}', "(record)", "wrong_type"),
        (b'{"op": "c"', "(record)", "not_json"),
        (b'{"op": "c", "after": null}', "(record)", "missing"),
        (b'{"op": "c", "after": {"id": "1", "age": "old"}}', "age", "wrong_type"),
        (b'{"payload": {"after": {"id": 1', "(record)", "not_json"),
        (b'{"schema": 5, "payload": {"op": "c", "after": {"id": 1}}}', "age", "missing"),
        (b"x" * 300_000, "(record)", "too_large"),
    ],
)
def test_change_events_that_are_none_are_rejected_without_their_values(value: bytes, field: str, reason: str) -> None:
    paper, counts = run(policy_of("debezium"), value)
    assert letters(paper) == [(0, field, reason)]
    assert counts.get("skipped", 0) == 0


def test_values_that_are_not_of_their_connect_type_are_judged_by_the_policy() -> None:
    wrong = change("c", 1)
    wrong["after"] |= {"born": 10**12, "balance": "?"}
    paper, _ = run(policy_of("debezium"), connect(wrong))
    assert [field for _, field, _ in letters(paper)] == ["born"]


def cloud_event(number: int) -> bytes:
    data = {**row(number), "born": "1990-01-01"}
    return json.dumps({"specversion": "1.0", "type": "t", "source": "s", "id": "marked", "data": data}).encode()


def test_cloud_events_are_read_from_their_data() -> None:
    without = b'{"specversion": "1.0", "type": "t", "source": "s", "id": "1"}'
    paper, counts = run(policy_of("cloudevents"), *map(cloud_event, range(4)), without, None)
    assert counts["released"] == 4
    assert letters(paper) == [(4, "(record)", "missing"), (5, "(record)", "tombstone")]
    assert not any(b"marked" in message for message in messages(paper))


VALUE: dict[str, Any] = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "age", "type": "int"},
        {"name": "born", "type": {"type": "int", "connect.version": 1, "connect.name": "io.debezium.time.Date"}},
        {
            "name": "balance",
            "type": [
                "null",
                {
                    "type": "bytes",
                    "connect.parameters": {"scale": "2", "connect.decimal.precision": "10"},
                    "connect.name": "org.apache.kafka.connect.data.Decimal",
                },
            ],
        },
        {
            "name": "changed",
            "type": {"type": "long", "connect.version": 1, "connect.name": "io.debezium.time.MicroTimestamp"},
        },
    ],
}
ENVELOPE: dict[str, Any] = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.customers",
    "fields": [
        {"name": "before", "type": ["null", VALUE], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": {"type": "record", "name": "Source", "fields": [{"name": "db", "type": "string"}]}},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ],
}


def avro_row(given: dict[str, Any] | None) -> Any:
    return given and {**given, "balance": cents(100 * given["id"] + 5)}


def avro_change(op: str, number: int) -> dict[str, Any]:
    made = change(op, number)
    return {**made, "before": avro_row(made["before"]), "after": avro_row(made["after"]), "source": {"db": "shop"}}


def test_avro_of_debezium_is_read_with_its_types_and_deletes_are_skipped(registry: FakeRegistry) -> None:
    registry.subjects.clear()
    number = registry.add("raw-value", ENVELOPE)
    head = b"\0" + number.to_bytes(4, "big")
    values = [head + written(ENVELOPE, avro_change(op, n)) for n, op in enumerate("rcucru")]
    paper, counts = run(
        policy_of("debezium", "{input: avro}"), *values, None, head + written(ENVELOPE, avro_change("d", 9)), b"{}"
    )
    assert letters(paper) == [(8, "(record)", "malformed")]
    assert (counts["skipped"], counts["released"]) == (2, 6)
    assert sorted(str(row["balance"]) for row in rows_of(paper)) == ["0.05", "1.05", "2.05", "3.05", "4.05", "5.05"]
    assert all(row["changed"].startswith("2020-09-13T12:26:40.123456") for row in rows_of(paper))
    assert {box["born"] for box in boxes_of(paper)} <= {"Any", "1990-01-01", "1990-01-02"}


PROTO = """\
syntax = "proto3";
package shop;
message Value { int32 id = 1; int32 age = 2; string born = 3; int32 balance = 4; int64 changed = 5; }
message Envelope { Value before = 1; Value after = 2; string op = 3; }
"""


def test_protobuf_of_debezium_is_read_and_deletes_are_skipped(registry: FakeRegistry) -> None:
    registry.subjects.clear()
    number = registry.add("raw-value", PROTO, "PROTOBUF")
    head = b"\0" + number.to_bytes(4, "big") + b"\2\2"
    rows = [{"id": n, "age": n, "born": "1990-01-01", "balance": n, "changed": n} for n in range(4)]
    made = [{"after": row, "op": "c"} for row in rows] + [{"before": rows[0], "op": "d"}]
    values = [head + protobuf_written(PROTO, one, "shop.Envelope") for one in made]
    policy = policy_of("debezium", "{input: {type: protobuf, message: Envelope}}")
    paper, counts = run(policy, *values)
    assert not letters(paper)
    assert (counts["skipped"], counts["released"]) == (1, 4)


def test_aliases_are_looked_for_inside_of_the_envelope(registry: FakeRegistry) -> None:
    registry.subjects.clear()
    value = {**VALUE, "fields": [{**one, "name": "years"} if one["name"] == "age" else one for one in VALUE["fields"]]}
    envelope = {**ENVELOPE, "fields": [{**ENVELOPE["fields"][0], "type": ["null", value]}, *ENVELOPE["fields"][1:]]}
    head = b"\0" + registry.add("raw-value", envelope).to_bytes(4, "big")
    values = []
    for n in range(4):
        made = avro_change("c", n)
        made["after"]["years"] = made["after"].pop("age")
        values.append(head + written(envelope, made))
    paper, counts = run(policy_of("debezium", "{input: {type: avro, aliases: {age: [years]}}}"), *values)
    assert not letters(paper)
    assert counts["released"] == 4


@pytest.mark.parametrize("ending", ["jsonl", "avro"])
def test_files_of_change_events_are_replayed_as_a_worker_reads_them(tmp_path: Any, ending: str) -> None:
    path, out = tmp_path / f"changes.{ending}", tmp_path / "out.jsonl"
    operations = "rcucd"
    if ending == "avro":
        with path.open("wb") as file:
            parsed = fastavro.parse_schema(json.loads(json.dumps(ENVELOPE)))
            fastavro.writer(file, parsed, [avro_change(op, n) for n, op in enumerate(operations)])
    else:
        path.write_bytes(b"".join(connect(change(op, n)) + b"\n" for n, op in enumerate(operations)))
    replay = Replay(policy_of("debezium"))
    replay_file(replay, path, out)
    report = replay.report(0.0)
    assert (report.events, report.rejected.rows) == (4, 0)


def test_envelope_is_part_of_what_a_policy_is() -> None:
    prints = {policy_of(each).fingerprint() for each in ("none", "debezium", "cloudevents")}
    assert len(prints) == 3
    with pytest.raises(PolicyError, match=r"stream\.envelope"):
        policy_of("soap")


@pytest.mark.parametrize("kind", ["json", "connect", "cloudevents", "avro"])
def test_fields_of_a_topic_that_nobody_described_are_those_inside(registry: FakeRegistry, kind: str) -> None:
    registry.subjects.clear()
    operations = "rcud"
    if kind == "avro":
        head = b"\0" + registry.add("raw-value", ENVELOPE).to_bytes(4, "big")
        values = [head + written(ENVELOPE, avro_change(op, n)) for n, op in enumerate(operations)]
    elif kind == "cloudevents":
        values = [*map(cloud_event, range(3)), b"{}"]
    else:
        write = connect if kind == "connect" else lambda given: json.dumps(given).encode()
        values = [write(change(op, n)) for n, op in enumerate(operations)]
    known = undescribed("raw", registry.client())
    table, taken = known.columns.read(values)
    assert known.envelope == ("cloudevents" if kind == "cloudevents" else "debezium")
    assert table.column_names == ["id", "age", "born", "balance", "changed"]
    assert taken.tolist() == [True, True, True, False]
    assert table.column("id").to_pylist() == [0, 1, 2]
    if kind in {"connect", "avro"}:
        assert str(table.column("born").to_pylist()[0]) == "1990-01-01"


def test_person_in_a_connect_key_of_json_is_the_same_in_created_updated_and_rejected_rows() -> None:
    text = POLICY.replace("person: id", "person: {key: payload.id}").replace("FORMAT", "{key: json}")
    paper = Paper(1)
    worker = worker_of(parse_policy(text.replace("ENVELOPE", "debezium")), paper)
    keys = [json.dumps({"schema": {"type": "struct"}, "payload": {"id": n % 2}}).encode() for n in range(7)]
    values: list[bytes | None] = [connect(change("cu"[n % 2], n)) for n in range(4)]
    values += [connect(change("d", 0)), None, b'{"op": "c", "after": null}']
    paper.logs[Partition("raw", 0)] += list(zip(keys, values, strict=True))
    cycle(worker, 3)
    worker._finish()
    counts = worker.metrics.status()["counts"]
    worker.close()
    assert letters(paper) == [(6, "(record)", "missing")]
    assert (counts["skipped"], counts["released"]) == (2, 4)
