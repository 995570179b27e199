"""What left is read again as the lines that a stream of JSON would have left."""

import datetime as dt
import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from microdata import DataError
from service.codec import Format, JsonCodec, Leaving, LeftRecords, Route, TopicFormat
from service.codec.avro_messages import AvroMessages, derived_schema
from service.codec.json_messages import JSON_VALUE
from service.codec.protobuf_messages import ProtobufMessages, derived_protobuf
from tests.service.codec.test_avro_messages import SCHEMA, TYPES, leaving
from tests.service.registry.fake_registry import FakeRegistry

FORMATS: Any = {
    "avro": (derived_schema, AvroMessages, b""),
    "protobuf": (derived_protobuf, ProtobufMessages, b"\0"),
}
MOMENTS = {
    "note": pa.array([dt.datetime(1969, 12, 31, 23, 59, 59, 5, tzinfo=dt.UTC)] * 7, pa.timestamp("us", "UTC")),
    "amount": pa.array([dt.date(2024, 2, 29)] * 7),
    "raw": pa.array([0.5, None, -1.0, 2.0, 3.0, 4.0, 5.0], pa.float32()),
}


def records(kind: str, left: Leaving, types: Any, emit: Any, **more: Any) -> tuple[str, list[bytes]]:
    derive, messages, _ = FORMATS[kind]
    encoded = messages(SCHEMA, more.pop("limit", 10_000), **more).encode(left, emit)
    return derive(SCHEMA, types, emit, left.show, "orders.safe"), [one for parts in encoded for one in parts]


def route(kind: str, emit: Any = "clusters", source: str = "avro", registry: Any = None, **side: Any) -> Route:
    formats = Format(TopicFormat(source), TopicFormat(kind, **side))
    return Route(SCHEMA, formats, "orders", "orders.safe", emit, registry=registry)


def as_json(left: Leaving, emit: Any) -> list[Any]:
    return [json.loads(one) for parts in JsonCodec(SCHEMA).encode(left, emit) for one in parts]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(("emit", "show"), [("clusters", "interval"), ("tuples", "interval"), ("tuples", "mean")])
def test_lines_say_what_json_says(kind: str, emit: Any, show: Any) -> None:
    left = leaving(show=show)
    text, written = records(kind, left, TYPES, emit)
    lines = LeftRecords(route(kind, emit, schema=text))
    assert [json.loads(lines.line(one)) for one in written] == as_json(left, emit)


def test_moments_and_days_are_as_in_json() -> None:
    whole = leaving()
    names = [*TYPES]
    public = tuple(MOMENTS.get(name, column) for name, column in zip(names, whole.public, strict=True))
    left = replace(whole, public=public)
    types = {name: column.type for name, column in zip(names, public, strict=True)}
    for kind in FORMATS:
        text, written = records(kind, left, types, "clusters")
        lines = LeftRecords(route(kind, schema=text))
        assert [json.loads(lines.line(one)) for one in written] == as_json(left, "clusters")


@pytest.mark.parametrize("kind", FORMATS)
def test_values_of_json_and_parts_are_as_in_json(kind: str) -> None:
    whole = leaving(60)
    values = pa.ExtensionArray.from_storage(JSON_VALUE, pa.array(['{"a":[1]}', "null"] * 30, pa.large_string()))
    left = replace(whole, public=(values,) * len(TYPES))
    text, written = records(kind, left, dict.fromkeys(TYPES, JSON_VALUE), "clusters", limit=900)
    lines = LeftRecords(route(kind, source="json", schema=text))
    read = [json.loads(lines.line(one)) for one in written]
    parts = [one for one in read if one["cluster"] == read[-1]["cluster"]]
    assert [one["part"] for one in parts] == [*range(1, parts[0]["parts"] + 1)]
    assert [row for one in read for row in one["rows"]] == [
        row for one in as_json(left, "clusters") for row in one["rows"]
    ]


@pytest.mark.parametrize("kind", FORMATS)
def test_ids_are_asked_for_once_and_other_records_are_told_without_a_value(kind: str) -> None:
    with FakeRegistry() as fake:
        text, _ = records(kind, leaving(), TYPES, "clusters")
        number = fake.add("orders.safe-value", text, kind.upper())
        head = b"\0" + number.to_bytes(4, "big") + FORMATS[kind][2]
        _, written = records(kind, leaving(), TYPES, "clusters", prefix=head)
        lines = LeftRecords(route(kind, registry=fake.client()))
        assert [json.loads(lines.line(one)) for one in written * 3] == as_json(leaving(), "clusters") * 3
        assert fake.asked == {f"GET /api/schemas/ids/{number}": 1}
        good = written[0]
        other = fake.add("others", "{" if kind == "avro" else "message", kind.upper())
        strange = [
            b"",
            b"{}",
            good[:-1],
            good + b"\x7f",
            b"\0\0\0\0\x63" + good[5:],
            good[:4] + bytes([other]) + good[5:],
        ]
        for bad in strange:
            with pytest.raises(DataError, match="not of a schema that this policy writes") as told:
                lines.line(bad)
            assert told.value.__cause__ is None


def test_a_list_without_an_end_is_not_read() -> None:
    row = {"type": "record", "name": "Row", "fields": []}
    fields = [
        {"name": "cluster", "type": "string"},
        {"name": "rows", "type": {"type": "array", "items": row}},
        {"name": "generalization", "type": {"type": "record", "name": "G", "fields": []}},
        {"name": "parts", "type": "int"},
    ]
    text = json.dumps({"type": "record", "name": "Cluster", "fields": fields})
    lines = LeftRecords(route("avro", schema=text))
    assert json.loads(lines.line(b"\0\4\0\2"))["rows"] == [{}, {}]
    with pytest.raises(DataError):
        lines.line(b"\0" + b"\xfe\xff\xff\xff\xff\xff\x01" + b"\0\2")
