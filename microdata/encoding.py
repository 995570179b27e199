"""From Arrow columns to encoded rows, in bulk.

Texts are dictionary-encoded, so that Python looks at each distinct value once; numbers are cast and checked as whole
columns. What the schema does not allow is refused with field and reason: no value raises, and no message carries one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from microdata._kernels import hash_texts
from microdata.columns import distinct, field_column, is_absent, is_text, is_valid, texts
from microdata.persons import PersonKey
from microdata.refusals import KEY, Reason, Refusals
from microdata.schema import LARGEST, Attribute, Category, PersonSource, Schema
from microdata.table import Table

Layers: TypeAlias = Sequence[pa.Array]
"""One field as arrays of one type each; a row has its value in at most one of them. Public fields have one layer."""
Reasons: TypeAlias = NDArray[np.int8]
"""Reason per value, 0 where it is fine."""

_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_NOT_FINITE = re.compile(r"\s*[+-]?(nan|inf|infinity)\s*", re.ASCII | re.IGNORECASE)
# A value counts as on the grid when it misses it by less than this share of a step: decimal steps are not binary.
_ON_GRID = 1e-6
# Up to so many characters, a number that is not 0 has no digit that float64 could lose.
_SURELY_KEPT = 15
# No float64 has more digits than this.
_MOST_DIGITS = 767


@dataclass(frozen=True, eq=False)
class RejectedRows:
    """What rejected rows show of the persons whom they name; rows whose person cannot be read are left out."""

    rows: NDArray[np.int64]
    """Index of each in the input, ascending."""
    persons: NDArray[np.int64]
    quasi: NDArray[np.float64]
    """The quasi-identifiers; NaN where a value cannot be read or the schema does not allow it."""
    more: NDArray[np.int64] | None = None
    """The second code of each person, where the key has a second one."""

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, rows: NDArray[np.int64]) -> RejectedRows:
        """Return the same where the input's rows have these numbers."""
        return replace(self, rows=rows[self.rows])

    def take(self, chosen: NDArray[Any]) -> RejectedRows:
        """Return the rows at these indexes, or where this mask is true."""
        more = None if self.more is None else self.more[chosen]
        return RejectedRows(self.rows[chosen], self.persons[chosen], self.quasi[chosen], more)

    @staticmethod
    def concat(width: int, parts: Sequence[RejectedRows]) -> RejectedRows:
        """Return the rows of several parts in ascending order; `width` is the number of quasi-identifiers."""
        nothing = RejectedRows(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, width)))
        parts = [part for part in parts if len(part)] or [nothing]
        more = [part.more for part in parts if part.more is not None]
        joined = RejectedRows(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.persons for part in parts]),
            np.concatenate([part.quasi for part in parts]),
            np.concatenate(more) if more else None,
        )
        return joined.take(np.argsort(joined.rows, kind="stable"))


@dataclass(frozen=True, eq=False)
class Encoded:
    """Rows that the schema accepts, and what it refused."""

    table: Table
    rows: NDArray[np.int64]
    """Index in the input of each accepted row."""
    refusals: Refusals
    more: NDArray[np.int64] | None = None
    """Of each accepted row the second code of its person, where the key has a second one."""
    rejected: RejectedRows | None = None
    """The rejected rows that name a person; None where there are none, or where every row is another person."""

    def shifted(self, offset: int) -> Encoded:
        """The same rows where `offset` others come before them in the input."""
        if not offset:
            return self
        rejected = self.rejected and replace(self.rejected, rows=self.rejected.rows + offset)
        return replace(self, rows=self.rows + offset, refusals=self.refusals.shifted(offset), rejected=rejected)

    @staticmethod
    def concat(schema: Schema, parts: Sequence[Encoded]) -> Encoded:
        """All rows and refusals of these parts."""
        if not parts:
            parts = [encode(schema, pa.table({}), person_key=PersonKey.random())]
        return Encoded(
            Table.concat([part.table for part in parts]),
            np.concatenate([part.rows for part in parts]),
            Refusals.concat(schema, [part.refusals for part in parts]),
            rejected=RejectedRows.concat(len(schema.quasi), [part.rejected for part in parts if part.rejected]),
        )


