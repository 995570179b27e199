"""The tags that a company gave to fields are read from every kind of schema."""

import json
import time
from typing import Any

import pytest

from service.codec import field_tags
from service.registry import Registered
from tests.service.codec.avro_world import record
from tests.service.registry.fake_registry import FakeRegistry

MAIL = {"name": "mail", "type": "string", "confluent:tags": ["PII", "EMAIL"]}
HOME = {"type": "record", "name": "House", "fields": [{"name": "zip", "type": "string", "labels": {"quasi": "yes"}}]}
AVRO = record(MAIL, {"name": "house", "type": ["null", HOME]}, {"name": "odd", "type": "int", "tags": 7})
PROTOBUF = """
syntax = "proto3"; package a;
message Order { string mail = 1 [(confluent.field_meta) = { tags: ["PII", "EMAIL"] }]; House house = 2;
  Order next = 3; }
message House { string zip = 1 [(confluent.field_meta).tags = "quasi"]; }
"""
JSON = {
    "type": "object",
    "properties": {
        "mail": {"type": "string", "confluent:tags": ["PII", "EMAIL"]},
        "house": {"properties": {"zip": {"tags": "quasi"}}},
        "odd": True,
    },
}


@pytest.mark.parametrize(("kind", "schema"), [("AVRO", AVRO), ("PROTOBUF", PROTOBUF), ("JSON", JSON)])
def test_tags_are_found_by_the_names_of_fields(kind: str, schema: Any) -> None:
    found = field_tags(Registered(1, kind, schema if isinstance(schema, str) else json.dumps(schema)))
    # A message that holds itself has them again on the way down.
    assert {name: tags for name, tags in found.items() if not name.startswith("next.")} == {
        "mail": ("PII", "EMAIL"),
        "house.zip": ("quasi",),
    }


@pytest.mark.parametrize("kind", ["AVRO", "PROTOBUF", "JSON"])
@pytest.mark.parametrize("text", ["?", "[" * 5_000, "7", "{}"])
def test_a_schema_that_cannot_be_read_has_none(kind: str, text: str) -> None:
    assert field_tags(Registered(1, kind, text)) == {}


TAG = {"confluent:tags": ["PII"]}
TEXT = {"type": "string"}


def avro(kind: Any, **properties: Any) -> str:
    """A record with one field of this type."""
    return json.dumps({"type": "record", "name": "a.R", "fields": [{"name": "f", "type": kind, **properties}]})


def inner(**properties: Any) -> dict[str, Any]:
    return {"type": "record", "name": "House", "fields": [{"name": "zip", "type": "string"}], **properties}


def objects(f: Any, **more: Any) -> str:
    return json.dumps({"type": "object", "properties": {"f": f}, **more})


def proto(field: str, house: str = "", order: str = "") -> str:
    return f'syntax = "proto3"; package a; message R {{ {order} {field} }} message House {{ {house} string zip = 1; }}'


