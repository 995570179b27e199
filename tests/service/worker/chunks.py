"""An engine that is too simple to be wrong: it releases whatever it holds as soon as that is k persons."""

from typing import Any

import numpy as np

from microdata import Boxes
from privacy import KAnonymity
from stream_algos import Batch, Engine, Hold, Release, StreamParameters


class ChunksParameters(StreamParameters):
    k: int = 2
    delta: int = 100
    seconds: float | None = None

    @property
    def hold(self) -> Any:
        return Hold(self.delta, self.seconds)


class Chunks(Engine):
    """Releases what it holds when that is k persons; suppresses what waits too long."""

    Parameters = ChunksParameters
    parameters: ChunksParameters
    guarantees = (KAnonymity,)

    def __init__(self, schema: Any, **given: Any) -> None:
        super().__init__(schema, **given)
        self._held = Batch(
            np.empty(0, np.int64),
            np.empty(0),
            np.empty(0, np.int64),
            np.empty((0, len(schema.quasi))),
            np.empty((0, len(schema.sensitive)), np.int32),
        )

    def models(self) -> Any:
        return (KAnonymity(self.parameters.k),)

    def push(self, batch: Any) -> Any:
        releases = []
        for row in range(len(batch)):
            self._held = Batch.concat([self._held, batch.take(slice(row, row + 1))])
            late = self._held.positions < batch.positions[row] - self.parameters.delta
            if len(np.unique(self._held.persons)) >= self.parameters.k:
                releases.append(self._let_go())
            elif late.any():
                releases.append(self._give_up(late))
        return _concat(self.schema, releases)

    def advance(self, position: Any) -> Any:
        late = self._held.positions < position - self.parameters.delta
        return _concat(self.schema, [self._give_up(late)] if late.any() else [])

    def expire(self, now: Any) -> Any:
        seconds = self.parameters.seconds
        late = self._held.times < now - seconds if seconds is not None else np.zeros(len(self._held), bool)
        return _concat(self.schema, [self._give_up(late)] if late.any() else [])

    def flush(self) -> Any:
        everything = np.ones(len(self._held), bool)
        return _concat(self.schema, [self._give_up(everything)] if everything.any() else [])

    def pending(self) -> Any:
        return self._held.positions

    def needed_from(self) -> Any:
        return int(self._held.positions[0]) if len(self._held) else None

    def snapshot(self) -> Any:
        return {"held": self._held.positions}

    def restore(self, snapshot: Any, rows: Any) -> None:
        wanted = np.isin(rows.positions, snapshot["held"])
        self._held = rows.take(wanted)

    def status(self) -> Any:
        return {"open_clusters": float(len(self._held) > 0)}

    def _let_go(self) -> Any:
        held, self._held = self._held, self._held.take(slice(0, 0))
        box = Boxes.around(self.schema, held.quasi, np.zeros(len(held), np.int32), 1).widened()
        order = np.argsort(self.words(len(held)))
        return Release(
            self.words(1),
            box.lo,
            box.hi,
            np.array([0, len(held)]),
            held.positions[order],
            np.zeros(1, bool),
            np.full((1, 2), -1),
            np.empty(0, np.int64),
        )

    def _give_up(self, late: Any) -> Any:
        gone = self._held.positions[late]
        self._held = self._held.take(~late)
        return _concat(self.schema, [], gone)


def _concat(schema: Any, releases: Any, suppressed: Any = ()) -> Any:
    box = np.empty((0, len(schema.quasi)))
    starts = np.cumsum([0, *(len(r.members) for r in releases if len(r))])
    return Release(
        np.concatenate([np.empty(0, np.uint64), *(r.ids for r in releases)]),
        np.concatenate([box, *(r.lo for r in releases)]),
        np.concatenate([box, *(r.hi for r in releases)]),
        starts,
        np.concatenate([np.empty(0, np.int64), *(r.members for r in releases)]),
        np.concatenate([np.empty(0, bool), *(r.reused for r in releases)]),
        np.concatenate([np.empty((0, 2), np.int64), *(r.windows for r in releases)]),
        np.concatenate([np.array(suppressed, np.int64), *(r.suppressed for r in releases)]),
    )
