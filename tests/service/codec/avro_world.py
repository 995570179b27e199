"""Avro as fastavro writes and reads it: somebody else's word on what bytes mean."""

import io
import json
from typing import Any

import fastavro
import numpy as np

from microdata import Category, Hierarchy, Number, PersonKey, Schema
from service.codec.avro import AvroDecoder, OneSchema, record_of

SCHEMA = Schema(
    "who",
    (Number("age", 0, 99), Category("home.zip", Hierarchy.flat(["z0", "z1", "z2"]))),
    (Category("item", Hierarchy.flat(["x", "y"])),),
    ("note", "amount"),
)
ITEM = {"type": "enum", "name": "Item", "symbols": ["x", "y"]}
HOME = {"type": "record", "name": "Home", "fields": [{"name": "zip", "type": ["null", "string"]}]}


def record(*more: Any, **types: Any) -> dict[str, Any]:
    """The schema of an order, with other types for some of its fields and further fields."""
    kinds = {"who": "string", "age": ["null", "int"], "home": HOME, "item": ITEM, "note": ["null", "string"]}
    kinds |= {"amount": "long"} | types
    return {"type": "record", "name": "Order", "fields": [{"name": n, "type": t} for n, t in kinds.items()] + [*more]}


def order(number: int, **other: Any) -> dict[str, Any]:
    home = {"zip": f"z{number % 3}"}
    made = {"who": f"p{number}", "age": number % 100, "home": home, "item": "xy"[number % 2], "note": f"n{number}"}
    return made | {"amount": 2**40 + number} | other


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


def read(schema: Any, data: bytes) -> Any:
    """The value, which must take all of the bytes."""
    parsed = fastavro.parse_schema(json.loads(schema) if isinstance(schema, str) else json.loads(json.dumps(schema)))
    source = io.BytesIO(data)
    value = fastavro.schemaless_reader(source, parsed, None)
    assert source.tell() == len(data), "there are bytes behind the record"
    return value


class Batch:
    """Records of one partition."""

    def __init__(self, *values: bytes | None) -> None:
        self.offsets = np.arange(100, 100 + len(values))
        self.keys: list[bytes | None] = [None] * len(values)
        self.values: list[bytes | None] = [*values]


def decoder(schema: Any, declared: Schema = SCHEMA, **bounds: Any) -> AvroDecoder:
    given: dict[str, Any] = {"max_bytes": 10_000, "largest_row": 5_000, "person_key": PersonKey.random()} | bounds
    return AvroDecoder(declared, OneSchema(record_of(json.dumps(schema), "a test")), **given)


def refusals(events: Any) -> list[tuple[int, str, str]]:
    return [(one.offset, one.field, one.reason.code) for one in events.refused]
