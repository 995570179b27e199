"""Record keys that are encoded: from their bytes to the value that names a person.

Two keys name the same person when their decoded values are equal, whatever the version of the schema that each was
written with. Values are compared as those of a person field are: texts and whole numbers, by their text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Protocol, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from microdata import Reason
from microdata.encoding import person_names
from service.codec.binary_records import BinaryReader
from service.codec.events import RECORD_KEY, WIRE_PREFIX, Events, GivenRecords, Records
from service.codec.json import column_of, got, struct_of
from service.codec.json_schema import judged_head
from service.registry import Registry

Names: TypeAlias = tuple[NDArray[np.object_], NDArray[np.int8]]
"""Of each key the bytes that name its person, and why it is rejected; 0 where it is not."""
_KIND: tuple[Any, Any] = (str | int | None, None)


class KeyReader(Protocol):
    """Reads keys of one format."""

    def read(self, keys: Sequence[bytes | None]) -> Names:
        """Return what each key says, on its own."""


class _Decoder(Protocol):
    def decode(self, batch: Records) -> Events: ...


@dataclass(frozen=True, eq=False)
class DecodedKeys:
    """Decodes records whose keys are encoded; a record whose key cannot be decoded is rejected."""

    keys: KeyReader
    decoder: _Decoder
    """Takes the person from the key's bytes."""

    def decode(self, batch: Records) -> Events:
        """Rows and refusals of one batch."""
        names, why = self.keys.read(batch.keys)
        names[why > 0] = None
        events = self.decoder.decode(GivenRecords(batch.offsets, names.tolist(), batch.values))
        # A key without a name is missing to the decoder; here it is known why.
        reasons = dict(zip(batch.offsets[why > 0].tolist(), why[why > 0].tolist(), strict=True))
        refused = [
            replace(one, reason=Reason(reasons[one.offset])) if one.field == RECORD_KEY else one
            for one in events.refused
        ]
        return replace(events, refused=refused)


@dataclass(frozen=True, eq=False)
class BinaryKeys:
    """Reads keys of Avro or Protobuf."""

    reader: BinaryReader[Any, Any]
    """It looks for one field."""

    def read(self, keys: Sequence[bytes | None]) -> Names:
        """Return what each key says, by the schema whose id it carries."""
        parts, why = self.reader.read(keys)
        why[why == Reason.TOMBSTONE] = Reason.MISSING
        names = np.full(len(keys), None, object)
        for part in parts:
            layers = self.reader.layers(self.reader.fields[0], 0, part.data, part.found, part.plan)
            names[part.rows], why[part.rows] = person_names(layers)
        return names, why


class JsonKeys:
    """Reads keys that are documents of JSON: a text or a number, or with `field` an object that has it."""

    def __init__(self, field: str | None, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(str | int | None)
        self._get: Callable[[Any], Any] = _itself
        if field is not None:
            struct, paths = struct_of({field: _KIND})
            self._decoder, get = msgspec.json.Decoder(struct), attrgetter(paths[field])
            self._get = lambda found: got(get, found, None)

    def read(self, keys: Sequence[bytes | None]) -> Names:
        """Return what each key says."""
        values, why = [], np.zeros(len(keys), np.int8)
        for row, key in enumerate(keys):
            value, reason = self._value(key)
            values.append(value)
            why[row] = reason
        names, reasons = person_names([column_of(values)])
        return names, np.where(why, why, reasons)

    def _value(self, key: bytes | None) -> tuple[Any, int]:
        if not key:
            return None, Reason.MISSING
        if len(key) > self._max_bytes:
            return None, Reason.TOO_LARGE
        try:
            _ = key.isascii() or key.decode()  # what is skipped is not looked into by the decoder
            return self._get(self._decoder.decode(key)), 0
        except msgspec.ValidationError:
            return None, Reason.WRONG_TYPE
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None, Reason.NOT_JSON


@dataclass(frozen=True, eq=False)
class JsonSchemaKeys:
    """Reads documents of JSON behind the id of a JSON Schema."""

    documents: JsonKeys
    registry: Registry

    def read(self, keys: Sequence[bytes | None]) -> Names:
        """Return what each key says behind its id."""
        heads = [None if key is None else key[:WIRE_PREFIX] for key in keys]
        judged = {head: judged_head(head, self.registry) for head in {*heads} if head is not None}
        wrong = [Reason.MISSING if head is None else judged[head] for head in heads]
        why = np.array([reason or 0 for reason in wrong], np.int8)
        documents = [None if key is None or bad else key[WIRE_PREFIX:] for key, bad in zip(keys, wrong, strict=True)]
        names, reasons = self.documents.read(documents)
        return names, np.where(why, why, reasons)


def _itself(found: Any) -> Any:
    return found