def encode(
    schema: Schema,
    columns: pa.Table | pa.RecordBatch,
    keys: Sequence[bytes | None] | None = None,
    *,
    person_key: PersonKey,
    positions: NDArray[np.int64] | None = None,
) -> Encoded:
    """Encode the declared fields of these columns.

    A dotted field is a path into structs, or a column of that very name. A declared field that has no column is missing
    in every row. `keys` are the record keys, needed where the schema takes the person from them. Persons of several
    batches are the same only under the same `person_key`. `positions` tell where the rows are in their table or stream
    (from 0, where it is all here): where every row is another person, that is who it is.

    >>> from microdata import Category, Hierarchy, Number, PersonKey, Schema
    >>> schema = Schema("id", (Number("age", 0, 120), Category("sex", Hierarchy.flat(["F", "M"]))))
    >>> events = pa.table({"id": ["a", "b", "c"], "age": [31, 222, 50], "sex": ["F", "F", "M"]})
    >>> encoded = encode(schema, events, person_key=PersonKey.random())
    >>> encoded.table.quasi
    array([[31.,  0.],
           [50.,  1.]])
    >>> print(encoded.refusals.describe())
    age: outside the declared domain in 1 row (2)
    """
    fields = {name: [field_column(columns, name)] for name in schema.fields()}
    return encode_layers(schema, fields, columns.num_rows, keys, person_key=person_key, positions=positions)


def encode_layers(
    schema: Schema,
    fields: Mapping[str, Layers],
    rows: int,
    keys: Sequence[bytes | None] | None = None,
    *,
    person_key: PersonKey,
    positions: NDArray[np.int64] | None = None,
) -> Encoded:
    """Encode fields whose values may be of several types."""
    found: list[tuple[int, Reasons]] = []
    more = None
    if schema.person is PersonSource.ROW:
        persons = np.arange(rows) if positions is None else np.array(positions, np.int64)
        assert len(persons) == rows, "one position per row"
    else:
        persons, more = _persons(schema.person, fields, rows, keys, person_key, found)
    position = int(isinstance(schema.person, str))
    quasi = np.empty((rows, len(schema.quasi)))
    for column, attribute in enumerate(schema.quasi):
        quasi[:, column], reasons = _merged(partial(_values, attribute), fields[attribute.name])
        found.append((position + column, reasons))
    position += len(schema.quasi)
    sensitive = np.empty((rows, len(schema.sensitive)), np.int32)
    for column, attribute in enumerate(schema.sensitive):
        sensitive[:, column], reasons = _merged(partial(sensitive_codes, attribute), fields[attribute.name])
        found.append((position + column, reasons))
    position += len(schema.sensitive)
    public = {}
    for column, name in enumerate(schema.public):
        public[name], reasons = public_values(fields[name][0])
        found.append((position + column, reasons))
    return _accepted(Table(schema, persons, quasi, sensitive, pa.table(public) if public else None), found, more)


def rejected_by_key(
    schema: Schema, rows: NDArray[np.int64], keys: Sequence[bytes | None] | None, person_key: PersonKey
) -> RejectedRows | None:
    """Return what records show that were rejected as a whole: their persons, if the schema takes these from the key."""
    if schema.person is not PersonSource.KEY or keys is None or not len(rows):
        return None
    return _unreadable(schema, rows, {}, keys, person_key)


def rejected_by_field(
    schema: Schema, rows: NDArray[np.int64], persons: pa.Array, person_key: PersonKey
) -> RejectedRows | None:
    """Return what records show of which only the field that names the person could be read."""
    if not isinstance(schema.person, str) or not len(rows):
        return None
    return _unreadable(schema, rows, {schema.person: [persons]}, None, person_key)


