"""What leaves as Avro is what leaves as JSON, by the word of fastavro, and of a schema that follows from the policy."""

import io
import json
from dataclasses import replace
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from microdata import Boxes, Category, Hierarchy, Number, Schema, SchemaError
from service.codec import JsonCodec, Leaving
from service.codec.avro_messages import AvroMessages, derived_schema
from service.codec.binary_messages import largest_row
from service.codec.json_messages import JSON_VALUE
from tests.service.codec.avro_world import read

SCHEMA = Schema(
    "who",
    (
        Number("age", 0, 99, integer=True),
        Number("weight", 0, 500),
        Category("home.zip", Hierarchy.flat(["z0", "é1"])),
        Number("size", 0, 9),
    ),
    (Category("item", Hierarchy.flat(["x", "ü"])), Number("score", -5, 5, integer=True)),
    ("note", "amount", "raw", "flag", "part_of"),
)
TYPES = {
    "note": pa.large_string(),
    "amount": pa.int64(),
    "raw": pa.large_binary(),
    "flag": pa.bool_(),
    "part_of": pa.decimal128(9, 2),
}


def leaving(rows: int = 7, show: Any = "interval") -> Leaving:
    ids, starts = np.array([1, 2**63], np.uint64), np.array([0, 3, rows])
    low = np.array([[1.0, 2.5, 0, 3], [40.0, 80.25, 1, 4]])
    high = low if show == "mean" else np.array([[9.0, 7.5, 1, 3], [99.0, 500.0, 1, 9]])
    sensitive = np.column_stack([np.arange(rows) % 2, np.arange(rows) % 11]).astype(np.int32)
    every = range(rows)
    public = (
        pa.array([None if n % 3 == 0 else f"ñ{n}" for n in every], pa.large_string()),
        pa.array([None if n % 4 == 1 else (-1) ** n * 10 ** (n % 18) for n in every], pa.int64()),
        pa.array([bytes([n, 255]) for n in every], pa.large_binary()),
        pa.array([n % 2 == 0 for n in every]),
        pa.array([None if n == 2 else n - 3 for n in every], pa.int64())
        .cast(pa.decimal128(19, 0))
        .cast(TYPES["part_of"]),
    )
    return Leaving(ids, Boxes(SCHEMA, low, high), starts, sensitive, public, show)


def flat(value: Any) -> Any:
    """An interval as JSON has it."""
    return [value["low"], value["high"]] if isinstance(value, dict) else value


def test_clusters_say_what_json_says() -> None:
    text = derived_schema(SCHEMA, TYPES, "clusters", "interval", "orders.safe")
    ours = [read(text, one) for parts in AvroMessages(SCHEMA, 10_000).encode(leaving(), "clusters") for one in parts]
    theirs = [json.loads(one) for parts in JsonCodec(SCHEMA).encode(leaving(), "clusters") for one in parts]
    assert len(ours) == 2
    for our, their in zip(ours, theirs, strict=True):
        assert our["cluster"] == their["cluster"]
        boxes = {
            name.replace("_", ".", 1) if name == "home_zip" else name: v for name, v in our["generalization"].items()
        }
        assert {name: flat(value) for name, value in boxes.items()} == their["generalization"]
        for mine, row in zip(our["rows"], their["rows"], strict=True):
            assert {key: mine[key] for key in ("item", "score", "note", "amount", "flag")} == {
                key: row[key] for key in ("item", "score", "note", "amount", "flag")
            }
            assert row["part_of"] == (None if mine["part_of"] is None else str(mine["part_of"]))
    assert [row["raw"] for one in ours for row in one["rows"]] == [bytes([n, 255]) for n in range(7)]


def test_tuples_are_flat_and_means_are_points() -> None:
    text = derived_schema(SCHEMA, TYPES, "tuples", "mean", "7-up")
    ours = [
        read(text, one)
        for parts in AvroMessages(SCHEMA, 10_000).encode(leaving(show="mean"), "tuples")
        for one in parts
    ]
    assert len(ours) == 7
    assert (ours[0]["age"], ours[0]["weight"], ours[6]["home_zip"]) == (1.0, 2.5, "é1")
    assert "cluster" not in ours[0]


