"""A format is one codec and one line in a table: a binary one, made up here, drives a worker from bytes to bytes."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from microdata import Reason, encode, generalizations
from service.codec import CODECS, Events, JsonCodec, Leaving, Refused, refused_records
from service.kafka import Partition
from service.policy import PolicyError, parse_policy
from service.worker.loop import Worker
from service.worker.metrics import Metrics
from service.worker.settings import WorkerSettings
from service.worker.stream import stream_of
from service.worker.warmup import warm_up
from tests.service.worker.paper_kafka import Paper

POLICY = """\
name: packed
schema:
  person: who
  quasi: {age: {type: number, min: 0, max: 99, integer: true}}
  sensitive: {item: {type: category, hierarchy: {Any: [x, y]}}}
  public: [amount, photo]
guarantee: {algorithm: castle, k: 2, delay: {tuples: 3}}
stream: {input: raw, output: safe, start: earliest, dead_letters: dead}
"""
TYPES = {"amount": pa.int64(), "photo": pa.binary()}
LARGE = 2**62 + 1


class PackedCodec:
    """MessagePack, with public values of declared types: whole numbers and bytes, which JSON could not carry."""

    def __init__(self, schema: Any, max_bytes: Any, message_bytes: Any, person_key: Any) -> None:
        del max_bytes, message_bytes
        self.schema, self.person_key = schema, person_key

    def decode(self, batch: Any) -> Any:
        records, offsets, refused = [], [], []
        for offset, value in zip(batch.offsets.tolist(), batch.values, strict=True):
            try:
                records.append(msgspec.msgpack.decode(value or b"", type=dict))
                offsets.append(offset)
            except msgspec.DecodeError:
                refused.append(Refused(offset, "(record)", Reason.WRONG_TYPE))
        names = self.schema.fields()
        columns = {name: pa.array([record.get(name) for record in records], TYPES.get(name)) for name in names}
        encoded = encode(replace(self.schema, public=()), pa.table(columns), person_key=self.person_key)
        places = np.array(offsets, np.int64)
        refused += refused_records(encoded.refusals, places)
        table, accepted = encoded.table, pa.array(encoded.rows)
        public = tuple(columns[name].take(accepted) for name in self.schema.public)
        return Events(places[encoded.rows], table.persons, table.quasi, table.sensitive, public, refused)

    def encode(self, leaving: Leaving, emit: Any) -> Iterator[Any]:
        assert emit == "clusters"
        rows = list(zip(leaving.sensitive.tolist(), *(column.to_pylist() for column in leaving.public), strict=True))
        for place, box in enumerate(generalizations(leaving.boxes)):
            members = rows[leaving.starts[place] : leaving.starts[place + 1]]
            yield [msgspec.msgpack.encode([int(leaving.ids[place]), box, members])]


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(CODECS, "packed", PackedCodec)
    return parse_policy(POLICY.replace("start:", "format: packed, start:"))


def worker_of(policy: Any, paper: Any, on_stop: str = "flush") -> Any:
    stream = stream_of(policy, options := WorkerSettings(on_stop=on_stop))
    worker = Worker(stream, paper, options, Metrics(stream), clock=lambda: 1000.0)
    assert worker.open(threading.Event())
    worker._owned.join()
    paper.assign(0)
    return worker


def one_cycle(worker: Any) -> None:
    once = threading.Event()
    once.set()
    worker._cycle(once)


def record(number: Any, **instead: Any) -> Any:
    values = {"who": f"p{number}", "age": number, "item": "xy"[number % 2], "amount": LARGE + number}
    return values | {"photo": bytes([255, number]), "unread": [1]} | instead


def test_a_binary_format_goes_from_bytes_to_bytes_with_the_types_of_its_public_values(packed: Any) -> None:
    paper = Paper(1)
    worker = worker_of(packed, paper)
    values = [msgspec.msgpack.encode(record(number)) for number in range(6)]
    values += [b"\xc1", msgspec.msgpack.encode(record(7, age=100))]
    paper.logs[Partition("raw", 0)] += [(None, value) for value in values]
    try:
        for _ in range(3):
            one_cycle(worker)
        worker._finish()
    finally:
        worker.close()
    clusters = [msgspec.msgpack.decode(value) for n in range(2) for _, value in paper.logs[Partition("safe", n)]]
    rows = sorted(row for _, _, members in clusters for row in members)
    assert sorted(amount for _, amount, _ in rows) == [LARGE + number for number in range(6)]
    assert {amount - LARGE: photo for _, amount, photo in rows} == {n: bytes([255, n]) for n in range(6)}
    assert all(len(members) >= 2 and box["age"][0] < box["age"][1] for _, box, members in clusters)
    letters = [json.loads(value) for _, value in paper.logs[Partition("dead", 0)]]
    assert [(one["offset"], one["field"]) for one in letters] == [(6, "(record)"), (7, "age")]


def test_a_changed_format_without_a_drain_stops_the_partition(packed: Any) -> None:
    paper = Paper(1)
    first = worker_of(packed, paper, on_stop="keep")
    paper.logs[Partition("raw", 0)].append((None, msgspec.msgpack.encode(record(1))))
    one_cycle(first)
    one_cycle(first)
    first.close()
    paper.generation += 1
    second = worker_of(parse_policy(POLICY), paper)
    try:
        one_cycle(second)
        (reason,) = second._owned.stopped.values()
        assert "run `portcullis drain` with the old policy" in reason
    finally:
        second.close()


def test_a_policy_that_names_no_format_has_the_fingerprint_of_one_that_names_the_default(packed: Any) -> None:
    plain, named = parse_policy(POLICY), parse_policy(POLICY.replace("start:", "format: json, start:"))
    assert plain.fingerprint() == named.fingerprint() != packed.fingerprint()


def test_an_unknown_format_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(PolicyError, match=r"stream\.format.*: must be one of json, avro, protobuf, json-schema"):
        parse_policy(POLICY.replace("start:", "format: cobol, start:"))


def test_a_process_warms_up_with_the_codec_of_its_stream(packed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    decode = PackedCodec.decode
    monkeypatch.setattr(PackedCodec, "decode", lambda self, batch: seen.append(batch) or decode(self, batch))  # type: ignore[func-returns-value, redundant-expr]
    monkeypatch.setattr(JsonCodec, "decode", lambda *_: pytest.fail("not the codec of this stream"))
    warm_up(stream_of(packed, WorkerSettings()))
    assert seen
