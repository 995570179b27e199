"""Record keys that are encoded: whom they name, under every version of their schema, and which are rejected."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microdata import Number, PersonKey, PersonSource, Reason, Schema, SchemaError
from microdata.encoding import encode
from service.codec import (
    LARGEST_MESSAGE,
    MAX_EVENT_BYTES,
    Events,
    Format,
    GivenRecords,
    Route,
    TopicFormat,
    codec_of,
    decoder_of,
    registry_of,
    topic_complaints,
)
from service.codec.keys import JsonKeys
from service.registry import RegistryError
from tests.service.codec.avro_world import refusals, written
from tests.service.codec.protobuf_world import written as message
from tests.service.registry.fake_registry import FakeRegistry

KEY = PersonKey.random().wide()
RECORD = {"type": "record", "name": "Who", "fields": [{"name": "id", "type": "string"}]}
PROTO = (
    'syntax = "proto3"; message Other { string a = 1; } message Who { Inner in = 1; } message Inner { string id = 1; }'
)
PROTO_2 = PROTO.replace("string id = 1;", "string id = 1; string more = 2;")


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with FakeRegistry() as fake:
        yield fake


def add(registry: FakeRegistry, subject: str, schema: Any, kind: str = "AVRO") -> int:
    """Register a schema; one of Avro that is a text is the name of a type."""
    return registry.add(subject, schema if kind == "PROTOBUF" else json.dumps(schema), kind)


def route_of(key: TopicFormat | None, field: str | None = None, registry: FakeRegistry | None = None) -> Route:
    schema = Schema(PersonSource.KEY, (Number("age", 0, 99),), key_field=field)
    return Route(schema, Format(key=key), "raw", "safe", registry=None if registry is None else registry.client())


def decoded(route: Route, keys: list[bytes | None], values: list[bytes | None] | None = None) -> Events:
    records = GivenRecords(np.arange(10, 10 + len(keys)), keys, values or [b'{"age": 7}'] * len(keys))
    return decoder_of(route, MAX_EVENT_BYTES, LARGEST_MESSAGE, KEY).decode(records)


def framed(number: int, data: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + data


def assert_one_person(events: Events, name: str) -> None:
    """All events are about the person whom a field of the value would name like this, under both codes."""
    assert not events.refused
    field = Schema("who", (Number("age", 0, 99),))
    named = encode(field, pa.table({"who": [name], "age": [7]}), person_key=KEY)
    assert set(events.persons.tolist()) == {int(named.table.persons[0])}
    assert events.more is not None
    assert named.more is not None
    assert set(events.more.tolist()) == {int(named.more[0])}


def test_an_avro_key_is_its_value_under_every_version_of_its_schema(registry: FakeRegistry) -> None:
    schemas = ["string", {"type": "string", "doc": "2"}, ["null", "string"], ["null", "long", "string"], "bytes"]
    values: list[Any] = ["5", "5", "5", 5, b"5"]
    for more, value in (("int", 5), ("long", 5), ("double", 5.0)):
        schemas.append(more)
        values.append(value)
    numbers = [add(registry, "raw-key", each) for each in schemas]
    keys: list[bytes | None] = [framed(n, written(s, v)) for n, s, v in zip(numbers, schemas, values, strict=True)]
    events = decoded(route_of(TopicFormat("avro"), None, registry), keys)
    assert_one_person(events, "5")
    assert len(events) == len(keys)


def test_a_key_that_is_a_record_names_the_person_in_a_field(registry: FakeRegistry) -> None:
    more = {**RECORD, "fields": [{"name": "region", "type": "string"}, *RECORD["fields"]]}
    first, second = add(registry, "raw-key", RECORD), add(registry, "raw-key", more)
    keys: list[bytes | None] = [
        framed(first, written(RECORD, {"id": "a"})),
        framed(second, written(more, {"id": "a", "region": "north"})),
        framed(second, written(more, {"id": "a", "region": "south"})),
    ]
    assert_one_person(decoded(route_of(TopicFormat("avro"), "id", registry), keys), "a")


def test_a_protobuf_key_names_the_person_in_a_field(registry: FakeRegistry) -> None:
    numbers = [add(registry, "raw-key", text, "PROTOBUF") for text in (PROTO, PROTO_2)]
    # Behind the id stands the place of the message: the second of its schema.
    keys: list[bytes | None] = [
        framed(numbers[0], b"\2\2" + message(PROTO, {"in": {"id": "a"}}, "Who")),
        framed(numbers[1], b"\2\2" + message(PROTO_2, {"in": {"id": "a", "more": "b"}}, "Who")),
        framed(numbers[1], b"\0" + message(PROTO_2, {"a": "a"}, "Other")),
    ]
    events = decoded(route_of(TopicFormat("protobuf", record="Who"), "in.id", registry), keys)
    assert refusals(events) == [(12, "(key)", "other_schema")]
    assert len(events) == 2
    assert len(set(events.persons.tolist())) == 1


def test_documents_name_persons_with_and_without_an_id_in_front(registry: FakeRegistry) -> None:
    first, second = (
        add(registry, "raw-key", {"type": "string"}, "JSON"),
        add(registry, "raw-key", {"type": "x"}, "JSON"),
    )
    assert_one_person(decoded(route_of(TopicFormat("json")), [b'"5"', b" 5 ", b'"\\u0035"']), "5")
    inside: list[bytes | None] = [b'{"a": {"id": "x"}}', b'{"more": [1], "a": {"id": "x", "b": 2}}']
    assert_one_person(decoded(route_of(TopicFormat("json"), "a.id"), inside), "x")
    behind: list[bytes | None] = [framed(first, b'"x"'), framed(second, b'"x"')]
    assert_one_person(decoded(route_of(TopicFormat("json-schema"), None, registry), behind), "x")


def test_schemas_of_files_have_nothing_in_front_of_keys() -> None:
    side = TopicFormat("avro", schema=json.dumps(RECORD))
    assert_one_person(decoded(route_of(side, "id"), [written(RECORD, {"id": "a"})]), "a")
    assert_one_person(decoded(route_of(TopicFormat("avro", schema='"long"')), [written("long", 77)]), "77")
    side = TopicFormat("protobuf", schema=PROTO, record="Who")
    assert_one_person(decoded(route_of(side, "in.id"), [message(PROTO, {"in": {"id": "a"}}, "Who")]), "a")


def test_a_raw_key_stays_its_bytes() -> None:
    for side in (None, TopicFormat("raw")):
        keys: list[bytes | None] = [b"a", framed(1, b"\2a"), framed(2, b"\2a"), b"\xff", None, b""]
        events = decoded(route_of(side), keys)
        assert len(set(events.persons.tolist())) == 4
        assert refusals(events) == [(14, "(key)", "missing"), (15, "(key)", "missing")]


def test_a_key_that_cannot_be_decoded_is_a_rejected_record(registry: FakeRegistry) -> None:
    text, number = add(registry, "raw-key", "string"), add(registry, "raw-key", "double")
    record, document = add(registry, "raw-key", RECORD), add(registry, "other", {}, "JSON")
    registry.subjects["raw-key"] = [text]
    keys: list[bytes | None] = [
        framed(text, written("string", "a")),
        None,
        b"",
        b"plain",
        framed(text, written("string", "a")) + b"more",
        framed(99, written("string", "a")),
        framed(record, written(RECORD, {"id": "a"})),
        framed(document, b'"a"'),
        framed(number, written("double", 1.5)),
        framed(text, written("string", "")),
        framed(text, b"\2\xff"),
        framed(text, written("string", "a" * MAX_EVENT_BYTES)),
    ]
    values: list[bytes | None] = [b'{"age": 700}' if place == 1 else b'{"age": 7}' for place in range(len(keys))]
    events = decoded(route_of(TopicFormat("avro"), None, registry), keys, values)
    assert events.positions.tolist() == [10]
    reasons = ["missing", "malformed", "malformed", "malformed", "unknown_schema", "other_schema", "other_schema"]
    reasons += ["wrong_type", "missing", "not_utf8", "too_large"]
    assert refusals(events) == [(11 + place, "(key)", reason) for place, reason in enumerate(reasons)]


def test_a_document_that_is_too_large_names_nobody() -> None:
    reader = JsonKeys(None, 8)
    names, why = reader.read([b'"abcdef"', b'"abcdefg"'])
    assert (names.tolist()[0], why.tolist()) == (b"abcdef", [0, Reason.TOO_LARGE])


def test_documents_that_name_nobody_are_rejected(registry: FakeRegistry) -> None:
    keys: list[bytes | None] = [b"true", b"1.5", b"[1]", b"{}", b"null", b"plain", b'"\xff"', b'""', None]
    found = refusals(decoded(route_of(TopicFormat("json")), keys))
    assert [reason for _, _, reason in found] == [*["wrong_type"] * 4, "missing", *["not_json"] * 2, *["missing"] * 2]
    assert {field for _, field, _ in found} == {"(key)"}
    keys = [b'{"a": null}', b'{"a": {"id": [1]}}', b'"text"', b"{}"]
    found = refusals(decoded(route_of(TopicFormat("json"), "a.id"), keys))
    assert [reason for _, _, reason in found] == ["missing", "wrong_type", "wrong_type", "missing"]
    number = add(registry, "raw-key", "string")
    keys = [framed(number, b'"x"'), framed(9, b'"x"'), b'"x"', None, framed(add(registry, "a", {}, "JSON"), b"?")]
    found = refusals(decoded(route_of(TopicFormat("json-schema"), None, registry), keys))
    assert [reason for _, _, reason in found] == [
        "other_schema", "unknown_schema", "malformed", "missing", "not_json"
    ]  # fmt: skip


def test_a_value_that_cannot_be_read_is_told_before_its_key() -> None:
    events = decoded(route_of(TopicFormat("json")), [b"plain", b"plain", b'"a"'], [b"no json", None, b'{"age": 700}'])
    assert refusals(events) == [
        (10, "(record)", "not_json"), (11, "(record)", "tombstone"), (12, "age", "out_of_domain")
    ]  # fmt: skip


def test_a_rejected_value_is_of_the_person_whom_the_key_names_under_every_version(registry: FakeRegistry) -> None:
    """Engines that remember persons take these rows."""
    numbers = [add(registry, "raw-key", each) for each in ("string", {"type": "string", "doc": "2"})]
    keys: list[bytes | None] = [framed(number, written("string", "a")) for number in (*numbers, *numbers, 99)]
    values: list[bytes | None] = [b'{"age": 7}', b'{"age": 700}', b"no json", b'{"age": "x"}', b"no json"]
    events = decoded(route_of(TopicFormat("avro"), None, registry), keys, values)
    assert events.rejected is not None
    assert events.rejected.rows.tolist() == [11, 12, 13]
    assert {*events.rejected.persons.tolist()} == {*events.persons.tolist()}


def test_keys_and_values_have_formats_of_their_own(registry: FakeRegistry) -> None:
    order = {"type": "record", "name": "Order", "fields": [{"name": "age", "type": "int"}]}
    of_key, of_value = add(registry, "raw-key", "string"), add(registry, "raw-value", order)
    route = route_of(TopicFormat("avro"), None, registry)
    both = Format(TopicFormat("avro"), TopicFormat("avro"), TopicFormat("avro"))
    route = Route(route.schema, both, "raw", "safe", registry=route.registry)
    codec = codec_of(route, MAX_EVENT_BYTES, LARGEST_MESSAGE, KEY)
    keys: list[bytes | None] = [framed(of_key, written("string", "a")), framed(of_value, b"")]
    events = codec.decode(GivenRecords(np.arange(2), keys, [framed(of_value, written(order, {"age": 7}))] * 2))
    assert_one_person(events.at(events.positions == 0), "a")
    assert refusals(events) == [(1, "(key)", "other_schema")]


@pytest.mark.parametrize(
    ("schema", "kind", "field", "reason"),
    [
        (RECORD, "AVRO", None, "is a record; name the field of the key that is the person"),
        (RECORD, "AVRO", "name", "name: the topic's schema has no such field"),
        ("string", "AVRO", "id", "must be a record, given string"),
        ("boolean", "AVRO", None, "(key): is of type boolean, which is never what the policy says"),
        ({"type": "array", "items": "string"}, "AVRO", None, "(key): is of type array, which holds many values"),
        (PROTO, "PROTOBUF", "in", "in: "),
        (PROTO, "PROTOBUF", "in.name", "in.name: the topic's schema has no such field"),
        ({}, "JSON", None, "is not of Avro"),
    ],
)
def test_a_key_that_never_names_anybody_is_refused_at_the_start(
    schema: Any, kind: str, field: str | None, reason: str, registry: FakeRegistry
) -> None:
    add(registry, "raw-key", schema, kind)
    route = route_of(
        TopicFormat("protobuf" if kind == "PROTOBUF" else "avro", record="Who" if kind == "PROTOBUF" else None),
        field,
        registry,
    )
    with pytest.raises(SchemaError) as caught:
        decoder_of(route, MAX_EVENT_BYTES, LARGEST_MESSAGE, KEY)
    assert reason in str(caught.value)
    ((_, why),) = topic_complaints(route)
    assert why in str(caught.value)


def test_keys_that_the_registry_knows_are_not_taken_for_raw_unless_somebody_says_so(registry: FakeRegistry) -> None:
    """An integer of eight bytes begins with a zero too: what keys look like says nothing."""
    keys: list[bytes | None] = [(n << 24).to_bytes(8, "big") for n in range(1, 4)]
    add(registry, "other-key", "string")
    assert len(decoded(route_of(None, None, registry), keys)) == 3
    add(registry, "raw-key", "string")
    with pytest.raises(SchemaError, match="has subject 'raw-key', so keys may carry the id of a schema"):
        decoded(route_of(None, None, registry), keys)
    assert len(decoded(route_of(TopicFormat("raw"), None, registry), keys)) == 3


def test_the_registry_is_asked_about_keys_only_where_it_may_know_them(
    registry: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PORTCULLIS_REGISTRY_URL", raising=False)
    assert registry_of(route_of(None)) is None
    monkeypatch.setenv("PORTCULLIS_REGISTRY_URL", registry.url)
    assert registry_of(route_of(None)) is not None
    assert registry_of(route_of(TopicFormat("raw"))) is None
    assert registry_of(route_of(TopicFormat("avro", schema='"string"'))) is None
    assert registry_of(route_of(TopicFormat("avro"))) is not None
    by_field = Schema("who", (Number("age", 0, 99),))
    assert registry_of(Route(by_field, Format(), "raw", "safe")) is None


def test_without_a_schema_or_a_registry_keys_wait(registry: FakeRegistry) -> None:
    with pytest.raises(RegistryError, match="has no subject 'raw-key' yet"):
        decoded(route_of(TopicFormat("avro"), None, registry), [])
    number = add(registry, "raw-key", "string")
    decoder = decoder_of(route_of(TopicFormat("avro"), None, registry), MAX_EVENT_BYTES, LARGEST_MESSAGE, KEY)
    registry.mood = "500"
    with pytest.raises(RegistryError):
        decoder.decode(GivenRecords(np.arange(1), [framed(number, b"\2a")], [b'{"age": 7}']))


VALUES = st.one_of(st.text(min_size=1, max_size=6), st.integers(-(2**63), 2**63 - 1), st.sampled_from(["5", 5, "a"]))
AVRO: list[Any] = [["long", "string"], ["null", "string", "long"], [{"type": "string", "doc": "3"}, "long"]]
RECORDS: list[Any] = [
    {**RECORD, "fields": [{"name": f"more{n}", "type": "int"}] * n + [{"name": "id", "type": each}]}
    for n, each in zip((0, 1, 0), AVRO, strict=True)
]
PROTOS = [
    f'syntax = "proto3"; message Who {{ string id = 1; {more} }}' for more in ("", "int32 b = 2;", "string c = 7;")
]
WRITERS: dict[str, Any] = {
    "scalar": lambda version, value: written(AVRO[version], value),
    "record": lambda version, value: written(RECORDS[version], {"id": value, "more1": 1}),
    "proto": lambda version, value: b"\0" + message(PROTOS[version], {"id": str(value)}, "Who"),
    "json": lambda _, value: json.dumps(value).encode(),
}


@pytest.fixture(scope="module")
def versions_of() -> Iterator[dict[str, tuple[Any, list[int]]]]:
    """Of each format a decoder, and the ids of three versions of its schema."""
    with FakeRegistry() as fake:
        ids = {
            "scalar": [add(fake, "scalar-key", each) for each in AVRO],
            "record": [add(fake, "record-key", each) for each in RECORDS],
            "proto": [add(fake, "proto-key", each, "PROTOBUF") for each in PROTOS],
            "json": [add(fake, "json-key", {"title": str(n)}, "JSON") for n in range(3)],
        }
        routes = {
            "scalar": route_of(TopicFormat("avro", subject="scalar-key"), None, fake),
            "record": route_of(TopicFormat("avro", subject="record-key"), "id", fake),
            "proto": route_of(TopicFormat("protobuf", subject="proto-key"), "id", fake),
            "json": route_of(TopicFormat("json-schema"), None, fake),
        }
        yield {
            name: (decoder_of(route, MAX_EVENT_BYTES, LARGEST_MESSAGE, KEY), ids[name])
            for name, route in routes.items()
        }


@pytest.mark.parametrize("name", WRITERS)
@given(named=st.lists(st.tuples(VALUES, st.integers(0, 2)), min_size=1, max_size=12))
def test_two_keys_name_one_person_exactly_when_their_values_are_the_same(
    name: str, named: list[tuple[Any, int]], versions_of: dict[str, tuple[Any, list[int]]]
) -> None:
    """Under every version, alone or together with others."""
    decoder, ids = versions_of[name]
    keys: list[bytes | None] = [framed(ids[version], WRITERS[name](version, value)) for value, version in named]

    def persons(*keys: bytes | None) -> Any:
        events = decoder.decode(GivenRecords(np.arange(len(keys)), keys, [b'{"age": 7}'] * len(keys)))
        assert not events.refused
        return [*zip(events.persons.tolist(), events.more.tolist(), strict=True)]

    together, texts = persons(*keys), [str(value) for value, _ in named]
    for codes in zip(*together, strict=True):
        assert len(set(codes)) == len({*zip(codes, texts, strict=True)}) == len(set(texts))
    assert [persons(key)[0] for key in keys] == together