def test_a_cluster_that_is_too_large_is_written_in_parts_that_fit() -> None:
    limit = 600
    text = derived_schema(SCHEMA, TYPES, "clusters", "interval", "safe")
    one = leaving(60)
    written = list(AvroMessages(SCHEMA, limit, b"\0\0\0\0\x07").encode(one, "clusters"))
    assert len(written[0]) == 1
    assert len(written[1]) > 2
    assert all(len(message) <= limit and message.startswith(b"\0\0\0\0\x07") for parts in written for message in parts)
    parts = [read(text, message[5:]) for message in written[1]]
    assert [part["part"] for part in parts] == [*range(1, len(parts) + 1)]
    assert {part["parts"] for part in parts} == {len(parts)}
    whole = [read(text, m) for parts in AvroMessages(SCHEMA, 10**6).encode(one, "clusters") for m in parts]
    assert [row for part in parts for row in part["rows"]] == whole[1]["rows"]


def test_the_largest_row_fits_into_a_message_with_any_box() -> None:
    limit = 2_000
    most = largest_row(replace(SCHEMA, public=("note",)), limit)
    schema = replace(SCHEMA, public=("note",))
    one = leaving(3)
    public = (pa.array(["x" * most] * 3, pa.large_string()),)
    big = Leaving(one.ids[:1], Boxes(schema, one.boxes.lo[1:], one.boxes.hi[1:]), one.starts[:2], one.sensitive, public)
    messages = [m for parts in AvroMessages(schema, limit, b"\0" * 5).encode(big, "clusters") for m in parts]
    assert len(messages) == 3
    assert max(map(len, messages)) <= limit


def test_values_of_json_leave_as_their_text() -> None:
    schema = replace(SCHEMA, public=("note",))
    values = pa.ExtensionArray.from_storage(JSON_VALUE, pa.array(['{"a":1}', "null", "7"], pa.large_string()))
    one = leaving(3)
    few = Leaving(
        one.ids[:1], Boxes(schema, one.boxes.lo[:1], one.boxes.hi[:1]), one.starts[:2], one.sensitive, (values,)
    )
    text = derived_schema(schema, {"note": JSON_VALUE}, "clusters", "interval", "safe")
    ((message,),) = AvroMessages(schema, 10_000).encode(few, "clusters")
    assert [row["note"] for row in read(text, message)["rows"]] == ['{"a":1}', "null", "7"]


def test_readers_of_the_schema_before_and_after_read_both() -> None:
    """Fields come and go: either schema reads what the other has written."""
    fewer = replace(SCHEMA, quasi=SCHEMA.quasi[1:], sensitive=SCHEMA.sensitive[:1], public=("note",), weights=())
    old = derived_schema(fewer, TYPES, "clusters", "interval", "safe")
    new = derived_schema(SCHEMA, TYPES, "clusters", "interval", "safe")
    one = leaving()
    cut = Leaving(
        one.ids,
        Boxes(fewer, one.boxes.lo[:, 1:], one.boxes.hi[:, 1:]),
        one.starts,
        one.sensitive[:, :1],
        one.public[:1],
    )
    parsed = {text: fastavro.parse_schema(json.loads(text)) for text in (old, new)}
    for text, other, given, schema in ((old, new, cut, fewer), (new, old, one, SCHEMA)):
        ((message, *_), *_) = AvroMessages(schema, 10_000).encode(given, "clusters")
        found: Any = fastavro.schemaless_reader(io.BytesIO(message), parsed[text], parsed[other])
        assert found["generalization"]["weight"] == {"low": 2.5, "high": 7.5}
        assert found["generalization"].get("age") in ({"low": 1, "high": 9}, None)


def test_names_that_avro_does_not_have_are_refused() -> None:
    with pytest.raises(SchemaError, match="Größe: Avro has names of ASCII letters"):
        derived_schema(replace(SCHEMA, public=("Größe",)), {"Größe": pa.int64()}, "clusters", "interval", "safe")
    with pytest.raises(SchemaError, match="home_zip: two fields have this name"):
        derived_schema(replace(SCHEMA, public=("home_zip",)), {"home_zip": pa.int64()}, "clusters", "interval", "safe")
