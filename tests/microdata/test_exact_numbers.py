"""No number leaves with other digits than it came with: it is kept exactly, or refused."""

import json
import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from microdata import (
    Number,
    PersonSource,
    Publication,
    Schema,
    SchemaError,
    published_columns,
    read_published,
    read_table,
    write_published,
)
from tests.one_key import encode, encode_events

LARGEST = 2**53 - 1
WHOLE = Number("n", 0, LARGEST, integer=True)
AROUND = st.integers(-5, 5).flatmap(lambda near: st.sampled_from([0, 2**53, 2**54, 2**63, 10**15]).map(near.__add__))
WHOLES = st.one_of(AROUND, st.integers(-(2**62), 2**62), st.integers(0, 2**53))


@pytest.mark.parametrize(
    ("low", "high", "more", "said"),
    [
        (0, 2**53, {"integer": True}, "min and max must lie within ±9007199254740991"),
        (0, 2**53 + 1, {"integer": True}, "within ±9007199254740991.* given 0 … 9007199254740993"),
        (-(2**53), 0, {}, "within ±9007199254740991"),
        (-1.79e308, 1.79e308, {}, "within ±9007199254740991"),
        (0, 10**400, {}, r"within ±9007199254740991.*given 0 … 1\.00e\+400"),
        (-LARGEST, LARGEST, {"integer": True}, "max - min must be at most 9007199254740991"),
        (-1, LARGEST, {}, "max - min must be at most 9007199254740991"),
        (0, 5e-324, {}, r"max - min must be 0 or at least 1e-200"),
        (0, 100, {"step": 1e-320}, r"step must be at least 1.8e-13: .*, given 1e-320"),
        (0, 100, {"step": 10**400, "integer": True}, r"step must be at most 9007199254740991, given 1\.00e\+400"),
        (LARGEST - 1, LARGEST, {"step": 0.5}, "step must be at least 16"),
    ],
)
def test_a_domain_that_floats_cannot_hold_is_refused_with_what_works(low: Any, high: Any, more: Any, said: str) -> None:
    with pytest.raises(SchemaError, match=f"n: .*{said}"):
        Number("n", low, high, **more)


@pytest.mark.parametrize(
    "number",
    [
        WHOLE,
        Number("n", -(2**52), 2**52 - 1, integer=True),
        Number("n", -LARGEST, 0),
        Number("n", 0, 100, step=100 / 2**49),
        Number("n", 0, 1e-200),
    ],
)
def test_the_largest_and_finest_domains_work(number: Any) -> None:
    ends = np.array([number.low, number.high], float)
    if number.grid is not None:
        assert (number.floor(ends)[0], number.ceil(ends)[1]) == (number.low, number.high)
    encoded = encode(Schema(PersonSource.ROW, (number,)), pa.table({"n": ends}))
    written = published_columns(Publication.of(encoded.table, np.arange(2)))["n"].to_pylist()
    assert sorted(end for pair in written for end in pair) == [number.low, number.low, number.high, number.high]


def test_sensitive_domains_fit_their_codes() -> None:
    with pytest.raises(SchemaError, match=r"'pay' at most 2147483647 values .*, given 2147483648"):
        Schema("id", (WHOLE,), (Number("pay", 0, 2**31 - 1, integer=True),))


def test_weights_that_add_up_to_more_than_a_float_holds_are_refused() -> None:
    with pytest.raises(SchemaError, match="weights"):
        Schema("id", (Number("a", 0, 1), Number("b", 0, 1)), weights=(1e308, 1e308))


def columns_of(value: Any) -> Iterator[Any]:
    """The number as each type and text that can hold it."""
    if -(2**63) <= value < 2**63:
        yield pa.array([value], pa.int64())
    if 0 <= value < 2**64:
        yield pa.array([value], pa.uint64())
    yield pa.array([Decimal(value)], pa.decimal128(38, 0))
    yield pa.array([Decimal(value)], pa.decimal256(60, 9))
    yield pa.array([str(value)])
    yield pa.array([f" {value}.000 ".encode()])
    yield pa.array([str(value), "x"])[:1]


