"""HIPAA Safe Harbor (45 CFR 164.514(b)(2)) as rules for what a policy reads: a preset of `policy init`.

What must not be in the data is never read: identifiers, places below a state and parts of dates are not declared, of a
date the year is read, of a postcode three digits, ages above 89 are one. So no algorithm can publish more, whatever it
is asked for. Which column holds what is judged by names and values, and the rules say more than that can find: what
they cannot know is said as a warning.

Which three-digit areas have more than 20,000 persons comes from a file. It is never guessed: without the file postcodes
are not read at all.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from microdata import DataError, Hierarchy
from service.proposal.guesses import Guess
from service.proposal.names import names_direct, names_key, names_place, words
from service.proposal.profile import Kind, Profile

DIGITS, WHOLE = 3, 5
"""Of a postcode: how many are read, and how many it has."""
FEW = 20_000
"""Persons up to which an area is not told."""
NOWHERE = "000"
"""What stands for all of those."""
OLDEST = 89
"""The last age that is told; older ones are 90 together, which means 90 or more."""
MAX_AREAS_BYTES = 1 << 20
_YEAR_FIRST = re.compile(r"(18|19|20)\d\d([-/T ]|\d{4}|$)")
_IDENTIFIERS = frozenset(
    [
        "phone",
        "telephone",
        "tel",
        "mobile",
        "cell",
        "fax",
        "email",
        "mail",
        "ssn",
        "social",
        "mrn",
        "record",
        "chart",
        "insurance",
        "insured",
        "plan",
        "beneficiary",
        "member",
        "subscriber",
        "account",
        "acct",
        "certificate",
        "license",
        "licence",
        "vin",
        "vehicle",
        "plate",
        "serial",
        "device",
        "imei",
        "imsi",
        "url",
        "website",
        "web",
        "ip",
        "mac",
        "biometric",
        "fingerprint",
        "voiceprint",
        "retina",
        "photo",
        "picture",
        "image",
        "face",
        "initials",
        "signature",
        "username",
        "login",
    ]
)
_PLACES = frozenset(
    [
        "address",
        "addr",
        "street",
        "road",
        "city",
        "town",
        "village",
        "county",
        "parish",
        "precinct",
        "district",
        "municipality",
        "borough",
        "neighborhood",
        "neighbourhood",
        "tract",
        "block",
        "geocode",
        "lat",
        "latitude",
        "lon",
        "lng",
        "long",
        "longitude",
        "location",
        "coordinates",
        "metro",
        "msa",
        "cbsa",
        "fips",
    ]
)
_PARTS_OF_DATES = frozenset(["month", "day", "week", "weekday", "dow", "quarter", "season", "hour", "minute"])
_BIRTH = frozenset(["birth", "born", "dob", "birthdate", "birthday", "birthyear", "yob"])


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
    if not any(persons > FEW for persons in areas.values()):
        raise DataError(f"{path}: no area has more than {FEW} persons")
    return areas


class SafeHarbor:
    """The rules, as of a year, with the populations of areas where they are known."""

    def __init__(self, areas: Mapping[str, int] | None = None, year: int | None = None) -> None:
        self._areas = areas
        self._year = year or datetime.now(UTC).year

    def apply(self, found: Sequence[Guess], columns: Sequence[Profile]) -> tuple[list[Guess], tuple[str, ...]]:
        """The guesses as the rules allow them, and what the rules cannot know."""
        own = {column.name: column for column in columns}
        ruled = [self._ruled(guess, own[guess.name]) for guess in found]
        return ruled, tuple(self._warnings(ruled))

    def _ruled(self, guess: Guess, column: Profile) -> Guess:
        if guess.role == "person":
            return guess
        said = set(words(guess.name))
        if names_place(guess.name):
            return self._postcode(guess)
        if said & _PLACES:
            return _without(guess, "a place smaller than a state")
        if column.kind in {Kind.DAY, Kind.TIME} or (said & _BIRTH and _are_years(column)):
            return self._year_of(guess, column, born=bool(said & _BIRTH))
        if column.kind is Kind.EPOCH or said & _PARTS_OF_DATES:
            return _without(guess, "an element of a date below the year")
        if said & _IDENTIFIERS or names_direct(guess.name) or names_key(guess.name) or column.kind is Kind.KEY:
            return _without(guess, "a number, name, address or code that identifies")
        if "age" in said and column.kind in {Kind.INTEGER, Kind.REAL}:
            return _age(guess, column)
        return guess

    def _postcode(self, guess: Guess) -> Guess:
        if self._areas is None:
            return _without(guess, "postcodes need the populations of three-digit areas: give them with --areas")
        rows = [
            [area, f"{area[:2]}*", f"{area[0]}**", "***"]
            for area, persons in sorted(self._areas.items())
            if persons > FEW and area != NOWHERE
        ]
        tree = Hierarchy.from_rows([*rows, [NOWHERE, "***"]])
        declaration = {
            "type": "category",
            "characters": DIGITS,
            "shortest": WHOLE,
            "on_unknown": "other",
            "other": NOWHERE,
        }
        reason = f"three digits of a postcode; {NOWHERE} for areas of at most {FEW} persons, and all that are not known"
        return replace(guess, role="quasi", reason=_because(reason), declaration=declaration, hierarchy=tree)

    def _year_of(self, guess: Guess, column: Profile, *, born: bool) -> Guess:
        if not _are_years(column):
            return _without(guess, "dates are read by their first four characters: write them as 2024-01-31")
        years = [int(label[:4]) for label in column.labels.to_pylist()]
        first, last = min(years), max(*years, self._year)
        declaration = {"type": "category", "characters": 4}
        reason = "of a date the year is read"
        rows = []
        if born:
            # Who was born in the year before these is 90 in this one, or was.
            first = max(first, self._year - OLDEST)
            oldest = f"before {first}"
            rows = [[oldest, "any year"]]
            declaration |= {"on_unknown": "other", "other": oldest}
            reason = f"of a birth the year is read; years that tell an age above {OLDEST}, and unknown ones, are one"
        rows += [[str(year), f"{year // 10}0s", "any year"] for year in range(first, last + 1)]
        tree = Hierarchy.from_rows(rows)
        return replace(guess, role="quasi", reason=_because(reason), declaration=declaration, hierarchy=tree)

    def _warnings(self, ruled: Sequence[Guess]) -> list[str]:
        said = [
            "Safe Harbor also asks that you know of no way to identify somebody by what is left. No program knows.",
            "Columns are judged by names and values. Look at every declared one, and leave out what people wrote.",
            "Safe Harbor itself asks for no k: the guarantee below is more than that. With k: 1 the rules alone hold.",
        ]
        reasons = " ".join(guess.reason for guess in ruled)
        if "--areas" in reasons:
            said.append("Postcodes are left out: --areas FILE names the populations of three-digit areas.")
        elif NOWHERE in reasons:
            said.append("Populations must be those of the current census: whether the file has them is not known here.")
        if "birth" in reasons:
            said.append(
                f"Years of birth are pooled as of {self._year}: in a later year more of them tell an age above 89."
            )
        if "ages" in reasons:
            said.append("An age that is published as 90 means 90 or more.")
        return said


def _are_years(column: Profile) -> bool:
    """Whether every value begins with a year."""
    return column.distinct > 0 and all(_YEAR_FIRST.match(label) for label in column.labels.to_pylist())


def _age(guess: Guess, column: Profile) -> Guess:
    declaration = {"type": "number", "min": 0, "max": OLDEST + 1, "capped": True}
    declaration |= {"integer": True} if column.kind is Kind.INTEGER else {"step": 1}
    reason = f"ages above {OLDEST} are one"
    return replace(guess, role="quasi", reason=_because(reason), declaration=declaration, hierarchy=None)


def _without(guess: Guess, reason: str) -> Guess:
    return Guess(guess.name, "left out", _because(reason))


def _because(reason: str) -> str:
    return f"Safe Harbor: {reason}"
