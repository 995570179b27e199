"""How producers say which schema a record is of, where it is not said in the way that Portcullis reads."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from microdata import Reason
from service.codec.events import RECORD_KEY, WHOLE_RECORD, WIRE_PREFIX, Events, Records

_PREFIX_SERIALIZER = "io.confluent.kafka.serializers.schema.id.PrefixSchemaIdSerializer"
_APICURIO = (
    "apicurio.registry.headers.enabled=false, "
    "apicurio.registry.id-handler=io.apicurio.registry.serde.Default4ByteIdHandler and "
    "apicurio.registry.use-id=contentId"
)
_AS_FILE = "or name the schema as a file, which reads records with nothing in front"
_HEADERS = {
    "__value_schema_id": (
        "records carry the id of their schema in the header __value_schema_id, which is not read: let producers set "
        f"value.schema.id.serializer={_PREFIX_SERIALIZER}, {_AS_FILE} (stream.format.input.schema)"
    ),
    **dict.fromkeys(
        ("apicurio.value.globalId", "apicurio.value.contentId"),
        "records carry the id of their schema in headers of Apicurio, which are not read: let producers set "
        f"{_APICURIO}, {_AS_FILE} (stream.format.input.schema)",
    ),
}
"""By the names of headers, what is wrong with records and what to do."""
_KEY_HEADERS = {
    "__key_schema_id": (
        "record keys carry the id of their schema in the header __key_schema_id, which is not read: let producers set "
        f"key.schema.id.serializer={_PREFIX_SERIALIZER}, {_AS_FILE} (stream.format.key.schema)"
    ),
    **dict.fromkeys(
        ("apicurio.key.globalId", "apicurio.key.contentId"),
        "record keys carry the id of their schema in headers of Apicurio, which are not read: let producers set "
        f"{_APICURIO}, {_AS_FILE} (stream.format.key.schema)",
    ),
}
_STARTS = (
    (
        b"\xc3\x01",
        10,
        (
            "records are in Avro's single-object encoding (C3 01 and a fingerprint), which is not read: let producers "
            "use the serializer of a schema registry"
        ),
    ),
    (
        b"\0" * WIRE_PREFIX,  # a zero byte and the higher half of an id
        9,
        (
            "records begin with an id of eight bytes, as those of Apicurio do, which is not read: let producers set "
            f"{_APICURIO}"
        ),
    ),
)
"""How records begin, their fewest bytes, and what to do."""
_JSON_STARTS = (
    (
        b"\0",
        WIRE_PREFIX + 1,
        (
            "records begin with the id of a schema: set stream.format to what the registry has for the topic, for "
            "example json-schema or avro"
        ),
    ),
)
_NOT_READ = {Reason.MALFORMED, Reason.UNKNOWN_SCHEMA, Reason.OTHER_SCHEMA, Reason.NOT_JSON}
_MOST_LOOKED_AT = 100


def other_framing(batch: Records, header_names: Collection[str], events: Events, *, plain_json: bool) -> str | None:
    """Return what is wrong with the framing of records and what to do, None where nothing shows another framing.

    Most records of the batch must have been rejected as unreadable: a single odd record says nothing about a topic.
    `header_names` are the headers of its first record.
    """
    values = {int(offset): value for offset, value in zip(batch.offsets, batch.values, strict=True) if value}
    keys, records = (
        [one.offset for one in events.refused if one.field == field and one.reason in _NOT_READ]
        for field in (RECORD_KEY, WHOLE_RECORD)
    )
    found = None
    if 2 * len(keys) > len(values):
        found = _by_header(_KEY_HEADERS, header_names)
    if found is None and 2 * len(records) > len(values):
        unread = [values[offset] for offset in records[:_MOST_LOOKED_AT] if offset in values]
        if plain_json:
            return _by_start(_JSON_STARTS, unread)
        found = _by_header(_HEADERS, header_names) or _by_start(_STARTS, unread)
    return found


def _by_header(known: dict[str, str], header_names: Collection[str]) -> str | None:
    return next((advice for name, advice in known.items() if name in header_names), None)


def _by_start(known: Sequence[tuple[bytes, int, str]], values: Sequence[bytes]) -> str | None:
    """What to do where most values begin in a known way."""
    for start, least_bytes, advice in known:
        if 2 * sum(value.startswith(start) and len(value) >= least_bytes for value in values) > len(values):
            return advice
    return None
