"""What every codec makes of records: rows that the schema takes, and records that it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from microdata import Reason, Refusals

MAX_EVENT_BYTES = 262_144
"""Larger records are refused unread, unless a worker is told otherwise."""
WHOLE_RECORD = "(record)"
"""The field of a refusal that is about the record as such."""


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


class Codec(Protocol):
    """One format. What a record means never depends on its companions: a new owner who reads it again gets the same."""

    def decode(self, batch: Records) -> Events:
        """Rows and refusals of one batch."""


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


@dataclass(frozen=True, eq=False)
class Events:
    """Accepted rows in the order of their offsets, and the records that were refused."""

    positions: NDArray[np.int64]
    persons: NDArray[np.int64]
    quasi: NDArray[np.float64]
    sensitive: NDArray[np.int32]
    public: NDArray[np.object_]
    """Rows × public fields: each value as the JSON text that came in."""
    refused: list[Refused]

    def __len__(self) -> int:
        return len(self.positions)

    @staticmethod
    def merged(parts: Sequence[Events], refused: Sequence[Refused]) -> Events:
        """The rows and refusals of several parts and these refusals, in the order of their offsets."""
        order = np.argsort(np.concatenate([part.positions for part in parts]))
        return Events(
            np.concatenate([part.positions for part in parts])[order],
            np.concatenate([part.persons for part in parts])[order],
            np.concatenate([part.quasi for part in parts])[order],
            np.concatenate([part.sensitive for part in parts])[order],
            np.concatenate([part.public for part in parts])[order],
            sorted([*refused, *(one for part in parts for one in part.refused)], key=lambda one: one.offset),
        )

    def at(self, wanted: NDArray[np.bool_]) -> Events:
        """The wanted rows, without refusals."""
        return Events(
            self.positions[wanted],
            self.persons[wanted],
            self.quasi[wanted],
            self.sensitive[wanted],
            self.public[wanted],
            [],
        )
