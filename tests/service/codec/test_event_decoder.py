"""Records as strangers write them: each is taken or refused with a reason, alike alone and in company."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from microdata import Category, Hierarchy, Number, Schema
from service.codec import JsonCodec
from service.kafka import Partition, RecordBatch

SCHEMA = Schema(
    "who",
    (Number("age", 0, 99, integer=True), Category("home.city", Hierarchy.flat(["a", "b", "7"]))),
    (Category("item", Hierarchy.flat(["x", "y"])),),
    ("trace", "home.street"),
)
LIMIT = 300_000
GOOD = {"who": "p", "age": 5, "home": {"city": "a", "street": 3}, "item": "x", "trace": 1}
DECODER = JsonCodec(SCHEMA, LIMIT)


def decoded(*values: Any) -> Any:
    places = np.arange(len(values))
    return DECODER.decode(RecordBatch(Partition("raw", 0), places, places, [None] * len(values), list(values)))


def with_text(field: Any, text: Any) -> Any:
    """A good record but for one top-level field, which holds this very text."""
    rest = json.dumps({name: value for name, value in GOOD.items() if name != field})
    return rest[:-1].encode() + f', "{field}": '.encode() + (text if isinstance(text, bytes) else text.encode()) + b"}"


def refusals(value: Any) -> Any:
    return [(refused.field, refused.reason.code) for refused in decoded(value).refused]


WHOLE = "(record)"
DEEP = 60_000


@pytest.mark.parametrize(
    ("value", "field", "reason"),
    [
        pytest.param(None, WHOLE, "tombstone", id="tombstone"),
        pytest.param(b"", WHOLE, "not_json", id="empty"),
        pytest.param(b"\xef\xbb\xbf" + json.dumps(GOOD).encode(), WHOLE, "not_json", id="byte order mark"),
        pytest.param(json.dumps(GOOD).encode("utf-16"), WHOLE, "not_json", id="UTF-16"),
        pytest.param(json.dumps(GOOD).encode() * 2, WHOLE, "not_json", id="two records"),
        pytest.param(b"null", WHOLE, "wrong_type", id="null"),
        pytest.param(b"[" * DEEP, WHOLE, "wrong_type", id="lists without end"),
        pytest.param(b'{"home":' * 30_000, WHOLE, "not_json", id="objects without end"),
        pytest.param(with_text("trace", "[" * DEEP + "]" * DEEP), WHOLE, "not_json", id="deep public value"),
        pytest.param(with_text("other", "[" * DEEP + "]" * DEEP), WHOLE, "not_json", id="deep undeclared value"),
        pytest.param(with_text("trace", '"' + "x" * 10_000_000 + '"'), WHOLE, "too_large", id="10 MB"),
        pytest.param(with_text("who", r'"\ud800"'), WHOLE, "not_json", id="half a surrogate pair"),
        pytest.param(with_text("trace", r'"\udc00"'), WHOLE, "not_json", id="half a pair in a public value"),
        pytest.param(with_text("who", b'"\xff"'), WHOLE, "not_json", id="person not UTF-8"),
        pytest.param(with_text("trace", b'"\xff"'), WHOLE, "not_json", id="public value not UTF-8"),
        pytest.param(with_text("age", "NaN"), WHOLE, "not_json", id="NaN"),
        pytest.param(with_text("trace", "-Infinity"), WHOLE, "not_json", id="infinity as a public value"),
        pytest.param(with_text("age", "1e400"), "age", "wrong_type", id="more than a float holds"),
        pytest.param(with_text("age", "1" * 400), "age", "wrong_type", id="a very long integer"),
        pytest.param(with_text("who", "1" * 5000), "who", "wrong_type", id="a very long number as the person"),
        pytest.param(with_text("who", "1.0"), "who", "wrong_type", id="a fraction as the person"),
        pytest.param(with_text("who", "true"), "who", "wrong_type", id="a truth value as the person"),
        pytest.param(with_text("who", '""'), "who", "missing", id="empty person"),
        pytest.param(with_text("age", '"5"'), "age", "wrong_type", id="a number as text"),
        pytest.param(with_text("home", "null"), "home.city", "missing", id="null above a field"),
        pytest.param(with_text("home", "[]"), "home.city", "wrong_type", id="list above a field"),
        pytest.param(with_text("home", f'{{"city": {2**70}}}'), "home.city", "unknown_category", id="huge category"),
    ],
)
def test_what_is_refused_has_a_field_and_a_reason_alone_and_in_company(value: Any, field: Any, reason: Any) -> None:
    assert refusals(value) == [(field, reason)]
    good = json.dumps(GOOD).encode()
    together = decoded(good, value, good)
    assert [(each.offset, each.field, each.reason.code) for each in together.refused] == [(1, field, reason)]
    assert together.positions.tolist() == [0, 2]


@pytest.mark.parametrize("person", [2**63, 2**64, -(2**63) - 1, 10**4000, "z" * 250_000, "\x00", "😀"])
def test_a_person_may_have_any_name_and_a_number_counts_by_its_digits(person: Any) -> None:
    one, same, other = decoded(
        with_text("who", json.dumps(person) if isinstance(person, str) else str(person)),
        with_text("who", json.dumps(str(person))),
        with_text("who", '"somebody else"'),
    ).persons
    assert one == same != other


@pytest.mark.parametrize("text", ["9007199254740992", "9007199254740993", "18446744073709551617", "-9007199254740993"])
def test_a_number_that_a_float_would_change_is_refused(text: str) -> None:
    ends = {"low": -(2**52), "high": 2**52 - 1} if text[0] == "-" else {"low": 0, "high": 2**53 - 1}
    schema = Schema("who", (Number("age", **ends, integer=True),), (Number("pay", 2**53 - 9, 2**53 - 1, integer=True),))  # type: ignore[arg-type]
    values = [f'{{"who": 1, "age": {age}, "pay": {pay}}}'.encode() for age, pay in ((text, 2**53 - 1), (5, text))]
    batch = RecordBatch(Partition("raw", 0), np.arange(2), np.arange(2), [None] * 2, values)  # type: ignore[arg-type]
    refused = JsonCodec(schema, LIMIT).decode(batch).refused
    assert [(one.field, one.reason.code) for one in refused] == [("age", "out_of_domain"), ("pay", "out_of_domain")]


def test_an_object_that_is_null_has_no_public_value_in_it() -> None:
    schema = Schema("who", (Number("age", 0, 99),), public=("home.street",))
    values = [
        b'{"who": 1, "age": 1, "home": {"street": "s"}}',
        b'{"who": 2, "age": 2, "home": null}',
        b'{"who":3,"age":3}',
    ]
    places = np.arange(3)
    batch = RecordBatch(Partition("raw", 0), places, places, [None] * 3, values)  # type: ignore[arg-type]
    assert JsonCodec(schema, LIMIT).decode(batch).public[0].to_pylist() == ['"s"', "null", "null"]


TEXTS = st.one_of(
    st.sampled_from(
        ["1e400", "-0", "NaN", "01", "1.", r'"\ud800"', r'"\u0041"', "[1,]", "{}", "null", "5", '"a"', "7"]
    ),
    st.integers().map(str),
    st.integers(2**62, 2**70).map(str),
    st.floats().map(json.dumps),
    st.text(max_size=5).map(json.dumps),
    st.text(max_size=5).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.recursive(st.none() | st.booleans() | st.integers(), st.lists, max_leaves=5).map(json.dumps),
)
FIELDS = st.sampled_from(["who", "age", "home", "item", "trace", "other", r"\u0077ho"])
CITIES = st.sampled_from(['{"city":"a"}', '{"city":7,"street":"ß"}', '{"city":"b","city":"a"}', '{"city":[]}'])
RECORDS = st.one_of(
    st.binary(max_size=20),
    st.builds(with_text, FIELDS, TEXTS),
    st.builds(with_text, st.just("home"), CITIES),
    st.builds(
        lambda field, one, two: with_text(field, f'{one},"{field}":{two}'), FIELDS, TEXTS, TEXTS
    ),  # the same key twice
    st.builds(lambda place, byte: _spoilt(json.dumps(GOOD).encode(), place, byte), st.integers(0), st.integers(0, 255)),
)


def _spoilt(value: Any, place: Any, byte: Any) -> Any:
    place %= len(value)
    return value[:place] + bytes([byte]) + value[place + 1 :]


def meaning(events: Any, row: Any) -> Any:
    public = [column[row].as_py() for column in events.public]
    return events.persons[row], events.quasi[row].tolist(), events.sensitive[row].tolist(), public


@settings(max_examples=200)
@given(values=st.lists(RECORDS, min_size=1, max_size=8))
@example(values=[with_text("who", '"a","who":"b"'), with_text("who", '"b"')])
def test_a_record_means_the_same_alone_and_in_company_and_as_the_standard_library_reads_it(values: Any) -> None:
    together = decoded(*values)
    refused = {each.offset: (each.field, each.reason) for each in together.refused}
    assert sorted([*refused, *together.positions.tolist()]) == list(range(len(values)))
    for place, value in enumerate(values):
        alone = decoded(value)
        if place in refused:
            assert [(each.field, each.reason) for each in alone.refused] == [refused[place]]
            continue
        row = int(np.flatnonzero(together.positions == place)[0])
        assert meaning(together, row) == meaning(alone, 0)
        # The last of several equal keys counts, for the standard library too.
        record = json.loads(value, parse_constant=pytest.fail)
        assert math.isclose(together.quasi[row, 0], record["age"])
        assert DECODER._encoded.quasi[1].hierarchy.leaves[int(together.quasi[row, 1])] == str(record["home"]["city"])  # type: ignore[union-attr]
        assert together.persons[row] == decoded(with_text("who", json.dumps(str(record["who"])))).persons[0]
        for text, expected in zip(
            meaning(together, row)[-1], (record.get("trace"), record["home"].get("street")), strict=True
        ):
            assert json.loads(text) == expected
