"""What a column looks like: its kind, its distinct values, where it has none. Values stay in here."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, time
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from microdata.columns import is_text, plain, texts
from service.proposal.names import names_time


class Kind(Enum):
    """What the values of a column are."""

    INTEGER = "whole numbers"
    REAL = "numbers"
    DAY = "days"
    TIME = "points in time"
    EPOCH = "points in time, counted in seconds or parts of them"
    CODE = "codes of one length"
    KEY = "keys such as e-mail addresses, UUIDs, hashes and numbers of more than 15 digits"
    WRITTEN = "numbers written with commas, signs or units"
    TEXT = "texts"
    OTHER = "values of a type that no role takes"


LARGEST = 1e15
"""Numbers beyond this are not exact any more, and measure nothing about a person."""
_NOTHING = ["", "na", "n/a", "nan", "null", "none", "nil", "?", "-", ".", "#n/a", "<na>"]
_WHOLE = r"^[-+]?(0|[1-9][0-9]*)$"
_NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_TIME = (
    r"^([0-9]{4}-[0-9]{2}-[0-9]{2}[T ]|[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4},? )?"
    r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?( ?([AaPp][Mm]|Z|UTC|[-+][0-9]{2}:?[0-9]{2}))?$"
)
_MAYBE_DAY = r"^[0-9].{5,24}$"
_CODE = r"^[0-9A-Z]*[0-9][0-9A-Z]*$"
_KEYS = (
    r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
    r"^\{?[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\}?$",
    r"^(0x)?([0-9a-f]{16,}|[0-9A-F]{16,})$",
    r"^[0-9]{1,3}(\.[0-9]{1,3}){3}$",
)
_WRITTEN = r"^[-+(]?[$€£¥]?\s?[-+]?[0-9][0-9.,' ]*\s?([%€$£¥)]|[A-Z]{3})?$"
_DAY_FORMATS = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y%m%d",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%d.%m.%y",
    "%d-%b-%Y",
    "%d %b %Y",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%SZ",
)
_YEARS = (1850, 2150)
# 1990 to 2035 in seconds; by name alone 1970 to 2100.
_EPOCH, _EPOCH_BY_NAME = (631_152_000, 2_051_222_400), (86_400_000, 4_102_444_800)


@dataclass(frozen=True, eq=False)
class Profile:
    """One column of the sample."""

    name: str
    kind: Kind
    labels: pa.Array
    """The distinct values, as the texts that a hierarchy has to hold."""
    absent: NDArray[np.bool_]
    """Rows that have no value, or none that could be used."""
    numbers: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    """The distinct values, where they are numbers."""
    days: tuple[date, ...] = ()
    """The day of each label, where they are days."""

    @property
    def distinct(self) -> int:
        """Number of distinct values."""
        return len(self.labels)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.absent)

    @property
    def missing(self) -> int:
        """Number of rows without a value."""
        return int(self.absent.sum())

    @property
    def repeats(self) -> float:
        """Rows per distinct value."""
        return (self.rows - self.missing) / max(self.distinct, 1)

    @property
    def nearly_unique(self) -> bool:
        """Whether a value alone points at very few rows."""
        return self.distinct > 20 and self.repeats < 2


def profiles(sample: pa.Table) -> list[Profile]:
    """The columns of the sample; fields of structs by their dotted names."""
    while any(pa.types.is_struct(field.type) for field in sample.schema):
        sample = sample.flatten()
    return [_profile(name, plain(column)) for name, column in zip(sample.column_names, sample.columns, strict=True)]


def _profile(name: str, column: pa.Array) -> Profile:
    of_type = column.type
    if pa.types.is_nested(of_type) or pa.types.is_null(of_type) or _is_other(of_type):
        return Profile(name, Kind.OTHER, pa.array([], pa.string()), np.ones(len(column), bool))
    if pa.types.is_timestamp(of_type) and not _at_midnight(column):
        return Profile(name, Kind.TIME, *_distinct(column.cast(pa.string())))
    # NaN in a column of numbers is a missing value.
    labels, absent = _distinct(pc.utf8_trim_whitespace(texts(column)[0].cast(pa.string())))
    if pa.types.is_boolean(of_type):
        return Profile(name, Kind.TEXT, labels, absent)
    return _numeric(name, column, labels, absent) or _textual(name, labels, absent)


def _is_other(of_type: pa.DataType) -> bool:
    known = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    times = (pa.types.is_date, pa.types.is_timestamp)
    return not is_text(of_type) and not any(test(of_type) for test in (*known, *times))


def _at_midnight(column: pa.Array) -> bool:
    return column.null_count < len(column) and pc.all(pc.equal(column, pc.floor_temporal(column, unit="day"))).as_py()


def _distinct(values: pa.Array) -> tuple[pa.Array, NDArray[np.bool_]]:
    values = pc.if_else(pc.equal(values, ""), None, values)
    return pc.unique(values).drop_null().cast(pa.string()), values.is_null().to_numpy(zero_copy_only=False)


def _numeric(name: str, column: pa.Array, labels: pa.Array, absent: NDArray[np.bool_]) -> Profile | None:
    """A column of numbers, with marks such as NA for missing ones; None where it is something else."""
    nothing = pc.is_in(pc.utf8_lower(labels), pa.array(_NOTHING))
    given = labels.filter(pc.invert(nothing))
    if not _all(given, _NUMBER) or _are_codes(given):
        return None
    numbers = given.cast(pa.float64())
    finite = pc.less_equal(pc.abs(numbers), LARGEST)
    if not pc.all(finite).as_py():
        return Profile(name, Kind.KEY, labels, absent)
    values = numbers.to_numpy()
    whole = bool((values == np.floor(values)).all())
    if pc.any(nothing).as_py():
        marks = labels.filter(nothing)
        own = pc.utf8_trim_whitespace(texts(column)[0].cast(pa.string()))
        absent = absent | pc.fill_null(pc.is_in(own, marks), fill_value=False).to_numpy(zero_copy_only=False)
    if _is_epoch(name, values):
        return Profile(name, Kind.EPOCH, given, absent, values)
    days = _days(given) if _all(given, r"^(18|19|20)[0-9]{6}$") else None
    if days is not None:
        return Profile(name, Kind.DAY, given, absent, days=days)
    return Profile(name, Kind.INTEGER if whole else Kind.REAL, given, absent, values)


def _are_codes(labels: pa.Array) -> bool:
    """Digits of one length, of which some begin with a zero: not numbers but codes."""
    alike = len(labels) > 1 and len(pc.unique(pc.utf8_length(labels))) == 1
    return alike and _all(labels, r"^[0-9]{3,10}$") and pc.any(pc.starts_with(labels, "0")).as_py()


def _is_epoch(name: str, values: NDArray[np.float64]) -> bool:
    if not len(values) or values.max() - values.min() <= 1:
        return False
    low, high = _EPOCH_BY_NAME if names_time(name) else _EPOCH
    return any(low * unit <= values.min() and values.max() <= high * unit for unit in (1.0, 1e3, 1e6, 1e9))


def _textual(name: str, labels: pa.Array, absent: NDArray[np.bool_]) -> Profile:
    days = _days(labels) if _all(labels, _MAYBE_DAY) else None
    if days is not None:
        return Profile(name, Kind.DAY, labels, absent, days=days)
    return Profile(name, _text_kind(labels), labels, absent)


def _text_kind(labels: pa.Array) -> Kind:
    """What texts, as a CSV file gives them, stand for."""
    lengths = pc.unique(pc.utf8_length(labels))
    if _all(labels, _TIME):
        return Kind.TIME
    if any(_all(labels, pattern) for pattern in _KEYS):
        return Kind.KEY
    if len(labels) > 10 and len(lengths) == 1 and 3 <= lengths[0].as_py() <= 10 and _all(labels, _CODE):
        return Kind.CODE
    if _all(labels, _WRITTEN):
        return Kind.WRITTEN
    return Kind.TEXT


def _days(labels: pa.Array) -> tuple[date, ...] | None:
    """The day that each label names, in the first way of writing that fits all of them."""
    for form in _DAY_FORMATS:
        try:
            found = [datetime.strptime(label, form) for label in labels.to_pylist()]  # noqa: DTZ007 - days have no zone
        except ValueError:
            continue
        if all(moment.time() == time() and _YEARS[0] <= moment.year <= _YEARS[1] for moment in found):
            return tuple(moment.date() for moment in found)
    return None


def _all(labels: pa.Array, pattern: str) -> bool:
    """Whether all match; most that do not show it early."""
    return bool(
        len(labels)
        and pc.all(pc.match_substring_regex(labels.slice(0, 100), pattern)).as_py()
        and pc.all(pc.match_substring_regex(labels, pattern)).as_py()
    )
