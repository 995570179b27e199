"""Ratings from files and back: CSV, Parquet, JSON lines, Arrow; a row per rating or a row per person.

A row or cell without a rating says that somebody did not rate something: it is no rating, never 0. What the schema does
not allow is refused with field and reason. Rows are counted from 1, without the header.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from microdata.columns import distinct, field_column, is_absent, texts
from microdata.encoding import encode_persons, sensitive_codes
from microdata.errors import DataError
from microdata.files import OnRefused, read_batches
from microdata.lines import unescaped
from microdata.persons import PersonKey
from microdata.progress import Progress, silent
from microdata.randomness import Words, system_words
from microdata.ratings.matrix import Ratings
from microdata.ratings.schema import RatingSchema
from microdata.refusals import Reason
from microdata.schema import Schema
from microdata.sinks import write_columns
from microdata.sources import column_chunks, format_of, line_chunks, reading

Formulas = Literal["escape", "keep"]
ROWS = 1 << 16
"""Rows that are written at once."""
CELLS = 1 << 22
"""Cells of a wide table that are written at once."""
MOST_SENSITIVE = 1000
"""Sensitive items: everybody has a place for each of them."""
_RECORD = "(record)"


@dataclass(frozen=True)
class RefusedRatings:
    """Rows that were refused because of one field, for one reason."""

    field: str
    code: str
    sentence: str
    rows: tuple[int, ...]
    """From 0, in order."""

    def __str__(self) -> str:
        shown = ", ".join(str(row + 1) for row in self.rows[:3])
        more = ", …" if len(self.rows) > 3 else ""
        return f"{self.sentence} in {len(self.rows)} row{'s' * (len(self.rows) > 1)} ({shown}{more})"


@dataclass(frozen=True, eq=False)
class RatingsReading:
    """What a file holds, and what was refused of it."""

    ratings: Ratings
    refused: tuple[RefusedRatings, ...]
    unrated: int
    """Rows without any rating: they say nothing."""
    rows: int
    """Rows of the file."""

    @property
    def rejected(self) -> int:
        """Rows that fail validation: a row is taken or rejected as a whole."""
        return len(set().union(*(one.rows for one in self.refused)))

    def describe(self) -> str:
        """One line for each field and reason."""
        return "\n".join(f"{one.field}: {one}" for one in self.refused)


@dataclass
class _Found:
    """Entries of a file, part by part."""

    names: dict[str, int] = field(default_factory=dict)
    persons: list[NDArray[np.int64]] = field(default_factory=list)
    items: list[NDArray[np.int64]] = field(default_factory=list)
    values: list[NDArray[np.int16]] = field(default_factory=list)
    rows: list[NDArray[np.int64]] = field(default_factory=list)
    refused: dict[tuple[str, str, str], list[int]] = field(default_factory=dict)
    unrated: int = 0
    read: int = 0
    """Rows of the file."""

    def add(
        self, persons: NDArray[np.int64], items: NDArray[np.int64], values: NDArray[Any], rows: NDArray[np.int64]
    ) -> None:
        self.persons.append(persons)
        self.items.append(items)
        self.values.append(values.astype(np.int16))
        self.rows.append(rows)

    def refuse(self, name: str, reason: Reason, rows: NDArray[np.int64]) -> None:
        self.refuse_for(name, reason.code, reason.sentence, rows)

    def refuse_for(self, name: str, code: str, sentence: str, rows: NDArray[np.int64]) -> None:
        if len(rows):
            self.refused.setdefault((name, code, sentence), []).extend(rows.tolist())

    def codes(self, names: Sequence[str]) -> NDArray[np.int64]:
        return np.array([self.names.setdefault(name, len(self.names)) for name in names], np.int64)


def read_ratings(
    path: str | Path,
    schema: RatingSchema,
    *,
    on_refused: OnRefused = "stop",
    formulas: Formulas = "keep",
    progress: Progress = silent,
) -> RatingsReading:
    """Read a whole file. `formulas="escape"` undoes what `write_ratings` does to names that a spreadsheet would run."""
    path, found = Path(path), _Found()
    with reading(path):
        if schema.layout == "long":
            _read_long(path, schema, found, formulas, progress)
        else:
            _read_wide(path, schema, found, formulas, progress)
        ratings = _joined(schema, found)
        refused = tuple(RefusedRatings(*key, tuple(sorted(set(rows)))) for key, rows in found.refused.items())
        if refused and (on_refused == "stop" or not len(ratings)):
            count = len(set().union(*(one.rows for one in refused)))
            reason = f"{count} row{'s are' if count > 1 else ' is'} refused (counted from 1, without the header)"
            raise DataError(reason, fields=[(one.field, str(one)) for one in refused])
        if not len(ratings):
            raise DataError("there are no ratings")
    return RatingsReading(ratings, refused, found.unrated, found.read)


def write_ratings(
    ratings: Ratings,
    path: str | Path,
    *,
    words: Words = system_words,
    formulas: Formulas = "keep",
    progress: Progress = silent,
) -> None:
    """Write what may leave. Persons get the numbers 1, 2, … in a random order, which is also the order of the rows."""
    path = Path(path)
    order = np.argsort(words(len(ratings)), kind="stable")
    batches = _long_batches if ratings.schema.layout == "long" else _wide_batches
    made = batches(ratings.take(order))
    first = next(made)
    write_columns(first.schema, _told(first, made, len(ratings), progress), path, escape=formulas == "escape")


def _told(
    first: pa.RecordBatch, rest: Iterator[pa.RecordBatch], total: int, progress: Progress
) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest
    progress("write", total, total)


# -- reading ----------------------------------------------------------------------------------------------------------


def _read_long(path: Path, schema: RatingSchema, found: _Found, formulas: Formulas, progress: Progress) -> None:
    """Read the rows as records with one number and a public text: every format and every odd value is known there."""
    scale = schema.scale.number(schema.rating)
    records = Schema(schema.person, (scale,), public=(schema.item,))
    fields = records.fields()
    for part in read_batches(path, records, on_refused="drop", progress=progress):
        refusals = part.refusals
        found.read += len(part.rows) + refusals.row_count
        for index in np.unique(refusals.fields).tolist():
            own = refusals.fields == index
            name = fields[index] if index >= 0 else _RECORD
            for reason in np.unique(refusals.reasons[own]).tolist():
                rows = refusals.rows[own & (refusals.reasons == reason)]
                if name == schema.rating and reason == Reason.MISSING:
                    found.unrated += len(rows)
                else:
                    found.refuse(name, Reason(reason), rows)
        assert part.table.public is not None
        _add_long(schema, part, found, unescape=formulas == "escape" and format_of(path) == "csv")


def _add_long(schema: RatingSchema, part: Any, found: _Found, *, unescape: bool) -> None:
    scale, rows = schema.scale, part.rows
    labels, why = texts(field_column(part.table.public, schema.item))
    index, values = distinct(unescaped(labels) if unescape else labels)
    names = [(name or "").strip() for name in values.to_pylist()]
    known = np.append(schema.knows(names) & np.array([bool(name) for name in names], bool), False)
    absent = is_absent(labels)
    steps = (part.table.quasi[:, 0] - scale.low) / scale.step
    nearest = np.rint(steps)
    on_step = np.abs(steps - nearest) <= 1e-6
    found.refuse(schema.rating, Reason.NOT_ON_STEP, rows[~on_step])
    for reason in np.unique(why[why > 0]).tolist():
        found.refuse(schema.item, Reason(reason), rows[why == reason])
    found.refuse(schema.item, Reason.MISSING, rows[absent & (why == 0)])
    unknown = ~known[index] & ~absent
    found.refuse_for(schema.item, "unknown_item", "not one of the declared items", rows[unknown])
    taken = known[index] & on_step & ~absent
    used = np.zeros(len(names) + 1, bool)
    used[index[taken]] = True
    codes = np.full(len(names) + 1, -1, np.int64)
    codes[:-1][used[:-1]] = found.codes([name for name, own in zip(names, used[:-1], strict=True) if own])
    found.add(part.table.persons[taken], codes[index[taken]], nearest[taken] + 1, rows[taken])


def _read_wide(path: Path, schema: RatingSchema, found: _Found, formulas: Formulas, progress: Progress) -> None:
    """A column at a time; the file's own columns say which items there are."""
    key, number, done = PersonKey.random(), schema.scale.number(schema.rating), 0
    unescape = formulas == "escape" and format_of(path) == "csv"
    for columns, rows, misshapen, share in _wide_chunks(path, schema, unescape=unescape):
        found.refuse(_RECORD, Reason.NOT_JSON if format_of(path) == "json" else Reason.WRONG_SHAPE, misshapen)
        persons, why = encode_persons(key, field_column(columns, schema.person))
        for reason in np.unique(why[why > 0]).tolist():
            found.refuse(schema.person, Reason(reason), rows[why == reason])
        rated = np.zeros(len(rows), bool)
        for name in _item_columns(schema, columns.schema.names):
            codes, reasons = sensitive_codes(number, field_column(columns, name))
            for reason in np.unique(reasons[reasons > 0]).tolist():
                if reason != Reason.MISSING:
                    found.refuse(name, Reason(reason), rows[reasons == reason])
            taken = (reasons == 0) & (why == 0)
            rated |= reasons != Reason.MISSING
            (code,) = found.codes([name])
            found.add(persons[taken], np.full(int(taken.sum()), code), codes[taken] + 1, rows[taken])
        found.unrated += int((~rated).sum())
        done += len(rows)
        found.read += len(rows) + len(misshapen)
        progress("read", done, max(done, round(done / share) if share else done))
    if not done:
        raise DataError("there are no rows")


