"""Sliding windows: what every window algorithm shares, whichever static algorithm forms its classes.

The stream is cut into panes, by count (of positions, with a row or without) or by time; a window is a whole number of
panes and advances by one. As soon as its last pane is complete, the rows of its first pane expire: each of them must be
decided now.

- Case 1: they have all been decided before.
- DIRECT: the undecided rows of the window are as a whole close enough to all of it. They are partitioned anew; the
  classes with an expiring row leave, the others stay pending.
- INDIRECT: they are not. All pending classes leave. They are close to the window in which they were formed, and every
  expiring row is in one of them (Theorem 6.1 of the thesis), because rows of this window can only have left by an
  earlier window that held the whole first pane too.

Where both are possible, `floor` decides. The thesis takes DIRECT whenever it can (0). Partitioning again and again what
is left of a window leaves ever fewer rows to choose neighbours from and a smaller threshold; letting the pending
classes go (1, the default) loses 4 to 12 % less in our measurements and partitions a third as often.

Deciding when the window is complete, rather than when a further pane has arrived as in the thesis, changes no decision
and shortens the delay: it stays below the size of the window.

Cao, thesis 2010, chapter 6.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from microdata import Boxes, DataError, GuaranteeError, InfeasibleError, Schema, Table, Words, system_words
from privacy import Groups, check_domains, require
from stream_algos.engine import (
    LONGEST,
    MOST_PERSONS,
    MOST_ROWS,
    Batch,
    Engine,
    Hold,
    Release,
    Snapshot,
    StreamParameters,
)

DECIDED, LOOSE = -2, -1
"""Marks of rows: released or suppressed; undecided and in no class. Others are the number of a pending class."""

MOST_PANES = 10_000
"""Advances in a window by time: each is closed on its own, whether a row came in it or not."""

References = list[NDArray[np.int64]]
"""The sensitive histograms of a window."""


class Window(BaseModel):
    """How the stream is cut: by count or by time."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    size: int | None = Field(None, ge=1, le=MOST_ROWS, description="ω: positions of a window")
    advance: int | None = Field(
        None, ge=1, le=MOST_ROWS, description="positions by which it advances; ω is a multiple of it"
    )
    seconds: float | None = Field(None, gt=0, le=LONGEST, description="ω as time, instead of size")
    advance_seconds: float | None = Field(None, ge=1e-3, le=LONGEST, description="its advance, instead of advance")

    @model_validator(mode="after")
    def _whole_panes(self) -> Window:
        by_count, by_time = (self.size, self.advance), (self.seconds, self.advance_seconds)
        pairs = [pair for pair in (by_count, by_time) if pair != (None, None)]
        if len(pairs) != 1 or None in pairs[0]:
            raise ValueError("give size and advance, or seconds and advance_seconds")
        panes = Fraction(str(pairs[0][0])) / Fraction(str(pairs[0][1]))
        if panes.denominator != 1:
            whole = max(round(panes), 1) * Fraction(str(pairs[0][1]))
            raise InfeasibleError(
                "a window is a whole number of advances",
                parameter="window.size" if pairs[0] is by_count else "window.seconds",
                nearest=f"{float(whole):g}",
            )
        if pairs[0] is by_time and panes > MOST_PANES:
            raise InfeasibleError(
                f"a window of {self.seconds:g} s has {int(panes):,} advances; at most {MOST_PANES:,}",
                parameter="window.advance_seconds",
                nearest=f"{(self.seconds or 0.0) / MOST_PANES:g}",
            )
        return self

    @property
    def panes(self) -> int:
        """Panes of a window."""
        if self.size is not None and self.advance is not None:
            return self.size // self.advance
        return round((self.seconds or 1.0) / (self.advance_seconds or 1.0))


