"""Envelopes around events: change events of Debezium and CloudEvents, of which the policy describes what is inside."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np

from microdata import Reason, RejectedRows, Schema
from service.codec.events import WHOLE_RECORD, Events, GivenRecords, Records, Refused

DEBEZIUM, CLOUD_EVENTS = "debezium", "cloudevents"
INSIDE = {DEBEZIUM: "after", CLOUD_EVENTS: "data"}
"""The field of each envelope that holds the event."""
OPERATION = "op"
"""The field of Debezium's envelope that says what happened to the row."""
SKIPPED_OPERATIONS = ("d", "t", "m")
"""Deleted rows, truncated tables and messages of the database's log: no events about a person."""
OPERATION_FIELD = "(operation)"
"""How readers of binary records name that field beside those of the policy."""
_MOST_SCHEMAS = 1_024
_ABSENT = msgspec.Raw(b"")
_NULL = b"null"
_EPOCH_DAY, _EPOCH = date(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)


def path_inside(envelope: str | None, name: str) -> str:
    """Return where a field of the policy is in a record with this envelope, or with none."""
    return name if envelope is None else f"{INSIDE[envelope]}.{name}"


def paths_inside(envelope: str | None, names: Iterable[str]) -> dict[str, str]:
    """Return where fields are in a record, with the operation where the envelope has one."""
    paths = {name: path_inside(envelope, name) for name in names}
    return {**paths, OPERATION_FIELD: OPERATION} if envelope == DEBEZIUM else paths


class _Change(msgspec.Struct):
    """A change event of Debezium; with `schema` and `payload` around it where Kafka Connect writes schemas."""

    after: msgspec.Raw = _ABSENT
    op: str | None = None
    schema: msgspec.Raw = _ABSENT
    payload: msgspec.Raw = _ABSENT


class _CloudEvent(msgspec.Struct):
    data: msgspec.Raw = _ABSENT


class _Decoder(Protocol):
    def decode(self, batch: Records) -> Events: ...

    def rejected_whole(self, batch: Records, refused: Sequence[Refused]) -> RejectedRows | None: ...


Skipped: TypeAlias = Literal["skipped"]
_Tree: TypeAlias = "dict[str, _Tree | Callable[[bytes], bytes]]"
"""Of the fields of an object that have a type of Kafka Connect, how their JSON is rewritten."""


@dataclass(frozen=True, eq=False)
class EnvelopeDecoder:
    """Decodes the events in envelopes of JSON. Deleted rows and tombstones of Debezium are skipped and counted."""

    decoder: _Decoder
    """Decodes what is inside."""
    envelope: JsonEnvelope
    max_bytes: int

    def decode(self, batch: Records) -> Events:
        """Rows and refusals of one batch."""
        rows, values, refused, skipped = [], [], [], 0
        for row, value in enumerate(batch.values):
            opened = Reason.TOO_LARGE if value and len(value) > self.max_bytes else self.envelope.opened(value)
            if isinstance(opened, bytes):
                rows.append(row)
                values.append(opened)
            elif isinstance(opened, Reason):
                refused.append(Refused(int(batch.offsets[row]), WHOLE_RECORD, opened))
            else:
                skipped += 1
        inside = GivenRecords(batch.offsets[np.array(rows, np.int64)], [batch.keys[row] for row in rows], values)
        events = self.decoder.decode(inside)
        if refused:
            events = Events.merged([events], refused, self.rejected_whole(batch, refused))
        return replace(events, skipped=events.skipped + skipped)

    def rejected_whole(self, batch: Records, refused: Sequence[Refused]) -> RejectedRows | None:
        """Return the persons of records that were rejected as a whole, where they are named by record keys."""
        return self.decoder.rejected_whole(batch, refused)


