"""Protobuf records become the rows that the protobuf package reads in them, and nothing else becomes a row."""

import datetime as dt
import struct
from base64 import b64encode
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import Number, Schema, SchemaError
from service.codec import protobuf_schema
from service.codec._found import nothing_found
from service.codec._protobuf_kernels import DEFAULT, VALUE, scan
from service.codec.protobuf import ProtobufDecoder, RegistryMessages
from service.codec.subjects import Subject
from service.registry import Registered, RegistryError
from tests.service.codec.avro_world import SCHEMA, Batch, refusals
from tests.service.codec.protobuf_world import compiled, decoder, message, order, order_text, written

PLAIN = order_text()
GOOD = written(PLAIN, order(1))


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


def test_values_of_every_type_are_what_they_are() -> None:
    moment = dt.datetime(1969, 2, 28, 1, 2, 3, 4, tzinfo=dt.UTC)
    kinds: dict[str, tuple[str, Any]] = {
        "d": ("double", -1.5),
        "f": ("float", 2.5),
        "i64": ("int64", -(2**63)),
        "u64": ("uint64", 2**64 - 1),
        "i32": ("int32", -(2**31)),
        "f64": ("fixed64", 2**64 - 2),
        "f32": ("fixed32", 2**32 - 1),
        "flag": ("bool", True),
        "t": ("string", "ñ"),
        "raw": ("bytes", b"\xff\0"),
        "u32": ("uint32", 2**32 - 1),
        "sf32": ("sfixed32", -7),
        "sf64": ("sfixed64", -8),
        "s32": ("sint32", -(2**31)),
        "s64": ("sint64", -(2**63)),
        "at": ("google.protobuf.Timestamp", moment),
        "wrapped": ("google.protobuf.DoubleValue", 0.0),
        "kind": ("Item", "y"),
    }
    text = order_text(" ".join(f"{kind} {name} = {20 + n};" for n, (name, (kind, _)) in enumerate(kinds.items())))
    values = {name: value for name, (_, value) in kinds.items()} | {"wrapped": {"value": 0.0}}
    events = decoder(text, replace(SCHEMA, public=tuple(kinds))).decode(
        Batch(written(text, order(1, **values)), written(text, order(2)))
    )
    found = dict(zip(kinds, (column.to_pylist() for column in events.public), strict=True))
    at = {"seconds": int(moment.timestamp() // 1), "nanos": 1_000 * moment.microsecond}
    assert {name: column[0] for name, column in found.items()} == values | {"wrapped": 0.0, "at": at}
    # What a record of proto3 does not hold is nothing, where it may say so, or else zero.
    zeros = {name: "" if kind == "string" else b"" if kind == "bytes" else 0 for name, (kind, _) in kinds.items()}
    assert {name: column[1] for name, column in found.items()} == zeros | {"at": None, "wrapped": None, "kind": "x"}


def test_what_is_declared_and_not_there_is_missing_where_a_record_can_say_so() -> None:
    records = [order(0), order(1, home={}), order(2, age=None), order(3, home=None), order(4, who=""), order(5, item=7)]
    clean = [{key: value for key, value in each.items() if value is not None} for each in records]
    events = decoder(PLAIN).decode(Batch(*(written(PLAIN, each) for each in clean)))
    assert refusals(events) == [
        (101, "home.zip", "missing"),
        (102, "age", "missing"),
        (103, "home.zip", "missing"),
        (104, "who", "missing"),
        (105, "item", "wrong_type"),
    ]


OLD = """\
syntax = "proto2";
message Order {
  required string who = 1;
  optional sint32 age = 2 [default = 33];
  optional Home home = 3;
  optional Item item = 4 [deprecated = true, default = y];
  optional string note = 5 [default = "a\\x41\\303\\261\\n"];
  optional double amount = 6 [default = -1.5e3];
  optional group Extra = 7 { optional int32 a = 1; }
}
message Home { optional string zip = 1 [default = "z2"]; }
enum Item { x = 3; y = -1; }
"""


def test_defaults_of_proto2_stand_in_for_what_is_not_there() -> None:
    values = [message(OLD, "Order", who="a", home={}), message(OLD, "Order", who="b", age=0, item=3, note="")]
    events = decoder(OLD).decode(Batch(*(each.SerializeToString() for each in values)))
    assert events.quasi.tolist() == [[33, 2]]
    assert events.sensitive.tolist() == [[1]]
    assert [column.to_pylist() for column in events.public] == [["aAñ\n"], [-1500.0]]
    assert values[0].note == "aAñ\n"
    assert refusals(events) == [(101, "home.zip", "missing")]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param(None, "tombstone", id="tombstone"),
        pytest.param(GOOD[:-1], "malformed", id="cut off"),
        pytest.param(GOOD + b"\0", "malformed", id="field zero behind it"),
        pytest.param(GOOD + b"\x07", "malformed", id="field zero of a wire type that nobody has"),
        pytest.param(GOOD + b"\x50", "malformed", id="a tag without a value"),
        pytest.param(GOOD + b"\x53\x50\1", "malformed", id="a group without an end"),
        pytest.param(GOOD + b"\x53\x5c", "malformed", id="a group that ends as another one"),
        pytest.param(GOOD + b"\x53\x52\5\x54", "malformed", id="a text beyond its group"),
        pytest.param(GOOD + b"\x53" * 70 + b"\x54" * 70, "malformed", id="groups inside of each other without end"),
        pytest.param(GOOD + b"\x13\x14", "malformed", id="a number written as a group"),
        pytest.param(GOOD + b"\x54", "malformed", id="the end of a group"),
        pytest.param(GOOD + b"\x56", "malformed", id="wire type six"),
        pytest.param(GOOD + b"\x10" + b"\xff" * 10, "malformed", id="a number without end"),
        pytest.param(GOOD + b"\x52\x05abcd", "malformed", id="a length beyond the record"),
        pytest.param(GOOD + b"\x52" + b"\xff" * 9 + b"\x01", "malformed", id="a length beyond all bytes"),
        pytest.param(GOOD + b"\x51abcdefg", "malformed", id="eight bytes cut off"),
        pytest.param(GOOD + b"\x55abc", "malformed", id="four bytes cut off"),
        pytest.param(GOOD + b"\x12\x01a", "malformed", id="a number written as a text"),
        pytest.param(GOOD + b"\x18\x01", "malformed", id="a message written as a number"),
        pytest.param(GOOD + b"\x1a\x03\x0a\x02z", "malformed", id="a text beyond its message"),
        pytest.param(GOOD + b"\xff\xff\xff\xff\x7f\0", "malformed", id="a field number beyond all"),
        pytest.param(b"x" * 10_001, "too_large", id="large"),
        pytest.param(GOOD + b"\x0a\x02\xff\xfe", "not_utf8", id="person not UTF-8"),
        pytest.param(GOOD + b"\x2a\x03\x0a\x01\xff", "not_utf8", id="public text not UTF-8"),
        pytest.param(b"", "missing", id="empty"),
    ],
)
def test_one_bad_record_is_refused_alone(value: bytes | None, reason: str) -> None:
    events = decoder(PLAIN).decode(Batch(GOOD, value, GOOD))
    assert events.positions.tolist() == [100, 102]
    assert [(offset, why) for offset, _, why in refusals(events)] == [(101, reason)]


