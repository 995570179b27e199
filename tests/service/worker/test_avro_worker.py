"""A worker on topics with a schema: from Avro to Avro, through a registry that comes, goes and changes."""

import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from service.exit_status import REFUSED, WRONG_USE, status_of
from service.kafka import Partition
from service.policy import PolicyError, load_policy, parse_policy
from service.registry import RegistryDeniedError, SchemaConflictError
from service.worker.loop import Worker
from service.worker.metrics import Metrics
from service.worker.settings import WorkerSettings
from service.worker.stream import stream_of
from service.worker.warmup import warm_up
from tests.service.codec.avro_world import order, read, record, written
from tests.service.registry.fake_registry import FakeRegistry
from tests.service.worker.paper_kafka import Paper

POLICY = """\
name: orders
schema:
  person: who
  quasi: {age: {type: number, min: 0, max: 99, integer: true}}
  sensitive: {item: {type: category, hierarchy: {Any: [x, y]}}}
  public: [amount, note]
guarantee: {algorithm: castle, k: 2, delay: {tuples: 3}}
stream: {input: raw, output: safe, start: earliest, dead_letters: dead, format: FORMAT}
"""
FIRST = record()
SECOND = record({"name": "colour", "type": ["null", "string"], "default": None})


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRegistry]:
    with FakeRegistry() as fake:
        monkeypatch.setenv("PORTCULLIS_REGISTRY_URL", fake.url)
        monkeypatch.setenv("PORTCULLIS_REGISTRY_TIMEOUT", "0.3")
        fake.add("raw-value", FIRST)
        yield fake


def policy_of(topics: str = "avro", **changes: str) -> Any:
    text = POLICY.replace("FORMAT", topics)
    for old, new in changes.items():
        text = text.replace(old, new)
    return parse_policy(text)


def worker_of(policy: Any, paper: Any, on_stop: str = "flush") -> Worker:
    stream = stream_of(policy, options := WorkerSettings(on_stop=on_stop))
    worker = Worker(stream, paper, options, Metrics(stream), clock=lambda: 1000.0)
    assert worker.open(threading.Event())
    worker._owned.join()
    paper.assign(0)
    return worker


def cycle(worker: Any, times: int = 1) -> None:
    for _ in range(times):
        once = threading.Event()
        once.set()
        worker._stop = once
        worker._cycle(once)


def feed(paper: Any, *values: bytes | None) -> None:
    paper.logs[Partition("raw", 0)] += [(None, value) for value in values]


def framed(number: int, schema: Any, value: Any) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + written(schema, value)


def messages(paper: Any) -> list[bytes]:
    return [value for number in range(2) for _, value in paper.logs[Partition("safe", number)]]


def clusters(paper: Any, registry: FakeRegistry) -> list[Any]:
    (number,) = registry.subjects["safe-value"]
    return clusters_of_schema(paper, registry, number)


def clusters_of_schema(paper: Any, registry: FakeRegistry, number: int) -> list[Any]:
    assert all(message[:5] == b"\0" + number.to_bytes(4, "big") for message in messages(paper))
    return [read(registry.schemas[number]["schema"], message[5:]) for message in messages(paper)]


def letters(paper: Any) -> list[tuple[int, str, str]]:
    found = [json.loads(value) for _, value in paper.logs[Partition("dead", 0)]]
    return [(one["offset"], one["field"], one["reason"]) for one in found]


def test_records_of_two_schemas_leave_as_one(registry: FakeRegistry) -> None:
    paper = Paper(1)
    worker = worker_of(policy_of(), paper)
    feed(paper, *(framed(1, FIRST, order(n)) for n in range(3)))
    second = registry.add("raw-value", SECOND)
    feed(paper, *(framed(second, SECOND, order(n, colour="red")) for n in range(3, 6)))
    feed(
        paper, b"{}", framed(9, FIRST, order(7)), framed(1, FIRST, order(8))[:-1], framed(1, FIRST, order(9, age=None))
    )
    cycle(worker, 5)  # the second schema is newer than the worker
    worker._finish()
    worker.close()
    rows = [row for cluster in clusters(paper, registry) for row in cluster["rows"]]
    assert sorted(row["amount"] - 2**40 for row in rows) == [*range(6)]
    assert {row["note"] for row in rows} == {f"n{n}" for n in range(6)}
    assert all(len(cluster["rows"]) >= 2 for cluster in clusters(paper, registry))
    assert letters(paper) == [
        (6, "(record)", "malformed"),
        (7, "(record)", "unknown_schema"),
        (8, "(record)", "malformed"),
        (9, "age", "missing"),
    ]


