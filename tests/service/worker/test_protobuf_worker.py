"""A worker on topics of Protobuf, through a registry or with schemas in files."""

import json
from pathlib import Path
from typing import Any

import pytest

from service.policy import PolicyError, load_policy
from service.registry import Registry, SchemaConflictError
from service.worker.settings import WorkerSettings
from service.worker.stream import stream_of
from service.worker.warmup import warm_up
from tests.service.codec.avro_world import read
from tests.service.codec.protobuf_world import classes, compiled, order, order_text, written
from tests.service.registry.fake_registry import FakeRegistry
from tests.service.worker.paper_kafka import Paper
from tests.service.worker.test_avro_worker import (
    POLICY,
    cycle,
    feed,
    letters,
    messages,
    policy_of,
    registry,
    run,
    worker_of,
)

__all__ = ["registry"]
FIRST = order_text()
SECOND = order_text("string colour = 9; string traceparent = 10;")


def framed(number: int, text: str, value: dict[str, Any]) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + b"\0" + written(text, value)


@pytest.fixture
def known(registry: FakeRegistry) -> tuple[FakeRegistry, int]:
    registry.subjects.clear()
    return registry, registry.add("raw-value", FIRST, "PROTOBUF")


def clusters(paper: Any, known: FakeRegistry) -> list[Any]:
    """What left, as the schema that was registered for it says."""
    (number,) = known.subjects["safe-value"]
    assert known.schemas[number]["schemaType"] == "PROTOBUF"
    prefix = b"\0" + number.to_bytes(4, "big") + b"\0"
    assert all(message.startswith(prefix) for message in messages(paper))
    read = classes(known.schemas[number]["schema"])["portcullis.safe.Cluster"].FromString
    return [read(message[len(prefix) :]) for message in messages(paper)]


def test_records_of_two_schemas_leave_as_one_and_nothing_else_leaves(known: tuple[FakeRegistry, int]) -> None:
    fake, first = known
    paper = Paper(1)
    worker = worker_of(policy_of("protobuf"), paper)
    feed(paper, *(framed(first, FIRST, order(n)) for n in range(3)))
    second = fake.add("raw-value", SECOND, "PROTOBUF")
    extra = {"colour": "marked-red", "traceparent": "00-marked-trace"}
    feed(paper, *(framed(second, SECOND, order(n, **extra)) for n in range(3, 6)))
    good = framed(first, FIRST, order(8))
    feed(paper, b"{}", framed(99, FIRST, order(7)), good[:-1], good[:5] + b"\x02\x02" + good[6:])
    cycle(worker, 5)  # the second schema is newer than the worker
    worker._finish()
    worker.close()
    found = clusters(paper, fake)
    rows = [row for cluster in found for row in cluster.rows]
    assert sorted(row.amount - 2**40 for row in rows) == [*range(6)]
    assert {row.note for row in rows} == {f"n{n}" for n in range(6)}
    assert all(len(cluster.rows) >= 2 and cluster.generalization.age.high < 6 for cluster in found)
    assert [reason for _, _, reason in letters(paper)] == ["malformed", "unknown_schema", "malformed", "other_schema"]
    # Neither fields that nobody declared, nor the ids of the input's schemas: all have the id of the output's.
    assert not any(b"marked" in message for message in messages(paper))
    assert second not in fake.subjects["safe-value"]


def test_while_the_registry_is_away_nothing_is_lost(known: tuple[FakeRegistry, int]) -> None:
    fake = known[0]
    paper = Paper(1)
    worker = worker_of(policy_of("protobuf"), paper)
    second = fake.add("raw-value", SECOND, "PROTOBUF")
    fake.mood = "500"
    feed(paper, *(framed(second, SECOND, order(n)) for n in range(4)))
    cycle(worker, 2)
    assert "asking the schema registry" in (worker.metrics.unready() or "")
    assert not letters(paper)
    fake.mood = ""
    cycle(worker, 3)
    worker._finish()
    worker.close()
    assert sum(len(cluster.rows) for cluster in clusters(paper, fake)) == 4


