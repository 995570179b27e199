"""JSON: from records to encoded rows, a batch at a time.

Each record is decoded on its own into the declared fields only, so what a record means never depends on its companions:
a new owner that re-reads it gets the same row. Public values are kept as the very text that came in, so that publishing
a row again writes the same bytes. What a record carries beyond the declared fields is skipped unread.
"""

from __future__ import annotations

import re
from dataclasses import replace
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from microdata import PersonKey, PersonSource, Reason, Schema, encode
from service.codec.events import MAX_EVENT_BYTES, WHOLE_RECORD, Events, Records, Refused, refused_records

_ABSENT = msgspec.Raw(b"null")
_ERROR_PATH = re.compile(r"at `\$\.([^`]*)`$")


class JsonCodec:
    """Decodes records of one schema; records above `max_bytes` are refused unread.

    Rows of two codecs are about the same persons only under the same `person_key`; without one, a codec has its own.
    """

    def __init__(
        self, schema: Schema, max_bytes: int = MAX_EVENT_BYTES, *, person_key: PersonKey | None = None
    ) -> None:
        self._person_key = person_key or PersonKey.random()
        self._public = schema.public
        self._encoded = replace(schema, public=())
        self._by_key = schema.person is PersonSource.KEY
        self._max_bytes = max_bytes
        numbers = {a.name for a in (*schema.quasi, *schema.sensitive) if a.numeric}
        kinds: dict[str, tuple[Any, Any]] = {
            name: (float | None, None) if name in numbers else (str | int | None, None) for name in schema.fields()
        }
        kinds |= dict.fromkeys(schema.public, (msgspec.Raw, _ABSENT))
        struct, paths = _struct(kinds)
        self._decoder = msgspec.json.Decoder(struct)
        self._getters = {name: attrgetter(path) for name, path in paths.items()}

    def decode(self, batch: Records) -> Events:
        """Rows and refusals of one batch."""
        objects, rows, refused = self._parse(batch)
        columns = {name: _column(self._values(name, objects, None)) for name in self._encoded.fields()}
        keys = [batch.keys[row] for row in rows] if self._by_key else None
        offsets = batch.offsets[rows]
        encoded = encode(self._encoded, pa.table(columns), keys, person_key=self._person_key, positions=offsets)
        refused += refused_records(encoded.refusals, offsets)
        public = np.empty((len(encoded.rows), len(self._public)), object)
        for place, name in enumerate(self._public):
            texts = list(map(bytes, self._values(name, objects, _ABSENT)))
            public[:, place] = np.array(texts, object)[encoded.rows]
        table = encoded.table
        refused.sort(key=attrgetter("offset"))
        return Events(offsets[encoded.rows], table.persons, table.quasi, table.sensitive, public, refused)

    def _parse(self, batch: Records) -> tuple[list[Any], list[int], list[Refused]]:
        """Decoded records, their places in the batch, and what could not be decoded."""
        decode, limit = self._decoder.decode, self._max_bytes
        objects, rows, refused = [], [], []
        for row, value in enumerate(batch.values):
            if value is None:
                refused.append(Refused(int(batch.offsets[row]), WHOLE_RECORD, Reason.TOMBSTONE))
            elif len(value) > limit:
                refused.append(Refused(int(batch.offsets[row]), WHOLE_RECORD, Reason.TOO_LARGE))
            else:
                try:
                    # What is passed on or skipped unread is not looked into by the decoder.
                    _ = value.isascii() or value.decode()
                    objects.append(decode(value))
                    rows.append(row)
                except msgspec.ValidationError as error:
                    # The message holds types and the field's path, but only the path is sure to be free of values.
                    refused.append(Refused(int(batch.offsets[row]), self._field_of(error), Reason.WRONG_TYPE))
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    refused.append(Refused(int(batch.offsets[row]), WHOLE_RECORD, Reason.NOT_JSON))
        return objects, rows, refused

    def _field_of(self, error: msgspec.ValidationError) -> str:
        """The declared field that is wrong, or the first one inside of what is wrong."""
        found = _ERROR_PATH.search(str(error))
        path = found.group(1) if found else ""
        return next((name for name in self._getters if f"{name}.".startswith(f"{path}.")), WHOLE_RECORD)

    def _values(self, name: str, objects: list[Any], absent: Any) -> list[Any]:
        """One field of each record."""
        get = self._getters[name]
        try:
            return list(map(get, objects))
        except AttributeError:  # the object that holds the field is null in some record
            return [_got(get, record, absent) for record in objects]


def _got(get: attrgetter[Any], record: Any, absent: Any) -> Any:
    try:
        return get(record)
    except AttributeError:
        return absent


def _struct(kinds: dict[str, tuple[Any, Any]]) -> tuple[type[msgspec.Struct], dict[str, str]]:
    """A type that holds the (dotted) fields, and the attribute path of each of them in it."""
    groups: dict[str, dict[str, tuple[Any, Any]]] = {}
    for name, kind in kinds.items():
        head, _, rest = name.partition(".")
        groups.setdefault(head, {})[rest] = kind
    members: list[tuple[str, Any, Any]] = []
    paths: dict[str, str] = {}
    rename: dict[str, str] = {}
    for number, (head, below) in enumerate(groups.items()):
        attribute = f"f{number}"
        rename[attribute] = head
        if "" in below:
            members.append((attribute, *below[""]))
            paths[head] = attribute
        else:
            inner, inner_paths = _struct(below)
            members.append((attribute, inner | None, msgspec.field(default_factory=inner)))
            paths |= {f"{head}.{name}": f"{attribute}.{path}" for name, path in inner_paths.items()}
    return msgspec.defstruct("Event", members, rename=rename, gc=False), paths


def _column(values: list[Any]) -> pa.Array:
    """One decoded field as an Arrow column; integers among texts count by their digits."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
