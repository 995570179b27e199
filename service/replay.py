"""A file of events through a stream engine, without Kafka: decoding, gate and messages are those of a worker.

With `order: arrival` the rows of the clusters that passed the gate are written one by one in the order of the file.
Time is simulated: events arrive at a steady rate, so that bounds in seconds and windows by time mean the same in every
replay. Events are pushed many at once; a release says at which position each cluster was decided, so delays are exact.
Nothing that the gate refuses is written.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson
from numpy.typing import NDArray

from microdata import (
    Boxes,
    DataError,
    GuaranteeError,
    PersonSource,
    Progress,
    Reason,
    Schema,
    Squares,
    class_loss,
    silent,
    words,
)
from privacy import Groups, KAnonymity, KOverTime, Left, Model, Record, Watch
from service.codec import Events, JsonCodec, read_events
from service.policy import Policy
from service.publishing.boxes import PublishedBoxes
from service.publishing.departure import Departure
from service.publishing.gate import Gate
from service.publishing.messages import MessageEncoder, shown
from service.publishing.rows import Rows, rejected_batch
from service.report import (
    Asked,
    DelayBin,
    Delays,
    Linked,
    Point,
    Rejected,
    Rejection,
    ReplayReport,
    Result,
    Spreads,
    linked_of,
    squared_loss,
    timing_of,
)
from stream_algos import Batch, Engine, InOrder, Release, Workload

BATCH = 1 << 14
"""Events that are pushed at once. What is decided, and when, does not depend on it."""
AHEAD = 8
"""Batches that the engine may be given before what came of the first is written."""
TICK_SECONDS = 1.0
"""What an observer of the output sees of time: a worker's records have the commit's, rounded to this."""
MOST_POINTS = 60
"""Points of the loss over time."""
MOST_BINS = 24
"""Bins of the delays."""


@dataclass(frozen=True, eq=False)
class Step:
    """What the engine made of one batch, and what it says of itself right after."""

    taken: NDArray[np.int64]
    """Positions of the events that were taken."""
    before: int
    """Events taken before these."""
    release: Release
    pending: NDArray[np.int64]
    needed_from: int | None
    reusable: NDArray[np.uint64]

    def events_at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many events had been taken when these positions were reached."""
        return self.before + np.searchsorted(self.taken, positions, side="right")


