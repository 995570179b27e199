"""Full-domain recodings: each quasi-identifier with its levels, from the values as they are to nothing known.

A category climbs its hierarchy: level h holds the highest nodes of height h or less. A number is published in intervals
of one width, wider from level to level. Every level joins whole groups of the one before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from microdata import (
    Attribute,
    Boxes,
    Category,
    Hierarchy,
    InfeasibleError,
    Number,
    PersonSource,
    Schema,
    Table,
    attribute_loss,
)

MOST_HEIGHT = 32
"""Levels of a number: more halve what is halved already."""
MOST_WIDTHS = 100
MOST_FIELDS = 1_000
"""Numbers with widths of their own."""
MOST_CELLS = 2**53
"""Intervals of a number that can be told apart."""


Height: TypeAlias = Annotated[
    int,
    Field(
        ge=1,
        le=MOST_HEIGHT,
        description=f"levels above a number's values, the whole domain included; from 1 to {MOST_HEIGHT}",
    ),
]
Width: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Widths: TypeAlias = Annotated[
    Mapping[str, Annotated[list[Width], Field(min_length=1, max_length=MOST_WIDTHS)]],
    Field(
        max_length=MOST_FIELDS,
        description="interval widths of some numbers instead, from small to large, each a multiple of the one before",
    ),
]
"""Parameters of whatever lets numbers climb."""


@dataclass(frozen=True, eq=False)
class Level:
    """One way to publish a quasi-identifier."""

    group: NDArray[np.int32]
    """Group of each code of level 0."""
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    """What each group is published as."""
    loss: NDArray[np.float64]
    """What publishing each group costs."""


@dataclass(frozen=True, eq=False)
class Recoding:
    """One quasi-identifier of a table."""

    codes: NDArray[np.int32]
    """Code of each row at level 0."""
    levels: tuple[Level, ...]


def recodings(
    table: Table, height: int, widths: Mapping[str, Sequence[float]], *, quantiles: bool = False
) -> tuple[Recoding, ...]:
    """The levels of every quasi-identifier; `widths` names the interval widths of some numbers, from small to large.

    Other numbers have widths that double, or with `quantiles` intervals that halve the rows again and again.
    """
    check_widths(table.schema, widths)
    return tuple(
        _category(attribute, column)
        if isinstance(attribute, Category)
        else _halves(attribute, column, height)
        if quantiles and attribute.name not in widths
        else _number(attribute, column, widths.get(attribute.name) or default_widths(attribute, height))
        for attribute, column in zip(table.schema.quasi, table.quasi.T, strict=True)
    )


def check_widths(schema: Schema, widths: Mapping[str, Sequence[float]]) -> None:
    """Refuse widths of what is no number."""
    numbers = [attribute.name for attribute in schema.quasi if isinstance(attribute, Number)]
    for name in widths:
        if name not in numbers:
            raise InfeasibleError(
                "only numbers among the quasi-identifiers have widths", parameter="widths", given=repr(name)
            )


def default_widths(attribute: Number, height: int) -> list[float]:
    """Widths that double, so that `height` levels lie between the values themselves and the whole domain.

    >>> default_widths(Number("age", 17, 90, integer=True), height=4)
    [10.0, 20.0, 40.0]
    """
    grid = attribute.grid
    if grid is None:
        finest = (attribute.high - attribute.low) / 2 ** (height - 1)
    else:
        finest = math.ceil((attribute.size or 1) / 2 ** (height - 1)) * grid
    # A domain of few values has fewer levels: its finest width is the first that joins two values.
    start = 1 if finest == grid else 0
    return [finest * 2**level for level in range(start, height - 1) if finest * 2**level < extent(attribute)]


def _category(attribute: Category, column: NDArray[np.float64]) -> Recoding:
    tree = attribute.hierarchy
    codes = column.astype(np.int32)
    levels = []
    nodes = tree.leaf_nodes
    for height in range(int(tree.height[0]) + 1):
        nodes = _climbed(tree, nodes, height)
        known, group = np.unique(nodes, return_inverse=True)
        lo, hi = tree.first[known].astype(np.float64), tree.last[known].astype(np.float64)
        levels.append(_level(attribute, group.astype(np.int32), lo, hi))
    return Recoding(codes, tuple(levels))


def _climbed(tree: Hierarchy, nodes: NDArray[np.int32], height: int) -> NDArray[np.int32]:
    """The parents of those nodes whose parent is no higher than `height`."""
    parent = np.maximum(tree.parent[nodes], 0)
    return np.where(tree.height[parent] <= height, parent, nodes)


def _number(attribute: Number, column: NDArray[np.float64], widths: Sequence[float]) -> Recoding:
    """Exact values (on a declared step: its cells), then intervals that are whole runs of cells, then the domain."""
    unit, runs = unit_and_runs(attribute, widths)
    distinct = column if attribute.step is None else _cell(attribute, column, unit)
    codes = np.unique(distinct, return_inverse=True)[1].astype(np.int32)
    values = _ends(codes, column)
    cells = _cell(attribute, values[0], unit)

    levels = []
    if attribute.step is None:
        levels.append(_level(attribute, np.arange(len(cells), dtype=np.int32), *values))
    length = 1
    for run in runs if attribute.step is None else [1, *runs]:
        length = min(length * run, 2 * MOST_CELLS)  # as good as any that covers the whole domain
        levels.append(_intervals(attribute, values, cells // length, length * unit))
    if attribute.high > attribute.low:
        levels.append(_intervals(attribute, values, np.zeros_like(cells), 2 * extent(attribute)))
    return Recoding(codes, tuple(levels))


def unit_and_runs(attribute: Number, widths: Sequence[float]) -> tuple[float, list[int]]:
    """The width of the finest interval, and how many intervals of each level make one of the next."""
    unit = attribute.grid or (widths[0] if widths else extent(attribute)) or 1.0
    if extent(attribute) / unit > MOST_CELLS:
        raise InfeasibleError(
            f"intervals of {attribute.name!r} cannot be told apart: the domain has more than {MOST_CELLS} of them",
            parameter="widths",
            given=f"{unit:g}",
            nearest=extent(attribute) / MOST_CELLS,
        )
    return unit, [_run(attribute, before, width) for before, width in pairwise((unit, *widths))]


def _halves(attribute: Number, column: NDArray[np.float64], height: int) -> Recoding:
    """Exact values (on a declared step: its cells), then intervals that halve the rows of those above them."""
    cells = column if attribute.step is None else _cell(attribute, column, attribute.step)
    codes = np.unique(cells, return_inverse=True)[1].astype(np.int32)
    values = _ends(codes, column)
    count = len(values[0])
    before = np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=count))))
    ends = np.array([0, count])
    levels: list[Level] = []
    while len(levels) < height and len(ends) <= count:
        levels.append(_runs(attribute, values, ends))
        low, high = ends[:-1], ends[1:]
        cut = np.searchsorted(before, (before[low] + before[high]) / 2)
        # The value in the middle goes to the side that it leaves closer to the other.
        cut -= (before[cut] - before[low]) - (before[high] - before[cut]) > np.abs(
            (before[high] - before[cut - 1]) - (before[cut - 1] - before[low])
        )
        ends = np.unique(np.concatenate((ends, np.clip(cut, low + 1, high))))
    levels.append(_runs(attribute, values, np.arange(count + 1)))
    return Recoding(codes, tuple(reversed(levels)))


def _runs(attribute: Number, values: tuple[NDArray[np.float64], NDArray[np.float64]], ends: NDArray[np.int64]) -> Level:
    """The level that publishes runs of neighbouring codes, each from its least value to its greatest."""
    sizes = np.diff(ends)
    group = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    return _level(attribute, group, values[0][ends[:-1]], values[1][ends[1:] - 1])


def _ends(codes: NDArray[np.int32], column: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Least and greatest value of each code."""
    count = int(codes.max(initial=-1)) + 1
    least, greatest = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, codes, column)
    np.maximum.at(greatest, codes, column)
    return least, greatest


