"""CSV as the world writes it: understood from its first rows, read in blocks, every cell as bytes.

Rows are counted from 1, without the header and without empty lines.
"""

from __future__ import annotations

import csv
import itertools
import re
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from microdata.columns import check_fields, name_list
from microdata.errors import DataError
from microdata.lines import escaped_texts

DELIMITERS = ",;\t|"
_LINE_END = re.compile(r"\r\n|\n|\r")
"""How rows end. `str.splitlines` would also split at characters that a name may have, such as U+2028."""
ROW_LIMIT = 4 << 20
"""No row may be longer than this many bytes."""
_ROWS_LOOKED_AT = 20
_PATIENCE = 10.0
"""Seconds that Arrow's threads have to let go of what they were given."""


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written."""

    delimiter: str
    names: tuple[str, ...]
    header: bool
    blank: int
    """Empty lines before the first row."""
    spaced: bool
    """Whether cells begin with a space that is not theirs (`39, Private, …`)."""


def sniff(sample: bytes, wanted: Sequence[str], names: Sequence[str] | None, optional: Sequence[str] = ()) -> Dialect:
    """Choose the delimiter that fits the first row: by the wanted names, or by the number of names that are given.

    Without wanted names every column is wanted. A name in the header that was escaped for spreadsheets counts as the
    wanted or optional name that it was.
    """
    if not sample.strip():
        raise DataError("the file is empty")
    lines = _LINE_END.split(sample.decode("utf-8-sig", errors="replace"))
    blank = next((number for number, line in enumerate(lines) if line.strip()), None)
    if blank is None:
        raise DataError("the file is empty")
    if "\0" in lines[blank]:
        raise DataError("not UTF-8 text: there are NUL bytes in the first row")
    first = {delimiter: _first_rows(lines[blank:], delimiter) for delimiter in DELIMITERS}
    escaped = dict(zip(escaped_texts([*wanted, *optional]), [*wanted, *optional], strict=True))
    rows = {delimiter: [escaped.get(name, name) for name in found[0]] for delimiter, found in first.items()}
    if names is None:
        # A name may hold more commas than the file has columns; the rows below it do not agree with them.
        agreeing = {mark: len(rows[mark]) > 1 and _agreement(found) for mark, found in first.items()}
        delimiter = max(
            DELIMITERS, key=lambda mark: (len(set(rows[mark]) & set(wanted)), agreeing[mark], len(rows[mark]))
        )
        if any("\ufffd" in name for name in rows[delimiter]):
            raise DataError("the header is not UTF-8 text")
    else:
        delimiter = max(DELIMITERS, key=lambda mark: (len(rows[mark]) == len(names), len(rows[mark])))
        if len(rows[delimiter]) != len(names):
            cells = len(rows[delimiter])
            raise DataError(f"the first row has {cells} cells, so many names are needed", given=f"{len(names)} of them")
    if wanted:
        _check_names(names or rows[delimiter], wanted)
    spaced = lines[blank].count(delimiter + " ") == lines[blank].count(delimiter) > 0
    return Dialect(delimiter, tuple(names or rows[delimiter]), names is None, blank, spaced)


def _check_names(names: Sequence[str], wanted: Sequence[str]) -> None:
    if not set(names) & set(wanted):
        # What stands in the first row may be a record, so it is not shown.
        raise DataError(
            f"none of the declared columns ({name_list(wanted)}) is in the first row, which has {len(names)} cells; "
            "needed is a header (or the names given apart) and one of the delimiters , ; tab |"
        )
    check_fields(pa.schema([(name, pa.binary()) for name in names]), wanted)


def csv_batches(
    source: pa.NativeFile, dialect: Dialect, wanted: Sequence[str]
) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64], NDArray[np.int64]]]:
    """Read the wanted columns block by block, as bytes, with row numbers from 0.

    The third part are the numbers of rows that have another number of cells than the header, each told once.
    """
    # Positions stand for names, so that undeclared columns may be called whatever they are.
    positions = [str(dialect.names.index(name)) for name in wanted]
    misshapen: list[int] = []
    released = threading.Event()
    options, reader = _parse_options(dialect, misshapen, released), None
    done, told = 0, 0
    try:
        reader = pa_csv.open_csv(
            source,
            read_options=pa_csv.ReadOptions(
                column_names=[str(position) for position in range(len(dialect.names))],
                skip_rows=dialect.blank,
                skip_rows_after_names=int(dialect.header),
                block_size=ROW_LIMIT,
                use_threads=False,
            ),
            parse_options=options,
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(positions, pa.binary()), include_columns=positions
            ),
        )
        for batch in reader:
            rows = _numbered(done, batch.num_rows, misshapen)
            done = int(rows[-1]) + 1 if len(rows) else done
            columns = [_trimmed(column) if dialect.spaced else column for column in batch.columns]
            yield pa.record_batch(columns, names=list(wanted)), rows, np.array(misshapen[told:], np.int64)
            told = len(misshapen)
    finally:
        # Arrow's threads may hold the options for a moment longer; a process that ends in that moment dies of it.
        del options, reader
        released.wait(_PATIENCE)
    if told < len(misshapen):
        nothing = pa.record_batch([pa.array([], pa.binary())] * len(positions), names=list(wanted))
        yield nothing, np.empty(0, np.int64), np.array(misshapen[told:], np.int64)


def _parse_options(dialect: Dialect, misshapen: list[int], released: threading.Event) -> pa_csv.ParseOptions:
    """Rows of another length are noted and skipped; the event tells when nobody holds the options any more."""

    def note(row: pa_csv.InvalidRow) -> str:
        misshapen.append(row.number - 1 - dialect.header)
        return "skip"

    weakref.finalize(note, released.set)
    return pa_csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True, invalid_row_handler=note)


def _first_rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """The first rows as cells, up to one that cannot be read; at least one, which may have no cells."""
    rows: list[list[str]] = []
    with suppress(csv.Error):
        rows.extend(itertools.islice(csv.reader(lines, delimiter=delimiter), _ROWS_LOOKED_AT))
    return [[cell.strip() for cell in row] for row in rows if row] or [[]]


def _agreement(rows: Sequence[Sequence[str]]) -> float:
    """Share of the rows that have as many cells as the first one, in tenths: a few odd rows decide nothing."""
    return round(sum(len(row) == len(rows[0]) for row in rows) / len(rows), 1)


def _numbered(first: int, count: int, misshapen: Sequence[int]) -> NDArray[np.int64]:
    """The next `count` row numbers from `first` on that are not misshapen (these ascend)."""
    gaps = np.array(misshapen, np.int64)
    gaps = gaps[gaps >= first]
    good_before = gaps - first - np.arange(len(gaps))
    index = np.arange(count)
    return first + index + np.searchsorted(good_before, index, side="right")


def _trimmed(column: pa.Array) -> pa.Array:
    try:
        return pc.ascii_trim_whitespace(column.cast(pa.string()))
    except pa.ArrowInvalid:
        values = [value.strip() for value in column.to_pylist()]
        return pa.array(values, pa.binary())
