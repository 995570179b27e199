"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from microdata.errors import DataError, DiskFullError
from microdata.lines import CsvLines, JsonLines, Lines
from microdata.sources import format_of


@contextmanager
def line_sink(path: Path) -> Iterator[Callable[[bytes], Any]]:
    """A function that writes bytes to a text file; the file is there when all of it is written."""
    zipped = path.name.lower().endswith(".gz")
    with _whole(path) as part, gzip.open(part, "wb", 6) if zipped else part.open("wb") as file:
        yield file.write


@contextmanager
def batch_sink(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], Any]]:
    """A function that writes batches to a Parquet or Arrow file; the file is there when all of it is written."""
    with _whole(path) as part:
        if format_of(path) == "parquet":
            import pyarrow.parquet as pq  # noqa: PLC0415 - see `sources`

            with pq.ParquetWriter(part, schema) as writer:
                yield writer.write_batch
        else:
            with pa.OSFile(str(part), "wb") as file, pa.ipc.new_file(file, schema) as writer:
                yield writer.write_batch


def lines_for(path: Path, *, escape: bool = False) -> Lines | None:
    """The line format of a text file, None for Parquet and Arrow; `escape` keeps spreadsheets from running formulas."""
    formats: dict[str, Lines] = {"csv": CsvLines(escape=escape), "json": JsonLines()}
    return formats.get(format_of(path))


def write_columns(schema: pa.Schema, batches: Iterable[pa.RecordBatch], path: Path, *, escape: bool = False) -> None:
    """Write batches of columns in the format that the ending of the name tells; `escape` is as in `lines_for`."""
    lines = lines_for(path, escape=escape)
    if lines is None:
        with batch_sink(path, schema) as write_batch:
            for batch in batches:
                write_batch(batch)
        return
    with line_sink(path) as write:
        write(lines.head(schema.names))
        for batch in batches:
            write(lines.rows([lines.cells(name, column) for name, column in zip(schema.names, batch, strict=True)]))


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(path)
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        kind = DiskFullError if full else DataError
        raise kind(f"{path.name}: cannot be written ({error.strerror or 'input/output error'})") from None
    finally:
        part.unlink(missing_ok=True)