class Deadline(BaseModel):
    """How long a row may be held when the stream is slow."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seconds: float = Field(gt=0, le=LONGEST, description="time after which a row is decided in any case")


class WindowParameters(StreamParameters):
    """Parameters of every window algorithm."""

    k: int = Field(6, ge=1, le=MOST_PERSONS, description="least number of distinct persons in a class")
    window: Window = Field(description="size and advance in positions, or seconds and advance_seconds")
    delay: Deadline | None = Field(None, description="for windows by count: decide after so many seconds in any case")
    floor: float = Field(
        1.0,
        ge=0,
        le=1,
        description="share of the threshold that undecided rows must leave to be partitioned anew; below it pending "
        "classes leave as they are. 0: whenever it is possible (thesis)",
    )

    @model_validator(mode="after")
    def _feasible(self) -> WindowParameters:
        size, advance = self.window.size, self.window.advance
        if size is not None and advance is not None and size < self.k:
            raise InfeasibleError(
                f"a window of {size} rows never has k={self.k} persons",
                parameter="window.size",
                nearest=-(-self.k // advance) * advance,
            )
        if size is None and self.delay is not None:
            raise InfeasibleError("a window in seconds bounds the delay itself; leave it out", parameter="delay")
        return self

    @property
    def hold(self) -> Hold:
        """A row is decided before its window ends, or at its deadline."""
        return Hold(self.window.size, self.delay.seconds if self.delay else None, self.window.seconds)

    def within(self, seconds: float) -> Self:
        """The same with another deadline."""
        return self.model_copy(update={"delay": Deadline(seconds=seconds)})


@dataclass(frozen=True, eq=False)
class Origin:
    """The window in which the pending classes were formed."""

    first: int
    last: int
    rows: int
    references: References


class WindowEngine(Engine):
    """A static algorithm over sliding windows. Subclasses say how much room there is and form the classes."""

    windowed = True
    parameters: WindowParameters

    def __init__(self, schema: Schema, *, words: Words = system_words, **given: Any) -> None:
        super().__init__(schema, words=words, **given)
        check_domains(self.models(), schema)
        self.steps: Counter[str] = Counter()
        """How often each case occurred, and how many expiring rows no pending class held (never, unless rows were
        lost)."""
        self._last = np.iinfo(np.int64).min
        self._begin()

    def _begin(self) -> None:
        """Hold nothing: the next row is the first of a stream."""
        self._rows = Batch.empty(self.schema)
        self._closed_marks = np.empty(0, np.int32)
        self._sizes: list[int] = []
        self._arriving: list[Batch] = []
        self._arrived = 0
        self._pane: int = np.iinfo(np.int64).min
        self._origin: Origin | None = None

    @abstractmethod
    def _room(self, rows: Table, references: References) -> float:
        """How much of the threshold these rows as a whole leave for their classes: 1 all, 0 nothing, below 0 none."""

    @abstractmethod
    def _partition(self, rows: Table, references: References) -> NDArray[np.int32]:
        """Classes of these rows that meet every model against the references; there is room and are k persons."""

    def push(self, batch: Batch) -> Release:
        """Take rows and decide the first pane of every window that they complete."""
        if len(batch) and (batch.positions[0] <= self._last or np.any(np.diff(batch.positions) <= 0)):
            raise DataError("positions must grow from row to row and from batch to batch")
        return self._joined(list(self._by_count(batch) if self.parameters.window.size else self._by_time(batch)))

    def advance(self, position: int) -> Release:
        """Close the panes by count that end at this position or before."""
        size = self.parameters.window.advance
        releases = [] if size is None or not self._held() else list(self._until((position + 1) // size))
        self._last = max(self._last, position)
        return self._joined(releases)

    def _by_count(self, batch: Batch) -> Iterator[Release]:
        size, start = self.parameters.window.advance or 1, 0
        while start < len(batch):
            if start and batch.times[start] > batch.times[start - 1]:
                yield self.expire(float(batch.times[start]))
            yield from self._until(int(batch.positions[start]) // size)
            stop = int(np.searchsorted(batch.positions, (self._pane + 1) * size))
            stop = start + self._in_time(batch.times[start:stop])
            self._arrive(batch.take(slice(start, stop)))
            start = stop
            yield self.advance(int(batch.positions[stop - 1]))

    def _in_time(self, times: NDArray[np.float64]) -> int:
        """How many of the rows with these times, the first and more, come before an undecided one is overdue."""
        if self.parameters.delay is None:
            return len(times)
        late = times - self.parameters.delay.seconds >= min(self._oldest(), times[0])
        too_late = np.flatnonzero(late[1:] & (np.diff(times) > 0))
        return int(too_late[0]) + 1 if len(too_late) else len(times)

    def _by_time(self, batch: Batch) -> Iterator[Release]:
        # A clock that is set back does not open a pane again.
        panes = np.maximum.accumulate(np.maximum(self._pane_at(batch.times), self._pane))
        for pane in np.unique(panes):
            yield from self._until(int(pane))
            self._arrive(batch.take(panes == pane))

    def _pane_at(self, times: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.floor(times / (self.parameters.window.advance_seconds or 1.0)).astype(np.int64)

    def _until(self, pane: int) -> Iterator[Release]:
        """Close the panes before this one; where all windows between are empty, go there at once."""
        while self._pane < pane and self._held():
            yield self._close_pane()
            self._pane += 1
        if self._pane < pane:
            self._begin()
            self._pane = pane

    def _held(self) -> bool:
        return len(self._rows) > 0 or self._arrived > 0

    def expire(self, now: float) -> Release:
        """Close the panes whose time has passed; with a delay, end the stream when its oldest row has waited so long.

        What arrives afterwards begins a new stream: its first window again starts from nothing.
        """
        if self.parameters.window.size is None:
            return self._joined(list(self._until(int(self._pane_at(np.array([now]))[0])))) if self._held() else self._no
        delay = self.parameters.delay
        return self.flush() if delay is not None and self._oldest() <= now - delay.seconds else self._no

    def _oldest(self) -> float:
        """When the oldest undecided row was taken."""
        undecided = np.flatnonzero(self._closed_marks != DECIDED)
        if len(undecided):
            return float(self._rows.times[undecided[0]])
        return float(self._arriving[0].times[0]) if self._arriving else np.inf

    def flush(self) -> Release:
        """The tail: one last window of what came last, of which every row is decided."""
        rows, marks = self._everything(), self._marks()
        outside = 0
        if self.parameters.window.size:
            outside = int(np.searchsorted(rows.positions, self._last - self.parameters.window.size, side="right"))
        elif len(self._sizes) == self.parameters.window.panes:
            outside = self._sizes[0]
        release = self._end(rows.take(slice(outside, None)), marks[outside:])
        self._begin()
        return release

    def pending(self) -> NDArray[np.int64]:
        """Positions of the undecided rows of the window and of the pane that is filling."""
        return self._positions()[self._marks() != DECIDED]

    def needed_from(self) -> int | None:
        """The first row of the window, or of the one in which the pending classes were formed."""
        held = self._positions()
        if not len(held):
            return None
        return min(int(held[0]), self._origin.first) if self._origin else int(held[0])

    def snapshot(self) -> Snapshot:
        """Where panes end, which rows are undecided and in which pending class, and the window of those classes."""
        held, marks, origin = self._positions(), self._marks(), self._origin
        undecided = marks != DECIDED
        before = int(held[0]) - 1 if len(held) else self._last
        ends = np.cumsum(self._sizes, dtype=np.int64)
        return {
            "begin": np.array([before + 1]),
            "ends": np.array([held[end - 1] if end else before for end in ends], np.int64),
            "rows": np.array([len(held)]),
            "pane": np.array([self._pane]),
            "pending": held[undecided],
            "classes": marks[undecided],
            "origin": np.array([origin.first, origin.last, origin.rows] if origin else [], np.int64),
            "last": np.array([self._last]),
        }

    def restore(self, snapshot: Snapshot, rows: Batch) -> None:
        """Continue with the same panes and pending classes.

        Where rows of a window are gone, its distribution is not what it was: then no class stays pending, and what
        cannot be decided anew is suppressed when it expires.
        """
        self._begin()
        self._pane = int(snapshot["pane"][0])
        held = rows.take(rows.positions >= snapshot["begin"][0])
        stops = np.searchsorted(held.positions, snapshot["ends"], side="right")
        closed = int(stops[-1]) if len(stops) else 0
        self._sizes = np.diff(stops, prepend=0).tolist()
        self._rows = held.take(slice(0, closed))
        self._arrive(held.take(slice(closed, None)))
        self._last = int(snapshot["last"][0])
        marks = np.full(len(held), DECIDED, np.int32)
        known = np.isin(held.positions, snapshot["pending"])
        marks[known] = snapshot["classes"][np.searchsorted(snapshot["pending"], held.positions[known])]
        self._origin = self._formed_in(snapshot["origin"], rows)
        if self._origin is None or len(held) != snapshot["rows"][0]:
            self._origin = None
            marks[marks >= 0] = LOOSE
        self._closed_marks = marks[:closed]

    def _formed_in(self, origin: NDArray[np.int64], rows: Batch) -> Origin | None:
        if not len(origin):
            return None
        first, last, count = origin.tolist()
        own = rows.take((rows.positions >= first) & (rows.positions <= last))
        return Origin(first, last, count, self.schema.histograms(own.sensitive)) if len(own) == count else None

    def status(self) -> Mapping[str, float]:
        """Rows of the window and of those the undecided ones, pending classes, and how often each case occurred."""
        marks = self._marks()
        return {
            "window_rows": float(len(marks)),
            "held_rows": float((marks != DECIDED).sum()),
            "open_clusters": float(len(np.unique(marks[marks >= 0]))),
            **{f"{case}_steps": float(self.steps[case]) for case in ("idle", "direct", "indirect", "infeasible")},
            "uncovered_rows": float(self.steps["uncovered"]),
        }

    def _arrive(self, rows: Batch) -> None:
        if len(rows):
            self._arriving.append(rows)
            self._arrived += len(rows)
            self._last = int(rows.positions[-1])

    def _everything(self) -> Batch:
        """The rows of the closed panes and of the one that is filling."""
        return Batch.concat([self._rows, *self._arriving])

    def _positions(self) -> NDArray[np.int64]:
        return np.concatenate([self._rows.positions, *(rows.positions for rows in self._arriving)])

    def _marks(self) -> NDArray[np.int32]:
        return np.append(self._closed_marks, np.full(self._arrived, LOOSE, np.int32))

    def _close_pane(self) -> Release:
        """The pane that was filling is complete; so may be a window, whose first pane then expires.

        That pane stays until the next one closes: the tail's window may need some of its rows.
        """
        passed = self._sizes.pop(0) if len(self._sizes) == self.parameters.window.panes else 0
        self._rows, self._closed_marks = self._everything().take(slice(passed, None)), self._marks()[passed:]
        self._sizes.append(self._arrived)
        self._arriving, self._arrived = [], 0
        return self._advance() if len(self._sizes) == self.parameters.window.panes else self._no

    def _advance(self) -> Release:
        """Decide the first pane of the full window."""
        rows, marks = self._rows, self._closed_marks
        expiring = np.arange(len(rows)) < self._sizes[0]
        expiring &= marks != DECIDED
        if not expiring.any():
            self.steps["idle"] += 1
            return self._no
        covered = bool((marks[expiring] >= 0).all())
        window = self._window(rows)
        classes = self._formed(rows.take(marks != DECIDED), window, self.parameters.floor if covered else 0.0)
        if classes is not None:
            self.steps["direct"] += 1
            self._origin = window
            marks[marks != DECIDED] = classes
            return self._let_out(np.isin(marks, marks[expiring]))
        if covered:
            self.steps["indirect"] += 1
            return self._let_out(marks >= 0)
        return self._give_up(expiring)

    def _give_up(self, expiring: NDArray[np.bool_]) -> Release:
        """Too few persons for any class, or rows were lost: suppress what expires."""
        self.steps["infeasible"] += 1
        if (self._closed_marks == DECIDED).any():
            self.steps["uncovered"] += int(expiring.sum())
        self._closed_marks[expiring] = DECIDED
        return self._suppressed(self._rows.positions[expiring])

    def _end(self, rows: Batch, marks: NDArray[np.int32]) -> Release:
        """Decide every row of the last window: all undecided ones anew, or the pending classes and then the rest."""
        if not (marks != DECIDED).any():
            return self._no
        window, undecided = self._window(rows), marks != DECIDED
        pending, loose = marks >= 0, marks == LOOSE
        for chosen, floor in (
            (undecided, self.parameters.floor if pending.any() else 0.0),
            (loose, 0.0),
            (undecided, 0.0),
        ):
            classes = self._formed(rows.take(chosen), window, floor)
            if classes is not None:
                anew = self._released(rows.take(chosen), classes, window)
                return anew if chosen is undecided else Release.concat([self._all_pending(rows, marks), anew])
        return Release.concat([self._all_pending(rows, marks), self._suppressed(rows.positions[loose])])

    def _all_pending(self, rows: Batch, marks: NDArray[np.int32]) -> Release:
        pending = marks >= 0
        return self._released(rows.take(pending), marks[pending], self._origin) if self._origin else self._no

    def _formed(self, rows: Batch, window: Origin, floor: float) -> NDArray[np.int32] | None:
        """Classes of these rows, if they have k persons and leave more room than the floor."""
        if len(np.unique(rows.persons)) < self.parameters.k:
            return None
        table = Table(self.schema, rows.persons, rows.quasi, rows.sensitive)
        return self._partition(table, window.references) if self._room(table, window.references) >= floor else None

    def _let_out(self, chosen: NDArray[np.bool_]) -> Release:
        """Release whole pending classes of the window."""
        assert self._origin is not None, "pending classes know the window that they were formed in"
        release = self._released(self._rows.take(chosen), self._closed_marks[chosen], self._origin)
        self._closed_marks[chosen] = DECIDED
        if not (self._closed_marks >= 0).any():
            self._origin = None
        return release

    def _released(self, rows: Batch, classes: NDArray[np.int32], window: Origin) -> Release:
        """The classes as a release, checked against the window that they are close to."""
        names, labels = np.unique(classes, return_inverse=True)
        order = np.lexsort((self.words(len(rows)), labels))
        boxes = Boxes.around(self.schema, rows.quasi, labels, len(names)).widened()
        groups = Groups.of(self.schema, rows.persons, rows.sensitive, labels, len(names), window.references)
        require(self.models(), groups)
        if not boxes.cover(rows.quasi, labels).all():
            raise GuaranteeError("a released box does not cover its rows")
        return Release(
            ids=self.words(len(names)),
            lo=boxes.lo,
            hi=boxes.hi,
            starts=np.append(0, np.cumsum(np.bincount(labels, minlength=len(names)))),
            members=rows.positions[order],
            reused=np.zeros(len(names), bool),
            windows=np.tile(np.array([window.first, window.last], np.int64), (len(names), 1)),
            suppressed=np.empty(0, np.int64),
            decided=np.full(len(names), self._last),
        )

    def _window(self, rows: Batch) -> Origin:
        return Origin(
            int(rows.positions[0]), int(rows.positions[-1]), len(rows), self.schema.histograms(rows.sensitive)
        )

    @property
    def _no(self) -> Release:
        return Release.empty(len(self.schema.quasi))

    def _suppressed(self, positions: NDArray[np.int64]) -> Release:
        return replace(self._no, suppressed=positions, given_up=np.full(len(positions), self._last))

    def _joined(self, releases: list[Release]) -> Release:
        return Release.concat(releases) if releases else self._no
