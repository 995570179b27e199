"""Events from files of Protobuf: messages one behind the other, each behind its length. The policy has their schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from microdata import DataError, PersonKey, Progress, Schema
from service.codec._protobuf_kernels import split
from service.codec.binary_files import records_of
from service.codec.events import LARGEST_MESSAGE, MAX_EVENT_BYTES, Events, GivenRecords
from service.codec.formats import PROTOBUF, TopicFormat
from service.codec.protobuf import OneMessage, ProtobufDecoder

_ENDING = ".pb"
_CHUNK = 4 << 20
_MOST_MESSAGE = 64 << 20
"""Bytes of a message; larger ones are no messages."""
_AT_ONCE = 1 << 14
_DAMAGED = "not readable as messages of Protobuf, each behind its length; it is damaged, cut off, or something else"


def is_protobuf(path: Path) -> bool:
    """Whether a file says that it is one."""
    return path.name.lower().endswith(_ENDING)


def read_protobuf_events(
    path: Path, schema: Schema, topic: TopicFormat | None, *, progress: Progress, person_key: PersonKey | None = None
) -> Iterator[Events]:
    """The events of a file in their order; positions count its messages from 0."""
    if topic is None or topic.type != PROTOBUF or topic.schema is None:
        raise DataError(f"{path.name}: such a file is read by the schema that stream.format.input names as a file")
    with records_of(path, schema) as file:
        messages = OneMessage(topic.schema, topic.record, "stream.format", topic.aliases_inside)
        decoder = ProtobufDecoder(schema, messages, MAX_EVENT_BYTES, LARGEST_MESSAGE, person_key, topic.envelope)
        size, done, rest = path.stat().st_size, 0, b""
        while chunk := file.read(_CHUNK):
            rest += chunk
            for values, after in _whole(rest):
                yield decoder.decode(GivenRecords.without_keys(values, done))
                done, rest = done + len(values), after
                progress("read", done, max(done, round(done * size / max(file.tell() - len(rest), 1))))
        if rest:
            raise DataError(_DAMAGED)
        if not done:
            raise DataError("there are no rows")


def _whole(data: bytes) -> Iterator[tuple[list[bytes], bytes]]:
    """Messages that are here as a whole, some at a time, and what is behind them."""
    while data:
        bounds = np.zeros((_AT_ONCE, 2), np.int64)
        count, at = split(np.frombuffer(data, np.uint8), bounds)
        if at < 0 or (not count and len(data) > _MOST_MESSAGE):
            raise DataError(_DAMAGED)
        if not count:
            return
        values, data = [data[begin:end] for begin, end in bounds[:count].tolist()], data[at:]
        yield values, data
