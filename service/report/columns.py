"""How the values of each quasi-identifier are spread, before and after, for tables and for streams.

The domain is cut into equal parts, from its lowest to its highest value or in the order of its hierarchy, and neither
values nor labels are told. Parts with few persons are drawn together with their neighbours, so that no bar tells of
fewer than a class has.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, Boxes, Category, Publication, Schema, Table, attribute_loss
from privacy import contributions
from service.report.sections import Part, Spread

PARTS = 12
"""Parts of a domain."""
MOST_ROWS = 100_000
"""Rows on which it is measured what each column adds to the risk, the first ones."""
FEWEST = 5
"""Persons behind a bar, at least; as many as the smallest class has where these are more."""


class Spreads:
    """Counts on the way, so that a stream needs no memory of its rows."""

    def __init__(self, schema: Schema, fewest: int) -> None:
        self._schema, self._fewest = schema, max(fewest, FEWEST)
        self._ends = [_ends(attribute) for attribute in schema.quasi]
        self._before, self._after = ([np.zeros(len(ends) - 1) for ends in self._ends] for _ in range(2))
        self._persons = [[set[int]() for _ in ends[1:]] for ends in self._ends]
        self._lost = np.zeros(len(schema.quasi))
        self._published = 0
        self._first: list[tuple[NDArray[np.float64], NDArray[np.int64]]] = []
        self._kept = 0

    def take(self, quasi: NDArray[np.float64], persons: NDArray[np.int64]) -> None:
        """Rows as they are."""
        room = MOST_ROWS - self._kept
        if room > 0 and len(quasi):
            self._first.append((quasi[:room], persons[:room]))
            self._kept += len(quasi[:room])
        for a, ends in enumerate(self._ends):
            own = np.clip(np.searchsorted(ends, quasi[:, a], side="right") - 1, 0, len(ends) - 2)
            self._before[a] += np.bincount(own, minlength=len(ends) - 1)
            for part, known in enumerate(self._persons[a]):
                if len(known) < self._fewest:
                    # Any few of them are enough to know that they are enough.
                    known.update(np.unique(persons[own == part])[: self._fewest].tolist())

    def publish(self, boxes: Boxes, rows: NDArray[np.integer]) -> None:
        """Boxes as they are published, with so many rows each."""
        if not len(boxes):
            return
        self._lost += rows @ attribute_loss(boxes)
        self._published += int(rows.sum())
        for a, (attribute, ends) in enumerate(zip(self._schema.quasi, self._ends, strict=True)):
            # Whole numbers and leaves are as wide as the place that they take.
            first, last = boxes.lo[:, a], boxes.hi[:, a] + _counted(attribute)
            below = np.clip((ends[:, None] - first) / np.maximum(last - first, 1e-12), 0.0, 1.0)
            below[0], below[-1] = 0.0, 1.0
            self._after[a] += np.diff(below, axis=0) @ rows

    def found(self) -> list[Spread]:
        """Every quasi-identifier."""
        published, risks = max(self._published, 1), self._risks()
        return [
            Spread(
                name=attribute.name,
                loss=float(self._lost[a] / published),
                risk=risks[a],
                parts=list(self._parts(a)),
            )
            for a, attribute in enumerate(self._schema.quasi)
        ]

    def _risks(self) -> tuple[float, ...]:
        if not self._first:
            return (0.0,) * len(self._schema.quasi)
        quasi, persons = (np.concatenate(one) for one in zip(*self._first, strict=True))
        nothing = np.zeros((len(quasi), len(self._schema.sensitive)), np.int32)
        return contributions(Table(self._schema, persons, quasi, nothing))

    def _parts(self, a: int) -> Iterator[Part]:
        before, after = (one[a] / max(one[a].sum(), 1.0) for one in (self._before, self._after))
        ends = self._ends[a]
        for first, last in _together(self._persons[a], self._fewest):
            yield Part(
                width=float((ends[last] - ends[first]) / (ends[-1] - ends[0])),
                before=float(before[first:last].sum()),
                after=float(after[first:last].sum()),
            )


def _ends(attribute: Attribute) -> NDArray[np.float64]:
    """Where the parts of a domain begin and end; no value is cut in two."""
    if isinstance(attribute, Category):
        return np.unique(np.rint(np.linspace(0, attribute.size, PARTS + 1)))
    low, high = attribute.low, attribute.high + attribute.integer
    ends = np.linspace(low, high if high > low else low + 1, PARTS + 1)
    return np.unique(np.rint(ends)) if attribute.integer else ends


def _counted(attribute: Attribute) -> bool:
    return isinstance(attribute, Category) or attribute.integer


def _together(persons: list[set[int]], fewest: int) -> list[tuple[int, int]]:
    """Neighbours that are drawn as one, so that each has this many persons (or all together have fewer)."""
    runs: list[tuple[int, int]] = []
    start, known = 0, set[int]()
    for place, own in enumerate(persons):
        known |= own
        if len(known) >= fewest:
            runs.append((start, place + 1))
            start, known = place + 1, set()
    if start < len(persons):
        first = runs.pop()[0] if runs else 0
        runs.append((first, len(persons)))
    return runs


def spreads_of(publication: Publication, fewest: int) -> list[Spread]:
    """The quasi-identifiers of a table."""
    spreads = Spreads(publication.table.schema, fewest)
    spreads.take(publication.table.quasi, publication.table.persons)
    spreads.publish(publication.shown(), publication.sizes)
    return spreads.found()
