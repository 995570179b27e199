"""What leaves as Protobuf is what leaves as JSON, by the word of the protobuf package, and of a schema of protoc's."""

import datetime as dt
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from microdata import Boxes, SchemaError
from service.codec import JsonCodec, Leaving, protobuf_messages
from service.codec.binary_messages import largest_row
from service.codec.json_messages import JSON_VALUE
from service.codec.protobuf_messages import ProtobufMessages, derived_protobuf, number_of
from tests.service.codec.protobuf_world import classes, message
from tests.service.codec.test_avro_messages import SCHEMA, TYPES, leaving

SPACE = "portcullis.orders_safe"


def derived(schema: Any = SCHEMA, types: Any = TYPES, emit: Any = "clusters", show: Any = "interval") -> str:
    return derived_protobuf(schema, types, emit, show, "orders.safe")


def read(text: str, data: bytes, name: str = "Cluster") -> Any:
    """The message, all of whose bytes must be known."""
    found = message(text, f"{SPACE}.{name}")
    assert found.ParseFromString(data) == len(data)
    again = message(text, f"{SPACE}.{name}")
    again.CopyFrom(found)
    again.DiscardUnknownFields()
    assert again == found
    return found


def may(one: Any, name: str) -> Any:
    return getattr(one, name) if one.HasField(name) else None


def test_clusters_say_what_json_says() -> None:
    text = derived()
    ours = [
        read(text, one) for parts in ProtobufMessages(SCHEMA, 10_000).encode(leaving(), "clusters") for one in parts
    ]
    theirs = [json.loads(one) for parts in JsonCodec(SCHEMA).encode(leaving(), "clusters") for one in parts]
    assert len(ours) == 2
    for our, their in zip(ours, theirs, strict=True):
        assert (our.cluster, our.part, our.parts) == (their["cluster"], 1, 1)
        box = our.generalization
        assert {
            "age": [box.age.low, box.age.high],
            "weight": [box.weight.low, box.weight.high],
            "home.zip": box.home_zip,
            "size": [box.size.low, box.size.high],
        } == their["generalization"]
        for mine, row in zip(our.rows, their["rows"], strict=True):
            own = {name: may(mine, name) for name in ("item", "score", "note", "amount", "flag", "part_of")}
            assert own == {name: row[name] for name in own}
    assert [row.raw for one in ours for row in one.rows] == [bytes([n, 255]) for n in range(7)]


def test_tuples_are_flat_and_means_are_points() -> None:
    text = derived(emit="tuples", show="mean")
    ours = [
        read(text, one, "Tuple")
        for parts in ProtobufMessages(SCHEMA, 10_000).encode(leaving(show="mean"), "tuples")
        for one in parts
    ]
    assert len(ours) == 7
    assert (ours[0].age, ours[0].weight, ours[6].home_zip) == (1.0, 2.5, "é1")


def test_public_values_of_other_formats_have_a_type() -> None:
    columns = {
        "moment": pa.array(
            [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC), None], pa.timestamp("us", "UTC")
        ),
        "short": pa.array([dt.datetime(2024, 2, 29, 1, tzinfo=dt.UTC), None], pa.timestamp("ms", "UTC")),
        "there": pa.array([dt.datetime(2024, 2, 29, 1, 2, 3), None], pa.timestamp("ms")),  # noqa: DTZ001 - local
        "day": pa.array([dt.date(2024, 2, 29), None], pa.date32()),
        "time": pa.array([dt.time(1, 2, 3), None], pa.time32("ms")),
        "large": pa.array([2**64 - 1, None], pa.uint64()),
        "tiny": pa.array([1.5, None], pa.float32()),
        "small": pa.array([-3, None], pa.int32()),
        "value": pa.ExtensionArray.from_storage(JSON_VALUE, pa.array(['{"a":1}', None], pa.large_string())),
    }
    schema, one = replace(SCHEMA, public=tuple(columns)), leaving()
    boxes = Boxes(schema, one.boxes.lo[:1], one.boxes.hi[:1])
    few = Leaving(one.ids[:1], boxes, np.array([0, 2]), one.sensitive[:2], tuple(columns.values()))
    text = derived(schema, {name: column.type for name, column in columns.items()})
    ((written,),) = ProtobufMessages(schema, 10_000).encode(few, "clusters")
    first, second = read(text, written).rows
    assert first.moment.ToDatetime(dt.UTC) == columns["moment"][0].as_py()
    assert first.short.ToDatetime(dt.UTC) == columns["short"][0].as_py()
    assert (first.there, first.day, first.time) == ("2024-02-29 01:02:03.000", "2024-02-29", "01:02:03.000")
    assert (first.large, first.tiny, first.small, first.value) == (2**64 - 1, 1.5, -3, '{"a":1}')
    assert not any(second.HasField(name) for name in columns)


