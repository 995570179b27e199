"""How producers say which schema a record is of, where it is not said in the way that Portcullis reads."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from microdata import Reason
from service.codec.events import WHOLE_RECORD, WIRE_PREFIX, Events, Records

CONFLUENT_HEADERS = frozenset({"__value_schema_id"})
APICURIO_HEADERS = frozenset({"apicurio.value.globalId", "apicurio.value.contentId"})
_SINGLE_OBJECT, _SINGLE_OBJECT_BYTES = b"\xc3\x01", 10
_LONG_ID, _LONG_ID_BYTES = b"\0" * WIRE_PREFIX, 9
"""A zero byte and the higher half of an id of eight bytes."""
_NOT_READ = {Reason.MALFORMED, Reason.UNKNOWN_SCHEMA, Reason.OTHER_SCHEMA, Reason.NOT_JSON}
_MOST_LOOKED_AT = 100
_AS_FILE = "or name the schema as a file (stream.format.input.schema), which reads records with nothing in front"
_APICURIO = (
    "let producers set apicurio.registry.headers.enabled=false, "
    "apicurio.registry.id-handler=io.apicurio.registry.serde.Default4ByteIdHandler and "
    "apicurio.registry.use-id=contentId"
)


def other_framing(batch: Records, header_names: Collection[str], events: Events, *, plain_json: bool) -> str | None:
    """Return what is wrong with the framing of records and what to do, None where nothing shows another framing.

    Most records of the batch must have been rejected as unreadable: a single odd record says nothing about a topic.
    `header_names` are the headers of its first record.
    """
    values = {int(offset): value for offset, value in zip(batch.offsets, batch.values, strict=True) if value}
    unread = [one.offset for one in events.refused if one.field == WHOLE_RECORD and one.reason in _NOT_READ]
    if 2 * len(unread) <= len(values):
        return None
    looked_at = [values[offset] for offset in unread[:_MOST_LOOKED_AT] if offset in values]
    if plain_json:
        if _most(looked_at, b"\0", WIRE_PREFIX + 1):
            return (
                "records begin with the id of a schema: set stream.format to what the registry has for the topic, for "
                "example json-schema or avro"
            )
        return None
    if not CONFLUENT_HEADERS.isdisjoint(header_names):
        return (
            "records carry the id of their schema in the header __value_schema_id, which is not read: let producers "
            "write it in front of the value "
            "(value.schema.id.serializer=io.confluent.kafka.serializers.schema.id.PrefixSchemaIdSerializer), "
            f"{_AS_FILE}"
        )
    if not APICURIO_HEADERS.isdisjoint(header_names):
        return (
            f"records carry the id of their schema in headers of Apicurio, which are not read: {_APICURIO}, {_AS_FILE}"
        )
    if _most(looked_at, _SINGLE_OBJECT, _SINGLE_OBJECT_BYTES):
        return (
            "records are in Avro's single-object encoding (C3 01 and a fingerprint), which is not read: let producers "
            "use the serializer of a schema registry"
        )
    if _most(looked_at, _LONG_ID, _LONG_ID_BYTES):
        return f"records begin with an id of eight bytes, as those of Apicurio do, which is not read: {_APICURIO}"
    return None


def _most(values: Sequence[bytes], start: bytes, least_bytes: int) -> bool:
    """Whether most values begin like this."""
    return 2 * sum(value.startswith(start) and len(value) >= least_bytes for value in values) > len(values)
