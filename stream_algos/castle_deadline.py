"""CASTLE with classes that are found at the deadline: see `castle.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_algos import _deadline_kernels as kernels
from stream_algos._release_kernels import Published
from stream_algos.castle import Castle


class DeadlineCastle(Castle, formation="deadline"):
    """Rows wait together; the one whose time is over gathers its class from all of them."""

    # Boxes are tighter than those of clusters that grew on arrival: only the best of them are worth keeping.
    keep_below = 0.6

    def _new_state(self, capacity: int, published: Published) -> kernels.State:
        return kernels.new_state(self.schema, self._packed, capacity, published)

    def _hold_rows(self, clusters: NDArray[np.int64], positions: NDArray[np.int64], *columns: NDArray[Any]) -> None:
        del clusters
        kernels.refill(self._state, self._space, self._rules, positions, *columns)

    def _take_rows(
        self, done: int, due: NDArray[np.int64], positions: NDArray[np.int64], *columns: NDArray[Any]
    ) -> int:
        return kernels.advance(self._state, self._out, self._space, self._rules, done, due, positions, *columns)

    def _flush_rows(self) -> bool:
        return kernels.flush(self._state, self._out, self._space, self._rules)
