"""Avro records become the rows that fastavro reads in them, and nothing else becomes a row."""

import datetime as dt
import itertools
import json
import uuid
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import Boxes, Category, Hierarchy, PersonKey, Reason, Schema, SchemaError
from service.codec import JsonCodec, Leaving, avro_schema
from service.codec._avro_kernels import scan
from service.codec._found import nothing_found
from service.codec.avro import AvroDecoder, OneSchema, RegistrySchemas, record_of
from service.codec.avro_messages import AvroMessages, derived_schema
from service.codec.subjects import Subject
from service.registry import Registered, RegistryError
from tests.service.codec.avro_world import HOME, ITEM, SCHEMA, Batch, decoder, order, read, record, refusals, written

PLAIN = record()


def test_records_become_rows() -> None:
    events = decoder(PLAIN).decode(Batch(*(written(PLAIN, order(n)) for n in range(6))))
    assert events.positions.tolist() == [*range(100, 106)]
    assert events.quasi.tolist() == [[n, n % 3] for n in range(6)]
    assert events.sensitive[:, 0].tolist() == [0, 1, 0, 1, 0, 1]
    assert [column.to_pylist() for column in events.public] == [
        [f"n{n}" for n in range(6)],
        [2**40 + n for n in range(6)],
    ]
    assert len(set(events.persons.tolist())) == 6
    assert not events.refused


def test_logical_types_are_what_they_stand_for() -> None:
    day, moment = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 1, 2, 3, 4000, tzinfo=dt.UTC)
    kinds = {
        "day": {"type": "int", "logicalType": "date"},
        "at": {"type": "long", "logicalType": "timestamp-millis"},
        "price": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
        "share": {"type": "fixed", "name": "Share", "size": 3},
        "id": {"type": "string", "logicalType": "uuid"},
        "raw": "bytes",
        "tiny": "float",
        "flag": "boolean",
        "odd": {"type": "string", "logicalType": "colour"},
    }
    schema = record(*({"name": name, "type": kind} for name, kind in kinds.items()))
    values = {"day": day, "at": moment, "price": Decimal("-1234567.89"), "share": b"abc", "id": uuid.UUID(int=5)}
    values |= {"raw": b"\xff\0", "tiny": 1.5, "flag": True, "odd": "red"}
    events = decoder(schema, replace(SCHEMA, public=tuple(kinds))).decode(Batch(written(schema, order(1, **values))))
    assert dict(zip(kinds, (column[0].as_py() for column in events.public), strict=True)) == values | {
        "id": str(uuid.UUID(int=5))
    }


def test_a_number_may_be_of_any_type_that_holds_one() -> None:
    price = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}
    for kind, value in (("double", 12.5), ("float", 12.5), (price, Decimal("12.5")), ("string", "12.5")):
        schema = record(age=kind)
        events = decoder(schema).decode(Batch(written(schema, order(1, age=value))))
        assert events.quasi[0, 0] == 12.5


def test_a_field_of_several_types_has_each_record_judged_by_its_own() -> None:
    schema = record(age=["null", "int", "string", {"type": "array", "items": "int"}])
    # The last alternative holds many values: a policy cannot read such a field.
    with pytest.raises(SchemaError, match=r"age: is of type array, which holds many values"):
        decoder(schema)
    schema = record(age=["null", "int", "string", "boolean"])
    values = [order(n, age=age) for n, age in enumerate([7, "8", None, "x", True])]
    events = decoder(schema).decode(Batch(*(written(schema, value) for value in values)))
    assert events.quasi[:, 0].tolist() == [7, 8]
    assert refusals(events) == [(102, "age", "missing"), (103, "age", "not_a_number"), (104, "age", "wrong_type")]


def test_what_is_declared_and_not_there_is_missing_and_what_holds_it_may_be_null() -> None:
    schema = record(home=["null", HOME])
    values = [order(0), order(1, home=None), order(2, home={"zip": None}), order(3, home={"zip": "z9"})]
    events = decoder(schema).decode(Batch(*(written(schema, value) for value in values)))
    assert refusals(events) == [
        (101, "home.zip", "missing"),
        (102, "home.zip", "missing"),
        (103, "home.zip", "unknown_category"),
    ]


