"""Events from files: lines of JSON, Avro and Protobuf as a topic's records, column formats as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from microdata import DataError, Encoded, PersonKey, PersonSource, Progress, Schema, read_batches, silent
from microdata.sources import format_of, line_chunks, reading
from service.codec.avro_files import is_avro, read_avro_events
from service.codec.events import MAX_EVENT_BYTES, Events, GivenRecords, refused_records
from service.codec.formats import TopicFormat, opened_json
from service.codec.json import JsonCodec
from service.codec.protobuf_files import is_protobuf, read_protobuf_events

LINES = 1 << 14
"""Lines that are decoded at once."""


def read_events(
    path: Path,
    schema: Schema,
    *,
    topic: TopicFormat | None = None,
    progress: Progress = silent,
    person_key: PersonKey | None = None,
) -> Iterator[Events]:
    """The events of a file in their order; positions count its rows, or its lines that are not empty, from 0.

    A line of JSON, or a record of Avro or Protobuf, means what a record with these bytes means to a worker. The format
    of the topic has the schema of Protobuf; other files have their own.
    """
    if is_avro(path):
        envelope = None if topic is None else topic.envelope
        yield from read_avro_events(path, schema, progress=progress, person_key=person_key, envelope=envelope)
        return
    if is_protobuf(path):
        yield from read_protobuf_events(path, schema, topic, progress=progress, person_key=person_key)
        return
    if format_of(path) != "json":
        batches = read_batches(path, schema, on_refused="drop", progress=progress, person_key=person_key)
        for encoded in batches:
            yield _events(encoded, schema)
        return
    if schema.person is PersonSource.KEY:
        raise DataError(f"{path.name}: the schema takes the person from record keys, and lines of a file have none")
    codec, done = opened_json(JsonCodec(schema, person_key=person_key), topic, schema, MAX_EVENT_BYTES), 0
    with reading(path):
        for lines, share in line_chunks(path):
            if not done and lines and lines[0].startswith(b"["):
                raise DataError("a JSON array; needed is one object per line")
            for start in range(0, len(lines), LINES):
                values = lines[start : start + LINES]
                yield codec.decode(GivenRecords.without_keys(values, done))
                done += len(values)
            progress("read", done, max(done, round(done / share) if share else done))
        if not done:
            raise DataError("there are no rows")


def _events(encoded: Encoded, schema: Schema) -> Events:
    """Encoded columns as events."""
    table = encoded.table
    public = () if table.public is None else tuple(table.public.column(name).combine_chunks() for name in schema.public)
    refused = refused_records(encoded.refusals)
    rejected = encoded.rejected
    return Events(encoded.rows, table.persons, table.quasi, table.sensitive, public, refused, encoded.more, rejected)