def test_moments_that_no_calendar_has_are_refused_alone() -> None:
    text = order_text("google.protobuf.Timestamp at = 7;")
    at = [(0, -1), (0, 10**9), (-62_135_596_800, 0), (253_402_300_799, 999_999_999), (-62_135_596_801, 0), (2**62, 0)]
    records = [written(text, order(n, at={"seconds": s, "nanos": f})) for n, (s, f) in enumerate(at)]
    events = decoder(text, replace(SCHEMA, public=("at",))).decode(Batch(*records))
    assert events.positions.tolist() == [102, 103]
    assert {why for _, _, why in refusals(events)} == {"wrong_type"}


def test_of_several_values_the_last_counts_and_of_a_oneof_the_last_member() -> None:
    text = order_text("oneof size { int32 small = 10; string large = 11; Home far = 12; bytes odd = 13; }")
    schema = replace(SCHEMA, public=("small", "large", "far.zip"))
    tails = [
        b"\x50\x07\x5a\x01L",
        b"\x5a\x01L\x50\x07",
        b"\x50\x07\x6a\x01?",
        b"\x62\x04\x0a\x02zz",
        b"\x62\0\x5a\x01L",
    ]
    tails += [b"\x62\x04\x0a\x02zz\x62\0", b"\x62\x04\x0a\x02zz\x50\x01\x62\0", b"\x50\x01\x50\x02"]
    records = [GOOD + b"\x10\x05\x1a\x04\x0a\x02z0\x1a\0" + tail for tail in tails]
    events = decoder(text, schema).decode(Batch(*records))
    assert events.quasi.tolist() == [[5, 0]] * len(tails)
    for row, data in enumerate(records):
        theirs = message(text)
        theirs.ParseFromString(data)
        far = theirs.far.zip if theirs.HasField("far") and theirs.far.HasField("zip") else None
        mine = [column[row].as_py() for column in events.public]
        assert mine == [
            theirs.small if theirs.HasField("small") else None,
            theirs.large if theirs.HasField("large") else None,
            far,
        ]


