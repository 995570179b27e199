"""Which role a column probably has, and why. Where in doubt, a column is left out: nothing leaves by a guess."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow.compute as pc

from microdata import Hierarchy, date_hierarchy, prefix_hierarchy
from service.proposal.profile import Kind, Profile

Role = Literal["person", "quasi", "sensitive", "left out"]

MAX_FLAT = 1_000
"""Leaves of a flat hierarchy; beyond that, values hung below one root say too little to be of use."""
MAX_LEAVES = 100_000

_PERSON = re.compile(
    r"(^|[^a-z])(person|customer|user|patient|subject|member|client|employee|citizen|student)", re.IGNORECASE
)
_IDENTIFIER = re.compile(r"(^id|[^a-z]id|[a-z]Id|uuid|number|_no|_nr|key)$")
_DIRECT = re.compile(
    r"(^|[^a-z])(name|first|last|surname|e?mail|phone|mobile|ssn|passport|iban|ip|address|street)", re.IGNORECASE
)
_SENSITIVE = re.compile(
    r"disease|diagnos|illness|symptom|condition|medic|drug|treatment|salary|income|wage|religio|politic|orientation"
    r"|offen[cs]e|crime|item|product|purchase|occupation|result",
    re.IGNORECASE,
)
_PLACE = re.compile(r"zip|post|plz|code", re.IGNORECASE)


@dataclass(frozen=True)
class Guess:
    """What is proposed for one column."""

    name: str
    role: Role
    reason: str
    declaration: Mapping[str, Any] = field(default_factory=dict)
    """What the policy says about it; a hierarchy is added as the path of its file."""
    hierarchy: Hierarchy | None = None


def guesses(columns: list[Profile]) -> list[Guess]:
    """One guess per column, in the order of the columns."""
    person = _person(columns)
    return [_guess(column, person) for column in columns]


def _person(columns: list[Profile]) -> str | None:
    """The column that most likely says whom a row is about."""
    named = [column for column in columns if column.kind is not Kind.OTHER and _IDENTIFIER.search(column.name)]
    for column in named:
        if _PERSON.search(column.name):
            return column.name
    for column in columns:
        if re.fullmatch(_PERSON.pattern + r"s?", column.name, re.IGNORECASE) and column.nearly_unique:
            return column.name
    return next((column.name for column in named if column.name.lower() in {"id", "uid", "uuid"}), None)


def _guess(column: Profile, person: str | None) -> Guess:
    if column.name == person:
        repeats = "values repeat: several rows per person" if column.distinct < column.rows else "one row per person"
        return Guess(column.name, "person", f"its name reads like an identifier; {repeats}")
    if column.kind is Kind.OTHER:
        return Guess(column.name, "left out", column.kind.value)
    if column.distinct == 0:
        return Guess(column.name, "left out", "it has no values in the sample")
    if _DIRECT.search(column.name):
        return Guess(column.name, "left out", "its name reads like a direct identifier")
    if _IDENTIFIER.search(column.name) and column.nearly_unique:
        return Guess(column.name, "left out", "nearly every row has its own value: an identifier")
    role: Role = "sensitive" if _SENSITIVE.search(column.name) else "quasi"
    if column.kind in {Kind.INTEGER, Kind.REAL} and not (column.kind is Kind.INTEGER and _PLACE.search(column.name)):
        return _number(column, role)
    return _category(column, role)


def _number(column: Profile, role: Role) -> Guess:
    low, high = (float(pc.min(column.values).as_py()), float(pc.max(column.values).as_py()))
    if column.kind is Kind.INTEGER and column.distinct == column.rows > 20 and high - low == column.rows - 1:
        return Guess(column.name, "left out", "it counts the rows")
    low, high = rounded_outward(low, high)
    declaration: dict[str, Any] = {"type": "number", "min": plain(low), "max": plain(high)}
    if column.kind is Kind.INTEGER:
        declaration["integer"] = True
    elif role == "sensitive":
        step = _decimal_step(column)
        if step is None or (high - low) / step > MAX_LEAVES:
            return Guess(column.name, "left out", "it reads like a sensitive number but has no grid of values")
        declaration["step"] = step
    reason = f"{_why(role)}; {column.kind.value}, domain of the sample rounded outward"
    return Guess(column.name, role, reason + _missing(column), declaration)


def _category(column: Profile, role: Role) -> Guess:
    if column.kind is Kind.TIME:
        return Guess(column.name, "left out", "points in time identify; cut them to days first to use them")
    if column.distinct > MAX_LEAVES:
        return Guess(column.name, "left out", f"more than {MAX_LEAVES} distinct values")
    labels = sorted(str(value) for value in column.values.to_pylist())
    if column.kind is Kind.DAY:
        tree, how = date_hierarchy(labels[0], labels[-1]), "days, months, quarters and years"
    elif column.kind is Kind.CODE or (column.kind is Kind.INTEGER and len({len(label) for label in labels}) == 1):
        tree, how = prefix_hierarchy(labels), "codes by their prefixes"
    elif column.nearly_unique or column.distinct > MAX_FLAT:
        return Guess(column.name, "left out", "nearly every row has its own text")
    else:
        tree, how = Hierarchy.flat(labels, root=_root(labels)), "the values of the sample below one root; group them"
    reason = f"{_why(role)}; hierarchy: {how}"
    return Guess(column.name, role, reason + _missing(column), {"type": "category"}, tree)


def rounded_outward(low: float, high: float) -> tuple[float, float]:
    """A domain around the sample's, with round ends."""
    unit = 10.0 ** math.floor(math.log10(high - low)) if high > low else 1.0
    return math.floor(low / unit) * unit, math.ceil(high / unit) * unit


def plain(number: float) -> float | int:
    """Whole numbers without a point."""
    return int(number) if number.is_integer() else number


def _decimal_step(column: Profile) -> float | None:
    """The decimal grid that all values lie on."""
    for decimals in range(1, 5):
        scaled = pc.multiply(column.values, 10.0**decimals)
        if pc.all(pc.less(pc.abs(pc.subtract(scaled, pc.round(scaled))), 1e-6)).as_py():
            return 10.0**-decimals
    return None


def _root(labels: list[str]) -> str:
    return next(root for root in ("*", "any", "(any)", "(any value)") if root not in labels)


def _why(role: Role) -> str:
    return "its name reads like something to protect" if role == "sensitive" else "others may know it"


def _missing(column: Profile) -> str:
    return f"; {column.missing} of {column.rows} rows have no value and would be refused" if column.missing else ""
