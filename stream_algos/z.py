"""z: no delay at all. A row leaves when it comes, as precisely as z persons of the window have shown the same.

The window are the last positions (and seconds, if they are given). When a row comes, its combination of values is
looked up: where z - 1 other persons have shown it within the window, it leaves as it is. Otherwise all
quasi-identifiers climb a rung of the ladder (a node of the hierarchy, wider intervals) and it is looked up again; a row
that has too little company even on the last rung is suppressed. Persons are counted, not rows; a row of the same person
is no company.

On a coarser rung only rows count that came that far themselves. Whoever knows the rule knows that the others left with
finer values, and would not take them for company: counting them would publish the rare value among many frequent ones
as a box in which it alone can be meant.

It is exact at the moment at which a row leaves, for that row. Nothing is promised about several rows of a person
together, and whoever knows when somebody acted sees the row: there is no delay to hide it.

Jha, Favale, Vassio, Trevisan and Mellia, z-anonymity: zero-delay anonymization for data streams (IEEE Big Data 2020).

>>> import numpy as np
>>> from microdata import Number, Schema
>>> from stream_algos.engine import Batch
>>> schema = Schema("person", (Number("age", 0, 99, integer=True),))
>>> engine = Z(schema, z=2, window={"tuples": 100}, widths={"age": [10]})
>>> ages = np.array([[21.0], [34.0], [21.0], [29.0], [36.0]])
>>> release = engine.push(Batch(np.arange(5), np.zeros(5), np.arange(5), ages, np.empty((5, 0), np.int32)))
>>> list(zip(release.members.tolist(), release.lo.ravel().tolist(), release.hi.ravel().tolist()))
[(1, 0.0, 99.0), (2, 21.0, 21.0), (3, 20.0, 29.0), (4, 30.0, 39.0)]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from microdata import InfeasibleError, Schema, Words, system_words
from privacy import Model, ZAnonymity
from static_algos.recoding import Height, Widths
from stream_algos import _z_kernels as kernels
from stream_algos._z_kernels import (
    BEGIN,
    COMBINATION,
    END,
    LIVE_COMBINATIONS,
    LIVE_PAIRS,
    PERSON,
    POSITION,
    REACHED,
    VALUES,
    State,
)
from stream_algos.at_once import AtOnce, AtOnceParameters, Verdict
from stream_algos.engine import (
    LONGEST,
    MOST_PERSONS,
    MOST_ROWS,
    STREAM_ALGORITHMS,
    Batch,
    Hold,
    Release,
    Snapshot,
)
from stream_algos.ladder import Ladder


class Recent(BaseModel):
    """How far back a row is looked for company."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tuples: int = Field(ge=1, le=MOST_ROWS, description="positions, the row's own included")
    seconds: float | None = Field(None, gt=0, le=LONGEST, description="and no longer ago than so many seconds")


class ZParameters(AtOnceParameters):
    """What z is asked for."""

    z: int = Field(
        ge=1, le=MOST_PERSONS, description="persons who have shown what a row leaves with, its own among them; from 1"
    )
    window: Recent = Field(description="how far back: tuples, and seconds if time counts too")
    height: Height = 4
    widths: Widths = Field(default_factory=dict)

    @model_validator(mode="after")
    def _feasible(self) -> ZParameters:
        if self.window.tuples < self.z:
            reason = f"a window of {self.window.tuples} rows never has z={self.z} persons"
            raise InfeasibleError(reason, parameter="window.tuples", nearest=self.z)
        return self

    @property
    def hold(self) -> Hold:
        """Nothing is held; rows count in their window."""
        return Hold(tuples=0, window=self.window.seconds)