def test_groups_that_nobody_declared_are_passed_over() -> None:
    held = "optional int32 a = 1; optional string b = 2; repeated fixed32 c = 3; optional Held e = 5;"
    schema = OLD.replace("optional int32 a = 1;", f"{held} repeated group Inner = 6 {{ {held} }}")
    full = {"a": -1, "b": "?", "c": [2, 3], "e": {"e": {}}}
    extra = {**full, "inner": [{}, full]}
    value = message(schema + "message Held { optional Held e = 5; }", "Order", who="a", home={}, extra=extra)
    # In front of what is declared, and between.
    data = value.SerializeToString()
    alone = message(OLD, "Order", who="b", home={"zip": "z1"}, age=7).SerializeToString()
    events = decoder(OLD).decode(Batch(data, data + alone))
    assert events.quasi.tolist() == [[33, 2], [7, 1]]
    assert not events.refused


def test_lists_maps_and_messages_that_nobody_declared_are_passed_over() -> None:
    text = order_text(
        "repeated int32 codes = 10; map<string, Home> homes = 11; Order next = 12; repeated Home all = 14;"
    )
    inner: Any = order(5)
    for _ in range(80):
        inner = order(6) | {"next": inner}
    extra = {"codes": [1, -2, 3], "homes": {"a": message(text, "shop.Home", zip="q")}, "next": inner}
    events = decoder(text).decode(Batch(written(text, order(1, **extra)), GOOD + b"\x50\x01\x50\x02"))
    assert events.quasi[:, 0].tolist() == [1, 1]


def test_a_message_of_a_thousand_fields_is_read() -> None:
    text = order_text(" ".join(f"string f{n} = {100 + n};" for n in range(1_000)))
    events = decoder(text).decode(Batch(written(text, order(3) | {f"f{n}": str(n) for n in range(0, 1_000, 3)})))
    assert events.quasi[0, 0] == 3


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        (order_text().replace("optional int32 age", "repeated int32 age"), "age: is repeated or a map"),
        (order_text().replace("optional int32 age", "map<string, int32> age"), "age: is repeated or a map"),
        (order_text().replace("Home home", "repeated Home home"), r"home\.zip: is repeated or a map"),
        (order_text().replace("Home home", "string home"), r"home\.zip: the topic's schema has no such field"),
        (order_text().replace("int64 amount", "Home amount"), "amount: is of type message"),
        (order_text().replace("int64 amount", "elsewhere.Money amount"), "amount: is of a type that the schema"),
        (order_text().replace("int64 amount", "google.protobuf.Duration amount"), "amount: is of a type that"),
        (OLD.replace("group Extra = 7", "group Amount = 7").replace("double amount", "double sum"), "is a group"),
        (order_text().replace("optional int32 age", "bool age"), "age: is of type bool, which is never what"),
        (order_text().replace("string who", "google.protobuf.Timestamp who"), "who: is of type google.protobuf.Time"),
        (order_text().replace("amount", "sum"), "amount: the topic's schema has no such field"),
    ],
)
def test_fields_that_cannot_be_used_are_refused_at_the_start(changed: str, complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint):
        decoder(changed)


