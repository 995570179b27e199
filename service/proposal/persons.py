"""Which column says whom a row is about. Taking rows for persons where persons come back makes every k a lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from service.proposal.names import (
    names_direct,
    names_index,
    names_key,
    names_key_alone,
    names_measure,
    names_person,
    names_place,
    names_sensitive,
    names_thing,
    names_time,
)
from service.proposal.profile import Kind, Profile

COMES_BACK = 1.1
"""Rows per value from which a column repeats."""
_KEY_LIKE = r"^[A-Za-z]{1,8}[-_]?[0-9]{3,}$"
_DENSE = 0.9


@dataclass(frozen=True)
class Persons:
    """What the columns say about persons."""

    column: str | None
    """The column that most likely names them."""
    reason: str
    maybe: tuple[str, ...]
    """Other columns that repeat like keys, of which one may name them."""
    key: bool = False
    """Whether no column does, and the keys of a topic's records are taken for them."""


def find_persons(columns: Sequence[Profile]) -> Persons:
    """The column that names persons, if there is one, and those that may."""
    ranked = [(rank, column) for column in columns if (rank := _rank(column)) is not None]
    # Of a customer and the customer's accounts the customer is the person: fewer persons are never a larger promise.
    ranked.sort(key=lambda pair: (pair[0], pair[1].distinct))
    maybe = tuple(column.name for column in columns if _counts_keys(column) or _repeats_key_like_values(column))
    if not ranked:
        return Persons(None, "", maybe)
    rank, column = ranked[0]
    others = tuple(other.name for _, other in ranked[1:] if other.repeats > COMES_BACK)
    surely = column.repeats > COMES_BACK
    return Persons(column.name, f"{_WHY[rank]}; {_how_often(column)}", others if surely else (*others, *maybe))


def look_like_persons(columns: Sequence[Profile]) -> list[Profile]:
    """Columns that come back as persons do, where a policy counts every row as another person."""
    found = find_persons(columns)
    names = {found.column, *found.maybe}
    return [column for column in columns if column.name in names and column.repeats > COMES_BACK]


_WHY = {
    0: "its name is that of a person or a person's key",
    1: "its name is that of something that belongs to one person",
    2: "its values are keys that come back",
    3: "its name is that of a key, and its values come back",
    4: "its name is that of a key",
}


def _rank(column: Profile) -> int | None:
    """How surely a column names persons, 0 the most; None where it does not."""
    if column.kind not in {Kind.INTEGER, Kind.CODE, Kind.KEY, Kind.TEXT, Kind.EPOCH} or names_index(column.name):
        return None
    if names_person(column.name):
        return int(names_direct(column.name)) if _is_person(column) else None
    if _is_named(column.name):
        return None
    comes_back = column.repeats > 1.5 and _many(column, 20)
    if column.kind is Kind.KEY and comes_back:
        return 2
    if comes_back and (names_key(column.name) or names_key_alone(column.name)):
        return 3
    return 4 if names_key_alone(column.name) and column.repeats <= COMES_BACK else None


def _is_person(column: Profile) -> bool:
    """Whether the values of a column that is named like a person can be persons: `member: yes` cannot."""
    if names_key(column.name) or column.kind is Kind.KEY or _is_key_like(column):
        return _many(column, 5)
    return _many(column, 20 if column.kind is Kind.TEXT else 10)


def _many(column: Profile, least: int) -> bool:
    return column.distinct >= max(2, min(least, column.rows / 4))


def _counts_keys(column: Profile) -> bool:
    """Numbers without gaps from 0 or 1 on, each of them many times: they were given to something."""
    if column.kind is not Kind.INTEGER or column.distinct < 500 or column.repeats < 2 or _is_named(column.name):
        return False
    low, high = float(np.min(column.numbers)), float(np.max(column.numbers))
    return low in {0.0, 1.0} and column.distinct >= _DENSE * (high - low + 1)


def _repeats_key_like_values(column: Profile) -> bool:
    """Texts such as `c000123`, each of them several times."""
    return _is_key_like(column) and column.distinct >= 100 and column.repeats > 1.5 and not _is_named(column.name)


def _is_key_like(column: Profile) -> bool:
    matches = pc.match_substring_regex(column.labels, _KEY_LIKE)
    return column.kind in {Kind.CODE, Kind.TEXT} and bool(pc.all(matches).as_py())


def _is_named(name: str) -> bool:
    """Whether a name says that the column is something else."""
    about = (names_thing, names_place, names_sensitive, names_time, names_direct, names_index, names_measure)
    return any(test(name) for test in about)


def _how_often(column: Profile) -> str:
    if column.repeats > COMES_BACK:
        return f"{column.distinct} persons, {column.repeats:.1f} rows each"
    return "hardly a value comes twice, so that nearly every row counts as another person"
