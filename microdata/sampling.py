"""The first rows of a file with all their columns, for somebody who does not know yet what is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from microdata.columns import is_text, texts
from microdata.errors import DataError
from microdata.sources import column_chunks, format_of, line_chunks, reading

_NO_NAME = re.compile(r"\s*|[-+.0-9][-+.,:/0-9eE ]*")


@dataclass(frozen=True, eq=False)
class Sample:
    """The first rows of a file."""

    columns: pa.Table
    whole: bool = True
    """Whether these are all rows of the file."""
    misshapen: int = 0
    """Rows between them that could not be read: another number of cells than the header, or no JSON object."""


def read_sample(path: str | Path, rows: int = 100_000, most_bytes: int = 256 << 20) -> Sample:
    """Up to `rows` rows and about `most_bytes`, not encoded: CSV cells as texts, other formats with their own types.

    Columns without a name are left out where they are an index (the first one) or empty (a delimiter at the end).
    """
    path = Path(path)
    with reading(path):
        sample = (_json_sample if format_of(path) == "json" else _column_sample)(path, rows, most_bytes)
        if not sample.columns.num_rows:
            raise DataError("there are no rows")
        _check_header(sample.columns.column_names)
    return sample


def file_chunks(path: Path) -> Iterator[tuple[pa.Table, int, float]]:
    """All columns of all rows, not encoded, with the rows that could not be read, and the share of the file so far."""
    if format_of(path) == "json":
        for lines, share in line_chunks(path):
            events = [json_object(line) for line in lines]
            given = [event for event in events if event is not None]
            yield json_table(given), len(events) - len(given), share
        return
    for chunk in column_chunks(path, wanted=()):
        _check_header([name for name in chunk.names if name])
        named = list(_named(pa.Table.from_batches([chunk.columns])))
        _check_header([name for name, _ in named])
        columns = pa.table([column for _, column in named], names=[name for name, _ in named])
        yield columns, len(chunk.misshapen), chunk.share


def _column_sample(path: Path, rows: int, most_bytes: int) -> Sample:
    batches, done, size, misshapen, whole = [], 0, 0, 0, True
    for chunk in column_chunks(path, wanted=()):
        if done >= rows or size >= most_bytes:
            whole = False
            break
        _check_header([name for name in chunk.names if name])
        batches.append(chunk.columns)
        done += chunk.columns.num_rows
        size += chunk.columns.nbytes
        misshapen += len(chunk.misshapen)
    table = pa.Table.from_batches(batches).slice(0, rows).combine_chunks() if batches else pa.table({})
    columns = {name: _readable(column) for name, column in _named(table)}
    return Sample(pa.table(columns), whole and done <= rows, misshapen)


def _named(table: pa.Table) -> Iterator[tuple[str, pa.ChunkedArray]]:
    for position, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if name or not (position == 0 or _is_empty(column)):
            yield name, column


def _is_empty(column: pa.ChunkedArray) -> bool:
    return is_text(column.type) and not pc.any(pc.greater(pc.binary_length(column), 0)).as_py()


def _readable(column: pa.ChunkedArray) -> pa.Array:
    chunk = column.combine_chunks()
    return texts(chunk)[0] if is_text(chunk.type) else chunk


def _check_header(names: Sequence[str]) -> None:
    """A first row that is a record must not be taken for names: they are shown."""
    if any(_NO_NAME.fullmatch(name) for name in names):
        raise DataError("the first row does not read like a header: a name in it is empty or a number")
    if len(set(names)) < len(names):
        raise DataError("the first row does not read like a header: a name in it is there twice")


def _json_sample(path: Path, rows: int, most_bytes: int) -> Sample:
    events: list[dict[str, Any]] = []
    size, misshapen = 0, 0
    for line in (line for lines, _ in line_chunks(path) for line in lines):
        if len(events) >= rows or size >= most_bytes:
            return Sample(json_table(events), whole=False, misshapen=misshapen)
        event = json_object(line)
        size += len(line)
        if event is None:
            misshapen += 1
        else:
            events.append(event)
    return Sample(json_table(events), misshapen=misshapen)


def json_table(events: list[dict[str, Any]]) -> pa.Table:
    """Objects as columns; a column of several types is one of texts."""
    names = dict.fromkeys(name for event in events for name in event)
    return pa.table({name: _column([event.get(name) for event in events]) for name in names})


def json_object(line: bytes) -> dict[str, Any] | None:
    """The object in a line of JSON; None where it is something else."""
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return event if isinstance(event, dict) else None


def _column(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values])
