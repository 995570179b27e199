"""Singling out, linkability and inference: each tried on people in the table, and on people who are not in it.

What an attacker learns about everybody, that smokers fall ill more often, is no harm that a table did to those in it.
So some persons are taken out of the classes, and the attack is tried on them too: what it gets there is the control.
The risk is what it gets beyond that, as a share of what is left to get. All come with a baseline, what somebody gets
without the table, and with an interval, since so many people are tried and not all.

The boxes stay as they are, made with everybody, so that the control knows a little more than it should; it is a tenth
of the persons at most.

Article 29 Working Party, Opinion 05/2014 on Anonymisation Techniques. Giomi and others, A Unified Framework for
Quantifying Privacy Risk in Synthetic Data (PoPETs 2023), whose measure of risk this is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import Publication, attribute_loss
from privacy.exposure import Attack, alike
from privacy.model import Groups, Histogram

TARGETS = 500
"""People that each attack is tried on, and as many who are not in the table."""
FEWEST = 200
"""Persons that a table must have: with fewer, an interval would say nothing."""
POOL = 20
"""People among whom the second half of somebody's record is looked for."""
_CONTROL = 10
"""One person in so many may be a control."""
_Z = 1.959964


@dataclass(frozen=True)
class Rate:
    """A share of so many trials."""

    share: float
    tried: int

    @property
    def interval(self) -> tuple[float, float]:
        """Where the share of all lies, with 95 % confidence (Wilson).

        >>> low, high = Rate(0.0, 100).interval
        >>> low, round(high, 3)
        (0.0, 0.037)
        """
        n, z = max(self.tried, 1), _Z
        middle = (self.share + z * z / (2 * n)) / (1 + z * z / n)
        reach = z / (1 + z * z / n) * math.sqrt(self.share * (1 - self.share) / n + z * z / (4 * n * n))
        return max(middle - reach, 0.0), min(middle + reach, 1.0)


@dataclass(frozen=True)
class Trial:
    """One attack, as it went."""

    attack: str
    attribute: str | None
    """The sensitive attribute that it asks for; None for others."""
    gets: str
    before: float | None
    """On people in the table as it was; None where that was not tried."""
    after: Rate
    """On people in the table."""
    control: Rate
    """On people who are not."""
    baseline: float
    """Without the table."""

    @property
    def risk(self) -> float:
        """What being in the table adds, as a share of what is left to get."""
        return _risk(self.after.share, self.control.share)

    @property
    def risk_interval(self) -> tuple[float, float]:
        """Where that lies, with 95 % confidence."""
        reach = [(high - low) / 2 for low, high in (self.after.interval, self.control.interval)]
        left = max(1 - self.control.share, 1e-9)
        error = math.hypot(reach[0] / left, (1 - self.after.share) / left**2 * reach[1])
        return max(self.risk - error, 0.0), min(self.risk + error, 1.0)


def least_risk(tried: int = TARGETS) -> float:
    """What the interval of a risk reaches up to where an attack fails on everybody: less cannot be shown.

    >>> round(least_risk(), 4)
    0.0054
    """
    never = Rate(0.0, tried)
    return Trial("", None, "", None, never, never, 0.0).risk_interval[1]


def _risk(share: float, control: float) -> float:
    return max(share - control, 0.0) / max(1 - control, 1e-9)


TRIALS = {
    "singling_out": Attack(
        "singling out",
        "what a published row says (its intervals and sensitive values) fits one person in the table alone",
        sensitive=False,
    ),
    "linkability": Attack(
        "linkability",
        f"one half of somebody's columns is put together with the other half, out of those of {POOL} people",
        sensitive=False,
    ),
    "controlled_inference": Attack(
        "inference",
        "the value is guessed right, as the most frequent one of all published rows that could be theirs",
        sensitive=True,
    ),
}
"""The three, by the names that tell them from the attacks without a control."""
_GETS = {one.name: one.gets for one in TRIALS.values()}


class _Outcome(NamedTuple):
    """What came of one attack on one publication."""

    attack: str
    attribute: str | None
    own: Rate
    control: Rate
    baseline: float


