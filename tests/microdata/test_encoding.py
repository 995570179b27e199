"""Encoding against a loop over values, and each reason for refusing one."""

import math
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microdata import (
    KEY,
    Category,
    DataError,
    Hierarchy,
    Number,
    PersonKey,
    PersonSource,
    Reason,
    Refusals,
    Schema,
    decode,
)
from microdata._kernels import hash_texts
from tests.one_key import encode

COLOURS = Hierarchy.from_mapping({"any": {"warm": ["red", "orange"], "cold": ["blue"]}})
AGE = Number("age", 0, 120, integer=True)
COLOUR = Category("colour", COLOURS)
SCHEMA = Schema("id", (AGE, COLOUR), (Number("pay", 0, 10, step=0.1), Category("taste", COLOURS)), ("shop",))


def one_column(attribute: Any, column: Any, role: str = "quasi") -> Any:
    """Codes (None where refused) and reasons of one column."""
    filler = Number("filler", 0, 0)
    schema = Schema(PersonSource.ROW, (attribute,) if role == "quasi" else (filler,), (attribute,) * (role != "quasi"))
    table = pa.table({attribute.name: column, "filler": pa.array([0] * len(column))})
    encoded = encode(schema, table)
    codes = [None] * len(column)
    values = encoded.table.quasi[:, 0] if role == "quasi" else encoded.table.sensitive[:, 0]
    for row, code in zip(encoded.rows, values.tolist(), strict=True):
        codes[row] = code
    reasons = [None] * len(column)
    for row, reason in zip(encoded.refusals.rows, encoded.refusals.reasons, strict=True):
        reasons[row] = Reason(reason).code  # type: ignore[assignment]
    assert [code is None for code in codes] == [reason is not None for reason in reasons]
    return codes, reasons


def expected_number(text: Any) -> Any:
    """What a cell says, one at a time."""
    if not text:
        return "missing"
    stripped = text.strip(" \t\n\r\x0b\x0c")
    if stripped.lower().lstrip("+-") in {"nan", "inf", "infinity"}:
        return "not_finite"
    if "_" in text or not text.isascii():
        return "not_a_number"
    try:
        value = float(stripped)
    except ValueError:
        return "not_a_number"
    if not math.isfinite(value):
        return "not_finite"
    if value != int(value):
        return "not_an_integer"
    return value if 0 <= value <= 120 else "out_of_domain"


NUMBER_TEXTS = st.one_of(
    st.integers(-5, 130).map(str),
    st.floats(allow_nan=False).map(str),
    st.sampled_from(["", " 7", "7 ", "+7", "7.0", "1e1", ".5", "5.", "nan", "NaN", "-inf", "Infinity", "1e999", "-0"]),
    st.sampled_from(["x", "1_0", "0x10", "1,5", "1 2", "--1", "e5", "٣", "７", "1e", "true", "None", "+", "."]),
)


@given(st.lists(NUMBER_TEXTS, max_size=12))
def test_numbers_written_as_text(texts: Any) -> None:
    codes, reasons = one_column(AGE, pa.array(texts, pa.string()))
    for text, code, reason in zip(texts, codes, reasons, strict=True):
        assert expected_number(text) == (code if reason is None else reason), repr(text)


@given(st.lists(st.none() | st.sampled_from([*COLOURS.leaves, "any", "warm", "", " red", "Red", "grün"]), max_size=12))
def test_categories(values: Any) -> None:
    codes, reasons = one_column(COLOUR, pa.array(values, pa.string()))
    for value, code, reason in zip(values, codes, reasons, strict=True):
        if not value:
            assert reason == "missing"
        elif value.strip() in COLOURS.leaves:
            assert code == COLOURS.leaves.index(value.strip())
        else:
            assert reason == "unknown_category"


def test_spaces_around_a_label_are_part_of_it_neither_in_hierarchies_nor_in_data() -> None:
    trees = [
        Hierarchy.from_csv_text(" red ;warm; any\nblue; cold ;any\n"),
        Hierarchy.from_mapping({"any ": {" warm": [" red "], "cold": ["blue"]}}),
        Hierarchy.from_rows([[" red", "any"], ["blue ", " any"]]),
    ]
    for tree in trees:
        for role in ("quasi", "sensitive"):
            colour = Category("colour", tree, other="blue ")
            for column in (pa.array([" red", "red ", "  ", "x"]), pa.array([b"\tred", b" red ", b" ", b"y"])):
                assert one_column(colour, column, role) == ([0, 0, None, 1], [None, None, "missing", None])


def test_other_takes_unknown_categories_but_not_missing_ones() -> None:
    colour = Category("colour", COLOURS, other="blue")
    assert one_column(colour, pa.array(["red", "pink", None, ""])) == (
        [0, 2, None, None],
        [None, None, "missing", "missing"],
    )


