"""Avro's files hold the events that fastavro wrote into them; damaged ones are told, and not shown."""

import io
import json
import zlib
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest
import snappy
import zstandard

from microdata import DataError, PersonKey, silent
from service.codec import Events, avro_files, read_events
from service.policy import parse_policy
from service.replay import Replay, replay_file
from tests.service.codec.avro_world import SCHEMA, Batch, decoder, order, record, refusals, written

PLAIN = record()


def file_of(tmp_path: Path, rows: Any, codec: str = "null", schema: Any = PLAIN) -> Path:
    path = tmp_path / f"events-{codec}.avro"
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    with path.open("wb") as out:
        fastavro.writer(out, parsed, rows, codec=codec, sync_interval=200)
    return path


def events_of(path: Path) -> Events:
    return Events.merged([*read_events(path, SCHEMA, progress=silent, person_key=PersonKey.random())], [])


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "bzip2", "xz"])
def test_the_events_of_a_file_are_those_of_its_records(tmp_path: Path, codec: str) -> None:
    rows = [order(n, age=None if n % 7 == 3 else n) for n in range(40)]
    events = events_of(file_of(tmp_path, rows, codec))
    theirs = decoder(PLAIN).decode(Batch(*(written(PLAIN, row) for row in rows)))
    assert events.positions.tolist() == (theirs.positions - 100).tolist()
    assert np.array_equal(events.quasi, theirs.quasi)
    assert [column.to_pylist() for column in events.public] == [column.to_pylist() for column in theirs.public]
    assert [(offset + 100, *rest) for offset, *rest in refusals(events)] == refusals(theirs)


def test_what_zstandard_has_compressed_is_read_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(10_000)
    assert avro_files._raw(avro_files._zstandard, zstandard.compress(data)) == data
    monkeypatch.setattr(avro_files, "_MOST_BLOCK", 9_999)
    for compress, decompress in (
        (zstandard.compress, avro_files._zstandard),
        (lambda raw: snappy.compress(raw) + zlib.crc32(raw).to_bytes(4, "big"), avro_files._snappy),
    ):
        with pytest.raises(DataError, match=r"a block is larger than|not readable"):
            avro_files._raw(decompress, compress(data))


def complaint_about(path: Path) -> str:
    try:
        events_of(path)
    except DataError as error:
        return str(error)
    return ""  # the byte was a part of some value


def test_damaged_files_are_told_and_not_shown(tmp_path: Path) -> None:
    whole = file_of(tmp_path, [order(n, note="marked") for n in range(20)]).read_bytes()
    path, complaints = tmp_path / "damaged.avro", []
    for place in range(0, len(whole), 13):
        for damaged in (whole[:place], whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :]):
            path.write_bytes(damaged)
            said = complaint_about(path)
            assert "marked" not in said
            assert said.startswith("damaged.avro: ") or not said
            complaints.append(said)
    assert sum(map(bool, complaints)) > len(complaints) / 2


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"", "not readable as Avro"), (b"Obj\x01\0" + bytes(16), "schema of the file is not JSON")],
)
def test_what_is_no_file_of_avro_is_told(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "x.avro"
    path.write_bytes(content)
    with pytest.raises(DataError, match=complaint):
        events_of(path)
    with pytest.raises(DataError, match=r"none\.avro: there is no such file"):
        events_of(tmp_path / "none.avro")


def test_a_block_that_would_fill_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file_of(tmp_path, [order(n, note="n" * 5_000) for n in range(20)], "deflate")
    monkeypatch.setattr("service.codec.avro_files._MOST_BLOCK", 4_000)
    with pytest.raises(DataError, match=r"a block is larger than|not readable"):
        events_of(path)


def test_records_above_the_limit_are_refused_as_by_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.codec.avro_files.MAX_EVENT_BYTES", 100)
    events = events_of(file_of(tmp_path, [order(0), order(1, note="n" * 100), order(2)]))
    assert refusals(events) == [(1, "(record)", "too_large")]
    assert events.positions.tolist() == [0, 2]


def test_a_replay_reads_avro_and_writes_json(tmp_path: Path) -> None:
    policy = parse_policy(
        """
name: orders
schema:
  person: who
  quasi: {age: {type: number, min: 0, max: 99, integer: true}}
  public: [amount]
guarantee: {algorithm: castle, k: 2, delay: {tuples: 10}}
"""
    )
    out = tmp_path / "out.jsonl"
    replay_file(Replay(policy, seed=1), file_of(tmp_path, [order(n) for n in range(50)]), out)
    rows = [row for line in io.BytesIO(out.read_bytes()) for row in json.loads(line)["rows"]]
    assert sorted(row["amount"] - 2**40 for row in rows) == [*range(50)]
