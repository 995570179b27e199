"""Files as chunks of columns or lines, whatever their format, with errors that say what is wrong and show no value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microdata.columns import check_fields, field_source, leaf_names
from microdata.delimited import ROW_LIMIT, csv_batches, sniff
from microdata.errors import DataError

Format: TypeAlias = Literal["csv", "json", "parquet", "arrow"]

ROWS = 1 << 18
"""Rows of a chunk where the format lets us choose."""
_SAMPLE = 1 << 20
_BLOCK = 16 << 20
_LONGEST_LINE = 256 << 20
_ENDINGS: dict[Format, tuple[str, ...]] = {
    "csv": (".csv", ".tsv", ".txt", ".data"),
    "json": (".jsonl", ".ndjson", ".json"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
}
_SPACE = b" \t\r\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Some editors put it before UTF-8 text; within a file it is no white space."""
_TITLES = {"csv": "CSV", "json": "JSON lines", "parquet": "Parquet", "arrow": "Arrow"}


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows of a file as columns."""

    names: tuple[str, ...]
    """Names of all columns of the file, read or not."""
    columns: pa.RecordBatch
    rows: NDArray[np.int64]
    """Number of each row in the file, from 0."""
    misshapen: NDArray[np.int64]
    """Numbers of rows with another number of cells than the header, each told once."""
    share: float
    """How much of the file has been read, 0 to 1; 0 where nobody knows."""


def format_of(path: Path) -> Format:
    """Format of a file by the ending of its name."""
    name = path.name.lower()
    zipped = name.endswith(".gz")
    stem = name.removesuffix(".gz")
    for kind, endings in _ENDINGS.items():
        if stem.endswith(endings) and not (zipped and kind in {"parquet", "arrow"}):
            return kind
    known = " ".join(ending for endings in _ENDINGS.values() for ending in endings)
    raise DataError(f"unknown kind of file; known endings are {known}, and .gz behind CSV and JSON lines")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what goes wrong while a file is read into a `DataError` that names the file and shows none of its values."""
    try:
        yield
    except DataError as error:
        raise error.of(path.name) from None
    except FileNotFoundError:
        raise DataError(f"{path.name}: there is no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path.name}: is a directory, not a file") from None
    except PermissionError:
        raise DataError(f"{path.name}: may not be read (permission denied)") from None
    except (pa.ArrowException, OSError) as error:
        if "straddling" in str(error):
            limit = f"{ROW_LIMIT >> 20} MB"
            raise DataError(f"{path.name}: a row is longer than {limit}; is there a quote that never ends?") from None
        title = _TITLES[format_of(path)]
        raise DataError(f"{path.name}: not readable as {title}; it is damaged, cut off, or something else") from None


def column_chunks(
    path: Path, wanted: Sequence[str], optional: Sequence[str] = (), names: Sequence[str] | None = None
) -> Iterator[Chunk]:
    """Read the wanted and, where they are there, the optional columns of a CSV, Parquet or Arrow file.

    Without wanted ones, every column is read.
    `names` are the column names of a CSV file without a header.
    """
    _check_is_file(path)
    kind = format_of(path)
    if kind == "csv":
        return _csv_chunks(path, wanted, optional, names)
    return _parquet_chunks(path, wanted, optional) if kind == "parquet" else _arrow_chunks(path, wanted, optional)


def line_chunks(path: Path) -> Iterator[tuple[list[bytes], float]]:
    """The lines of a text file that are not empty, in blocks, with the share of the file that has been read."""
    _check_is_file(path)
    rest, end = None, b""
    with _opened(path) as (stream, meter):
        while block := stream.read(_BLOCK):
            # Old files end their lines with CR alone, which JSON never needs inside of one.
            end = end or (b"\n" if b"\n" in block or b"\r" not in block.rstrip() else b"\r")
            text = block.removeprefix(_BYTE_ORDER_MARK) if rest is None else rest + block
            *lines, rest = text.split(end)
            if len(rest) > _LONGEST_LINE:
                raise DataError(f"a line is longer than {_LONGEST_LINE >> 20} MB")
            yield _filled(lines), meter.share
    yield _filled([rest or b""]), 1.0


class _Meter:
    """Says how much of a file has been read."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self._size = max(file.size(), 1)

    @property
    def share(self) -> float:
        return min(self._file.tell() / self._size, 1.0)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[pa.NativeFile, _Meter]]:
    with pa.OSFile(str(path)) as file:
        yield (pa.CompressedInputStream(file, "gzip") if _is_zipped(path) else file), _Meter(file)


def _is_zipped(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def _check_is_file(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError
    if not path.exists():
        raise FileNotFoundError


def _filled(lines: list[bytes]) -> list[bytes]:
    return [line for line in (line.strip(_SPACE) for line in lines) if line]


def _csv_chunks(
    path: Path, wanted: Sequence[str], optional: Sequence[str], names: Sequence[str] | None
) -> Iterator[Chunk]:
    with _opened(path) as (stream, _):
        sample = stream.read(_SAMPLE)
    dialect = sniff(sample, wanted, names, optional)
    if dialect.header and len(_filled(sample.splitlines())) < 2:
        raise DataError("there are no rows after the header")
    chosen = [*(wanted or dialect.names), *(name for name in optional if name in dialect.names)]
    # Arrow reads far ahead, so that its place in the file says nothing. How long a packed file is, nobody knows.
    size = 0 if _is_zipped(path) else path.stat().st_size
    with _opened(path) as (stream, _):
        for number, (batch, rows, misshapen) in enumerate(csv_batches(stream, dialect, chosen), 1):
            share = min(number * ROW_LIMIT / size, 1.0) if size else 0.0
            yield Chunk(dialect.names, batch, rows, misshapen, share)


def _parquet_chunks(path: Path, wanted: Sequence[str], optional: Sequence[str]) -> Iterator[Chunk]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - it loads what reads from clouds, which takes a while

    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        check_fields(schema, wanted)
        sources = _sources(schema, wanted, optional)
        # Older Arrow stumbles over a file without row groups instead of giving no batch.
        if not file.metadata.num_rows:
            return
        total = file.metadata.num_rows
        done = 0
        for batch in file.iter_batches(ROWS, columns=sources):
            yield _numbered(schema, batch, done, (done + batch.num_rows) / total)
            done += batch.num_rows


def _arrow_chunks(path: Path, wanted: Sequence[str], optional: Sequence[str]) -> Iterator[Chunk]:
    with pa.memory_map(str(path)) as file:
        try:
            reader = pa.ipc.open_file(file)
            batches = (reader.get_batch(index) for index in range(reader.num_record_batches))
        except pa.ArrowInvalid:
            file.seek(0)
            batches = reader = pa.ipc.open_stream(file)
        check_fields(reader.schema, wanted)
        sources = _sources(reader.schema, wanted, optional)
        done = 0
        for batch in batches:
            yield _numbered(reader.schema, batch.select(sources), done, file.tell() / max(file.size(), 1))
            done += batch.num_rows


def _sources(schema: pa.Schema, wanted: Sequence[str], optional: Sequence[str]) -> list[str]:
    """Top-level columns that hold these fields, each once; all where none is wanted."""
    if not wanted:
        return list(schema.names)
    found = (field_source(schema, name) for name in [*wanted, *optional])
    return list(dict.fromkeys(name for name in found if name is not None))


def _numbered(schema: pa.Schema, batch: pa.RecordBatch, first: int, share: float) -> Chunk:
    rows = np.arange(first, first + batch.num_rows)
    return Chunk(leaf_names(schema), batch, rows, np.empty(0, np.int64), share)