@pytest.mark.parametrize("mood", ["500", "html", "slow"])
def test_while_the_registry_is_away_nothing_is_lost_and_everybody_is_told(
    registry: FakeRegistry, mood: str, caplog: pytest.LogCaptureFixture
) -> None:
    paper = Paper(1)
    worker = worker_of(policy_of(), paper)
    feed(paper, *(framed(1, FIRST, order(n)) for n in range(2)))
    cycle(worker, 2)
    second = registry.add("raw-value", SECOND)
    registry.mood = mood
    feed(paper, *(framed(second, SECOND, order(n, colour="marked-red")) for n in range(2, 6)))
    cycle(worker, 2)
    assert "asking the schema registry does not work" in (worker.metrics.unready() or "")
    assert worker.metrics.status()["trouble"]["asking the schema registry"]["code"].startswith("REGISTRY_")
    assert not letters(paper)
    registry.mood = ""
    cycle(worker, 3)
    assert not worker.metrics.status()["trouble"]
    worker._finish()
    worker.close()
    rows = [row for cluster in clusters(paper, registry) for row in cluster["rows"]]
    assert sorted(row["amount"] - 2**40 for row in rows) == [*range(6)]
    assert "marked-red" not in caplog.text


def test_a_worker_waits_for_the_registry_and_the_subject(
    registry: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.worker.connections._FIRST_PAUSE", 0.01)
    registry.mood, subject = "500", registry.subjects.pop("raw-value")
    stream = stream_of(policy_of(), options := WorkerSettings())
    worker = Worker(stream, Paper(1), options, Metrics(stream))
    said = []

    def waits(reason: str) -> None:
        said.append(reason)
        if "answers 500" in reason:
            registry.mood = ""
        elif "no subject 'raw-value' yet" in reason:
            registry.subjects["raw-value"] = subject

    monkeypatch.setattr(worker.metrics, "waits", waits)
    assert worker.open(threading.Event())
    worker.close()
    assert len(said) >= 2


def test_a_slow_registry_is_not_taken_for_a_slow_broker(
    registry: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.worker.connections._FIRST_PAUSE", 0.01)
    monkeypatch.setattr("service.worker.connections._SLOW_SECONDS", 0.1)
    registry.mood = "slow"
    stream = stream_of(policy_of(), options := WorkerSettings())
    worker = Worker(stream, Paper(1), options, Metrics(stream))
    told, said = f"the schema registry at {registry.client().name} does not answer", list[str]()

    def waits(reason: str) -> None:
        said.append(reason)
        if told in said or len(said) > 20:
            registry.mood = ""

    monkeypatch.setattr(worker.metrics, "waits", waits)
    assert worker.open(threading.Event())
    worker.close()
    assert told in said


def test_a_registry_that_refuses_us_ends_the_worker(registry: FakeRegistry) -> None:
    registry.needs = "Bearer another"
    with pytest.raises(RegistryDeniedError) as caught:
        worker_of(policy_of(), Paper(1))
    assert status_of(caught.value) == REFUSED


def test_a_schema_that_must_be_there_is_not_registered(registry: FakeRegistry) -> None:
    policy = policy_of("{input: avro, output: {type: avro, subject: theirs, register: false}}")
    with pytest.raises(
        SchemaConflictError, match=r"subject 'theirs' does not have the schema of what leaves: \{"
    ) as told:
        worker_of(policy, Paper(1))
    assert status_of(told.value) == WRONG_USE
    assert "theirs" not in registry.subjects
    registry.add("theirs", str(told.value).partition("leaves: ")[2])
    worker_of(policy, Paper(1)).close()


def run(policy: Any, *values: bytes | None) -> Any:
    paper = Paper(1)
    worker = worker_of(policy, paper)
    feed(paper, *values)
    cycle(worker, 3)
    worker._finish()
    worker.close()
    return paper


def test_avro_comes_in_and_json_leaves(registry: FakeRegistry) -> None:
    del registry
    paper = run(policy_of("{input: avro}"), *(framed(1, FIRST, order(n)) for n in range(4)))
    rows = [row for message in messages(paper) for row in json.loads(message)["rows"]]
    assert sorted(row["amount"] - 2**40 for row in rows) == [*range(4)]


def test_json_comes_in_and_avro_leaves(registry: FakeRegistry) -> None:
    values = [json.dumps(order(n, amount={"euro": n})).encode() for n in range(4)]
    paper = run(policy_of("{output: avro}"), *values)
    rows = [row for cluster in clusters(paper, registry) for row in cluster["rows"]]
    assert sorted(row["amount"] for row in rows) == [f'{{"euro": {n}}}' for n in range(4)]


def test_schemas_in_files_need_no_registry(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PORTCULLIS_REGISTRY_URL", raising=False)
    (tmp_path / "in.avsc").write_text(json.dumps(FIRST))
    (tmp_path / "out.avsc").write_text('"string"')
    sides = "{input: {type: avro, schema: in.avsc}, output: {type: avro, schema: out.avsc}}"
    (tmp_path / "policy.yaml").write_text(POLICY.replace("FORMAT", sides))
    with pytest.raises(SchemaConflictError, match="must hold ") as told:
        worker_of(load_policy(tmp_path / "policy.yaml"), Paper(1))
    text = str(told.value).partition("must hold ")[2]
    (tmp_path / "out.avsc").write_text(text)
    paper = run(load_policy(tmp_path / "policy.yaml"), *(written(FIRST, order(n)) for n in range(4)))
    rows = [row for message in messages(paper) for row in read(text, message)["rows"]]
    assert sorted(row["amount"] - 2**40 for row in rows) == [*range(4)]


@pytest.mark.parametrize(
    ("topics", "complaint"),
    [
        ("cobol", r"stream\.format.*must be one of json, avro"),
        ("{input: {type: json, subject: x}}", "json has no schema"),
        ("{input: {type: avro, subject: x, schema: y}}", "a schema comes from a file or from a subject"),
        (
            "{input: {type: avro, schema: nowhere.avsc}}",
            r"stream\.format\.input\.schema: no such file beside the policy",
        ),
        ("{inputs: avro}", "inputs"),
        ("{input: {type: json-schema, record: Order}}", "leave schema, record and message out"),
    ],
)
def test_formats_that_cannot_be_meant_are_refused(topics: str, complaint: str) -> None:
    with pytest.raises(PolicyError, match=complaint):
        policy_of(topics)


def test_the_fingerprint_tells_formats_apart_and_the_default_stays() -> None:
    topics = [
        "json",
        "{input: json}",
        "avro",
        "{input: avro}",
        "{output: avro}",
        "{input: {type: avro, record: A}, output: avro}",
    ]
    prints = [policy_of(each).fingerprint() for each in topics]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 5
    assert policy_of("{input: avro, output: {type: avro}}").fingerprint() == prints[2]


def test_a_process_warms_up_for_avro_without_asking_anybody(registry: FakeRegistry) -> None:
    warm_up(stream_of(policy_of(), WorkerSettings()))
    assert not registry.asked


PROMOTIONS = [("int", "long"), ("int", "double"), ("long", "float"), ("long", "double"), ("float", "double")]


def typed(kind: str) -> Any:
    """The schema of an order with an amount of this type, which no subject has yet."""
    return {**record(amount=kind), "doc": f"amounts are {kind}"}


@pytest.mark.parametrize(("before", "after"), PROMOTIONS)
def test_worker_goes_on_when_a_public_field_is_promoted(registry: FakeRegistry, before: str, after: str) -> None:
    """Each promotion is one that readers of the new output schema make too."""
    number = registry.add("raw-value", typed(before))
    old = [framed(number, typed(before), order(n, amount=n)) for n in range(4)]
    run(policy_of(), *old)
    number = registry.add("raw-value", typed(after))
    new = [framed(number, typed(after), order(n, amount=n)) for n in range(4)]
    for values in (old, new):
        paper = run(policy_of(), *values)
        _, newest = registry.subjects["safe-value"]
        rows = [row for cluster in clusters_of_schema(paper, registry, newest) for row in cluster["rows"]]
        assert sorted(row["amount"] for row in rows) == [*range(4)]


@pytest.mark.parametrize(("before", "after"), [*((wide, narrow) for narrow, wide in PROMOTIONS), ("long", "string")])
def test_worker_stops_when_readers_of_the_output_cannot_follow(registry: FakeRegistry, before: str, after: str) -> None:
    registry.add("raw-value", typed(before))
    worker_of(policy_of(), Paper(1)).close()
    registry.add("raw-value", typed(after))
    with pytest.raises(SchemaConflictError, match=f"amount is {after} and was {before}"):
        worker_of(policy_of(), Paper(1))


def test_worker_reports_a_partition_that_rejects_and_stays_ready(
    registry: FakeRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    number = registry.add("raw-value", FIRST)
    paper = Paper(1)
    worker = worker_of(policy_of(), paper)
    good, bad = framed(number, FIRST, order(1)), framed(number, FIRST, order(1, age=1234))
    try:
        feed(paper, *[good] * 100)
        cycle(worker, 2)
        assert worker.metrics.unready() is None
        assert worker.metrics.notices() == []
        with caplog.at_level(logging.WARNING):
            feed(paper, *[bad] * 120)
            cycle(worker, 2)
        (notice,) = worker.metrics.notices()
        rejected = "120 of the last 120 records are rejected, most of them for age out_of_domain"
        assert notice == f"partition 0: {rejected}, schema id {number}"
        assert worker.metrics.unready() is None
        told = worker.metrics.status()["partitions"]["0"]["rejecting"]
        assert (told["field"], told["schema_id"], told["rejected"]) == ("age", number, 120)
        assert worker.metrics.registry.get_sample_value("portcullis_rejecting_partitions", {"stream": "orders"}) == 1
        said = [one.message for one in caplog.records if "rejects most records" in one.message]
        assert len(said) == 1, "once a minute"
        assert "1234" not in caplog.text
        feed(paper, *[good] * 300)
        cycle(worker, 2)
        assert worker.metrics.notices() == []
    finally:
        worker.close()
