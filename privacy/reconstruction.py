"""What counts beside a table give away: the sensitive values of rows, put together from all sums that are known.

A published table says how often each value occurs in each class. Whoever also publishes counts, by age and sex say,
gives further sums over the same rows, and few sums are enough to solve for the rows, though they are rounded or noisy
(Dinur and Nissim, 2003; Dwork, McSherry and Talwar, 2007). What is looked for is a table of chances, rows × values, in
which every row adds up to 1 and every class to what it is published with, and which misses the counts by the least sum:
a linear program. Each row then has its likeliest value. Of all solutions that nearest to the table alone is taken, so
that a row of which the counts say nothing keeps the chances of its class; a value counts as certain where the solution
that leans away from it as far as it can has it too.

The program is solved by steps (`_decoding_kernels.py`): a general solver takes seconds for a few hundred rows and is
one more dependency, and after some hundred rounds what is missing to the least sum decides no row any more.

Rows are looked at by whole classes, some of them by chance where there are very many: then somebody is assumed who
knows all others already, and gets no less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microdata import Publication
from privacy._decoding_kernels import decode
from privacy.exposure import alike

MOST_CELLS = 2_000_000
"""Rows × values × sums that are looked at in a round."""
ROUNDS = 500
CERTAIN = 0.95
"""A chance from which a value counts as known; so many rounds bring what is certain this far."""
_LEANING = 0.03
"""How much being near to a point counts: too little to outweigh a count."""
_STILL = 1e-3
"""What moves no farther in a round decides no row any more, or one or two of ten thousand (seen on Adult)."""
_ALIKE = 1e-3
"""Chances that so many rounds do not tell apart."""


@dataclass(frozen=True, eq=False)
class CountTable:
    """Counts of the values of a sensitive attribute that are to be published, rounded or noisy or as they are."""

    attribute: str
    fields: tuple[str, ...]
    """Quasi-identifiers that it is by."""
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    """For each count the least and the largest code of each of these fields."""
    values: NDArray[np.int64]
    """For each count the code of the sensitive value."""
    counts: NDArray[np.float64]


@dataclass(frozen=True)
class Reconstruction:
    """What is known of one sensitive attribute. Shares of the published rows."""

    attribute: str
    rows: int
    """Rows that were solved for."""
    off: float
    """What the counts are off by, on the average."""
    guessed_alone: float
    """Values guessed right, from the table alone."""
    guessed: float
    """The same with the counts."""
    certain_alone: float
    """Rows whose value is as good as certain, from the table alone."""
    certain: float
    """The same with the counts."""
    wrong: float
    """Rows for which another value than theirs seems as certain: noise does that."""


def reconstruction(
    publication: Publication,
    counts: Sequence[Sequence[str]],
    tables: Sequence[CountTable] = (),
    *,
    most_cells: int = MOST_CELLS,
) -> tuple[Reconstruction, ...]:
    """Solve for each sensitive attribute, given how often each of its values occurs for every combination of fields.

    Each entry of `counts` names quasi-identifiers whose combinations are counted, over the published rows, as they are;
    `tables` are counts as somebody made them. Attributes that none of them counts are left out.
    """
    found = []
    for column, attribute in enumerate(publication.table.schema.sensitive):
        own = [one for one in tables if one.attribute == attribute.name]
        if counts or own or not tables:
            found.append(_Sums(publication, column, counts, own, most_cells).solved(attribute.name))
    return tuple(found)


class _Sums:
    """All sums that are known about one sensitive attribute."""

    def __init__(
        self,
        publication: Publication,
        column: int,
        counts: Sequence[Sequence[str]],
        tables: Sequence[CountTable],
        most_cells: int,
    ) -> None:
        table = publication.table
        self._quasi, self._places = table.quasi, {one.name: place for place, one in enumerate(table.schema.quasi)}
        sensitive = table.sensitive[:, column]
        self._values = np.unique(np.concatenate([sensitive.astype(np.int64), *(one.values for one in tables)]))
        own = np.searchsorted(self._values, sensitive)
        published = np.flatnonzero(publication.classes >= 0)
        each = len(self._values) * (len(counts) + len(tables) + 1)
        self._rows = _some(publication, most_cells // max(each, 1))
        self._own = own[self._rows]
        classes = np.unique(publication.classes[self._rows], return_inverse=True)[1].ravel()
        # Who knows the quasi-identifiers of everybody cannot tell rows apart that are equal in them.
        used = sorted({self._places[name] for fields in (*counts, *(one.fields for one in tables)) for name in fields})
        together = np.stack([classes, alike(table.quasi[self._rows][:, used])], axis=1)
        _, first, self._cells, sizes = np.unique(
            together, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        self._cells, self._sizes = self._cells.ravel(), sizes.astype(np.float64)
        self._first, self._off = first, list[float]()
        self._known = [self._counted(classes)]
        self._regions = [(np.arange(len(first)), classes[first])]
        for fields in counts:
            groups = alike(table.quasi[self._rows][:, [self._places[name] for name in fields]])
            self._add(np.arange(len(first)), groups[first], self._counted(groups))
            self._off += [0.0] * self._known[-1].size
        for one in tables:
            self._add(*self._of_table(one, published, own))

    def _counted(self, groups: NDArray[np.int64]) -> NDArray[np.float64]:
        known = np.zeros((int(groups.max(initial=-1)) + 1, len(self._values)))
        np.add.at(known, (groups, self._own), 1)
        return known

    def _add(self, cells: NDArray[np.int64], regions: NDArray[np.int64], known: NDArray[np.float64]) -> None:
        before = sum(map(len, self._known))
        self._regions.append((cells, regions + before))
        self._known.append(known)

    def _of_table(
        self, one: CountTable, published: NDArray[np.int64], own: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Which cells are in the box of which counts, and these; of rows that are not solved for the truth is known."""
        columns = [self._places[name] for name in one.fields]
        boxes, box_of = np.unique(np.concatenate([one.lo, one.hi], axis=1), axis=0, return_inverse=True)
        box_of, values = box_of.ravel(), np.searchsorted(self._values, one.values)
        known = np.full((len(boxes), len(self._values)), np.nan)
        true_of_all = _inside(self._quasi[published][:, columns], own[published], boxes, len(self._values))
        true_here = _inside(self._quasi[self._rows][:, columns], self._own, boxes, len(self._values))
        wrong = one.counts - true_of_all[box_of, values]
        known[box_of, values] = true_here[box_of, values] + wrong
        self._off += np.abs(wrong).tolist()
        points = self._quasi[self._rows[self._first]][:, columns]
        pairs = [(np.flatnonzero(_within(points, box)), number) for number, box in enumerate(boxes)]
        cells = np.concatenate([np.empty(0, np.int64), *(inside for inside, _ in pairs)])
        regions = np.concatenate([np.empty(0, np.int64), *(np.full(len(inside), number) for inside, number in pairs)])
        return cells, regions, known

    def solved(self, name: str) -> Reconstruction:
        """From the table alone, and with everything."""
        classes = self._known[0]
        alone = (classes / np.maximum(classes.sum(axis=1, keepdims=True), 1))[self._regions[0][1]]
        together = self._solve(alone)
        # Where that is not the only solution it can lean away from what seems certain; the others do not pull.
        seems = together.max(axis=1, keepdims=True) >= CERTAIN
        away = self._solve(np.where(seems, (1 - together) / max(len(self._values) - 1, 1), together))
        least = np.minimum(together, away)
        return Reconstruction(
            name,
            len(self._rows),
            off=float(np.mean(self._off)) if self._off else 0.0,
            guessed_alone=_guessed(alone[self._cells], self._own),
            guessed=_guessed(together[self._cells], self._own),
            certain_alone=_certain(alone[self._cells], self._own),
            certain=_certain(least[self._cells], self._own),
            wrong=_certain(least[self._cells]) - _certain(least[self._cells], self._own),
        )

    def _solve(self, near: NDArray[np.float64]) -> NDArray[np.float64]:
        cells = np.concatenate([one for one, _ in self._regions])
        regions = np.concatenate([one for _, one in self._regions])
        order = np.argsort(cells, kind="stable")
        starts = np.searchsorted(cells[order], np.arange(len(near) + 1))
        known = np.concatenate(self._known)
        hard = np.arange(len(known)) < len(self._known[0])
        chances, _ = decode(
            starts, regions[order].astype(np.int32), self._sizes, known, hard, near, _LEANING, ROUNDS, _STILL
        )
        return np.asarray(chances)