GOOD = written(PLAIN, order(1))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param(None, "tombstone", id="tombstone"),
        pytest.param(b"", "malformed", id="empty"),
        pytest.param(GOOD[:-1], "malformed", id="cut off"),
        pytest.param(GOOD + b"\0", "malformed", id="too long"),
        pytest.param(b"\xff" * 40, "malformed", id="a number without end"),
        pytest.param(b"\x01" + GOOD[1:], "malformed", id="length below zero"),
        pytest.param(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01" + GOOD[1:], "malformed", id="length beyond all bytes"),
        pytest.param(GOOD[:3] + b"\x04" + GOOD[4:], "malformed", id="no such branch of a union"),
        pytest.param(GOOD[:3] + b"\x01" + GOOD[4:], "malformed", id="a branch below zero"),
        pytest.param(GOOD.replace(b"\x04z1\x02", b"\x04z1\x06"), "malformed", id="no such symbol"),
        pytest.param(b"x" * 10_001, "too_large", id="large"),
        pytest.param(b"\x04\xff\xfe" + GOOD[3:], "not_utf8", id="person not UTF-8"),
        pytest.param(GOOD.replace(b"\x04n1", b"\x04\xff1"), "not_utf8", id="public text not UTF-8"),
    ],
)
def test_one_bad_record_is_refused_alone(value: bytes | None, reason: str) -> None:
    events = decoder(PLAIN).decode(Batch(GOOD, value, GOOD))
    assert events.positions.tolist() == [100, 102]
    assert [(offset, why) for offset, _, why in refusals(events)] == [(101, reason)]


def test_a_row_that_no_message_could_hold_is_refused() -> None:
    events = decoder(PLAIN, largest_row=50).decode(Batch(GOOD, written(PLAIN, order(2, note="n" * 51))))
    assert refusals(events) == [(101, "(record)", "too_large")]


def test_lists_of_nothing_do_not_take_for_ever() -> None:
    schema = record({"name": "z", "type": {"type": "array", "items": "null"}})
    few, endless = b"\x06\0", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\0"
    events = decoder(schema).decode(Batch(GOOD + few, GOOD + endless))
    assert refusals(events) == [(101, "(record)", "malformed")]


def test_a_decimal_with_more_digits_than_it_may_have_is_refused_alone() -> None:
    price = {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 0}
    schema = record(amount=price)
    start = written(schema, order(1, amount=Decimal(999)))[:-3]
    values = [b"\x04\x03\xe7", b"\x04\x03\xe8", b"\x02\xff", b"\x14" + b"\xff" * 10, b"\x12\x01" + bytes(8), b"\0"]
    events = decoder(schema).decode(Batch(*(start + value for value in values)))
    assert [int(value) for value in events.public[1].to_pylist()] == [999, -1, -1]
    assert [offset for offset, _, why in refusals(events) if why == "wrong_type"] == [101, 104, 105]


@given(st.integers(1, 38), st.data())
def test_public_decimals_have_up_to_38_digits(digits: int, data: Any) -> None:
    scale = data.draw(st.integers(0, digits))
    price = {"type": "bytes", "logicalType": "decimal", "precision": digits, "scale": scale}
    most = 10**digits - 1
    whole = data.draw(st.lists(st.integers(-most, most) | st.sampled_from([most, -most, 0, -1]), min_size=1))
    values = [Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale)) for number in whole]
    schema = record(amount=price)
    events = decoder(schema).decode(Batch(*(written(schema, order(n, amount=v)) for n, v in enumerate(values))))
    assert events.public[1].to_pylist() == values
    types = {"note": pa.large_string(), "amount": events.public[1].type}
    text = derived_schema(SCHEMA, types, "tuples", "interval", "t")
    leaving = Leaving(
        np.arange(len(values), dtype=np.uint64),
        Boxes(SCHEMA, events.quasi, events.quasi),
        np.arange(len(values) + 1),
        events.sensitive,
        events.public,
    )
    messages = [one for parts in AvroMessages(SCHEMA, 10_000).encode(leaving, "tuples") for one in parts]
    assert [read(text, message)["amount"] for message in messages] == values


