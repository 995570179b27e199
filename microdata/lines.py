"""Rows as lines of text, a column at a time: CSV and JSON lines.

A *cell* is the text of one value with all that it needs in its line. Cells of values that repeat are made once and
taken many times.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from microdata.columns import distinct, is_text, plain


class Lines(ABC):
    """A line format."""

    _begin: ClassVar[str]
    _end: ClassVar[str]

    @abstractmethod
    def head(self, names: Sequence[str]) -> bytes:
        """What stands before the first row."""

    def cells(self, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Cells of a column of values."""
        return self._cells(name, self._texts(plain(column)))

    def intervals(self, name: str, low: pa.Array, high: pa.Array) -> pa.Array:
        """Cells of intervals between two columns of numbers."""
        return self._cells(name, self._interval_texts(low.cast(pa.string()), high.cast(pa.string())))

    def joined(self, cells: Sequence[pa.Array]) -> pa.Array:
        """Cells side by side, as one longer cell."""
        return pc.binary_join_element_wise(*cells, ",")

    def rows(self, cells: Sequence[pa.Array]) -> bytes:
        """Whole lines."""
        return _bytes(pc.binary_join_element_wise(self._begin, self.joined(cells), self._end, ""))

    @abstractmethod
    def _cells(self, name: str, texts: pa.Array) -> pa.Array: ...

    @abstractmethod
    def _texts(self, column: pa.Array) -> pa.Array: ...

    @abstractmethod
    def _interval_texts(self, low: pa.Array, high: pa.Array) -> pa.Array: ...


class CsvLines(Lines):
    """Comma-separated values: quoted where needed, an interval as `[25,30]`, a point as `25`."""

    _begin, _end = "", "\n"

    def __init__(self, *, escape: bool = False) -> None:
        self._escape = escape

    def head(self, names: Sequence[str]) -> bytes:
        """The names of the columns."""
        cells = _quoted(pa.array(escaped_texts(names) if self._escape else list(names), pa.string()))
        return self.rows([cells.slice(place, 1) for place in range(len(cells))])

    def _cells(self, name: str, texts: pa.Array) -> pa.Array:
        del name
        return pc.fill_null(_quoted(_escaped(texts) if self._escape else texts), "")

    def _texts(self, column: pa.Array) -> pa.Array:
        return column.cast(pa.string()) if is_text(column.type) else _json_values(column)

    def _interval_texts(self, low: pa.Array, high: pa.Array) -> pa.Array:
        return pc.if_else(pc.equal(low, high), low, _pairs(low, high))


class JsonLines(Lines):
    """One JSON object per line; an interval is a list of its two ends."""

    _begin, _end = "{", "}\n"

    def head(self, names: Sequence[str]) -> bytes:
        """Nothing: every line names its fields."""
        del names
        return b""

    def _cells(self, name: str, texts: pa.Array) -> pa.Array:
        return pc.binary_join_element_wise(orjson.dumps(name).decode() + ":", pc.fill_null(texts, "null"), "")

    def _texts(self, column: pa.Array) -> pa.Array:
        return _json_values(column)

    def _interval_texts(self, low: pa.Array, high: pa.Array) -> pa.Array:
        return _pairs(low, high)


def _pairs(low: pa.Array, high: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise("[", low, ",", high, "]", "")


_FORMULA = r"[\pZ\pC]*[=+\-@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}\x{fe66}\x{fe62}\x{fe63}\x{fe6b}\x{2212}]|[\t\r\n]"
"""How a text begins that a spreadsheet may run: a sign of any width, also behind spaces and invisible characters."""
_NUMBER = r"^[-+]?[0-9]*\.?[0-9]*([eE][-+]?[0-9]+)?$"


def _escaped(texts: pa.Array) -> pa.Array:
    """Texts that a spreadsheet would run get an apostrophe in front, as do those that look as if they had one."""
    is_formula = pc.match_substring_regex(texts, f"^'*({_FORMULA})")
    run = pc.and_(is_formula, pc.invert(pc.match_substring_regex(texts, _NUMBER)))
    if not pc.any(run).as_py():
        return texts
    return pc.if_else(run, pc.binary_join_element_wise("'", texts, ""), texts)


def escaped_texts(texts: Sequence[str]) -> list[str]:
    """Return texts as a CSV file for spreadsheets has them."""
    found: list[str] = _escaped(pa.array(list(texts), pa.string())).to_pylist()
    return found


def unescaped(cells: pa.Array) -> pa.Array:
    """Cells as they were before an apostrophe was put in front of formulas; bytes that are no text stay as they are."""
    quoted = pc.fill_null(pc.starts_with(cells, "'"), fill_value=False)
    if not pc.any(quoted).as_py():
        return cells
    chosen = cells.filter(quoted)
    try:
        texts = chosen.cast(pa.string())
    except pa.ArrowInvalid:  # one of them is no UTF-8
        texts = pa.array([_text(value) for value in chosen.to_pylist()], pa.string())
    restored = pc.replace_substring_regex(texts, f"^'('*({_FORMULA}))", r"\1").cast(cells.type)
    return pc.replace_with_mask(cells, quoted, pc.coalesce(restored, chosen))


def _text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _quoted(texts: pa.Array) -> pa.Array:
    special = pc.match_substring_regex(texts, '[",;\t|\r\n]|^ | $')
    if not pc.any(special).as_py():
        return texts
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), texts)


def _json_values(column: pa.Array) -> pa.Array:
    """JSON text of every value, null where there is none."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return column.cast(pa.string())
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_finite(column), column.cast(pa.string()), None)
    if pa.types.is_nested(kind):
        return pa.array([_dumped(value) for value in column.to_pylist()], pa.string())
    index, values = distinct(column)
    texts = pa.array([_dumped(value) for value in values.to_pylist()], pa.string())
    return texts.take(pa.array(index, mask=index < 0))


def _dumped(value: Any) -> str | None:
    return None if value is None else orjson.dumps(value, default=str).decode()


def _bytes(texts: pa.Array) -> bytes:
    """The bytes of all texts, one after the other."""
    if not len(texts):
        return b""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int64 if pa.types.is_large_string(texts.type) else np.int32)
    return bytes(data.slice(int(bounds[texts.offset]), int(bounds[texts.offset + len(texts)] - bounds[texts.offset])))