@given(WHOLES)
@example(2**53 + 1)
@example(2**53 - 1)
def test_whole_numbers_are_kept_or_refused_whatever_their_type(value: Any) -> None:
    for column in columns_of(value):
        encoded = encode(Schema(PersonSource.ROW, (WHOLE,)), pa.table({"n": column}))
        kept = [int(one) for one in encoded.table.quasi[:, 0]]
        assert kept == ([value] if 0 <= value <= LARGEST else []), column.type
        assert [code.code for _, code in encoded.refusals.counts()] == ([] if kept else ["out_of_domain"])


@given(st.lists(WHOLES, min_size=1, max_size=6), st.booleans())
def test_whole_numbers_in_events_are_kept_or_refused(values: Any, alike: bool) -> None:
    schema = Schema(PersonSource.ROW, (WHOLE,), (Number("s", LARGEST - 9, LARGEST, integer=True),))
    events = [{"n": value, "s": LARGEST} for value in values] + [{"n": 1, "s": LARGEST + 2}]
    events += [] if alike else [{"n": "7", "s": float(LARGEST)}]
    encoded = encode_events(schema, [json.dumps(event).encode() for event in events])
    fine = [value for value in values if 0 <= value <= LARGEST] + [7] * (not alike)
    assert [int(one) for one in encoded.table.quasi[:, 0]] == fine
    assert set(encoded.table.sensitive[:, 0].tolist()) <= {9}


@given(
    st.one_of(
        st.decimals(-1000, 1000, allow_nan=False, places=25).map(lambda one: format(one, "f")),
        st.floats(-1000, 1000).flatmap(lambda one: st.sampled_from([repr(one), f"{one:.17g}", f"{one:.60f}"])),
        st.decimals(-1000, 1000, allow_nan=False, places=6).map(lambda one: f"{one:f}000000000000000"),
        st.sampled_from(["1e-400", "-1e-400", "0.000", "0e-999", "1e-99999999999999999999"]),
    ),
    st.booleans(),
)
@example(text="30.00000000000000001", among_others=False)
@example(text="0.12345678901234567", among_others=True)
def test_texts_are_kept_to_the_last_digit_or_refused(text: Any, among_others: bool) -> None:
    column = pa.array([text, "x"] if among_others else [text])
    encoded = encode(Schema(PersonSource.ROW, (Number("n", -1000, 1000),)), pa.table({"n": column}))
    reasons = {reason.code for _, reason in encoded.refusals.counts()}
    assert len(encoded.table) or "not_exact" in reasons
    if len(text) > 20 and "e-" in text:
        assert "not_exact" in reasons or Decimal(text) == 0 or float(text) != 0
        return
    # Half a unit of the last digit that is written and not 0.
    digits = Decimal(text).as_tuple()
    zeros = len(digits.digits) - len("".join(map(str, digits.digits)).rstrip("0"))
    reach = Fraction(10) ** (digits.exponent + zeros) / 2  # type: ignore[operator]
    lost = abs(Fraction(float(text)) - Fraction(text)) > reach if Decimal(text) else False
    assert ("not_exact" in reasons) == lost
    assert lost or encoded.table.quasi[0, 0] == float(text)


@given(st.floats(-1e15, 1e15))
@example(2.0**-24)  # its shortest text rounds half of a unit up, %.16g rounds it down
@example(-(2.0**-24))
@example(2.0**-1074)
def test_every_float_that_is_written_out_is_taken(number: float) -> None:
    texts = [repr(number), f"{number:.17g}", f"{number:.17e}", f"{number:.400f}"]
    schema = Schema(PersonSource.ROW, (Number("n", -1e15, 1e15),))
    if 0 < abs(number) < 1e-300:
        texts = texts[:3]
    assert encode(schema, pa.table({"n": texts})).table.quasi[:, 0].tolist() == [number] * len(texts)


