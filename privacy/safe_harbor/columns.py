"""Whether a column is known not to identify a person: by its name, or by values from a short list such as states.

What is not known is not published: a column of surnames has no pattern that would give it away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privacy.safe_harbor.content import Hit, number_hits, postcode_hits, text_hits
from privacy.safe_harbor.identifiers import OLDEST, Identifier, words
from privacy.safe_harbor.names import Meaning, NameMeaning, meaning_of

LARGEST = 1_000
"""Numbers of a column whose name is that of a property are below this; of an amount they may have any size."""
_STATES = words(
    """al ak az ar ca co ct de fl ga hi id il in ia ks ky la me md ma mi mn ms mo mt ne nv nh nj nm ny nc nd oh ok or pa
    ri sc sd tn tx ut vt va wa wv wi wy dc as gu mp pr vi alabama alaska arizona arkansas california colorado
    connecticut delaware florida georgia hawaii idaho illinois indiana iowa kansas kentucky louisiana maine maryland
    massachusetts michigan minnesota mississippi missouri montana nebraska nevada newhampshire newjersey newmexico
    newyork northcarolina northdakota ohio oklahoma oregon pennsylvania rhodeisland southcarolina southdakota tennessee
    texas utah vermont virginia washington westvirginia wisconsin wyoming districtofcolumbia puertorico guam
    americansamoa virginislands"""
)
_VOCABULARIES = (
    _STATES,
    words("m f male female man woman men women diverse x other unknown"),
    words("yes no y n true false t f 0 1 unknown"),
    words("northeast midwest south west northwest southeast southwest"),
    words("low medium high mild moderate severe none normal abnormal positive negative"),
)
ANYTHING = re.compile(r"[\W_]*|(?:any|all|every|other|unknown)(?: \w{1,12})?", re.IGNORECASE)
"""Labels that tell nothing, such as those of roots."""
LONGEST_AGE = 40
"""Characters that an age may be written with."""
_AGE_OF_OLDEST = re.compile(
    r"\s*(?:90\s*(?:\+|or (?:more|older|over)|and (?:more|older|over|above)|plus)|(?:>=?|≥|over|above)\s*(?:90|89))\D*"
)
_AGE_TEXT = re.compile(
    r"[\[(]?\s*\d{1,3}(?:\.0)?\s*(?:(?:-|–|…|to|,|\.\.)\s*(?:\d{1,3}(?:\.0)?|∞)\s*)?[\])]?\s*(?:years?|yrs?)?"
    r"|(?:<=?|≤|under|below)\s*\d{1,2}"
)


@dataclass(frozen=True, eq=False)
class ColumnReview:
    """What is known of a column by its name and by its values."""

    meaning: NameMeaning
    hits: tuple[Hit, ...]
    known: bool
    """Whether the name, or a short list that holds all values, says that the column does not identify a person."""

    @property
    def reason(self) -> str:
        """Why the column cannot be published as it is; empty if it can."""
        if isinstance(self.meaning, Identifier):
            return f"its name suggests {self.meaning.title}"
        if self.hits:
            hit = max(self.hits, key=lambda one: one.certain)
            return f"values look like {hit.what} ({hit.identifier.letter})"
        return "" if self.known else UNCLASSIFIED


UNCLASSIFIED = "neither its name nor its values say that it is none of the 18 identifiers"


def review_texts(name: str, labels: pa.Array) -> ColumnReview:
    """Review a column of texts, given its distinct values."""
    meaning = meaning_of(name)
    known = meaning in {Meaning.ATTRIBUTE, Meaning.AMOUNT}
    if meaning is Meaning.STATE:
        known = _is_listed(labels, (_STATES,))
    elif meaning is Meaning.UNKNOWN:
        known = _is_listed(labels, _VOCABULARIES)
    return ColumnReview(meaning, tuple(text_hits(labels)), known)


def review_numbers(name: str, values: NDArray[np.float64]) -> ColumnReview:
    """Review a column of numbers, given its distinct values."""
    meaning = meaning_of(name)
    hits = tuple(number_hits(values))
    if meaning is not Meaning.AMOUNT and meaning is not Meaning.DATE:
        hits += tuple(postcode_hits(values))
    small = bool((np.abs(values) < LARGEST).all())
    listed = meaning is Meaning.UNKNOWN and bool(np.isin(values, [0, 1]).all())
    return ColumnReview(meaning, hits, meaning is Meaning.AMOUNT or (meaning is Meaning.ATTRIBUTE and small) or listed)


def _is_listed(labels: pa.Array, vocabularies: tuple[frozenset[str], ...]) -> bool:
    """Whether one of the lists holds all values."""
    letters = pc.unique(pc.replace_substring_regex(pc.utf8_lower(labels), r"[^\pL\pN]", ""))
    if len(letters) > max(map(len, vocabularies)) + 1:
        return False
    found = {letter for letter in letters.to_pylist() if letter}
    return bool(found) and any(found <= listed for listed in vocabularies)


def ages_above(labels: pa.Array) -> Iterator[tuple[str, str]]:
    """Yield each text of a column of ages that may not be published, with the reason."""
    for label in labels.to_pylist():
        text = label.strip().lower()
        numbers = [int(number) for number in re.findall(r"\d{1,9}", text.replace(".0", ""))]
        if _AGE_OF_OLDEST.fullmatch(text) or ANYTHING.fullmatch(text):
            continue
        if any(number > OLDEST for number in numbers):
            yield label, f"tell ages above {OLDEST}"
        elif len(text) > LONGEST_AGE or not _AGE_TEXT.fullmatch(text):
            yield label, "are not understood as ages"


_OLD_YEAR = re.compile(r"(?<!\d)(1[5-9]\d\d|20\d\d|21\d\d)(?!\d)")
OPEN_YEARS = re.compile(
    r"\s*(?:before|until|up to|<=?|≤)\s*\d{4}\s*|\s*\d{4}\s*(?:or|and) (?:earlier|before)\s*", re.IGNORECASE
)
"""Groups of years without a beginning."""


def first_year(label: str) -> int | None:
    """Return the first year that a label tells; None for labels without years and for `before 1937`."""
    if OPEN_YEARS.fullmatch(label):
        return None
    years = [int(year) for year in _OLD_YEAR.findall(label)]
    return min(years) if years else None
