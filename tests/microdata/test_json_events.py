"""JSON events: the fast way and the slow way agree with each other and with a loop over values."""

import json
from typing import Any

import pyarrow as pa
import pyarrow.json as pa_json
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import (
    KEY,
    RECORD,
    Category,
    Hierarchy,
    Number,
    PersonSource,
    Reason,
    Schema,
    arrow_schema,
)
from microdata.events import _parsed_at_once
from tests.one_key import encode_each, encode_events

SCHEMA = Schema(
    "customer.id",
    (Number("age", 0, 120, integer=True), Category("sex", Hierarchy.flat(["F", "M", "1"]))),
    (Category("item", Hierarchy.flat(["book", "2"])),),
    ("shop",),
)
GOOD = {"customer": {"id": 7, "name": "x"}, "age": 31, "sex": "F", "item": "book", "shop": "a", "more": [1, {"b": 2}]}


def dumped(*events: Any) -> Any:
    return [json.dumps(event).encode() for event in events]


def rows(encoded: Any) -> Any:
    """Everything that an encoding says, comparable."""
    table, refusals = encoded.table, encoded.refusals
    public = table.public.to_pylist() if table.public is not None else None
    return (
        encoded.rows.tolist(),
        table.persons.tolist(),
        table.quasi.tolist(),
        table.sensitive.tolist(),
        public,
        list(zip(refusals.rows.tolist(), refusals.fields.tolist(), refusals.reasons.tolist(), strict=True)),
    )


SCALARS = st.none() | st.booleans() | st.integers(-3, 130) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = SCALARS | st.sampled_from(["F", "M", "1", "", "31", "x", [], [1], {}, {"id": 1}, 10**30, "book", "2", 2.0])
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "customer": st.fixed_dictionaries({}, optional={"id": VALUES, "name": VALUES}) | VALUES,
        "age": VALUES,
        "sex": VALUES,
        "item": VALUES,
        "shop": VALUES,
        "more": VALUES,
    },
)
PAYLOADS = EVENTS.map(lambda event: json.dumps(event).encode()) | st.sampled_from(
    [
        None,
        b"",
        b" ",
        b"null",
        b"5",
        b"[]",
        b"{",
        b'{"age":1}{"age":2}',
        b"{}\n{}",
        b"\xff",
        b'{"age":NaN}',
        b'{"a":"\xff"}',
    ]
)


@given(st.lists(PAYLOADS, max_size=8))
@settings(max_examples=100)
def test_each_event_is_judged_as_if_it_were_alone(payloads: Any) -> None:
    together = encode_events(SCHEMA, payloads)
    accepted, refused = {}, {}  # type: ignore[var-annotated]
    for row, person, quasi, sensitive in zip(*rows(together)[:4], strict=True):
        accepted[row] = (person, quasi, sensitive)
    for row, field, reason in rows(together)[5]:
        refused.setdefault(row, []).append((field, reason))
    assert sorted([*accepted, *refused]) == list(range(len(payloads)))
    for row, payload in enumerate(payloads):
        alone = rows(encode_each(SCHEMA, [payload], None))
        if row in accepted:
            assert accepted[row] == (alone[1][0], alone[2][0], alone[3][0])
        else:
            assert {field for field, _ in refused[row]} == {field for _, field, _ in alone[5]}


def expected_person(event: Any) -> Any:
    customer = event.get("customer")
    person = customer.get("id") if isinstance(customer, dict) else None
    fraction = isinstance(person, float) and not person.is_integer()
    if (customer is not None and not isinstance(customer, dict)) or isinstance(person, bool | list | dict) or fraction:
        return "wrong_type"
    return "missing" if person is None or person == "" else None


def expected_age(age: Any) -> Any:
    if age is None or age == "":
        return "missing"
    if isinstance(age, bool | list | dict):
        return "wrong_type"
    if isinstance(age, str) and not age.isdigit():
        return "not_a_number"
    if not float(age).is_integer():
        return "not_an_integer"
    return None if 0 <= float(age) <= 120 else "out_of_domain"


def expected_category(value: Any, leaves: Any) -> Any:
    if value is None or value == "":
        return "missing"
    if isinstance(value, list | dict):
        return "wrong_type"
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    return None if text in leaves and not isinstance(value, bool) else "unknown_category"


def expected(event: Any) -> Any:
    """Reasons by field, value by value."""
    found = {
        "customer.id": expected_person(event),
        "age": expected_age(event.get("age")),
        "sex": expected_category(event.get("sex"), {"F", "M", "1"}),
        "item": expected_category(event.get("item"), {"book", "2"}),
    }
    return {field: reason for field, reason in found.items() if reason}


@given(st.lists(EVENTS, min_size=1, max_size=6))
@settings(max_examples=100)
def test_reasons_agree_with_a_loop(events: Any) -> None:
    encoded = encode_events(SCHEMA, dumped(*events))
    found = [{} for _ in events]  # type: ignore[var-annotated]
    for row, field, reason in rows(encoded)[5]:
        found[row][SCHEMA.fields()[field]] = Reason(reason).code
    assert found == [expected(event) for event in events]


@given(
    st.lists(
        st.tuples(st.integers(0, 130), st.sampled_from(["F", "M", "x"]), st.text(max_size=3)), min_size=1, max_size=20
    )
)
def test_batches_of_like_events_are_parsed_at_once(people: Any) -> None:
    payloads = dumped(*({**GOOD, "age": age, "sex": sex, "shop": shop} for age, sex, shop in people))
    assert _parsed_at_once(SCHEMA, payloads) is not None
    assert rows(encode_events(SCHEMA, payloads)) == rows(encode_each(SCHEMA, payloads, None))