def test_first_message_without_the_fields_names_the_other_messages() -> None:
    """A new message was put in front of the one of the records, and the policy does not say which one it means."""
    text = order_text().replace("message Order", "message Audit { string note = 1; }\nmessage Order", 1)
    with pytest.raises(SchemaError) as caught:
        decoder(text)
    why = str(caught.value)
    assert "has no such field in shop.Audit, its first message; it also declares " in why
    assert "shop.Order" in why
    assert "stream.format: {input: {type: protobuf, message: shop." in why


# -- several schemas in one topic --------------------------------------------------------------------------------------


class Known:
    """A registry with these schemas; their ids are their numbers."""

    name = "known"

    def __init__(self, *schemas: str, kind: str = "PROTOBUF") -> None:
        self.schemas, self.kind, self.away = [*schemas], kind, False
        self.references: tuple[str, ...] = ()

    def newest(self, subject: str) -> Registered | None:
        del subject
        return self.by_id(len(self.schemas)) if self.schemas else None

    def by_id(self, number: int) -> Registered | None:
        if self.away:
            raise RegistryError("away")
        if not 1 <= number <= len(self.schemas):
            return None
        return Registered(number, self.kind, self.schemas[number - 1], self.references)

    def doubt(self, number: int) -> None:
        """Nothing is remembered here."""


def topic(known: Any, declared: Schema = SCHEMA, name: str | None = None) -> ProtobufDecoder:
    return ProtobufDecoder(declared, RegistryMessages(Subject(known, "raw-value", "PROTOBUF"), name), 10_000, 5_000)


def framed(number: int, value: bytes, path: bytes = b"\0") -> bytes:
    return b"\0" + number.to_bytes(4, "big") + path + value


def test_each_record_is_read_by_the_schema_whose_id_it_carries() -> None:
    # The other one has other numbers and types, and the same names.
    other = (
        PLAIN.replace("age = 2", "age = 9").replace("int32 age", "sint64 age").replace("int64 amount", "int32 amount")
    )
    decode = topic(Known(other, PLAIN)).decode
    values = [framed(n % 2 + 1, written((other, PLAIN)[n % 2], order(n, amount=n))) for n in range(6)]
    events = decode(Batch(*values))
    assert events.positions.tolist() == [*range(100, 106)]
    assert events.quasi[:, 0].tolist() == [*range(6)]
    assert events.public[1].to_pylist() == [*range(6)]
    for number, value in enumerate(values):
        alone = decode(Batch(value))
        assert alone.public[1].type == events.public[1].type
        assert alone.quasi.tolist() == [events.quasi[number].tolist()]


def test_a_field_that_a_schema_does_not_have_is_missing_and_never_zero() -> None:
    old = PLAIN.replace("optional int32 age = 2;", "").replace("int64 amount", "int64 secret")
    events = topic(Known(old, PLAIN)).decode(Batch(framed(1, written(old, {"who": "a", "home": {"zip": "z1"}}))))
    assert refusals(events) == [(100, "age", "missing")]
    events = topic(Known(old, PLAIN), replace(SCHEMA, quasi=SCHEMA.quasi[1:], weights=())).decode(
        Batch(framed(1, written(old, {"who": "a", "home": {"zip": "z1"}, "secret": 7})))
    )
    assert events.public[1].to_pylist() == [None]


NESTED = """\
syntax = "proto3";
package shop;
message Parcel { string who = 1; message Inner { message Order { string who = 1; int32 age = 2; } string who = 1; } }
message Order { string who = 1; int32 age = 2; }
"""


