"""The first rows of a file with all their columns, for somebody who does not know yet what is in it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from microdata.columns import is_text, texts
from microdata.errors import DataError
from microdata.sources import column_chunks, format_of, line_chunks, reading

_NO_NAME = re.compile(r"\s*|[-+.0-9][-+.,:/0-9eE ]*")


def read_sample(path: str | Path, rows: int = 100_000) -> pa.Table:
    """Up to `rows` rows, not encoded: CSV cells as texts, other formats with their own types."""
    path = Path(path)
    with reading(path):
        sample = _json_sample(path, rows) if format_of(path) == "json" else _column_sample(path, rows)
        if not sample.num_rows:
            raise DataError("there are no rows")
        _check_header(sample.column_names)
    return sample


def _column_sample(path: Path, rows: int) -> pa.Table:
    batches, done = [], 0
    for chunk in column_chunks(path, wanted=()):
        _check_header(chunk.names)
        batches.append(chunk.columns)
        done += chunk.columns.num_rows
        if done >= rows:
            break
    table = pa.Table.from_batches(batches).slice(0, rows).combine_chunks()
    columns = [_readable(column) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _readable(column: pa.ChunkedArray) -> pa.Array:
    chunk = column.combine_chunks()
    return texts(chunk)[0] if is_text(chunk.type) else chunk


def _check_header(names: Sequence[str]) -> None:
    """A first row that is a record must not be taken for names: they are shown."""
    if any(_NO_NAME.fullmatch(name) for name in names):
        raise DataError("the first row does not read like a header: a name in it is empty or a number")
    if len(set(names)) < len(names):
        raise DataError("the first row does not read like a header: a name in it is there twice")


def _json_sample(path: Path, rows: int) -> pa.Table:
    events = list(itertools.islice(_objects(path), rows))
    names = dict.fromkeys(name for event in events for name in event)
    return pa.table({name: _column([event.get(name) for event in events]) for name in names})


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    for lines, _ in line_chunks(path):
        for line in lines:
            try:
                event = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(event, dict):
                yield event


def _column(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values])
