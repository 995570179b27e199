"""Engines without delay: every row is decided when it comes, by the rows that came before it.

A row leaves alone, as a cluster of its own. Its company are the persons of a window: so the window is what is kept, and
what is read again after a restart.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import Boxes, DataError, GuaranteeError, Schema, Words, system_words
from stream_algos.engine import Batch, Engine, Hold, Release, StreamParameters

CHUNK = 1 << 14
"""Rows that a kernel takes at once. What is decided does not depend on it."""


class AtOnceParameters(StreamParameters):
    """Parameters of every engine without delay."""

    @property
    def hold(self) -> Hold:
        """Nothing is held."""
        return Hold(tuples=0)

    @property
    def alone(self) -> str:
        """Every row leaves alone."""
        return "algorithm"


class Verdict(NamedTuple):
    """What becomes of some rows."""

    leaves: NDArray[np.bool_]
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    """Boxes of those that leave."""
    first: NDArray[np.int64]
    """The first position of the window of those that leave."""


class AtOnce(Engine):
    """Decides rows one by one. Subclasses keep a window and say what becomes of rows."""

    windowed = True

    def __init__(self, schema: Schema, *, words: Words = system_words, **given: Any) -> None:
        super().__init__(schema, words=words, **given)
        self._last = np.iinfo(np.int64).min
        self.decided = {"released": 0, "suppressed": 0}
        """What became of rows."""

    @abstractmethod
    def _judge(self, rows: Batch) -> Verdict:
        """Take some rows and say what becomes of each."""

    @abstractmethod
    def _pass(self, position: int) -> None:
        """Forget what no row behind this position needs."""

    def push(self, batch: Batch) -> Release:
        """Take rows and decide all of them."""
        if len(batch) and (batch.positions[0] <= self._last or np.any(np.diff(batch.positions) <= 0)):
            raise DataError("positions must grow from row to row and from batch to batch")
        parts = [Release.empty(len(self.schema.quasi))]
        for begin in range(0, len(batch), CHUNK):
            rows = batch.take(slice(begin, begin + CHUNK))
            self._last = int(rows.positions[-1])
            parts.append(self._release(rows, self._judge(rows)))
        return Release.concat(parts[-1:] if len(parts) == 2 else parts)

    def advance(self, position: int) -> Release:
        """Nothing waits."""
        if position > self._last:
            self._last = position
            self._pass(position)
        return Release.empty(len(self.schema.quasi))

    def expire(self, now: float) -> Release:
        """Nothing waits."""
        del now
        return Release.empty(len(self.schema.quasi))

    def flush(self) -> Release:
        """Nothing is held."""
        return Release.empty(len(self.schema.quasi))

    def pending(self) -> NDArray[np.int64]:
        """Nothing is pending."""
        return np.empty(0, np.int64)

    def _release(self, rows: Batch, verdict: Verdict) -> Release:
        """What leaves, each row as a cluster of its own; `GuaranteeError` where a box does not cover its row."""
        leaving = rows.positions[verdict.leaves]
        suppressed = rows.positions[~verdict.leaves]
        count = len(leaving)
        boxes = Boxes(self.schema, verdict.lo, verdict.hi)
        if not boxes.cover(rows.quasi[verdict.leaves], np.arange(count)).all():
            raise GuaranteeError("a released box does not cover its rows")
        self.decided["released"] += count
        self.decided["suppressed"] += len(suppressed)
        return Release(
            ids=self.words(count),
            lo=verdict.lo,
            hi=verdict.hi,
            starts=np.arange(count + 1),
            members=leaving,
            reused=np.zeros(count, bool),
            windows=np.stack([verdict.first, leaving], axis=1),
            suppressed=suppressed,
            decided=leaving,
            given_up=suppressed,
        )
