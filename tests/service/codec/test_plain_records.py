"""The scanner of plain records: what it takes means exactly what the slower decoder makes of it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import Number, Schema
from service.codec import JsonCodec
from service.codec.plain_json import PlainRecords
from service.kafka import Partition, RecordBatch
from service.policy import parse_policy
from tests.one_key import KEY
from tests.service.codec.test_event_decoder import GOOD, LIMIT, RECORDS, SCHEMA, with_text
from tests.service.worker.test_same_bytes import POLICY, payloads

ODD = parse_policy(POLICY.replace("EMIT", "tuples")).schema


def decoded(codec: Any, values: Any) -> Any:
    places = np.arange(len(values))
    return codec.decode(RecordBatch(Partition("raw", 0), places, places, [None] * len(values), list(values)))


def without_scanner(schema: Any, limit: Any) -> Any:
    codec = JsonCodec(schema, limit, person_key=KEY)
    codec._plain = PlainRecords(schema, -1)  # looks at no record
    return codec


def require_the_same(schema: Any, values: Any, limit: Any = LIMIT) -> None:
    one = decoded(JsonCodec(schema, limit, person_key=KEY), values)
    other = decoded(without_scanner(schema, limit), values)
    for name in ("positions", "persons", "quasi", "sensitive"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    for column, same in zip(one.public, other.public, strict=True):
        assert column.equals(same)
    assert one.refused == other.refused


def taken(schema: Any, *values: Any, limit: Any = LIMIT) -> Any:
    return PlainRecords(schema, limit).scan(values).taken.tolist()


@pytest.mark.slow
def test_odd_records_mean_the_same_with_and_without_it() -> None:
    values = [*payloads(), None, b"", b"\x00", b'{"who":"p"}\x00{}']
    require_the_same(ODD, values)
    for value in values:  # no company either
        require_the_same(ODD, [value])
    assert 100 < sum(taken(ODD, *values)) < len(values) - 100


@settings(max_examples=200, deadline=None)
@given(values=st.lists(RECORDS, min_size=1, max_size=8))
def test_records_of_strangers_mean_the_same_with_and_without_it(values: Any) -> None:
    require_the_same(SCHEMA, values)


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=7).map(lambda number: f"{number:f}"),
    st.integers().map(str),
    st.from_regex(r"-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,9})?([eE][+-]?[0-9]{1,2})?", fullmatch=True),
)


@settings(max_examples=300, deadline=None)
@given(numbers=st.lists(NUMBERS, min_size=1, max_size=5))
def test_numbers_are_the_nearest_floats(numbers: Any) -> None:
    schema = Schema("who", (Number("age", -(2.0**51), 2.0**51),))
    values = [f'{{"who":1,"age":{number}}}'.encode() for number in numbers]
    require_the_same(schema, values)
    events = decoded(JsonCodec(schema, LIMIT), values)
    assert events.quasi[:, 0].tolist() == [float(numbers[place]) + 0.0 for place in events.positions]


PLAIN = json.dumps(GOOD)


@pytest.mark.parametrize(
    "value",
    [
        PLAIN,
        json.dumps(GOOD, indent=2),
        json.dumps(dict(reversed(GOOD.items())), separators=(",", ":")),
        json.dumps(GOOD | {"who": "Zoë 😀"}, ensure_ascii=False),
        json.dumps(GOOD | {"who": -17, "trace": None, "age": 5.0}),
        json.dumps(GOOD | {"other": 'a "quoted"\n\\ text', "more": [{}, [], [1, {"a": [True, False, None]}], -0.5e-3]}),
        json.dumps({name: value for name, value in GOOD.items() if name != "trace"}),
        with_text("trace", "[" * 50 + "]" * 50).decode(),
    ],
)
def test_what_most_records_look_like_is_plain(value: Any) -> None:
    assert taken(SCHEMA, value.encode()) == [True]
    require_the_same(SCHEMA, [value.encode()])


def test_one_that_is_not_plain_costs_the_others_nothing() -> None:
    good = PLAIN.encode()
    values = [good, b"\xff", good, with_text("who", '"Zoë"'), None, good]
    assert taken(SCHEMA, *values) == [True, False, True, False, False, True]
    require_the_same(SCHEMA, values)


def test_at_the_limit_and_above() -> None:
    good = PLAIN.encode()
    assert taken(SCHEMA, good, limit=len(good)) == [True]
    assert taken(SCHEMA, good, limit=len(good) - 1) == [False]
    require_the_same(SCHEMA, [good], limit=len(good) - 1)


def test_the_example_is_plain_throughout() -> None:
    root = Path(__file__).parents[3] / "examples" / "orders"
    schema = parse_policy((root / "policy.yaml").read_text(), root).schema
    assert all(taken(schema, *(root / "orders.jsonl").read_bytes().splitlines()))
