"""Files of Protobuf hold the messages that their package wrote into them; damaged ones are told, and not shown."""

import io
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import proto

from microdata import DataError
from service.codec import Events, TopicFormat, protobuf_files, read_events
from service.policy import load_policy
from service.replay import Replay, replay_file
from tests.service.codec.avro_world import SCHEMA, refusals
from tests.service.codec.protobuf_world import message, order, order_text
from tests.service.worker.test_avro_worker import POLICY

PLAIN = order_text()
TOPIC = TopicFormat("protobuf", PLAIN)


def delimited(*rows: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    for row in rows:
        proto.serialize_length_prefixed(message(PLAIN, **row), out)
    return out.getvalue()


def events_of(tmp_path: Path, data: bytes, topic: TopicFormat | None = TOPIC) -> Events:
    path = tmp_path / "events.pb"
    path.write_bytes(data)
    return Events.merged([*read_events(path, SCHEMA, topic=topic)], [])


@pytest.mark.parametrize("chunk", [1_000, 1 << 20])
def test_the_events_of_a_file_are_those_of_its_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(protobuf_files, "_CHUNK", chunk)
    monkeypatch.setattr(protobuf_files, "_AT_ONCE", 5)
    rows = [order(n) for n in range(40)]
    rows[3]["who"] = ""
    events = events_of(tmp_path, delimited(*rows, order(50, note={"value": "n" * 300_000}), order(41)))
    assert events.quasi[:, 0].tolist() == [n for n in range(40) if n != 3] + [41]
    assert refusals(events) == [(3, "who", "missing"), (40, "(record)", "too_large")]


@pytest.mark.parametrize("data", [delimited(order(1))[:-1], b"\xff" * 20, delimited(order(1)) + b"\x80"])
def test_what_is_no_such_file_is_told(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(DataError, match=r"events\.pb: not readable as messages of Protobuf"):
        events_of(tmp_path, data)


def test_a_file_without_messages_or_schema_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="there are no rows"):
        events_of(tmp_path, b"")
    for topic in (None, TopicFormat("protobuf"), TopicFormat("json")):
        with pytest.raises(DataError, match=r"is read by the schema that stream\.format\.input names"):
            events_of(tmp_path, delimited(order(1)), topic)
    with pytest.raises(DataError, match=r"the Protobuf schema of stream\.format declares no message Parcel"):
        events_of(tmp_path, delimited(order(1)), TopicFormat("protobuf", PLAIN, record="Parcel"))
    monkeypatch.setattr(protobuf_files, "_CHUNK", 100)
    monkeypatch.setattr(protobuf_files, "_MOST_MESSAGE", 1_000)
    with pytest.raises(DataError, match="not readable"):
        events_of(tmp_path, b"\x80\x80\x80\x80\x04" + b"x" * 2_000)


def test_a_replay_reads_it_by_the_schema_of_the_policy(tmp_path: Path) -> None:
    (tmp_path / "order.proto").write_text(PLAIN)
    (tmp_path / "policy.yaml").write_text(POLICY.replace("FORMAT", "{input: {type: protobuf, schema: order.proto}}"))
    (tmp_path / "events.pb").write_bytes(delimited(*(order(n) for n in range(20))))
    replay = Replay(load_policy(tmp_path / "policy.yaml"))
    replay_file(replay, tmp_path / "events.pb", tmp_path / "out.jsonl")
    assert replay.report(0.0).events == 20
    assert b'"n7"' in (tmp_path / "out.jsonl").read_bytes()
