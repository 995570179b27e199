"""What counts beside a table give away: the sensitive values of rows, put together from all sums that are known.

A published table says how often each value occurs in each class. Whoever also publishes counts, by age and sex say,
gives further sums over the same rows, and few sums are enough to solve for the rows (Dinur and Nissim, 2003). What is
looked for is a table of chances, rows × values, in which every row adds up to 1 and every sum is met. Correcting one
kind of sums after the other leads to the one that assumes least beside them (iterative proportional fitting), if there
is any: and there is one, the truth. A value that all solutions share, as a linear program would find it, gets a chance
that goes to 1.

Rows are looked at by whole classes, some of them by chance where there are very many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microdata import Publication
from privacy.exposure import alike

MOST_CELLS = 4_000_000
"""Rows × values × sums that are looked at in a round."""
ROUNDS = 200
CERTAIN = 0.95
"""A chance from which a value counts as known; so many rounds bring what is certain this far."""
_NEAR = 1e-6


@dataclass(frozen=True)
class Reconstruction:
    """What is known of one sensitive attribute. Shares of the published rows."""

    attribute: str
    rows: int
    """Rows that were solved for."""
    guessed_alone: float
    """Values guessed right, from the table alone."""
    guessed: float
    """The same with the counts."""
    certain_alone: float
    """Rows whose value is as good as certain, from the table alone."""
    certain: float
    """The same with the counts."""


def reconstruction(
    publication: Publication, counts: Sequence[Sequence[str]], *, most_cells: int = MOST_CELLS
) -> tuple[Reconstruction, ...]:
    """Solve for each sensitive attribute, given how often each of its values occurs for every combination of fields.

    Each entry of `counts` names quasi-identifiers whose combinations are counted, over the published rows.
    """
    table, found = publication.table, []
    places = {attribute.name: place for place, attribute in enumerate(table.schema.quasi)}
    for column, attribute in enumerate(table.schema.sensitive):
        values, codes = np.unique(table.sensitive[:, column], return_inverse=True)
        rows = _some(publication, most_cells // max(len(values) * (len(counts) + 1), 1))
        # Who knows the quasi-identifiers of everybody cannot tell rows apart that are equal in them.
        classes = np.unique(publication.classes[rows], return_inverse=True)[1].ravel()
        sums = [classes, *(alike(table.quasi[rows][:, [places[name] for name in fields]]) for fields in counts)]
        own = codes.ravel()[rows]
        alone, together = (_solve(some, own, len(values)) for some in (sums[:1], sums))
        found.append(
            Reconstruction(
                attribute.name,
                len(rows),
                *(_guessed(chances, own) for chances in (alone, together)),
                *(_certain(chances, own) for chances in (alone, together)),
            )
        )
    return tuple(found)


def _some(publication: Publication, most: int) -> NDArray[np.int64]:
    """All published rows, or those of classes drawn by chance."""
    order = np.random.default_rng(0).permutation(len(publication.sizes))
    chosen = order[np.cumsum(publication.sizes[order]) <= max(most, 1)]
    return np.flatnonzero(np.isin(publication.classes, chosen))


def _solve(groupings: Sequence[NDArray[np.int64]], values: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """The chance of each value for each row, by the sums of all groupings."""
    sums = []
    for groups in groupings:
        known = np.zeros((int(groups.max(initial=-1)) + 1, count))
        np.add.at(known, (groups, values), 1)
        sums.append(known)
    chances = np.full((len(values), count), 1 / max(count, 1))
    for _ in range(ROUNDS):
        before = chances
        for groups, known in zip(groupings, sums, strict=True):
            chances = chances * _ratio(known, _added(chances, groups, len(known)))[groups]
            chances /= np.maximum(chances.sum(axis=1, keepdims=True), 1e-300)
        if np.abs(chances - before).max(initial=0.0) < _NEAR:
            break
    return chances


def _added(chances: NDArray[np.float64], groups: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    return np.stack([np.bincount(groups, column, count) for column in chances.T], axis=1)


def _ratio(known: NDArray[np.float64], now: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(known, now, out=np.zeros_like(known), where=now > 0)


def _guessed(chances: NDArray[np.float64], values: NDArray[np.int64]) -> float:
    """Values that are the likeliest; where several are, as often as a draw among them would be right."""
    best = chances >= chances.max(axis=1, keepdims=True, initial=0.0) - _NEAR
    right = best[np.arange(len(values)), values] / np.maximum(best.sum(axis=1), 1)
    return float(right.mean()) if len(values) else 0.0


def _certain(chances: NDArray[np.float64], values: NDArray[np.int64]) -> float:
    return float((chances[np.arange(len(values)), values] >= CERTAIN).mean()) if len(values) else 0.0
