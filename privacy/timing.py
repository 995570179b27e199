"""Rows that leave alone, and somebody who knows when a person acted.

A row that leaves with others of its class is seen together with them. One that leaves alone, at once or with a class
that was published before, is seen at its moment: whoever knows that the victim acted then, and their quasi-identifiers,
looks at what left in the same tick. Every row there whose box the victim lies in could be theirs; so the others whose
rows these are, are all that hides them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

_ODD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@dataclass(frozen=True, eq=False)
class Left:
    """Rows that left: when, whose they are, with which box, and whether alone."""

    ticks: NDArray[np.int64]
    persons: NDArray[np.int64]
    quasi: NDArray[np.float64]
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    alone: NDArray[np.bool_]

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64] | slice) -> Self:
        """Some of them."""
        return type(self)(*(getattr(self, one.name)[rows] for one in fields(self)))

    def joined(self, other: Self) -> Self:
        """These and others."""
        return type(self)(
            *(np.concatenate([getattr(self, one.name), getattr(other, one.name)]) for one in fields(self))
        )


class Watch:
    """What the attacker gets, for a sample of the rows that left alone.

    Rows are told in the order of ticks; a tick is looked at when rows have left two ticks later. `most` ticks are in
    the sample at once, and of each of them a few rows.
    """

    def __init__(self, most: int = 2_000, of_each: int = 8) -> None:
        self._most, self._of_each = most, of_each
        self._mask = np.uint64(0)
        self._open: Left | None = None
        self._found: dict[int, list[int]] = {}

    def see(self, left: Left) -> None:
        """Rows that leave."""
        rows = left if self._open is None else self._open.joined(left)
        over = rows.ticks < int(rows.ticks.max(initial=0)) - 1
        self._look(rows.take(over))
        self._open = rows.take(~over)

    def others(self) -> NDArray[np.int64]:
        """For each sampled row that left alone, how many other persons have a row in its tick that could be its own."""
        if self._open is not None:
            self._look(self._open)
            self._open = None
        return np.array([count for counts in self._found.values() for count in counts], np.int64)

    def _look(self, rows: Left) -> None:
        alone = np.unique(rows.ticks[rows.alone])
        for tick in alone[self._sampled(alone)].tolist():
            self._found[tick] = in_one_tick(rows.take(rows.ticks == tick), self._of_each)
        while len(self._found) > self._most:
            self._mask = (self._mask << np.uint64(1)) | np.uint64(1)
            ticks = np.array(list(self._found))
            for tick in ticks[~self._sampled(ticks)].tolist():
                del self._found[tick]

    def _sampled(self, ticks: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Every tick until there are too many; then those whose mixed bits end in zeros."""
        return np.asarray(((ticks.astype(np.uint64) * _ODD) >> _HALF) & self._mask == 0)


def in_one_tick(rows: Left, most: int) -> list[int]:
    """The same for up to so many rows of one tick, evenly among those that left alone."""
    alone = np.flatnonzero(rows.alone)
    victims = alone[np.linspace(0, len(alone) - 1, min(most, len(alone))).astype(np.int64)]
    counts = []
    for victim in victims.tolist():
        fits = ((rows.lo <= rows.quasi[victim]) & (rows.quasi[victim] <= rows.hi)).all(axis=1)
        counts.append(len(np.unique(rows.persons[fits & (rows.persons != rows.persons[victim])])))
    return counts
