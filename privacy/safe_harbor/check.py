"""The Safe Harbor check of what is about to be published, and of all that the policy of a stream could publish.

The check does not trust the policy. It looks at published values: labels, ends of intervals, sensitive and public
values. A column must also be known to be harmless, by its name or by the values that its published rows have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from microdata import Category, Number, Publication, Schema
from microdata.columns import distinct, plain, texts
from microdata.decoding import all_values
from microdata.generalizations import box_columns
from privacy.safe_harbor.columns import (
    ANYTHING,
    OPEN_YEARS,
    UNCLASSIFIED,
    ColumnReview,
    ages_above,
    first_year,
    review_numbers,
    review_texts,
)
from privacy.safe_harbor.content import Hit
from privacy.safe_harbor.identifiers import DIGITS, OLDEST, SMALL_AREAS_2000, Identifier
from privacy.safe_harbor.names import Meaning, meaning_of

NEARLY_ALL, FEWEST_ROWS = 0.9, 20
"""Distinct values per row from which a column is a code of its rows, and rows from which that means something."""
_POSTCODE = re.compile(r"\d{1,3}[*xX_-]*")
_YEARS = re.compile(r"\d{4}s?|[\[(]?\d{4}\s*(?:-|–|…|,|to)\s*\d{4}[\])]?")


@dataclass(frozen=True)
class ForbiddenColumn:
    """A column that the rule forbids to publish as it is. No value is in it."""

    name: str
    reason: str
    rows: int
    """Rows whose published value is one of those that the reason is about."""

    def __str__(self) -> str:
        return f"{self.reason}, in {self.rows} rows" if self.rows else self.reason


@dataclass(frozen=True, eq=False)
class _Texts:
    """The distinct texts that are published of a column, and how many rows have each."""

    name: str
    shown: pa.Array
    rows: NDArray[np.int64]
    source: pa.Array
    """Distinct values of the published rows before they were generalized."""

    def forbidden(self, reason: str, which: NDArray[np.bool_] | None = None) -> ForbiddenColumn:
        return ForbiddenColumn(self.name, reason, int(self.rows.sum() if which is None else self.rows[which].sum()))

    def forbidden_if(self, reason: str, is_forbidden: Callable[[str], bool]) -> Iterator[ForbiddenColumn]:
        which = np.array([is_forbidden(label) for label in self.shown.to_pylist()], bool)
        if which.any():
            yield self.forbidden(reason, which)


@dataclass(frozen=True, eq=False)
class _Intervals:
    """The distinct intervals that are published of a number, and how many rows have each."""

    attribute: Number
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    rows: NDArray[np.int64]
    source: NDArray[np.float64]
    """Distinct values of the published rows before they were generalized."""

    def forbidden(self, reason: str, which: NDArray[np.bool_] | None = None) -> ForbiddenColumn:
        rows = self.rows if which is None else self.rows[which]
        return ForbiddenColumn(self.attribute.name, reason, int(rows.sum()))


def check_publication(publication: Publication, reviewed: Collection[str], year: int) -> tuple[ForbiddenColumn, ...]:
    """Return the columns that must not be published like this in this year.

    `reviewed` names columns that a reviewer has found to be none of the 18 identifiers. It replaces what their names do
    not say, and hits that are not certain. Values that are certainly identifiers are forbidden all the same.
    """
    published = publication.classes >= 0
    classes = publication.classes[published]
    schema, table = publication.table.schema, publication.table
    if not len(classes):
        return ()
    check = _Check(reviewed, year)
    boxes = box_columns(publication.shown(), publication.show)
    per_class = np.bincount(classes, minlength=len(publication.boxes))
    found: list[ForbiddenColumn] = []
    for position, attribute in enumerate(schema.quasi):
        own, shown = np.unique(table.quasi[published, position]), boxes[attribute.name]
        if isinstance(attribute, Category):
            source = all_values(attribute).take(pa.array(own.astype(np.int64)))
            column = _counted(attribute.name, shown, per_class, source)
            found += [*check.texts(column), *check.nearly_unique(attribute.name, column.shown, len(classes))]
        else:
            ends = np.asarray(shown.flatten() if pa.types.is_list(shown.type) else shown, np.float64)
            limits = ends.reshape(len(shown), -1)
            found += check.intervals(_Intervals(attribute, limits[:, 0], limits[:, -1], per_class, own))
    for position, attribute in enumerate(schema.sensitive):
        codes, rows = np.unique(table.sensitive[published, position], return_counts=True)
        values = all_values(attribute).take(pa.array(codes))
        if isinstance(attribute, Category):
            found += check.texts(_Texts(attribute.name, values, rows, values))
        else:
            numbers = np.asarray(values, np.float64)
            found += check.intervals(_Intervals(attribute, numbers, numbers, rows, numbers))
        found += check.nearly_unique(attribute.name, values, len(classes))
    if table.public is not None:
        public = table.public.filter(pa.array(published))
        for name in schema.public:
            found += check.public(name, plain(public.column(name)))
    return _one_reason_each(found)


def check_schema(schema: Schema, reviewed: Collection[str], year: int) -> tuple[ForbiddenColumn, ...]:
    """Return the fields of which a stream with this schema could publish what the rule forbids.

    Every label of a hierarchy and every number of a domain counts as published.
    """
    check = _Check(reviewed, year)
    found: list[ForbiddenColumn] = []
    for attribute in (*schema.quasi, *schema.sensitive):
        if isinstance(attribute, Category):
            tree = attribute.hierarchy
            shown = pa.array(tree.labels if attribute in schema.quasi else tree.leaves, pa.string())
            none = np.zeros(len(shown), np.int64)
            found += check.texts(_Texts(attribute.name, shown, none, all_values(attribute)))
        else:
            ends = np.array([attribute.low, attribute.high], np.float64)
            found += check.intervals(_Intervals(attribute, ends[:1], ends[1:], np.zeros(1, np.int64), ends))
    reason = "public values of a stream are published as they are and cannot be checked before; leave the field out"
    return (*_one_reason_each(found), *(ForbiddenColumn(name, reason, 0) for name in schema.public))


def _one_reason_each(found: list[ForbiddenColumn]) -> tuple[ForbiddenColumn, ...]:
    """Return the first reason against each column; what its values look like tells more than that it is not known."""
    best: dict[str, ForbiddenColumn] = {}
    for column in found:
        if column.name not in best or best[column.name].reason == UNCLASSIFIED:
            best[column.name] = column
    return tuple(best.values())


class _Check:
    """The check of single columns."""

    def __init__(self, reviewed: Collection[str], year: int) -> None:
        self._reviewed = reviewed
        self._first_year = year - OLDEST
        self._early = f"years before {self._first_year}, which tell an age above {OLDEST} (C); make them one group"

    def texts(self, column: _Texts) -> Iterator[ForbiddenColumn]:
        """Yield what is forbidden in the published texts of a column."""
        review, is_reviewed = review_texts(column.name, column.shown), column.name in self._reviewed
        match review.meaning:
            case Meaning.POSTCODE:
                reason = "more than three digits of postcodes, or an area of at most 20,000 persons (B)"
                yield from column.forbidden_if(reason, _tells_small_area)
            case Meaning.AGE:
                for wrong in sorted({wrong for _, wrong in ages_above(column.shown)}):
                    labels = {label for label, own in ages_above(column.shown) if own == wrong}
                    yield from column.forbidden_if(f"values {wrong} (C); publish them as 90+", labels.__contains__)
            case Meaning.DATE if not is_reviewed:
                yield from column.forbidden_if("values are not whole years (C)", lambda label: not _tells_years(label))
            case _ if not is_reviewed:
                yield from self._unknown_texts(column, review)
        if review.meaning is not Meaning.AGE and (review.meaning is Meaning.DATE or not is_reviewed):
            any_label = review.meaning is Meaning.DATE
            yield from column.forbidden_if(self._early, lambda label: self._tells_old(label, any_label=any_label))
        for hit in review.hits:
            if hit.certain or not (is_reviewed or review.meaning is Meaning.POSTCODE):
                yield column.forbidden(_looks_like(hit), hit.values)

    def _unknown_texts(self, column: _Texts, review: ColumnReview) -> Iterator[ForbiddenColumn]:
        """Yield that the name of a column names an identifier, or that nothing is known of it; years are allowed."""
        may_be_years = review.meaning in {Identifier.DATES, Meaning.UNKNOWN, Meaning.STATE}
        if may_be_years and all(map(_tells_years, column.shown.to_pylist())):
            return
        if isinstance(review.meaning, Identifier):
            yield column.forbidden(review.reason)
        elif not review_texts(column.name, column.source).known:
            yield column.forbidden(UNCLASSIFIED)

    def _tells_old(self, label: str, *, any_label: bool) -> bool:
        first = first_year(label) if any_label or _tells_years(label) else None
        return first is not None and first < self._first_year

    def intervals(self, column: _Intervals) -> Iterator[ForbiddenColumn]:
        """Yield what is forbidden in the published intervals of a number."""
        name = column.attribute.name
        review, is_reviewed = review_numbers(name, column.source), name in self._reviewed
        match review.meaning:
            case Meaning.POSTCODE:
                yield column.forbidden("postcodes as numbers (B); declare a category of which three digits are read")
            case Meaning.AGE:
                yield from _old_ages(column)
            case Meaning.DATE:
                yield from self._years(column, is_reviewed=is_reviewed)
            case Identifier() if not is_reviewed:
                yield column.forbidden(review.reason)
            case _ if not (review.known or is_reviewed):
                yield column.forbidden(UNCLASSIFIED)
        for hit in review.hits:
            if hit.certain or not (is_reviewed or review.meaning is Meaning.POSTCODE):
                yield column.forbidden(_looks_like(hit))

    def _years(self, column: _Intervals, *, is_reviewed: bool) -> Iterator[ForbiddenColumn]:
        if not ((column.source >= 1000) & (column.source < 3000)).all():
            if not is_reviewed:
                yield column.forbidden("values are not whole years (C)")
        elif (early := column.low < self._first_year).any():
            yield column.forbidden(self._early, early)

    def public(self, name: str, column: pa.Array) -> Iterator[ForbiddenColumn]:
        """Yield what is forbidden in a public column: texts, numbers of any type, or documents, which have no check."""
        kind = column.type
        if isinstance(kind, pa.BaseExtensionType) or pa.types.is_nested(kind):
            yield ForbiddenColumn(name, "documents and lists cannot be checked; declare their fields", len(column))
            return
        written, against = texts(column)
        if pa.types.is_timestamp(kind) or pa.types.is_time(kind) or against.any():
            yield ForbiddenColumn(name, f"values may be {Identifier.DATES.title}, or cannot be checked", len(column))
            return
        index, values = distinct(pc.fill_null(written.cast(pa.string()), ""))
        rows = np.bincount(index, minlength=len(values))
        numbers = _numbers(values)
        if numbers is None:
            yield from self.texts(_Texts(name, values, rows, values))
        else:
            attribute = Number(name, float(numbers.min()), float(numbers.max()))
            given = rows[np.asarray(pc.not_equal(values, ""))]
            yield from self.intervals(_Intervals(attribute, numbers, numbers, given, numbers))
        yield from self.nearly_unique(name, values, len(column))

    def nearly_unique(self, name: str, values: pa.Array, rows: int) -> Iterator[ForbiddenColumn]:
        """Yield a column with a value of its own in nearly every row, unless it has amounts or other measurements."""
        judged_otherwise = {Meaning.AMOUNT, Meaning.AGE, Meaning.DATE, Meaning.POSTCODE, Meaning.STATE}
        if name in self._reviewed or meaning_of(name) in judged_otherwise or pa.types.is_floating(values.type):
            return
        are_many = rows >= FEWEST_ROWS and len(values) >= NEARLY_ALL * rows
        if are_many and not all(_tells_years(str(value)) for value in values.to_pylist()):
            reason = f"nearly every row has another value, which may be {Identifier.OTHERS.title}"
            yield ForbiddenColumn(name, reason, rows)


def _counted(name: str, shown: pa.Array, rows: NDArray[np.int64], source: pa.Array) -> _Texts:
    """Return the distinct labels of classes, with the rows of all classes that have them."""
    index, values = distinct(shown)
    known = index >= 0
    counts = np.bincount(index[known], rows[known], len(values)).astype(np.int64)
    return _Texts(name, values, counts, source)


def _looks_like(hit: Hit) -> str:
    return f"values look like {hit.what} ({hit.identifier.letter})"


def _tells_small_area(label: str) -> bool:
    """Whether a label tells more of a postcode than the digits of an area, or those of a small area."""
    allowed = _POSTCODE.fullmatch(label) or ANYTHING.fullmatch(label)
    return not allowed or label[:DIGITS] in SMALL_AREAS_2000


def _tells_years(label: str) -> bool:
    """Whether a label is a year, a group of years, or tells nothing."""
    return any(pattern.fullmatch(label) for pattern in (_YEARS, OPEN_YEARS, ANYTHING))


def _old_ages(column: _Intervals) -> Iterator[ForbiddenColumn]:
    """Yield that ages above 89 are told; where 90 stands for that much or more, they are not."""
    attribute, above = column.attribute, column.high > OLDEST
    pooled = attribute.capped and attribute.high <= OLDEST + 1
    if above.any() and not pooled:
        yield column.forbidden(f"ages above {OLDEST} (C); declare max: {OLDEST + 1} with capped: true", above)


def _numbers(values: pa.Array) -> NDArray[np.float64] | None:
    """The values as numbers, if all that are given are numbers and none begins with a zero that counts."""
    given = values.filter(pc.not_equal(values, ""))
    plainly = pc.match_substring_regex(given, r"^[-+]?(?:0|[1-9][0-9]*)(?:[.][0-9]+)?(?:[eE][-+]?[0-9]+)?$")
    return given.cast(pa.float64()).to_numpy() if len(given) and pc.all(plainly).as_py() else None
