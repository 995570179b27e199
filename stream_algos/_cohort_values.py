"""Last seen quasi-identifiers of persons as a column of numbers, however the state keeps them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_algos._cohort_state import State
from stream_algos._cohort_value_kernels import read_values, write_values


class LastValues:
    """Reads and writes as an array does; what it gives is a copy."""

    def __init__(self, state: State, size: int | None = None) -> None:
        self._tables = state.narrow, state.exact, state.lows
        self._size = len(state.narrow) if size is None else size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, where: slice | NDArray[Any]) -> NDArray[np.float64]:
        who = self._numbers(where)
        values = np.empty((len(who), len(self._tables[-1])))
        read_values(*self._tables, who, values)
        return values

    def __setitem__(self, where: slice | NDArray[Any], values: NDArray[Any]) -> None:
        write_values(*self._tables, self._numbers(where), np.ascontiguousarray(values, np.float64))

    def _numbers(self, where: slice | NDArray[Any]) -> NDArray[np.int64]:
        """Kernels do not look whether somebody is there."""
        if isinstance(where, slice):
            return np.arange(*where.indices(self._size))
        if len(where) and not 0 <= where.min() <= where.max() < self._size:
            raise IndexError("nobody has such a number")
        return np.ascontiguousarray(where, np.int64)
