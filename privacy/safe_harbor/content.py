"""What values look like: identifiers are recognised by how they are written, whatever their column is called.

Every detector looks at distinct values. Patterns run in Arrow (RE2): their time is linear in the length of a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privacy.safe_harbor.identifiers import Identifier


@dataclass(frozen=True, eq=False)
class Hit:
    """Values of a column that look like an identifier."""

    identifier: Identifier
    what: str
    """How the values look, for messages."""
    certain: bool
    """Whether nothing else is written like this. Other hits may be codes of something that identifies no person."""
    values: NDArray[np.bool_]
    """Which of the distinct values look like it."""


class Detector(NamedTuple):
    """Recognises texts that are, or contain, an identifier."""

    identifier: Identifier
    what: str
    patterns: tuple[str, ...]
    certain: bool = True


_MONTHS = (
    r"(?:jan(?:uar[yi]?o?|v(?:ier)?)?|feb(?:ruar[yi])?|f[ée]v(?:rier|ereiro)?|mar(?:ch|s|zo|ço)?|m[äa]rz|apr(?:il)?|avr(?:il)?"
    r"|may|mai|jun[ei]?|juin|jul[yi]?|juillet|aug(?:ust)?|ao[ûu]t|sep(?:t(?:ember)?)?|o[ck]t(?:ober)?|nov(?:ember)?"
    r"|de[cz](?:ember)?|d[ée]c(?:embre)?|enero|febrero|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
    r"|gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|novembre|dicembre|januar|februar|juni|juli)"
)
_YEAR, _MONTH, _DAY = r"(?:18|19|20|21)[0-9]{2}", r"(?:0?[1-9]|1[0-2])", r"(?:0?[1-9]|[12][0-9]|3[01])"
_NOT_IN_NUMBER = r"(?:^|[^0-9-])", r"(?:$|[^0-9-])"
_DATE_DIGITS = (
    rf"{_YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
    rf"|(?:0[1-9]|[12][0-9]|3[01])(?:0[1-9]|1[0-2]){_YEAR}|(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01]){_YEAR}"
)
_STREETS = (
    r"(?:st|str|street|ave?|avenue|rd|road|blvd|boulevard|lane|ln|drive|dr|court|ct|way|square|sq|highway|hwy|terrace"
    r"|pkwy)"
)
_EPOCHS = ((631_152_000, 2_051_222_400), (1, 1_000, 1_000_000, 1_000_000_000))
"""The seconds from 1990 to 2035, and what they may be counted in: seconds, milliseconds and smaller units."""

TEXT_DETECTORS = (
    Detector(Identifier.EMAILS, "e-mail addresses", (r"[^\s@]+@[^\s@]+\.[^\s@.]{2,}",)),
    Detector(Identifier.URLS, "web addresses", (r"(?i)\b(?:https?|ftps?|sftp|file)://", r"(?i)\bwww[.]\S+[.]")),
    Detector(
        Identifier.DEVICES,
        "device addresses, such as MAC addresses",
        (r"(?i)\b(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b", r"(?i)\b(?:[0-9a-f]{4}[.]){2}[0-9a-f]{4}\b"),
    ),
    Detector(
        Identifier.IPS,
        "IP addresses",
        (
            r"(?:^|[^0-9.])(?:[0-9]{1,3}[.]){3}[0-9]{1,3}(?:$|[^0-9.])",
            r"(?i)(?:^|[^0-9a-f:])(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}\b",
            r"(?i)(?:^|[^0-9a-f:])(?:[0-9a-f]{1,4}:){1,6}:(?:[0-9a-f]{1,4}:){0,5}[0-9a-f]{0,4}(?:$|[^0-9a-f:])",
        ),
    ),
    Detector(
        Identifier.SOCIAL_SECURITY,
        "social security numbers",
        (rf"{_NOT_IN_NUMBER[0]}[0-9]{{3}}[- ][0-9]{{2}}[- ][0-9]{{4}}{_NOT_IN_NUMBER[1]}",),
    ),
    Detector(
        Identifier.PHONES,
        "telephone or fax numbers",
        (
            r"\([0-9]{2,5}\) ?[0-9]{3,4}[ .-]?[0-9]{3,4}",
            rf"{_NOT_IN_NUMBER[0]}(?:1[ .-])?[0-9]{{3}}[ .-][0-9]{{3}}[ .-][0-9]{{4}}{_NOT_IN_NUMBER[1]}",
            r"[+][1-9][0-9]{0,2}(?:[ ./()-]*[0-9]){6,12}",
            r"(?:^|[^0-9])0[0-9](?:[ .-][0-9]{2}){4}(?:$|[^0-9])",
            r"(?:^|[^0-9])0[0-9]{2,4}[ /-][0-9]{3,}[0-9 -]*",
        ),
    ),
    Detector(Identifier.PHONES, "local telephone numbers", (r"^\s*[2-9][0-9]{2}[-. ][0-9]{4}\s*$",), certain=False),
    Detector(
        Identifier.DATES,
        "dates",
        (
            rf"(?:^|[^0-9]){_YEAR}[-/.]{_MONTH}(?:[-/.]{_DAY})?(?:$|[^0-9])",
            rf"(?:^|[^0-9.]){_DAY}[-/.]{_DAY}[-/.](?:{_YEAR}|[0-9]{{2}})(?:$|[^0-9.])",
            rf"(?:^|[^0-9]){_MONTH}[-/.]{_YEAR}(?:$|[^0-9])",
            rf"(?:^|[^0-9])(?:{_DATE_DIGITS})(?:$|[^0-9]|T[0-9])",
            rf"(?i)\b{_MONTHS}\b[.,]?[ -]*(?:[0-9]{{1,2}}(?:st|nd|rd|th)?\b[, -]*)?(?:{_YEAR}\b|')",
            rf"(?i)\b[0-9]{{1,2}}(?:st|nd|rd|th|[.])?[ -]*(?:de |of )?{_MONTHS}\b",
            rf"(?i)\b{_MONTHS}\b[.]? [0-9]{{1,2}}(?:st|nd|rd|th)?\b",
            rf"\b{_YEAR}[- ]?(?:Q[1-4]|W[0-9]{{1,2}})\b",
            rf"\bQ[1-4][-/ ]?{_YEAR}\b",
        ),
    ),
    Detector(
        Identifier.DATES,
        "ages above 89",
        (r"(?i)\b(?:9[0-9]|1[0-2][0-9])[ -]?(?:years?|yrs?|y/?o|ans|jahre|años|anni|anos)\b(?:$|[^+])",),
    ),
    Detector(
        Identifier.PLACES,
        "postcodes or coordinates",
        (
            rf"{_NOT_IN_NUMBER[0]}[0-9]{{5}}-[0-9]{{4}}{_NOT_IN_NUMBER[1]}",
            r"\b[A-Z]{2}[ ,]+[0-9]{5}\b",
            r"^\s*[A-Z]{1,2}[0-9][A-Z0-9]? ?[0-9][A-Z]{2}\s*$",
            r"^\s*[A-Z][0-9][A-Z][ -]?[0-9][A-Z][0-9]\s*$",
            r"-?[0-9]{1,2}[.][0-9]{3,}[,; ]+-?[0-9]{1,3}[.][0-9]{3,}",
        ),
    ),
    Detector(Identifier.PLACES, "postcodes", (r"^\s*(?:[0-9]{5}|[0-9]{4,5}[.]0)\s*$",), certain=False),
    Detector(
        Identifier.PLACES,
        "street addresses",
        (
            rf"(?i)\b[0-9]{{1,5}}[A-Z]? +(?:[\w.]+ +){{1,4}}{_STREETS}\b",
            r"(?i)\bp[.]? ?o[.]? ?box\b",
            r"(?i)(?:stra(?:ß|ss)e|str[.]|gasse|allee|platz|weg) *[0-9]{1,4}",
            r"(?i)\b(?:rue|calle|avenida|via|piazza|rua) +(?:[\w.]+ *){1,5},? *[0-9]{1,4}\b|\b[0-9]{1,4},? rue\b",
        ),
    ),
    Detector(
        Identifier.NAMES,
        "names of persons",
        (
            r"(?i)^\s*(?:mr|mrs|ms|miss|dr|prof|herr|frau|mme|mlle|sr|sra|señora?)[.]? +\pL",
            r"^\s*\p{Lu}[\pL'-]+, \p{Lu}[\pL'-]*(?: \p{Lu}[.]?)?\s*$",
            r"^\s*\p{Lu}\p{Ll}+ \p{Lu}[.](?: \p{Lu}[\pL'-]+)?\s*$",
        ),
        certain=False,
    ),
    Detector(
        Identifier.PHOTOS,
        "images",
        (r"(?i)[.](?:jpe?g|png|gif|tiff?|bmp|heic|webp|dcm)$", r"(?i)\bdata:image/"),
    ),
    Detector(
        Identifier.OTHERS,
        "unique identifiers, such as UUIDs and hashes",
        (
            r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
            r"\b(?:[0-9]+[a-f]|[a-f]+[0-9])[0-9a-f]{14,}\b",
            r"\b(?:[0-9]+[A-F]|[A-F]+[0-9])[0-9A-F]{14,}\b",
            r"[A-Za-z0-9+/_-]{60,}={0,2}",
        ),
    ),
    Detector(
        Identifier.ACCOUNTS,
        "account numbers, such as IBANs and card numbers",
        (
            r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b",
            rf"{_NOT_IN_NUMBER[0]}[0-9]{{4}}(?:[ -][0-9]{{4}}){{3}}{_NOT_IN_NUMBER[1]}",
        ),
    ),
    Detector(
        Identifier.VEHICLES,
        "vehicle identification numbers",
        # Seventeen characters without I, O and Q, which end in digits.
        (r"\b[A-HJ-NPR-Z0-9]{13}[0-9]{4}\b",),
    ),
    Detector(
        Identifier.VEHICLES,
        "license plates",
        (r"^\s*[A-Z]{1,3}[- ][A-Z]{0,2} ?[0-9]{3,4}[A-Z]?\s*$", r"^\s*[0-9]{1,3}[- ][A-Z]{3}[- ]?[0-9]{0,3}\s*$"),
        certain=False,
    ),
    Detector(
        Identifier.OTHERS, "codes with five or more digits", (r"\b[A-Za-z]{1,5}[-_# :]{0,2}[0-9]{5,}\b",), certain=False
    ),
    Detector(
        Identifier.OTHERS,
        "numbers of seven or more digits",
        (r"[0-9]{7,}", r"^\s*[0-9](?:[ .]?[0-9]){8,}\s*$"),
        certain=False,
    ),
    Detector(Identifier.OTHERS, "names of accounts of social networks", (r"^\s*@\w{2,}\s*$",), certain=False),
)
_ROUND = r"(?:[.][0-9]+|\b[1-9][0-9]{0,3}0{4,}\b)"
"""Decimals and round numbers, such as the bounds of an income bracket, are no codes."""


def text_hits(labels: pa.Array) -> Iterator[Hit]:
    """Yield each kind of identifier that some of these distinct texts look like. One text is enough."""
    labels = labels.cast(pa.string())
    plain = pc.replace_substring_regex(labels, _ROUND, "")
    for detector in TEXT_DETECTORS:
        looked_at = plain if detector.what == "numbers of seven or more digits" else labels
        found = np.zeros(len(labels), bool)
        for pattern in detector.patterns:
            matches = pc.fill_null(pc.match_substring_regex(looked_at, pattern), fill_value=False)
            found |= matches.to_numpy(zero_copy_only=False)
        if found.any():
            yield Hit(detector.identifier, detector.what, detector.certain, found)


MOST = 0.5
"""Share of the distinct numbers of a column from which they are taken for an identifier; single ones may be amounts."""


def number_hits(values: NDArray[np.float64]) -> Iterator[Hit]:
    """Yield each kind of identifier that most of these distinct numbers look like."""
    if not len(values):
        return
    whole = (values == np.floor(values)) & (np.abs(values) < 2**63)
    number = np.where(whole, values, 0).astype(np.int64)
    yield from _mostly(Identifier.DATES, "dates", _are_dates(number), certain=True)
    (first, last), units = _EPOCHS
    coarse = number % 1000 == 0
    moments = np.logical_or.reduce(
        [(number >= first * unit) & (number <= last * unit) & ~(coarse & (unit == 1)) for unit in units]
    )
    yield from _mostly(Identifier.DATES, "points in time, counted in seconds or parts of them", moments, certain=True)
    yield from _mostly(
        Identifier.OTHERS,
        "numbers of nine or more digits, such as phone, social security and account numbers",
        (np.abs(number) >= 10**8) & ~coarse,
    )
    digits = np.abs(values * 1e4 - np.rint(values * 1e4)) > 1e-6
    yield from _mostly(Identifier.PLACES, "coordinates", digits & (np.abs(values) <= 180))


def postcode_hits(values: NDArray[np.float64]) -> Iterator[Hit]:
    """Yield whether most of these numbers look like postcodes of five digits. Amounts of money may do so too."""
    like = (values >= 501) & (values <= 99_950) & (values == np.floor(values))
    if len(values) and like.all() and (values >= 10_000).mean() >= MOST and (values % 100 != 0).mean() >= MOST:
        yield Hit(Identifier.PLACES, "postcodes", certain=False, values=like)


def _mostly(identifier: Identifier, what: str, found: NDArray[np.bool_], *, certain: bool = False) -> Iterator[Hit]:
    if found.mean() >= MOST:
        yield Hit(identifier, what, certain, found)


def _are_dates(number: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which numbers are days, written as year, month and day in any of the usual orders."""
    first, second, last = number // 10**6, number // 10**4 % 100, number % 10**4
    day_and_month = ((first >= 1) & (first <= 31) & (second >= 1) & (second <= 12)) | (
        (first >= 1) & (first <= 12) & (second >= 1) & (second <= 31)
    )
    ends = day_and_month & (last >= 1850) & (last <= 2150)
    year, month, day = number // 10**4, number // 100 % 100, number % 100
    return ends | ((year >= 1850) & (year <= 2150) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31))