@pytest.mark.parametrize("number", [10**38, -(10**38), 2**127 - 1, -(2**127), 2**127, -(2**127) - 1, 2**200])
def test_decimal_beyond_38_digits_is_rejected_alone(number: int) -> None:
    schema = record(amount={"type": "bytes", "logicalType": "decimal", "precision": 38})
    start = written(schema, order(1, amount=Decimal(0)))[:-2]
    wide = number.to_bytes(32, "big", signed=True)
    short = number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)
    values = [b"\x40" + wide, bytes([2 * len(short)]) + short, b"\x02\x07"]
    events = decoder(schema).decode(Batch(*(start + value for value in values)))
    assert [offset for offset, _, why in refusals(events) if why == "wrong_type"] == [100, 101]
    assert events.public[1].to_pylist() == [Decimal(7)]


def test_uuid_of_16_bytes_names_a_person_as_its_text_does() -> None:
    """Half of the UUIDs of 16 bytes are no UTF-8, so their records were rejected."""
    plain = {"type": "fixed", "name": "Id", "size": 16}  # fastavro writes UUIDs as texts only
    binary, text = (record(who={**kind, "logicalType": "uuid"}) for kind in (plain, {"type": "string"}))
    people = [uuid.UUID(int=number) for number in (0, 5, 2**127 + 1, 2**128 - 1)]
    key = PersonKey.random()
    octets = [written(record(who=plain), order(1, who=who.bytes)) for who in people]
    texts = [written(text, order(1, who=who)) for who in people]
    one, other = (
        AvroDecoder(SCHEMA, OneSchema(record_of(json.dumps(schema), "a test")), 10_000, 5_000, key).decode(
            Batch(*values)
        )
        for schema, values in ((binary, octets), (text, texts))
    )
    assert one.persons.tolist() == other.persons.tolist()
    assert len(set(one.persons.tolist())) == 4


def test_uuid_of_16_bytes_is_published_as_text() -> None:
    kind = {"type": "fixed", "name": "Id", "size": 16, "logicalType": "uuid"}
    schema = record({"name": "id", "type": ["null", kind]})
    values = [uuid.UUID(int=2**127 + 77), None, uuid.UUID(int=3)]
    batch = Batch(*(written(schema, order(1, id=None if v is None else v.bytes)) for v in values))
    events = decoder(schema, replace(SCHEMA, public=("id",))).decode(batch)
    assert events.public[0].to_pylist() == [None if value is None else str(value) for value in values]
    without = record({"name": "id", "type": {**kind, "size": 15}})
    assert decoder(without, replace(SCHEMA, public=("id",))).public["id"] == pa.large_binary()


@pytest.mark.parametrize(
    ("kind", "logical"),
    [
        ("int", "date"),
        ("int", "time-millis"),
        ("long", "time-micros"),
        ("long", "timestamp-millis"),
        ("long", "local-timestamp-micros"),
    ],
)
def test_dates_and_times_that_no_calendar_has_are_refused_alone(kind: str, logical: str) -> None:
    dated = {"type": kind, "logicalType": logical}
    # A time of day is no label, a date or the day of a moment is one.
    labelled = not logical.startswith("time-")
    schema, plain = record(amount=dated, item=dated if labelled else ITEM), record(amount=kind, item=kind)
    declared = Schema("who", SCHEMA.quasi, (Category("item", Hierarchy.flat(["x"]), other="x"),), ("amount",))
    first, last = avro_schema.RANGES[logical]
    most = 2 ** (31 if kind == "int" else 63) - 1
    values = [first, last, first - 1, last + 1, -most, most]
    records = [written(plain, order(1, amount=value, item=0)) for value in values]
    if labelled:
        records += [written(plain, order(1, amount=0, item=value)) for value in values]
    events = decoder(schema, declared).decode(Batch(*records))
    codec = JsonCodec(declared)
    leaving = Leaving(
        np.zeros(1, np.uint64),
        Boxes(declared, events.quasi[:1], events.quasi[:1]),
        np.array([0, len(events)]),
        events.sensitive,
        events.public,
    )
    assert list(codec.encode(leaving, "clusters"))
    wrong = [(offset, name) for offset, name, why in refusals(events) if why == "wrong_type"]
    assert [each for each in wrong if each[1] == "amount"] == [(place, "amount") for place in range(102, 106)]
    assert [offset for offset, name in wrong if name == "item"] == ([*range(108, 112)] if labelled else [])
    assert len(events) == (4 if labelled else 2)


