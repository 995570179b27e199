"""Multipart requests, written to disk as they arrive and measured on the way.

The framework's own form parser keeps parts in temporary files of its choosing and knows no limit per part; here every
part has its limit, tables go straight to the job's directory, and what gzip hides is counted while it passes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from service.jobs import GZIP, ending_of, unusable
from service.problems import Place, ProblemError

_BLOCK = 1 << 20
_MOST_HEADER = 4_096
_MOST_PARTS = 100
_MOST_BOUNDARY = 70
"""As RFC 2046 says."""
_SMALL = 10 << 20
"""From this size on, unpacked, the ratio of a gzipped table counts."""


@dataclass(frozen=True)
class Limits:
    """What a request may bring."""

    table_bytes: int
    policy_bytes: int
    hierarchy_bytes: int
    ratio: int
    seconds: float


@dataclass
class Form:
    """What a request brought."""

    tables: dict[str, str] = field(default_factory=dict)
    """Name of the file that holds each table."""
    policy: bytes | None = None
    policy_name: bytes | None = None
    purpose: bytes | None = None
    hierarchies: dict[str, bytes] = field(default_factory=dict)
    """By the last part of the name that the client gave; only ever compared, never opened."""
    distribution: bytes | None = None
    digest: str = ""


async def read_form(request: Request, limits: Limits, tables: tuple[str, ...], directory: Path | None) -> Form:
    """Read a multipart request: these parts for tables, policy, policy_name, purpose, hierarchies, distribution."""
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data" or not 0 < len(options.get(b"boundary", b"")) <= _MOST_BOUNDARY:
        raise ProblemError(
            "bad-request",
            f"The request must be multipart/form-data with a boundary of 1 to {_MOST_BOUNDARY} characters.",
        )
    reader = _Reader(limits, tables, directory)
    try:
        parser = MultipartParser(options[b"boundary"], reader.callbacks())
        async for chunk in body_chunks(request, limits.seconds):
            parser.write(chunk)
            if reader.waiting >= _BLOCK:
                await run_in_threadpool(reader.flush)
        parser.finalize()
        await run_in_threadpool(reader.flush)
    except MultipartParseError:
        raise ProblemError("bad-request", "The request is not well-formed multipart/form-data.") from None
    finally:
        reader.close()
    if not reader.complete:
        raise ProblemError("bad-upload", "The request ended before its last part was complete.")
    return await run_in_threadpool(reader.form)


async def body_chunks(request: Request, seconds: float) -> AsyncIterator[bytes]:
    """The body as it arrives; who sends nothing for too long is not waited for."""
    stream = request.stream()
    while True:
        try:
            yield await asyncio.wait_for(anext(stream), seconds)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise ProblemError("timeout", f"Nothing arrived for {seconds:g} s.") from None


async def read_body(request: Request, most: int, seconds: float) -> bytes:
    """A whole body that is small."""
    body = bytearray()
    async for chunk in body_chunks(request, seconds):
        body += chunk
        if len(body) > most:
            raise ProblemError("too-large", f"At most {most} bytes are accepted.")
    return bytes(body)


class _Reader:
    """Receives the parser's events."""

    def __init__(self, limits: Limits, tables: tuple[str, ...], directory: Path | None) -> None:
        self._limits = limits
        self._tables = tables
        self._directory = directory
        self._digest = hashlib.sha256()
        self._digests: list[tuple[str, str, str]] = []
        """Name, file name and SHA-256 of each part; the file name counts only where it is compared with a policy."""
        self._parts = 0
        self._header = [b"", b""]
        self._headers: dict[bytes, bytes] = {}
        self._sink: _Table | _Small | None = None
        self._done: list[_Table | _Small] = []
        self.complete = False

    def callbacks(self) -> Any:
        """What the parser calls."""
        return {
            "on_part_begin": self._begin,
            "on_header_begin": self._begin_header,
            "on_header_field": lambda data, start, end: self._collect(0, data[start:end]),
            "on_header_value": lambda data, start, end: self._collect(1, data[start:end]),
            "on_header_end": self._end_header,
            "on_headers_finished": self._open,
            "on_part_data": lambda data, start, end: self._data(data[start:end]),
            "on_part_end": self._end,
            "on_end": self._finish,
        }

    @property
    def waiting(self) -> int:
        """Bytes that are not on disk yet."""
        return sum(sink.waiting for sink in self._open_tables())

    def flush(self) -> None:
        """Write them."""
        for sink in self._open_tables():
            sink.flush()

    def close(self) -> None:
        """Close all files."""
        for sink in self._open_tables():
            sink.file.close()

    def _open_tables(self) -> list[_Table]:
        sinks = [*self._done, self._sink]
        return [sink for sink in sinks if isinstance(sink, _Table)]

    def form(self) -> Form:
        """What was read."""
        form = Form(digest=hashlib.sha256(json.dumps(sorted(self._digests)).encode()).hexdigest())
        for sink in self._done:
            if isinstance(sink, _Table):
                ending = ending_of(sink.path, sink.part)
                sink.check_complete()
                form.tables[sink.part] = sink.path.rename(sink.path.with_name(sink.part + ending)).name
            elif sink.part == "hierarchies":
                form.hierarchies[sink.name] = bytes(sink.content)
            else:
                setattr(form, sink.part, bytes(sink.content))
        return form

    def _begin(self) -> None:
        self._parts += 1
        self._headers = {}
        if self._parts > _MOST_PARTS:
            raise ProblemError("bad-upload", f"A request has at most {_MOST_PARTS} parts.")

    def _begin_header(self) -> None:
        self._header = [b"", b""]

    def _collect(self, which: int, data: bytes) -> None:
        self._header[which] += data
        if len(self._header[which]) > _MOST_HEADER:
            raise ProblemError("bad-upload", f"A part's header is longer than {_MOST_HEADER} bytes.")

    def _end_header(self) -> None:
        self._headers[self._header[0].lower()] = self._header[1]

    def _open(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        part = options.get(b"name", b"").decode("utf-8", errors="replace")
        limits = self._limits
        small = {
            "policy": limits.policy_bytes,
            "policy_name": 100,
            "purpose": 100,
            "distribution": limits.hierarchy_bytes,
            "hierarchies": limits.hierarchy_bytes - self._taken("hierarchies"),
        }
        if part != "hierarchies" and any(sink.part == part for sink in self._done):
            raise unusable(part, "is there twice")
        if part in self._tables and self._directory is not None:
            self._sink = _Table(part, self._directory / f"{part}.part", limits)
        elif part in small:
            name = options.get(b"filename", b"").decode("utf-8", errors="replace")
            name = name.replace("\\", "/").rpartition("/")[2]
            if part == "hierarchies" and any(isinstance(sink, _Small) and sink.is_file(name) for sink in self._done):
                raise unusable(part, "has two files of one name; folders in a name do not count")
            self._sink = _Small(part, small[part], name)
        else:
            allowed = ", ".join([*(self._tables if self._directory else ()), *small])
            raise ProblemError("bad-upload", f"A part has an unknown name; the names are {allowed}.")
        self._digest = hashlib.sha256()

    def _taken(self, part: str) -> int:
        return sum(len(sink.content) for sink in self._done if isinstance(sink, _Small) and sink.part == part)

    def _data(self, data: bytes) -> None:
        assert self._sink is not None
        self._digest.update(data)
        self._sink.add(data)

    def _end(self) -> None:
        assert self._sink is not None
        name = self._sink.name if isinstance(self._sink, _Small) and self._sink.part == "hierarchies" else ""
        self._digests.append((self._sink.part, name, self._digest.hexdigest()))
        self._done.append(self._sink)
        self._sink = None

    def _finish(self) -> None:
        self.complete = True


class _Small:
    """A part that is kept in memory."""

    def __init__(self, part: str, most: int, name: str) -> None:
        self.part = part
        self.name = name
        self.content = bytearray()
        self._most = most

    def is_file(self, name: str) -> bool:
        """Whether this is the hierarchy file of this name."""
        return self.part == "hierarchies" and self.name == name

    def add(self, data: bytes) -> None:
        self.content += data
        if len(self.content) > self._most:
            raise _too_large(self.part, self._most)


class _Table:
    """A part that is written to a file."""

    def __init__(self, part: str, path: Path, limits: Limits) -> None:
        self.part = part
        self.path = path
        self.file: BinaryIO = path.open("xb")
        self._limits = limits
        self._buffer = bytearray()
        self._size = 0
        self._meter: _Meter | None = None

    @property
    def waiting(self) -> int:
        return len(self._buffer)

    def add(self, data: bytes) -> None:
        if not self._size and data.startswith(GZIP):
            self._meter = _Meter(self.part, self._limits)
        self._size += len(data)
        if self._size > self._limits.table_bytes:
            raise _too_large(self.part, self._limits.table_bytes)
        self._buffer += data

    def flush(self) -> None:
        block, self._buffer = bytes(self._buffer), bytearray()
        if self._meter is not None:
            self._meter.add(block)
        if block:
            self.file.write(block)
            self.file.flush()

    def check_complete(self) -> None:
        if self._meter is not None and not self._meter.complete:
            raise unusable(self.part, "is cut off: its gzip stream does not end")


class _Meter:
    """Unpacks gzip to count what is in it, and keeps none of it."""

    def __init__(self, part: str, limits: Limits) -> None:
        self._part = part
        self._limits = limits
        self._unpacker = zlib.decompressobj(wbits=31)
        self._packed = 0
        self._unpacked = 0

    @property
    def complete(self) -> bool:
        return self._unpacker.eof

    def add(self, data: bytes) -> None:
        self._packed += len(data)
        while data:
            if self._unpacker.eof:  # gzip files may follow one another
                self._unpacker = zlib.decompressobj(wbits=31)
            try:
                self._unpacked += len(self._unpacker.decompress(data, _BLOCK))
            except zlib.error:
                raise unusable(self._part, "begins like gzip, but is damaged") from None
            data = self._unpacker.unconsumed_tail or self._unpacker.unused_data
            self._check()

    def _check(self) -> None:
        if self._unpacked > self._limits.table_bytes:
            raise _too_large(self._part, self._limits.table_bytes)
        if self._unpacked > max(_SMALL, self._limits.ratio * self._packed):
            reason = f"is more than {self._limits.ratio} times larger when it is unpacked"
            raise ProblemError(
                "too-large", "The upload is too large once it is unpacked.", [Place(path=self._part, reason=reason)]
            )


def _too_large(part: str, most: int) -> ProblemError:
    return ProblemError("too-large", "A part is too large.", [Place(path=part, reason=f"at most {most} bytes")])


def required(form: Mapping[str, object] | Form, *parts: str) -> None:
    """Refuse a request in which one of these parts is missing."""
    tables = form.tables if isinstance(form, Form) else form
    missing = [part for part in parts if part not in tables]
    if missing:
        places = [Place(path=part, reason="is missing") for part in missing]
        raise ProblemError("bad-upload", "A part is missing.", places)