@STREAM_ALGORITHMS.register("z", ZParameters)
class Z(AtOnce):
    """No delay: a row leaves when it comes, with what z persons of the window have shown; else coarser, or not."""

    Parameters = ZParameters
    parameters: ZParameters
    guarantees = (ZAnonymity,)
    example: ClassVar[Mapping[str, Any]] = {"z": 3, "window": {"tuples": 200}}
    variants: ClassVar[Sequence[Mapping[str, Any]]] = (
        {"window": {"tuples": 200, "seconds": 20.0}, "height": 2},
        {"z": 2, "window": {"tuples": 60}, "height": 6},
    )

    def __init__(self, schema: Schema, *, words: Words = system_words, **given: Any) -> None:
        super().__init__(schema, words=words, **given)
        asked = self.parameters
        self._ladder = Ladder.of(schema, asked.height, asked.widths)
        self._seconds = np.inf if asked.window.seconds is None else asked.window.seconds
        self._state = self._new_state(1, 1)
        self.rungs = np.zeros(len(self._ladder), np.int64)
        """How many rows left on each rung."""

    def models(self) -> tuple[Model, ...]:
        """So many persons within the window."""
        window = self.parameters.window
        return (ZAnonymity(self.parameters.z, window.tuples, window.seconds),)

    def expire(self, now: float) -> Release:
        """Forget what is no longer in the window by its time; nothing waits."""
        kernels.expire(self._state, np.iinfo(np.int64).min, now - self._seconds)
        return super().expire(now)

    def needed_from(self) -> int | None:
        """The first row of the window."""
        held = self._held()
        return int(self._state.rows[held[0], POSITION]) if len(held) else None

    def snapshot(self) -> Snapshot:
        """Which rows are in the window, and on how many rungs each counts."""
        rows = self._state.rows[self._held()]
        return {"positions": rows[:, POSITION], "reached": rows[:, REACHED], "last": np.array([self._last])}

    def restore(self, snapshot: Snapshot, rows: Batch) -> None:
        """Continue with the same window, or what is left of it: who is lost is no company."""
        self._last = int(snapshot["last"][0])
        held = rows.take(np.isin(rows.positions, snapshot["positions"]))
        reached = snapshot["reached"][np.searchsorted(snapshot["positions"], held.positions)]
        self._state = self._new_state(len(held), int(reached.sum()))
        positions, times, persons, quasi, _ = held.columns()
        codes = self._ladder.codes(quasi)
        kernels.put_back(self._state, self._ladder.rungs, positions, times, persons, codes, reached)

    def status(self) -> Mapping[str, float]:
        """Rows and combinations in the window, and where rows left."""
        rungs = {f"left_on_rung_{rung}": float(count) for rung, count in enumerate(self.rungs.tolist())}
        return {
            "window_rows": float(len(self._held())),
            "combinations": float(self._state.meta[LIVE_COMBINATIONS]),
            "suppressed": float(self.decided["suppressed"]),
            **rungs,
        }

    def _judge(self, rows: Batch) -> Verdict:
        positions, times, persons, quasi, _ = rows.columns()
        codes = self._ladder.codes(quasi)
        self._make_room(len(rows))
        rung, first = np.empty((2, len(rows)), np.int64)
        window = (self.parameters.z, self.parameters.window.tuples, self._seconds)
        kernels.take(self._state, self._ladder.rungs, *window, positions, times, persons, codes, rung, first)
        leaves = rung >= 0
        self.rungs += np.bincount(rung[leaves], minlength=len(self.rungs))
        lo, hi = self._ladder.boxes(codes[leaves], rung[leaves])
        return Verdict(leaves, lo, hi, first[leaves])

    def _pass(self, position: int) -> None:
        kernels.expire(self._state, position + 1 - self.parameters.window.tuples, -np.inf)

    def _held(self) -> NDArray[np.int64]:
        """Places of the rows of the window, the oldest first."""
        meta = self._state.meta
        return np.arange(meta[BEGIN], meta[END]) & (len(self._state.rows) - 1)

    def _new_state(self, rows: int, entries: int) -> State:
        """An empty window with room for so many rows and entries, and up to twice as many."""
        room, more = (1 << max(count - 1, 0).bit_length() for count in (rows, entries))
        return kernels.new_state(len(self._ladder), len(self.schema.quasi), room, more)

    def _make_room(self, rows: int) -> None:
        """See to room for so many further rows, whatever they show."""
        state, held, width = self._state, self._held(), len(self._ladder)
        most = min(len(held) + rows, self.parameters.window.tuples)
        entries = min(int(state.meta[LIVE_PAIRS]) + rows * width, most * width)
        if most <= len(state.rows) and entries <= len(state.pairs):
            return
        self._state = self._new_state(max(most, len(state.rows)), max(entries, len(state.pairs)))
        # On the first rung every row counts, with its values as they are.
        codes = state.combinations[state.pairs[state.links[held, 0], COMBINATION], VALUES:]
        old = state.rows[held]
        positions, persons, reached = np.ascontiguousarray(old[:, [POSITION, PERSON, REACHED]].T)
        kernels.put_back(self._state, self._ladder.rungs, positions, state.clock[held], persons, codes, reached)