def test_a_record_that_holds_itself_and_one_of_a_thousand_fields_are_read() -> None:
    node = {"name": "next", "type": ["null", "Order"]}
    schema = record(node)
    inner = order(5) | {"next": None}
    deep = order(1)
    for _ in range(3):
        inner = order(6) | {"next": inner}
    events = decoder(schema).decode(Batch(written(schema, deep | {"next": inner})))
    assert events.quasi[0, 0] == 1
    wide = record(*({"name": f"f{n}", "type": ["null", "string"]} for n in range(1_000)))
    events = decoder(wide).decode(Batch(written(wide, order(3) | {f"f{n}": str(n) for n in range(0, 1_000, 3)})))
    assert events.quasi[0, 0] == 3


def test_nesting_without_end_is_refused() -> None:
    schema = record({"name": "next", "type": ["null", "Order"]})
    value = order(1) | {"next": None}
    for _ in range(100):
        value = order(1) | {"next": value}
    assert refusals(decoder(schema).decode(Batch(written(schema, value)))) == [(100, "(record)", "malformed")]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "is not JSON"),
        ('{"type": "record", "name": "R"}', "has a record without fields"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a", "type": "Nobody"}]}', "names a type"),
        ('"string"', "must be a record"),
        ("[" * 5_000 + "]" * 5_000, "is nested too deeply"),
        (json.dumps(record(age=["int", ["null", "string"]])), "has a union directly inside of a union"),
        ('{"type": "fixed", "name": "F", "size": -1}', "without a size"),
        ('{"type": "enum", "name": "E"}', "without symbols"),
        ("7", "neither a name, a list nor an object"),
    ],
)
def test_what_is_no_schema_is_told(text: str, complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint):
        record_of(text, "subject 'x'")


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        (record(age={"type": "array", "items": "int"}), "age: is of type array"),
        (record(item={"type": "map", "values": "int"}), "item: is of type map"),
        (record(home="string"), r"home\.zip: the topic's schema has no such field"),
        (record(age=["null", "boolean"]), "age: is of type boolean, which is never what the policy says"),
        (record(who={"type": "int", "logicalType": "date"}), "who: is of type date, which is never what"),
        (record(note=["int", "string"]), "note: is public and of several types"),
        (record(amount={"type": "bytes", "logicalType": "decimal", "precision": 39}), "more than 38 digits"),
        (
            record(age={"type": "bytes", "logicalType": "decimal", "precision": 19}),
            "age: has decimals of more than 18 digits, which only a public field can have",
        ),
        (
            record(who={"type": "bytes", "logicalType": "decimal", "precision": 19}),
            "who: has decimals of more than 18 digits, which only a public field can have",
        ),
    ],
)
def test_fields_that_cannot_be_used_are_refused_at_the_start(schema: Any, complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint):
        decoder(schema)


# -- several schemas in one topic --------------------------------------------------------------------------------------


class Known:
    """A registry with these schemas; their ids are their numbers."""

    name = "known"

    def __init__(self, *schemas: Any, kind: str = "AVRO") -> None:
        self.schemas, self.kind, self.away = [*schemas], kind, False

    def newest(self, subject: str) -> Registered | None:
        del subject
        return self.by_id(len(self.schemas)) if self.schemas else None

    def by_id(self, number: int) -> Registered | None:
        if self.away:
            raise RegistryError("away")
        if not 1 <= number <= len(self.schemas):
            return None
        return Registered(number, self.kind, json.dumps(self.schemas[number - 1]))

    def doubt(self, number: int) -> None:
        """Nothing is remembered here."""


