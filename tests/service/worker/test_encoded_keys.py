"""A worker whose persons are in record keys that a schema registry has schemas for."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from microdata import SchemaError
from service.exit_status import WRONG_USE, status_of
from service.kafka import Partition
from service.kafka.partitioners import partitions_of
from service.policy import load_policy, parse_policy
from service.worker import command
from service.worker.loop import Worker
from service.worker.metrics import Metrics
from service.worker.settings import WorkerSettings
from service.worker.stream import stream_of
from service.worker.warmup import warm_up
from tests.service.codec.avro_world import written
from tests.service.registry.fake_registry import FakeRegistry
from tests.service.worker.paper_kafka import Paper

POLICY = """
name: keyed
schema:
  person: {key: true}
  quasi: {age: {type: number, min: 0, max: 99, integer: true}}
  public: [who]
guarantee: {algorithm: castle, k: 4, delay: {tuples: 16}}
stream: {input: raw, output: safe, start: earliest, dead_letters: dead, format: {key: avro}}
"""
COHORTS = "{algorithm: cohorts, k: 2, founders: 4, delay: {tuples: 5}, company: standing}"
VERSIONS: tuple[Any, ...] = ("string", {"type": "string", "doc": "the second version"})
RAW, DEAD, SAFE = (Partition(name, 0) for name in ("raw", "dead", "safe"))


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRegistry]:
    with FakeRegistry() as fake:
        monkeypatch.setenv("PORTCULLIS_REGISTRY_URL", fake.url)
        monkeypatch.setenv("PORTCULLIS_REGISTRY_TIMEOUT", "0.3")
        fake.add("raw-key", json.dumps(VERSIONS[0]))
        yield fake


def record(who: int, version: int, age: int | None = None) -> tuple[bytes, bytes]:
    """An event about a person, whose key is written with this version of its schema."""
    key = b"\0" + version.to_bytes(4, "big") + written(VERSIONS[version - 1], f"p{who}")
    return key, json.dumps({"age": who % 100 if age is None else age, "who": f"p{who}"}).encode()


def worker_of(paper: Any, text: str = POLICY, on_stop: str = "flush", **settings: Any) -> Worker:
    options = WorkerSettings(on_stop=on_stop, **settings)
    stream = stream_of(parse_policy(text), options)
    worker = Worker(stream, paper, options, Metrics(stream), clock=lambda: 1000.0)
    assert worker.open(threading.Event())
    worker._owned.join()
    paper.assign(0)
    return worker


def cycle(worker: Any, times: int = 5) -> None:
    for _ in range(times):
        once = threading.Event()
        once.set()
        worker._stop = once
        worker._cycle(once)


def clusters(paper: Any) -> list[list[str]]:
    """Who is in each published cluster."""
    places = [place for place in paper.logs if place.topic == "safe"]
    published = [json.loads(value) for place in places for _, value in paper.logs[place]]
    return [[row["who"] for row in cluster["rows"]] for cluster in published]


def test_a_new_version_of_the_keys_schema_makes_nobody_count_twice(registry: FakeRegistry) -> None:
    """Two persons with four keys, twice: as many keys as k, and half as many persons."""
    paper = Paper(1)
    worker = worker_of(paper)
    registry.add("raw-key", json.dumps(VERSIONS[1]))
    for first in range(0, 40, 2):
        paper.logs[RAW] += [record(who, version) for who in (first, first + 1) for version in (1, 2)]
    cycle(worker)
    worker._finish()
    worker.close()
    found = clusters(paper)
    assert sum(map(len, found)) >= 60
    assert all(len({*cluster}) >= 4 for cluster in found)
    assert not paper.logs[DEAD]


def test_what_is_pending_names_the_same_persons_to_the_next_owner(registry: FakeRegistry) -> None:
    paper = Paper(1)
    first = worker_of(paper, on_stop="keep")
    registry.add("raw-key", json.dumps(VERSIONS[1]))
    paper.logs[RAW] += [record(who, 1) for who in range(3)]
    cycle(first)
    first._finish()
    first.close()
    assert not clusters(paper)
    second = worker_of(paper, key_file=None)
    paper.logs[RAW] += [record(who, 2) for who in range(3)] + [record(3, 2)] * 16
    cycle(second)
    second._finish()
    second.close()
    found = clusters(paper)
    assert found
    assert all({*cluster} == {"p0", "p1", "p2", "p3"} for cluster in found)


def test_records_whose_key_cannot_be_decoded_are_rejected(registry: FakeRegistry) -> None:
    paper = Paper(1)
    worker = worker_of(paper)
    (_, value), number = record(1, 1), registry.add("other-key", json.dumps({"type": "long"}))
    keys = [None, b"p1", b"\0\0\0\0\x09\2a", b"\0\0\0\0\1\2", b"\0" + number.to_bytes(4, "big") + b"\2"]
    paper.logs[RAW] += [(key, value) for key in keys]
    cycle(worker)
    worker._finish()
    worker.close()
    letters = [json.loads(value) for _, value in paper.logs[DEAD]]
    assert [(one["offset"], one["field"], one["reason"]) for one in letters] == [
        (0, "(key)", "missing"),
        (1, "(key)", "malformed"),
        (2, "(key)", "unknown_schema"),
        (3, "(key)", "malformed"),
    ]


@pytest.mark.usefixtures("registry")
def test_a_partition_is_chosen_by_the_bytes_of_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PORTCULLIS_STATUS", raising=False)
    paper = Paper(2)
    worker = worker_of(paper, POLICY.replace("earliest", "earliest, keyed: murmur2"))
    records = [record(who, 1) for who in range(20)]
    paper.logs[RAW] += records
    cycle(worker)
    worker._finish()
    worker.close()
    elsewhere = partitions_of("murmur2", [key for key, _ in records], 2) != 0
    letters = [json.loads(value) for place in paper.logs if place.topic == "dead" for _, value in paper.logs[place]]
    assert sorted(one["offset"] for one in letters) == elsewhere.nonzero()[0].tolist()
    assert {one["reason"] for one in letters} == {"other_partition"}


@pytest.mark.usefixtures("registry")
def test_keys_of_which_the_policy_says_nothing_stop_the_worker_before_the_first_record() -> None:
    paper = Paper(1)
    paper.logs[RAW] += [record(who, 1) for who in range(8)]
    with pytest.raises(SchemaError, match="the schema registry has subject 'raw-key'") as caught:
        worker_of(paper, POLICY.replace(", format: {key: avro}", ""))
    assert status_of(caught.value) == WRONG_USE
    assert not [name for name, *_ in paper.calls if name in {"poll", "begin", "commit"}]
    worker_of(paper, POLICY.replace("key: avro", "key: raw")).close()


@pytest.mark.usefixtures("registry")
def test_its_readers_are_compiled_before_it_takes_events() -> None:
    warm_up(stream_of(parse_policy(POLICY), WorkerSettings()))


def test_persons_are_remembered_by_the_value_of_their_key_and_forgotten_by_it(
    registry: FakeRegistry, portcullis: Any, tmp_path: Path, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = POLICY.replace("{algorithm: castle, k: 4, delay: {tuples: 16}}", COHORTS)
    policy, persons, paper = tmp_path / "policy.yaml", tmp_path / "persons.txt", Paper(1)
    policy.write_text(text)
    monkeypatch.setenv("PORTCULLIS_WORKER_KEY_FILE", str(key_file))
    monkeypatch.setattr(command, "connect", lambda _: paper)
    worker = worker_of(paper, text, key_file=key_file)
    registry.add("raw-key", json.dumps(VERSIONS[1]))
    paper.logs[RAW] += [record(who, version) for version in (1, 2) for who in range(8)]
    cycle(worker)
    (own,) = worker._owned.running.values()
    assert own.engine.status()["persons"] == 8
    worker.close()
    persons.write_text("p1\np9\n")
    paper.assign(0)
    done = portcullis("forget", policy, "--person-file", persons)
    assert "raw/0: 1 of 2 persons were known, and are forgotten" in " ".join(done.output.split()), done.output


def test_who_a_person_is_decides_whether_a_stream_goes_on(tmp_path: Path) -> None:
    """Neither state nor remembered persons pass to a policy that reads keys in another way."""
    texts = {
        "raw": POLICY.replace("key: avro", "key: raw"),
        "unsaid": POLICY.replace(", format: {key: avro}", ""),
        "avro": POLICY,
        "field": POLICY.replace("key: true", "key: id"),
        "other field": POLICY.replace("key: true", "key: name"),
        "json": POLICY.replace("key: avro", "key: json"),
        "subject": POLICY.replace("key: avro", "key: {type: avro, subject: names}"),
    }
    fingerprints, same = {}, {}
    for name, text in texts.items():
        (tmp_path / "policy.yaml").write_text(text)
        policy = load_policy(tmp_path / "policy.yaml")
        fingerprints[name] = policy.fingerprint()
        same[name] = json.dumps(stream_of(policy, WorkerSettings()).same_persons)
    assert fingerprints.pop("raw") == fingerprints["unsaid"]
    assert len({*fingerprints.values()}) == len(fingerprints)
    # A subject says where schemas are, not who a person is.
    assert same.pop("raw") == same["unsaid"]
    assert same.pop("subject") == same["avro"]
    assert len({*same.values()}) == len(same)