@pytest.mark.parametrize(
    ("column", "codes", "reasons"),
    [
        (pa.array([1, None, 200], pa.int64()), [1, None, None], [None, "missing", "out_of_domain"]),
        (pa.array([1.5, math.nan, math.inf]), [None] * 3, ["not_an_integer", "not_finite", "not_finite"]),
        (pa.array([-0.0]), [0], [None]),
        (pa.array([2**63], pa.uint64()), [None], ["out_of_domain"]),
        (pa.array([Decimal("7.0")]), [7], [None]),
        (pa.array([True, None]), [None, None], ["wrong_type", "missing"]),
        (pa.array([[1], None]), [None, None], ["wrong_type", "missing"]),
        (pa.array([{"a": 1}]), [None], ["wrong_type"]),
        (pa.array([date(2024, 1, 31)]), [None], ["wrong_type"]),
        (pa.array([None, None]), [None, None], ["missing", "missing"]),
        (pa.array([b"7", b"\xff"]), [7, None], [None, "not_utf8"]),
        (pa.array(["7", "8", "7"]).dictionary_encode(), [7, 8, 7], [None] * 3),
        (pa.array(["7"], pa.large_string()), [7], [None]),
        (pa.array(["7"], pa.string_view()), [7], [None]),
        (pa.chunked_array([["7"], ["x", None]]), [7, None, None], [None, "not_a_number", "missing"]),
        (pa.array([], pa.string()), [], []),
    ],
)
def test_numbers_of_every_type(column: Any, codes: Any, reasons: Any) -> None:
    assert one_column(AGE, column) == (codes, reasons)


@pytest.mark.parametrize(
    ("column", "codes", "reasons"),
    [
        (pa.array([1, 5, None]), [0, None, None], [None, "unknown_category", "missing"]),
        (pa.array([1.0, math.nan, 2.5]), [0, None, 2], [None, "missing", None]),
        (pa.array([True, False]), [1, None], [None, "unknown_category"]),
        (pa.array([date(2024, 1, 31)]), [3], [None]),
        (pa.array([datetime(2024, 1, 31, 23, 59, tzinfo=UTC)]), [3], [None]),
        (pa.array([b"1", b"\xff", None]), [0, None, None], [None, "not_utf8", "missing"]),
        (pa.array([["1"], None]), [None, None], ["wrong_type", "missing"]),
        (pa.array([None]), [None], ["missing"]),
        (pa.array(["1", None, "1"]).dictionary_encode(), [0, None, 0], [None, "missing", None]),
    ],
)
def test_categories_of_every_type(column: Any, codes: Any, reasons: Any) -> None:
    tree = Hierarchy.flat(["1", "true", "2.5", "2024-01-31"])
    assert one_column(Category("x", tree), column) == (codes, reasons)


def test_sensitive_numbers_become_places_on_their_grid() -> None:
    pay = Number("pay", -1, 1, step=0.1)
    values = [round(-1 + 0.1 * place, 1) for place in range(21)]
    assert one_column(pay, pa.array(values), "sensitive") == (list(range(21)), [None] * 21)
    assert one_column(pay, pa.array([0.05, 1.1, -0.0]), "sensitive") == (
        [None, None, 10],
        ["not_on_step", "out_of_domain", None],
    )
    assert pay.values().tolist() == values


def test_a_row_with_several_faults_is_told_for_each() -> None:
    rows = pa.table({"id": [None], "age": [300], "colour": ["x"], "pay": [0.05], "taste": ["y"], "shop": [None]})
    encoded = encode(SCHEMA, rows)
    assert len(encoded.table) == 0
    assert encoded.refusals.counts() == {
        ("id", Reason.MISSING): 1,
        ("age", Reason.OUT_OF_DOMAIN): 1,
        ("colour", Reason.UNKNOWN_CATEGORY): 1,
        ("pay", Reason.NOT_ON_STEP): 1,
        ("taste", Reason.UNKNOWN_CATEGORY): 1,
    }
    assert encoded.refusals.row_count == 1
    assert encoded.refusals.first_per_row().fields.tolist() == [0]


def test_accepted_rows_keep_their_order_and_values_and_decode_again() -> None:
    rows = pa.table(
        {
            "undeclared": [9, 9, 9],
            "shop": ["s1", "s2", "s3"],
            "taste": ["red", "blue", "blue"],
            "pay": [0.3, 9.9, 10],
            "colour": ["blue", "nope", "orange"],
            "age": [1, 2, 3],
            "id": ["p", "q", "r"],
        }
    )
    encoded = encode(SCHEMA, rows)
    assert encoded.rows.tolist() == [0, 2]
    assert decode(encoded.table).to_pylist() == [
        {"age": 1, "colour": "blue", "pay": 0.3, "taste": "red", "shop": "s1"},
        {"age": 3, "colour": "orange", "pay": 10, "taste": "blue", "shop": "s3"},
    ]


