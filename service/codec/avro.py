"""Avro: from records to encoded rows, a batch at a time.

Each record is read as its own schema says, the one whose id is in front of it. Declared fields are found by their
names; what a record carries beyond them is passed over. The reader's schema, the newest of the topic's subject when the
stream starts, says which type a public field has, and what stands in for a field that a record's schema does not have.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from microdata import PersonKey, PersonSource, Reason, Schema, SchemaError
from microdata.columns import is_text, is_valid, texts
from microdata.encoding import encode_layers
from service.codec import avro_schema
from service.codec._avro_kernels import Found, decimals, scan
from service.codec._json_kernels import gather
from service.codec.avro_schema import AvroSchemaError, Plan, Type, arrow_type
from service.codec.events import WHOLE_RECORD, Events, Records, Refused, refused_records
from service.registry import Registry, RegistryError

_PREFIX = 5
"""Bytes in front of a record: a zero and the id of its schema."""
_MOST_PLANS = 1_024
_STRANGE = pa.duration("s")
"""The type of a column whose values are of no use: whoever encodes it says so."""
_WIDTHS = {"int": np.int32, "long": np.int64}
Bytes: TypeAlias = NDArray[np.uint8]


class Schemas(Protocol):
    """Where the schemas of a topic's records come from."""

    prefixed: bool
    """Whether a record begins with the id of its schema."""

    def reader(self) -> Type:
        """The schema that tells what fields mean."""

    def writer(self, number: int) -> Type | Reason:
        """The schema with this id, or why its records are refused."""


class OneSchema:
    """Records of one schema, without anything in front of them."""

    prefixed = False

    def __init__(self, record: Type) -> None:
        self._record = record

    def reader(self) -> Type:
        """That schema."""
        return self._record

    def writer(self, number: int) -> Type | Reason:
        """That schema."""
        del number
        return self._record


class RegistrySchemas:
    """Records in Confluent's wire format, of schemas of one record."""

    prefixed = True

    def __init__(self, registry: Registry, subject: str, record: str | None = None) -> None:
        self._registry = registry
        self._subject = subject
        self._name = record

    def reader(self) -> Type:
        """The newest of the subject."""
        newest = self._registry.newest(self._subject)
        if newest is None:
            raise RegistryError(
                f"the schema registry at {self._registry.name} has no subject {self._subject!r} yet",
                "REGISTRY_NO_SUBJECT",
            )
        if newest.kind != "AVRO":
            raise SchemaError(f"subject {self._subject!r} is not of Avro", given=newest.kind)
        found = record_of(newest.text, f"subject {self._subject!r}", newest.references)
        self._name = self._name or found.own_name()
        return found

    def writer(self, number: int) -> Type | Reason:
        """The schema with this id."""
        registered = self._registry.by_id(number)
        if registered is None:
            return Reason.UNKNOWN_SCHEMA
        if registered.kind != "AVRO":
            return Reason.OTHER_SCHEMA
        try:
            found = avro_schema.parse(registered.text, registered.references)
        except AvroSchemaError:
            return Reason.OTHER_SCHEMA
        is_ours = found.name == "record" and self._name in {found.full_name, found.own_name()}
        return found if is_ours else Reason.OTHER_SCHEMA


def record_of(text: str, source: str, references: tuple[str, ...] = ()) -> Type:
    """The schema of records in this text."""
    try:
        found = avro_schema.parse(text, references)
    except AvroSchemaError as error:
        raise SchemaError(f"the Avro schema of {source} {error}") from None
    if found.name != "record":
        raise SchemaError(f"the Avro schema of {source} must be a record", given=found.name)
    return found


def same_schema(one: str, other: str) -> bool:
    """Whether two texts are the same schema, however they are written."""
    try:
        return bool(json.loads(one) == json.loads(other))
    except (ValueError, RecursionError):
        return False


