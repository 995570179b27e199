"""The Safe Harbor rule of HIPAA, 45 CFR 164.514(b)(2): its 18 identifiers, and how they are recognised."""

from privacy.safe_harbor.check import ForbiddenColumn, check_publication, check_schema
from privacy.safe_harbor.columns import UNCLASSIFIED, ColumnReview, ages_above, first_year, review_numbers, review_texts
from privacy.safe_harbor.identifiers import (
    DIGITS,
    MOST_IN_SMALL_AREA,
    OLDEST,
    SMALL_AREA,
    SMALL_AREAS_2000,
    Identifier,
)
from privacy.safe_harbor.names import Meaning, NameMeaning, meaning_of

__all__ = [
    "DIGITS",
    "MOST_IN_SMALL_AREA",
    "OLDEST",
    "SMALL_AREA",
    "SMALL_AREAS_2000",
    "UNCLASSIFIED",
    "ColumnReview",
    "ForbiddenColumn",
    "Identifier",
    "Meaning",
    "NameMeaning",
    "ages_above",
    "check_publication",
    "check_schema",
    "first_year",
    "meaning_of",
    "review_numbers",
    "review_texts",
]
