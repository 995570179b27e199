"""How records are written: one codec per format, from bytes to rows."""

from service.codec.events import MAX_EVENT_BYTES, Codec, Events, Records, Refused, refused_records
from service.codec.files import read_events
from service.codec.json import JsonCodec

__all__ = ["MAX_EVENT_BYTES", "Codec", "Events", "JsonCodec", "Records", "Refused", "read_events", "refused_records"]
