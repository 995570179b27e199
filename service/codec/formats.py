"""The formats that a policy may name, for each topic its own, and the codec of two of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from microdata import PersonKey, PersonSource, Schema, SchemaError, Show
from service.codec import avro, avro_messages, protobuf, protobuf_messages
from service.codec.avro import AvroDecoder, AvroReader, OneSchema, RegistrySchemas, record_of, scalar_of
from service.codec.avro_messages import AvroMessages, derived_schema
from service.codec.avro_schema import Aliases
from service.codec.binary_messages import largest_row
from service.codec.binary_records import BinaryDecoder
from service.codec.envelopes import DEBEZIUM, EnvelopeDecoder, JsonEnvelope, path_inside
from service.codec.events import (
    LARGEST_MESSAGE,
    MAX_EVENT_BYTES,
    RECORD_KEY,
    WIRE_PREFIX,
    Codec,
    Emit,
    Events,
    Leaving,
    Records,
)
from service.codec.json import JsonCodec
from service.codec.json_messages import JSON_VALUE, JsonMessages
from service.codec.json_schema import JsonSchemaDecoder, JsonSchemaMessages, derived_json_schema
from service.codec.keys import BinaryKeys, DecodedKeys, JsonKeys, JsonSchemaKeys, KeyReader
from service.codec.output_changes import Changes, changes
from service.codec.protobuf import OneMessage, ProtobufDecoder, ProtobufReader, RegistryMessages
from service.codec.protobuf_messages import ProtobufMessages, derived_protobuf
from service.codec.protobuf_schema import same_declarations
from service.codec.subjects import NO_SCHEMAS, SchemaIds, Subject
from service.registry import Registry, RegistrySettings, SchemaConflictError
from service.settings import settings_of

NewCodec: TypeAlias = Callable[[Schema, int, int, PersonKey], Codec]
"""Makes the codec of a schema for records and messages of at most so many bytes; it compares persons under this key."""

DEFAULT_FORMAT, AVRO, PROTOBUF, JSON_SCHEMA = "json", "avro", "protobuf", "json-schema"
CODECS: dict[str, NewCodec] = {DEFAULT_FORMAT: JsonCodec}
"""Formats that need nothing but the policy, by their name. A new one takes a line here."""
RAW = "raw"
"""Keys that are no more than their bytes."""
_BINARY = frozenset({AVRO, PROTOBUF})
_WITH_SCHEMA = _BINARY | {JSON_SCHEMA}
_WIDEST = 6
"""Bytes that one byte of a public text takes at most when it is written as JSON."""


def format_names() -> tuple[str, ...]:
    """What a policy may say."""
    return *CODECS, AVRO, PROTOBUF, JSON_SCHEMA


def key_format_names() -> tuple[str, ...]:
    """What a policy may say of record keys."""
    return RAW, DEFAULT_FORMAT, AVRO, PROTOBUF, JSON_SCHEMA


@dataclass(frozen=True)
class TopicFormat:
    """How the records of one topic are written."""

    type: str = DEFAULT_FORMAT
    schema: str | None = None
    """The text of a schema, or a descriptor in base64: records have nothing in front of them, no registry is asked."""
    subject: str | None = None
    """Where the registry has its schemas; `TOPIC-value` if left out."""
    record: str | None = None
    """The name of the records or messages, where a topic has others too."""
    register: bool = True
    """Whether a schema that the subject does not have is registered there."""
    envelope: str | None = None
    """What is around each event of the input."""
    aliases: Aliases = ()
    """Other names that fields of the policy have in the schemas of Avro and Protobuf."""

    @property
    def is_prefixed(self) -> bool:
        """Whether records begin with the id of a schema in a registry."""
        return _asks(self)

    @property
    def aliases_inside(self) -> Aliases:
        """The aliases of fields where they are in a record."""
        return tuple((path_inside(self.envelope, name), others) for name, others in self.aliases)

    def identity(self) -> Any:
        """What makes two of them the same: a name, or all that is said beyond it."""
        said = {key: value for key, value in asdict(self).items() if value not in (None, True, ())}
        return self.type if len(said) == 1 else said


@dataclass(frozen=True)
class Format:
    """How the records of a stream's two topics are written."""

    input: TopicFormat = TopicFormat()
    output: TopicFormat = TopicFormat()
    key: TopicFormat | None = None
    """How the keys of the input's records are written; None where nobody has said it, which is read as `raw`."""

    @property
    def needs_registry(self) -> bool:
        """Whether a registry has to be asked."""
        return any(map(_asks, (self.input, self.output, *filter(None, [self.key]))))

    @property
    def key_must_be_declared(self) -> bool:
        """Whether keys may carry ids of schemas, as the input's values do, and nobody has said whether they do."""
        return self.key is None and _asks(self.input)

    @property
    def key_type(self) -> str:
        """The format of keys."""
        return RAW if self.key is None else self.key.type

    def identity(self) -> Any:
        """What makes two of them the same; one name where both topics have it, and keys are raw."""
        sides = {"input": self.input.identity(), "output": self.output.identity()}
        if self.key is not None and self.key_type != RAW:
            return {**sides, "key": self.key.identity()}
        return sides["input"] if sides["input"] == sides["output"] else sides


