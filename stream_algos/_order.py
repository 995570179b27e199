"""Order-preserving output: rows leave one by one in the order of their positions.

A decided row waits until no earlier row is undecided, which is at the latest when its own delay is over. An entry of
the release is then one row; the other rows of its cluster come before and after it. Whoever knows the input's order
can tell which output belongs to which input (the n-th to the n-th): choose it only where nobody does.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from stream_algos.engine import Release, Snapshot


class InOrder:
    """Holds decided rows back until it is their turn."""

    def __init__(self, width: int) -> None:
        self._rows = Release.empty(width)
        self._latest = -1

    def positions(self) -> NDArray[np.int64]:
        """Rows that are decided and wait."""
        return self._rows.members

    def pass_on(self, release: Release, undecided: NDArray[np.int64]) -> Release:
        """What may leave now that `release` is decided and the rows at these (ascending) positions are not."""
        both = Release.concat([self._rows, release.by_row()])
        ordered = both.select(np.argsort(both.members))
        first = undecided[0] if len(undecided) else np.iinfo(np.int64).max
        ready = np.searchsorted(ordered.members, first)
        self._rows = ordered.select(np.arange(ready, len(ordered)))
        leaving = replace(ordered.select(np.arange(ready)), suppressed=release.suppressed, given_up=release.given_up)
        return replace(leaving, decided=self._turns(leaving))

    def _turns(self, leaving: Release) -> NDArray[np.int64]:
        """The position at which it was each row's turn: when it and all before it were decided.

        A suppressed row behind one that is still undecided may count now: that one is decided no earlier.
        """
        order = np.argsort(np.concatenate([leaving.members, leaving.suppressed]))
        turns = np.empty(len(order), np.int64)
        decided = np.concatenate([leaving.decided, leaving.given_up])[order]
        turns[order] = np.maximum.accumulate(np.maximum(decided, self._latest))
        self._latest = int(turns.max(initial=self._latest))
        return turns[: len(leaving)]

    def snapshot(self) -> Snapshot:
        """The waiting decisions."""
        rows = self._rows
        return {
            "waiting": rows.members,
            "waiting_ids": rows.ids,
            "waiting_lo": rows.lo,
            "waiting_hi": rows.hi,
            "waiting_reused": rows.reused,
        }

    def restore(self, snapshot: Snapshot, positions: NDArray[np.int64]) -> None:
        """Wait again with those decisions whose rows are still there."""
        rows = Release(
            ids=np.asarray(snapshot["waiting_ids"], np.uint64),
            lo=np.asarray(snapshot["waiting_lo"], np.float64),
            hi=np.asarray(snapshot["waiting_hi"], np.float64),
            starts=np.arange(len(snapshot["waiting"]) + 1),
            members=np.asarray(snapshot["waiting"], np.int64),
            reused=np.asarray(snapshot["waiting_reused"], np.bool_),
            windows=np.full((len(snapshot["waiting"]), 2), -1),
            suppressed=np.empty(0, np.int64),
        )
        self._rows = rows.select(np.isin(rows.members, positions))