class Course:
    """Sums over the course of a stream, in a bounded number of stretches of equally many events."""

    def __init__(self, columns: int) -> None:
        self.width = 1
        self._sums = np.zeros((MOST_POINTS, columns))

    def add(self, events: NDArray[np.int64], *columns: NDArray[Any]) -> None:
        """Add what happened when so many events had been taken."""
        while len(events) and events.max() > self.width * MOST_POINTS:
            half = self._sums.reshape(MOST_POINTS // 2, 2, -1).sum(axis=1)
            self._sums = np.concatenate([half, np.zeros_like(half)])
            self.width *= 2
        for place, column in enumerate(columns):
            self._sums[:, place] += np.bincount((events - 1) // self.width, column, MOST_POINTS)

    def stretches(self) -> Iterator[tuple[int, list[float]]]:
        """The number of events at which each stretch ends, and its sums."""
        for place, sums in enumerate(self._sums.tolist()):
            yield (place + 1) * self.width, sums


@dataclass
class Tally:
    """What is counted on the way."""

    totals: Counter[str] = field(default_factory=Counter)
    delays: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    course: Course = field(default_factory=lambda: Course(4))
    """Rows released, their summed loss, rows suppressed, rows that reuse a box."""
    lost: float = 0.0

    def decided(self, schema: Schema, step: Step) -> None:
        """Count what was decided, when it was."""
        release, sizes = step.release, np.diff(step.release.starts)
        lost = class_loss(Boxes(schema, release.lo, release.hi)) * sizes if len(release) else np.empty(0)
        events, nothing = step.events_at(release.decided), np.zeros(len(release))
        self.course.add(events, sizes, lost, nothing, sizes * release.reused)
        none = np.zeros(len(release.suppressed))
        self.course.add(step.events_at(release.given_up), none, none, none + 1, none)
        self.lost += float(lost.sum())
        self.totals["at_once"] += int((np.repeat(release.decided, sizes) == release.members).sum())
        self.totals["clusters"] += int((~release.reused).sum())
        self.totals.update(
            released=int(sizes.sum()), suppressed=len(release.suppressed), reused=int(sizes[release.reused].sum())
        )

    def left(self, release: Release) -> None:
        """Count how many further positions were taken before each of these left (or was given up)."""
        when = np.concatenate([np.repeat(release.decided, np.diff(release.starts)), release.given_up])
        counts = np.bincount(when - np.concatenate([release.members, release.suppressed]), minlength=len(self.delays))
        counts[: len(self.delays)] += self.delays
        self.delays = counts

    def loss(self) -> float | None:
        """Mean loss of the released rows."""
        return self.lost / self.totals["released"] if self.totals["released"] else None

    def points(self) -> Iterator[Point]:
        """The loss over time."""
        for events, (released, lost, suppressed, reused) in self.course.stretches():
            if released or suppressed:
                yield Point(
                    events=min(events, self.totals["events"]),
                    released=int(released),
                    loss=lost / max(released, 1),
                    suppressed=int(suppressed),
                    reused=int(reused),
                )

    def bins(self) -> Iterator[DelayBin]:
        """The delays, from 0 to the longest."""
        width = -(-len(self.delays) // MOST_BINS)
        for first in range(0, len(self.delays), width):
            own = self.delays[first : first + width]
            yield DelayBin(first=first, last=first + len(own) - 1, events=int(own.sum()))

    def quantile(self, share: float) -> int:
        """The delay that this share of the decided rows did not exceed."""
        running = np.cumsum(self.delays)
        return int(np.searchsorted(running, share * running[-1]))


class Replay:
    """One pass of a policy's engine over events."""

    def __init__(self, policy: Policy, *, seed: int | None = None, rate: float = 1000.0, queries: bool = False) -> None:
        self.policy, self.schema, self.rate, self.seed = policy, policy.schema, rate, seed
        # Whole clusters are held against the gate; who wants them in order gets their rows in order after that.
        asked = policy.asked_of_engine
        self.engine: Engine = policy.engine(words=words(seed), asked=asked.shuffled())
        self._in_order = InOrder(len(policy.schema.quasi)) if asked.in_order else None
        self.tally = Tally()
        self.linked: Linked | None = None
        self._spreads = Spreads(policy.schema, max(model.least_persons for model in self.engine.models()))
        self._workload = Workload(self.schema) if queries else None
        self.refused: Counter[tuple[str, Reason]] = Counter()
        self._gate = Gate(self.schema, self.engine.models())
        # Where every event is about another person there is nothing to tie together.
        returning = policy.schema.person is not PersonSource.ROW
        self._record = Record() if self.engine.remembers or (queries and returning) else None
        self._alone = Watch() if queries and asked.alone is not None else None
        self._rows = Rows.empty(self.schema)
        self._published = PublishedBoxes(len(self.schema.quasi))
        self._pushed = 0
        self._links: BinaryIO | None = None
        emit = policy.stream.emit if policy.stream else "clusters"
        # A file has the format of its ending, and what is written is lines of JSON, whatever topics hold.
        self._encoder = MessageEncoder(self.schema, JsonCodec(self.schema), emit, 1, show=policy.show)
        self._squares = Squares(self.schema) if policy.show == "mean" else None

    def run(self, parts: Iterable[Events], out: BinaryIO, links: BinaryIO | None = None) -> None:
        """Push all events and write what leaves.

        The engine works in a thread of its own, where its kernels hold no lock. Meanwhile this one decodes what comes,
        checks and encodes what has left.
        """
        self._links = links
        under_way: deque[Future[Step]] = deque()
        with ThreadPoolExecutor(1, "engine") as engine:
            for events in parts:
                for batch, passed in self._taken(events):
                    under_way.append(engine.submit(self._push, batch, passed))
                    while len(under_way) > AHEAD:
                        self._leave(under_way.popleft().result(), out)
            while under_way:
                self._leave(under_way.popleft().result(), out)
        if not self.tally.totals["events"]:
            raise DataError(self._all_refused())
        self._leave(self._decided(Batch.empty(self.schema), self.engine.flush()), out)
        self._link()

    def _link(self) -> None:
        """Tie the rows of a sample of persons together, as an attacker would, and count who could be meant."""
        if self._record is None:
            return
        persons, left = self._record.linked()
        groups = Groups(left, left, left, (), left)
        over_time = [model.holds(groups) for model in self.engine.models() if model.checked_on == "history"]
        failing = int((~np.logical_and.reduce(over_time)).sum()) if over_time else 0
        if failing:
            raise GuaranteeError(f"linked rows leave too few persons for {failing} of {len(persons)}; nothing is kept")
        self.linked = linked_of(left, self._record.linked(first=True)[1], self._asked())

    def _counted_over(self, model: Model) -> str | None:
        """The rows that a model of sensitive values is checked on where boxes of known persons get further rows."""
        about_persons = isinstance(model, (KAnonymity, KOverTime))
        if not self.engine.remembers or self.policy.asked_of_engine.adds is None or about_persons:
            return None
        return (
            "all rows published of a cohort and of the cohorts that it was split from; the rows of one box may show "
            "fewer values"
        )

    def _asked(self) -> int:
        """Persons that somebody must be hidden among."""
        return max(model.least_persons for model in self.engine.models())

    def _watch(self, leaving: Release) -> None:
        """Let somebody look at what leaves who knows when people act."""
        if self._alone is None or not len(leaving):
            return
        cluster, found = leaving.cluster_of(), self._rows.find(leaving.members)
        persons = self._rows.persons[found]
        starts = leaving.starts[:-1]
        alone = np.minimum.reduceat(persons, starts) == np.maximum.reduceat(persons, starts)
        ticks = np.floor(leaving.decided / self.rate / TICK_SECONDS).astype(np.int64)
        self._alone.see(
            Left(
                ticks[cluster],
                persons,
                self._rows.quasi[found],
                leaving.lo[cluster],
                leaving.hi[cluster],
                alone[cluster],
            )
        )

    def _taken(self, events: Events) -> Iterator[tuple[Batch, int]]:
        """The events of one part of the file in batches for the engine, each with the last position that has passed.

        Refused ones pass too. Rows are kept until they have left.
        """
        self.refused.update((refused.field, refused.reason) for refused in events.refused)
        at = len(self._rows)
        self._rows.append(events, events.positions / self.rate)
        self.tally.totals["events"] += len(events)
        batch = self._rows.batch(at)
        self._spreads.take(batch.quasi, batch.persons)
        if self._workload:
            self._workload.take(batch)
        seen = batch
        if events.rejected:
            rejected = rejected_batch(self.schema, events.rejected, events.rejected.rows / self.rate)
            seen = Batch.merged([batch, rejected])
        if self._record:
            self._record.take(seen.positions, seen.persons, seen.quasi)
        if self.engine.remembers:
            batch = seen
        last = int(max(events.positions.max(initial=-1), *(refused.offset for refused in events.refused), -1))
        for start in range(0, max(len(batch), 1), BATCH):
            some = batch.take(slice(start, start + BATCH))
            yield some, last if start + BATCH >= len(batch) else int(some.positions[-1])

    def _push(self, batch: Batch, passed: int) -> Step:
        """Let the engine take a batch, at the times of its events, and hear of what has passed behind them."""
        releases = [self.engine.expire(float(batch.times[0])), self.engine.push(batch)] if len(batch) else []
        releases += [self.engine.advance(passed), self.engine.expire(passed / self.rate)]
        return self._decided(batch, Release.concat(releases))

    def _decided(self, pushed: Batch, release: Release) -> Step:
        batch = pushed.accepted()
        before, self._pushed = self._pushed, self._pushed + len(batch)
        needed_from = self.engine.needed_from() if self.engine.windowed else None
        return Step(batch.positions, before, release, self.engine.pending(), needed_from, self.engine.reusable()[0])

    def _leave(self, step: Step, out: BinaryIO) -> None:
        """Hold a release against the gate, count it, write what may leave now and forget what has left."""
        release = step.release
        passed = self._gate.passes(release, self._rows, self._published)
        if not passed.all():
            raise GuaranteeError(f"the gate refused {int((~passed).sum())} of {len(release)} clusters; nothing is kept")
        self.tally.decided(self.schema, step)
        self._spreads.publish(Boxes(self.schema, release.lo, release.hi).widened(), np.diff(release.starts))
        if self._squares:
            self._squares.add(self._rows.quasi[self._rows.find(release.members)], release.cluster_of())
        if self._record and len(release):
            cluster, found = release.cluster_of(), self._rows.find(release.members)
            self._record.publish(release.members, self._rows.persons[found], release.lo[cluster], release.hi[cluster])
        if self._workload:
            self._workload.decided(self._seen(release))
        self._remember(step)
        leaving = self._in_order.pass_on(release, step.pending) if self._in_order else release
        self.tally.left(leaving)
        self._watch(leaving)
        departure = Departure(leaving, self._rows.find(leaving.members))
        messages = self._encoder.encode(departure, self._rows).get(0, [])
        out.writelines(message + b"\n" for message in messages)
        if self._links:
            rows = np.split(leaving.members, leaving.starts[1:-1]) if len(leaving) else []
            self._links.writelines(orjson.dumps(np.sort(own).tolist()) + b"\n" for own in rows)
        self._forget(step)

    def _seen(self, release: Release) -> Release:
        """The same clusters with what is published of them."""
        members = self._rows.quasi[self._rows.find(release.members)]
        boxes = shown(self.schema, self.policy.show, release, members)
        return replace(release, lo=boxes.lo, hi=boxes.hi)

    def _remember(self, step: Step) -> None:
        """The published boxes that the engine may still use."""
        release = step.release
        fresh = np.isin(release.ids, step.reusable) & ~release.reused
        self._published.add(release.ids[fresh], release.lo[fresh], release.hi[fresh])
        self._published.keep(step.reusable)

    def _forget(self, step: Step) -> None:
        """Keep the rows that have not left, those of windows that are not over, and those not yet pushed."""
        waiting = step.pending if self._in_order is None else np.union1d(step.pending, self._in_order.positions())
        ends = [int(step.taken[-1]) + 1] if len(step.taken) else []
        if step.needed_from is not None:
            ends.append(step.needed_from)
        self._rows.keep(waiting, min(ends, default=None))

    def _all_refused(self) -> str:
        """Why nothing came of it."""
        reasons = [f"{name}: {reason.sentence} ({rows})" for (name, reason), rows in self.refused.items()]
        return f"all {self.refused.total()} events were refused, so nothing is written:\n" + "\n".join(reasons)

    def _delays(self) -> Delays:
        tally = self.tally
        return Delays(
            p50=tally.quantile(0.5),
            p99=tally.quantile(0.99),
            max=len(tally.delays) - 1,
            bins=list(tally.bins()),
        )

    def report(self, seconds: float) -> ReplayReport:
        """What was asked and what came of it; that it holds, since whatever the gate refuses ends the replay."""
        tally, totals, achieved = self.tally, self.tally.totals, self._gate.achieved
        decided, rejected = totals["released"] + totals["suppressed"], self.refused.total()
        given = totals["events"] + rejected
        reasons = [
            Rejection(field=name, reason=reason.code, rows=rows) for (name, reason), rows in self.refused.items()
        ]
        return ReplayReport(
            name=self.policy.name,
            fingerprint=self.policy.fingerprint(),
            asked=Asked(
                algorithm=self.policy.algorithm_name, parameters=self.policy.parameters.model_dump(mode="json")
            ),
            holds=True,
            repeatable=self.seed is not None,
            seconds=round(seconds, 3),
            events=given,
            rejected=Rejected.of(rejected, given, reasons, self.policy.rejected.warn_above),
            released=totals["released"],
            suppressed=totals["suppressed"],
            suppressed_share=totals["suppressed"] / max(decided, 1),
            clusters=totals["clusters"],
            reused=totals["reused"],
            guarantees=[
                Result(
                    model=model.label,
                    asked=model.asked,
                    achieved=_finite(achieved.get(model.name)),
                    holds=True,
                    failing=0,
                    more_is_safer=model.more_is_safer,
                    counted_over=self._counted_over(model),
                )
                for model in self.engine.models()
            ],
            largest_share=self._gate.largest_share,
            at_once=totals["at_once"] / totals["released"] if totals["released"] else None,
            linked=self.linked,
            timing=timing_of(self._alone.others(), TICK_SECONDS, self._asked()) if self._alone else None,
            loss=tally.loss(),
            show=self.policy.show,
            squared_error=squared_loss(self.schema, self._squares.error()) if self._squares else None,
            workload_error=self._workload.error() if self._workload else None,
            columns=self._spreads.found(),
            loss_over_time=list(tally.points()),
            delays=self._delays() if decided else None,
            engine=dict(self.engine.status()),
        )


def replay_file(
    replay: Replay, path: Path, out: Path, *, links: Path | None = None, progress: Progress = silent
) -> None:
    """Everything in a file; `out` appears when all of it has passed the gate.

    `links` gets, for each cluster in the order of `out`, the positions of its rows: for its owner, to audit it.
    """
    targets = [target for target in (out, links) if target]
    parts = [target.with_name(target.name + ".part") for target in targets]
    try:
        with ExitStack() as stack:
            # Links undo the anonymization: they are for their owner alone.
            modes = (0o666, 0o600)
            for part in parts:
                part.unlink(missing_ok=True)
            files = [
                stack.enter_context(open(part, "wb", opener=partial(os.open, mode=mode)))
                for part, mode in zip(parts, modes, strict=False)
            ]
            topic = replay.policy.format.input
            replay.run(read_events(path, replay.schema, topic=topic, progress=progress), *files)
        for part, target in zip(parts, targets, strict=True):
            part.replace(target)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def _finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None
