"""The tags that a company gave to fields are read from every kind of schema."""

import json
from typing import Any

import pytest

from service.codec import field_tags
from service.registry import Registered
from tests.service.codec.avro_world import record

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
