"""Rejected records tell whose they are and which quasi-identifiers could be read, in every format."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from microdata import Category, Encoded, Hierarchy, Number, PersonKey, PersonSource, Schema, encode_events, read_table
from service.codec import GivenRecords, JsonCodec
from service.codec.events import Events
from service.kafka import Partition
from service.kafka.partitioners import partitions_of
from service.worker.keyed import KeyedDecoder
from tests.service.codec.avro_world import Batch, decoder, order, record, written

SCHEMA = Schema(
    "who",
    (Number("age", 0, 99), Category("city", Hierarchy.flat(["a", "b"]))),
    (Category("item", Hierarchy.flat(["x", "y"])),),
)
KEY = PersonKey.random()
BY_KEY = replace(SCHEMA, person=PersonSource.KEY)
EVENTS: tuple[tuple[dict[str, Any], Any], ...] = (
    ({}, None),
    ({"age": 1000}, [np.nan, 1]),
    ({"age": None}, [np.nan, 1]),
    ({"city": "?"}, [5, np.nan]),
    ({"city": None, "age": -1}, [np.nan, np.nan]),
    ({"item": "?"}, [5, 1]),
    ({"who": None, "age": 1000}, None),
)
"""What is wrong in an event, and which quasi-identifiers can be read all the same; None where it names nobody."""


def event(**wrong: Any) -> bytes:
    return json.dumps({"who": "p", "age": 5, "city": "b", "item": "x", **wrong}).encode()


def shown(found: Events | Encoded) -> list[tuple[int, list[float]]]:
    rejected = found.rejected
    return [] if rejected is None else list(zip(rejected.rows.tolist(), rejected.quasi.tolist(), strict=True))


def same(found: list[tuple[int, list[float]]], expected: list[tuple[int, Any]]) -> bool:
    return [row for row, _ in found] == [row for row, _ in expected] and np.array_equal(
        np.array([quasi for _, quasi in found]), np.array([quasi for _, quasi in expected], float), equal_nan=True
    )


EXPECTED = [(100 + place, quasi) for place, (_, quasi) in enumerate(EVENTS) if quasi is not None]


def test_json_records_show_what_can_be_read() -> None:
    events = JsonCodec(SCHEMA, person_key=KEY).decode(Batch(*(event(**wrong) for wrong, _ in EVENTS)))
    assert same(shown(events), EXPECTED)
    assert events.rejected is not None
    assert set(events.rejected.persons.tolist()) == set(events.persons.tolist())


def test_json_records_with_a_field_of_the_wrong_type_show_their_person() -> None:
    wrong = [event(age="old"), event(age=[1]), event(city=7.5), event(who=[1], age="old"), b"{", b"[]", None]
    events = JsonCodec(SCHEMA, person_key=KEY).decode(Batch(event(), *wrong))
    assert len(events.refused) == len(wrong)
    assert same(shown(events), [(101 + place, [np.nan, np.nan]) for place in range(3)])
    assert events.rejected is not None
    assert set(events.rejected.persons.tolist()) == set(events.persons.tolist())


def test_a_record_key_names_the_person_of_a_record_that_cannot_be_decoded() -> None:
    values = [event(), b"{", event(age="old"), None, event(), b"x" * 300_000]
    keys: list[bytes | None] = [b"p", b"p", b"p", b"p", None, b"p"]
    events = JsonCodec(BY_KEY, person_key=KEY).decode(GivenRecords(np.arange(6), keys, values))
    assert same(shown(events), [(row, [np.nan, np.nan]) for row in (1, 2, 5)]), "a tombstone is no event"
    assert events.rejected is not None
    assert set(events.rejected.persons.tolist()) == set(events.persons.tolist())
    encoded = encode_events(BY_KEY, values[:5], keys[:5], person_key=KEY)
    assert same(shown(encoded), [(1, [np.nan, np.nan]), (2, [np.nan, 1])])


def test_avro_records_show_what_can_be_read() -> None:
    wide = record(age=["null", "int"], amount=["null", "long"])
    records = [order(1), order(1, age=1000), order(1, item="y", home={"zip": "?"}), order(1, amount=None)]
    events = decoder(wide).decode(Batch(*(written(wide, one) for one in records)))
    assert same(shown(events), [(101, [np.nan, 1]), (102, [1, np.nan])])
    late = decoder(wide, largest_row=20).decode(Batch(*(written(wide, order(1, note="n" * 99)) for _ in range(2))))
    assert same(shown(late), [(100, [1, 1]), (101, [1, 1])]), "rejected for what is public only"


def test_files_show_what_can_be_read(tmp_path: Path) -> None:
    rows = [{"who": "p", "age": 5, "city": "b", "item": "x", **wrong} for wrong, _ in EVENTS]
    cells = [["" if row[name] is None else str(row[name]) for name in ("who", "age", "city", "item")] for row in rows]
    (tmp_path / "events.csv").write_text("who,age,city,item\n" + "\n".join(map(",".join, cells)) + "\n")
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    for name in ("events.csv", "events.jsonl"):
        read = read_table(tmp_path / name, SCHEMA, on_refused="drop")
        assert same(shown(read), [(row - 100, quasi) for row, quasi in EXPECTED])


@pytest.mark.parametrize("age", [5, 1000])
def test_a_record_in_the_wrong_partition_shows_nothing(age: int) -> None:
    key = next(key for key in (b"%d" % n for n in range(9)) if partitions_of("murmur2", [key], 2)[0] == 1)
    codec = KeyedDecoder(JsonCodec(BY_KEY, person_key=KEY), "murmur2", 2)
    for partition, expected in ((0, []), (1, [(0, [np.nan, 1])])):
        given = SimpleNamespace(
            offsets=np.arange(1), keys=[key], values=[event(age=age)], partition=Partition("raw", partition)
        )
        events = codec.decode(given)
        assert same(shown(events), expected if age == 1000 else [])
