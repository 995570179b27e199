"""Records of a topic of which nobody said yet what they are: all their fields as columns, whatever their format is.

What a record says is read as a worker would read it. Fields inside of others have dotted names, those of binary formats
as columns of their own, those of JSON in structs. A field that holds many values is there, but none of its values is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from microdata import DataError, Reason
from microdata.columns import texts
from microdata.sampling import json_object, json_table
from service.codec import avro_schema, protobuf_schema
from service.codec.avro import AvroReader, RegistrySchemas
from service.codec.binary_records import BinaryReader, Part, one_column, without_skipped
from service.codec.envelopes import DEBEZIUM, JsonEnvelope, envelope_of, path_inside, paths_inside
from service.codec.events import MAX_EVENT_BYTES, WIRE_PREFIX
from service.codec.field_tags import MOST_FIELDS, field_tags
from service.codec.formats import AVRO, DEFAULT_FORMAT, JSON_SCHEMA, PROTOBUF, RAW
from service.codec.protobuf import ProtobufReader, RegistryMessages
from service.codec.subjects import Subject
from service.registry import Registered, Registry

_AT_ONCE = 1 << 20
"""Values that are found at once, in however many records."""
_FORMATS = {"AVRO": AVRO, "PROTOBUF": PROTOBUF, "JSON": JSON_SCHEMA}
"""What policies call the kinds of a registry."""
_MANY = pa.list_(pa.null())
"""The type of a column that stands for values of which a record holds many."""


class Columns(Protocol):
    """Reads records of one format."""

    @property
    def envelope(self) -> str | None:
        """What is around each event, as far as records or schemas have shown it."""

    def read(self, values: Sequence[bytes | None]) -> tuple[pa.Table, NDArray[np.bool_]]:
        """All fields of those records that can be read, and which these are."""


@dataclass(frozen=True)
class TopicRecords:
    """What is known of a topic that a registry may know, and how its records are read."""

    format: str
    """As policies name it."""
    columns: Columns
    tags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What the newest schema says of fields, such as PII."""
    key_format: str = RAW
    """How the keys of its records are written, as policies name it."""
    key_fields: tuple[str, ...] = ()
    """Fields of a key that is a record."""

    @property
    def envelope(self) -> str | None:
        """What is around each event; of JSON it is known once records were read."""
        return self.columns.envelope


def undescribed(topic: str, registry: Registry | None) -> TopicRecords:
    """By the newest schemas of the topic; plain JSON, and raw keys, where nobody has one."""
    if registry is None:
        return TopicRecords(DEFAULT_FORMAT, JsonColumns())
    key = registry.newest(f"{topic}-key")
    found = _undescribed_values(f"{topic}-value", registry)
    return found if key is None else replace(found, key_format=_FORMATS[key.kind], key_fields=_key_fields(key))


def _key_fields(key: Registered) -> tuple[str, ...]:
    if key.kind == "AVRO":
        found = avro_schema.parse(key.text, key.references)
        return tuple(name for name, _ in _bounded(avro_schema.leaves(found)))
    if key.kind == "PROTOBUF":
        message = protobuf_schema.message_of(protobuf_schema.parse(key.text, key.references), None)
        return tuple(name for name, _ in _bounded(protobuf_schema.leaves(message)))
    described = msgspec.json.decode(key.text)
    properties = described.get("properties") if isinstance(described, dict) else None
    return tuple(properties) if isinstance(properties, dict) else ()


def _undescribed_values(subject: str, registry: Registry) -> TopicRecords:
    newest = registry.newest(subject)
    if newest is None:
        return TopicRecords(DEFAULT_FORMAT, JsonColumns())
    tags = field_tags(newest)
    if newest.kind == "AVRO":
        columns = avro_columns(registry, subject)
        return TopicRecords(AVRO, columns, _tags_inside(columns.envelope, tags))
    if newest.kind == "PROTOBUF":
        columns = protobuf_columns(RegistryMessages(Subject(registry, subject, "PROTOBUF")))
        return TopicRecords(PROTOBUF, columns, _tags_inside(columns.envelope, tags))
    return TopicRecords(JSON_SCHEMA, JsonColumns(WIRE_PREFIX), tags)


