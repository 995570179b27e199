"""What every codec makes of records, rows that the schema takes and records that it refuses, and what it encodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from microdata import Boxes, PersonKey, PersonSource, Reason, Refusals, RejectedRows, Schema, Show
from microdata.encoding import rejected_by_key
from microdata.refusals import KEY, RECORD

Emit: TypeAlias = Literal["clusters", "tuples"]
"""One message per cluster, or one flat record per row."""
Public: TypeAlias = tuple[pa.Array, ...]
"""The public values of rows, a column of any type for each field."""
MAX_EVENT_BYTES = 262_144
"""Larger records are refused unread, unless a worker is told otherwise."""
LARGEST_MESSAGE = 1 << 40
"""Where messages have no limit, as in a file."""
WIRE_PREFIX = 5
"""Bytes in front of a record of a registry's schema: a zero and its id."""
WHOLE_RECORD = "(record)"
"""The field of a refusal that is about the record as such."""
RECORD_KEY = "(key)"
"""The field of a refusal that is about the record's key."""


class Records(Protocol):
    """Records of one partition, or lines of one file, as columns."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each of them is; ascending, gaps allowed."""

    @property
    def keys(self) -> Sequence[bytes | None]:
        """The key of each."""

    @property
    def values(self) -> Sequence[bytes | None]:
        """The bytes of each; None for a tombstone."""


@dataclass(frozen=True, eq=False)
class GivenRecords:
    """Records that are at hand, such as those of a file."""

    offsets: NDArray[np.int64]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]

    @classmethod
    def without_keys(cls, values: Sequence[bytes | None], first: int = 0) -> GivenRecords:
        """Numbered from `first`."""
        return cls(np.arange(first, first + len(values)), [None] * len(values), values)


class Codec(Protocol):
    """One format. What a record means never depends on its companions: a new owner who reads it again gets the same."""

    def decode(self, batch: Records) -> Events:
        """Rows and refusals of one batch. A public field has the same type in every batch."""

    def encode(self, leaving: Leaving, emit: Emit) -> Iterable[list[bytes]]:
        """The messages of each cluster; of the same rows always the same bytes."""


@dataclass(frozen=True)
class Refused:
    """A record that is not taken: where it is, which field is wrong, and why. Never what it holds."""

    offset: int
    field: str
    reason: Reason


def refused_records(refusals: Refusals, offsets: NDArray[np.int64] | None = None) -> list[Refused]:
    """Each refused row with the first of its faults; `offsets` tells where the rows are, if not at their numbers."""
    first = refusals.first_per_row()
    places = first.rows if offsets is None else offsets[first.rows]
    return [
        Refused(place, first.field_name(field), Reason(reason))
        for place, field, reason in zip(places.tolist(), first.fields.tolist(), first.reasons.tolist(), strict=True)
    ]


def rejected_whole(
    schema: Schema, batch: Records, refused: Sequence[Refused], person_key: PersonKey
) -> RejectedRows | None:
    """Return the persons of records that were rejected as a whole, where they are named by record keys.

    A record without a value is not an event, so it says nothing about its person.
    """
    if schema.person is not PersonSource.KEY:
        return None
    offsets = np.array([one.offset for one in refused if one.reason is not Reason.TOMBSTONE], np.int64)
    keys = [batch.keys[place] for place in np.searchsorted(batch.offsets, offsets).tolist()]
    return rejected_by_key(schema, offsets, keys, person_key)


def refusals_of(schema: Schema, refused: Sequence[Refused]) -> Refusals:
    """The same as counts and reports take them."""
    places = {WHOLE_RECORD: RECORD, RECORD_KEY: KEY} | {name: place for place, name in enumerate(schema.fields())}
    return Refusals(
        schema,
        np.array([one.offset for one in refused], np.int64),
        np.array([places[one.field] for one in refused], np.int16),
        np.array([one.reason for one in refused], np.int8),
    )


EXACT_MOMENT = pa.struct([("seconds", pa.int64()), ("nanos", pa.int32())])
"""Public moments with nanoseconds, for all years from 1 to 9999; no type of Arrow has both."""


def micros_of(column: pa.Array) -> pa.Array:
    """Return exact moments to the microsecond."""
    seconds, nanos = column.flatten()
    micros = pc.add(pc.multiply(seconds, 1_000_000), pc.cast(pc.divide(nanos, 1_000), pa.int64()))
    return micros.cast(pa.timestamp("us", "UTC"))


def plain_values(column: pa.Array) -> pa.Array:
    """Public values in a type that every compute function knows."""
    return column.storage if isinstance(column, pa.ExtensionArray) else column


def joined(parts: Sequence[Public]) -> Public:
    """The columns of these parts, one behind the other."""
    return tuple(pa.concat_arrays(columns) for columns in zip(*parts, strict=True))


@dataclass(frozen=True, eq=False)
class Events:
    """Accepted rows in the order of their offsets, and the records that were refused."""

    positions: NDArray[np.int64]
    persons: NDArray[np.int64]
    quasi: NDArray[np.float64]
    sensitive: NDArray[np.int32]
    public: Public
    refused: list[Refused]
    more: NDArray[np.int64] | None = None
    """Second code of each person, where the codec has a key for it."""
    rejected: RejectedRows | None = None
    """Those of the refused records that name a person, by offset; None where there are none."""
    skipped: int = 0
    """Records that are no events about a person, such as deleted rows in a topic of Debezium."""

    def __len__(self) -> int:
        return len(self.positions)

    @staticmethod
    def merged(parts: Sequence[Events], refused: Sequence[Refused], rejected: RejectedRows | None = None) -> Events:
        """The rows and refusals of several parts and these refusals, in the order of their offsets."""
        order = np.argsort(np.concatenate([part.positions for part in parts]))
        more = [part.more for part in parts if part.more is not None]
        return Events(
            np.concatenate([part.positions for part in parts])[order],
            np.concatenate([part.persons for part in parts])[order],
            np.concatenate([part.quasi for part in parts])[order],
            np.concatenate([part.sensitive for part in parts])[order],
            tuple(column.take(pa.array(order)) for column in joined([part.public for part in parts])),
            sorted([*refused, *(one for part in parts for one in part.refused)], key=lambda one: one.offset),
            None if not more else np.concatenate(more)[order],
            RejectedRows.concat(
                parts[0].quasi.shape[1], [one for one in (rejected, *(part.rejected for part in parts)) if one]
            ),
            sum(part.skipped for part in parts),
        )

    def at(self, wanted: NDArray[np.bool_]) -> Events:
        """The wanted rows, without refusals."""
        return Events(
            self.positions[wanted],
            self.persons[wanted],
            self.quasi[wanted],
            self.sensitive[wanted],
            tuple(column.filter(pa.array(wanted)) for column in self.public),
            [],
            None if self.more is None else self.more[wanted],
        )


@dataclass(frozen=True, eq=False)
class Leaving:
    """Clusters that leave: of each its id, its box, and its rows, side by side."""

    ids: NDArray[np.uint64]
    boxes: Boxes
    starts: NDArray[np.int64]
    """Where the rows of each cluster begin, and the end of all."""
    sensitive: NDArray[np.int32]
    public: Public
    show: Show = "interval"
    """What the boxes are; where means are shown, a number is written as itself instead of an interval."""

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.sensitive)