def persons(column: Any) -> Any:
    schema = Schema("id", (Number("filler", 0, 0),))
    return encode(schema, pa.table({"id": column, "filler": pa.array([0] * len(column))}))


def test_persons_that_read_alike_are_one() -> None:
    texts = persons(pa.array(["5", "6", "5", "05", "5 "])).table.persons
    assert texts[0] == texts[2]
    assert len(set(texts.tolist())) == 4
    for column in (
        pa.array([5, 6]),
        pa.array([5.0, 6.0]),
        pa.array([b"5", b"6"]),
        pa.array(["5", "6"], pa.large_string()),
    ):
        assert persons(column).table.persons.tolist() == texts[:2].tolist()
    assert persons(pa.array(["x", "5", "6"]).slice(1)).table.persons.tolist() == texts[:2].tolist()


@pytest.mark.parametrize(
    ("column", "reasons"),
    [
        (pa.array(["", None, "a"]), ["missing", "missing"]),
        (pa.array([2.5, math.nan, math.inf, 3.0]), ["wrong_type", "missing", "wrong_type"]),
        (pa.array([True, None]), ["wrong_type", "missing"]),
        (pa.array([[1]]), ["wrong_type"]),
        (pa.array([datetime(2024, 1, 1, tzinfo=UTC)]), ["wrong_type"]),
        (pa.array([b"\xff", b"a"]), ["not_utf8"]),
    ],
)
def test_what_names_no_person(column: Any, reasons: Any) -> None:
    assert [Reason(reason).code for reason in persons(column).refusals.reasons] == reasons


def test_persons_from_keys_and_rows() -> None:
    rows = pa.table({"age": [1, 2, 3]})
    by_key = encode(Schema(PersonSource.KEY, (AGE,)), rows, keys=[b"a", None, b"a"])
    assert by_key.rows.tolist() == [0, 2]
    assert len(set(by_key.table.persons.tolist())) == 1
    assert by_key.refusals.fields.tolist() == [KEY]
    assert by_key.refusals.describe() == "(key): missing value in 1 row (2)"
    assert encode(Schema(PersonSource.KEY, (AGE,)), rows).refusals.row_count == 3


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=8))
def test_the_hash_is_siphash_as_python_has_it(texts: Any) -> None:
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    data = np.frombuffer(b"".join(texts), np.uint8)
    ours = hash_texts(offsets, data, np.zeros(2, np.uint64)).tolist()
    assert ours == [siphash13(text) for text in texts]


def siphash13(data: Any) -> Any:
    mask = 2**64 - 1
    v = [0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573]

    def rotate(word: Any, by: Any) -> Any:
        return (word << by | word >> (64 - by)) & mask

    def mix() -> None:
        v[0] = (v[0] + v[1]) & mask
        v[1] = rotate(v[1], 13) ^ v[0]
        v[0] = rotate(v[0], 32)
        v[2] = (v[2] + v[3]) & mask
        v[3] = rotate(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & mask
        v[3] = rotate(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & mask
        v[1] = rotate(v[1], 17) ^ v[2]
        v[2] = rotate(v[2], 32)

    whole = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) & 255])
    for begin in range(0, len(whole), 8):
        word = int.from_bytes(whole[begin : begin + 8], "little")
        v[3] ^= word
        mix()
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(3):
        mix()
    code = v[0] ^ v[1] ^ v[2] ^ v[3]
    return code - 2**64 if code >= 2**63 else code


def test_codes_hang_on_the_key_alone() -> None:
    key, other = PersonKey.random(), PersonKey.random()
    schema, rows = Schema("id", (AGE,)), pa.table({"id": ["a", "b", "a"], "age": [1, 2, 3]})
    codes = [encode(schema, rows, person_key=one).table.persons.tolist() for one in (key, key, other)]
    assert codes[0] == codes[1]
    assert codes[0][0] == codes[0][2] != codes[0][1]
    assert not set(codes[0]) & set(codes[2])


@pytest.mark.slow
def test_a_key_is_handed_over_and_not_shown() -> None:
    key = PersonKey.random()
    script = (
        "import sys, pyarrow as pa; from microdata import *;"
        "key = PersonKey.from_bytes(bytes.fromhex(sys.argv[1]));"
        "schema, rows = Schema('id', (Number('age', 0, 9),)), pa.table({'id': ['a'], 'age': [1]});"
        "print(encode(schema, rows, person_key=key).table.persons[0])"
    )
    said = subprocess.run([sys.executable, "-c", script, bytes(key).hex()], capture_output=True, text=True, check=True)
    rows = pa.table({"id": ["a"], "age": [1]})
    own = encode(Schema("id", (Number("age", 0, 9),)), rows, person_key=key).table.persons[0]
    assert said.stdout.strip() == str(own)
    assert str(key.words[0]) not in repr(key)
    with pytest.raises(ValueError, match="16 bytes"):
        PersonKey.from_bytes(b"short")