def _unreadable(
    schema: Schema,
    rows: NDArray[np.int64],
    fields: Mapping[str, Layers],
    keys: Sequence[bytes | None] | None,
    person_key: PersonKey,
) -> RejectedRows | None:
    every: dict[str, Layers] = {name: [pa.nulls(len(rows))] for name in schema.fields()} | dict(fields)
    rejected = encode_layers(schema, every, len(rows), keys, person_key=person_key).rejected
    return rejected and rejected.at(rows)


def public_values(column: pa.Array) -> tuple[pa.Array, Reasons]:
    """Public values pass as they are, but bytes only as the text that they are."""
    return texts(column) if is_text(column.type) else (column, np.zeros(len(column), np.int8))


def _merged(
    function: Callable[[pa.Array], tuple[NDArray[Any], Reasons]], layers: Layers
) -> tuple[NDArray[Any], Reasons]:
    """Encode every layer and take each row from the one that holds its value."""
    values, reasons = function(layers[0])
    for layer in layers[1:]:
        more, why = function(layer)
        own = is_valid(layer)
        values, reasons = np.where(own, more, values), np.where(own, why, reasons)
    return values, reasons


def _accepted(table: Table, found: list[tuple[int, Reasons]], more: NDArray[np.int64] | None) -> Encoded:
    """Split rows into those without any reason and refusals."""
    parts = []
    for field, reasons in found:
        bad = np.flatnonzero(reasons)
        if len(bad):
            parts.append(Refusals(table.schema, bad, np.full(len(bad), field, np.int16), reasons[bad]))
    if not parts:
        return Encoded(table, np.arange(len(table)), Refusals.none(table.schema), more)
    refusals = Refusals.concat(table.schema, parts)
    accepted = np.ones(len(table), bool)
    accepted[refusals.rows] = False
    rows = np.flatnonzero(accepted)
    rejected = None if table.schema.person is PersonSource.ROW else _rejected(table, found, more, ~accepted)
    return Encoded(table.take(rows), rows, refusals, None if more is None else more[rows], rejected)


def _rejected(
    table: Table, found: list[tuple[int, Reasons]], more: NDArray[np.int64] | None, wanted: NDArray[np.bool_]
) -> RejectedRows:
    """What rejected rows show of their persons. Reasons stand in the order of the fields, the person first."""
    (_, of_person), *others = found
    rows = np.flatnonzero(wanted & (of_person == 0))
    quasi = table.quasi[rows]
    for column, (_, reasons) in enumerate(others[: quasi.shape[1]]):
        quasi[reasons[rows] > 0, column] = np.nan
    return RejectedRows(rows, table.persons[rows], quasi, None if more is None else more[rows])