def test_a_cluster_that_is_too_large_is_written_in_parts_that_fit() -> None:
    limit, text, one, prefix = 600, derived(), leaving(60), b"\0\0\0\0\x07\0"
    written = list(ProtobufMessages(SCHEMA, limit, prefix).encode(one, "clusters"))
    assert len(written[0]) == 1
    assert len(written[1]) > 2
    assert all(len(each) <= limit and each.startswith(prefix) for parts in written for each in parts)
    parts = [read(text, each[len(prefix) :]) for each in written[1]]
    assert [part.part for part in parts] == [*range(1, len(parts) + 1)]
    assert {part.parts for part in parts} == {len(parts)}
    whole = [read(text, each) for parts in ProtobufMessages(SCHEMA, 10**6).encode(one, "clusters") for each in parts]
    assert [row for part in parts for row in part.rows] == [*whole[1].rows]


def test_the_largest_row_fits_into_a_message_with_any_box() -> None:
    limit, schema, one = 2_000, replace(SCHEMA, public=("note",)), leaving(3)
    public = (pa.array(["x" * largest_row(schema, limit)] * 3, pa.large_string()),)
    big = Leaving(one.ids[:1], Boxes(schema, one.boxes.lo[1:], one.boxes.hi[1:]), one.starts[:2], one.sensitive, public)
    messages = [m for parts in ProtobufMessages(schema, limit, b"\0" * 6).encode(big, "clusters") for m in parts]
    assert len(messages) == 3
    assert max(map(len, messages)) <= limit


def test_readers_of_the_schema_before_and_after_read_both() -> None:
    """Fields come and go, and keep their numbers: either schema reads what the other has written."""
    fewer = replace(SCHEMA, quasi=SCHEMA.quasi[1:], sensitive=SCHEMA.sensitive[:1], public=("note",), weights=())
    one = leaving()
    cut = Leaving(
        one.ids,
        Boxes(fewer, one.boxes.lo[:, 1:], one.boxes.hi[:, 1:]),
        one.starts,
        one.sensitive[:, :1],
        one.public[:1],
    )
    for other, data, schema in ((derived(), cut, fewer), (derived(fewer), one, SCHEMA)):
        ((written, *_), *_) = ProtobufMessages(schema, 10_000).encode(data, "clusters")
        found = classes(other)[f"{SPACE}.Cluster"].FromString(written)
        assert (found.generalization.weight.low, found.generalization.weight.high) == (2.5, 7.5)
        assert [row.item for row in found.rows] == ["x", "ü", "x"]


def test_the_number_of_a_field_never_changes() -> None:
    """Whoever changes how numbers are found breaks every topic that is out there."""
    assert [number_of(name) for name in ("age", "home_zip", "amount")] == [341_160, 5_195_445, 24_709_149]
    numbers = [number_of(f"field{n}") for n in range(20_000)]
    assert min(numbers) >= 20_000
    assert max(numbers) < 2**25


def test_names_and_numbers_that_cannot_be_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SchemaError, match="Größe: Protobuf has names of ASCII letters"):
        derived(replace(SCHEMA, public=("Größe",)), {"Größe": pa.int64()})
    with pytest.raises(SchemaError, match="home_zip: two fields have this name"):
        derived(replace(SCHEMA, public=("home_zip",)), {"home_zip": pa.int64()})
    monkeypatch.setattr(protobuf_messages, "number_of", lambda name: 20_000 + len(name))
    with pytest.raises(SchemaError, match="has the number of another field"):
        derived(replace(SCHEMA, public=("note", "flag")))
