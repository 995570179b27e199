"""Which role a column probably has, and why. Where in doubt, a column is left out: nothing leaves by a guess."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, Literal

import numpy as np
import pyarrow.compute as pc

from microdata import DataError, Hierarchy, invisible_character, shown_escaped
from service.proposal.names import (
    names_direct,
    names_index,
    names_key,
    names_measure,
    names_place,
    names_sensitive,
)
from service.proposal.persons import Persons, find_persons
from service.proposal.profile import Kind, Profile
from service.proposal.schema_tags import Tagged, tagged
from service.proposal.structure import codes_tree, days_tree, look_coded, text_tree

Role = Literal["person", "quasi", "sensitive", "left out"]

MAX_FLAT = 1_000
"""Leaves of a flat hierarchy; beyond that, values hung below one root say too little to be of use."""
MAX_LEAVES = 100_000
MAX_SENSITIVE = 200_000
MAX_COUNTS = 1_000_000_000
"""Values of a sensitive number, and values times rows: its distribution is measured value by value."""
MAX_KEYS = 100
"""Things that a key may tell apart for its column to be of use."""
MAX_LABEL = 200
"""Characters of a label; what is longer is a text that somebody wrote."""
FINE = 100
"""Values of a number from which published intervals are laid on a grid."""
ENOUGH_ROWS = 0.6
"""Share of the rows that must have a value in all declared columns."""


@dataclass(frozen=True)
class Guess:
    """What is proposed for one column."""

    name: str
    role: Role
    reason: str
    """Why; the same words for all columns of the same kind."""
    declaration: Mapping[str, Any] = field(default_factory=dict)
    """What the policy says about it; a hierarchy is added as the path of its file."""
    hierarchy: Hierarchy | None = None
    missing: int = 0
    """Rows of the sample without a value."""


def guesses(columns: Sequence[Profile], tags: Mapping[str, Sequence[str]] | None = None) -> tuple[list[Guess], Persons]:
    """One guess per column, in the order of the columns, and what is known about persons.

    `tags` is what a schema says of columns: a company's own word goes before a guess.
    """
    persons = find_persons(columns)
    why = None if persons.column is None else unnameable(persons.column)
    if why is not None:
        # To count its rows as persons instead would make k a lie.
        shown = shown_escaped(persons.column or "")
        raise DataError(f"the column '{shown}' names persons, but {why}; rename that column first")
    last = columns[-1].name if columns else None
    found = [
        _guess(column, persons, tagged(tags.get(column.name, ()) if tags else ()), is_last=column.name == last)
        for column in columns
    ]
    return _with_enough_rows(_named_apart(found), columns), persons


def _guess(column: Profile, persons: Persons, tag: Tagged, *, is_last: bool) -> Guess:
    name = column.name
    if name == persons.column:
        return Guess(name, "person", persons.reason, missing=column.missing)
    why = f"its schema tags it {tag.word}" if tag.role == "left out" else _left_out(column, persons)
    if why is not None:
        return Guess(name, "left out", why)
    role: Role = "sensitive" if tag.role == "sensitive" or _is_sensitive(column, is_last=is_last) else "quasi"
    if column.kind is Kind.DAY:
        guess = _days(column)
    elif names_key(name) or (names_place(name) and _is_code(column)):
        guess = _category(column, role)
    elif column.kind in {Kind.INTEGER, Kind.REAL}:
        guess = _sensitive_number(column) if role == "sensitive" else _number(column)
    else:
        guess = _category(column, role)
    said = f"its schema tags it {tag.word}; {guess.reason}" if tag.role == guess.role else guess.reason
    return replace(guess, missing=column.missing, reason=said)


def unnameable(name: str) -> str | None:
    """Return why a policy cannot name a column; None if it can. Dots lead into records within records."""
    if not all(name.split(".")):
        return "its name begins or ends with a dot, or has two in a row: a policy cannot name it"
    found = invisible_character(name)
    return None if found is None else f"its name has an invisible character ({found[1]}): a policy cannot name it"


def _left_out(column: Profile, persons: Persons) -> str | None:
    """Why a column has no role, None where it has one."""
    return _left_out_by_name(column, persons) or _left_out_by_content(column)


def _left_out_by_name(column: Profile, persons: Persons) -> str | None:
    name = column.name
    if (why := unnameable(name)) is not None:
        return why
    if names_index(name) or _counts_rows(column):
        return "it counts the rows"
    if names_direct(name) and column.distinct > 5:
        return "its name is that of a direct identifier"
    if name in persons.maybe:
        return "its values come back like keys; if they name persons, it belongs behind `person:`"
    if names_key(name) and (column.nearly_unique or column.distinct > MAX_KEYS):
        return "a key; if it tells something that others may know, declare it with a hierarchy"
    return None


def _left_out_by_content(column: Profile) -> str | None:
    match column.kind:
        case Kind.OTHER | Kind.KEY:
            return column.kind.value
        case Kind.WRITTEN:
            return "numbers written with a decimal comma, thousands or units: write them plainly (1234.5) to use them"
        case Kind.TIME | Kind.EPOCH:
            return "points in time identify: cut them to days (2024-01-31) to use them"
    if column.distinct < 2:
        return "it has no value, or the same in all rows"
    if column.kind is Kind.TEXT and _is_prose(column):
        return "texts of their own in nearly every row, or very many, or very long ones"
    if column.kind is Kind.CODE and column.nearly_unique and not names_place(column.name) and column.repeats < 1.1:
        return "codes of their own in nearly every row"
    return _left_out_by_labels(column)


def _left_out_by_labels(column: Profile) -> str | None:
    """Why a hierarchy cannot have the values of a column."""
    if column.kind is Kind.CODE and column.distinct > MAX_LEAVES:
        return "very many different values"
    hidden = next((found for label in column.labels.to_pylist() if (found := invisible_character(label))), None)
    if hidden is None:
        return None
    return f"a value has an invisible character ({hidden[1]}), which no hierarchy may have: remove such characters"


def _is_prose(column: Profile) -> bool:
    if pc.max(pc.utf8_length(column.labels)).as_py() > MAX_LABEL or column.distinct > MAX_LEAVES:
        return True
    if column.distinct <= MAX_FLAT and not column.nearly_unique:
        return False
    are_codes = names_place(column.name) or (names_sensitive(column.name) and look_coded(column.labels.to_pylist()))
    return not are_codes


def _counts_rows(column: Profile) -> bool:
    if column.kind is not Kind.INTEGER or column.distinct < max(column.rows, 3) or names_measure(column.name):
        return False
    low, high = float(column.numbers.min()), float(column.numbers.max())
    return low in {0.0, 1.0} and high - low == column.rows - 1


def _is_sensitive(column: Profile, *, is_last: bool) -> bool:
    if names_sensitive(column.name) or (is_last and column.name.lower() == "class"):
        return True
    if column.kind not in {Kind.TEXT, Kind.CODE}:
        return False
    telling = pc.sum(pc.match_substring_regex(column.labels, _TELLING, ignore_case=True)).as_py() or 0
    illnesses = pc.sum(pc.match_substring_regex(column.labels, r"^[A-TV-Z][0-9]{2}\.[0-9]{1,4}$")).as_py() or 0
    return telling >= 2 or illnesses >= max(10, 0.5 * column.distinct)


_TELLING = (
    r"\b(cancer|diabet|asthma|hiv\b|aids\b|influenza|flu\b|pneumonia|hepatitis|depressi|ulcer|tumou?r|stroke|infarct|dementia"
    r"|catholic|muslim|jewish|hindu|buddhis|protestant|atheis|democrat|republican|socialist|theft|robbery|assault|homicide"
    r"|felony|misdemean|convict)"
)


def _number(column: Profile) -> Guess:
    whole = _is_whole(column)
    low, high = rounded_outward(float(column.numbers.min()), float(column.numbers.max()), whole=whole)
    declaration: dict[str, Any] = {"type": "number", "min": plain(low), "max": plain(high)}
    if whole:
        declaration["integer"] = True
    if whole and high - low <= FINE:
        return Guess(column.name, "quasi", f"{_OTHERS_KNOW}; {_DOMAIN}", declaration)
    grid = _grid(np.append(column.numbers, low))
    coarse = grid is not None and (high - low) / grid <= FINE
    declaration["step"] = plain(grid if coarse and grid else _round_step((high - low) / FINE, whole=whole))
    return Guess(
        column.name, "quasi", f"{_OTHERS_KNOW}; {_DOMAIN}; a step, so that ends are no one's value", declaration
    )


def _is_whole(column: Profile) -> bool:
    return column.kind is Kind.INTEGER


def _sensitive_number(column: Profile) -> Guess:
    step = _grid(column.numbers)
    low, high = float(column.numbers.min()), float(column.numbers.max())
    size = (high - low) / step if step is not None else math.inf
    if step is None or size > MAX_SENSITIVE or size * column.rows > MAX_COUNTS:
        reason = "it should be protected, but its numbers are too fine to be counted: round them to use them"
        return Guess(column.name, "left out", reason)
    declaration: dict[str, Any] = {"type": "number", "min": plain(low), "max": plain(high)}
    if _is_whole(column):
        declaration["integer"] = True
    if not (_is_whole(column) and step == 1):
        declaration["step"] = plain(step)
    return Guess(column.name, "sensitive", f"{_TO_PROTECT}; numbers on the grid of the sample", declaration)


def _days(column: Profile) -> Guess:
    reason = f"{_OTHERS_KNOW}; days, months, quarters and years"
    labels, first, last = column.labels.to_pylist(), min(column.days), max(column.days)
    if any(label != day.isoformat() for label, day in zip(labels, column.days, strict=True)):
        return Guess(column.name, "quasi", reason, {"type": "category"}, days_tree(labels, column.days))
    builder = {
        "builder": "dates",
        "start": date(first.year, 1, 1).isoformat(),
        "end": date(last.year, 12, 31).isoformat(),
    }
    return Guess(column.name, "quasi", reason, {"type": "category", "hierarchy": builder})


def _category(column: Profile, role: Role) -> Guess:
    labels = column.labels.to_pylist()
    if _is_code(column):
        tree, how = codes_tree(labels), "codes by their first characters"
    else:
        tree, how = text_tree(labels)
    why = _TO_PROTECT if role == "sensitive" else _OTHERS_KNOW
    return Guess(column.name, role, f"{why}; {how}", {"type": "category"}, tree)


def _is_code(column: Profile) -> bool:
    """Codes of one length; numbers are only where their texts are."""
    if column.kind is not Kind.INTEGER:
        return column.kind is Kind.CODE
    lengths = pc.unique(pc.utf8_length(column.labels))
    return len(lengths) == 1 and lengths[0].as_py() > 2 and not names_key(column.name)


def _named_apart(found: list[Guess]) -> list[Guess]:
    """Leave out a column whose name is the path of another one: `size` beside `size.unit`."""
    used = [guess.name for guess in found if guess.role != "left out"]
    inside = {name for name in used if any(other.startswith(f"{name}.") for other in used)}
    reason = "its name is the beginning of another one, which a policy reads as a path"
    return [Guess(guess.name, "left out", reason) if guess.name in inside else guess for guess in found]


def _with_enough_rows(found: list[Guess], columns: Sequence[Profile]) -> list[Guess]:
    """Leave out columns without which far more rows have all their values: a row with a gap is refused."""
    absent = {column.name: column.absent for column in columns}
    refused = np.zeros(columns[0].rows if columns else 0, bool)
    dropped = set()
    for guess in sorted(found, key=lambda guess: (guess.role != "person", guess.missing)):
        if guess.role == "left out" or not guess.missing:
            continue
        with_it = refused | absent[guess.name]
        if with_it.mean() > 1 - ENOUGH_ROWS and guess.role != "person":
            dropped.add(guess.name)
        else:
            refused = with_it
    reason = "so many rows have no value that too few would be left with it"
    return [Guess(guess.name, "left out", reason) if guess.name in dropped else guess for guess in found]


def rounded_outward(low: float, high: float, *, whole: bool = False) -> tuple[float, float]:
    """A domain around the sample's, with round ends and little room between."""
    if low == high:
        return low, high
    unit = Decimal(repr(_round_step((high - low) / 20, whole=whole)))
    down = (Decimal(repr(low)) / unit).to_integral_value(ROUND_FLOOR) * unit
    up = (Decimal(repr(high)) / unit).to_integral_value(ROUND_CEILING) * unit
    return float(down), float(up)


def _round_step(least: float, *, whole: bool) -> float:
    """The next of … 0.1, 0.2, 0.5, 1, 2, 5, 10 …; from 1 on for whole numbers."""
    if whole and least <= 1:
        return 1.0
    exponent = math.floor(math.log10(least))
    return next(
        step for digits in (1, 2, 5, 10) if (step := float(Decimal(digits).scaleb(exponent))) >= least * (1 - 1e-9)
    )


def _grid(numbers: np.ndarray[Any, np.dtype[np.float64]]) -> float | None:
    """The widest decimal step on which all numbers lie, counted from the least."""
    for decimals in range(5):
        scaled = (numbers - numbers.min()) * 10.0**decimals
        whole = np.rint(scaled)
        if scaled.max() < 2**53 and (np.abs(scaled - whole) < 1e-6).all():
            return float(Decimal(int(np.gcd.reduce(whole.astype(np.int64)))).scaleb(-decimals))
    return None


def plain(number: float) -> float | int:
    """Whole numbers without a point."""
    return int(number) if number.is_integer() else number


_OTHERS_KNOW = "others may know it"
_TO_PROTECT = "something to protect"
_DOMAIN = "the domain is the sample's, rounded outward"