@pytest.mark.parametrize("field", ["customer", "age", "sex", "item", "shop"])
@pytest.mark.parametrize("value", [5, 2.5, "5", None, True, [1], {"id": "p"}])
def test_types_may_change_in_the_middle_of_a_batch(field: str, value: Any) -> None:
    payloads = dumped(*[GOOD] * 20, {**GOOD, field: value}, GOOD)
    together, apart = rows(encode_events(SCHEMA, payloads)), rows(encode_each(SCHEMA, payloads, None))
    assert together[:4] == apart[:4]
    assert together[5] == apart[5]


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (None, "tombstone"),
        (b"", "not_json"),
        (b"{", "not_json"),
        (b'{"age": 01}', "not_json"),
        (b'{"shop": "\xff"}', "not_json"),
        (b"[1]", "wrong_type"),
        (b"null", "wrong_type"),
        (b'"text"', "wrong_type"),
    ],
)
def test_what_is_no_event_is_refused_whole(payload: Any, reason: str) -> None:
    encoded = encode_events(SCHEMA, [*dumped(GOOD), payload, *dumped(GOOD)])
    assert encoded.rows.tolist() == [0, 2]
    assert encoded.refusals.fields.tolist() == [RECORD]
    assert Reason(encoded.refusals.reasons[0]).code == reason


def test_an_event_that_hides_another_one_shifts_nobody() -> None:
    two, blank = b'{"customer":{"id":1}}{"customer":{"id":2}}', b"   "
    encoded = encode_events(SCHEMA, [*dumped(GOOD), two, blank, *dumped({**GOOD, "age": 99})])
    assert encoded.rows.tolist() == [0, 3]
    assert encoded.table.quasi[:, 0].tolist() == [31, 99]


def test_keys_follow_their_events() -> None:
    schema = Schema(PersonSource.KEY, (Number("n", 0, 9),))
    encoded = encode_events(schema, [b'{"n":1}', b"x", b'{"n":2}', b'{"n":3}'], [b"a", b"b", None, b"a"])
    assert encoded.rows.tolist() == [0, 3]
    assert len(set(encoded.table.persons.tolist())) == 1
    assert encoded.refusals.fields.tolist() == [RECORD, KEY]


def test_nothing_in_nothing_out() -> None:
    assert rows(encode_events(SCHEMA, [])) == ([], [], [], [], [], [])


def test_numbers_too_large_for_machines_name_persons() -> None:
    payloads = dumped(*({**GOOD, "customer": {"id": number}} for number in (2**63, 2**63 + 1, 2**62, 2**63)))
    codes = encode_events(SCHEMA, payloads).table.persons.tolist()
    assert codes[0] == codes[3]
    assert len(set(codes)) == 3


def test_public_values_stay_what_they_are() -> None:
    # Arrow's parser makes a broken list of [null, 2]; it must be noticed, not passed on.
    for value in (5, 2.5, "x", True, None, [1, 2], [None, 2], {"a": 1}):
        encoded = encode_events(SCHEMA, dumped({**GOOD, "shop": value}))
        assert encoded.table.public.to_pylist() == [{"shop": value}]  # type: ignore[union-attr]
    mixed = encode_events(SCHEMA, dumped(*({**GOOD, "shop": value} for value in (5, "x", None, [1], True))))
    assert mixed.table.public.column("shop").to_pylist() == ["5", "x", None, "[1]", "true"]  # type: ignore[union-attr]


def test_the_arrow_schema_reads_declared_fields_only() -> None:
    assert arrow_schema(SCHEMA) == pa.schema(
        [
            ("customer", pa.struct([("id", pa.string())])),
            ("age", pa.float64()),
            ("sex", pa.string()),
            ("item", pa.string()),
            ("shop", pa.string()),
        ]
    )
    learned = arrow_schema(SCHEMA, [{**GOOD, "shop": None}, {**GOOD, "shop": 2.5}])
    assert learned.field("customer").type == pa.struct([("id", pa.int64())])
    assert learned.field("shop").type == pa.float64()
    assert arrow_schema(SCHEMA, [{"customer.id": "x"}]).names[0] == "customer.id"
    table = pa_json.read_json(
        pa.BufferReader(json.dumps(GOOD).encode()),
        parse_options=pa_json.ParseOptions(
            explicit_schema=learned.set(4, pa.field("shop", pa.string())), unexpected_field_behavior="ignore"
        ),
    )
    assert table.to_pylist() == [{"customer": {"id": 7}, "age": 31.0, "sex": "F", "item": "book", "shop": "a"}]


def test_no_value_is_in_any_report() -> None:
    secret = "Ms Secret"
    payloads = [*dumped({**GOOD, "age": secret, "sex": secret, "item": secret}), b"{" + secret.encode()]
    encoded = encode_events(SCHEMA, payloads)
    assert secret not in encoded.refusals.describe() + repr(encoded.refusals.counts())


@pytest.mark.parametrize("others", [0, 1, 20])
def test_what_is_nested_deeper_than_it_can_be_written_again_is_refused(others: int) -> None:
    schema = Schema("id", (Number("age", 0, 120),), (), ("note",))
    event = b'{"id": 1, "age": 3, "note": %s}'
    taken = encode_events(schema, [event % (b"[" * 200 + b"]" * 200), *[event % b"1"] * others])
    assert not len(taken.refusals)
    deep = encode_events(schema, [event % (b"[" * 300 + b"]" * 300), *[event % b"1"] * others])
    assert deep.refusals.counts() == {("(record)", Reason.NOT_JSON): 1}
