"""One input partition: its engine, its rows, what is decided and what has been settled.

An offset is pending (taken, undecided), decided (its cluster is fixed but not yet published) or settled. Decisions are
`fresh` until a transaction has committed them with the state; from then on they are owed, and the next transaction
publishes them. So nothing is published that is not durable. Nothing here talks to Kafka.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from microdata import GuaranteeError, Schema
from service.codec.events import Events, Refused
from service.publishing.boxes import PublishedBoxes
from service.publishing.departure import Departure
from service.publishing.gate import Gate
from service.publishing.rows import Rows, rejected_batch
from service.worker.memory import Written
from service.worker.packing import Packed
from service.worker.person_memory import PersonMemory
from service.worker.state import Legacy, Origin, SchemasFrom, State
from stream_algos import Batch, Engine, Release, Snapshot

_FEW_BOXES = 1000
Ending: TypeAlias = Literal["forget", "keep"]
"""What a stream that ends does with the persons whom it remembers."""


@dataclass(frozen=True, eq=False)
class Settlement:
    """What one transaction does for one partition."""

    published: Departure
    """Decided by an earlier transaction, and checked."""
    refused: tuple[Refused, ...]
    """Records whose letters go out."""
    state: State
    """The state as of this transaction; its decisions are owed once it is durable."""
    memory: Written | None = None
    """What is written of persons, where the engine remembers them."""

    @cached_property
    def _packed(self) -> Packed:
        return self.state.packed()

    @cached_property
    def record(self) -> bytes:
        """The state as it is written."""
        return self.state.encode(self._packed)

    def remembering(self, end: int) -> Settlement:
        """The same once what is written of persons has arrived, and ends there."""
        if self.memory is None:
            return self
        memory = self.memory.ending(end)
        note = memory.note if self.state.memory is not None else None
        ended = replace(self, state=replace(self.state, memory=note), memory=memory)
        ended.__dict__["_packed"] = self._packed  # only the head says where it ends
        return ended


class InputPartition:
    """The anonymizer of one input partition. First `put_back` and `resume`; then take, publish, commit, again."""

    def __init__(
        self, schema: Schema, gate: Gate, engine: Engine, state: State, memory: PersonMemory | None = None
    ) -> None:
        self.schema = schema
        self.engine = engine
        self.rows = Rows.empty(schema)
        self.position = state.position
        self.totals: Counter[str] = Counter(state.totals)
        self.thin = False
        """Whether events had to be suppressed because too few persons came within the delay."""
        self._gate = gate
        self._memory = memory
        self._state = state
        self._fresh: list[Release] = []
        self._refused: list[Refused] = []
        self._observed: list[Batch] = []
        """Rows of rejected events since the last commit, where the engine remembers persons."""
        self._given_up = 0
        """Rows that were suppressed since the last commit."""
        self._published = PublishedBoxes(len(schema.quasi))
        self._room = _FEW_BOXES
        """With more boxes than this, it is looked which of them nobody will ask for any more."""
        self._changed = False
        self._torn = False
        """Whether the engine is in the middle of something, or failed there."""

    @property
    def achieved(self) -> Mapping[str, float]:
        """What published clusters have achieved since this partition was taken over, by model."""
        return self._gate.achieved

    @property
    def memory(self) -> PersonMemory | None:
        """What is remembered of persons, where the engine does so."""
        return self._memory

    @property
    def durable_memory(self) -> PersonMemory | None:
        """What is remembered of persons, if what of it is durable can be told from the rest."""
        return None if self._torn else self._memory

    @contextmanager
    def _turning(self) -> Iterator[None]:
        self._torn = True
        yield
        self._torn = False

    @property
    def _owed(self) -> Release:
        """What the last committed transaction has decided."""
        return self._state.decisions

    @property
    def origin(self) -> Origin:
        """Whose partition it is."""
        return self._state.origin

    @property
    def committed_totals(self) -> Mapping[str, int]:
        """The totals as of the last commit."""
        return self._state.totals

    def put_back(self, events: Events) -> None:
        """Put back re-read rows with the times at which they were first taken."""
        starts, times = self._state.clock
        step = np.maximum(np.searchsorted(starts, events.positions, side="right") - 1, 0)
        self.rows.append(events, times[step] if len(times) else np.zeros(len(events)))

    def resume(self) -> None:
        """All rows are back: let the engine go on where its snapshot was taken."""
        engine, waiting = self._state.engine, self.rows.batch(0)
        if engine is not None and self._memory is not None:
            self._memory.recall(engine, self._state.sequence, waiting)
            self._state = replace(self._state, decisions=self._memory.completed(self._owed))
        elif engine is not None:
            self.engine.restore(engine, waiting)
        ids, lo, hi = self.engine.reusable()
        left = ~np.isin(ids, np.concatenate([self._owed.ids[~self._owed.reused], self._state.withheld]))
        self._published = PublishedBoxes(len(self.schema.quasi))
        self._published.add(ids[left], lo[left], hi[left])
        if self._state.outlived is not None:
            self._published.add(*self._state.outlived)

    def take(self, events: Events, position: int, now: float) -> None:
        """Take the records before `position`: rows go to the engine, refusals are counted."""
        self.position = position
        self._changed = True
        self.totals["taken"] += len(events) + len(events.refused) + events.skipped
        if events.skipped:
            self.totals["skipped"] += events.skipped
        self.totals.update(f"refused.{refused.reason.code}" for refused in events.refused)
        self._refused += events.refused
        start = len(self.rows)
        if len(events):
            self.rows.append(events, np.full(len(events), now))
        batch = self.rows.batch(start)
        if self._memory is not None and events.rejected:
            observed = rejected_batch(self.schema, events.rejected, np.full(len(events.rejected), now))
            self._observed.append(observed)
            batch = Batch.merged([batch, observed])
        if len(batch):
            with self._turning():
                self._decide(self.engine.push(batch))
        with self._turning():
            self._decide(self.engine.advance(position - 1))  # what was refused or left out has passed too

    def pass_over(self, position: int) -> None:
        """Count the offsets before `position`, which nobody can read any more, as taken and suppressed."""
        self.totals["taken"] += position - self.position
        self.totals["suppressed"] += position - self.position
        self.position = position
        self._changed = True
        with self._turning():
            self._decide(self.engine.advance(position - 1))

    def expire(self, now: float) -> None:
        """Decide what has waited long enough."""
        with self._turning():
            self._decide(self.engine.expire(now))

    def flush(self) -> None:
        """Decide everything that is held."""
        with self._turning():
            self._decide(self.engine.flush(), thin=self.thin)

    def forget(self, persons: NDArray[np.int64]) -> int:
        """Forget persons, by both codes of each: how many were known. Rows of theirs that wait are suppressed.

        The engine counts changes from there on, so all that came before must be durable.
        """
        if self._memory is None:
            return 0
        if self._changed:
            raise GuaranteeError("persons are to be forgotten in the middle of a cycle")
        known = int(self.engine.status()["persons"])
        with self._turning():
            self.totals["suppressed"] += len(self._memory.forget(persons, self.rows.batch(0)))
        self._changed = True
        return known - int(self.engine.status()["persons"])

    def written_anew(self, sequence: int) -> bool:
        """Whether nothing that is remembered was written before this cycle; until then every cycle writes some anew."""
        if self._memory is None or not self._memory.durable.older_than(sequence):
            return True
        self._memory.durable.hurry()
        self._changed = True
        return False

    @property
    def sequence(self) -> int:
        """Number of the last committed cycle."""
        return self._state.sequence

    def missing(self) -> NDArray[np.int64]:
        """Pending and decided positions whose rows are gone."""
        wanted = np.concatenate([self._state.pending, self._owed.members])
        return np.sort(wanted[self.rows.find(wanted) < 0])

    def accept_loss(self) -> None:
        """Count pending rows that are gone as suppressed; decisions that miss a row are refused whole by the gate."""
        self.totals["suppressed"] += int((self.rows.find(self._state.pending) < 0).sum())
        self._changed = True

    def _decide(self, release: Release, *, thin: bool | None = None) -> None:
        if not len(release) and not len(release.suppressed):
            return
        if self.engine.windowed:
            self._require_undecided(release.members)
        self._given_up += len(release.suppressed)
        self.thin = self._is_thin(release) if thin is None else thin
        if self._memory is not None:
            self.totals["at_once"] += int((release.decided[release.cluster_of()] == release.members).sum())
        self._changed = True
        self.totals["suppressed"] += len(release.suppressed)
        self._fresh.append(replace(release, suppressed=np.empty(0, np.int64)))

    def _is_thin(self, release: Release) -> bool:
        """Whether too few persons came for what is decided.

        An engine that knows people again gives up somebody who is unlike all others now and then: it is thin only if
        that is more than what leaves of the cycle.
        """
        if self._memory is None:
            return bool(len(release.suppressed))
        return self._given_up > sum(len(each.members) for each in [*self._fresh, release])

    def _require_undecided(self, members: NDArray[np.int64]) -> None:
        """Rows that stay for their window could leave again; of other engines' rows nothing is left to publish."""
        settled = (members < self._state.position) & ~np.isin(members, self._state.pending)
        if settled.any():
            raise GuaranteeError(f"{int(settled.sum())} rows were decided before")

    @property
    def dirty(self) -> bool:
        """Whether a transaction has anything to say about this partition."""
        return self._changed or len(self._owed) > 0

    def publish(self) -> Departure:
        """The owed clusters that pass the gate. Whole or never: members of a refused one are suppressed.

        It changes nothing and looks only at rows of the last commit, so `take` may run in another thread.
        """
        passed = np.ones(len(self._owed), bool)
        if self._memory is not None:
            passed &= ~self._memory.followed.refused(self._owed)
        passed[passed] = self._gate.passes(self._owed.select(passed), self.rows, self._published)
        clusters = self._owed.select(passed)
        suppressed = len(self._owed.members) - len(clusters.members)
        return Departure(
            clusters=clusters,
            rows=self.rows.find(clusters.members),
            refused=int((~passed).sum()),
            suppressed=suppressed,
            held_back=np.unique(self._owed.ids[~passed]),
        )

    def settle(self, published: Departure, owner: str = "", *, end: Ending | None = None) -> Settlement:
        """What the owner's next transaction does, which publishes this; it counts once it is `committed`.

        At its end a stream forgets persons, or keeps them for the policy after it.
        """
        decisions = Release.concat([Release.empty(len(self.schema.quasi)), *self._fresh])
        pending, sequence = self.engine.pending(), self._state.sequence + 1
        memory = None
        if self._memory is not None:
            self._memory.keep_whole(published.held_back)
            self._memory.published(published.clusters, self.rows.sensitive[published.rows])
            came = self.rows.batch(int(np.searchsorted(self.rows.positions, self._state.position)))
            came = Batch.merged([came, *self._observed]) if self._observed else came
            self._memory.followed.passed(published.clusters, came, np.concatenate([pending, decisions.members]))
            memory = self._memory.durable.erased() if end == "forget" else self._memory.durable.write(sequence)
            decisions = self._memory.referring(decisions)
        needed_from = self._oldest(pending, decisions)
        state = replace(
            self._state,
            sequence=sequence,
            position=self.position,
            engine=None if end else self._snapshot(sequence),
            legacy=Legacy(self._memory.terms, self._memory.rest(sequence)) if end == "keep" and self._memory else None,
            pending=pending,
            decisions=decisions,
            needed_from=needed_from,
            schemas=_needed_schemas(self._state.schemas, self.position if needed_from is None else needed_from),
            withheld=self._withheld(published.clusters),
            outlived=self._outlived(published.clusters, decisions),
            clock=self.rows.clock(),
            owner=owner,
            memory=None if memory is None or end == "forget" else memory.note,
            totals=self._totals_with(published),
        )
        return Settlement(published, tuple(self._refused), state, memory)

    def _snapshot(self, sequence: int) -> Snapshot:
        """Without what is remembered of persons, which is written elsewhere."""
        return self.engine.snapshot() if self._memory is None else self._memory.rest(sequence)

    def _totals_with(self, published: Departure) -> dict[str, int]:
        clusters, totals = published.clusters, Counter(self.totals)
        totals["suppressed"] += published.suppressed
        totals["released"] += len(clusters.members)
        totals["clusters"] += int((~clusters.reused).sum())
        totals["reused"] += int(clusters.reused.sum())
        return dict(totals)

    def _withheld(self, clusters: Release) -> NDArray[np.uint64]:
        """What the engine may reuse although it neither left, nor leaves now, nor is going to."""
        withheld = self._state.withheld
        if len(clusters) < len(self._owed):
            withheld = np.union1d(withheld, np.setdiff1d(self._owed.ids[~self._owed.reused], clusters.ids))
        # What the engine has no more is asked for by nobody; there is hardly ever any, and it has very many.
        return np.intersect1d(withheld, self.engine.reusable()[0]) if len(withheld) else withheld

    def _outlived(
        self, clusters: Release, decisions: Release
    ) -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.float64]] | None:
        """Boxes that left before and that decisions reuse, though the engine has changed them since."""
        reused = np.unique(decisions.ids[decisions.reused])
        if self._memory is not None:
            reused = np.intersect1d(reused, self._memory.retired())
        elif len(reused):
            reused = np.setdiff1d(reused, self.engine.reusable()[0])
        if not len(reused):
            return None
        fresh = ~clusters.reused & np.isin(clusters.ids, reused)
        ids, lo, hi = clusters.ids[fresh], clusters.lo[fresh], clusters.hi[fresh]
        before = np.setdiff1d(reused, ids)
        found, old_lo, old_hi = self._published.find(before)
        return (
            np.concatenate([ids, before[found]]),
            np.concatenate([lo, old_lo[found]]),
            np.concatenate([hi, old_hi[found]]),
        )

    def _oldest(self, pending: NDArray[np.int64], decisions: Release) -> int | None:
        windows = decisions.windows[decisions.windows[:, 0] >= 0, 0]
        engine = self.engine.needed_from()
        ends = [*pending[:1], *np.sort(decisions.members)[:1], *np.sort(windows)[:1]]
        oldest = [int(end) for end in ends] + ([] if engine is None else [engine])
        return min(oldest, default=None)

    def committed(self, settlement: Settlement) -> None:
        """The transaction is durable: what was fresh is owed now, what was published is settled."""
        self._state = state = settlement.state
        if self._memory is not None and settlement.memory is not None:
            self._memory.durable.committed(settlement.memory)
        self.totals = Counter(state.totals)
        self._fresh, self._refused, self._observed, self._given_up, self._changed = [], [], [], 0, False
        clusters = settlement.published.clusters
        new = ~clusters.reused
        self._published.add(clusters.ids[new], clusters.lo[new], clusters.hi[new])
        if len(self._published) > self._room:
            waiting = np.union1d(self.engine.reusable()[0], self._owed.ids)
            self._published.keep(waiting)
            self._room = _FEW_BOXES + len(self._published) * 3 // 2
            before = [] if self._memory is None else [self._memory.parents()]
            self._gate.keep(np.concatenate([waiting, self._owed.parents, *before]))
        self.rows.keep(
            np.concatenate([state.pending, self._owed.members]), state.needed_from if self.engine.windowed else None
        )


def _needed_schemas(schemas: tuple[SchemasFrom, ...], needed_from: int) -> tuple[SchemasFrom, ...]:
    """Return the schemas of events from an offset on, without those that only earlier events were read by."""
    before = sum(one.position <= needed_from for one in schemas)
    return schemas[max(before - 1, 0) :]