def complaints(record: Type, schema: Schema) -> Iterator[tuple[str, str]]:
    """Declared fields that a schema does not have, or not in a form that can be used, and why."""
    for name in schema.fields():
        found, public = avro_schema.find(record, name), name in schema.public
        if not found:
            yield name, "the topic's schema has no such field"
        elif strange := next((one for one in found if arrow_type(one) is None), None):
            few = f"has decimals of more than {avro_schema.MOST_DIGITS} digits"
            yield name, few if strange.logical == "decimal" else f"is of type {strange.name}, which holds many values"
        elif public and len(found) > 1:
            yield name, "is public and of several types; one of them and null is what can be published"


class AvroDecoder:
    """Records above `max_bytes`, and rows whose public texts take more than `largest_row` bytes, are refused."""

    def __init__(
        self, schema: Schema, schemas: Schemas, max_bytes: int, largest_row: int, person_key: PersonKey | None = None
    ) -> None:
        self._person_key = person_key or PersonKey.random()
        self._fields = tuple(schema.fields())
        self._schemas = schemas
        self._reader = schemas.reader()
        for name, complaint in complaints(self._reader, schema):
            raise SchemaError(complaint, at=name)
        self._max_bytes = max_bytes
        self._largest_row = largest_row
        self._encoded = replace(schema, public=())
        self._by_key = schema.person is PersonSource.KEY
        self.public = {name: arrow_type(avro_schema.find(self._reader, name)[0]) for name in schema.public}
        """Of each public field the type of its column."""
        self._plans: OrderedDict[int, Plan | Reason] = OrderedDict()

    @property
    def fields(self) -> int:
        """How many are declared."""
        return len(self._fields)

    def decode(self, batch: Records) -> Events:
        """Rows and refusals of one batch."""
        values = batch.values
        lengths = np.fromiter((-1 if value is None else len(value) for value in values), np.int64, len(values))
        fits = (lengths >= 0) & (lengths <= self._max_bytes)
        if not fits.all():
            values = [value if fit else b"" for value, fit in zip(values, fits.tolist(), strict=True)]
        data = np.frombuffer(b"".join(values), np.uint8)  # type: ignore[arg-type] # what is None does not fit
        ends = np.cumsum(np.where(fits, lengths, 0))
        begins = ends - np.where(fits, lengths, 0)
        why = np.where(fits, 0, np.where(lengths < 0, Reason.TOMBSTONE, Reason.TOO_LARGE)).astype(np.int8)
        if self._schemas.prefixed:
            numbers = _numbers(data, begins, ends, why)
            begins = np.minimum(begins + _PREFIX, ends)
        else:
            numbers = np.zeros(len(lengths), np.int64)
        parts = []
        for number in np.unique(numbers[why == 0]).tolist():
            rows = np.flatnonzero((numbers == number) & (why == 0))
            plan = self.plan(number)
            if isinstance(plan, Reason):
                why[rows] = plan
            else:
                parts.append(self._events(batch, rows, data, begins[rows], ends[rows], plan, why))
        refused = [
            Refused(int(batch.offsets[row]), WHOLE_RECORD, Reason(int(why[row])))
            for row in np.flatnonzero(why).tolist()
        ]
        if len(parts) == 1 and not refused:
            return parts[0]
        return Events.merged(parts or [self._nothing()], refused)

    def plan(self, number: int) -> Plan | Reason:
        """How records with this schema are read. What the registry does not know is asked again: it may by then."""
        found = self._plans.get(number)
        if found is None:
            writer = self._schemas.writer(number)
            if writer is Reason.UNKNOWN_SCHEMA:
                return writer
            found = writer if isinstance(writer, Reason) else avro_schema.plan(writer, self._fields, self._reader)
            self._plans[number] = found
            if len(self._plans) > _MOST_PLANS:
                self._plans.popitem(last=False)
        return found

    def _nothing(self) -> Events:
        columns = {name: [pa.nulls(0)] for name in self._encoded.fields()}
        table = encode_layers(self._encoded, columns, 0, [], person_key=self._person_key).table
        public = tuple(pa.nulls(0, kind) for kind in self.public.values())
        return Events(np.empty(0, np.int64), table.persons, table.quasi, table.sensitive, public, [])

    def _events(
        self,
        batch: Records,
        rows: NDArray[np.int64],
        data: Bytes,
        begins: NDArray[np.int64],
        ends: NDArray[np.int64],
        plan: Plan,
        why: NDArray[np.int8],
    ) -> Events:
        """The events at these places of the batch, all of one schema; those that are not of it are noted."""
        found = nothing_found(len(self._fields), len(rows))
        taken = scan(data, begins, ends, plan.program, found)
        if not taken.all():
            why[rows[~taken]] = Reason.MALFORMED
            rows = rows[taken]
            found = found_of(found, taken)
        keys = [batch.keys[row] for row in rows.tolist()] if self._by_key else None
        return self.rows(data, found, plan, batch.offsets[rows], keys)

    def rows(
        self, data: Bytes, found: Found, plan: Plan, offsets: NDArray[np.int64], keys: list[bytes | None] | None
    ) -> Events:
        """The events of records in which this was found."""
        layers = {name: self._layers(name, place, data, found, plan) for place, name in enumerate(self._fields)}
        encoded = encode_layers(
            self._encoded,
            {name: layers[name] for name in self._encoded.fields()},
            len(offsets),
            keys,
            person_key=self._person_key,
            positions=offsets,
        )
        refused = refused_records(encoded.refusals, offsets)
        good = np.zeros(len(offsets), bool)
        good[encoded.rows] = True
        public = {}
        for name, kind in self.public.items():
            public[name], reasons = _published(layers[name], kind)
            wrong = np.flatnonzero(good & (reasons > 0))
            refused += [Refused(int(offsets[row]), name, Reason(int(reasons[row]))) for row in wrong]
            good[wrong] = False
        wide = good & (_widths(public.values(), len(offsets)) > self._largest_row)
        refused += [Refused(int(offsets[row]), WHOLE_RECORD, Reason.TOO_LARGE) for row in np.flatnonzero(wide)]
        good &= ~wide
        table, kept = encoded.table, good[encoded.rows]
        return Events(
            offsets[good],
            table.persons[kept],
            table.quasi[kept],
            table.sensitive[kept],
            tuple(column.filter(pa.array(good)) for column in public.values()),
            sorted(refused, key=lambda one: one.offset),
        )

    def _layers(self, name: str, place: int, data: Bytes, found: Found, plan: Plan) -> list[pa.Array]:
        """The values of a field, a column for each type that they may have."""
        choices = plan.choices.get(name)
        if choices is None:
            return [_constant(avro_schema.default_of(self._reader, name), found.choice.shape[1])]
        layers: list[pa.Array] = []
        for number, one in enumerate(choices):
            there = found.choice[place] == number
            begins, ends = np.where(there, found.begins[place], 0), np.where(there, found.ends[place], 0)
            layers += _columns(one, data, begins, ends, found.numbers[place], there)
        return layers or [pa.nulls(found.choice.shape[1])]


