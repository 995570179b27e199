"""Protobuf: from records to encoded rows, a batch at a time.

Each record is read as its own schema says, the one whose id is in front of it, with the message that it is. Declared
fields are found by their names there; what a record carries beyond them is passed over. The newest schema of the
topic's subject says which type a public field has.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microdata import PersonKey, Reason, Schema, SchemaError
from service.codec import protobuf_schema
from service.codec._found import Found, nothing_found
from service.codec._protobuf_kernels import DEFAULT, VALUE, heads, scan
from service.codec.avro_schema import RANGES, Aliases
from service.codec.binary_records import (
    BinaryDecoder,
    BinaryReader,
    Bytes,
    gathered,
    never_a_person,
    never_fits,
    strange,
)
from service.codec.envelopes import path_inside, paths_inside
from service.codec.events import EXACT_MOMENT, micros_of
from service.codec.protobuf_schema import MOMENT, Leaf, Path, Plan, arrow_type, message_of, path_of
from service.codec.protobuf_text import unescaped, whole
from service.codec.protobuf_types import Enum, Field, File, Message, ProtobufSchemaError
from service.codec.subjects import Subject

KIND = "PROTOBUF"
"""As registries say it."""
FIRST_MESSAGE = b"\0"
"""Between the id and a record of the first message of its schema."""
_ID = 4
_MOST_FILES = 256
_SHOWN_MESSAGES = 10
_SECOND, _MOST_NANOS = 1_000_000, 999_999_999


class Schemas(Protocol):
    """Where the schemas of a topic's records come from."""

    prefixed: bool
    """Whether a record begins with the id of its schema and the place of its message there."""
    aliases: Aliases
    """Other names that the policy's fields have."""

    @property
    def number(self) -> int | None:
        """Id of the reader's schema in the registry; None without a registry."""

    def reader(self) -> Message:
        """The message that tells what fields mean."""

    def writer(self, number: int, path: tuple[int, ...]) -> Message | Reason:
        """The message at this place of the schema with this id, or why its records are refused."""


class OneMessage:
    """Records of one message, without anything in front of them."""

    prefixed = False
    number = None

    def __init__(self, text: str, name: str | None, source: str, aliases: Aliases = ()) -> None:
        self.aliases = aliases
        self._message = read_message(text, name, source)

    def reader(self) -> Message:
        """That message."""
        return self._message

    def writer(self, number: int, path: tuple[int, ...]) -> Message | Reason:
        """That message."""
        del number, path
        return self._message


class RegistryMessages:
    """Records in Confluent's wire format, of one message in however many versions."""

    prefixed = True

    def __init__(self, subject: Subject, message: str | None = None, aliases: Aliases = ()) -> None:
        self.aliases = aliases
        self._subject = subject
        self._name = message
        self._files: OrderedDict[int, File | Reason] = OrderedDict()

    @property
    def number(self) -> int | None:
        """Id of the reader's schema."""
        return self._subject.number

    def reader(self) -> Message:
        """The one of the subject's schema that says what fields mean."""
        registered = self._subject.reader()
        found = read_message(registered.text, self._name, f"subject {self._subject.name!r}", registered.references)
        self._name = self._name or found.full_name
        return found

    def writer(self, number: int, path: tuple[int, ...]) -> Message | Reason:
        """The one at this place of the schema with this id."""
        file = self._files.get(number) or self._file(number)
        if isinstance(file, Reason):
            return file
        found = file.at(path)
        is_ours = found is not None and self._name is not None and found.is_called(self._name)
        return found if found is not None and is_ours else Reason.OTHER_SCHEMA

    def _file(self, number: int) -> File | Reason:
        registered = self._subject.registry.by_id(number)
        if registered is None:
            return Reason.UNKNOWN_SCHEMA
        if number != self.number:
            self._subject.check_newest()
        found: File | Reason = Reason.OTHER_SCHEMA
        if registered.kind == KIND:
            try:
                found = protobuf_schema.parse(registered.text, registered.references)
            except ProtobufSchemaError:
                self._subject.registry.doubt(number)
                return Reason.OTHER_SCHEMA
        self._files[number] = found
        if len(self._files) > _MOST_FILES:
            self._files.popitem(last=False)
        return found


def read_message(text: str, name: str | None, source: str, references: tuple[str, ...] = ()) -> Message:
    """The message of this name in a schema, the first where none is asked for."""
    try:
        file = protobuf_schema.parse(text, references)
        found = message_of(file, name)
    except ProtobufSchemaError as error:
        raise SchemaError(f"the Protobuf schema of {source} {error}") from None
    if name is None:
        found.others = tuple(other.full_name for other in file.messages if other is not found)
    return found


def complaints(
    message: Message, schema: Schema, aliases: Aliases = (), envelope: str | None = None
) -> Iterator[tuple[str, str]]:
    """Declared fields that a message does not have, or not in a form that can be used, and why."""
    for name in schema.fields():
        why = _complaint(
            path_of(message, path_inside(envelope, name), aliases), message, partial(never_fits, schema, name)
        )
        if why is not None:
            yield name, why


