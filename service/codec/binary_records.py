"""Binary records of which a schema says where fields are: what readers of Avro and of Protobuf have in common."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from microdata import PersonKey, PersonSource, Reason, RejectedRows, Schema
from microdata.columns import is_text, is_valid, texts
from microdata.encoding import encode_layers, person_names
from service.codec._found import Found, found_of
from service.codec._json_kernels import gather
from service.codec.envelopes import OPERATION_FIELD, SKIPPED_OPERATIONS
from service.codec.events import WHOLE_RECORD, WIRE_PREFIX, Events, Records, Refused, refused_records, rejected_whole
from service.registry import ASK_AGAIN_SECONDS

_MOST_PLANS = 1_024
_STRANGE = pa.duration("s")
"""The type of a column whose values are of no use: whoever encodes it says so."""
Bytes: TypeAlias = NDArray[np.uint8]
Head = TypeVar("Head", int, bytes)
"""What stands in front of a record and says of which schema it is."""
Plan = TypeVar("Plan")
"""How records of one schema are read."""


class Part(NamedTuple, Generic[Plan]):
    """Records of one batch that are read alike."""

    rows: NDArray[np.int64]
    """Which of the batch."""
    data: Bytes
    found: Found
    plan: Plan


class BinaryReader(ABC, Generic[Head, Plan]):
    """Finds these fields in records; those above `max_bytes` are refused."""

    def __init__(self, fields: Sequence[str], max_bytes: int, schema_id: int | None = None) -> None:
        self.fields = tuple(fields)
        self.schema_id = schema_id
        """Id of the schema that says what fields mean; None without a registry."""
        self._max_bytes = max_bytes
        self._plans: OrderedDict[Head, Plan] = OrderedDict()
        self._rejected: OrderedDict[Head, tuple[Reason, float]] = OrderedDict()
        """Why records with a head are rejected, and until when this is not asked again."""

    @abstractmethod
    def heads(
        self, data: Bytes, begins: NDArray[np.int64], ends: NDArray[np.int64], why: NDArray[np.int8]
    ) -> tuple[dict[Head, NDArray[np.int64]], NDArray[np.int64]]:
        """The rows of each head, and where records begin behind it; records without one are noted."""

    @abstractmethod
    def new_plan(self, head: Head) -> Plan | Reason:
        """How records with this head are read, or why they are refused."""

    @abstractmethod
    def scan(
        self, data: Bytes, begins: NDArray[np.int64], ends: NDArray[np.int64], plan: Plan
    ) -> tuple[Found, NDArray[np.bool_]]:
        """What is found in records, and which of them are as their schema says."""

    @abstractmethod
    def layers(self, name: str, place: int, data: Bytes, found: Found, plan: Plan) -> list[pa.Array]:
        """The values of a field, a column for each type that they may have."""

    def public_layers(self, name: str, place: int, data: Bytes, found: Found, plan: Plan) -> list[pa.Array]:
        """Return the values of a field that is published as it is, a column for each type that they may have."""
        return self.layers(name, place, data, found, plan)

    def read(self, values: Sequence[bytes | None]) -> tuple[list[Part[Plan]], NDArray[np.int8]]:
        """What is found in records, and of each why it is refused; 0 where it is not."""
        lengths = np.fromiter((-1 if value is None else len(value) for value in values), np.int64, len(values))
        fits = (lengths >= 0) & (lengths <= self._max_bytes)
        if not fits.all():
            values = [value if fit else b"" for value, fit in zip(values, fits.tolist(), strict=True)]
        data = np.frombuffer(b"".join(values), np.uint8)  # type: ignore[arg-type] # what is None does not fit
        ends = np.cumsum(np.where(fits, lengths, 0))
        begins = ends - np.where(fits, lengths, 0)
        why = np.where(fits, 0, np.where(lengths < 0, Reason.TOMBSTONE, Reason.TOO_LARGE)).astype(np.int8)
        heads, begins = self.heads(data, begins, ends, why)
        parts = []
        for head, rows in heads.items():
            plan = self.plan(head)
            if isinstance(plan, Reason):
                why[rows] = plan
                continue
            found, taken = self.scan(data, begins[rows], ends[rows], plan)
            if not taken.all():
                why[rows[~taken]] = Reason.MALFORMED
                rows, found = rows[taken], found_of(found, taken)  # noqa: PLW2901 - the rest of them
            parts.append(Part(rows, data, found, plan))
        return parts, why

    def plan(self, head: Head) -> Plan | Reason:
        """Return how records with this head are read, or why they are rejected.

        An unknown schema is asked for at every batch, any other rejection is judged again after a while: a registry may
        have given one wrong answer.
        """
        found = self._plans.get(head)
        if found is not None:
            return found
        reason, until = self._rejected.get(head, (None, 0.0))
        if reason is not None and time.monotonic() < until:
            return reason
        made = self.new_plan(head)
        if isinstance(made, Reason):
            if made is not Reason.UNKNOWN_SCHEMA:
                _remember(self._rejected, head, (made, time.monotonic() + ASK_AGAIN_SECONDS))
        else:
            self._rejected.pop(head, None)
            _remember(self._plans, head, made)
        return made


def _remember(cache: OrderedDict[Head, Any], head: Head, what: object) -> None:
    cache[head] = what
    if len(cache) > _MOST_PLANS:
        cache.popitem(last=False)


def without_skipped(reader: BinaryReader[Head, Plan], part: Part[Plan]) -> tuple[Part[Plan], NDArray[np.int64]]:
    """Return the records that are events, and which of the batch are none, such as deleted rows of Debezium."""
    if OPERATION_FIELD not in reader.fields:
        return part, np.empty(0, np.int64)
    place = reader.fields.index(OPERATION_FIELD)
    found = reader.layers(OPERATION_FIELD, place, part.data, part.found, part.plan)
    operations = pc.coalesce(*(texts(layer)[0].cast(pa.string()) for layer in found))
    events = ~pc.is_in(operations, pa.array(SKIPPED_OPERATIONS)).to_numpy(zero_copy_only=False)
    if events.all():
        return part, np.empty(0, np.int64)
    return Part(part.rows[events], part.data, found_of(part.found, events), part.plan), part.rows[~events]


class BinaryDecoder(Generic[Head, Plan]):
    """Rows of what a reader finds; those whose public texts take more than `largest_row` bytes are refused."""

    def __init__(
        self,
        schema: Schema,
        reader: BinaryReader[Head, Plan],
        public: Mapping[str, pa.DataType],
        largest_row: int,
        person_key: PersonKey | None = None,
    ) -> None:
        self._person_key = person_key or PersonKey.random()
        self.reader: BinaryReader[Head, Plan] = reader
        """It looks for all declared fields."""
        self.public = public
        """Of each public field the type of its column."""
        self._largest_row = largest_row
        self._encoded = replace(schema, public=())
        self._by_key = schema.person is PersonSource.KEY
        self._skips = OPERATION_FIELD in reader.fields
        """Whether records may be no events."""

    def decode(self, batch: Records) -> Events:
        """Rows and refusals of one batch."""
        read, why = self.reader.read(batch.values)
        parts, skipped = [], 0
        if self._skips:
            skipped = int((why == Reason.TOMBSTONE).sum())
            why[why == Reason.TOMBSTONE] = 0
        for whole in read:
            part, others = without_skipped(self.reader, whole)
            skipped += len(others)
            keys = [batch.keys[row] for row in part.rows.tolist()] if self._by_key else None
            parts.append(self.rows(part, batch.offsets[part.rows], keys))
        refused = [
            Refused(int(batch.offsets[row]), WHOLE_RECORD, Reason(int(why[row])))
            for row in np.flatnonzero(why).tolist()
        ]
        if len(parts) == 1 and not refused:
            return replace(parts[0], skipped=skipped)
        rejected = rejected_whole(self._encoded, batch, refused, self._person_key)
        return replace(Events.merged(parts or [self._nothing()], refused, rejected), skipped=skipped)

    def _nothing(self) -> Events:
        columns = {name: [pa.nulls(0)] for name in self._encoded.fields()}
        nothing = encode_layers(self._encoded, columns, 0, [], person_key=self._person_key)
        table = nothing.table
        public = tuple(pa.nulls(0, kind) for kind in self.public.values())
        return Events(np.empty(0, np.int64), table.persons, table.quasi, table.sensitive, public, [], nothing.more)

    def rows(self, part: Part[Plan], offsets: NDArray[np.int64], keys: list[bytes | None] | None) -> Events:
        """The events of records in which this was found."""
        _, data, found, plan = part
        places = {name: place for place, name in enumerate(self.reader.fields)}
        encoded = encode_layers(
            self._encoded,
            {name: self.reader.layers(name, places[name], data, found, plan) for name in self._encoded.fields()},
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
            public[name], reasons = one_column(self.reader.public_layers(name, places[name], data, found, plan), kind)
            wrong = np.flatnonzero(good & (reasons > 0))
            refused += [Refused(int(offsets[row]), name, Reason(int(reasons[row]))) for row in wrong]
            good[wrong] = False
        wide = good & (_widths(public.values(), len(offsets)) > self._largest_row)
        refused += [Refused(int(offsets[row]), WHOLE_RECORD, Reason.TOO_LARGE) for row in np.flatnonzero(wide)]
        good &= ~wide
        table, kept = encoded.table, good[encoded.rows]
        more = encoded.more
        rejected = None
        if self._encoded.person is not PersonSource.ROW:
            # A row that is rejected for its public values shows its quasi-identifiers all the same.
            parts = [RejectedRows(encoded.rows, table.persons, table.quasi, more).take(~kept)]
            parts += [encoded.rejected] if encoded.rejected else []
            rejected = RejectedRows.concat(table.quasi.shape[1], parts).at(offsets)
        return Events(
            offsets[good],
            table.persons[kept],
            table.quasi[kept],
            table.sensitive[kept],
            tuple(column.filter(pa.array(good)) for column in public.values()),
            sorted(refused, key=lambda one: one.offset),
            None if more is None else more[kept],
            rejected,
        )


def ids_in_front(
    data: Bytes, begins: NDArray[np.int64], ends: NDArray[np.int64], why: NDArray[np.int8]
) -> NDArray[np.int64]:
    """The id in front of each record; what has none is noted."""
    long_enough = ends - begins >= WIRE_PREFIX
    numbers, at = np.zeros(len(begins), np.int64), begins[long_enough]
    whole = np.zeros(len(at), np.int64)
    for byte in range(1, WIRE_PREFIX):
        whole = (whole << 8) | data[at + byte]
    numbers[long_enough] = whole
    marked = np.zeros(len(begins), bool)
    marked[long_enough] = data[at] == 0
    why[(why == 0) & ~marked] = Reason.MALFORMED
    return numbers


def never_fits(schema: Schema, name: str, kind: pa.DataType) -> bool:
    """Whether a declared field can have no value of this type, as a number cannot be a truth value."""
    if name in schema.public:
        return False
    plain, value = replace(schema, public=()), _zero(kind)
    columns = {own: [value if own == name else pa.nulls(1)] for own in plain.fields()}
    refusals = encode_layers(plain, columns, 1, [b""], person_key=PersonKey.random()).refusals
    place = list(plain.fields()).index(name)
    return bool(((refusals.fields == place) & (refusals.reasons == Reason.WRONG_TYPE)).any())


def never_a_person(kind: pa.DataType) -> bool:
    """Whether a value of this type cannot name a person, as a truth value or a date."""
    return bool(person_names([_zero(kind)])[1][0] == Reason.WRONG_TYPE)


def _zero(kind: pa.DataType) -> pa.Array:
    """A column of one value of this type."""
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(0)], kind)
    zero = pa.array(["0"]) if is_text(kind) else pa.array([0], pa.int32() if kind.bit_width == 32 else pa.int64())
    return zero.cast(kind)


# -- columns -----------------------------------------------------------------------------------------------------------


def gathered(
    data: Bytes, begins: NDArray[np.int64], ends: NDArray[np.int64], there: NDArray[np.bool_], *, text: bool
) -> pa.Array:
    """Bytes as a column, null where they are not there; as texts where they should be and all of them are."""
    offsets, joined = gather(data, begins, ends)
    buffers = [bits(there), pa.py_buffer(offsets), pa.py_buffer(joined)]
    column = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(there), buffers)
    if not text:
        return column
    try:
        return column.cast(pa.large_string())
    except pa.ArrowInvalid:  # else somebody says which are not
        return column


def strange(there: NDArray[np.bool_]) -> pa.Array:
    """A column of values that are of no use."""
    return pa.array(np.zeros(len(there), np.int64), _STRANGE, mask=~there)


def bits(there: NDArray[np.bool_]) -> pa.Buffer:
    """Which values of a column there are."""
    return pa.py_buffer(np.packbits(there, bitorder="little"))


_PROMOTED = {
    pa.int32(): {pa.int64(), pa.float32(), pa.float64()},
    pa.int64(): {pa.float32(), pa.float64()},
    pa.float32(): {pa.float64()},
    pa.large_string(): {pa.large_binary()},
}
"""What a type is read as besides itself; bytes are read as texts where they are some."""


def is_read_as(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether every value of a type is read as one of another type."""
    return bool(given == kind or kind in _PROMOTED.get(given, set()))


def one_column(layers: Sequence[pa.Array], kind: pa.DataType) -> tuple[pa.Array, NDArray[np.int8]]:
    """Values as one column of this type, and reasons for those that are not of it."""
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