def extent(attribute: Number) -> float:
    """Width of the interval that holds the whole domain."""
    return attribute.high - attribute.low + (1.0 if separate(attribute) else 0.0)


def separate(attribute: Number) -> bool:
    """Whether neighbouring intervals do not touch: between whole numbers there is nothing."""
    return attribute.integer and attribute.step is None


def _run(attribute: Number, before: float, width: float) -> int:
    """How many intervals of the level before make one of this width."""
    run = round(width / before) if before > 0 else 0
    if run < 1 or not math.isclose(run * before, width):
        raise InfeasibleError(
            f"each width of {attribute.name!r} must be a multiple of the one before ({before:g})",
            parameter="widths",
            given=f"{width:g}",
            nearest=max(run, 1) * before,
        )
    return run


def _cell(attribute: Number, values: NDArray[np.float64], unit: float) -> NDArray[np.int64]:
    cells = np.floor((values - attribute.low) / unit).astype(np.int64)
    # The domain's end belongs to the last interval, not to one of its own.
    last = math.ceil(extent(attribute) / unit - 1e-9) - 1
    return np.clip(cells, 0, max(last, 0))


def _intervals(
    attribute: Number,
    values: tuple[NDArray[np.float64], NDArray[np.float64]],
    index: NDArray[np.int64],
    width: float,
) -> Level:
    """The level that publishes codes by the interval of this index and width."""
    known, group = np.unique(index, return_inverse=True)
    lo = np.asarray(attribute.low + known * width, np.float64)
    hi = np.minimum(lo + width - (1.0 if separate(attribute) else 0.0), attribute.high)
    # Rounding of the products must never leave a value outside.
    np.minimum.at(lo, group, values[0])
    np.maximum.at(hi, group, values[1])
    return _level(attribute, group.astype(np.int32), lo, hi)


def _level(attribute: Attribute, group: NDArray[np.int32], lo: NDArray[np.float64], hi: NDArray[np.float64]) -> Level:
    alone = Boxes(Schema(PersonSource.ROW, (attribute,)), lo[:, None], hi[:, None])
    return Level(group, lo, hi, attribute_loss(alone)[:, 0])