def _asks(side: TopicFormat) -> bool:
    return side.type in _WITH_SCHEMA and side.schema is None


@dataclass(frozen=True)
class Route:
    """What a codec is made for."""

    schema: Schema
    format: Format
    input: str
    output: str
    emit: Emit = "clusters"
    show: Show = "interval"
    registry: Registry | None = None
    """Who is asked for schemas, where somebody has to be."""
    schemas: SchemaIds = NO_SCHEMAS
    """Schemas to read and write by, in the place of the newest of their subjects."""
    follow: bool = False
    """Whether decoding raises `NewerSchemaError` when a record shows that a subject has a newer schema."""

    @property
    def input_subject(self) -> str:
        """Where the registry has the schemas of the input."""
        return self.format.input.subject or f"{self.input}-value"

    @property
    def key_subject(self) -> str:
        """Where the registry has the schemas of the input's keys."""
        return (self.format.key and self.format.key.subject) or f"{self.input}-key"

    @property
    def output_subject(self) -> str:
        """Where the registry has the schemas of what leaves."""
        return self.format.output.subject or f"{self.output}-value"

    def asked(self) -> Registry:
        """That registry."""
        assert self.registry is not None, "this format needs one"
        return self.registry


class Decoder(Protocol):
    """The half of a codec that reads."""

    def decode(self, batch: Records) -> Events:
        """Rows and refusals of one batch."""


class _Encoder(Protocol):
    def encode(self, leaving: Leaving, emit: Emit) -> Iterable[list[bytes]]: ...


@dataclass(frozen=True)
class StreamDecoder:
    """Reads the records of a stream's input."""

    decoder: Decoder
    public: Mapping[str, pa.DataType]
    """Of each public field the type of its column."""
    schemas: SchemaIds = NO_SCHEMAS
    """By which it reads."""

    def decode(self, batch: Records) -> Events:
        """Rows and refusals of one batch."""
        return self.decoder.decode(batch)


@dataclass(frozen=True)
class StreamCodec(StreamDecoder):
    """Reads a stream's input and writes its output, each in its own format."""

    encoder: _Encoder = field(kw_only=True)

    def encode(self, leaving: Leaving, emit: Emit) -> Iterable[list[bytes]]:
        """The messages of each cluster."""
        return self.encoder.encode(leaving, emit)