def _wide_chunks(
    path: Path, schema: RatingSchema, *, unescape: bool
) -> Iterator[tuple[Any, NDArray[np.int64], NDArray[np.int64], float]]:
    if format_of(path) == "json":
        yield from _wide_lines(path, schema)
        return
    everything = next(iter(column_chunks(path, ())), None)
    if everything is None:
        return
    names = unescaped(pa.array(everything.names, pa.string())).to_pylist() if unescape else everything.names
    wanted = (schema.person, *_item_columns(schema, names))
    for chunk in column_chunks(path, tuple(dict.fromkeys((*schema.fields(), *wanted)))):
        yield chunk.columns, chunk.rows, chunk.misshapen, chunk.share


def _wide_lines(path: Path, schema: RatingSchema) -> Iterator[tuple[Any, NDArray[np.int64], NDArray[np.int64], float]]:
    done = 0
    for lines, share in line_chunks(path):
        events = [_object(line) for line in lines]
        rows = np.arange(done, done + len(lines))
        done += len(lines)
        taken = np.array([event is not None for event in events], bool)
        kept = [event for event in events if event is not None]
        names = dict.fromkeys(name for event in kept for name in event)
        wanted = dict.fromkeys((schema.person, *_item_columns(schema, tuple(names))))
        columns = {name: _column([event.get(name) for event in kept]) for name in wanted}
        if len(lines):
            yield pa.table(columns), rows[taken], rows[~taken], share


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return event if isinstance(event, dict) else None