def _tags_inside(envelope: str | None, tags: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """Return the tags of fields by their names inside of the envelope."""
    inside = path_inside(envelope, "")
    return {name.removeprefix(inside): each for name, each in tags.items() if name.startswith(inside)}


class JsonColumns:
    """Objects of JSON behind so many bytes, or what is inside of them where they are envelopes."""

    def __init__(self, in_front: int = 0) -> None:
        self.envelope: str | None = None
        self._in_front = in_front
        self._opener: JsonEnvelope | None = None
        self._is_known = False
        """Whether an object has shown the envelope."""

    def read(self, values: Sequence[bytes | None]) -> tuple[pa.Table, NDArray[np.bool_]]:
        """All fields of those records that are objects."""
        objects = [None if value is None else self._object(value[self._in_front :]) for value in values]
        taken = np.array([each is not None for each in objects], bool)
        return json_table([each for each in objects if each is not None]), taken

    def _object(self, value: bytes) -> dict[str, Any] | None:
        if not self._is_known:
            found = json_object(value)
            if found is None:
                return None
            payload = found.get("payload")
            self._is_known, self.envelope = True, envelope_of(payload if isinstance(payload, dict) else found)
            self._opener = None if self.envelope is None else JsonEnvelope(self.envelope)
        if self._opener is None:
            return json_object(value)
        opened = self._opener.opened(value)
        return json_object(opened) if isinstance(opened, bytes) else None


@dataclass(frozen=True, eq=False)
class BinaryColumns:
    """Fields of Avro or of Protobuf."""

    reader: BinaryReader[Any, Any]
    types: Mapping[str, pa.DataType | None]
    """Of each field that the reader finds; None where it has several."""
    many: Sequence[str]
    """Fields that hold many values."""
    envelope: str | None = None
    """What is around each event."""

    def read(self, values: Sequence[bytes | None]) -> tuple[pa.Table, NDArray[np.bool_]]:
        """All fields of those records that are as their schema says."""
        step = max(_AT_ONCE // max(len(self.types), 1), 1)
        read = [self._some(values[start : start + step]) for start in range(0, max(len(values), 1), step)]
        return pa.concat_tables([table for table, _ in read]), np.concatenate([taken for _, taken in read])

    def _some(self, values: Sequence[bytes | None]) -> tuple[pa.Table, NDArray[np.bool_]]:
        read, why = self.reader.read(values)
        parts = []
        for whole in read:
            part, others = without_skipped(self.reader, whole)
            parts.append(part)
            why[others] = Reason.TOMBSTONE
        names, kinds = [*self.types, *self.many], [*(kind or pa.string() for kind in self.types.values())]
        shape = pa.schema([*zip(self.types, kinds, strict=True), *((name, _MANY) for name in self.many)])
        tables = [pa.table(dict(zip(names, self._columns(part), strict=True)), shape) for part in parts]
        table = pa.concat_tables([shape.empty_table(), *tables])
        places = np.concatenate([np.empty(0, np.int64), *(part.rows for part in parts)])
        return table.take(pa.array(np.argsort(places))), why == 0

    def _columns(self, part: Part[Any]) -> Iterator[pa.Array]:
        for place, (name, kind) in enumerate(self.types.items()):
            layers = self.reader.layers(name, place, part.data, part.found, part.plan)
            if kind is None:
                yield pc.coalesce(*(texts(layer)[0].cast(pa.string()) for layer in layers))
            else:
                yield one_column(layers, kind)[0]
        for _ in self.many:
            yield pa.nulls(len(part.rows), _MANY)


def avro_columns(registry: Registry, subject: str) -> BinaryColumns:
    """All fields of the newest schema, of an envelope those inside."""
    schemas = RegistrySchemas(Subject(registry, subject, "AVRO"))
    envelope = envelope_of([each.name for each in schemas.reader().fields])
    if envelope is not None:
        schemas = RegistrySchemas(Subject(registry, subject, "AVRO"), connect=envelope == DEBEZIUM)
    newest = schemas.reader()
    kinds = {
        name: [avro_schema.arrow_type(one) for one in each.type.choices()]
        for name, each in _inside(envelope, _bounded(avro_schema.leaves(newest)))
    }
    types = {name: own[0] if len(own) == 1 else None for name, own in kinds.items() if own and None not in own}
    paths = paths_inside(envelope, types)
    reader = AvroReader([*paths], schemas, newest, MAX_EVENT_BYTES, paths)
    return BinaryColumns(reader, types, [name for name, own in kinds.items() if None in own], envelope)


def protobuf_columns(schemas: RegistryMessages) -> BinaryColumns:
    """All fields of the message in the newest schema."""
    newest = schemas.reader()
    envelope = envelope_of([each.name for each in newest.fields])
    leaves = dict(_inside(envelope, _bounded(protobuf_schema.leaves(newest))))
    types = {
        name: protobuf_schema.arrow_type(path[-1])
        for name, path in leaves.items()
        if protobuf_schema.complaint(path) is None
    }
    paths = paths_inside(envelope, types)
    reader = ProtobufReader([*paths], schemas, newest, MAX_EVENT_BYTES, paths)
    return BinaryColumns(reader, types, [name for name in leaves if name not in types], envelope)


def _inside(envelope: str | None, leaves: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return the fields inside of the envelope by their names there."""
    inside = path_inside(envelope, "")
    return [(name.removeprefix(inside), one) for name, one in leaves if name.startswith(inside)]


def _bounded(leaves: Iterator[tuple[str, Any]]) -> list[tuple[str, Any]]:
    found = list(islice(leaves, MOST_FIELDS + 1))
    if len(found) > MOST_FIELDS:
        raise DataError(f"the topic's schema has more than {MOST_FIELDS} fields")
    return found