def codec_of(route: Route, max_bytes: int, message_bytes: int, person_key: PersonKey) -> StreamCodec:
    """Return the codec of a stream. A registry is asked for what the stream reads, and told what it writes."""
    source, target = route.format.input.type, route.format.output.type
    if not {source, target} & _WITH_SCHEMA:
        codec = CODECS[source](route.schema, max_bytes, message_bytes, person_key)
        opened = opened_json(codec, route.format.input, route.schema, max_bytes)
        read = _stream_decoder(route, _key_reader(route, max_bytes), opened)
        return StreamCodec(read.decoder, read.public, read.schemas, encoder=codec)
    read = decoder_of(route, max_bytes, message_bytes, person_key)
    if target in _BINARY:
        encoder, number = _binary_messages(route, read.public, message_bytes)
        return StreamCodec(read.decoder, read.public, _writing(read.schemas, number), encoder=encoder)
    messages = JsonMessages(route.schema, message_bytes - WIRE_PREFIX)
    if target != JSON_SCHEMA:
        return StreamCodec(read.decoder, read.public, read.schemas, encoder=messages)
    number = _output_schema(route, "JSON", derived_json_schema(route.schema, route.emit, route.show))
    documents = JsonSchemaMessages(messages, _prefix(number))
    return StreamCodec(read.decoder, read.public, _writing(read.schemas, number), encoder=documents)


def decoder_of(route: Route, max_bytes: int, message_bytes: int, person_key: PersonKey) -> StreamDecoder:
    """The half of the codec that reads. A registry is asked for what the stream reads, and told nothing."""
    keys, values = _key_reader(route, max_bytes), _value_decoder(route, max_bytes, message_bytes, person_key)
    return _stream_decoder(route, keys, values)


def _stream_decoder(route: Route, keys: KeyReader | None, values: Decoder) -> StreamDecoder:
    decoder = values if keys is None else DecodedKeys(keys, values)
    key = keys.reader.schema_id if isinstance(keys, BinaryKeys) else None
    if isinstance(values, BinaryDecoder):
        return StreamDecoder(decoder, values.public, SchemaIds(values.reader.schema_id, key))
    return StreamDecoder(decoder, dict.fromkeys(route.schema.public, JSON_VALUE), SchemaIds(None, key))


def _writing(schemas: SchemaIds, number: int | None) -> SchemaIds:
    return SchemaIds(schemas.input, schemas.key, number)


def _value_decoder(route: Route, max_bytes: int, message_bytes: int, person_key: PersonKey) -> Decoder:
    """Decodes values; where the person is in the key, it is named by the key's bytes."""
    source, target = route.format.input.type, route.format.output.type
    documents = message_bytes - WIRE_PREFIX
    room = largest_row(route.schema, message_bytes) if target in _BINARY else _largest_json_row(route.schema, documents)
    if source in _BINARY:
        return _binary_decoder(route, max_bytes, room, person_key)
    if source != JSON_SCHEMA and target not in _WITH_SCHEMA:
        plain = CODECS[source](route.schema, max_bytes, message_bytes, person_key)
        return opened_json(plain, route.format.input, route.schema, max_bytes)
    codec = JsonCodec(route.schema, min(max_bytes, room) if target in _BINARY else max_bytes, documents, person_key)
    opened = opened_json(codec, route.format.input, route.schema, max_bytes)
    return JsonSchemaDecoder(opened, route.asked()) if source == JSON_SCHEMA else opened


def opened_json(codec: Any, side: TopicFormat | None, schema: Schema, max_bytes: int) -> Any:
    """Return what decodes the events in envelopes of JSON; the codec itself where there is none."""
    if side is None or side.envelope is None:
        return codec
    return EnvelopeDecoder(codec, JsonEnvelope(side.envelope, schema), max_bytes)


def _binary_decoder(route: Route, max_bytes: int, largest: int, person_key: PersonKey) -> AvroDecoder | ProtobufDecoder:
    envelope = route.format.input.envelope
    if route.format.input.type == AVRO:
        return AvroDecoder(route.schema, _avro_schemas(route), max_bytes, largest, person_key, envelope)
    return ProtobufDecoder(route.schema, _protobuf_schemas(route), max_bytes, largest, person_key, envelope)