def test_sensitive_numbers_with_lost_digits_are_refused() -> None:
    schema = Schema(PersonSource.ROW, (WHOLE,), (Number("s", 0, 10, step=0.5),))
    encoded = encode(schema, pa.table({"n": [1, 2], "s": ["0.5", "0.50000000000000000001"]}))
    assert encoded.refusals.describe() == "s: more digits than are kept exactly in 1 row (2)"


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "arrow"])
def test_tables_of_every_format_refuse_what_they_would_change(tmp_path: Path, ending: str) -> None:
    values = [LARGEST, 2**53, 2**53 + 1, LARGEST - 1]
    path = tmp_path / f"table.{ending}"
    match ending:
        case "csv":
            path.write_text("\n".join(map(str, ["n", *values])))
        case "parquet":
            pa.parquet.write_table(pa.table({"n": values}), path)
        case "jsonl":
            path.write_text("\n".join(json.dumps({"n": value}) for value in values))
        case "arrow":
            with pa.ipc.new_file(path, pa.schema([("n", pa.int64())])) as file:
                file.write_table(pa.table({"n": values}))
    read = read_table(path, Schema(PersonSource.ROW, (WHOLE,)), on_refused="drop")
    assert read.table.quasi[:, 0].tolist() == [LARGEST, LARGEST - 1]
    assert read.refusals.describe() == "n: outside the declared domain in 2 rows (2, 3)"
    write_published(Publication.of(read.table, np.arange(2)), tmp_path / "safe.csv")
    safe = read_published(tmp_path / "safe.csv", read.table.schema)
    assert sorted(safe.boxes.lo[:, 0].tolist()) == [LARGEST - 1, LARGEST]


PUBLIC = st.recursive(
    st.none() | st.booleans() | WHOLES | st.integers(-(10**30), 10**30) | st.floats(-1e6, 1e6).map(lambda x: x + 0.0),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


def as_given(value: Any) -> Any:
    """A published public value as what was given: texts hold JSON where no column could."""
    return json.loads(value) if isinstance(value, str) else value


@given(st.lists(PUBLIC, min_size=1, max_size=5))
@example([1.5] * 20 + [2**53 + 1])
@example([[1.5]] * 20 + [[2**53 + 1]])
@example([2**64, 1])
@example([2**70])
def test_public_numbers_keep_all_digits(values: Any) -> None:
    schema = Schema(PersonSource.ROW, (Number("n", 0, 1),), public=("p",))
    events = [json.dumps({"n": 1, "p": value}).encode() for value in values]
    table = encode_events(schema, events).table
    assert [as_given(one) for one in table.public["p"].to_pylist()] == values  # type: ignore[index]


def persons(values: Any) -> Any:
    schema = Schema("id", (Number("n", 0, 1),))
    if not isinstance(values, pa.Array):
        return encode_events(schema, [json.dumps({"id": value, "n": 1}).encode() for value in values])
    return encode(schema, pa.table({"id": values, "n": [1] * len(values)}))


@pytest.mark.parametrize(
    "values",
    [
        [7.0] * 20 + [2**53, 2**53 + 1],
        [2**64 + 1, 2**64 + 2],
        [10**30, 10**30 + 1, "x"],
        pa.array([Decimal(2**53), Decimal(2**53 + 1)]),
        pa.array([Decimal("9007199254740992.00"), Decimal("9007199254740993.00")]),
    ],
)
def test_persons_with_long_numbers_are_told_apart(values: Any) -> None:
    found = persons(values)
    assert len(found.table) == len(values)
    wanted = len({str(value).removesuffix(".0") for value in values})
    assert len(np.unique(found.table.persons)) == wanted


def test_persons_named_by_floats_that_cannot_tell_neighbours_apart_are_refused() -> None:
    found = persons(pa.array([7.0, 2.0**53, math.inf]))
    assert found.refusals.describe() == (
        "id: wrong type in 1 row (3)\nid: more digits than are kept exactly in 1 row (2)"
    )
    assert persons(pa.array([Decimal("7.5")])).refusals.describe() == "id: wrong type in 1 row (1)"
    same = persons(pa.array([Decimal("7.0"), Decimal("7.00")])).table.persons
    assert same[0] == same[1]