def test_rows_are_persons_by_where_they_are() -> None:
    schema, rows = Schema(PersonSource.ROW, (AGE,)), pa.table({"age": [1, 222, 3]})
    assert encode(schema, rows).table.persons.tolist() == [0, 2]
    assert encode(schema, rows, positions=np.array([7, 8, 9])).table.persons.tolist() == [7, 9]


def test_nested_fields_and_columns_with_dots() -> None:
    schema = Schema("customer.id", (Number("customer.home.size", 0, 9),), (), ("customer.shop",))
    customers = [
        {"id": 1, "home": {"size": 3}, "shop": "a"},
        {"id": 2, "home": None, "shop": "b"},
        None,
        {"id": 4, "home": {"size": 4}, "shop": None},
    ]
    nested = encode(schema, pa.table({"customer": pa.array(customers)}))
    flat = encode(
        schema, pa.table({"customer.id": [1, 4], "customer.home.size": ["3", "4"], "customer.shop": ["a", None]})
    )
    for encoded in (nested, flat):
        assert encoded.table.quasi.tolist() == [[3], [4]]
        assert encoded.table.public.to_pylist() == [{"customer.shop": "a"}, {"customer.shop": None}]  # type: ignore[union-attr]
    assert nested.table.persons.tolist() == flat.table.persons.tolist()
    assert nested.refusals.counts() == {
        ("customer.id", Reason.MISSING): 1,
        ("customer.home.size", Reason.MISSING): 2,
    }


def test_a_declared_field_without_a_column_is_missing_everywhere() -> None:
    encoded = encode(SCHEMA, pa.table({"id": ["a"], "age": [1], "colour": ["red"], "pay": [1], "shop": ["s"]}))
    assert encoded.refusals.counts() == {("taste", Reason.MISSING): 1}
    wrong_shape = encode(Schema("a.b", (AGE,)), pa.table({"a": [1], "age": [1]}))
    assert wrong_shape.refusals.counts() == {("a.b", Reason.MISSING): 1}


def test_a_declared_column_that_is_there_twice_is_an_error() -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array(["a"])], names=["age", "age", "id"])
    with pytest.raises(DataError, match="'age' is there 2 times"):
        encode(Schema("id", (AGE,)), twice)


def test_reports_count_all_and_show_a_few() -> None:
    rows = pa.table({"id": ["a"] * 50, "age": [999] * 50})
    report = encode(Schema("id", (AGE,)), rows).refusals.describe()
    assert report == "age: outside the declared domain in 50 rows (1, 2, 3, …)"
    assert Refusals.none(SCHEMA).describe() == ""
    assert Refusals.none(SCHEMA).counts() == {}


def test_codes_are_stable_and_complete() -> None:
    assert [(reason.value, reason.code) for reason in Reason] == [
        (1, "missing"),
        (2, "not_a_number"),
        (3, "not_finite"),
        (4, "out_of_domain"),
        (5, "not_an_integer"),
        (6, "not_on_step"),
        (7, "unknown_category"),
        (8, "wrong_type"),
        (9, "not_utf8"),
        (10, "wrong_shape"),
        (11, "not_json"),
        (12, "too_large"),
        (13, "tombstone"),
        (14, "not_an_interval"),
        (15, "unknown_label"),
        (16, "not_exact"),
        (17, "malformed"),
        (18, "unknown_schema"),
        (19, "other_schema"),
        (20, "other_partition"),
    ]
    assert all(reason.sentence for reason in Reason)


def test_a_wide_key_adds_a_second_code_that_says_the_same_in_other_words() -> None:
    """Persons whom 64 bits cannot tell apart are told apart by another 64; refused rows have neither."""
    schema = Schema("id", (Number("age", 0, 120),))
    events = pa.table({"id": ["a", "b", "a", None, "c"], "age": [1, 2, 3, 4, 500]})
    key = PersonKey.from_bytes(bytes(range(16)))
    narrow, wide = (encode(schema, events, person_key=one) for one in (key, key.wide()))
    assert narrow.more is None
    assert wide.more is not None
    assert wide.table.persons.tolist() == narrow.table.persons.tolist()
    first, second, third = wide.more.tolist()
    assert first == third != second
    assert not set(wide.more.tolist()) & set(wide.table.persons.tolist())
    again = encode(schema, events.slice(0, 1), person_key=PersonKey.from_bytes(bytes(range(16))).wide())
    assert again.more is not None
    assert again.more.tolist() == [first], "in every process"
    assert bytes(key.wide()) == bytes(key)
