"""The share of a partition's recent records that were rejected, and the most frequent reason."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from service.codec import WIRE_PREFIX, Refused
from service.kafka import RecordBatch

FEWEST = 100
"""Recent records on which a share is judged."""


class Rejecting(NamedTuple):
    """Recent records of a partition, and the most frequent reason for which they were rejected."""

    rejected: int
    records: int
    field: str
    reason: str
    schema_id: int | None
    """Id in front of the first record with this reason, where records carry one."""

    def __str__(self) -> str:
        behind = "" if self.schema_id is None else f", schema id {self.schema_id}"
        why = f"most of them for {self.field} {self.reason}{behind}"
        return f"{self.rejected} of the last {self.records} records are rejected, {why}"

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data for JSON."""
        return self._asdict()


class _Batch(NamedTuple):
    records: int
    reasons: Counter[tuple[str, str]]
    ids: dict[tuple[str, str], int]


class RecentRejections:
    """The most recent batches of one partition that together have at least `FEWEST` records."""

    def __init__(self, *, prefixed: bool) -> None:
        self._prefixed = prefixed
        """Whether records begin with the id of their schema."""
        self._batches: deque[_Batch] = deque()
        self._records = 0

    def note(self, batch: RecordBatch, refused: Sequence[Refused]) -> None:
        """Count the records of a batch, and those of them that were rejected."""
        reasons = Counter((one.field, one.reason.code) for one in refused)
        ids: dict[tuple[str, str], int] = {}
        if self._prefixed and refused:
            for one in refused:
                if (one.field, one.reason.code) not in ids:
                    ids[one.field, one.reason.code] = _id_of(batch, one.offset)
        self._batches.append(_Batch(len(batch), reasons, ids))
        self._records += len(batch)
        while self._records - self._batches[0].records >= FEWEST:
            self._records -= self._batches.popleft().records

    def above(self, share: float) -> Rejecting | None:
        """Return what is rejected, if that is more than this share of the recent records."""
        reasons: Counter[tuple[str, str]] = Counter()
        for batch in self._batches:
            reasons += batch.reasons
        rejected = reasons.total()
        if self._records < FEWEST or rejected <= share * self._records:
            return None
        most = max(reasons, key=lambda one: (reasons[one], one))
        number = next((batch.ids[most] for batch in self._batches if most in batch.ids), None)
        return Rejecting(rejected, self._records, *most, None if number is None or number < 0 else number)


def _id_of(batch: RecordBatch, offset: int) -> int:
    """Return the id in front of a record, or -1 where it has none."""
    value = batch.values[int(np.searchsorted(batch.offsets, offset))]
    if value is None or len(value) < WIRE_PREFIX or value[0]:
        return -1
    return int.from_bytes(value[1:WIRE_PREFIX], "big")