def nothing_found(fields: int, records: int) -> Found:
    """Room for what is found."""
    shape = fields, records
    return Found(np.full(shape, -1), np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape))


def found_of(found: Found, wanted: NDArray[np.bool_]) -> Found:
    """What was found of these records."""
    places = found.choice[:, wanted], found.begins[:, wanted], found.ends[:, wanted]
    return Found(*places, found.numbers[:, wanted])


def _numbers(
    data: Bytes, begins: NDArray[np.int64], ends: NDArray[np.int64], why: NDArray[np.int8]
) -> NDArray[np.int64]:
    """The id in front of each record; what has none is noted."""
    long_enough = ends - begins >= _PREFIX
    numbers, at = np.zeros(len(begins), np.int64), begins[long_enough]
    whole = np.zeros(len(at), np.int64)
    for byte in range(1, _PREFIX):
        whole = (whole << 8) | data[at + byte]
    numbers[long_enough] = whole
    marked = np.zeros(len(begins), bool)
    marked[long_enough] = data[at] == 0
    why[(why == 0) & ~marked] = Reason.MALFORMED
    return numbers


def warm_up() -> None:
    """Read a record without any value, so that what reads is compiled."""
    text = '{"type": "record", "name": "Nothing", "fields": [{"name": "a", "type": ["null", "string"]}]}'
    data, place = np.frombuffer(b"\0", np.uint8), np.zeros(1, np.int64)
    scan(data, place, place + 1, avro_schema.plan(record_of(text, "a warm-up"), ["a"]).program, nothing_found(1, 1))
    gather(data, place, place)
    decimals(data, place, place, 1)


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
        yield _strange(there)
    elif one.logical == "decimal":
        values, fits = decimals(data, begins, ends, 10 ** one.digits[0] - 1)
        words = np.column_stack([values, values >> 63])
        yield pa.Decimal128Array.from_buffers(kind, len(there), [_bits(there & fits), pa.py_buffer(words)])
        if (there & ~fits).any():  # more digits than the schema says
            yield _strange(there & ~fits)
    elif one.name in {"bytes", "string", "fixed"}:
        offsets, joined = gather(data, begins, ends)
        buffers = [_bits(there), pa.py_buffer(offsets), pa.py_buffer(joined)]
        column = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(there), buffers)
        yield _texts(column) if one.name == "string" else column
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
            yield _strange(there & ~fits)
    else:
        yield pa.array(begins.astype(_WIDTHS[one.name]), mask=absent)


