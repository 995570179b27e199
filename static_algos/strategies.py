"""Generalization strategies: single ways through the lattice of levels, from the table as it is up to nothing known.

A strategy raises one quasi-identifier by one level in every step. What is found along one is minimal on that way, not
in the lattice: `minimal_generalizations` looks at all of it. These functions are for worked examples and for sizing a
search by hand.

X. Sun, Privacy Preserving Data Sharing in Data Mining Environment (thesis 2010), sections 2.2 to 2.4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from microdata import InfeasibleError, Table
from privacy import Model
from static_algos.full_domain import Ladder, Lattice, Node
from static_algos.recoding import recodings


def strategy_count(heights: Sequence[int]) -> int:
    """How many strategies there are for quasi-identifiers with so many levels above their values.

    >>> strategy_count([1, 2]), strategy_count([2, 2]), strategy_count([0, 3])
    (3, 6, 1)
    """
    return math.factorial(sum(heights)) // math.prod(map(math.factorial, heights))


def strategies(heights: Sequence[int]) -> Iterator[tuple[Node, ...]]:
    """Every strategy, one after the other.

    >>> next(strategies([1, 1]))
    ((0, 0), (1, 0), (1, 1))
    """
    if not any(heights):
        yield (tuple(heights),)
        return
    for a in reversed(range(len(heights))):
        if heights[a]:
            before = [height - (b == a) for b, height in enumerate(heights)]
            for way in strategies(before):
                yield (*way, tuple(heights))


class Walk(NamedTuple):
    """What a strategy meets on its way up."""

    sizes: tuple[tuple[int, ...], ...]
    """At every height, the rows of each class."""
    height: int | None
    """The first height at which every class keeps the guarantee; None if there is none."""

    def buckets(self, k: int) -> tuple[int, ...]:
        """Classes with 0 … k rows below them, those with more in the last: a record of the table has none below it."""
        below = [0] * sum(self.sizes[0]) + [rows for sizes in self.sizes[1:] for rows in sizes]
        return tuple(np.bincount(np.minimum(below, k), minlength=k + 1).tolist())


def along(
    table: Table,
    strategy: Sequence[Sequence[int]],
    models: Sequence[Model],
    *,
    height: int = 4,
    widths: Mapping[str, Sequence[float]] | None = None,
) -> Walk:
    """Go up a strategy, adding up the classes of each height to those of the next."""
    recoded = recodings(table, height, widths or {})
    lattice = Lattice(table, recoded, models, limit=0)
    way = [tuple(levels) for levels in strategy]
    top = tuple(levels - 1 for levels in lattice.heights)
    ends = way[:1] == [(0,) * len(top)] and way[-1:] == [top]
    if not ends or any(
        sorted(np.subtract(up, low).tolist()) != [*[0] * (len(top) - 1), 1] for low, up in pairwise(way)
    ):
        raise InfeasibleError(
            "a strategy leads from the table as it is to nothing known, one level of one quasi-identifier at a time",
            parameter="strategy",
        )
    ladder = Ladder(lattice, range(len(top)), np.zeros(lattice.heights, bool))
    sizes, first = [], None
    for number, node in enumerate(way):
        merged = ladder.climb(node)
        sizes.append(tuple(sorted(merged.rows.tolist(), reverse=True)))
        if first is None and lattice.judged(merged, models).all():
            first = number
    return Walk(tuple(sizes), first)