def key_complaint(message: Message, field: str) -> str | None:
    """Return why this (dotted) field of a key cannot name a person."""
    return _complaint(path_of(message, field), message, never_a_person)


def _complaint(path: Path | None, message: Message, never: Callable[[pa.DataType], bool]) -> str | None:
    if path is None:
        return f"the topic's schema has no such field{_choices(message)}"
    why = protobuf_schema.complaint(path)
    if why is None and never(arrow_type(path[-1])):
        why = f"is of type {protobuf_schema.type_name(path[-1])}, which is never what the policy says"
    return why


def _choices(message: Message) -> str:
    """Return what to write in a policy that names no message, where the schema declares several."""
    if not message.others:
        return ""
    shown, more = message.others[:_SHOWN_MESSAGES], len(message.others) - _SHOWN_MESSAGES
    names = ", ".join(shown) + (f" and {more} more" if more > 0 else "")
    return (
        f" in {message.full_name}, its first message; it also declares {names}: name the message of the records in the "
        "policy, for example `stream.format: {input: {type: protobuf, message: " + shown[0] + "}}`"
    )


class ProtobufReader(BinaryReader[bytes, Plan]):
    """Finds fields in records of Protobuf, each read by the schema whose id it carries."""

    def __init__(
        self,
        fields: Sequence[str],
        schemas: Schemas,
        newest: Message,
        max_bytes: int,
        paths: Mapping[str, str] | None = None,
    ) -> None:
        self._schemas = schemas
        self._reader = newest
        self._paths = paths or {}
        super().__init__(fields, max_bytes, schemas.number)

    def heads(
        self, data: Bytes, begins: NDArray[np.int64], ends: NDArray[np.int64], why: NDArray[np.int8]
    ) -> tuple[dict[bytes, NDArray[np.int64]], NDArray[np.int64]]:
        """The id and the place of the message in front."""
        if not self._schemas.prefixed:
            return {b"": np.flatnonzero(why == 0)}, begins
        keys, after = heads(data, begins, ends)
        why[(why == 0) & (after < 0)] = Reason.MALFORMED
        good = np.flatnonzero(why == 0)
        keys = keys[good]
        if len(good) and (keys == keys[0]).all():
            return {keys[0].tobytes(): good}, after
        found, which = np.unique(keys.view(f"V{keys.shape[1]}")[:, 0], return_inverse=True)
        return {key.tobytes(): good[which == place] for place, key in enumerate(found)}, after

    def new_plan(self, head: bytes) -> Plan | Reason:
        """By the message that this schema has at this place."""
        number, path = int.from_bytes(head[:_ID], "big"), head[_ID : _ID + head[-1]] if head else b""
        writer = self._schemas.writer(number, place_of(path))
        return (
            writer
            if isinstance(writer, Reason)
            else protobuf_schema.plan(writer, self.fields, self._schemas.aliases, self._paths)
        )

    def scan(
        self, data: Bytes, begins: NDArray[np.int64], ends: NDArray[np.int64], plan: Plan
    ) -> tuple[Found, NDArray[np.bool_]]:
        """What is found, and which records are whole."""
        found = nothing_found(plan.slots, len(begins))
        return found, scan(data, begins, ends, plan.program, found)

    def layers(self, name: str, place: int, data: Bytes, found: Found, plan: Plan) -> list[pa.Array]:
        """The values of a field, and what stands in for those that are not there."""
        del place
        leaf, rows = plan.leaves.get(name), found.choice.shape[1]
        if leaf is None:
            path = path_of(self._reader, self._paths.get(name, name), self._schemas.aliases)
            default = None if path is None else default_of(path[-1])
            return [pa.nulls(rows) if default is None else default.take(pa.array(np.zeros(rows, np.int64)))]
        choice = found.choice[leaf.slot]
        layers = [*_columns(leaf, data, found, choice == VALUE)]
        if leaf.field.default is not None and (absent := choice == DEFAULT).any():
            default = default_of(leaf.field)
            if default is not None:
                layers.append(default.take(pa.array(np.zeros(rows, np.int64), mask=~absent)))
        return layers

    def public_layers(self, name: str, place: int, data: Bytes, found: Found, plan: Plan) -> list[pa.Array]:
        """The values of a public field; moments keep their nanoseconds."""
        leaf = plan.leaves.get(name)
        if leaf is None or arrow_type(leaf.field) != MOMENT:
            return self.layers(name, place, data, found, plan)
        return [*_exact_moments(leaf, found, found.choice[leaf.slot] == VALUE)]


