"""Avro: from records to encoded rows, a batch at a time.

Each record is read as its own schema says, the one whose id is in front of it. Declared fields are found by their
names; what a record carries beyond them is passed over. The reader's schema, the newest of the topic's subject, says
which type a public field has, and what stands in for a field that a record's schema does not have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microdata import PersonKey, Reason, Schema, SchemaError
from service.codec import avro_schema
from service.codec._avro_kernels import decimals, scan
from service.codec._found import Found, nothing_found
from service.codec.avro_schema import Aliases, AvroSchemaError, Default, Plan, Type, arrow_type
from service.codec.binary_records import (
    BinaryDecoder,
    BinaryReader,
    Bytes,
    bits,
    gathered,
    ids_in_front,
    never_a_person,
    never_fits,
    strange,
)
from service.codec.envelopes import path_inside, paths_inside
from service.codec.events import RECORD_KEY, WIRE_PREFIX
from service.codec.subjects import Subject

_WIDTHS = {"int": np.int32, "long": np.int64}
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_UUID_DIGITS = np.flatnonzero(np.frombuffer(b"00000000-0000-0000-0000-000000000000", np.uint8) != ord("-"))


class Schemas(Protocol):
    """Where the schemas of a topic's records come from."""

    prefixed: bool
    """Whether a record begins with the id of its schema."""

    @property
    def number(self) -> int | None:
        """Id of the reader's schema in the registry; None without a registry."""

    def reader(self) -> Type:
        """The schema that tells what fields mean."""

    def writer(self, number: int) -> Type | Reason:
        """The schema with this id, or why its records are refused."""


class OneSchema:
    """Records of one schema, without anything in front of them."""

    prefixed = False
    number = None

    def __init__(self, record: Type, aliases: Aliases = ()) -> None:
        self._record = avro_schema.with_aliases(record, aliases)

    def reader(self) -> Type:
        """That schema."""
        return self._record

    def writer(self, number: int) -> Type | Reason:
        """That schema."""
        del number
        return self._record


class RegistrySchemas:
    """Records in Confluent's wire format, of schemas of one record; or, with `scalar`, keys that are no records."""

    prefixed = True

    def __init__(
        self,
        subject: Subject,
        record: str | None = None,
        *,
        scalar: bool = False,
        aliases: Aliases = (),
        connect: bool = False,
    ) -> None:
        self._subject = subject
        self._connect = connect
        self._name = record
        self._scalar = scalar
        self._aliases = aliases

    @property
    def number(self) -> int | None:
        """Id of the reader's schema."""
        return self._subject.number

    def reader(self) -> Type:
        """The subject's schema that says what fields mean."""
        registered = self._subject.reader()
        read = scalar_of if self._scalar else record_of
        found = read(registered.text, f"subject {self._subject.name!r}", registered.references, connect=self._connect)
        self._name = self._name or found.own_name()
        return avro_schema.with_aliases(found, self._aliases)

    def writer(self, number: int) -> Type | Reason:
        """The schema with this id."""
        registered = self._subject.registry.by_id(number)
        if registered is None:
            return Reason.UNKNOWN_SCHEMA
        if number != self.number:
            self._subject.check_newest()
        if registered.kind != "AVRO":
            return Reason.OTHER_SCHEMA
        try:
            found = avro_schema.parse(registered.text, registered.references, connect=self._connect)
        except AvroSchemaError:
            self._subject.registry.doubt(number)
            return Reason.OTHER_SCHEMA
        if self._scalar:
            return Reason.OTHER_SCHEMA if found.name == "record" else avro_schema.wrapped(found, RECORD_KEY)
        is_ours = found.name == "record" and self._name in {found.full_name, found.own_name()}
        return found if is_ours else Reason.OTHER_SCHEMA


def record_of(text: str, source: str, references: tuple[str, ...] = (), *, connect: bool = False) -> Type:
    """The schema of records in this text."""
    found = _parsed(text, source, references, connect=connect)
    if found.name != "record":
        raise SchemaError(f"the Avro schema of {source} must be a record", given=found.name)
    return found


def scalar_of(text: str, source: str, references: tuple[str, ...] = (), *, connect: bool = False) -> Type:
    """Return a record that has a key in its only field, from a schema of keys that are no records themselves."""
    found = _parsed(text, source, references, connect=connect)
    if found.name == "record":
        raise SchemaError(
            f"the Avro schema of {source} is a record; name the field of the key that is the person: "
            "schema.person: {key: FIELD}"
        )
    return avro_schema.wrapped(found, RECORD_KEY)


def _parsed(text: str, source: str, references: tuple[str, ...], *, connect: bool) -> Type:
    try:
        return avro_schema.parse(text, references, connect=connect)
    except AvroSchemaError as error:
        raise SchemaError(f"the Avro schema of {source} {error}") from None