def test_the_message_is_found_where_its_place_leads() -> None:
    declared = Schema("who", (Number("age", 0, 99),))
    value = written(NESTED, {"who": "a", "age": 7})
    both = [
        framed(1, value, path) for path in (b"\x02\x02", b"\x06\0\0\0", b"\0", b"\x02\0", b"\x04\0\x04", b"\x04\0\x01")
    ]
    decode = topic(Known(NESTED), declared, "shop.Order").decode
    assert decode(Batch(*both)).positions.tolist() == [100]
    assert {why for _, _, why in refusals(decode(Batch(*both)))} == {"other_schema"}
    decode = topic(Known(NESTED), declared, "shop.Parcel.Inner.Order").decode
    assert decode(Batch(*both)).positions.tolist() == [101]
    decode = topic(Known(NESTED), declared, "Inner.Order").decode
    assert decode(Batch(*both)).positions.tolist() == [101]
    with pytest.raises(SchemaError, match="declares several messages Order"):
        topic(Known(NESTED), declared, "Order")
    with pytest.raises(SchemaError, match="declares no message Nobody"):
        topic(Known(NESTED), declared, "Nobody")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\x01" + framed(1, GOOD)[1:], "malformed"),
        (b"\0\0\0\0", "malformed"),
        (b"", "malformed"),
        (b"\0\0\0\0\x01", "malformed"),
        (framed(1, b"", b"\x04\0"), "malformed"),
        (framed(1, b"", b"\x01"), "malformed"),
        (framed(1, GOOD, b"\xff" * 9 + b"\x01"), "malformed"),
        (framed(1, GOOD, b"\x18" + b"\0" * 12), "malformed"),
        (framed(77, GOOD), "unknown_schema"),
        (framed(2**32 - 1, GOOD), "unknown_schema"),
        (framed(2, GOOD), "other_schema"),
        (framed(3, GOOD), "other_schema"),
        (framed(1, GOOD, b"\x02\x08"), "other_schema"),
        (framed(1, GOOD)[:-1], "malformed"),
        (None, "tombstone"),
    ],
)
def test_what_is_in_front_of_a_record_is_checked(value: bytes | None, reason: str) -> None:
    known = Known(PLAIN, PLAIN.replace("Order", "Parcel"), "{}", PLAIN)
    good = framed(1, GOOD)
    events = topic(known).decode(Batch(good, value, good))
    assert events.positions.tolist() == [100, 102]
    assert refusals(events) == [(101, "(record)", reason)]


def test_a_batch_of_nothing_but_refusals_has_columns_of_the_same_types() -> None:
    decode = topic(Known(PLAIN)).decode
    nothing, something = decode(Batch(b"?", None)), decode(Batch(framed(1, GOOD)))
    assert len(nothing) == 0
    assert [column.type for column in nothing.public] == [column.type for column in something.public]


def test_an_id_that_nobody_knew_is_asked_for_again_and_a_registry_that_is_away_is_not_a_refusal() -> None:
    known = Known(PLAIN)
    decode = topic(known).decode
    early, late = framed(1, GOOD), framed(2, GOOD)
    assert len(decode(Batch(early))) == 1
    assert refusals(decode(Batch(late))) == [(100, "(record)", "unknown_schema")]
    known.away = True
    assert len(decode(Batch(early))) == 1
    with pytest.raises(RegistryError):
        decode(Batch(late))
    known.away = False
    known.schemas.append(PLAIN)
    assert len(decode(Batch(late))) == 1


def test_a_schema_may_be_registered_as_a_descriptor_and_refer_to_others() -> None:
    home = 'syntax = "proto3"; package town; message Home { optional string zip = 1; }'
    text = PLAIN.replace("Home home", "town.Home home").replace("import", 'import "0.proto";\nimport', 1)
    files = compiled(home, text).file
    whole = [b64encode(each.SerializeToString()).decode() for each in files]
    for references, own in (((home,), text), (tuple(whole[:-1]), whole[-1]), ((), compiled(home, text))):
        said = own if isinstance(own, str) else b64encode(own.SerializeToString()).decode()
        known = Known(said)
        known.references = references
        assert topic(known).decode(Batch(framed(1, GOOD))).quasi.tolist() == [[1, 1]]


def test_a_topic_without_a_subject_is_waited_for_and_one_of_another_kind_refused() -> None:
    with pytest.raises(RegistryError, match="has no subject 'raw-value' yet"):
        topic(Known())
    with pytest.raises(SchemaError, match="is not of Protobuf, given AVRO"):
        topic(Known(PLAIN, kind="AVRO"))


# -- against the protobuf package --------------------------------------------------------------------------------------