def topic(known: Any, declared: Schema = SCHEMA, name: str | None = None) -> AvroDecoder:
    return AvroDecoder(declared, RegistrySchemas(Subject(known, "raw-value", "AVRO"), name), 10_000, 5_000)


def framed(number: int, schema: Any, value: Any) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + written(schema, value)


def test_each_record_is_read_by_the_schema_whose_id_it_carries() -> None:
    first = record(amount="int")
    second = {**PLAIN, "fields": [{"name": "new", "type": "string"}, *reversed(PLAIN["fields"])]}
    decode = topic(Known(first, second)).decode
    values = [framed(n % 2 + 1, (first, second)[n % 2], order(n, amount=n, new="?")) for n in range(6)]
    events = decode(Batch(*values))
    assert events.positions.tolist() == [*range(100, 106)]
    assert events.quasi[:, 0].tolist() == [*range(6)]
    assert events.public[1].to_pylist() == [*range(6)]
    # What a record means does not depend on its companions.
    for number, value in enumerate(values):
        alone = decode(Batch(value))
        assert alone.public[1].type == events.public[1].type
        assert alone.quasi.tolist() == [events.quasi[number].tolist()]


def test_a_field_that_came_later_has_its_default_and_one_with_another_name_is_found() -> None:
    old = record()
    old["fields"] = [each for each in old["fields"] if each["name"] not in {"age", "note", "amount", "home"}]
    old["fields"] += [{"name": "sum", "type": "int"}]
    new = record()
    more = {"age": {"type": ["int", "null"], "default": 33}, "note": {"default": None}}
    more |= {"home": {"default": {"zip": "z2"}}, "amount": {"aliases": ["sum"]}}
    new["fields"] = [each | more.get(each["name"], {}) for each in new["fields"]]
    events = topic(Known(old, new)).decode(Batch(framed(1, old, order(1, sum=9))))
    assert events.quasi.tolist() == [[33, 2]]
    assert [column.to_pylist() for column in events.public] == [[None], [9]]


def test_a_default_stands_in_only_where_its_record_is_there() -> None:
    """A field that came later is missing, and has no default, in a record whose home is null."""
    street = {"type": "record", "name": "Home", "fields": [{"name": "street", "type": "string"}]}
    old = record(home=["null", street])
    new = record(home=["null", HOME | {"fields": [{"name": "zip", "type": "string", "default": "z2"}]}])
    values = [order(1, home={"street": "?"}), order(2, home=None)]
    events = topic(Known(old, new)).decode(Batch(*(framed(1, old, value) for value in values)))
    assert events.quasi.tolist() == [[1, 2]]
    assert refusals(events) == [(101, "home.zip", "missing")]


def test_records_that_a_field_may_hold_are_each_read_as_the_one_of_their_name() -> None:
    def home(name: str, *fields: Any) -> dict[str, Any]:
        return {"type": "record", "name": name, "fields": [{"type": "string", **each} for each in fields]}

    old = record(home=[home("Flat", {"name": "code"}), home("House", {"name": "code"}, {"name": "zip"})])
    new = record(home=[home("Flat", {"name": "zip", "aliases": ["code"]}), home("House", {"name": "zip"})])
    places = [("Flat", {"code": "z1"}), ("House", {"code": "z0", "zip": "z2"})]
    values = [framed(1, old, order(n, home=place)) for n, place in enumerate(places)]
    events = topic(Known(old, new)).decode(Batch(*values))
    assert events.quasi[:, 1].tolist() == [1, 2]


def test_symbols_that_the_reader_does_not_have_are_its_default() -> None:
    old = record(item={**ITEM, "symbols": ["y", "q", "x"]})
    new = record(item={**ITEM, "default": "x"})
    values = [framed(1, old, order(n, item=item)) for n, item in enumerate("yqx")]
    assert topic(Known(old, new)).decode(Batch(*values)).sensitive[:, 0].tolist() == [1, 0, 0]
    # Without one, the policy judges what the record says.
    events = topic(Known(old, record())).decode(Batch(*values))
    assert refusals(events) == [(101, "item", "unknown_category")]


