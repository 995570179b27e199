"""Every attack as one number: on how many rows of a table it succeeds, before and after, and what it gets without it.

Each looks at classes of rows that the attacker cannot tell apart. Before a publication these are the rows with equal
quasi-identifiers, after it the published classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microdata import Publication
from privacy.attacks import homogeneity, linking, similarity, skewness
from privacy.exact import by_class
from privacy.model import Groups, Histogram

EXCLUDED = 1
"""Values that the attacker with background knowledge rules out."""
FACTOR = 2
"""How many times as frequent a value is in a class as in all rows where a class is skewed."""


@dataclass(frozen=True)
class Attack:
    """One attack, as people read it."""

    name: str
    gets: str
    """What its number says."""
    sensitive: bool
    """Whether it asks for a sensitive value, or whose a row is."""


@dataclass(frozen=True)
class Exposure:
    """What one attack gets. Shares of the published rows, from 0 to 1."""

    attack: Attack
    attribute: str | None
    """The sensitive attribute that it is about; None where it asks whose a row is."""
    before: float
    after: float
    baseline: float
    """What the attacker gets who has no table of rows, only how often each sensitive value occurs."""


_WHOSE = {
    "prosecutor": "highest chance to name the row of somebody who is known to be in the table",
    "marketer": "rows that are traced to the right person when everybody is linked",
    "linking": "rows of which one published row alone fits what is known of the person",
}
_VALUE = {
    "homogeneity": "rows whose value is certain, since all who could be meant have it",
    "background": f"rows whose value is certain to who can rule out {EXCLUDED} other value",
    "skewness": f"rows in classes where some value is {FACTOR} times as likely as in all rows, or more",
    "inference": "rows whose value is guessed right by betting on the most frequent one",
    "similarity": "rows of whose value the kind is certain, if not the value",
}
ATTACKS = {name: Attack(name, gets, sensitive=name in _VALUE) for name, gets in (_WHOSE | _VALUE).items()}
"""All attacks by name."""


def exposures(publication: Publication) -> tuple[Exposure, ...]:
    """What every attack gets from a publication, and from the table as it was."""
    table = publication.table
    plain = alike(table.quasi)
    before = Groups.of(table.schema, table.persons, table.sensitive, plain, int(plain.max(initial=-1)) + 1)
    after = Groups.of(table.schema, table.persons, table.sensitive, publication.classes, len(publication.boxes))
    persons = table.people
    return (*_who(publication, before, after, 1 / max(persons, 1)), *_what(before, after))


def alike(rows: NDArray[np.float64] | NDArray[np.int32]) -> NDArray[np.int64]:
    """Which rows are equal, by number."""
    classes = np.zeros(len(rows), np.int64)
    for column in rows.T:
        values = np.unique(column, return_inverse=True)[1].ravel()
        classes = np.unique(classes * (int(values.max(initial=0)) + 1) + values, return_inverse=True)[1].ravel()
    return classes


def _who(publication: Publication, before: Groups, after: Groups, nobody: float) -> Iterator[Exposure]:
    """Attacks that ask whose a row is."""
    yield Exposure(ATTACKS["prosecutor"], None, _highest(before), _highest(after), nobody)
    yield Exposure(ATTACKS["marketer"], None, _average(before), _average(after), nobody)
    yield Exposure(ATTACKS["linking"], None, _share(before, before.rows == 1), _singled_out(publication, after), 0.0)


def _highest(groups: Groups) -> float:
    return float(1 / groups.persons.min()) if len(groups) else 0.0


def _average(groups: Groups) -> float:
    return float((groups.rows / groups.persons).sum() / groups.rows.sum()) if len(groups) else 0.0


def _singled_out(publication: Publication, groups: Groups) -> float:
    # Who lies in the box of a class fits all of its rows.
    if not (groups.rows == 1).any():
        return 0.0
    linked = linking(publication.boxes.widened(), groups.rows, publication.table)
    own = publication.classes >= 0
    return float((linked.rows[own] == 1).sum() / max(own.sum(), 1))


def _what(before: Groups, after: Groups) -> Iterator[Exposure]:
    """Attacks that ask for a sensitive value."""
    for place, histogram in enumerate(after.histograms):
        for name, measure in _MEASURES.items():
            baseline = _most_frequent(histogram) if name == "inference" else 0.0
            attribute = histogram.attribute.name
            yield Exposure(ATTACKS[name], attribute, measure(before, place), measure(after, place), baseline)


def _homogeneity(groups: Groups, place: int) -> float:
    return homogeneity(groups)[place].exposed(groups) / _rows(groups)


def _background(groups: Groups, place: int) -> float:
    return _share(groups, np.diff(groups.histograms[place].starts) <= EXCLUDED + 1)


def _skewness(groups: Groups, place: int) -> float:
    return skewness(groups, FACTOR)[place].exposed(groups) / _rows(groups)


def _inference(groups: Groups, place: int) -> float:
    histogram = groups.histograms[place]
    return float(by_class(np.maximum, histogram.counts, histogram.starts, empty=0).sum() / _rows(groups))


def _similarity(groups: Groups, place: int) -> float:
    return similarity(groups)[place].exposed(groups) / _rows(groups)


_MEASURES: dict[str, Callable[[Groups, int], float]] = {
    "homogeneity": _homogeneity,
    "background": _background,
    "skewness": _skewness,
    "inference": _inference,
    "similarity": _similarity,
}


def _most_frequent(histogram: Histogram) -> float:
    return float(histogram.reference.max(initial=0) / max(histogram.total, 1))


def _share(groups: Groups, chosen: NDArray[np.bool_]) -> float:
    return float(groups.rows[chosen].sum() / _rows(groups))


def _rows(groups: Groups) -> int:
    return max(int(groups.rows.sum()), 1)
