"""What one partition remembers of persons: the engine's tables, and the values that the gate has seen leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from microdata import GuaranteeError, Schema
from service.kafka import Partition, Reader
from service.publishing.gate import Gate
from service.worker.followed import FollowedPersons
from service.worker.memory import DurableMemory, MemoryNote, Tables
from service.worker.packing import pack, packed, unpack
from service.worker.published_values import TABLE, PublishedValues
from service.worker.sealing import Keys, SealError
from stream_algos import Batch, Engine, Memory, Release, Snapshot, Terms

_SEALED = "sealed"
"""The one array of a sealed snapshot."""
_KEY = b"rest"
"""What is sealed with it is no record of the memory's topic: their keys have a slash."""


class PersonMemory:
    """Joins an engine that remembers, a gate, and where both are kept."""

    def __init__(
        self,
        schema: Schema,
        engine: Engine,
        gate: Gate,
        where: Partition,
        keys: Keys,
        note: MemoryNote,
        same_persons: Mapping[str, str],
        k: int,
    ) -> None:
        if not isinstance(engine, Memory):
            raise GuaranteeError("what this engine remembers of persons cannot be kept")
        self._engine: Memory = engine
        self._gate = gate
        self._where = where
        self._keys = keys
        self.followed = FollowedPersons(self._engine, k)
        """The attack, on a few of them."""
        own = self._engine.terms()
        self.terms = Terms({**own.same, **same_persons}, own.not_raised)
        """Under which terms a later policy may go on with it."""
        # Where rows join those that left before, the gate counts values over all of them. Persons alone it is told.
        counts = gate.counts_values and engine.parameters.adds is not None
        self._values = PublishedValues(schema) if counts else None
        owners: list[Tables] = [self._engine, *([] if self._values is None else [self._values])]
        self.durable = DurableMemory(where, keys, owners, note)

    def published(self, clusters: Release, sensitive: NDArray[np.int32]) -> None:
        """Rows with these values leave with these clusters."""
        if self._values is not None:
            self._values.add(clusters, sensitive)

    def read(self, reader: Reader) -> None:
        """Read everything into its place; the engine goes on with it by `recall`, the gate at once."""
        tables = self.durable.read(reader)
        if self._values is not None:
            self._gate.remember(*self._values.recall(tables[TABLE]))

    def taken_from(self, other: PersonMemory) -> bool:
        """Take over what another one remembers that is durable, instead of reading it; False where it cannot tell."""
        if not self._engine.take_over(other._engine):
            return False
        if self._values is not None and other._values is not None:
            self._gate.remember(*self._values.recall(other._values.undone()))
        self.durable.go_on_from(other.durable)
        return True

    def recall(self, rest: Snapshot, sequence: int, rows: Batch) -> None:
        """Let the engine go on with what was read, the `rest` of its state as of a cycle, and rows that wait."""
        self._engine.recall(self._opened(rest, sequence), rows)

    def _opened(self, rest: Snapshot, sequence: int) -> Snapshot:
        try:
            content, written = self._keys.open(rest.get(_SEALED, np.empty(0, np.uint8)).tobytes(), self._where, _KEY)
        except SealError as error:
            raise GuaranteeError(f"what the state holds of persons cannot be read ({error})") from None
        if written != sequence:
            raise GuaranteeError("what the state holds of persons is of another cycle")
        return unpack(content)[1]

    def referring(self, decisions: Release) -> Release:
        """Decisions to be kept. Those name an entry whose box stands there as it was decided; others bring their own.

        A box that has grown since is another one.
        """
        first, of = decisions.distinct
        named = decisions.entries[first] >= 0
        own, there = first[named], self._engine.boxes(decisions.entries[first[named]])
        same = (there.ids == decisions.ids[own]) & (there.parents == decisions.parents[own])
        named[named] = same & (there.lo == decisions.lo[own]).all(axis=1) & (there.hi == decisions.hi[own]).all(axis=1)
        referring = replace(decisions, entries=np.where(named, decisions.entries[first], -1)[of])
        referring.__dict__["distinct"] = first, of  # the same ids and boxes: it need not be found out again
        return referring

    def completed(self, decisions: Release) -> Release:
        """Decisions that were kept, with the boxes of the entries that they name."""
        named = np.flatnonzero(decisions.entries >= 0)
        there = self._engine.boxes(decisions.entries[named])
        if not np.array_equal(there.ids, decisions.ids[named]):
            raise GuaranteeError("a decision names a box that is not remembered")
        parents, lo, hi = decisions.parents.copy(), decisions.lo.copy(), decisions.hi.copy()
        parents[named], lo[named], hi[named] = there.parents, there.lo, there.hi
        return replace(decisions, parents=parents, lo=lo, hi=hi)

    def keep_whole(self, ids: NDArray[np.uint64]) -> None:
        """Rows that were decided with these boxes do not leave."""
        self._engine.keep_whole(ids)

    def retired(self) -> NDArray[np.uint64]:
        """Ids of boxes with which the engine has decided nothing since the last commit, though it might have before."""
        return self._engine.retired()

    def parents(self) -> NDArray[np.uint64]:
        """Ids of boxes that what leaves later comes after: the gate must not forget them."""
        return self._engine.parents()

    def forget(self, persons: NDArray[np.int64], rows: Batch) -> NDArray[np.int64]:
        """Forget these persons; positions of the rows that are given up so."""
        return self._engine.forget(persons, rows)

    def rest(self, sequence: int) -> Snapshot:
        """The engine's state but for what is remembered of persons, sealed for the state record of a cycle.

        Rows that wait bring boxes whose ends are members' values, and which may never be published.
        """
        content = pack({}, packed(self._engine.rest()))
        return {_SEALED: np.frombuffer(self._keys.seal(content, self._where, _KEY, sequence), np.uint8)}