def test_a_schema_that_is_nested_too_deeply_costs_its_own_records_only() -> None:
    nested: Any = "int"
    for _ in range(600):
        nested = {"type": "array", "items": nested}
    deep = record({"name": "deep", "type": nested})
    events = topic(Known(deep, PLAIN)).decode(Batch(b"\0\0\0\0\1" + bytes(9), framed(2, PLAIN, order(7))))
    assert refusals(events) == [(100, "(record)", "other_schema")]
    assert events.positions.tolist() == [101]


def test_a_field_that_a_schema_lacks_without_a_default_is_missing() -> None:
    old = record()
    del old["fields"][1]
    events = topic(Known(old, PLAIN)).decode(Batch(framed(1, old, order(1)), framed(2, PLAIN, order(2))))
    assert refusals(events) == [(100, "age", "missing")]


def test_a_public_value_that_is_not_read_as_its_type_is_refused() -> None:
    other = record(amount="string")
    events = topic(Known(other, PLAIN)).decode(
        Batch(framed(1, other, order(1, amount="7")), framed(2, PLAIN, order(2)))
    )
    assert refusals(events) == [(100, "amount", "wrong_type")]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\x01" + framed(1, PLAIN, order(1))[1:], "malformed"),
        (b"\0\0\0\0", "malformed"),
        (b"", "malformed"),
        (b"\0\0\0\0\x01", "malformed"),
        (framed(77, PLAIN, order(1)), "unknown_schema"),
        (framed(2**32 - 1, PLAIN, order(1)), "unknown_schema"),
        (framed(2, PLAIN, order(1)), "other_schema"),
        (framed(3, PLAIN, order(1)), "other_schema"),
        (None, "tombstone"),
    ],
)
def test_what_is_in_front_of_a_record_is_checked(value: bytes | None, reason: str) -> None:
    known = Known(PLAIN, {**PLAIN, "name": "Parcel"}, "int", PLAIN)
    good = framed(1, PLAIN, order(1))
    events = topic(known).decode(Batch(good, value, good))
    assert events.positions.tolist() == [100, 102]
    assert refusals(events) == [(101, "(record)", reason)]


def test_a_batch_of_nothing_but_refusals_has_columns_of_the_same_types() -> None:
    decode = topic(Known(PLAIN)).decode
    nothing, something = decode(Batch(b"?", None)), decode(Batch(framed(1, PLAIN, order(1))))
    assert len(nothing) == 0
    assert [column.type for column in nothing.public] == [column.type for column in something.public]
    assert nothing.quasi.shape == (0, 2)


def test_an_id_that_nobody_knew_is_asked_for_again_and_a_registry_that_is_away_is_not_a_refusal() -> None:
    known = Known(PLAIN)
    decode = topic(known).decode
    early, late = framed(1, PLAIN, order(1)), framed(2, PLAIN, order(1))
    assert len(decode(Batch(early))) == 1
    assert refusals(decode(Batch(late))) == [(100, "(record)", "unknown_schema")]
    known.away = True
    assert len(decode(Batch(early))) == 1
    with pytest.raises(RegistryError):
        decode(Batch(late))
    known.away = False
    known.schemas.append(PLAIN)
    assert len(decode(Batch(late))) == 1


def test_a_topic_without_a_subject_is_waited_for() -> None:
    with pytest.raises(RegistryError, match="has no subject 'raw-value' yet"):
        topic(Known())


def test_a_subject_of_another_kind_is_refused() -> None:
    with pytest.raises(SchemaError, match="is not of Avro, given JSON"):
        topic(Known(PLAIN, kind="JSON"))


# -- against fastavro --------------------------------------------------------------------------------------------------

NUMBERS = itertools.count()
SMALL = st.sampled_from(
    [
        ("null", st.none()),
        ("boolean", st.booleans()),
        ("int", st.integers(-(2**31), 2**31 - 1)),
        ("long", st.integers(-(2**63), 2**63 - 1)),
        ("float", st.floats(width=32)),
        ("double", st.floats()),
        ("string", st.text(max_size=5)),
        ("bytes", st.binary(max_size=5)),
        ({"type": "fixed", "size": 3}, st.binary(min_size=3, max_size=3)),
        ({"type": "enum", "symbols": ["a", "b"]}, st.sampled_from("ab")),
    ]
)