def _binary_messages(
    route: Route, public: Mapping[str, Any], message_bytes: int
) -> tuple[AvroMessages | ProtobufMessages, int | None]:
    """What writes the output, and the id of its schema."""
    what = route.schema, public, route.emit, route.show, route.output
    if route.format.output.type == AVRO:
        number = _output_schema(route, "AVRO", derived_schema(*what))
        return AvroMessages(route.schema, message_bytes, _prefix(number)), number
    number = _output_schema(route, protobuf.KIND, derived_protobuf(*what))
    prefix = _prefix(number)
    return ProtobufMessages(route.schema, message_bytes, prefix and prefix + protobuf.FIRST_MESSAGE), number


def topic_complaints(route: Route) -> list[tuple[str, str]]:
    """Declared fields that the schema of the input does not have, or not in a form that can be used, and why."""
    found: list[tuple[str, str]] = []
    side = route.format.input
    if route.format.input.type == AVRO:
        found += avro.complaints(_avro_schemas(route).reader(), route.schema, side.envelope)
    if route.format.input.type == PROTOBUF:
        message = _protobuf_schemas(route).reader()
        found += protobuf.complaints(message, route.schema, side.aliases_inside, side.envelope)
    try:
        _key_reader(route, MAX_EVENT_BYTES)
    except SchemaError as error:
        found.append((error.at or RECORD_KEY, error.reason))
    return found


def _key_reader(route: Route, max_bytes: int) -> KeyReader | None:
    """What decodes the input's keys; None where they are raw or name nobody."""
    side, field = route.format.key, route.schema.key_field
    if route.schema.person is not PersonSource.KEY:
        return None
    if side is None:
        _require_raw_keys(route)
        return None
    match side.type:
        case "json":
            return JsonKeys(field, max_bytes)
        case "json-schema":
            return JsonSchemaKeys(JsonKeys(field, max_bytes), route.asked())
        case "avro":
            return BinaryKeys(_avro_keys(route, side, max_bytes))
        case "protobuf":
            return BinaryKeys(_protobuf_keys(route, side, max_bytes))
    return None


def _require_raw_keys(route: Route) -> None:
    """Refuse keys of which nobody has said that they are raw, where the registry has a schema for them."""
    if route.registry is not None and route.registry.newest(route.key_subject) is not None:
        raise SchemaError(
            f"the schema registry has subject {route.key_subject!r}, so keys may carry the id of a schema, and a new "
            "version of it would count every person again; say in the policy how keys are written, for example "
            f"`stream.format: {{key: {AVRO}}}`, or `key: {RAW}` where their bytes are to be compared"
        )


def _avro_keys(route: Route, side: TopicFormat, max_bytes: int) -> AvroReader:
    field, schemas = route.schema.key_field or RECORD_KEY, _avro_key_schemas(route, side)
    newest = schemas.reader()
    why = avro.key_complaint(newest, field)
    if why is not None:
        raise SchemaError(why, at=field)
    return AvroReader((field,), schemas, newest, max_bytes)


def _avro_key_schemas(route: Route, side: TopicFormat) -> avro.Schemas:
    scalar = route.schema.key_field is None
    if side.schema is not None:
        return OneSchema((scalar_of if scalar else record_of)(side.schema, "stream.format.key"))
    subject = Subject(route.asked(), route.key_subject, "AVRO", route.schemas.key, follow=route.follow)
    return RegistrySchemas(subject, side.record, scalar=scalar)


def _protobuf_keys(route: Route, side: TopicFormat, max_bytes: int) -> ProtobufReader:
    field, schemas = route.schema.key_field or "", _protobuf_key_schemas(route, side)
    newest = schemas.reader()
    why = protobuf.key_complaint(newest, field)
    if why is not None:
        raise SchemaError(why, at=field)
    return ProtobufReader((field,), schemas, newest, max_bytes)


def _protobuf_key_schemas(route: Route, side: TopicFormat) -> protobuf.Schemas:
    if side.schema is not None:
        return OneMessage(side.schema, side.record, "stream.format.key")
    subject = Subject(route.asked(), route.key_subject, protobuf.KIND, route.schemas.key, follow=route.follow)
    return RegistryMessages(subject, side.record)


