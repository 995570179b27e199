"""What kernels are given to use, and what they ask for ahead of time, stays what it is."""

import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import borrowed, kernel, part, prefetch


class Pair(NamedTuple):
    """Arrays and a number, as engines hand them to kernels."""

    table: NDArray[np.float64]
    sums: NDArray[np.float64]
    factor: float


@part
def _row_sum(pair: Pair, row: int) -> float:
    total = 0.0
    for value in pair.table[row]:
        total += value
    return total * pair.factor


@kernel
def add_up(pair: Pair) -> int:
    """Sums of rows; what comes next is asked for."""
    pair = borrowed(pair)
    for row in range(len(pair.table)):
        if row + 1 < len(pair.table):
            prefetch(pair.table, row + 1)
            prefetch(pair.table, row + 1, 2)
        pair.sums[row] = _row_sum(pair, row)
    return len(pair.table)


def test_a_kernel_uses_what_it_borrows_and_leaves_it_to_its_owner() -> None:
    pair = Pair(np.arange(12.0).reshape(4, 3), np.zeros(4), 2.0)
    before = pair.table.copy()
    assert add_up(pair) == 4  # compiled, and then counted
    holders = [sys.getrefcount(one) for one in pair]
    assert [add_up(pair) for _ in range(100)] == [4] * 100
    assert [sys.getrefcount(one) for one in pair] == holders
    assert (pair.table == before).all()
    assert pair.sums.tolist() == (2 * before.sum(axis=1)).tolist()


def test_without_numba_they_do_nothing() -> None:
    pair = Pair(np.ones((2, 3)), np.zeros(2), 1.0)
    assert borrowed(pair) is pair
    prefetch(pair.table, 1, 2)
    assert (pair.table == 1.0).all()
