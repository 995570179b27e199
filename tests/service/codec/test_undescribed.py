"""Records that nobody described yet become the columns that others read in them, whatever their format is."""

import json
from typing import Any

import pytest

from microdata import DataError
from service.codec import undescribed
from service.codec.field_tags import MOST_FIELDS
from tests.service.codec import avro_world, protobuf_world
from tests.service.codec.avro_world import record
from tests.service.codec.protobuf_world import order_text
from tests.service.registry.fake_registry import FakeRegistry

MORE = (
    {"name": "either", "type": ["null", "long", "string"], "confluent:tags": ["PII"]},
    {"name": "many", "type": {"type": "array", "items": "int"}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
)


def head(number: int) -> bytes:
    return b"\0" + number.to_bytes(4, "big")


def rows_of(read: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read.to_pylist()
    return rows


def test_all_fields_of_avro_are_read_in_the_order_of_records() -> None:
    schema = record(*MORE)
    more = [{"either": [None, 7, "seven"][one % 3], "many": [one], "day": one} for one in range(9)]
    with FakeRegistry() as fake:
        old, new = fake.add("orders-value", record()), fake.add("orders-value", schema)
        known = undescribed("orders", fake.client())
        values: list[bytes | None] = [
            head(new) + avro_world.written(schema, avro_world.order(one, **more[one])) for one in range(9)
        ]
        values[3:3] = [head(old) + avro_world.written(record(), avro_world.order(50)), None, b"junk", values[0][:-1]]  # type: ignore[index]
        table, taken = known.columns.read(values)
    assert (known.format, dict(known.tags)) == ("avro", {"either": ("PII",)})
    assert taken.tolist() == [True] * 4 + [False] * 3 + [True] * 6
    rows = rows_of(table)
    assert [row["who"] for row in rows] == [f"p{one}" for one in (0, 1, 2, 50, 3, 4, 5, 6, 7, 8)]
    assert [row["home.zip"] for row in rows][:4] == ["z0", "z1", "z2", "z2"]
    assert [row["either"] for row in rows][:6] == [None, "7", "seven", None, None, "7"]
    assert rows[2]["day"].isoformat() == "1970-01-03"
    assert rows[3]["day"] is None, "a field that an older schema does not have is missing"
    assert {row["many"] for row in rows} == {None}, "of lists nothing is read"
    assert table.schema.field("many").type.num_fields, "but they are there"


def test_all_fields_of_protobuf_are_read() -> None:
    text = order_text("repeated int32 many = 7; google.protobuf.Timestamp at = 8; map<string, int32> by = 9;")
    with FakeRegistry() as fake:
        number = fake.add("orders-value", text, "PROTOBUF")
        known = undescribed("orders", fake.client())
        orders = [protobuf_world.order(one, many=[one, one], at={"seconds": one}) for one in range(5)]
        values = [head(number) + b"\0" + protobuf_world.written(text, one) for one in orders]
        table, taken = known.columns.read([*values, head(9) + b"\0", head(number) + b"\2\2"])
    assert known.format == "protobuf"
    assert taken.tolist() == [True] * 5 + [False] * 2
    assert table.column_names == ["who", "age", "home.zip", "item", "note", "amount", "at", "many", "by"]
    last = rows_of(table)[-1]
    assert (last["who"], last["home.zip"], last["item"], last["note"], last["at"].second) == ("p4", "z1", "x", "n4", 4)


def test_json_is_read_with_and_without_a_schema() -> None:
    with FakeRegistry() as fake:
        plain, none = undescribed("orders", fake.client()), undescribed("orders", None)
        number = fake.add("orders-value", {"type": "object"}, "JSON")
        known = undescribed("orders", fake.client())
    assert (plain.format, none.format, known.format) == ("json", "json", "json-schema")
    document = json.dumps({"a": {"b": 1}}).encode()
    for each, front in ((plain, b""), (known, head(number))):
        table, taken = each.columns.read([front + document, b"[1]", None])
        assert (rows_of(table), taken.tolist()) == ([{"a": {"b": 1}}], [True, False, False])


def test_nothing_is_a_table_without_rows() -> None:
    with FakeRegistry() as fake:
        fake.add("orders-value", record())
        for topic in ("orders", "others"):
            table, taken = undescribed(topic, fake.client()).columns.read([])
            assert (table.num_rows, len(taken)) == (0, 0)


@pytest.mark.parametrize("kind", ["AVRO", "PROTOBUF"])
def test_schemas_with_very_many_fields_are_read_up_to_a_bound(kind: str) -> None:
    def of(fields: int) -> Any:
        if kind == "AVRO":
            own = [{"name": f"f{one}", "type": "int"} for one in range(fields)]
            return {"type": "record", "name": "Wide", "fields": own}
        return f'syntax = "proto3"; message Wide {{ {"".join(f"int32 f{one} = {one + 1};" for one in range(fields))} }}'

    with FakeRegistry() as fake:
        number = fake.add("wide-value", of(MOST_FIELDS), kind)
        value = head(number) + (bytes(MOST_FIELDS) if kind == "AVRO" else b"\0")
        table, taken = undescribed("wide", fake.client()).columns.read([value] * 600)
        assert (table.num_columns, table.num_rows, int(taken.sum())) == (MOST_FIELDS, 600, 600)
        fake.add("wide-value", of(MOST_FIELDS + 1), kind)
        with pytest.raises(DataError, match=f"more than {MOST_FIELDS} fields"):
            undescribed("wide", fake.client())


def test_records_that_hold_themselves_have_an_end() -> None:
    inner: list[Any] = [{"name": f"n{one}", "type": ["null", "Node"]} for one in range(9)]
    node = {"type": "record", "name": "Node", "fields": [{"name": "v", "type": "int"}, *inner]}
    text = 'syntax = "proto3"; message Node { int32 v = 1; NODES }'
    texts = [text.replace("NODES", " ".join(f"Node n{one} = {one + 2};" for one in range(each))) for each in (1, 9)]
    with FakeRegistry() as fake:
        fake.add("avro-value", node)
        fake.add("chain-value", texts[0], "PROTOBUF")
        fake.add("protobuf-value", texts[1], "PROTOBUF")
        for topic in ("avro", "protobuf"):
            with pytest.raises(DataError, match="fields"):
                undescribed(topic, fake.client())
        assert undescribed("chain", fake.client()).columns.read([])[0].num_columns == 9
