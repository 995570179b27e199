"""What an uploaded table looks like from outside: its format by its first bytes, its size before it is read."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from service.problems import Place, ProblemError

GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"
"""Such a file begins and ends with it."""
_FIRST_LINE = 1 << 20
_AROUND = b" \t\r\n\xef\xbb\xbf"


def ending_of(path: Path, part: str) -> str:
    """The ending that tells a table's format: from what is in the file, never from what somebody called it."""
    with path.open("rb") as file:
        head = file.read(512)
        file.seek(-min(len(head), len(_PARQUET)), os.SEEK_END)
        tail = file.read()
    if head.startswith(_PARQUET):
        if tail != _PARQUET:
            raise unusable(part, "begins like Parquet, but is cut off")
        return ".parquet"
    zipped = head.startswith(GZIP)
    if zipped:
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, 64)
        except zlib.error:
            raise unusable(part, "begins like gzip, but is damaged") from None
    if head.startswith((b"ARROW1", b"PK\x03\x04", GZIP)) or not head:
        raise unusable(part, "must be CSV, JSON lines (both may be gzipped) or Parquet")
    text = ".jsonl" if head.lstrip(_AROUND).startswith((b"{", b"[")) else ".csv"
    return f"{text}.gz" if zipped else text


def check_shape(path: Path, part: str, *, most_columns: int, most_bytes: int) -> None:
    """Refuse a table that is wider, or unpacked is larger, than allowed."""
    if path.suffix == ".parquet":
        columns, size = _parquet_shape(path, part)
    else:
        columns, size = _line_width(path, part), 0
    if columns > most_columns:
        raise unusable(part, f"has more than {most_columns} columns, which is the limit")
    if size > most_bytes:
        raise unusable(part, f"is larger than {most_bytes} bytes when it is unpacked")


def _parquet_shape(path: Path, part: str) -> tuple[int, int]:
    try:
        with pq.ParquetFile(path) as file:
            groups = range(file.metadata.num_row_groups)
            size = sum(file.metadata.row_group(group).total_byte_size for group in groups)
            # Repeated values take no room in the file, but every row takes some in memory.
            return file.metadata.num_columns, max(size, 4 * file.metadata.num_rows)
    except (pa.ArrowException, OSError):
        raise unusable(part, "begins like Parquet, but is damaged or cut off") from None


def _line_width(path: Path, part: str) -> int:
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            line = file.readline(_FIRST_LINE)
    except (OSError, EOFError, zlib.error):
        raise unusable(part, "begins like gzip, but is damaged or cut off") from None
    if ".jsonl" not in path.name:
        return max(line.count(mark) for mark in b",;\t|") + 1
    try:
        first = orjson.loads(line)
    except orjson.JSONDecodeError:
        return 0
    return len(first) if isinstance(first, dict) else 0


def unusable(part: str, reason: str) -> ProblemError:
    """A part of a request that cannot be used, and why."""
    return ProblemError("bad-upload", "A part cannot be used.", [Place(path=part, reason=reason)])