META = '(confluent.field_meta).tags = "PII"'
OPTION = 'option (confluent.message_meta) = { tags: ["PII"] };'


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("AVRO", avro(inner(), **TAG), {"f.zip"}),
        ("AVRO", avro(["null", inner(**TAG)]), {"f.zip"}),
        ("AVRO", avro({**TEXT, **TAG}), {"f"}),
        ("AVRO", avro(["null", {**TEXT, **TAG}]), {"f"}),
        ("AVRO", avro({"type": {"type": "string"}, **TAG}), {"f"}),
        ("AVRO", avro({"type": ["null", "string"], **TAG}), {"f"}),
        ("AVRO", avro({"type": "array", "items": {**TEXT, **TAG}}), {"f"}),
        ("AVRO", json.dumps({**json.loads(avro("string")), **TAG}), {"f"}),
        ("PROTOBUF", proto(f"House f = 1 [{META}];"), {"f", "f.zip"}),
        ("PROTOBUF", proto("House f = 1;", house=OPTION), {"f", "f.zip"}),
        ("PROTOBUF", proto("string f = 1;", order=OPTION), {"f"}),
        ("PROTOBUF", proto("string f = 1;", order='option (confluent.message_meta).tags = "PII";'), {"f"}),
        ("PROTOBUF", proto("string f = 1;", order='option (other.message_meta).tags = "PII";'), set()),
        ("JSON", objects({"properties": {"zip": TEXT}, **TAG}), {"f", "f.zip"}),
        ("JSON", objects({"$ref": "#/$defs/House"}, **{"$defs": {"House": {"properties": {"zip": TEXT}, **TAG}}}),
         {"f", "f.zip"}),
        ("JSON", objects({"$ref": "#/definitions/Zip"}, definitions={"Zip": {**TEXT, **TAG}}), {"f"}),
        ("JSON", objects({"oneOf": [{"type": "null"}, {**TEXT, **TAG}]}), {"f"}),
        ("JSON", objects({"anyOf": [{"properties": {"zip": {**TEXT, **TAG}}}]}), {"f.zip"}),
        ("JSON", objects(TEXT, **TAG), {"f"}),
        ("JSON", objects(7, allOf=[{"properties": {"g": {**TEXT, **TAG}}}]), {"g"}),
        ("JSON", objects({"items": {**TEXT, **TAG}}), {"f"}),
    ],
)  # fmt: skip
def test_tag_applies_to_everything_below_it(kind: str, text: str, expected: set[str]) -> None:
    assert field_tags(Registered(1, kind, text)) == dict.fromkeys(expected, ("PII",))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("f.zip", {"f.zip"}), ("**.zip", {"f.zip"}), ("a.House.zip", {"f.zip"}), ("a.House.*", {"f.zip"}),
        ("a.R.f", {"f.zip"}), ("f", {"f.zip"}), ("**", {"f.zip", "g"}), ("a.R.?", {"f.zip", "g"}), ("g?", set()),
        ("*.zip", {"f.zip"}), ("zip", set()), ("**.z", set()), ("[", set()),
    ],
)  # fmt: skip
def test_tags_beside_the_schema_apply_by_pattern(pattern: str, expected: set[str]) -> None:
    fields = [{"name": "f", "type": inner()}, {"name": "g", "type": "int"}]
    text = json.dumps({"type": "record", "name": "a.R", "fields": fields})
    found = field_tags(Registered(1, "AVRO", text, tags=((pattern, ("PII",)),)))
    assert found == dict.fromkeys(expected, ("PII",))


def test_references_of_json_schema_are_followed_by_their_name() -> None:
    house = json.dumps({"$defs": {"Zip": {**TEXT, **TAG}}, "properties": {"zip": {"$ref": "#/$defs/Zip"}}})
    schema = objects({"$ref": "house.json"})
    found = field_tags(Registered(1, "JSON", schema, (house,), ("house.json",)))
    assert found == {"f.zip": ("PII",)}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("JSON", objects({"$ref": "#"})),
        ("JSON", objects({"oneOf": [{"$ref": "#"}] * 10})),
        ("AVRO", avro(["null", "a.R"])),
        ("AVRO", avro([inner(name=f"H{n}", fields=[{"name": "x", "type": "a.R"}]) for n in range(9)])),
    ],
)
def test_schemas_that_hold_themselves_end(kind: str, text: str) -> None:
    began = time.monotonic()
    field_tags(Registered(1, kind, text))
    assert time.monotonic() - began < 2


def test_registry_answers_with_tags_and_names_of_references() -> None:
    with FakeRegistry() as fake:
        fake.add("house", '"string"')
        below = [{"name": "House", "subject": "house", "version": 1}]
        number = fake.add("raw-value", avro("string"), references=below)
        fake.schemas[number]["metadata"] = {"tags": {"**.f": ["PII"], "odd": 7}, "properties": {"owner": "us"}}
        newest = fake.client(timeout=5).newest("raw-value")
    assert newest is not None
    assert newest.reference_names == ("House",)
    assert newest.tags == (("**.f", ("PII",)),)
    assert field_tags(newest) == {"f": ("PII",)}
