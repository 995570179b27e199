"""Numbers as cells of a fixed grid, and categories as their leaves: quasi-identifiers as whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microdata import Category, Number, Schema
from static_algos.recoding import extent, separate


@dataclass(frozen=True)
class NumberCells:
    """The domain of a number in cells of one width, from its lower end; neighbours of a continuous domain touch."""

    attribute: Number
    unit: float
    """Width of a cell; a multiple of the number's grid, where it has one."""

    @property
    def count(self) -> int:
        """Cells of the domain; its end belongs to the last one."""
        return max(math.ceil(extent(self.attribute) / self.unit - 1e-9), 1)

    def edge(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """Where these cells begin."""
        grid = self.attribute.grid
        if grid is None:
            return np.asarray(self.attribute.low + self.unit * cells)
        return self.attribute.on_grid(round(self.unit / grid) * cells)

    def of(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cell of each value."""
        cells = np.floor((values - self.attribute.low) / self.unit).astype(np.int64)
        # Rounding of quotients must never leave a value outside of its cell.
        cells -= values < self.edge(cells)
        cells += values >= self.edge(cells + 1)
        return np.clip(cells, 0, self.count - 1)

    def sides(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> tuple[NDArray[np.float64], ...]:
        """Lower and upper end of what is published for these cells together."""
        gap = 1.0 if separate(self.attribute) else 0.0
        return self.edge(first), np.minimum(self.edge(last + 1) - gap, self.attribute.high)


def cell_numbers(cells: tuple[NumberCells | None, ...], quasi: NDArray[np.float64]) -> NDArray[np.int64]:
    """Every value as its cell, or as its leaf where there are none."""
    codes = np.empty(quasi.shape, np.int64)
    for column, own in enumerate(cells):
        codes[:, column] = quasi[:, column] if own is None else own.of(quasi[:, column])
    return codes


def grid_cells(schema: Schema, most: int) -> tuple[NumberCells | None, ...]:
    """For every number about as many cells as are asked for, on its own grid where it has one; None for categories."""
    return tuple(None if isinstance(one, Category) else NumberCells(one, _width(one, most)) for one in schema.quasi)


def _width(attribute: Number, most: int) -> float:
    if attribute.grid is None:
        return extent(attribute) / most or 1.0
    return math.ceil((attribute.size or 1) / most) * attribute.grid
