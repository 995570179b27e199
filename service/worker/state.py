"""What is kept about one input partition between two cycles: the whole of it, and never a raw value.

The record joins published rows to input positions, so it is as confidential as the input itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from microdata import DataError
from service.worker.packing import pack, unpack
from stream_algos import Release, Snapshot

_DECISIONS = [part.name for part in fields(Release) if part.name not in {"decided", "given_up"}]
"""What is kept of a decision. When it was made is of no use once it is."""


@dataclass(frozen=True)
class Origin:
    """Whose state it is. Any difference means that it belongs to something else."""

    stream: str
    topic: str
    topic_id: UUID
    partition: int
    fingerprint: str


@dataclass(frozen=True, eq=False)
class State:
    """The state of one input partition as of one committed cycle."""

    origin: Origin
    sequence: int
    """Counts the partition's cycles; the committed offset names it too."""
    position: int
    """Next input offset to take."""
    first_partitions: int
    """Input partitions when the stream first started; those that came later start at their beginning."""
    engine: Snapshot | None
    """None once the stream was drained: a new policy may start here."""
    pending: NDArray[np.int64]
    decisions: Release
    needed_from: int | None
    """Oldest offset that a restore has to read again."""
    withheld: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    """Clusters that the engine would reuse but that never left, because the check refused them."""
    clock: tuple[NDArray[np.int64], NDArray[np.float64]] = field(
        default_factory=lambda: (np.empty(0, np.int64), np.empty(0))
    )
    """When the rows that are held were taken, as steps: from each of these positions on, this time."""
    owner: str = ""
    """Transactional id under which the record was written: who takes over ends what it has left open."""
    totals: Mapping[str, int] = field(default_factory=dict)
    """Events taken, released, suppressed, refused by reason: since the first start."""

    def encode(self) -> bytes:
        """The value of the state record."""
        origin = self.origin
        head: dict[str, Any] = {
            "stream": origin.stream,
            "topic": origin.topic,
            "topic_id": str(origin.topic_id),
            "partition": origin.partition,
            "fingerprint": origin.fingerprint,
            "sequence": self.sequence,
            "position": self.position,
            "first_partitions": self.first_partitions,
            "drained": self.engine is None,
            "needed_from": self.needed_from,
            "owner": self.owner,
            "totals": dict(self.totals),
        }
        arrays: dict[str, NDArray[Any]] = {
            "pending": self.pending,
            "withheld": self.withheld,
            "clock.from": self.clock[0],
            "clock.time": self.clock[1],
        }
        arrays |= {f"decisions.{name}": getattr(self.decisions, name) for name in _DECISIONS}
        arrays |= {f"engine.{name}": array for name, array in (self.engine or {}).items()}
        return pack(head, arrays)

    @classmethod
    def decode(cls, value: bytes) -> State:
        """The state in a record; `DataError` for a record that is none."""
        head, arrays = unpack(value)
        try:
            origin = Origin(
                head["stream"], head["topic"], UUID(head["topic_id"]), head["partition"], head["fingerprint"]
            )
            return cls(
                origin=origin,
                sequence=head["sequence"],
                position=head["position"],
                first_partitions=head["first_partitions"],
                engine=None if head["drained"] else _below("engine.", arrays),
                pending=arrays["pending"],
                decisions=Release(**_below("decisions.", arrays)),
                needed_from=head["needed_from"],
                withheld=arrays["withheld"],
                clock=(arrays["clock.from"], arrays["clock.time"]),
                owner=head.get("owner", ""),  # not in records of version 0.1
                totals=head["totals"],
            )
        except (KeyError, TypeError, ValueError):
            raise DataError("a state record is incomplete") from None


def _below(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
