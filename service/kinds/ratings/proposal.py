"""Whether a table holds ratings, and a first policy for it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from microdata import DataError, Sample, invisible_character
from microdata.columns import field_column, texts

PERSON = re.compile(
    r"(user|person|respondent|participant|customer|reviewer|rater|member|subject)(_?id|_?name|_?no|_?nr)?|uid"
)
ITEM = re.compile(
    r"(item|movie|film|question|product|book|song|track|article|restaurant|course|title|issue)(_?id|_?name|_?no)?"
)
RATING = re.compile(r"ratings?|stars?|scores?|answers?|marks?|points?")
QUESTION = re.compile(r"(.*?[A-Za-z_. -])(\d+)")
FEWEST_ITEMS = 5
"""Columns of a wide table that must look like items of one survey."""
WIDEST = 11
"""Ratings of the longest scale that is guessed."""
SPARSE = 0.5


@dataclass(frozen=True)
class RatingsGuess:
    """What one column is taken for."""

    name: str
    role: str
    reason: str


@dataclass(frozen=True)
class RatingsProposal:
    """A policy for a table of ratings."""

    text: str
    guesses: tuple[RatingsGuess, ...]
    warnings: tuple[str, ...] = ("Which items are sensitive nobody can guess: put their names behind `sensitive`.",)

    def write(self, directory: Path) -> Path:
        """Write it; nothing that is already there is replaced."""
        path = directory / "policy.yaml"
        if path.exists():
            raise DataError(f"{path} exists already; remove it or choose another directory with --out")
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text, encoding="utf-8")
        return path


def propose(sample: Sample, name: str) -> RatingsProposal | None:
    """A policy where the columns are called and filled like ratings, long or wide; None for other tables."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:100].strip(".-_") or "ratings"
    return _long(sample.columns, stem) or _wide(sample.columns, stem)


def _long(columns: pa.Table, name: str) -> RatingsProposal | None:
    """Three columns by their names, with one rating for each person and item, and several for each of them."""
    roles = [_only(columns, pattern) for pattern in (PERSON, ITEM, RATING)]
    if any(role is None for role in roles):
        return None
    person, item, rating = (role for role in roles if role is not None)
    numbers = _numbers(field_column(columns, rating))
    pairs = pa.table({"p": texts(field_column(columns, person))[0], "i": texts(field_column(columns, item))[0]})
    distinct = pairs.group_by(["p", "i"]).aggregate([]).num_rows
    persons = pc.count_distinct(pairs.column("p")).as_py()
    scale = None if numbers is None else _scale(numbers)
    if scale is None or distinct < pairs.num_rows or persons >= pairs.num_rows:
        return None
    guesses = [
        RatingsGuess(person, "person", "its name says so, and it comes back in many rows"),
        RatingsGuess(item, "item", "its name says so, and nobody has one twice"),
        RatingsGuess(rating, "rating", f"numbers on a scale from {scale[0]:g} to {scale[1]:g}"),
    ]
    known = {person, item, rating}
    guesses += [RatingsGuess(one, "left out", "not needed") for one in columns.column_names if one not in known]
    schema = [
        f"  person: {_text(person)}",
        "  layout: long",
        f"  item: {_text(item)}",
        f"  rating: {{field: {_text(rating)}, min: {scale[0]:g}, max: {scale[1]:g}, step: {scale[2]:g}}}",
    ]
    items = pc.count_distinct(pairs.column("i")).as_py()
    return _proposal(name, schema, persons, guesses, sparse=distinct < SPARSE * persons * items)


def _wide(columns: pa.Table, name: str) -> RatingsProposal | None:
    """A column that names everybody once, and several called alike and numbered, all on one small scale."""
    names = columns.column_names
    person = next((one for one in names if PERSON.fullmatch(one.lower()) or one.lower() == "id"), None)
    if person is None or pc.count_distinct(field_column(columns, person)).as_py() < columns.num_rows:
        return None
    prefixes = [match[1] for one in names if one != person and (match := QUESTION.fullmatch(one))]
    prefix = max(set(prefixes), key=lambda one: (prefixes.count(one), one), default="")
    items = [one for one in names if re.fullmatch(re.escape(prefix) + r"\d+", one)]
    if not prefix or len(items) < FEWEST_ITEMS or any(sign in prefix for sign in "*?[") or invisible_character(prefix):
        return None
    parts = [_numbers(field_column(columns, one)) for one in items]
    numbers = [part for part in parts if part is not None]
    scale = _scale(np.concatenate(numbers)) if len(numbers) == len(items) else None
    if scale is None:
        return None
    guesses = [RatingsGuess(person, "person", "everybody has one row")]
    guesses += [RatingsGuess(one, "item", f"one of {len(items)} numbered columns on one scale") for one in items]
    known = {person, *items}
    guesses += [RatingsGuess(one, "left out", "not numbered like the items") for one in names if one not in known]
    schema = [
        f"  person: {_text(person)}",
        "  layout: wide",
        f"  rating: {{min: {scale[0]:g}, max: {scale[1]:g}, step: {scale[2]:g}}}",
        f"  items: [{_text(prefix + '[0-9]*')}]",
    ]
    given = sum(len(part) for part in numbers)
    return _proposal(name, schema, columns.num_rows, guesses, sparse=given < SPARSE * columns.num_rows * len(items))


def _proposal(
    name: str, schema: list[str], persons: int, guesses: list[RatingsGuess], *, sparse: bool
) -> RatingsProposal | None:
    if persons < 2:
        return None
    k = 5 if persons >= 10 else 2
    lines = [
        "# Proposed from names and values of the columns: change what is wrong, then run `portcullis policy check`.",
        f"name: {_text(name)}",
        "data: ratings",
        "schema:",
        *schema,
        "  sensitive: []  # names or patterns of items that nobody must learn about a person",
        "# Everybody is within epsilon of k persons. One row for a whole group (strategy: same) also stops who knows",
        "# somebody's ratings exactly; strategy: clip changes less.",
        *(["# Hardly two persons rated the same items: each group publishes what it shares (items: most)."] * sparse),
        f"guarantee: {{algorithm: ke_anon, k: {k}, epsilon: 1, strategy: same{', items: most' * sparse}}}",
    ]
    return RatingsProposal("\n".join(lines) + "\n", tuple(guesses))


def _only(columns: pa.Table, pattern: re.Pattern[str]) -> str | None:
    """The column whose name fits; None where there is not exactly one."""
    found = [name for name in columns.column_names if pattern.fullmatch(name.lower())]
    return found[0] if len(found) == 1 else None


def _numbers(column: pa.Array) -> NDArray[np.float64] | None:
    """The numbers of a column without missing ones; None where something else is in it."""
    labels, reasons = texts(column)
    if reasons.any():
        return None
    given = labels.filter(pc.fill_null(pc.greater(pc.binary_length(labels), 0), fill_value=False))
    try:
        numbers = given.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return None
    return numbers if np.isfinite(numbers).all() else None


def _scale(numbers: NDArray[np.float64]) -> tuple[float, float, float] | None:
    """Least, greatest and step of a small scale."""
    values = np.unique(numbers)
    if not 2 <= len(values) <= WIDEST:
        return None
    step = 1.0 if (values == np.floor(values)).all() else 0.5
    places = (values[-1] - values[0]) / step
    on_step = ((values - values[0]) / step == np.floor((values - values[0]) / step)).all()
    return (float(values[0]), float(values[-1]), step) if places < WIDEST and on_step else None


def _text(value: str) -> str:
    return value if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", value) else json.dumps(value, ensure_ascii=False)
