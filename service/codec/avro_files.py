"""Events from Avro's object container files: a schema, then blocks of records."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import snappy
import zstandard

from microdata import DataError, PersonKey, Progress, Reason, Schema
from service.codec._avro_kernels import split
from service.codec._found import found_of, nothing_found
from service.codec.avro import AvroDecoder, OneSchema, record_of
from service.codec.binary_files import records_of
from service.codec.binary_records import Part, without_skipped
from service.codec.envelopes import DEBEZIUM
from service.codec.events import LARGEST_MESSAGE, MAX_EVENT_BYTES, WHOLE_RECORD, Events, Refused

ENDING = ".avro"
_MAGIC = b"Obj\x01"
_SYNC = 16
_MOST_HEADER = 4 << 20
_MOST_BLOCK = 64 << 20
"""Bytes of a block, compressed or not."""
_LONGEST_NUMBER = 10
_DAMAGED = "not readable as Avro; it is damaged, cut off, or something else"


def is_avro(path: Path) -> bool:
    """Whether a file says that it is one."""
    return path.name.lower().endswith(ENDING)


def read_avro_events(
    path: Path,
    schema: Schema,
    *,
    progress: Progress,
    person_key: PersonKey | None = None,
    envelope: str | None = None,
) -> Iterator[Events]:
    """The events of a file in their order; positions count its records from 0."""
    with records_of(path, schema) as file:
        yield from _events(file, path.stat().st_size, schema, progress, person_key, envelope)


def _events(
    file: BinaryIO, size: int, schema: Schema, progress: Progress, person_key: PersonKey | None, envelope: str | None
) -> Iterator[Events]:
    about, sync = _header(file)
    decompress = _CODECS.get(about.get("avro.codec", b"null").decode("ascii", "replace"))
    if decompress is None:
        raise DataError(f"compressed in a way that is not known; known are {', '.join(_CODECS)}")
    text = about.get("avro.schema", b"").decode("utf-8", "replace")
    record, done = record_of(text, "the file", connect=envelope == DEBEZIUM), 0
    decoder = AvroDecoder(schema, OneSchema(record), MAX_EVENT_BYTES, LARGEST_MESSAGE, person_key, envelope)
    while (count := _number(file)) is not None:
        length = _number(file)
        if length is None or not 0 <= length <= _MOST_BLOCK or count < 0:
            raise DataError(_DAMAGED)
        data = _exactly(file, length)
        if _exactly(file, _SYNC) != sync:
            raise DataError(_DAMAGED)
        yield _block(decoder, _raw(decompress, data), count, done)
        done += count
        progress("read", done, max(done, round(done * size / file.tell())))
    if not done:
        raise DataError("there are no rows")


def _block(decoder: AvroDecoder, data: bytes, count: int, done: int) -> Events:
    """The records of one block: as many as it says, and nothing behind them."""
    # Records without a field take no bytes, but no policy is about them.
    if count > len(data):
        raise DataError(_DAMAGED)
    plan = decoder.reader.plan(0)
    assert not isinstance(plan, Reason), "the file's own schema"
    found, bounds = nothing_found(len(decoder.reader.fields), count), np.zeros(count + 1, np.int64)
    values = np.frombuffer(data, np.uint8)
    if split(values, plan.program, found, bounds, 0, len(values)) < count or bounds[-1] != len(values):
        raise DataError(_DAMAGED)
    offsets, fits = np.arange(done, done + count), np.diff(bounds) <= MAX_EVENT_BYTES
    part, others = without_skipped(decoder.reader, Part(np.flatnonzero(fits), values, found_of(found, fits), plan))
    events = replace(decoder.rows(part, offsets[part.rows], None), skipped=len(others))
    large = [Refused(int(offset), WHOLE_RECORD, Reason.TOO_LARGE) for offset in offsets[~fits]]
    return Events.merged([events], large) if large else events


def _header(file: BinaryIO) -> tuple[dict[str, bytes], bytes]:
    """What the file says of itself, and the bytes between its blocks."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise DataError(_DAMAGED)
    about = {}
    while count := _number(file) or 0:
        if count < 0:
            count = -count
            _number(file)
        for _ in range(count):
            key = _text(file).decode("utf-8", "replace")
            about[key] = _text(file)
            if file.tell() > _MOST_HEADER:
                raise DataError(_DAMAGED)
    return about, _exactly(file, _SYNC)


def _text(file: BinaryIO) -> bytes:
    length = _number(file)
    if length is None or not 0 <= length <= _MOST_HEADER:
        raise DataError(_DAMAGED)
    return _exactly(file, length)


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise DataError(_DAMAGED)
    return data


def _number(file: BinaryIO) -> int | None:
    """A whole number; None at the end of the file."""
    value = 0
    for place in range(_LONGEST_NUMBER):
        byte = file.read(1)
        if not byte:
            if place:
                break
            return None
        value |= (byte[0] & 127) << (7 * place)
        if byte[0] < 128:
            return (value >> 1) ^ -(value & 1)
    raise DataError(_DAMAGED)


def _raw(decompress: Callable[[bytes], bytes], data: bytes) -> bytes:
    try:
        raw = decompress(data)
    except Exception:  # noqa: BLE001 - each library has its own
        raise DataError(_DAMAGED) from None
    if len(raw) > _MOST_BLOCK:
        raise DataError(f"a block is larger than {_MOST_BLOCK >> 20} MB")
    return raw


def _snappy(data: bytes) -> bytes:
    said = sum((byte & 127) << (7 * place) for place, byte in enumerate(data[:4]) if not place or data[place - 1] > 127)
    if said > _MOST_BLOCK:  # it begins with how large it will be
        raise DataError(_DAMAGED)
    raw: bytes = snappy.uncompress(data[:-4])
    if zlib.crc32(raw) != int.from_bytes(data[-4:], "big"):
        raise DataError(_DAMAGED)
    return raw


def _zstandard(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().stream_reader(data).read(_MOST_BLOCK + 1)


_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": lambda data: zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, _MOST_BLOCK + 1),
    "snappy": _snappy,
    "zstandard": _zstandard,
    "bzip2": lambda data: bz2.BZ2Decompressor().decompress(data, _MOST_BLOCK + 1),
    "xz": lambda data: lzma.LZMADecompressor().decompress(data, _MOST_BLOCK + 1),
}