SCALARS = {
    "double": st.floats(),
    "float": st.floats(width=32),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "fixed64": st.integers(0, 2**64 - 1),
    "fixed32": st.integers(0, 2**32 - 1),
    "bool": st.booleans(),
    "string": st.text(max_size=5),
    "bytes": st.binary(max_size=5),
    "uint32": st.integers(0, 2**32 - 1),
    "sfixed32": st.integers(-(2**31), 2**31 - 1),
    "sfixed64": st.integers(-(2**63), 2**63 - 1),
    "sint32": st.integers(-(2**31), 2**31 - 1),
    "sint64": st.integers(-(2**63), 2**63 - 1),
}
ALL = 'syntax = "proto3";\nmessage All {\n'
ALL += "".join(f"  {kind} plain_{kind} = {n};\n" for n, kind in enumerate(SCALARS, 1))
ALL += "".join(f"  optional {kind} may_{kind} = {n};\n" for n, kind in enumerate(SCALARS, 101))
ALL += "  oneof one {\n" + "".join(f"    {kind} one_{kind} = {n};\n" for n, kind in enumerate(SCALARS, 201)) + "  }\n"
ALL += (
    "".join(f"  repeated {kind} many_{kind} = {n};\n" for n, kind in enumerate(SCALARS, 301))
    + "  All inner = 401;\n}\n"
)
NAMES = [f"{way}_{kind}" for way in ("plain", "may", "one") for kind in SCALARS]
PLAN = protobuf_schema.plan(
    protobuf_schema.message_of(protobuf_schema.parse(ALL), None), [*NAMES, *(f"inner.{name}" for name in NAMES)]
)


@st.composite
def values(draw: Any, depth: int = 0) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=6, unique=True)):
        made[name] = draw(SCALARS[name.partition("_")[2]])
    kind = draw(st.sampled_from([*SCALARS]))
    made[f"many_{kind}"] = draw(st.lists(SCALARS[kind], max_size=3))
    if depth < 2 and draw(st.booleans()):
        made["inner"] = draw(values(depth + 1))
    return made


def found_in(data: bytes) -> dict[str, Any] | None:
    """What our reader finds in one record; None where it does not take it."""
    place, found = np.zeros(1, np.int64), nothing_found(PLAN.slots, 1)
    if not scan(np.frombuffer(data, np.uint8), place, place + len(data), PLAN.program, found)[0]:
        return None
    made: dict[str, Any] = {}
    for name, leaf in PLAN.leaves.items():
        choice = found.choice[leaf.slot, 0]
        assert choice != DEFAULT
        if choice == VALUE:
            begin, end = int(found.begins[leaf.slot, 0]), int(found.ends[leaf.slot, 0])
            if leaf.field.kind in {"string", "bytes"}:
                made[name] = data[begin:end]
            elif leaf.field.kind in {"float", "double"}:
                made[name] = struct.pack("<d", found.numbers[leaf.slot, 0])
            else:
                made[name] = begin % 2**64
    return made


def theirs_in(one: Any, above: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in NAMES:
        if name.startswith("plain") or one.HasField(name):
            value = getattr(one, name)
            if isinstance(value, str | bytes):
                made[above + name] = value.encode() if isinstance(value, str) else value
            else:
                made[above + name] = struct.pack("<d", value) if isinstance(value, float) else int(value) % 2**64
    if not above and one.HasField("inner"):
        made |= theirs_in(one.inner, "inner.")
    return made


@settings(max_examples=150, deadline=None)
@given(value=values(), more=values(), cut=st.integers(0, 40), junk=st.binary(max_size=6))
def test_our_reader_finds_what_theirs_does_in_any_message(
    value: dict[str, Any], more: dict[str, Any], cut: int, junk: bytes
) -> None:
    # Two messages side by side are one that has both: the last value counts, and messages are put together.
    data = written(ALL, value, "All") + written(ALL, more, "All")
    theirs = message(ALL, "All")
    theirs.ParseFromString(data)
    assert found_in(data) == theirs_in(theirs)
    # Of bytes that are no message, whatever we take they take as the same; we may be stricter.
    broken = data[: max(len(data) - cut, 0)] + junk
    ours = found_in(broken)
    if ours is not None:
        other = message(ALL, "All")
        try:
            other.ParseFromString(broken)
        except Exception:  # noqa: BLE001 - it does not take texts that are not UTF-8 or bytes inside that we pass over
            return
        assert ours == theirs_in(other)