class ProtobufDecoder(BinaryDecoder[bytes, Plan]):
    """Rows of records of Protobuf."""

    def __init__(
        self,
        schema: Schema,
        schemas: Schemas,
        max_bytes: int,
        largest_row: int,
        person_key: PersonKey | None = None,
        envelope: str | None = None,
    ) -> None:
        newest = schemas.reader()
        for name, complaint in complaints(newest, schema, schemas.aliases, envelope):
            raise SchemaError(complaint, at=name)
        ways = {name: path_of(newest, path_inside(envelope, name), schemas.aliases) for name in schema.public}
        public = {name: _public_type(way[-1]) for name, way in ways.items() if way}
        paths = paths_inside(envelope, schema.fields())
        reader = ProtobufReader([*paths], schemas, newest, max_bytes, paths)
        super().__init__(schema, reader, public, largest_row, person_key)


def place_of(path: bytes) -> tuple[int, ...]:
    """The numbers that lead to a message: how many, then each; a zero alone leads to the first."""
    numbers, value, shift = [], 0, 0
    for byte in path:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append((value >> 1) ^ -(value & 1))
            value = shift = 0
    return tuple(numbers[1:]) or (0,)


def warm_up() -> None:
    """Read a record without any value, so that what reads is compiled."""
    message = read_message('syntax = "proto3"; message Nothing { string a = 1; }', None, "a warm-up")
    plan, data = protobuf_schema.plan(message, ["a"]), np.frombuffer(b"\0\0", np.uint8)
    place = np.zeros(1, np.int64)
    scan(data, place, place, plan.program, nothing_found(1, 1))
    heads(data, place, place + 1)
    gathered(data, place, place, place == 0, text=True)


# -- columns -----------------------------------------------------------------------------------------------------------


def _columns(leaf: Leaf, data: Bytes, found: Found, there: NDArray[np.bool_]) -> Iterator[pa.Array]:
    """Values of one field, null where they are not there. Texts are bytes still where not all of them are UTF-8."""
    field, begins = leaf.field, found.begins[leaf.slot]
    kind: Any = arrow_type(field)
    if kind == MOMENT:
        exact, *others = _exact_moments(leaf, found, there)
        yield micros_of(exact)
        yield from others
    elif field.kind in {"string", "bytes"}:
        ends = np.where(there, found.ends[leaf.slot], 0)
        yield gathered(data, np.where(there, begins, 0), ends, there, text=field.kind == "string")
    elif isinstance(field.type, Enum):
        numbers = np.array(sorted(field.type.names), np.int64)
        place = np.minimum(np.searchsorted(numbers, begins), max(len(numbers) - 1, 0))
        known = there & (numbers[place] == begins) if len(numbers) else np.zeros(len(there), bool)
        names = pa.array([field.type.names[number] for number in numbers.tolist()], pa.large_string())
        yield names.take(pa.array(place, mask=~known))
        if (there & ~known).any():  # a number that has no name in this schema
            yield strange(there & ~known)
    elif field.kind in {"float", "double"}:
        yield pa.array(found.numbers[leaf.slot].astype(kind.to_pandas_dtype()), kind, mask=~there)
    elif field.kind == "bool":
        yield pa.array(begins.astype(bool), mask=~there)
    else:
        yield pa.array(begins.astype(kind.to_pandas_dtype()), kind, mask=~there)


def _exact_moments(leaf: Leaf, found: Found, there: NDArray[np.bool_]) -> Iterator[pa.Array]:
    """Moments with their nanoseconds, null where they are not there; then those that no calendar has."""
    seconds, nanos = found.begins[leaf.slot], found.begins[leaf.nanos]
    least, most = (each // _SECOND for each in RANGES["timestamp-micros"])
    fits = there & (least <= seconds) & (seconds <= most) & (nanos >= 0) & (nanos <= _MOST_NANOS)
    parts = [pa.array(np.where(fits, seconds, 0)), pa.array(np.where(fits, nanos, 0).astype(np.int32))]
    yield pa.StructArray.from_arrays(parts, fields=[*EXACT_MOMENT], mask=pa.array(~fits))
    if (there & ~fits).any():
        yield strange(there & ~fits)


def _public_type(field: Field) -> pa.DataType | None:
    kind = arrow_type(field)
    return EXACT_MOMENT if kind == MOMENT else kind


def _float(said: str) -> float:
    try:
        return float(whole(said))  # which may be octal
    except ValueError:
        return float(said)


def default_of(field: Field) -> pa.Array | None:
    """What a schema of proto2 says that stands in for a field, as a column of one value."""
    if field.default is None:
        return None
    kind, said = arrow_type(field), field.default
    value: Any = said
    try:
        match field.kind:
            case "string" | "bytes":
                value = unescaped(said)
            case "bool":
                value = {"true": True, "false": False}[said]
            case "float" | "double":
                value = _float(said)
            case "enum":
                pass
            case _:
                value = whole(said)
        return pa.array([value], kind)
    except (pa.ArrowException, ValueError, KeyError, OverflowError):
        return None
