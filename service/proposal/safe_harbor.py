"""HIPAA Safe Harbor (45 CFR 164.514(b)(2)) as rules for what a policy reads: a preset of `policy init`.

What must not be in the data is never read: identifiers, places below a state and parts of dates are not declared. Of a
date the year is read, of a postcode three digits, and ages above 89 are one group. So no algorithm can publish more,
whatever k is. A column is proposed only if its name or its values say that it is none of the 18 identifiers. All others
are left out, and a warning names those that were not recognised.

Which three-digit areas have more than 20,000 persons comes from a file. It is never guessed: without the file postcodes
are not read at all.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from microdata import DataError, Hierarchy
from microdata.schema import form_of
from privacy.safe_harbor import (
    DIGITS,
    MOST_IN_SMALL_AREA,
    OLDEST,
    SMALL_AREA,
    SMALL_AREAS_2000,
    UNCLASSIFIED,
    ColumnReview,
    Identifier,
    Meaning,
    NameMeaning,
    ages_above,
    review_numbers,
    review_texts,
)
from service.proposal.guesses import Guess, unnameable
from service.proposal.names import names_direct
from service.proposal.profile import Kind, Profile

POSTCODE_FORMS = ("99999", "99999-9999")
"""How postcodes are written. In others the first three characters mean something else: `3601.0` is 03601."""
MOST_FORMS = 20
"""Ways in which the dates of one column may be written."""
STREAM_YEARS = 5
"""Years for which a proposed stream pools years ahead: its policy should not change every January."""
MAX_AREAS_BYTES = 1 << 20
_YEAR = re.compile(r"(18|19|20)\d\d")
_YEAR_FIRST = re.compile(r"(18|19|20)\d\d-\d\d-\d\d[T ].*")
_MOMENTS = frozenset([Kind.DAY, Kind.TIME])
_NUMBERS = frozenset([Kind.INTEGER, Kind.REAL, Kind.EPOCH])


def read_areas(path: Path) -> dict[str, int]:
    """Population of each three-digit area, from lines such as `537,412000`; a first line without numbers is a head."""
    if path.stat().st_size > MAX_AREAS_BYTES:
        raise DataError(f"{path}: a file of areas has at most {MAX_AREAS_BYTES} bytes")
    areas: dict[str, int] = {}
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path}: is not UTF-8 text") from None
    delimiter = ";" if ";" in text.partition("\n")[0] else ","
    for number, row in enumerate(csv.reader(text.splitlines(), delimiter=delimiter), 1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or (number == 1 and not any(cell.isdigit() for cell in cells)):
            continue
        if len(cells) != 2 or not re.fullmatch(r"\d{3}", cells[0]) or not re.fullmatch(r"\d{1,12}", cells[1]):
            raise DataError(f"{path}, line {number}: a line has an area of three digits and its whole population")
        if cells[0] in areas:
            raise DataError(f"{path}, line {number}: the area stands there twice")
        areas[cells[0]] = int(cells[1])
    if not any(persons > MOST_IN_SMALL_AREA for persons in areas.values()):
        raise DataError(f"{path}: no area has more than {MOST_IN_SMALL_AREA} persons")
    return areas


class SafeHarbor:
    """The rules as of a year, with the populations of areas where they are known."""

    preset = "hipaa"

    def __init__(self, areas: Mapping[str, int] | None = None, year: int | None = None) -> None:
        self._areas = areas
        self._year = year or datetime.now(UTC).year

    def apply(self, found: Sequence[Guess], columns: Sequence[Profile]) -> tuple[list[Guess], tuple[str, ...]]:
        """Return the guesses as the rules allow them, and warnings about what the rules cannot know."""
        own = {column.name: column for column in columns}
        ruled = [self._ruled(guess, own[guess.name]) for guess in found]
        if not any(guess.role == "quasi" for guess in ruled):
            return ruled, tuple(_not_recognised(ruled))
        return ruled, tuple(self._warnings(ruled))

    def _ruled(self, guess: Guess, column: Profile) -> Guess:
        if guess.role == "person" or column.kind is Kind.OTHER or not column.distinct or unnameable(guess.name):
            return guess
        numeric = column.kind in _NUMBERS
        review = review_numbers(guess.name, column.numbers) if numeric else review_texts(guess.name, column.labels)
        meaning, removed = review.meaning, _removed(guess.name, column, review)
        if removed:
            return _without(guess, removed)
        if meaning is Meaning.POSTCODE:
            return self._postcode(guess, column)
        if meaning is Meaning.AGE:
            return _age(guess, column)
        if meaning is Meaning.DATE or column.kind in _MOMENTS or _are_years(column, meaning):
            return self._year_of(guess, column)
        if review.hits or (not review.known and guess.role != "left out"):
            return _without(guess, review.reason)
        return guess

    def _postcode(self, guess: Guess, column: Profile) -> Guess:
        if self._areas is None:
            return _without(guess, "postcodes need the populations of three-digit areas: give them with --areas")
        understood = sum(form_of(label) in POSTCODE_FORMS for label in column.labels.to_pylist())
        if understood < column.distinct / 2:
            return _without(
                guess,
                "most of these postcodes are not written as five digits or ZIP+4, so that their first three digits are "
                "not known: write them as texts such as 03601",
            )
        areas = [area for area, persons in sorted(self._areas.items()) if persons > MOST_IN_SMALL_AREA]
        told = [area for area in areas if area != SMALL_AREA and area not in SMALL_AREAS_2000]
        rows = [[area, f"{area[:2]}*", f"{area[0]}**", "***"] for area in told]
        declaration = {
            "type": "category",
            "characters": DIGITS,
            "forms": list(POSTCODE_FORMS),
            "on_unknown": "other",
            "other": SMALL_AREA,
        }
        reason = (
            f"three digits of a postcode; {SMALL_AREA} for areas of at most {MOST_IN_SMALL_AREA} persons, for areas "
            "that are not in the file, and for postcodes that are written otherwise"
        )
        tree = Hierarchy.from_rows([*rows, [SMALL_AREA, "***"]])
        return replace(guess, role="quasi", reason=_because(reason), declaration=declaration, hierarchy=tree)

    def _year_of(self, guess: Guess, column: Profile) -> Guess:
        forms = sorted({form_of(label) for label in column.labels.to_pylist()})
        if not _begin_with_year(column) or len(forms) > MOST_FORMS:
            return _without(
                guess, "dates are read by their first four characters: write them as 2024-01-31, or as years"
            )
        years = [int(label[:4]) for label in column.labels.to_pylist()]
        # A person who was born before this year is 90 or older, and so is a person with an older date of any kind.
        first = self._year - OLDEST
        oldest = f"before {first}"
        declaration = {"type": "category", "characters": 4, "forms": forms, "on_unknown": "other", "other": oldest}
        shown = range(max(first, min(years)), max(*years, self._year) + 1)
        rows = [[oldest, "any year"], *([str(year), f"{year // 10}0s", "any year"] for year in shown)]
        reason = f"the year of a date; years that tell an age above {OLDEST}, and unknown ones, are one group"
        tree = Hierarchy.from_rows(rows)
        return replace(guess, role="quasi", reason=_because(reason), declaration=declaration, hierarchy=tree)

    def _warnings(self, ruled: Sequence[Guess]) -> list[str]:
        reasons = " ".join(guess.reason for guess in ruled)
        warnings = [
            *_not_recognised(ruled),
            "Safe Harbor also requires that you know of no way to identify a person by the remaining data.",
            "Names of people and places in a column with a harmless name are not recognised: read declared columns.",
            "Safe Harbor requires no k: the guarantee below is stricter. With k: 1 the rules alone hold.",
        ]
        if "--areas" in reasons:
            warnings.append("Postcodes are left out: --areas FILE names the populations of three-digit areas.")
        elif SMALL_AREA in reasons:
            warnings.append(
                "The populations must be those of the current census; whether the file has them is not checked. The 17 "
                "areas that were small in the census of 2000 are never published."
            )
            if told := sorted(
                area for area in SMALL_AREAS_2000 if (self._areas or {}).get(area, 0) > MOST_IN_SMALL_AREA
            ):
                warnings.append(
                    f"The file gives these areas more than {MOST_IN_SMALL_AREA} persons, and they are not published "
                    f"all the same: {', '.join(told)}."
                )
        if "the year of a date" in reasons:
            warnings.append(
                f"Years before {self._year - OLDEST} are one group, which is right until the end of {self._year}. "
                "Propose the policy again for data that you publish later."
            )
        if "ages" in reasons:
            warnings.append("An age that is published as 90 means 90 or more.")
        return warnings


def _not_recognised(ruled: Sequence[Guess]) -> Iterator[str]:
    unknown = [guess.name for guess in ruled if guess.role == "left out" and guess.reason.endswith(UNCLASSIFIED)]
    if unknown:
        yield (
            f"Not recognised and left out: {', '.join(unknown)}. To publish a column that is none of the 18 "
            "identifiers, declare it in the schema and list its name under preset.reviewed."
        )


def _removed(name: str, column: Profile, review: ColumnReview) -> str:
    """Why a column is an identifier of which nothing may be published; empty if it is not known to be one."""
    if isinstance(review.meaning, Identifier) and not (review.meaning is Identifier.DATES and column.kind in _MOMENTS):
        return review.reason
    if names_direct(name):
        return f"its name suggests {Identifier.OTHERS.title}"
    return f"points in time are {Identifier.DATES.title}" if column.kind is Kind.EPOCH else ""


def _are_years(column: Profile, meaning: NameMeaning) -> bool:
    """Whether a column whose name says nothing has years only."""
    labels = column.labels.to_pylist()
    return meaning is Meaning.UNKNOWN and all(_YEAR.fullmatch(label) for label in labels)


def _begin_with_year(column: Profile) -> bool:
    """Whether every value begins with a year. `01021990` and `19900201` are told apart by the days that they name."""
    labels = column.labels.to_pylist()
    if column.days:
        return all(label[:4] == f"{day.year}" for label, day in zip(labels, column.days, strict=True))
    form = _YEAR_FIRST if column.kind is Kind.TIME else _YEAR
    return all(form.fullmatch(label) for label in labels)


def _age(guess: Guess, column: Profile) -> Guess:
    if column.kind in {Kind.INTEGER, Kind.REAL}:
        declaration = {"type": "number", "min": 0, "max": OLDEST + 1, "capped": True}
        declaration |= {"integer": True} if column.kind is Kind.INTEGER else {"step": 1}
        reason = f"ages above {OLDEST} are one group"
        return replace(guess, role="quasi", reason=_because(reason), declaration=declaration, hierarchy=None)
    wrong = next((reason for _, reason in ages_above(column.labels)), None)
    if wrong is not None:
        return _without(guess, f"values {wrong}: write ages as numbers, or as ranges of which the last is 90+")
    return guess


def _without(guess: Guess, reason: str) -> Guess:
    return Guess(guess.name, "left out", _because(reason))


def _because(reason: str) -> str:
    return f"Safe Harbor: {reason}"