def test_it_mixes_with_other_formats(known: tuple[FakeRegistry, int]) -> None:
    fake, first = known
    paper = run(policy_of("{input: protobuf}"), *(framed(first, FIRST, order(n)) for n in range(4)))
    assert all(message.startswith(b'{"cluster"') for message in messages(paper))
    run(policy_of("{input: protobuf, output: avro}"), *(framed(first, FIRST, order(n)) for n in range(4)))
    assert fake.schemas[fake.subjects["safe-value"][0]]["schemaType"] == "AVRO"
    fake.subjects.pop("safe-value")
    values = [b'{"who": "a%d", "age": %d, "item": "x", "amount": [1], "note": null}' % (n, n) for n in range(4)]
    paper = run(policy_of("{output: protobuf}"), *values)
    assert {row.amount for cluster in clusters(paper, fake) for row in cluster.rows} == {"[1]"}


@pytest.mark.parametrize("as_set", [False, True])
def test_schemas_in_files_need_no_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_set: bool) -> None:
    monkeypatch.delenv("PORTCULLIS_REGISTRY_URL", raising=False)
    (tmp_path / "in").write_bytes(compiled(FIRST).SerializeToString() if as_set else FIRST.encode())
    (tmp_path / "out.proto").write_text('syntax = "proto3"; message Nothing {}')
    sides = "{input: {type: protobuf, schema: in, message: Order}, output: {type: protobuf, schema: out.proto}}"
    (tmp_path / "policy.yaml").write_text(POLICY.replace("FORMAT", sides))
    with pytest.raises(SchemaConflictError, match="must hold ") as told:
        worker_of(load_policy(tmp_path / "policy.yaml"), Paper(1))
    text = str(told.value).partition("must hold ")[2]
    (tmp_path / "out.proto").write_text("// ours\n" + text)
    paper = run(load_policy(tmp_path / "policy.yaml"), *(written(FIRST, order(n)) for n in range(4)))
    read = classes(text)["portcullis.safe.Cluster"].FromString
    assert sorted(row.amount - 2**40 for m in messages(paper) for row in read(m).rows) == [*range(4)]


def test_a_schema_that_must_be_there_is_not_registered(known: tuple[FakeRegistry, int]) -> None:
    policy = policy_of("{input: protobuf, output: {type: protobuf, subject: theirs, register: false}}")
    with pytest.raises(SchemaConflictError, match="subject 'theirs' does not have the schema") as told:
        worker_of(policy, Paper(1))
    assert "theirs" not in known[0].subjects
    known[0].add("theirs", str(told.value).partition("leaves: ")[2], "PROTOBUF")
    worker_of(policy, Paper(1)).close()


@pytest.mark.parametrize("side", ["{type: protobuf, record: Order}", "{type: avro, message: Order}"])
def test_a_record_is_not_a_message(side: str) -> None:
    with pytest.raises(PolicyError, match="name the right one"):
        policy_of(f"{{input: {side}}}")


def test_a_process_warms_up_for_protobuf_without_asking_anybody(registry: FakeRegistry) -> None:
    warm_up(stream_of(policy_of("protobuf"), WorkerSettings()))
    assert not registry.asked


