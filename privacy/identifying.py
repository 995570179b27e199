"""Which fields identify: how many rows are alone in a combination of values, for every few fields of a data set.

A set of fields is an α-quasi-identifier where a share of α of the rows belongs to a combination that one person has.
With more fields that share only grows, so that the minimal ones say everything, and nothing that contains one has to be
looked at; nor has anything whose fields have too few values between them. Rows that are alone stay alone, so that only
the others are looked at again.

Very many rows are not all looked at: a combination is, with all of its rows, by chance and once for all. That estimates
each share without bias; its error is that of such a sample (Horvitz and Thompson) and told beside it.

Lodha and Thomas, Probabilistic Anonymity (PinKDD 2007).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microdata import Progress, Table, silent
from microdata.field_keys import FieldKeys
from privacy._identifying_kernels import count_alike, determines
from privacy.counting import unique_share

NEAR_KEY = 0.9
"""Share of rows that a field alone singles out from which it is nearly a key."""
KNOWN = 0.01
"""Share of rows alone from which a field has too many values that were not seen: so many of the next rows have one."""
MOST_SETS = 10_000
"""Minimal sets that are gathered; more say no more."""
CLOSEST = 5
"""Sets below α that are told where none reaches it."""
EFFORT = 20_000_000_000
"""Rows that are looked at in all, each time counted."""
LOOKED_AT = 1 << 18
"""Of more than four times as many rows, about so many are looked at."""
_ALL = (1 << 64) - 1
_NOBODY = np.empty(0, np.int64)
_EVERY_ROW = np.empty(0, np.int32)


@dataclass(frozen=True)
class FieldRisk:
    """One field."""

    name: str
    distinct: int
    distinct_error: float
    """The number of values is this near to the true one, as a share of it, with 95 % confidence; 0 if exact."""
    missing: float
    """Share of the rows without a value."""
    alone: float
    """Share of the rows that this field singles out by itself."""
    falls: float | None
    """By how much the share of all fields together falls without it; None where it is not one of those."""
    sets: int
    """Minimal identifying sets that it is part of."""
    determines: tuple[str, ...]
    """Fields whose value follows from its own, near-keys and constants aside."""
    same_as: str | None
    """A field before it that tells the very same; then this one is in no set."""

    @property
    def near_key(self) -> bool:
        """Whether a value points at a row."""
        return self.alone >= NEAR_KEY


@dataclass(frozen=True)
class SetRisk:
    """Some fields together."""

    fields: tuple[str, ...]
    alone: float
    """Share of the rows that they single out."""
    error: float
    """The share is this near to the true one, with 95 % confidence; 0 where all rows were looked at."""
    bound: float | None
    """F(D, n): the most that their numbers of values allow in a population of n.

    None without a population, and with a field that has further values there.
    """


@dataclass(frozen=True)
class Identifying:
    """What identifies in a data set."""

    rows: int
    counted: int
    """Rows over which values were counted: those, or more."""
    population: int | None
    """People that the bounds are about."""
    share: float
    """α: rows that a set must single out to be listed."""
    size: int
    """Fields of a set, at most."""
    complete: int
    """The size up to which every set was looked at, or could be left out."""
    looked_at: float
    """Share of the combinations that were looked at."""
    fields: tuple[FieldRisk, ...]
    together: SetRisk
    """All fields, without those that identify by themselves or tell the same as another."""
    sets: tuple[SetRisk, ...]
    """Minimal sets that identify: the smallest first, among them the worst."""
    closest: tuple[SetRisk, ...]
    """Where none does, those that come closest."""


def identifying(
    data: FieldKeys,
    *,
    person: str | None = None,
    share: float = 0.2,
    size: int = 3,
    population: int | None = None,
    effort: int = EFFORT,
    looked_at: int = LOOKED_AT,
    progress: Progress = silent,
) -> Identifying:
    """Look at every field, and at all sets of up to `size` of them.

    Without a person every row is about another one.
    """
    looking = _Looking(data, person, share, size, population, looked_at)
    sets, closest, complete = looking.search(effort, progress)
    together = looking.everything()
    return Identifying(
        rows=len(data),
        counted=data.counted.rows if data.counted else len(data),
        population=looking.population,
        share=share,
        size=size,
        complete=complete,
        looked_at=looking.rate,
        fields=tuple(looking.fields(sets)),
        together=together,
        sets=sets,
        closest=closest if not sets else (),
    )


def alone_in(data: FieldKeys, names: Sequence[str], person: str | None = None) -> float:
    """Share of the rows that these fields single out, all rows looked at; 0 without fields."""
    if not names or not len(data):
        return 0.0
    by_name = dict(zip(data.names, data.keys, strict=True))
    keys = np.add.reduce([by_name[name] for name in names[:-1]] or [np.zeros(len(data), np.uint64)])
    return _alone(keys, by_name[names[-1]], _persons(data, person))[1] / len(data)


def contributions(table: Table) -> tuple[float, ...]:
    """By how much the share of rows that the quasi-identifiers single out falls without each of them."""
    chance = np.random.default_rng(secrets.randbits(128))
    columns = [np.unique(column, return_inverse=True)[1].ravel() for column in table.quasi.T]
    # Equal where values are, as in `FieldKeys`.
    keys = [chance.integers(0, _ALL, int(column.max(initial=0)) + 1, np.uint64)[column] for column in columns]
    persons = np.unique(table.persons, return_inverse=True)[1].ravel()
    together, nothing = np.add.reduce(keys), np.zeros(len(table), np.uint64)
    alone = _alone(together, nothing, persons)[1]
    return tuple((alone - _alone(together - own, nothing, persons)[1]) / max(len(table), 1) for own in keys)


def _alone(keys: NDArray[np.uint64], column: NDArray[np.uint64], persons: NDArray[np.int64]) -> tuple[int, int]:
    """Combinations, and rows that are alone, of all rows."""
    combinations, alone, *_ = count_alike(keys, column, _EVERY_ROW, persons, len(keys), np.uint64(_ALL), keep=False)
    return combinations, alone


def _persons(data: FieldKeys, person: str | None) -> NDArray[np.int64]:
    """A number for each row's person; none where every row has its own."""
    if person is None:
        return _NOBODY
    return np.unique(data.keys[data.names.index(person)], return_inverse=True)[1].ravel()