def same_schema(one: str, other: str) -> bool:
    """Whether two texts are the same schema, however they are written."""
    try:
        return bool(json.loads(one) == json.loads(other))
    except (ValueError, RecursionError):
        return False


def complaints(record: Type, schema: Schema, envelope: str | None = None) -> Iterator[tuple[str, str]]:
    """Declared fields that a schema does not have, or not in a form that can be used, and why."""
    for name in schema.fields():
        found = avro_schema.find(record, path_inside(envelope, name))
        why = _complaint(found, partial(never_fits, schema, name))
        if why is None and name not in schema.public:
            why = _too_precise(found)
        if why is None and name in schema.public and len(found) > 1:
            why = "is public and of several types; one of them and null is what can be published"
        if why is not None:
            yield name, why


def key_complaint(key: Type, field: str) -> str | None:
    """Return why this (dotted) field of a key cannot name a person."""
    found = avro_schema.find(key, field)
    return _complaint(found, never_a_person) or _too_precise(found)


def _too_precise(found: Sequence[Type]) -> str | None:
    """Return why a field with decimals can only be public."""
    if all(one.digits[0] <= avro_schema.MOST_CALCULATED_DIGITS for one in found):
        return None
    return (
        f"has decimals of more than {avro_schema.MOST_CALCULATED_DIGITS} digits, which only a public field can have "
        f"(up to {avro_schema.MOST_DIGITS}); let the producer use fewer digits, or declare the field as public"
    )


def _complaint(found: Sequence[Type], never: Callable[[pa.DataType], bool]) -> str | None:
    if not found:
        return "the topic's schema has no such field"
    if strange := next((one for one in found if arrow_type(one) is None), None):
        few = f"has decimals of more than {avro_schema.MOST_DIGITS} digits"
        return few if strange.logical == "decimal" else f"is of type {strange.name}, which holds many values"
    if all(never(arrow_type(one)) for one in found):
        kinds = " or ".join(one.logical or one.name for one in found)
        return f"is of type {kinds}, which is never what the policy says"
    return None


class AvroReader(BinaryReader[int, Plan]):
    """Finds fields in records of Avro, each read by the schema whose id it carries."""

    def __init__(
        self,
        fields: Sequence[str],
        schemas: Schemas,
        newest: Type,
        max_bytes: int,
        paths: Mapping[str, str] | None = None,
    ) -> None:
        self._schemas = schemas
        self._reader = newest
        self._paths = paths
        super().__init__(fields, max_bytes, schemas.number)

    def heads(
        self, data: Bytes, begins: NDArray[np.int64], ends: NDArray[np.int64], why: NDArray[np.int8]
    ) -> tuple[dict[int, NDArray[np.int64]], NDArray[np.int64]]:
        """The id in front."""
        if not self._schemas.prefixed:
            return {0: np.flatnonzero(why == 0)}, begins
        numbers = ids_in_front(data, begins, ends, why)
        good = why == 0
        kinds = np.unique(numbers[good]).tolist()
        return {number: np.flatnonzero((numbers == number) & good) for number in kinds}, np.minimum(
            begins + WIRE_PREFIX, ends
        )

    def new_plan(self, head: int) -> Plan | Reason:
        """By the schema with this id."""
        writer = self._schemas.writer(head)
        return (
            writer if isinstance(writer, Reason) else avro_schema.plan(writer, self.fields, self._reader, self._paths)
        )

    def scan(
        self, data: Bytes, begins: NDArray[np.int64], ends: NDArray[np.int64], plan: Plan
    ) -> tuple[Found, NDArray[np.bool_]]:
        """What is found, and which records end where their schema says."""
        found = nothing_found(len(self.fields), len(begins))
        return found, scan(data, begins, ends, plan.program, found)

    def layers(self, name: str, place: int, data: Bytes, found: Found, plan: Plan) -> list[pa.Array]:
        """The values of a field, a column for each type that they may have."""
        layers: list[pa.Array] = []
        for number, one in enumerate(plan.choices.get(name, ())):
            there = found.choice[place] == number
            if isinstance(one, Default):
                layers.append(_constant(one, there))
                continue
            begins, ends = np.where(there, found.begins[place], 0), np.where(there, found.ends[place], 0)
            numbers = np.where(there, found.numbers[place], 0.0)
            layers += _columns(one, data, begins, ends, numbers, there)
        return layers or [pa.nulls(found.choice.shape[1])]