@pytest.mark.parametrize(
    "topics", ["protobuf", "{input: protobuf, output: avro}", "{input: protobuf, output: json-schema}"]
)
def test_a_field_that_leaves_as_another_type_is_named_before_anything_runs(
    known: tuple[FakeRegistry, int], topics: str
) -> None:
    fake, _ = known
    worker_of(policy_of(topics), Paper(1)).close()
    fewer = policy_of(topics, **{"[amount, note]": "[note]"})
    worker_of(fewer, Paper(1)).close()
    assert len(fake.subjects["safe-value"]) == 2
    # A whole number becomes any number: who reads the one cannot read the other.
    other = policy_of(topics, **{", integer: true": ""})
    with pytest.raises(SchemaConflictError, match=r"subject 'safe-value': age is \w+.* and was \w+.*another subject"):
        worker_of(other, Paper(1))
    assert len(fake.subjects["safe-value"]) == 2
    # What the subject had before may come back.
    worker_of(policy_of(topics), Paper(1)).close()
    must = policy_of("{input: protobuf, output: {type: protobuf, register: false}}", **{", integer: true": ""})
    if topics == "protobuf":
        with pytest.raises(SchemaConflictError, match="age is Interval and was WholeInterval; amount is new: syntax"):
            worker_of(must, Paper(1))
    tuples = policy_of(topics, **{"start: earliest": "start: earliest, emit: tuples"})
    with pytest.raises(SchemaConflictError, match="the message is Tuple and was Cluster"):
        worker_of(tuples, Paper(1))


def test_what_a_registry_does_not_take_is_told_with_what_is_different(
    known: tuple[FakeRegistry, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker_of(policy_of("protobuf"), Paper(1)).close()

    def strict(*_: Any) -> int:
        raise SchemaConflictError("the registry does not take the schema: NOT BACKWARD")

    monkeypatch.setattr(Registry, "register", strict)
    with pytest.raises(SchemaConflictError, match=r"NOT BACKWARD \(amount is gone\)"):
        worker_of(policy_of("protobuf", **{"[amount, note]": "[note]"}), Paper(1))
    known[0].subjects["safe-value"] = [known[0].add("theirs", {"type": "object"}, "JSON")]
    with pytest.raises(SchemaConflictError, match="it is PROTOBUF, and was JSON"):
        worker_of(policy_of("protobuf"), Paper(1))


MOMENTS = [(1_600_000_000, 123_456_789), (-62_135_596_800, 1), (253_402_300_799, 999_999_999), (0, 0), (1, 5_000)]
TEXTS = [
    "2020-09-13T12:26:40.123456789Z",
    "0001-01-01T00:00:00.000000001Z",
    "9999-12-31T23:59:59.999999999Z",
    "1970-01-01T00:00:00Z",
    "1970-01-01T00:00:01.000005Z",
]


@pytest.mark.parametrize("target", ["protobuf", "json", "avro"])
def test_public_timestamps_keep_their_nanoseconds(known: tuple[FakeRegistry, int], target: str) -> None:
    """Of Avro they keep microseconds, as it has nothing longer for all years."""
    fake, _ = known
    text = order_text("google.protobuf.Timestamp at = 7;")
    number = fake.add("raw-value", text, "PROTOBUF")
    policy = policy_of(f"{{input: protobuf, output: {target}}}", **{"[amount, note]": "[amount, at]"})
    values = [order(n, at={"seconds": seconds, "nanos": nanos}) for n, (seconds, nanos) in enumerate(MOMENTS)]
    paper = run(policy, *(framed(number, text, value) for value in values), framed(number, text, order(5)))
    assert not letters(paper)
    if target == "protobuf":
        rows = [row for cluster in clusters(paper, fake) for row in cluster.rows]
        found = {row.amount - 2**40: (row.at.seconds, row.at.nanos) if row.HasField("at") else None for row in rows}
        assert found == {**dict(enumerate(MOMENTS)), 5: None}
    elif target == "json":
        rows = [row for message in messages(paper) for row in json.loads(message)["rows"]]
        assert {row["amount"] - 2**40: row["at"] for row in rows} == {**dict(enumerate(TEXTS)), 5: None}
    else:
        (schema,) = fake.subjects["safe-value"]
        parts = [read(fake.schemas[schema]["schema"], message[5:])["rows"] for message in messages(paper)]
        micros = {row["amount"] - 2**40: row["at"] and row["at"].microsecond for rows in parts for row in rows}
        assert micros == {0: 123_456, 1: 0, 2: 999_999, 3: 0, 4: 5, 5: None}
