from typing import Any

import numpy as np
import pytest

from microdata import Cancelled, Category, Hierarchy, Number, PersonSource, Schema
from static_algos.hilbert import curve_bits, hilbert_keys


def grid(axes: Any, bits: Any) -> Any:
    side = 1 << bits
    schema = Schema(PersonSource.ROW, tuple(Number(f"a{i}", 0, side - 1, integer=True) for i in range(axes)))
    cells = np.stack(np.meshgrid(*[np.arange(side)] * axes), axis=-1).reshape(-1, axes)
    return schema, cells.astype(float)


@pytest.mark.parametrize(("axes", "bits"), [(1, 5), (2, 1), (2, 4), (3, 3), (5, 2)])
def test_the_curve_visits_every_cell_once_and_never_jumps(axes: int, bits: int) -> None:
    schema, cells = grid(axes, bits)
    keys = hilbert_keys(schema, cells)
    assert sorted(keys) == list(range(len(cells)))
    steps = np.abs(np.diff(cells[np.argsort(keys)], axis=0)).sum(axis=1)
    assert (steps == 1).all()


def test_many_axes_share_one_word() -> None:
    schema = Schema(PersonSource.ROW, tuple(Number(f"a{i}", 0, 1) for i in range(20)))
    assert curve_bits(schema.quasi) == 3
    corners = np.random.default_rng(1).integers(0, 2, (200, 20)).astype(float)
    keys = hilbert_keys(schema, corners)
    assert len(np.unique(keys)) == len(np.unique(corners, axis=0))


def test_axes_without_extent_or_weight_do_not_count() -> None:
    flat = Category("only", Hierarchy.flat(["one"]))
    schema = Schema(PersonSource.ROW, (flat, Number("x", 0, 7, integer=True), Number("y", 0, 7)), weights=(1, 1, 0))
    cells = np.array([[0, x, y] for x in range(8) for y in (0, 7)], float)
    assert list(hilbert_keys(schema, cells)) == list(np.repeat(np.arange(8), 2))
    only = Schema(PersonSource.ROW, (flat,))
    assert list(hilbert_keys(only, np.zeros((3, 1)))) == [0, 0, 0]


def test_it_can_be_cancelled() -> None:
    def stop(phase: Any, done: Any, total: Any) -> None:
        raise Cancelled

    schema, cells = grid(2, 2)
    with pytest.raises(Cancelled):
        hilbert_keys(schema, cells, stop)
