"""Why rows are refused: by field and reason code, never with the value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from microdata.schema import Schema

RECORD = -1
"""Field index of a refusal that concerns the record as a whole."""
KEY = -2
"""Field index of a refusal that concerns the record's key."""


class Reason(IntEnum):
    """Why a value or a record is refused. The codes are stable: dead letters and metrics carry them."""

    MISSING = 1
    NOT_A_NUMBER = 2
    NOT_FINITE = 3
    OUT_OF_DOMAIN = 4
    NOT_AN_INTEGER = 5
    NOT_ON_STEP = 6
    UNKNOWN_CATEGORY = 7
    WRONG_TYPE = 8
    NOT_UTF8 = 9
    WRONG_SHAPE = 10
    NOT_JSON = 11
    TOO_LARGE = 12
    TOMBSTONE = 13
    NOT_AN_INTERVAL = 14
    UNKNOWN_LABEL = 15
    NOT_EXACT = 16
    MALFORMED = 17
    UNKNOWN_SCHEMA = 18
    OTHER_SCHEMA = 19
    OTHER_PARTITION = 20

    @property
    def code(self) -> str:
        """The stable text of this reason, for example `out_of_domain`."""
        return self.name.lower()

    @property
    def sentence(self) -> str:
        """The reason as a person would say it."""
        return _SENTENCES[self]


_SENTENCES = {
    Reason.MISSING: "missing value",
    Reason.NOT_A_NUMBER: "not a number",
    Reason.NOT_FINITE: "not a finite number",
    Reason.OUT_OF_DOMAIN: "outside the declared domain",
    Reason.NOT_AN_INTEGER: "not a whole number",
    Reason.NOT_ON_STEP: "not on the declared step",
    Reason.UNKNOWN_CATEGORY: "not a leaf of the hierarchy",
    Reason.WRONG_TYPE: "wrong type",
    Reason.NOT_UTF8: "not UTF-8 text",
    Reason.WRONG_SHAPE: "another number of cells than the header",
    Reason.NOT_JSON: "not JSON",
    Reason.TOO_LARGE: "too large",
    Reason.TOMBSTONE: "record without a value",
    Reason.NOT_AN_INTERVAL: "not an interval [low,high]",
    Reason.UNKNOWN_LABEL: "not a label of the hierarchy",
    Reason.NOT_EXACT: "more digits than are kept exactly",
    Reason.MALFORMED: "bytes that its schema does not allow",
    Reason.UNKNOWN_SCHEMA: "a schema id that the registry does not know",
    Reason.OTHER_SCHEMA: "a schema of other records",
    Reason.OTHER_PARTITION: "in a partition where its key does not belong",
}


@dataclass(frozen=True, eq=False)
class Refusals:
    """Refused values: one entry per row and field, ordered by row, then field."""

    schema: Schema
    rows: NDArray[np.int64]
    """Index of the refused row in the input, from 0."""
    fields: NDArray[np.int16]
    """Index into `schema.fields()`, or `RECORD`, or `KEY`."""
    reasons: NDArray[np.int8]
    """Values of `Reason`."""

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def none(cls, schema: Schema) -> Refusals:
        """Nothing is refused."""
        return cls(schema, np.empty(0, np.int64), np.empty(0, np.int16), np.empty(0, np.int8))

    @classmethod
    def records(cls, schema: Schema, rows: NDArray[np.int64], reasons: NDArray[np.int8]) -> Refusals:
        """Records refused as a whole."""
        return cls(schema, rows, np.full(len(rows), RECORD, np.int16), reasons)

    @classmethod
    def concat(cls, schema: Schema, parts: Sequence[Refusals]) -> Refusals:
        """All entries of these parts, ordered anew."""
        if not parts:
            return cls.none(schema)
        rows = np.concatenate([part.rows for part in parts])
        fields = np.concatenate([part.fields for part in parts])
        order = np.lexsort((fields, rows))
        return cls(schema, rows[order], fields[order], np.concatenate([part.reasons for part in parts])[order])

    def shifted(self, offset: int) -> Refusals:
        """The same entries with `offset` added to their rows."""
        return Refusals(self.schema, self.rows + offset, self.fields, self.reasons)

    def first_per_row(self) -> Refusals:
        """One entry per refused row: that of its first field."""
        first = np.ones(len(self), bool)
        first[1:] = self.rows[1:] != self.rows[:-1]
        return Refusals(self.schema, self.rows[first], self.fields[first], self.reasons[first])

    @property
    def row_count(self) -> int:
        """Number of rows with at least one refused value."""
        return len(self.first_per_row())

    def field_name(self, field: int) -> str:
        """Name of a field index as a report shows it."""
        if field >= 0:
            return self.schema.fields()[field]
        return "(key)" if field == KEY else "(record)"

    def counts(self) -> dict[tuple[str, Reason], int]:
        """Number of refused values by field name and reason."""
        pairs, numbers = np.unique(np.stack([self.fields, self.reasons]), axis=1, return_counts=True)
        return {
            (self.field_name(int(field)), Reason(int(reason))): int(number)
            for field, reason, number in zip(*pairs, numbers, strict=True)
        }

    def describe(self, examples: int = 3) -> str:
        """One line per field and reason, with the count and the first few row numbers, counted from 1."""
        return "\n".join(f"{field}: {complaint}" for field, complaint in self.complaints(examples))

    def complaints(self, examples: int = 3) -> list[tuple[str, str]]:
        """The same as pairs of a field's name and what is wrong with it."""
        found = []
        pairs = np.unique(np.stack([self.fields, self.reasons]), axis=1).T
        for field, reason in pairs:
            rows = self.rows[(self.fields == field) & (self.reasons == reason)]
            shown = ", ".join(str(row + 1) for row in rows[:examples])
            more = ", …" if len(rows) > examples else ""
            word = "row" if len(rows) == 1 else "rows"
            sentence = f"{Reason(int(reason)).sentence} in {len(rows)} {word} ({shown}{more})"
            found.append((self.field_name(int(field)), sentence))
        return found
