"""How records are written: one codec per format, from bytes to rows and from what leaves to bytes."""

from service.codec.events import (
    LARGEST_MESSAGE,
    MAX_EVENT_BYTES,
    WIRE_PREFIX,
    Codec,
    Emit,
    Events,
    Leaving,
    Records,
    Refused,
    plain_values,
    refusals_of,
    refused_records,
)
from service.codec.field_tags import field_tags
from service.codec.files import read_events
from service.codec.formats import (
    AVRO,
    CODECS,
    DEFAULT_FORMAT,
    JSON_SCHEMA,
    PROTOBUF,
    Format,
    Route,
    TopicFormat,
    codec_of,
    format_names,
    topic_complaints,
    warm_up,
)
from service.codec.json import JsonCodec

__all__ = [
    "AVRO",
    "CODECS",
    "DEFAULT_FORMAT",
    "JSON_SCHEMA",
    "LARGEST_MESSAGE",
    "MAX_EVENT_BYTES",
    "PROTOBUF",
    "WIRE_PREFIX",
    "Codec",
    "Emit",
    "Events",
    "Format",
    "JsonCodec",
    "Leaving",
    "Records",
    "Refused",
    "Route",
    "TopicFormat",
    "codec_of",
    "field_tags",
    "format_names",
    "plain_values",
    "read_events",
    "refusals_of",
    "refused_records",
    "topic_complaints",
    "warm_up",
]
