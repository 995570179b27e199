"""JSON: from records to encoded rows, a batch at a time, and from what leaves to messages.

Each record is decoded on its own into the declared fields only, so what a record means never depends on its companions:
a new owner that re-reads it gets the same row. Public values are kept as the very text that came in, so that publishing
a row again writes the same bytes. What a record carries beyond the declared fields is skipped unread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microdata import PersonKey, PersonSource, Reason, RejectedRows, Schema
from microdata.encoding import encode_layers, rejected_by_field
from service.codec.events import (
    LARGEST_MESSAGE,
    MAX_EVENT_BYTES,
    WHOLE_RECORD,
    Emit,
    Events,
    Leaving,
    Records,
    Refused,
    refused_records,
    rejected_whole,
)
from service.codec.json_messages import JSON_VALUE, JsonMessages
from service.codec.plain_json import PlainRecords

_ABSENT = msgspec.Raw(b"null")
_ERROR_PATH = re.compile(r"at `\$\.([^`]*)`$")


class JsonCodec:
    """Records above `max_bytes`, or whose row might not fit into a message, are refused unread.

    Rows of two codecs are about the same persons only under the same `person_key`; without one, a codec has its own.
    Plain records are scanned all at once; the others, and what is wrong with them, are the slower decoder's.
    """

    def __init__(
        self,
        schema: Schema,
        max_bytes: int = MAX_EVENT_BYTES,
        message_bytes: int = LARGEST_MESSAGE,
        person_key: PersonKey | None = None,
    ) -> None:
        self._person_key = person_key or PersonKey.random()
        self._messages = JsonMessages(schema, message_bytes)
        self._public = schema.public
        self._encoded = replace(schema, public=())
        self._by_key = schema.person is PersonSource.KEY
        self._max_bytes = min(max_bytes, self._messages.largest_record)
        numbers = {a.name for a in (*schema.quasi, *schema.sensitive) if a.numeric}
        kinds: dict[str, tuple[Any, Any]] = {
            name: (float | None, None) if name in numbers else (str | int | None, None) for name in schema.fields()
        }
        kinds |= dict.fromkeys(schema.public, (msgspec.Raw, _ABSENT))
        struct, paths = struct_of(kinds)
        self._decoder = msgspec.json.Decoder(struct)
        self._getters = {name: attrgetter(path) for name, path in paths.items()}
        self._plain = PlainRecords(schema, self._max_bytes)
        self._person: tuple[msgspec.json.Decoder[Any], attrgetter[Any]] | None = None
        """Reads nothing but the field that names the person."""
        if isinstance(schema.person, str):
            struct, paths = struct_of({schema.person: (str | int | None, None)})
            self._person = msgspec.json.Decoder(struct), attrgetter(paths[schema.person])

    def decode(self, batch: Records) -> Events:
        """Rows and refusals of one batch."""
        plain = self._plain.scan(batch.values)
        events = self._events(batch, np.flatnonzero(plain.taken), plain.columns)
        if plain.taken.all():
            return events
        objects, rows, refused, persons = self._parse(batch, np.flatnonzero(~plain.taken).tolist())
        columns = {name: column_of(self._values(name, objects, None)) for name in self._encoded.fields()}
        for name in self._public:
            texts = (bytes(value).decode() for value in self._values(name, objects, _ABSENT))
            columns[name] = pa.array(texts, pa.large_string())
        parts = [events, self._events(batch, np.array(rows, np.int64), columns)]
        rejected = self.rejected_whole(batch, refused)
        if rejected is None:
            rejected = rejected_by_field(
                self._encoded, np.array([*persons], np.int64), column_of([*persons.values()]), self._person_key
            )
        return Events.merged(parts, refused, rejected)

    def rejected_whole(self, batch: Records, refused: Sequence[Refused]) -> RejectedRows | None:
        """Return the persons of records that were rejected as a whole, where they are named by record keys."""
        return rejected_whole(self._encoded, batch, refused, self._person_key)

    def encode(self, leaving: Leaving, emit: Emit) -> Iterator[list[bytes]]:
        """The messages of each cluster."""
        return self._messages.encode(leaving, emit)

    def _events(self, batch: Records, rows: NDArray[np.int64], columns: Mapping[str, pa.Array]) -> Events:
        """The events at these places of the batch, of which these are the columns."""
        keys = None
        if self._by_key:
            keys = batch.keys if len(rows) == len(batch.keys) else [batch.keys[row] for row in rows.tolist()]
        fields = {name: [columns[name]] for name in self._encoded.fields()}
        offsets = batch.offsets[rows]
        encoded = encode_layers(self._encoded, fields, len(rows), keys, person_key=self._person_key, positions=offsets)
        accepted = pa.array(encoded.rows)
        values = (columns[name].take(accepted) for name in self._public)
        public = tuple(pa.ExtensionArray.from_storage(JSON_VALUE, texts) for texts in values)
        table, refused = encoded.table, refused_records(encoded.refusals, offsets)
        rejected = encoded.rejected and encoded.rejected.at(offsets)
        persons, more = table.persons, encoded.more
        return Events(offsets[encoded.rows], persons, table.quasi, table.sensitive, public, refused, more, rejected)

    def _parse(
        self, batch: Records, places: Iterable[int]
    ) -> tuple[list[Any], list[int], list[Refused], dict[int, Any]]:
        """Decoded records, their places in the batch, what could not be decoded, and whom such records name."""
        decode, limit, values = self._decoder.decode, self._max_bytes, batch.values
        objects, rows, refused, persons = [], [], [], {}
        for row in places:
            value = values[row]
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
                    persons[int(batch.offsets[row])] = self._person_in(value)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    refused.append(Refused(int(batch.offsets[row]), WHOLE_RECORD, Reason.NOT_JSON))
        return objects, rows, refused, persons

    def _person_in(self, record: bytes) -> Any:
        """Return whom a record names, though another of its fields has the wrong type; None if it names nobody."""
        if self._person is None:
            return None
        decoder, get = self._person
        try:
            return get(decoder.decode(record))
        except (msgspec.DecodeError, AttributeError, RecursionError):
            return None

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
            return [got(get, record, absent) for record in objects]


def got(get: attrgetter[Any], record: Any, absent: Any) -> Any:
    """One field of a record, or what stands for it where an object around it is null."""
    try:
        return get(record)
    except AttributeError:
        return absent


def struct_of(kinds: dict[str, tuple[Any, Any]]) -> tuple[type[msgspec.Struct], dict[str, str]]:
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
            inner, inner_paths = struct_of(below)
            members.append((attribute, inner | None, msgspec.field(default_factory=inner)))
            paths |= {f"{head}.{name}": f"{attribute}.{path}" for name, path in inner_paths.items()}
    return msgspec.defstruct("Event", members, rename=rename, gc=False), paths


def column_of(values: list[Any]) -> pa.Array:
    """One decoded field as an Arrow column; integers among texts count by their digits."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
