"""Tables from files and frames, and back to files: CSV, Parquet, JSON lines, Arrow.

The ending of a file's name tells its format; CSV and JSON lines may be gzipped. Files are read in batches, so that only
encoded columns stay in memory. Rows are counted from 1, without the header and without empty lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from microdata.columns import check_fields
from microdata.decoding import decode
from microdata.encoding import Encoded, encode, encode_layers
from microdata.errors import DataError
from microdata.events import encode_events, layers_of, public_column
from microdata.persons import PersonKey
from microdata.progress import Progress, silent
from microdata.refusals import Reason, Refusals
from microdata.schema import PersonSource, Schema
from microdata.sinks import write_columns
from microdata.sources import ROWS, column_chunks, format_of, line_chunks, reading
from microdata.table import Table

OnRefused: TypeAlias = Literal["stop", "drop"]
"""Whether refused rows stop the run or are left out and counted."""


def read_table(
    path: str | Path,
    schema: Schema,
    *,
    columns: Sequence[str] | None = None,
    on_refused: OnRefused = "stop",
    progress: Progress = silent,
    person_key: PersonKey | None = None,
) -> Encoded:
    """Read and encode a whole file.

    `columns` names the columns of a CSV file that has no header. With `on_refused="stop"` refused values raise a
    `DataError` that reports all of them; with `"drop"` their rows are left out and `refusals` reports them. Persons of
    several files are the same only under the same `person_key`; without one, the file has its own.
    """
    batches = read_batches(path, schema, columns=columns, on_refused="drop", progress=progress, person_key=person_key)
    parts = list(batches)
    return _checked(Encoded.concat(schema, parts), Path(path).name, on_refused)


def read_batches(
    path: str | Path,
    schema: Schema,
    *,
    columns: Sequence[str] | None = None,
    on_refused: OnRefused = "stop",
    progress: Progress = silent,
    person_key: PersonKey | None = None,
) -> Iterator[Encoded]:
    """Read and encode a file batch by batch; row numbers count through the whole file."""
    path, key = Path(path), person_key or PersonKey.random()
    if schema.person is PersonSource.KEY:
        raise DataError(f"{path.name}: the schema takes the person from record keys, and rows of a table have none")
    done = 0
    with reading(path):
        by_line = format_of(path) == "json"
        parts = _json_parts(path, schema, key) if by_line else _column_parts(path, schema, columns, key)
        for part, share in parts:
            if on_refused == "stop" and len(part.refusals):
                raise _refused(part.refusals)
            done += len(part.rows) + part.refusals.row_count
            progress("read", done, max(done, round(done / share) if share else done))
            yield part
        if not done:
            raise DataError("there are no rows")


def table_from_frame(
    frame: Any, schema: Schema, *, on_refused: OnRefused = "stop", person_key: PersonKey | None = None
) -> Encoded:
    """Encode a pandas or polars frame, an Arrow table, or anything else that exports an Arrow stream.

    Persons of several frames are the same only under the same `person_key`; without one, the frame has its own.
    """
    key = person_key or PersonKey.random()
    try:
        columns = pa.table(frame)
    except pa.ArrowException:
        return _checked(_encode_objects(frame, schema, key), "frame", on_refused)
    except TypeError:
        raise DataError("expected a data frame or an Arrow table", given=type(frame).__name__) from None
    check_fields(columns.schema, schema.fields())
    rows = np.arange(columns.num_rows)
    parts = [
        encode(schema, columns.slice(first, ROWS), person_key=key, positions=rows[first : first + ROWS]).shifted(first)
        for first in range(0, columns.num_rows, ROWS)
    ]
    return _checked(Encoded.concat(schema, parts), "frame", on_refused)


def write_table(table: Table, path: str | Path, *, progress: Progress = silent) -> None:
    """Write the decoded values of a table (not its persons) as CSV, JSON lines, Parquet or Arrow.

    This is for tables that may be seen as they are, such as samples; what leaves goes through `write_published`.
    """
    columns = decode(table)
    write_columns(columns.schema, columns.to_batches(ROWS), Path(path))
    progress("write", len(table), len(table))


def _column_parts(
    path: Path, schema: Schema, columns: Sequence[str] | None, key: PersonKey
) -> Iterator[tuple[Encoded, float]]:
    for chunk in column_chunks(path, schema.fields(), names=columns):
        encoded = encode(schema, chunk.columns, person_key=key, positions=chunk.rows)
        inner = encoded.refusals
        reasons = np.full(len(chunk.misshapen), Reason.WRONG_SHAPE, np.int8)
        refusals = Refusals.concat(
            schema,
            [
                Refusals(schema, chunk.rows[inner.rows], inner.fields, inner.reasons),
                Refusals.records(schema, chunk.misshapen, reasons),
            ],
        )
        rejected = encoded.rejected and encoded.rejected.at(chunk.rows)
        yield Encoded(encoded.table, chunk.rows[encoded.rows], refusals, rejected=rejected), chunk.share


def _json_parts(path: Path, schema: Schema, key: PersonKey) -> Iterator[tuple[Encoded, float]]:
    done = 0
    for lines, share in line_chunks(path):
        if not done and lines and lines[0].startswith(b"["):
            raise DataError("a JSON array; needed is one object per line")
        if lines:
            positions = np.arange(done, done + len(lines))
            yield encode_events(schema, lines, person_key=key, positions=positions).shifted(done), share
        done += len(lines)


def _encode_objects(frame: Any, schema: Schema, key: PersonKey) -> Encoded:
    """Encode a frame with columns that mix types, value by value."""
    check_fields(pa.schema([(str(name), pa.null()) for name in frame.columns]), schema.fields())
    values = {name: [_python_value(value) for value in frame[name]] for name in schema.fields()}
    fields = {
        name: [public_column(column)] if name in schema.public else layers_of(column) for name, column in values.items()
    }
    return encode_layers(schema, fields, len(frame), person_key=key)


def _python_value(value: Any) -> Any:
    """Undo what numpy and pandas wrap around a value."""
    if type(value).__name__ in {"NAType", "NaTType"}:
        return None
    return value.item() if isinstance(value, np.generic) else value


def _refused(refusals: Refusals, source: str = "") -> DataError:
    word = "row is" if refusals.row_count == 1 else "rows are"
    reason = f"{source}{refusals.row_count} {word} refused (counted from 1, without the header)"
    return DataError(reason, fields=refusals.complaints())


def _checked(encoded: Encoded, name: str, on_refused: OnRefused) -> Encoded:
    """The encoded rows, if the caller lets the rejected ones pass and any are left; the table counts these."""
    if len(encoded.refusals) and (on_refused == "stop" or not len(encoded.table)):
        raise _refused(encoded.refusals, f"{name}: ")
    if not len(encoded.table):
        raise DataError(f"{name}: there are no rows")
    return replace(encoded, table=replace(encoded.table, rejected=encoded.refusals.row_count))