def registry_of(route: Route) -> Registry | None:
    """Return the registry that the settings name, where the route's formats need it or it may know the keys."""
    needed = route.format.needs_registry
    if not needed and (route.schema.person is not PersonSource.KEY or route.format.key is not None):
        return None
    settings = settings_of(RegistrySettings, {})
    return Registry(settings) if needed or settings.url is not None else None


def _largest_json_row(schema: Schema, message_bytes: int) -> int:
    numbers = 64 * len(schema.public)
    return (JsonMessages(schema, message_bytes).largest_record - numbers) // _WIDEST


def _avro_schemas(route: Route) -> avro.Schemas:
    side = route.format.input
    connect = side.envelope == DEBEZIUM
    if side.schema is not None:
        return OneSchema(record_of(side.schema, "stream.format", connect=connect), side.aliases_inside)
    subject = _input_subject(route, "AVRO")
    return RegistrySchemas(subject, side.record, aliases=side.aliases_inside, connect=connect)


def _protobuf_schemas(route: Route) -> protobuf.Schemas:
    side = route.format.input
    if side.schema is not None:
        return OneMessage(side.schema, side.record, "stream.format", side.aliases_inside)
    return RegistryMessages(_input_subject(route, protobuf.KIND), side.record, side.aliases_inside)


def _input_subject(route: Route, kind: str) -> Subject:
    return Subject(route.asked(), route.input_subject, kind, route.schemas.input, follow=route.follow)


def _prefix(number: int | None) -> bytes:
    """What stands in front of every message: the id of its schema; nothing where the policy has the schema."""
    return b"" if number is None else b"\0" + number.to_bytes(4, "big")


def _output_schema(route: Route, kind: str, text: str) -> int | None:
    """The id of the output's schema, which the registry has from now on; None where the policy has the schema."""
    side = route.format.output
    if side.schema is not None:
        if _same_schema(kind, side.schema, text):
            return None
        raise SchemaConflictError(f"stream.format: the output's schema file must hold {text}")
    number = route.schemas.output
    if number is not None:
        known = route.asked().by_id(number)
        if known is not None and known.kind == kind and _same_schema(kind, known.text, text):
            return number
    return _number(route.asked(), route.output_subject, kind, text, register=side.register)


def _same_schema(kind: str, one: str, other: str) -> bool:
    return same_declarations(one, other) if kind == protobuf.KIND else avro.same_schema(one, other)


def _number(registry: Registry, subject: str, kind: str, text: str, *, register: bool) -> int:
    """The id of the schema of what leaves; it is not registered where readers of the one before could not read it."""
    number = registry.look_up(subject, kind, text)
    if number is not None:
        return number
    newest = registry.newest(subject)
    different = changes(kind, newest.text, text) if newest is not None and newest.kind == kind else Changes([], [])
    if newest is not None and newest.kind != kind:
        different = Changes([f"it is {kind}, and was {newest.kind}"], [])
    if not register:
        said = "".join(f"; {each}" for each in (*different.types, *different.others))
        raise SchemaConflictError(f"subject {subject!r} does not have the schema of what leaves{said}: {text}")
    if different.types:
        raise SchemaConflictError(
            f"subject {subject!r}: {'; '.join(different.types)}. Who reads the one cannot read the other: name another "
            "output, or another subject for it"
        )
    try:
        return registry.register(subject, kind, text)
    except SchemaConflictError as error:
        said = "; ".join(different.others)
        raise SchemaConflictError(f"{error}{f' ({said})' if said else ''}") from None


def warm_up(route: Route, nothing: Records) -> None:
    """Compile what the codec of a stream needs; no registry is asked for anything."""
    used = {route.format.input.type, route.format.output.type, route.format.key_type}
    if AVRO in used:
        avro.warm_up()
        avro_messages.warm_up()
    if PROTOBUF in used:
        protobuf.warm_up()
        protobuf_messages.warm_up()
    if route.format.input.type not in _BINARY:
        new = CODECS.get(route.format.input.type, JsonCodec)
        new(route.schema, MAX_EVENT_BYTES, LARGEST_MESSAGE, PersonKey.random()).decode(nothing)