def _column(values: list[Any]) -> pa.Array:
    """Values of several types become texts: what is no number then says so by itself."""
    if any(isinstance(value, bool | dict | list) for value in values):
        values = [
            value if isinstance(value, str) or value is None else orjson.dumps(value).decode() for value in values
        ]
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values])


def _item_columns(schema: RatingSchema, names: Sequence[str]) -> list[str]:
    others = [name for name in names if name != schema.person]
    return [name for name, own in zip(others, schema.knows(others), strict=True) if own]


def _joined(schema: RatingSchema, found: _Found) -> Ratings:
    """All entries by person and item; where somebody has rated an item twice, nobody knows which rating is true."""
    persons, items, values, rows = (
        np.concatenate(parts) if parts else np.empty(0, np.int64)
        for parts in (found.persons, found.items, found.values, found.rows)
    )
    names = sorted(found.names)
    place = np.empty(len(names), np.int64)
    place[[found.names[name] for name in names]] = np.arange(len(names))
    items = place[items] if len(items) else items.astype(np.int64)
    refused = np.array(sorted(set().union(*found.refused.values())), np.int64)
    order = np.lexsort((items, persons))
    order = order[~np.isin(rows[order], refused)]  # a row is taken or refused as a whole
    persons, items, values, rows = persons[order], items[order], values[order], rows[order]
    twice = np.zeros(len(order), bool)
    same = (persons[1:] == persons[:-1]) & (items[1:] == items[:-1])
    twice[1:] |= same
    twice[:-1] |= same
    told = schema.item if schema.layout == "long" else schema.person
    said = "rated twice by one person" if schema.layout == "long" else "in several rows"
    found.refuse_for(told, "twice", said, np.unique(rows[twice]))
    hidden = int(schema.is_sensitive(names).sum())
    if hidden > MOST_SENSITIVE:
        raise DataError(f"at most {MOST_SENSITIVE} items may be sensitive", given=f"{hidden} of them")
    fine = ~np.isin(rows, rows[twice])
    codes, index = np.unique(persons[fine], return_inverse=True)
    return Ratings.of(schema, names, codes, index.astype(np.int64), items[fine], values[fine].astype(np.int64))


# -- writing ----------------------------------------------------------------------------------------------------------


def _all_entries(ratings: Ratings, first: int, last: int) -> tuple[NDArray[np.int64], ...]:
    """Person, item and rating of these rows, by person and item."""
    parts = [part.take(np.arange(first, last)) for part in (ratings.open, ratings.sensitive)]
    rows, items, values = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "items", "values")
    )
    order = np.lexsort((items, rows))
    return rows[order] + first, items[order].astype(np.int64), values[order].astype(np.int64)


def _long_batches(ratings: Ratings) -> Iterator[pa.RecordBatch]:
    schema, names = ratings.schema, pa.array(ratings.names, pa.string())
    for first in range(0, max(len(ratings), 1), ROWS):  # without any person, the header is still written
        rows, items, values = _all_entries(ratings, first, min(first + ROWS, len(ratings)))
        columns = [pa.array(rows + 1), names.take(pa.array(items)), pa.array(ratings.scale.values(values))]
        yield pa.record_batch(columns, names=[schema.person, schema.item, schema.rating])


def _wide_batches(ratings: Ratings) -> Iterator[pa.RecordBatch]:
    at_once = max(1, CELLS // max(len(ratings.names), 1))
    codes = np.arange(len(ratings.names))
    for first in range(0, max(len(ratings), 1), at_once):
        last = min(first + at_once, len(ratings))
        own = ratings.take(np.arange(first, last))
        cells = own.open.dense(codes, len(codes)) + own.sensitive.dense(codes, len(codes))
        columns = [pa.array(np.arange(first, last) + 1)]
        columns += [pa.array(ratings.scale.values(column), mask=column == 0) for column in cells.T]
        yield pa.record_batch(columns, names=[ratings.schema.person, *ratings.names])