@dataclass(frozen=True)
class _Single:
    """What is known about a field by itself."""

    name: str
    keys: NDArray[np.uint64]
    missing: float
    """Share of the rows."""
    counted: int
    """Values in all rows that were counted."""
    error: float
    distinct: int
    """Values in the rows that are looked at."""
    alone: float


@dataclass(frozen=True)
class _Prefix:
    """The fields of a set but its last one: what is left to look at."""

    fields: tuple[int, ...]
    rows: NDArray[np.int32]
    """Rows that are not alone yet; none stands for all rows."""
    keys: NDArray[np.uint64]
    alone: int
    """Rows that are."""


class _Looking:
    """One look at a data set."""

    def __init__(
        self, data: FieldKeys, person: str | None, share: float, size: int, population: int | None, looked_at: int
    ) -> None:
        self.count, self.share, self.size, self.population = len(data), share, size, population
        self.rate = 1.0 if self.count <= 4 * looked_at else looked_at / self.count
        self._limit = np.uint64(_ALL if self.rate == 1 else int(self.rate * 2.0**64))
        self._persons = _persons(data, person)
        nothing = np.zeros(self.count, np.uint64)
        singles = [self._single(data, place, nothing) for place, name in enumerate(data.names) if name != person]
        self._every = {one.name: one for one in singles}
        self._determined = {one.name: tuple(self._determined_by(one)) for one in singles}
        self._same = dict(self._twins())
        # Those that tell most first: what contains an identifying set need not be looked at.
        self.singles = sorted(
            (one for one in singles if one.name not in self._same), key=lambda one: (-one.alone, -one.distinct)
        )
        self._telling = [place for place, one in enumerate(self.singles) if one.alone < share]
        self._nothing, self._sum_of_all = nothing, np.zeros(self.count, np.uint64)
        for place in self._telling:
            self._sum_of_all += self.singles[place].keys

    def _single(self, data: FieldKeys, place: int, nothing: NDArray[np.uint64]) -> _Single:
        name, keys, known = data.names[place], data.keys[place], data.counted
        distinct, alone = _alone(nothing, keys, self._persons)
        missing, rows = data.missing[place], max(self.count, 1)
        own: tuple[float, int, float] = missing / rows, distinct, 0.0
        if known:
            own = known.missing[place] / max(known.rows, 1), known.distinct[place], known.errors[place]
        return _Single(name, keys, *own, distinct, alone / rows)

    def search(self, effort: int, progress: Progress) -> tuple[tuple[SetRisk, ...], tuple[SetRisk, ...], int]:
        """Minimal identifying sets, those that come closest, and the size up to which the search is complete."""
        found: list[SetRisk] = []
        masks: list[int] = []
        closest: list[SetRisk] = []
        start, spent = _Prefix((), _EVERY_ROW, self._nothing, 0), 0
        for size in range(1, self.size + 1):
            progress("looking for sets", size - 1, self.size)
            for prefix, last in self._candidates(start, size, masks):
                counted, spent = self._counted(prefix, last), spent + len(prefix.keys)
                if counted.alone >= self.share:
                    found.append(counted)
                    masks.append(_mask((*prefix.fields, last)))
                else:
                    closest = sorted([*closest, counted], key=lambda one: -one.alone)[:CLOSEST]
                if spent > effort or len(found) == MOST_SETS:
                    return _worst_first(found), tuple(closest), size - 1
        progress("looking for sets", self.size, self.size)
        return _worst_first(found), tuple(closest), self.size

    def _candidates(self, prefix: _Prefix, size: int, masks: list[int]) -> Iterator[tuple[_Prefix, int]]:
        """All sets of this size that may identify and contain none that does, as what is known and a last field."""
        first = prefix.fields[-1] + 1 if prefix.fields else 0
        missing = size - len(prefix.fields)
        for field in range(first, len(self.singles) - missing + 1):
            fields = (*prefix.fields, field)
            if not self._may_identify(fields, missing - 1) or _contains(fields, masks):
                continue
            if missing == 1:
                yield prefix, field
            else:
                yield from self._candidates(self._longer(prefix, field), size, masks)

    def _may_identify(self, fields: tuple[int, ...], further: int) -> bool:
        """Whether these fields, and the most telling that may follow, have values for so many combinations."""
        values = [self.singles[one].distinct for one in fields]
        values += sorted((one.distinct for one in self.singles[fields[-1] + 1 :]), reverse=True)[:further]
        # A person's rows may share a combination, so that there are fewer combinations than rows.
        return len(self._persons) > 0 or math.prod(values) >= self.share * self.count

    def _longer(self, prefix: _Prefix, field: int) -> _Prefix:
        column, fields = self.singles[field].keys, (*prefix.fields, field)
        if self.rate < 1:
            return _Prefix(fields, prefix.rows, prefix.keys + column, 0)
        _, alone, _, rows, keys = self._alike(prefix, column, self._most(fields), keep=True)
        return _Prefix(fields, rows, keys, prefix.alone + alone)

    def _counted(self, prefix: _Prefix, last: int) -> SetRisk:
        fields, column = (*prefix.fields, last), self.singles[last].keys
        if not len(prefix.keys):
            alone, squares = 0, 0
        else:
            _, alone, squares, *_ = self._alike(prefix, column, self._most(fields), keep=False)
        return self._risk(fields, prefix.alone + alone, squares)

    def _risk(self, fields: Sequence[int], alone: int, squares: int) -> SetRisk:
        chosen = [self.singles[one] for one in fields]
        names = sorted((one.name for one in chosen), key=list(self._every).index)
        looked_at = max(self.rate * self.count, 1)
        return SetRisk(
            fields=tuple(names),
            alone=min(alone / looked_at, 1.0),
            error=1.96 * math.sqrt(squares * (1 - self.rate)) / looked_at,
            bound=self._bound(chosen),
        )

    def _bound(self, chosen: Sequence[_Single]) -> float | None:
        if self.population is None or any(one.alone >= KNOWN for one in chosen):
            return None
        return unique_share(math.prod(one.counted for one in chosen), self.population)

    def everything(self) -> SetRisk:
        """All fields that do not identify by themselves."""
        return self._all_but(None)

    def _all_but(self, without: int | None) -> SetRisk:
        others = [one for one in self._telling if one != without]
        if not others:
            return SetRisk((), 0.0, 0.0, None)
        keys = self._sum_of_all if without is None else self._sum_of_all - self.singles[without].keys
        _, alone, squares, *_ = self._alike(_Prefix((), _EVERY_ROW, keys, 0), self._nothing, self.count, keep=False)
        return self._risk(others, alone, squares)

    def _alike(
        self, prefix: _Prefix, column: NDArray[np.uint64], most: int, *, keep: bool
    ) -> tuple[int, int, int, NDArray[np.int32], NDArray[np.uint64]]:
        return count_alike(prefix.keys, column, prefix.rows, self._persons, most, self._limit, keep=keep)

    def _most(self, fields: Sequence[int]) -> int:
        """Combinations that there can be."""
        return min(math.prod(self.singles[one].distinct for one in fields), self.count)

    def fields(self, sets: Sequence[SetRisk]) -> Iterator[FieldRisk]:
        """Every field, as the data has them."""
        together, places = self.everything().alone, {one.name: place for place, one in enumerate(self.singles)}
        for name, one in self._every.items():
            place = places.get(name)
            among = place is not None and one.alone < self.share
            yield FieldRisk(
                name=name,
                distinct=one.counted,
                distinct_error=one.error,
                missing=one.missing,
                alone=one.alone,
                falls=max(together - self._all_but(place).alone, 0.0) if among else None,
                sets=sum(name in found.fields for found in sets),
                determines=self._determined[name],
                same_as=self._same.get(name),
            )

    def _determined_by(self, one: _Single) -> Iterator[str]:
        """Fields that follow from this one. From a field whose values hardly come back everything would."""
        if 2 * one.distinct > self.count:
            return
        for other in self._every.values():
            fewer = 1 < other.distinct <= one.distinct
            if other is not one and fewer and determines(one.keys, other.keys, one.distinct):
                yield other.name

    def _twins(self) -> Iterator[tuple[str, str]]:
        """Fields that follow from one before them, and it from them."""
        names = list(self._every)
        for place, name in enumerate(names):
            for before in names[:place]:
                if before in self._determined[name] and name in self._determined[before]:
                    yield name, before
                    break


def _worst_first(sets: Sequence[SetRisk]) -> tuple[SetRisk, ...]:
    return tuple(sorted(sets, key=lambda one: (len(one.fields), -one.alone)))


def _mask(fields: Sequence[int]) -> int:
    return sum(1 << one for one in fields)


def _contains(fields: Sequence[int], masks: Sequence[int]) -> bool:
    own = _mask(fields)
    return any(mask & own == mask for mask in masks)