class AvroDecoder(BinaryDecoder[int, Plan]):
    """Rows of records of Avro."""

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
        for name, complaint in complaints(newest, schema, envelope):
            raise SchemaError(complaint, at=name)
        public = {name: arrow_type(avro_schema.find(newest, path_inside(envelope, name))[0]) for name in schema.public}
        paths = paths_inside(envelope, schema.fields())
        reader = AvroReader([*paths], schemas, newest, max_bytes, paths)
        super().__init__(schema, reader, public, largest_row, person_key)


def warm_up() -> None:
    """Read a record without any value, so that what reads is compiled."""
    text = '{"type": "record", "name": "Nothing", "fields": [{"name": "a", "type": ["null", "string"]}]}'
    data, place = np.frombuffer(b"\0", np.uint8), np.zeros(1, np.int64)
    scan(data, place, place + 1, avro_schema.plan(record_of(text, "a warm-up"), ["a"]).program, nothing_found(1, 1))
    gathered(data, place, place, place == 0, text=True)
    decimals(data, place, place, np.uint64(1), np.uint64(0))


# -- columns -----------------------------------------------------------------------------------------------------------


def _columns(
    one: Type,
    data: Bytes,
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    numbers: NDArray[np.float64],
    there: NDArray[np.bool_],
) -> Iterator[pa.Array]:
    """Values of one type, null where they are not there. Texts are bytes still where not all of them are UTF-8."""
    kind, absent = arrow_type(one), ~there
    if kind is None:
        yield strange(there)
    elif one.logical == "decimal":
        yield from _decimals(one, data, begins, ends, there)
    elif one.logical == "uuid" and one.name == "fixed":
        yield _uuids(data, begins, there)
    elif one.name in {"bytes", "string", "fixed"}:
        yield gathered(data, begins, ends, there, text=one.name == "string")
    elif one.name == "enum":
        yield pa.array(one.symbols, pa.large_string()).take(pa.array(begins, mask=absent))
    elif one.name in {"float", "double"}:
        yield pa.array(numbers.astype(kind.to_pandas_dtype()), kind, mask=absent)
    elif one.name == "boolean":
        yield pa.array(begins.astype(bool), mask=absent)
    elif one.logical:
        least, most = avro_schema.RANGES[one.logical]
        fits = (least <= begins) & (begins <= most)
        yield pa.array(begins.astype(_WIDTHS[one.name]), mask=~(there & fits)).view(kind)
        if (there & ~fits).any():
            yield strange(there & ~fits)
    else:
        yield pa.array(begins.astype(_WIDTHS[one.name]), mask=absent)


def _decimals(
    one: Type, data: Bytes, begins: NDArray[np.int64], ends: NDArray[np.int64], there: NDArray[np.bool_]
) -> Iterator[pa.Array]:
    high, low = divmod(10 ** one.digits[0] - 1, 1 << 64)
    words, fits = decimals(data, begins, ends, np.uint64(low), np.uint64(high))
    buffers = [bits(there & fits), pa.py_buffer(words)]
    yield pa.Decimal128Array.from_buffers(arrow_type(one), len(there), buffers)
    if (there & ~fits).any():  # more digits than the schema says
        yield strange(there & ~fits)


def _uuids(data: Bytes, begins: NDArray[np.int64], there: NDArray[np.bool_]) -> pa.Array:
    """Return the text of each UUID of 16 bytes, in lower case with dashes."""
    octets = data[begins[there, np.newaxis] + np.arange(16)]
    texts = np.full((len(there), 36), ord("-"), np.uint8)
    texts[np.ix_(there, _UUID_DIGITS)] = _HEX[np.stack([octets >> 4, octets & 15], axis=2).reshape(-1, 32)]
    offsets = np.arange(len(there) + 1, dtype=np.int64) * 36
    return pa.LargeStringArray.from_buffers(len(there), pa.py_buffer(offsets), pa.py_buffer(texts), bits(there))


def _constant(default: Default, there: NDArray[np.bool_]) -> pa.Array:
    """The same value in these rows, as a schema writes its defaults; nothing where it is not of its type."""
    one, value = default.type, default.value
    kind = arrow_type(one)
    try:
        if one.logical == "decimal":
            column = pa.array([avro_schema.decimal_of(value.encode("latin-1"), one)], kind)
        elif one.logical == "uuid" and one.name == "fixed":
            column = pa.array([str(UUID(bytes=value.encode("latin-1")))], kind)
        elif one.name in {"bytes", "fixed"}:
            column = pa.array([value.encode("latin-1")], kind)
        elif one.logical and one.name in {"int", "long"}:
            column = pa.array([value], pa.int32() if one.name == "int" else pa.int64()).view(kind)
        else:
            column = pa.array([value], kind)
    except (pa.ArrowException, TypeError, ValueError, AttributeError, ArithmeticError):
        return pa.nulls(len(there))
    return column.take(pa.array(np.zeros(len(there), np.int64), mask=~there))
