"""A ladder of generalizations for all quasi-identifiers together: from the values themselves up to nothing known.

A category climbs its hierarchy, a number is published in intervals of one width, wider from level to level, as in
`static_algos/recoding.py`. On each rung of the ladder every quasi-identifier has climbed the same share of its levels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, Category, Number, PersonSource, Schema, Table
from static_algos.recoding import check_widths, default_widths, recodings, unit_and_runs
from stream_algos.cells import NumberCells, cell_numbers


class Rungs(NamedTuple):
    """What a value is on each rung (first index) in each quasi-identifier (second), as kernels want it."""

    run: NDArray[np.int64]
    """Cells of a number that are one; 0 for categories."""
    start: NDArray[np.int64]
    """Where the leaves of a category begin in `node`."""
    node: NDArray[np.int64]
    """First leaf of the node that each leaf is published as."""
    end: NDArray[np.int64]
    """Last leaf of it."""


@dataclass(frozen=True, eq=False)
class Ladder:
    """The rungs of a schema."""

    cells: tuple[NumberCells | None, ...]
    rungs: Rungs

    def __len__(self) -> int:
        return len(self.rungs.run)

    @classmethod
    def of(cls, schema: Schema, height: int, widths: Mapping[str, Sequence[float]]) -> Ladder:
        """`widths` names the interval widths of some numbers; others have `height` levels above their values."""
        check_widths(schema, widths)
        numbers = {
            column: _runs(one, widths.get(one.name) or default_widths(one, height))
            for column, one in enumerate(schema.quasi)
            if isinstance(one, Number)
        }
        trees = {column: _nodes(one) for column, one in enumerate(schema.quasi) if isinstance(one, Category)}
        heights = {column: len(tree) for column, tree in trees.items()}
        heights |= {column: len(runs) for column, (_, runs) in numbers.items()}
        top = max(heights.values()) - 1
        run = np.zeros((top + 1, len(heights)), np.int64)
        start = np.zeros_like(run)
        firsts, lasts, filled = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
        for rung in range(top + 1):
            for column, own in heights.items():
                level = round(rung * (own - 1) / top) if top else 0
                if column in numbers:
                    run[rung, column] = numbers[column][1][level]
                    continue
                start[rung, column] = filled
                first, last = trees[column][level]
                firsts.append(first)
                lasts.append(last)
                filled += len(first)
        return cls(
            tuple(numbers[column][0] if column in numbers else None for column in range(len(schema.quasi))),
            Rungs(run, start, np.concatenate(firsts), np.concatenate(lasts)),
        )

    def codes(self, quasi: NDArray[np.float64]) -> NDArray[np.int64]:
        """Every value as its cell or leaf."""
        return cell_numbers(self.cells, quasi)

    def boxes(self, codes: NDArray[np.int64], rung: NDArray[np.int64]) -> tuple[NDArray[np.float64], ...]:
        """What rows are published as, each on its rung."""
        lo, hi = np.empty(codes.shape), np.empty(codes.shape)
        for column, own in enumerate(self.cells):
            if own is None:
                place = self.rungs.start[rung, column] + codes[:, column]
                lo[:, column], hi[:, column] = self.rungs.node[place], self.rungs.end[place]
            else:
                run = self.rungs.run[rung, column]
                first = codes[:, column] // run * run
                lo[:, column], hi[:, column] = own.sides(first, np.minimum(first + run, own.count) - 1)
        return lo, hi


def _runs(attribute: Number, widths: Sequence[float]) -> tuple[NumberCells, list[int]]:
    """The cells of a number, and how many of them are one on each level; the last is the whole domain."""
    unit, runs = unit_and_runs(attribute, widths)
    cells, lengths = NumberCells(attribute, unit), [1]
    for run in runs:
        lengths.append(min(lengths[-1] * run, cells.count))
    return cells, [*lengths, cells.count] if cells.count > lengths[-1] else lengths


def _nodes(attribute: Attribute) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """First and last leaf of the node that each leaf is on each level of a hierarchy."""
    leaves = np.arange(attribute.size or 0)
    schema = Schema(PersonSource.ROW, (attribute,))
    alone = Table(schema, leaves, leaves[:, None].astype(np.float64), np.empty((len(leaves), 0), np.int32))
    return [
        (level.lo[level.group].astype(np.int64), level.hi[level.group].astype(np.int64))
        for level in recodings(alone, 1, {})[0].levels
    ]
