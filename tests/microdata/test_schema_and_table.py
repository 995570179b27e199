"""Schemas that contradict themselves, and encoded tables as containers."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microdata import (
    Category,
    Hierarchy,
    Number,
    PersonSource,
    Schema,
    SchemaError,
    Table,
    seeded_words,
    system_words,
    words,
)

AGE = Number("age", 0, 9, integer=True)
TREE = Hierarchy.flat(["a", "b"])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Number("x", 0, math.inf), "x: the domain must be finite"),
        (lambda: Number("x", math.nan, 1), "x: the domain must be finite"),
        (lambda: Number("x", 2, 1), r"x: min must not exceed max, given 2 … 1"),
        (lambda: Number("x", 0, 1, step=0), "x: step must be a positive number, given 0"),
        (lambda: Number("x", 0, 1, step=math.nan), "step must be a positive number"),
        (lambda: Number("x", 0, 1.5, integer=True), "an integer domain has whole ends"),
        (lambda: Category("c", TREE, other="z"), "c: other must be a leaf of the hierarchy, given 'z'"),
        (lambda: Category("c", TREE, other="*"), "other must be a leaf"),
        (lambda: Schema("id", ()), "at least one quasi-identifier"),
        (lambda: Schema("id", (AGE, AGE)), "quasi: a field is already declared as quasi, given 'age'"),
        (lambda: Schema("age", (AGE,)), "quasi: a field is already declared as person, given 'age'"),
        (lambda: Schema("id", (AGE,), (), ("age",)), "public: a field is already declared as quasi, given 'age'"),
        (lambda: Schema("", (AGE,)), "person: a field name must not be empty"),
        (lambda: Schema("a..b", (AGE,)), "a field name must not be empty"),
        (lambda: Schema("age.id", (AGE,)), "a field contains another declared field, given 'age' and 'age.id'"),
        (lambda: Schema("id", (AGE,), (Number("pay", 0, 1),)), "'pay' is a real number without a step"),
        (lambda: Schema("id", (AGE,), weights=(1, 2)), "weights: one non-negative number per quasi-identifier"),
        (lambda: Schema("id", (AGE,), weights=(-1,)), "weights"),
        (lambda: Schema("id", (AGE,), weights=(0,)), "weights"),
    ],
)
def test_what_contradicts_itself(make: Any, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        make()


def test_fields_stand_in_the_order_of_roles() -> None:
    schema = Schema("id", (AGE, Category("c", TREE)), (Category("s", TREE),), ("shop",), (3, 1))
    assert schema.fields() == ("id", "age", "c", "s", "shop")
    assert schema.weights == (0.75, 0.25)
    assert Schema(PersonSource.KEY, (AGE,)).fields() == ("age",)


@pytest.mark.parametrize(
    ("number", "size"),
    [
        (Number("x", 0, 9, integer=True), 10),
        (Number("x", 0, 9, integer=True, step=3), 4),
        (Number("x", 0, 1, step=0.1), 11),
        (Number("x", 0, 1.05, step=0.1), 11),
        (Number("x", 3, 3, integer=True), 1),
        (Number("x", 0, 1), None),
    ],
)
def test_sizes_of_domains(number: Any, size: Any) -> None:
    assert number.size == size
    if size:
        assert len(number.values()) == size
        assert number.values()[-1] <= number.high


@given(
    st.floats(-1e6, 1e6) | st.integers(-1000, 1000) | st.decimals(-99, 99, places=3).map(float),
    st.sampled_from([0.1, 0.25, 1 / 3, 3, 7.5, 1e-3, 0.7]),
    st.integers(0, 40),
)
def test_grids_begin_at_the_domain_and_keep_to_themselves(low: Any, step: Any, count: int) -> None:
    number = Number("x", low, low + count * step, step=step)
    values = number.values()
    assert values[0] == number.low
    assert (np.diff(values) > 0).all()
    assert number.floor(values).tolist() == values.tolist()
    assert number.ceil(values).tolist() == np.minimum(values, number.high).tolist()


def test_a_domain_with_fourteen_digits_behind_the_point() -> None:
    number = Number("x", 32.67957492758791, 42.67957492758791, step=3)
    assert number.values()[0] == number.low
    assert number.floor(np.array([number.low]))[0] == number.low


def table(rows: int = 4) -> Any:
    schema = Schema("id", (AGE,), (Category("s", TREE),), ("shop",))
    public = pa.table({"shop": [f"s{row}" for row in range(rows)]})
    return Table(schema, np.arange(rows), np.arange(rows)[:, None] % 10.0, np.zeros((rows, 1), np.int32), public)  # type: ignore[arg-type]


def test_rows_are_taken_by_index_or_mask() -> None:
    whole = table()
    for rows in (np.array([2, 0]), np.array([True, False, True, False])):
        some = whole.take(rows)
        order = rows if rows.dtype != bool else np.flatnonzero(rows)
        assert some.persons.tolist() == order.tolist()
        assert some.quasi[:, 0].tolist() == order.tolist()
        assert some.public.column("shop").to_pylist() == [f"s{row}" for row in order]


def test_tables_are_put_together() -> None:
    both = Table.concat([table(2), table(3)])
    assert both.persons.tolist() == [0, 1, 0, 1, 2]
    assert both.public.column("shop").to_pylist() == ["s0", "s1", "s0", "s1", "s2"]  # type: ignore[union-attr]
    assert both.nbytes > both.quasi.nbytes


def test_columns_of_different_lengths_are_a_bug() -> None:
    whole = table()
    with pytest.raises(AssertionError):
        Table(whole.schema, whole.persons[1:], whole.quasi, whole.sensitive, whole.public)


def test_words() -> None:
    assert len(set(system_words(1000).tolist())) == 1000
    assert system_words(0).tolist() == []
    assert seeded_words(3)(5).tolist() == words(3)(5).tolist()
    assert seeded_words(3)(5).tolist() != seeded_words(4)(5).tolist()
    assert words(None) is system_words
    assert (system_words(1000) > 2**63).any()
