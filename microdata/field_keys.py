"""Every field of a file as numbers that only say which values are equal: for looking at data that nobody described yet.

A number is made of a value and a secret of this run, so that it says nothing about the value, and none is kept. Two
different values have the same number with a chance of about 1 in 10¹⁹; so have two combinations, whose numbers are
those of their values added up.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from microdata._field_kernels import text_keys
from microdata.columns import plain, texts
from microdata.errors import DataError
from microdata.progress import Progress, silent
from microdata.sampling import file_chunks
from microdata.sketch import ERROR, DistinctSketch
from microdata.sources import reading

MOST_FIELDS = 256
MOST_ROWS = 10_000_000
"""Rows that are kept, unless more or fewer are asked for."""
MOST_CELLS = 1 << 28
"""Rows × fields that are kept: 2 GB of keys."""
_DONE_OF = 1000


@dataclass(frozen=True)
class Counted:
    """Values of the fields of more rows than are kept; in the order of their names."""

    rows: int
    distinct: tuple[int, ...]
    errors: tuple[float, ...]
    """Each count is this near to the true one, as a share of it, with 95 % confidence; 0 where it is exact."""
    missing: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class FieldKeys:
    """The fields of a data set; row i of each array belongs together."""

    names: tuple[str, ...]
    keys: tuple[NDArray[np.uint64], ...]
    """Equal where the values are; where there is no value, that counts as one."""
    missing: tuple[int, ...]
    """Rows without a value."""
    not_read: tuple[str, ...] = ()
    """Fields that hold lists or the like."""
    whole: bool = True
    """Whether these are all rows of the file."""
    misshapen: int = 0
    """Rows that could not be read."""
    counted: Counted | None = None
    """The same fields over all rows that were read, where these are more."""

    def __len__(self) -> int:
        return len(self.keys[0]) if self.keys else 0


def read_fields(path: str | Path, rows: int | None = None, progress: Progress = silent) -> FieldKeys:
    """The first rows of a table file of any format, all of its fields.

    Without a number of rows, of those that there is no room for values are counted to the end of the file.
    """
    path, gathered, misshapen = Path(path), FieldGatherer(), 0
    with reading(path):
        for chunk, lost, share in file_chunks(path):
            misshapen += lost
            room = max(min(rows or MOST_ROWS, gathered.most_rows(chunk.num_columns)) - gathered.rows, 0)
            whole = chunk.num_rows <= room
            # Slicing a table without columns would give it rows.
            gathered.add(chunk if whole else chunk.slice(0, room))
            progress("reading", int(share * _DONE_OF), _DONE_OF)
            if not whole and rows is not None:
                return gathered.fields(whole=False, misshapen=misshapen)
            if not whole:
                gathered.add(chunk.slice(room), keep=False)
        if not gathered.rows:
            raise DataError("there are no rows")
        return gathered.fields(whole=gathered.counted == gathered.rows, misshapen=misshapen)


@dataclass
class _Field:
    secrets: tuple[int, int] = field(default_factory=lambda: (secrets.randbits(63), secrets.randbits(63)))
    parts: list[NDArray[np.uint64]] = field(default_factory=list)
    rows: int = 0
    missing: int = 0
    readable: bool = True
    sketch: DistinctSketch = field(default_factory=DistinctSketch)
    there: int = 0
    """Rows with a value, those that were only counted among them."""


class FieldGatherer:
    """Takes columns chunk by chunk; what a chunk lacks is missing there."""

    def __init__(self) -> None:
        self.rows = self.counted = 0
        self._nothing = np.uint64(secrets.randbits(64))
        self._fields: dict[str, _Field] = {}

    def add(self, chunk: pa.Table, *, keep: bool = True) -> None:
        """The next rows; fields of structs by their dotted names. They are kept, or their values are only counted."""
        while any(pa.types.is_struct(one.type) for one in chunk.schema):
            chunk = chunk.flatten()
        for name, column in zip(chunk.column_names, chunk.columns, strict=True):
            if name not in self._fields:
                if len(self._fields) == MOST_FIELDS:
                    raise DataError(f"there are more than {MOST_FIELDS} fields")
                self._fields[name] = _Field()
            self._take(self._fields[name], plain(column), keep=keep)
        self.rows += chunk.num_rows if keep else 0
        self.counted += chunk.num_rows

    def most_rows(self, fields: int = 0) -> int:
        """Rows that there is room for, with so many fields or those that were seen."""
        return MOST_CELLS // max(len(self._fields), fields, 1)

    def fields(self, *, whole: bool = True, misshapen: int = 0) -> FieldKeys:
        """All that was added."""
        for one in self._fields.values():
            self._pad(one)
        read = {name: one for name, one in self._fields.items() if one.readable}
        return FieldKeys(
            names=tuple(read),
            keys=tuple(_joined(one.parts) for one in read.values()),
            missing=tuple(one.missing for one in read.values()),
            not_read=tuple(name for name, one in self._fields.items() if not one.readable),
            whole=whole,
            misshapen=misshapen,
            counted=self._counted(list(read.values())) if self.counted > self.rows else None,
        )

    def _counted(self, fields: Sequence[_Field]) -> Counted:
        """A row without a value has one more, as in the keys."""
        lacking = [self.counted - one.there for one in fields]
        distinct = (one.sketch.count + (missing > 0) for one, missing in zip(fields, lacking, strict=True))
        errors = (0.0 if one.sketch.exact else ERROR for one in fields)
        return Counted(self.counted, tuple(distinct), tuple(errors), tuple(lacking))

    def _pad(self, one: _Field) -> None:
        """Rows before this that did not have the field."""
        gap = self.rows - one.rows
        one.parts.append(np.full(gap, self._nothing))
        one.rows, one.missing = one.rows + gap, one.missing + gap

    def _take(self, one: _Field, column: pa.Array, *, keep: bool) -> None:
        if pa.types.is_nested(column.type):
            one.readable = False
        if not one.readable:
            return
        if keep:
            self._pad(one)
        if not len(column):
            return
        encoded = column.dictionary_encode(null_encoding="encode")
        values = encoded.dictionary
        # As texts equal values of two types read alike; but days are not all that is told of a point in time.
        shown = values.cast(pa.string()) if pa.types.is_temporal(values.type) else texts(values)[0]
        shown = pc.utf8_trim_whitespace(shown.cast(pa.large_string()))
        # By its buffers: to take a scalar, or to give an array, pyarrow would load pandas where that is installed.
        absent = _nulls(shown) | (np.diff(_offsets(shown)) == 0)
        own = np.where(absent, self._nothing, _keys(shown, one.secrets))
        indices = encoded.indices
        places = np.frombuffer(indices.buffers()[1], np.int32)[indices.offset : indices.offset + len(indices)]
        lacking = int(absent[places].sum())
        one.sketch.add(own[~absent])
        one.there += len(column) - lacking
        if keep:
            one.parts.append(own[places])
            one.rows += len(column)
            one.missing += lacking


def _joined(parts: list[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """One array; the parts are given up, since all fields together may be half of the memory."""
    joined = np.concatenate(parts)
    parts.clear()
    return joined


def _nulls(values: pa.Array) -> NDArray[np.bool_]:
    if not values.null_count:
        return np.zeros(len(values), bool)
    bits = np.unpackbits(np.frombuffer(values.buffers()[0], np.uint8), bitorder="little")
    return bits[values.offset : values.offset + len(values)] == 0


def _offsets(values: pa.Array) -> NDArray[np.int64]:
    """Where each text begins and the last one ends."""
    if not len(values):
        return np.zeros(1, np.int64)
    return np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values) + 1]


def _keys(values: pa.Array, own: Sequence[int]) -> NDArray[np.uint64]:
    text = values.buffers()[2]
    letters = np.frombuffer(text, np.uint8) if text is not None else np.empty(0, np.uint8)
    return text_keys(_offsets(values), letters, own[0], own[1])