def trials(publication: Publication, *, targets: int = TARGETS, seed: int = 0) -> tuple[Trial, ...]:
    """Try all three; none where there are too few persons."""
    table, own = publication.table, publication.classes >= 0
    # In the order of their rows: by their codes, which are new in each run, others would be drawn each time.
    persons = table.persons[own][np.sort(np.unique(table.persons[own], return_index=True)[1])]
    if len(persons) < FEWEST:
        return ()
    plain = Publication.of(table, np.where(own, alike(table.quasi), -1))
    return tuple(
        Trial(now.attack, now.attribute, _GETS[now.attack], then.own.share, now.own, now.control, now.baseline)
        for now, then in zip(
            _Attacked(publication, persons, targets, seed).tried(),
            _Attacked(plain, persons, targets, seed).tried(),
            strict=True,
        )
    )


class _Attacked:
    """A publication without the people who are the control."""

    def __init__(self, publication: Publication, persons: NDArray[np.int64], targets: int, seed: int) -> None:
        self.table, boxes = publication.table, publication.boxes.widened()
        self.random = np.random.default_rng(seed)
        count = min(targets, len(persons) // _CONTROL)
        drawn = self.random.permutation(persons)[: 2 * count]
        rows = self._a_row_of_each(drawn, publication.classes)
        self.control, self.targets = rows[:count], rows[count:]
        inside = (publication.classes >= 0) & ~np.isin(self.table.persons, drawn[:count])
        self.inside = np.flatnonzero(inside)
        self.classes = np.where(inside, publication.classes, -1)
        self.sizes = np.bincount(self.classes[inside], minlength=len(boxes))
        self.lo, self.hi = np.ascontiguousarray(boxes.lo.T), np.ascontiguousarray(boxes.hi.T)
        # Columns that tell most come first, so that little is left to look at.
        loss, distinct = attribute_loss(boxes).mean(axis=0), [len(np.unique(low)) for low in self.lo]
        self.order = sorted(range(len(self.lo)), key=lambda column: (loss[column], -distinct[column]))
        left = np.flatnonzero(self.sizes)
        self._first = {column: _Beginning(left, self.lo[column]) for column in self.order[:2]}
        self._are_points = bool((self.lo == self.hi).all())
        self._points: dict[tuple[int, ...], _Points] = {}

    def _a_row_of_each(self, persons: NDArray[np.int64], classes: NDArray[np.integer]) -> NDArray[np.int64]:
        """One published row of each person, by chance."""
        rows = self.random.permutation(np.flatnonzero(classes >= 0))
        found, first = np.unique(self.table.persons[rows], return_index=True)
        return rows[first[np.searchsorted(found, persons)]]

    def tried(self) -> Iterator[_Outcome]:
        """Every attack."""
        yield self._singling_out()
        if len(self.order) > 1:
            yield self._linkability()
        yield from self._inference()

    def _singling_out(self) -> _Outcome:
        looked_up = _Persons(self)
        own = others = nothing = 0
        for target, stand_in in zip(self.targets.tolist(), self.control.tolist(), strict=True):
            box, code = np.full(len(self.lo), self.classes[target]), looked_up.codes[target]
            fitting = looked_up.fitting(box, code)
            own += fitting == 1
            # The same table, with somebody else in the place of the target.
            others += fitting - 1 + (looked_up.codes[stand_in] == code and self._covers(box, stand_in)) == 1
            # Intervals and values that occur, each drawn by itself.
            drawn = self.random.choice(self.inside, len(self.lo) + 1)
            nothing += looked_up.fitting(self.classes[drawn[1:]], looked_up.codes[drawn[0]]) == 1
        tried = len(self.targets)
        return _Outcome("singling out", None, Rate(own / tried, tried), Rate(others / tried, tried), nothing / tried)

    def _covers(self, box: NDArray[np.int64], row: int) -> bool:
        values = self.table.quasi[row]
        return all(self.lo[c][box[c]] <= values[c] <= self.hi[c][box[c]] for c in self.order)

    def _fitting(self, row: int, columns: Sequence[int]) -> NDArray[np.int64]:
        """Classes with rows whose boxes fit somebody in these columns."""
        if self._are_points:
            own = tuple(columns)
            if own not in self._points:
                self._points[own] = _Points(alike(self.table.quasi[:, own]), self.classes)
            return self._points[own].of(row)
        values = self.table.quasi[row]
        found = self._first[columns[0]].up_to(values[columns[0]])
        for column in columns:
            low, high = self.lo[column][found], self.hi[column][found]
            found = found[(low <= values[column]) & (values[column] <= high)]
        return found

    def _linkability(self) -> _Outcome:
        halves = self.order[::2], self.order[1::2]
        own, others = (self._linked(rows, *halves) for rows in (self.targets, self.control))
        return _Outcome("linkability", None, own, others, 1 / POOL)

    def _linked(self, rows: NDArray[np.int64], one: Sequence[int], other: Sequence[int]) -> Rate:
        """How often the right second half is the likeliest of a pool, by the rows that fit both."""
        right, tried = 0.0, len(rows) // POOL * POOL
        for pool in rows[:tried].reshape(-1, POOL).tolist():
            second = [self._fitting(row, other) for row in pool]
            rows_of_second = [max(int(self.sizes[found].sum()), 1) for found in second]
            member = np.zeros(len(self.sizes), np.int64)
            for place, row in enumerate(pool):
                first = self._fitting(row, one)
                member[first] = self.sizes[first]
                likely = np.array([member[found].sum() for found in second]) / rows_of_second
                best = likely == likely.max()
                right += best[place] / best.sum()
                member[first] = 0
        return Rate(right / max(tried, 1), tried)

    def _inference(self) -> Iterator[_Outcome]:
        table = self.table
        groups = Groups.of(table.schema, table.persons, table.sensitive, self.classes, len(self.sizes))
        fitting = [[self._fitting(row, self.order) for row in rows.tolist()] for rows in (self.targets, self.control)]
        for place, histogram in enumerate(groups.histograms):
            counts = np.bincount(table.sensitive[self.inside, place], minlength=len(histogram.reference))
            usual = int(counts.argmax())
            own, others = (
                Rate(
                    float(np.mean([_bet(histogram, f, usual) for f in found] == table.sensitive[rows, place])),
                    len(rows),
                )
                for rows, found in zip((self.targets, self.control), fitting, strict=True)
            )
            yield _Outcome(
                "inference", histogram.attribute.name, own, others, float(counts[usual] / max(counts.sum(), 1))
            )


class _Beginning:
    """Classes in the order in which their boxes begin in one column."""

    def __init__(self, classes: NDArray[np.int64], low: NDArray[np.float64]) -> None:
        self._classes = classes[np.argsort(low[classes], kind="stable")]
        self._starts = low[self._classes]

    def up_to(self, value: float) -> NDArray[np.int64]:
        """Those that may have a value."""
        return self._classes[: np.searchsorted(self._starts, value, side="right")]


class _Points:
    """Classes of rows that are all alike, by what these are in some columns."""

    def __init__(self, alike: NDArray[np.int64], classes: NDArray[np.integer]) -> None:
        self._alike = alike
        inside = np.flatnonzero(classes >= 0)
        self._classes, first = np.unique(classes[inside], return_index=True)
        order = np.argsort(alike[inside[first]], kind="stable")
        self._classes, self._sorted = self._classes[order].astype(np.int64), alike[inside[first]][order]

    def of(self, row: int) -> NDArray[np.int64]:
        """Those that are like a row."""
        begin, end = np.searchsorted(self._sorted, [self._alike[row], self._alike[row] + 1])
        return self._classes[begin:end]


def _bet(histogram: Histogram, classes: NDArray[np.int64], usual: int) -> int:
    """The most frequent value of these classes; the usual one where there is none."""
    if not len(classes):
        return usual
    parts = [slice(histogram.starts[one], histogram.starts[one + 1]) for one in classes.tolist()]
    values, counts = (
        np.concatenate([column[part] for part in parts]) for column in (histogram.values, histogram.counts)
    )
    return int(np.bincount(values, counts).argmax())


class _Persons:
    """Rows by their sensitive values, so that only those with the right ones are looked at."""

    def __init__(self, attacked: _Attacked) -> None:
        self._attacked = attacked
        self.codes = alike(attacked.table.sensitive)
        rows = attacked.inside[np.argsort(self.codes[attacked.inside], kind="stable")]
        self._starts = np.searchsorted(self.codes[rows], np.arange(int(self.codes.max(initial=0)) + 2))
        self._columns, self._owners = np.ascontiguousarray(attacked.table.quasi[rows].T), attacked.table.persons[rows]

    def fitting(self, box: NDArray[np.int64], code: int) -> int:
        """How many persons intervals (of one class for each column) and sensitive values fit."""
        lo, hi, found = self._attacked.lo, self._attacked.hi, np.arange(self._starts[code], self._starts[code + 1])
        for column in self._attacked.order:
            values = self._columns[column][found]
            found = found[(lo[column][box[column]] <= values) & (values <= hi[column][box[column]])]
        return len(np.unique(self._owners[found]))