class JsonEnvelope:
    """Opens envelopes of one kind; `schema` says which fields are looked for."""

    def __init__(self, kind: str, schema: Schema | None = None) -> None:
        self._kind = kind
        self._public = frozenset(schema.public) if schema is not None else frozenset()
        self._change, self._cloud_event = msgspec.json.Decoder(_Change), msgspec.json.Decoder(_CloudEvent)
        self._object = msgspec.json.Decoder(dict[str, msgspec.Raw])
        self._rewriting: dict[bytes, _Tree] = {}
        """How events of a schema of Kafka Connect are rewritten."""

    def opened(self, value: bytes | None) -> bytes | Reason | Skipped:
        """Return the event in an envelope, or why the record is rejected, or that it is none."""
        if value is None:
            return "skipped" if self._kind == DEBEZIUM else Reason.TOMBSTONE
        try:
            _ = value.isascii() or value.decode()
            if self._kind == CLOUD_EVENTS:
                return bytes(self._cloud_event.decode(value).data) or Reason.MISSING
            return self._changed(value)
        except msgspec.ValidationError:
            return Reason.WRONG_TYPE
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return Reason.NOT_JSON

    def _changed(self, value: bytes) -> bytes | Reason | Skipped:
        change, schema = self._change.decode(value), b""
        payload = bytes(change.payload)
        if payload:
            schema = bytes(change.schema)
            if payload == _NULL:
                return "skipped"
            change = self._change.decode(payload)
        if change.op in SKIPPED_OPERATIONS:
            return "skipped"
        after = bytes(change.after)
        if not after or after == _NULL:
            return Reason.MISSING
        if not schema or schema == _NULL:
            return after
        rewriting = self._rewriting.get(schema)
        if rewriting is None:
            if len(self._rewriting) >= _MOST_SCHEMAS:
                self._rewriting.clear()
            rewriting = self._rewriting[schema] = self._rewriting_of(schema)
        return self._rewritten(after, rewriting) if rewriting else after

    def _rewriting_of(self, schema: bytes) -> _Tree:
        described = _ConnectSchema.of(msgspec.json.decode(schema))
        inside = next((each for each in described.fields if each.field == INSIDE[DEBEZIUM]), None)
        return {} if inside is None else self._tree(inside, "")

    def _tree(self, described: _ConnectSchema, above: str) -> _Tree:
        tree: _Tree = {}
        for each in described.fields:
            below = self._tree(each, f"{above}{each.field}.")
            rewrite = _rewriter(each, is_public=f"{above}{each.field}" in self._public)
            if below:
                tree[each.field] = below
            elif rewrite is not None:
                tree[each.field] = rewrite
        return tree

    def _rewritten(self, value: bytes, tree: _Tree) -> bytes:
        if value == _NULL:
            return value
        fields = self._object.decode(value)
        for name, rewrite in tree.items():
            given = fields.get(name)
            if given is not None:
                text = bytes(given)
                made = self._rewritten(text, rewrite) if isinstance(rewrite, dict) else rewrite(text)
                fields[name] = msgspec.Raw(made)
        return msgspec.json.encode(fields)


class _ConnectSchema(NamedTuple):
    """What a schema of Kafka Connect says in its JSON form; what has another form says nothing."""

    field: str
    name: str
    scale: int
    fields: tuple[_ConnectSchema, ...]

    @classmethod
    def of(cls, given: Any) -> _ConnectSchema:
        given = given if isinstance(given, dict) else {}
        parameters, fields = given.get("parameters"), given.get("fields")
        scale = str(parameters.get("scale", "")) if isinstance(parameters, dict) else ""
        inside = tuple(cls.of(each) for each in fields) if isinstance(fields, list) else ()
        number = int(scale) if scale.lstrip("-").isdecimal() and len(scale) < 4 else 0
        return cls(str(given.get("field", "")), str(given.get("name", "")), number, inside)


_PER_SECOND = {
    "org.apache.kafka.connect.data.Timestamp": 1_000,
    "io.debezium.time.Timestamp": 1_000,
    "io.debezium.time.MicroTimestamp": 1_000_000,
    "io.debezium.time.NanoTimestamp": 1_000_000_000,
}
_DATES = {"org.apache.kafka.connect.data.Date", "io.debezium.time.Date"}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"


def _rewriter(described: _ConnectSchema, *, is_public: bool) -> Callable[[bytes], bytes] | None:
    """Return what makes a value readable: dates and moments as ISO 8601, of the latter the day unless it is public."""
    if described.name in _DATES:
        return _guarded(lambda text: b'"%s"' % (_EPOCH_DAY + timedelta(int(text))).isoformat().encode())
    if described.name in _PER_SECOND:
        per_second = _PER_SECOND[described.name]
        return _guarded(lambda text: _moment(int(text), per_second, is_public=is_public))
    if described.name == _DECIMAL:
        return _guarded(lambda text: _decimal(text, described.scale))
    return None


def _guarded(rewrite: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """Leave what is not of its type as it is: the policy judges it."""

    def rewritten(text: bytes) -> bytes:
        try:
            return text if text == _NULL else rewrite(text)
        except (ValueError, OverflowError, ArithmeticError):
            return text

    return rewritten


def _moment(number: int, per_second: int, *, is_public: bool) -> bytes:
    seconds, rest = divmod(number, per_second)
    found = _EPOCH + timedelta(seconds=seconds, microseconds=rest * 1_000_000 // per_second)
    text = found.replace(tzinfo=None).isoformat() if is_public else found.date().isoformat()
    return b'"%s"' % text.encode()


def _decimal(text: bytes, scale: int) -> bytes:
    digits = b64decode(msgspec.json.decode(text, type=str), validate=True)
    return f"{Decimal(int.from_bytes(digits, 'big', signed=True)).scaleb(-scale):f}".encode()


def envelope_of(names: Sequence[str] | Mapping[str, Any]) -> str | None:
    """Return the envelope that an event with these fields is in, None where it is in none."""
    if {"before", "after", "source", OPERATION} <= set(names):
        return DEBEZIUM
    return CLOUD_EVENTS if {"specversion", "type", "source", "data"} <= set(names) else None
