"""Publications as files and frames.

A file has a column `class` that tells the classes apart (with underscores added where the schema uses that name), the
generalized quasi-identifiers, the sensitive and the public attributes. Its rows are shuffled and its classes numbered
at random, so that the order of the original is in neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microdata.decoding import all_values
from microdata.errors import GuaranteeError
from microdata.generalizations import box_cells, box_columns
from microdata.lines import Lines
from microdata.progress import Progress, silent
from microdata.publication import Publication
from microdata.published import Formulas, Published, class_column, published_of
from microdata.randomness import Words, system_words
from microdata.sinks import line_sink, lines_for, write_columns

_ROWS = 1 << 16


def published_columns(publication: Publication, *, words: Words = system_words) -> pa.Table:
    """What a publication lets out as Arrow columns, ready for pandas and polars; rows shuffled, classes renumbered."""
    sheet = _Sheet.of(publication, words)
    return pa.Table.from_batches(sheet.batches(silent), sheet.arrow_schema())


def write_published(
    publication: Publication,
    path: str | Path,
    *,
    words: Words = system_words,
    progress: Progress = silent,
    formulas: Formulas = "escape",
) -> NDArray[np.int64]:
    """Write what a publication lets out as CSV, JSON lines, Parquet or Arrow, by the ending of the name.

    Return the row of `publication.table` behind each row of the file. That undoes the anonymization: only the owner of
    the original may have it.

    Intervals are texts in CSV and lists of two numbers elsewhere, means are numbers everywhere. The file appears when
    it is complete. In CSV, a text that a spreadsheet would run (`=…`, `+…`, `-…`, `@…`) gets an apostrophe in front,
    unless `formulas` are kept.
    """
    path = Path(path)
    sheet = _Sheet.of(publication, words)
    lines = lines_for(path, escape=formulas == "escape")
    if lines is None:
        write_columns(sheet.arrow_schema(), sheet.batches(progress), path)
    else:
        with line_sink(path) as write:
            write(lines.head(sheet.names()))
            for block in sheet.blocks(lines, progress):
                write(block)
    return np.flatnonzero(publication.classes >= 0)[sheet.order]


@dataclass(frozen=True, eq=False)
class _Sheet:
    """A published table in the order and with the class numbers in which it is written."""

    published: Published
    order: NDArray[np.int64]
    numbers: NDArray[np.int64]
    """Number of each class, from 1."""

    @classmethod
    def of(cls, publication: Publication, words: Words) -> _Sheet:
        published = published_of(publication)
        own, boxes, shown = publication.classes >= 0, publication.boxes.widened(), published.boxes
        outside = int((~boxes.cover(publication.table.quasi[own], published.classes)).sum())
        if outside:
            raise GuaranteeError(f"{outside} rows lie outside the box of their class")
        strange = int((~((boxes.lo <= shown.lo) & (shown.hi <= boxes.hi)).all(axis=1)).sum())
        if strange:
            raise GuaranteeError(f"{strange} classes are shown outside of their box")
        return cls(published, np.argsort(words(len(published))), np.argsort(words(len(published.boxes))) + 1)

    def names(self) -> list[str]:
        roles = self.published.schema.roles()
        return [class_column(self.published.schema), *roles["quasi"], *roles["sensitive"], *roles["public"]]

    def arrow_schema(self) -> pa.Schema:
        return self._batch(np.empty(0, np.int64)).schema

    def batches(self, progress: Progress) -> Iterator[pa.RecordBatch]:
        for rows in self._slices(progress):
            yield self._batch(rows)

    @cached_property
    def _boxes(self) -> list[pa.Array]:
        return list(box_columns(self.published.boxes, self.published.show).values())

    @cached_property
    def _values(self) -> list[pa.Array]:
        return [all_values(attribute) for attribute in self.published.schema.sensitive]

    def _batch(self, rows: NDArray[np.int64]) -> pa.RecordBatch:
        published = self.published
        classes = pa.array(published.classes[rows])
        columns = [pa.array(self.numbers[published.classes[rows]])]
        columns += [column.take(classes) for column in self._boxes]
        for position, values in enumerate(self._values):
            columns.append(values.take(pa.array(published.sensitive[rows, position])))
        if published.public is not None:
            columns += [column.combine_chunks() for column in published.public.take(pa.array(rows)).columns]
        return pa.record_batch(columns, names=self.names())

    def blocks(self, lines: Lines, progress: Progress) -> Iterator[bytes]:
        """The rows as text. What a class or a sensitive value looks like is made once and taken for every row."""
        published = self.published
        schema = published.schema
        numbers = lines.cells(class_column(schema), pa.array(self.numbers))
        classes = lines.joined([numbers, *box_cells(published.boxes, lines, published.show)])
        named = zip(schema.sensitive, self._values, strict=True)
        sensitive = [lines.cells(attribute.name, values) for attribute, values in named]
        for rows in self._slices(progress):
            cells = [classes.take(pa.array(published.classes[rows]))]
            for position, values in enumerate(sensitive):
                cells.append(values.take(pa.array(published.sensitive[rows, position])))
            if published.public is not None:
                public = published.public.take(pa.array(rows))
                cells += [lines.cells(name, public.column(name)) for name in schema.public]
            yield lines.rows(cells)

    def _slices(self, progress: Progress) -> Iterator[NDArray[np.int64]]:
        total = len(self.order)
        for first in range(0, total, _ROWS):
            yield self.order[first : first + _ROWS]
            progress("write", min(first + _ROWS, total), total)
