"""What a column looks like: its kind and how many distinct values it has. Values stay in here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc


class Kind(Enum):
    """What the values of a column are."""

    INTEGER = "whole numbers"
    REAL = "numbers"
    DAY = "days"
    TIME = "points in time"
    CODE = "codes of one length"
    TEXT = "texts"
    OTHER = "values of a type that no role takes"


_WHOLE = r"^-?(0|[1-9][0-9]{0,14})$"
_NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}"
_CODE = r"^[0-9A-Z]*[0-9][0-9A-Z]*$"


@dataclass(frozen=True, eq=False)
class Profile:
    """One column of the sample."""

    name: str
    kind: Kind
    values: pa.Array
    """The distinct values, as texts (numbers as numbers)."""
    rows: int
    missing: int

    @property
    def distinct(self) -> int:
        """Number of distinct values."""
        return len(self.values)

    @property
    def nearly_unique(self) -> bool:
        """Whether a value alone points at very few rows."""
        return self.distinct > 20 and self.distinct > 0.5 * (self.rows - self.missing)


def profiles(sample: pa.Table) -> list[Profile]:
    """The columns of the sample; fields of structs by their dotted names."""
    while any(pa.types.is_struct(field.type) for field in sample.schema):
        sample = sample.flatten()
    return [_profile(name, sample.column(name)) for name in sample.column_names]


def _profile(name: str, column: pa.ChunkedArray) -> Profile:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type) or pa.types.is_null(column.type):
        return Profile(name, Kind.OTHER, pa.nulls(0), len(column), column.null_count)
    if _is_text(column.type):
        trimmed = pc.utf8_trim_whitespace(column)
        column = pc.if_else(pc.equal(trimmed, ""), None, trimmed)
    kind, values = _kind(pc.unique(column).drop_null())
    return Profile(name, kind, values, len(column), column.null_count)


def _is_text(of_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(of_type) or pa.types.is_large_string(of_type))


def _kind(values: pa.Array) -> tuple[Kind, pa.Array]:
    of_type = values.type
    if pa.types.is_integer(of_type):
        return Kind.INTEGER, values
    if pa.types.is_floating(of_type) or pa.types.is_decimal(of_type):
        return _number(values.cast(pa.float64()))
    if pa.types.is_date(of_type):
        return Kind.DAY, values.cast(pa.string())
    if pa.types.is_timestamp(of_type):
        return Kind.TIME, values
    if pa.types.is_boolean(of_type):
        return Kind.TEXT, values.cast(pa.string())
    if _is_text(of_type):
        return _text_kind(values.cast(pa.string()))
    return Kind.OTHER, values


def _text_kind(values: pa.Array) -> tuple[Kind, pa.Array]:
    """What texts, as a CSV file gives them, stand for."""
    if len(values) and _all(values, _WHOLE):
        return Kind.INTEGER, values.cast(pa.int64())
    lengths = pc.unique(pc.utf8_length(values))
    if len(values) > 10 and len(lengths) == 1 and 3 <= lengths[0].as_py() <= 10 and _all(values, _CODE):
        return Kind.CODE, values
    if len(values) and _all(values, _NUMBER):
        return _number(values.cast(pa.float64()))
    if len(values) and _all(values, _DAY):
        return Kind.DAY, values
    if len(values) and _all(values, _TIME):
        return Kind.TIME, values
    return Kind.TEXT, values


def _number(values: pa.Array) -> tuple[Kind, pa.Array]:
    finite = values.filter(pc.is_finite(values))
    whole = len(finite) and pc.all(pc.equal(pc.floor(finite), finite)).as_py()
    return (Kind.INTEGER if whole else Kind.REAL), finite


def _all(values: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(values, pattern)).as_py())
