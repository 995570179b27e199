"""What is kept about one input partition between two cycles: the whole of it, and never a raw value.

The record joins published rows to input positions, so it is as confidential as the input itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any
from uuid import UUID

import msgspec
import numpy as np
from numpy.typing import NDArray

from microdata import DataError
from service.codec import SchemaIds
from service.worker.memory import MemoryNote
from service.worker.packing import Packed, pack, packed, unpack
from stream_algos import Release, Snapshot, Terms

_DECISIONS = [part.name for part in fields(Release) if part.name not in {"decided", "given_up"}]
"""What is kept of a decision. When it was made is of no use once it is."""
_OUTLIVED = ("outlived.ids", "outlived.lo", "outlived.hi")
_REMEMBERED = ("lo", "hi", "parents")
"""What is not repeated of a box that stands in the memory beside the state, at the entry that a decision names."""
_OF_BOXES = ("ids", "entries", *_REMEMBERED)
"""What decisions with the same id and box have in common."""


@dataclass(frozen=True)
class Origin:
    """Whose state it is. Any difference means that it belongs to something else."""

    stream: str
    topic: str
    topic_id: UUID
    partition: int
    fingerprint: str


@dataclass(frozen=True, eq=False)
class Legacy:
    """What a drained stream leaves to the policy after it: persons, and under which terms they are remembered."""

    terms: Terms
    engine: Snapshot
    """Of the engine, but for what `State.memory` names."""


class SchemasFrom(msgspec.Struct, frozen=True):
    """The schemas by which the events from an input offset on are read."""

    position: int
    schemas: SchemaIds


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
    outlived: tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.float64]] | None = None
    """Ids and boxes (lo, hi) that have left, that decisions reuse, and that the engine has no more for others."""
    clock: tuple[NDArray[np.int64], NDArray[np.float64]] = field(
        default_factory=lambda: (np.empty(0, np.int64), np.empty(0))
    )
    """When the rows that are held were taken, as steps: from each of these positions on, this time."""
    owner: str = ""
    """Transactional id under which the record was written: who takes over ends what it has left open."""
    memory: MemoryNote | None = None
    """Of an engine that remembers persons: where that is kept, and what is there."""
    legacy: Legacy | None = None
    """Where the stream was drained and its persons are kept for a new policy."""
    schemas: tuple[SchemasFrom, ...] = ()
    """The schemas by which its events were read, in the order of their offsets; empty without a registry."""
    totals: Mapping[str, int] = field(default_factory=dict)
    """Events taken, released, suppressed, refused by reason: since the first start."""

    def encode(self, arrays: Packed | None = None) -> bytes:
        """The value of the state record; `arrays` are its own, where they were `packed` before."""
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
        if self.schemas:
            head["schemas"] = [msgspec.to_builtins(one) for one in self.schemas]
        if self.memory is not None:
            head["memory"] = msgspec.structs.asdict(self.memory)
        if self.legacy is not None:
            head["terms"] = {"same": self.legacy.terms.same, "not_raised": self.legacy.terms.not_raised}
        return pack(head, arrays or self.packed())

    def packed(self) -> Packed:
        """All that is not in the head of the record."""
        arrays: dict[str, NDArray[Any]] = {
            "pending": self.pending,
            "withheld": self.withheld,
            "clock.from": self.clock[0],
            "clock.time": self.clock[1],
        }
        arrays |= _decisions(self.decisions)
        if self.outlived is not None:
            arrays |= dict(zip(_OUTLIVED, self.outlived, strict=True))
        arrays |= {f"engine.{name}": array for name, array in (self.engine or {}).items()}
        if self.legacy is not None:
            arrays |= {f"legacy.{name}": array for name, array in self.legacy.engine.items()}
        return packed(arrays)

    def read_by(self, schemas: SchemaIds) -> State:
        """Return the state of a partition whose further events are read by these schemas."""
        if not schemas or (self.schemas and self.schemas[-1].schemas == schemas):
            return self
        before = tuple(one for one in self.schemas if one.position < self.position)
        return replace(self, schemas=(*before, SchemasFrom(self.position, schemas)))

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
                decisions=_decided(_below("decisions.", arrays)),
                needed_from=head["needed_from"],
                withheld=arrays["withheld"],
                outlived=(arrays[_OUTLIVED[0]], arrays[_OUTLIVED[1]], arrays[_OUTLIVED[2]])
                if _OUTLIVED[0] in arrays
                else None,
                clock=(arrays["clock.from"], arrays["clock.time"]),
                owner=head.get("owner", ""),  # not in records of version 0.1
                memory=msgspec.convert(head["memory"], MemoryNote) if "memory" in head else None,
                legacy=Legacy(msgspec.convert(head["terms"], Terms), _below("legacy.", arrays))
                if "terms" in head
                else None,
                schemas=msgspec.convert(head.get("schemas", ()), tuple[SchemasFrom, ...]),
                totals=head["totals"],
            )
        except (AttributeError, KeyError, TypeError, ValueError, msgspec.ValidationError):
            raise DataError("a state record is incomplete") from None


def _decisions(decisions: Release) -> dict[str, NDArray[Any]]:
    """Decisions as they are written: a box that many of them have, once, and who has it by its number."""
    columns = {name: getattr(decisions, name) for name in _DECISIONS}
    first, box = decisions.distinct
    shared = all(np.array_equal(columns[name][first][box], columns[name]) for name in ("parents", "entries"))
    if shared and len(first) < len(decisions):
        columns |= {name: columns[name][first] for name in _OF_BOXES} | {"box": box.astype(np.int32)}
    own = columns["entries"] < 0
    columns |= {name: columns[name][own] for name in _REMEMBERED}
    return {f"decisions.{name}": column for name, column in columns.items()}


def _decided(columns: dict[str, NDArray[Any]]) -> Release:
    """Decisions as they were written; boxes that stand elsewhere are no numbers, and so are never published."""
    if "entries" in columns:  # not in records of version 0.1
        own = columns["entries"] < 0
        for name in _REMEMBERED:
            there, missing = columns[name], 0 if name == "parents" else np.nan
            columns[name] = np.full((len(own), *there.shape[1:]), missing, there.dtype)
            columns[name][own] = there
    box = columns.pop("box", None)
    if box is not None:
        columns |= {name: columns[name][box] for name in _OF_BOXES}
    return Release(**columns)


def _below(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