def _persons(
    person: str | PersonSource,
    fields: Mapping[str, Layers],
    rows: int,
    keys: Sequence[bytes | None] | None,
    person_key: PersonKey,
    found: list[tuple[int, Reasons]],
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Code of each row's person, and the second where there is one; what is refused is added to `found`."""
    second = person_key.second
    if not isinstance(person, str):
        values = pa.nulls(rows, pa.binary()) if keys is None else pa.array(keys, pa.binary())
        assert len(values) == rows, "one key per row"
        found.append((KEY, np.where(is_absent(values), Reason.MISSING, 0).astype(np.int8)))
        return _person_codes(values, person_key), None if second is None else _person_codes(values, second)
    codes, reasons = _merged(partial(encode_persons, person_key), fields[person])
    found.append((0, reasons))
    return codes, None if second is None else _merged(partial(encode_persons, second), fields[person])[0]


def encode_persons(person_key: PersonKey, column: pa.Array) -> tuple[NDArray[np.int64], Reasons]:
    """Code of the person that each value of a column names."""
    values, reasons = _named_persons(column)
    return _person_codes(values, person_key), reasons


def person_names(layers: Layers) -> tuple[NDArray[np.object_], Reasons]:
    """Return the bytes that name each row's person, equal for equal values of any type, and reasons for the rest.

    `encode` gives a record key with these bytes the code that a person field with this value gets.
    """

    def names(column: pa.Array) -> tuple[NDArray[np.object_], Reasons]:
        values, reasons = _named_persons(column)
        return np.array(values.cast(pa.large_binary()).to_pylist(), object), reasons

    return _merged(names, layers)


def _named_persons(column: pa.Array) -> tuple[pa.Array, Reasons]:
    values, reasons = _person_texts(column)
    reasons[is_absent(values) & (reasons == 0)] = Reason.MISSING
    return values, reasons


def _person_texts(column: pa.Array) -> tuple[pa.Array, Reasons]:
    """Persons are named by texts or whole numbers, never by fractions, truth values or times."""
    kind = column.type
    values, reasons = texts(column)
    if pa.types.is_floating(kind):
        numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        # Beyond, neighbouring persons have one number.
        reasons[np.abs(numbers) > LARGEST] = Reason.NOT_EXACT
        reasons[np.isfinite(numbers) & (np.floor(numbers) != numbers)] = Reason.WRONG_TYPE
        reasons[np.isinf(numbers)] = Reason.WRONG_TYPE
    elif pa.types.is_decimal(kind):
        broken = pc.fill_null(pc.match_substring(values, "."), fill_value=False)
        reasons[broken.to_numpy(zero_copy_only=False)] = Reason.WRONG_TYPE
    elif pa.types.is_boolean(kind) or pa.types.is_temporal(kind):
        reasons[is_valid(column)] = Reason.WRONG_TYPE
    return values, reasons


def _person_codes(values: pa.Array, person_key: PersonKey) -> NDArray[np.int64]:
    wide = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    _, offsets, data = values.buffers()
    if not len(values) or offsets is None:
        return np.empty(0, np.int64)
    bounds: NDArray[np.integer] = np.frombuffer(offsets, np.int64 if wide else np.int32)
    starts = bounds[values.offset : values.offset + len(values) + 1]
    content = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return hash_texts(starts, content, person_key.words)


def _values(attribute: Attribute, column: pa.Array) -> tuple[NDArray[Any], Reasons]:
    """Numbers as they are, categories as leaf indexes."""
    if isinstance(attribute, Category):
        return _leaves(attribute, column)
    values, reasons = _numbers(column)
    fine = reasons == 0
    reasons[fine & ~np.isfinite(values)] = Reason.NOT_FINITE
    if attribute.integer:
        reasons[(reasons == 0) & (np.floor(values) != values)] = Reason.NOT_AN_INTEGER
    if attribute.capped:
        values = np.where(reasons == 0, np.minimum(values, attribute.high), values)
    # What is too long is judged by its nearest float: that does not lead over the end of a domain.
    known = (reasons == 0) | (reasons == Reason.NOT_EXACT)
    reasons[known & ((values < attribute.low) | (values > attribute.high))] = Reason.OUT_OF_DOMAIN
    return values, reasons


def sensitive_codes(attribute: Attribute, column: pa.Array) -> tuple[NDArray[Any], Reasons]:
    """Categories as leaf indexes, numbers as indexes on their grid."""
    values, reasons = _values(attribute, column)
    if isinstance(attribute, Category):
        return values, reasons
    assert attribute.grid is not None, "the schema asks for a grid"
    steps = np.where(reasons == 0, values - attribute.low, 0.0) / attribute.grid
    nearest = np.rint(steps)
    reasons[(reasons == 0) & (np.abs(steps - nearest) > _ON_GRID)] = Reason.NOT_ON_STEP
    return nearest.astype(np.int32), reasons


def _leaves(attribute: Category, column: pa.Array) -> tuple[NDArray[np.int32], Reasons]:
    """Leaf index of every value, through the distinct ones."""
    if pa.types.is_nested(column.type):
        return np.zeros(len(column), np.int32), np.where(is_valid(column), Reason.WRONG_TYPE, Reason.MISSING).astype(
            np.int8
        )
    index, values = distinct(column)
    labels, reasons = texts(values)
    # As in hierarchies, spaces around a label are not part of it.
    labels = pa.array([label and label.strip() for label in labels.to_pylist()], pa.string())
    codes = attribute.hierarchy.codes
    other = -1 if attribute.other is None else codes[attribute.other]
    # One entry more than there are distinct values: null has the index -1.
    leaves = np.array([codes.get(attribute.read(label or ""), other) for label in labels.to_pylist()] + [0], np.int32)
    reasons = np.append(reasons, np.int8(Reason.MISSING))
    reasons[:-1][(reasons[:-1] == 0) & is_absent(labels)] = Reason.MISSING
    reasons[(reasons == 0) & (leaves < 0)] = Reason.UNKNOWN_CATEGORY
    return leaves[index], reasons[index]


def _numbers(column: pa.Array) -> tuple[NDArray[np.float64], Reasons]:
    """The numbers of a column, whatever their type or text."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        reasons = np.where(is_valid(column), 0, Reason.MISSING).astype(np.int8)
        values = pc.fill_null(column.cast(pa.float64(), safe=False), 0.0).to_numpy()
        # Adding zero turns -0.0 into 0.0.
        return values + 0.0, reasons
    if pa.types.is_null(kind) or is_text(kind) or pa.types.is_decimal(kind):
        return _parsed(column)
    reasons = np.where(is_valid(column), Reason.WRONG_TYPE, Reason.MISSING).astype(np.int8)
    return np.zeros(len(column)), reasons


def _parsed(column: pa.Array) -> tuple[NDArray[np.float64], Reasons]:
    """Numbers written as text: cast at once where all are fine, else by distinct values."""
    try:
        written = column.cast(pa.string())
        cast = written.cast(pa.float64())
    except pa.ArrowInvalid:
        index, values = distinct(column)
        numbers, reasons = _parsed_each(*texts(values))
        return numbers[index] + 0.0, reasons[index]
    numbers, reasons = _numbers(cast)
    reasons[_shortened(written, cast)] = Reason.NOT_EXACT
    return numbers, reasons


def _parsed_each(labels: pa.Array, reasons: Reasons) -> tuple[NDArray[np.float64], Reasons]:
    """Number and reason of each text, and for a missing one behind them."""
    numbers = np.zeros(len(labels) + 1)
    reasons = np.append(reasons, np.int8(Reason.MISSING))
    for position, label in enumerate(labels.to_pylist()):
        if reasons[position]:
            continue
        if not label:
            reasons[position] = Reason.MISSING
        elif _NUMBER.fullmatch(label):
            numbers[position] = float(label)
            reasons[position] = 0 if _is_kept(label, numbers[position]) else Reason.NOT_EXACT
        else:
            reasons[position] = Reason.NOT_FINITE if _NOT_FINITE.fullmatch(label) else Reason.NOT_A_NUMBER
    return numbers, reasons


def _shortened(written: pa.Array, cast: pa.Array) -> NDArray[np.bool_]:
    """Which numbers have lost digits on the way from their texts; texts that a float is written as need no look."""
    long = pc.or_(pc.greater(pc.binary_length(written), _SURELY_KEPT), pc.equal(cast, 0.0))
    doubtful = pc.fill_null(pc.and_(long, pc.not_equal(cast.cast(pa.string()), written)), fill_value=False)
    lost = np.zeros(len(written), bool)
    for row in np.flatnonzero(doubtful.to_numpy(zero_copy_only=False)).tolist():
        lost[row] = not _is_kept(written[row].as_py(), cast[row].as_py())
    return lost


def _is_kept(label: str, number: float) -> bool:
    """Whether the float, rounded to as many digits as were written, is what was written.

    Half of a unit may have been rounded up or down: those who write numbers do not agree on that.
    """
    try:
        written = Decimal(label.strip())
    except InvalidOperation:
        return False
    digits = len("".join(map(str, written.as_tuple().digits)).rstrip("0")) or 1
    ways = (Context(prec=min(digits, _MOST_DIGITS), rounding=half) for half in (ROUND_HALF_UP, ROUND_HALF_DOWN))
    return not np.isfinite(number) or any(way.create_decimal_from_float(number) == written for way in ways)
