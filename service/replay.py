"""A file of events through a stream engine, without Kafka: gate and messages are the worker's own.

With `order: arrival` the rows of the clusters that passed the gate are written one by one in the order of the file.
Time is simulated: events arrive at a steady rate, so that bounds in seconds and windows by time mean the same in every
replay. Nothing that the gate refuses is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from microdata import (
    Boxes,
    Encoded,
    GuaranteeError,
    Progress,
    Refusals,
    Schema,
    class_loss,
    read_batches,
    silent,
    words,
)
from service.policy import Policy
from service.report import Asked, DelayBin, Delays, Point, Refused, ReplayReport, Result
from service.worker.events import Events
from service.worker.gate import Gate, box_key
from service.worker.messages import MessageEncoder
from service.worker.partition import Publication
from service.worker.rows import Rows
from service.worker.stream import Stream
from stream_algos import Engine, InOrder, Release

MOST_POINTS = 60
"""Points of the loss over time."""
MOST_BINS = 24
"""Bins of the delays."""
LARGEST_MESSAGE = 1 << 40
"""A file has no message limit, so no cluster is written in parts."""


@dataclass
class Tally:
    """What is counted on the way."""

    totals: Counter[str] = field(default_factory=Counter)
    delays: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    steps: list[tuple[int, int, float, int, int]] = field(default_factory=list)
    """Per step: events so far, rows released, their summed loss, rows suppressed, rows that reuse a box."""

    def decided(self, schema: Schema, release: Release) -> None:
        """Count what was decided."""
        sizes = np.diff(release.starts)
        lost = float(class_loss(Boxes(schema, release.lo, release.hi)) @ sizes) if len(release) else 0.0
        released, suppressed, reused = int(sizes.sum()), len(release.suppressed), int(sizes[release.reused].sum())
        self.steps.append((self.totals["events"], released, lost, suppressed, reused))
        self.totals["clusters"] += int((~release.reused).sum())
        self.totals.update(released=released, suppressed=suppressed, reused=reused)

    def left(self, waited: NDArray[np.int64]) -> None:
        """Count how many further positions had passed before each of these left (or was given up)."""
        counts = np.bincount(waited, minlength=len(self.delays))
        counts[: len(self.delays)] += self.delays
        self.delays = counts

    def loss(self) -> float:
        """Mean loss of the released rows."""
        return sum(step[2] for step in self.steps) / max(self.totals["released"], 1)

    def points(self) -> Iterator[Point]:
        """The loss over time."""
        for part in np.array_split(np.array(self.steps).reshape(-1, 5), MOST_POINTS):
            if len(part):
                _, released, lost, suppressed, reused = part.sum(axis=0).tolist()
                yield Point(
                    events=int(part[-1, 0]),
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

    def __init__(self, policy: Policy, *, seed: int | None = None, rate: float = 1000.0) -> None:
        self.policy, self.schema, self.rate, self.seed = policy, policy.schema, rate, seed
        # Whole clusters are held against the gate; who wants them in order gets their rows in order after that.
        ordered = getattr(policy.parameters, "order", "shuffled") == "arrival"
        self.engine: Engine = policy.engine(words=words(seed), **({"order": "shuffled"} if ordered else {}))
        self._in_order = InOrder(len(policy.schema.quasi)) if ordered else None
        self.tally = Tally()
        self.refused: Counter[tuple[str, str]] = Counter()
        self.step = _step(policy)
        self._gate = Gate(self.schema, self.engine.models())
        self._rows = Rows.empty(self.schema)
        self._published: dict[int, tuple[bytes, bytes]] = {}
        self._last = -1
        emit = policy.stream.emit if policy.stream else "clusters"
        stream = Stream(policy.name, "", "", self.schema, self.engine.models(), policy.engine, "", "earliest", emit)
        self._encoder = MessageEncoder(stream, 1, LARGEST_MESSAGE)

    def take(self, encoded: Encoded, out: BinaryIO) -> None:
        """Push the rows of one batch of the file, step by step, and write what leaves."""
        self._count(encoded.refusals)
        events = _events(encoded, self.schema)
        end = int(max(encoded.rows.max(initial=-1), encoded.refusals.rows.max(initial=-1))) + 1
        for start in range(self._last + 1, end, self.step):
            part = events.at((events.positions >= start) & (events.positions < start + self.step))
            self.tally.totals["events"] += len(part)
            self._last = min(start + self.step, end) - 1
            at = len(self._rows)
            self._rows.append(part, part.positions / self.rate)
            self._leave(self.engine.push(self._rows.batch(at)), out)
            self._leave(self.engine.advance(self._last), out)
            self._leave(self.engine.expire(self._last / self.rate), out)
            self._rows.keep(self._waiting(), self.engine.needed_from() if self.engine.windowed else None)

    def end(self, out: BinaryIO) -> None:
        """Decide everything that is held."""
        self._leave(self.engine.flush(), out)

    def _leave(self, release: Release, out: BinaryIO) -> None:
        """Hold a release against the gate, count it, and write what may leave now."""
        if not len(release) and not len(release.suppressed):
            return
        passed = self._gate.passes(release, self._rows, self._published)
        if not passed.all():
            raise GuaranteeError(f"the gate refused {int((~passed).sum())} of {len(release)} clusters; nothing is kept")
        self.tally.decided(self.schema, release)
        self._published |= {int(i): box_key(release.lo[c], release.hi[c]) for c, i in enumerate(release.ids)}
        reusable = set(self.engine.reusable()[0].tolist())
        self._published = {key: box for key, box in self._published.items() if key in reusable}
        self._write(self._in_order.pass_on(release, self.engine.pending()) if self._in_order else release, out)

    def _write(self, release: Release, out: BinaryIO) -> None:
        self.tally.left(self._last - np.concatenate([release.members, release.suppressed]))
        publication = Publication(release, self._rows.find(release.members))
        messages = self._encoder.encode(publication, self._rows)
        out.writelines(message + b"\n" for message in messages.get(0, []))

    def _waiting(self) -> NDArray[np.int64]:
        """Positions of the rows that have not left."""
        pending = self.engine.pending()
        return np.union1d(pending, self._in_order.positions()) if self._in_order else pending

    def _count(self, refusals: Refusals) -> None:
        first = refusals.first_per_row()
        for (name, reason), rows in first.counts().items():
            self.refused[name, reason.code] += rows

    def _delays(self) -> Delays:
        tally = self.tally
        return Delays(
            p50=tally.quantile(0.5),
            p99=tally.quantile(0.99),
            max=len(tally.delays) - 1,
            step=self.step,
            bins=list(tally.bins()),
        )

    def report(self, seconds: float) -> ReplayReport:
        """What was asked and what came of it; that it holds, since a cluster that the gate refuses ends the replay."""
        tally, totals, achieved = self.tally, self.tally.totals, self._gate.achieved
        decided = totals["released"] + totals["suppressed"]
        return ReplayReport(
            name=self.policy.name,
            fingerprint=self.policy.fingerprint(),
            asked=Asked(
                algorithm=self.policy.algorithm_name, parameters=self.policy.parameters.model_dump(mode="json")
            ),
            holds=True,
            repeatable=self.seed is not None,
            seconds=round(seconds, 3),
            events=totals["events"],
            refused=[Refused(field=name, reason=reason, rows=rows) for (name, reason), rows in self.refused.items()],
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
                )
                for model in self.engine.models()
            ],
            loss=tally.loss(),
            loss_over_time=list(tally.points()),
            delays=self._delays() if decided else None,
            engine=dict(self.engine.status()),
        )


def replay_file(replay: Replay, path: Path, out: Path, *, progress: Progress = silent) -> None:
    """Everything in a file; `out` appears when all of it has passed the gate."""
    part = out.with_name(out.name + ".part")
    try:
        with part.open("wb") as file:
            for encoded in read_batches(path, replay.schema, on_refused="drop", progress=progress):
                replay.take(encoded, file)
            replay.end(file)
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)


def _step(policy: Policy) -> int:
    """Events to push at once: few against the delay, so that it is measured well, but not one by one."""
    given: Any = policy.parameters
    delay, window = getattr(given, "delay", None), getattr(given, "window", None)
    bound = getattr(delay, "tuples", None) or getattr(window, "advance", None) or 1000
    return int(np.clip(bound // 50, 1, 1000))


def _events(encoded: Encoded, schema: Schema) -> Events:
    table = encoded.table
    public = np.empty((len(table), len(schema.public)), object)
    for place, name in enumerate(schema.public):
        assert table.public is not None
        public[:, place] = [msgspec.json.encode(value) for value in table.public.column(name).to_pylist()]
    return Events(encoded.rows, table.persons, table.quasi, table.sensitive, public, [])


def _finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None