def _some(publication: Publication, most: int) -> NDArray[np.int64]:
    """All published rows, or those of classes drawn by chance."""
    order = np.random.default_rng(0).permutation(len(publication.sizes))
    chosen = order[np.cumsum(publication.sizes[order]) <= max(most, 1)]
    return np.flatnonzero(np.isin(publication.classes, chosen))


def _inside(
    points: NDArray[np.float64], values: NDArray[np.int64], boxes: NDArray[np.float64], count: int
) -> NDArray[np.float64]:
    """How often each value occurs in each box."""
    some, of = np.unique(points, axis=0, return_inverse=True)
    each = np.zeros((len(some), count))
    np.add.at(each, (of.ravel(), values), 1)
    return np.stack([each[_within(some, box)].sum(axis=0) for box in boxes]) if len(boxes) else np.zeros((0, count))


def _within(points: NDArray[np.float64], box: NDArray[np.float64]) -> NDArray[np.bool_]:
    lo, hi = np.split(box, 2)
    return np.asarray(((points >= lo) & (points <= hi)).all(axis=1))


def _guessed(chances: NDArray[np.float64], values: NDArray[np.int64]) -> float:
    """Values that are the likeliest; where several are, as often as a draw among them would be right."""
    best = chances >= chances.max(axis=1, keepdims=True, initial=0.0) - _ALIKE
    right = best[np.arange(len(values)), values] / np.maximum(best.sum(axis=1), 1)
    return float(right.mean()) if len(values) else 0.0


def _certain(chances: NDArray[np.float64], values: NDArray[np.int64] | None = None) -> float:
    """Rows of which one value is certain: these, or any."""
    own = chances.max(axis=1, initial=0.0) if values is None else chances[np.arange(len(values)), values]
    return float((own >= CERTAIN).mean()) if len(own) else 0.0