@st.composite
def kinds(draw: Any, depth: int = 0) -> tuple[Any, Any]:
    """A type and a strategy for its values; named types have new names."""
    shape = draw(st.sampled_from(["small"] * 3 + ([] if depth > 2 else ["array", "map", "optional", "record"])))
    if shape == "small":
        kind, values = draw(SMALL)
        return ({**kind, "name": f"N{next(NUMBERS)}"} if isinstance(kind, dict) else kind), values
    if shape == "record":
        fields = draw(st.lists(kinds(depth + 1), max_size=3))
        name = f"R{next(NUMBERS)}"
        made = [{"name": f"f{n}", "type": kind} for n, (kind, _) in enumerate(fields)]
        values = {f"f{n}": values for n, (_, values) in enumerate(fields)}
        return {"type": "record", "name": name, "fields": made}, st.fixed_dictionaries(values)
    kind, values = draw(kinds(depth + 1))
    if shape == "optional":
        if kind == "null" or isinstance(kind, list):
            return kind, values
        return ["null", kind], st.none() | values
    if shape == "array":
        return {"type": "array", "items": kind}, st.lists(values, max_size=3)
    return {"type": "map", "values": kind}, st.dictionaries(st.text(max_size=3), values, max_size=3)


@settings(max_examples=60)
@given(st.data())
def test_whatever_is_around_them_the_declared_fields_are_found_and_the_end_is_known(data: Any) -> None:
    before, after = data.draw(kinds()), data.draw(kinds())
    fields = [{"name": "a", "type": before[0]}, {"name": "n", "type": "long"}, {"name": "s", "type": "string"}]
    schema = {"type": "record", "name": "Any", "fields": [*fields, {"name": "z", "type": after[0]}]}
    number, text = data.draw(st.integers(-(2**63), 2**63 - 1)), data.draw(st.text(max_size=9))
    value = {"a": data.draw(before[1]), "n": number, "s": text, "z": data.draw(after[1])}
    payload = written(schema, value)
    plan = avro_schema.plan(record_of(json.dumps(schema), "x"), ["n", "s"])
    cut, longer = payload[: data.draw(st.integers(0, max(0, len(payload) - 1)))], payload + b"\0"
    parts = [payload, cut, longer]
    joined = np.frombuffer(b"".join(parts), np.uint8)
    ends = np.cumsum([len(part) for part in parts])
    found = nothing_found(2, 3)
    taken = scan(joined, ends - [len(part) for part in parts], ends, plan.program, found)
    assert taken.tolist() == [True, cut == payload, False]
    assert found.begins[0, 0] == number
    assert bytes(joined[found.begins[1, 0] : found.ends[1, 0]]).decode() == text


def rewritten(schema: Any, value: Any) -> bytes | None:
    try:
        return written(schema, value)
    except Exception:  # noqa: BLE001 - a value that it would not write itself
        return None


@settings(max_examples=150)
@given(st.binary(max_size=30), st.integers(0, 200), st.integers(0, 255))
def test_of_changed_bytes_we_take_what_fastavro_takes(junk: bytes, place: int, byte: int) -> None:
    schema = record({"name": "more", "type": {"type": "array", "items": ["null", "long", "bytes"]}})
    payload = bytearray(written(schema, order(7, more=[1, None, b"x"])))
    payload[place % len(payload)] = byte
    for value in (bytes(payload), junk):
        events = decoder(schema).decode(Batch(value))
        try:
            theirs = read(schema, value)
        except Exception:  # noqa: BLE001 - whatever it says about it
            assert len(events) == 0
            continue
        taken = Reason.MALFORMED.code not in {why for _, _, why in refusals(events)}
        # It is lenient: branches below zero count from the end, and any byte but zero is true.
        assert taken or value != rewritten(schema, theirs)
        if len(events):
            assert events.public[1][0].as_py() == theirs["amount"]
            assert events.quasi[0, 0] == theirs["age"]