def _texts(column: pa.Array) -> pa.Array:
    """Bytes as texts where all of them are; else somebody says which are not."""
    try:
        return column.cast(pa.large_string())
    except pa.ArrowInvalid:
        return column


def _strange(there: NDArray[np.bool_]) -> pa.Array:
    return pa.array(np.zeros(len(there), np.int64), _STRANGE, mask=~there)


def _bits(there: NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(there, bitorder="little"))


def _constant(default: tuple[Type, Any] | None, rows: int) -> pa.Array:
    """The same value in every row, as a schema writes its defaults; nothing where it is not of its type."""
    if default is None:
        return pa.nulls(rows)
    one, value = default
    kind = arrow_type(one)
    try:
        if one.logical == "decimal":
            whole = int.from_bytes(value.encode("latin-1"), "big", signed=True)
            column = pa.array([Decimal(whole).scaleb(-one.digits[1])], kind)
        elif one.name in {"bytes", "fixed"}:
            column = pa.array([value.encode("latin-1")], kind)
        elif one.logical and one.name in {"int", "long"}:
            column = pa.array([value], pa.int32() if one.name == "int" else pa.int64()).view(kind)
        else:
            column = pa.array([value], kind)
    except (pa.ArrowException, TypeError, ValueError, AttributeError, ArithmeticError):
        return pa.nulls(rows)
    return column.take(pa.array(np.zeros(rows, np.int64)))


_PROMOTED = {
    pa.int32(): {pa.int64(), pa.float32(), pa.float64()},
    pa.int64(): {pa.float32(), pa.float64()},
    pa.float32(): {pa.float64()},
    pa.large_string(): {pa.large_binary()},
}
"""What Avro reads a type as besides itself; bytes are read as texts where they are some."""


def _published(layers: list[pa.Array], kind: pa.DataType) -> tuple[pa.Array, NDArray[np.int8]]:
    """Public values as one column of this type, and reasons for those that are not of it."""
    rows = len(layers[0])
    column, reasons = pa.nulls(rows, kind), np.zeros(rows, np.int8)
    for layer in layers:
        if pa.types.is_null(layer.type):
            continue
        own = layer
        if kind == pa.large_string() and layer.type == pa.large_binary():
            own, why = texts(layer)
            own, reasons = own.cast(kind), np.maximum(reasons, why)
        elif layer.type != kind and kind in _PROMOTED.get(layer.type, set()):
            own = layer.cast(kind, safe=False)
        if own.type == kind:
            column = pc.coalesce(column, own) if column.null_count < rows else own
        else:
            reasons[is_valid(layer)] = Reason.WRONG_TYPE
    return column, reasons


def _widths(columns: Iterable[pa.Array], rows: int) -> NDArray[np.int64]:
    """Bytes of the public values of each row."""
    widths = np.zeros(rows, np.int64)
    for column in columns:
        if is_text(column.type):
            widths += pc.fill_null(pc.binary_length(column), 0).to_numpy()
    return widths
