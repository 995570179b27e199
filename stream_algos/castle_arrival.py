"""CASTLE with clusters that rows join when they arrive, as in the thesis: see `castle.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_algos import _arrival_kernels as kernels
from stream_algos._held_kernels import CLUSTER
from stream_algos._release_kernels import Published
from stream_algos.castle import Castle


class ArrivalCastle(Castle, formation="arrival"):
    """A row joins one of at most η clusters; a cluster leaves when the time of its oldest row is over."""

    keep_below = 1.0

    @property
    def _most_clusters(self) -> int:
        return self.parameters.eta

    def _clusters(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._state.rows.slots[slots, CLUSTER]

    def _new_state(self, capacity: int, published: Published) -> kernels.State:
        return kernels.new_state(len(self.schema.quasi), self._packed, capacity, self.parameters.eta, published)

    def _hold_rows(self, clusters: NDArray[np.int64], positions: NDArray[np.int64], *columns: NDArray[Any]) -> None:
        kernels.refill(self._state, self._space, clusters, positions, *columns)

    def _take_rows(
        self, done: int, due: NDArray[np.int64], positions: NDArray[np.int64], *columns: NDArray[Any]
    ) -> int:
        return kernels.advance(self._state, self._out, self._space, self._rules, done, due, positions, *columns)

    def _flush_rows(self) -> bool:
        return kernels.flush(self._state, self._out, self._space, self._rules)
