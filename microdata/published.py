"""Published tables: what an outsider sees, and how a published file is understood."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.json as pa_json
from numpy.typing import NDArray

from microdata.boxes import Boxes
from microdata.columns import check_fields, distinct, field_column, field_source, leaf_names, texts
from microdata.encoding import public_values, sensitive_codes
from microdata.errors import DataError
from microdata.generalizations import as_text, parse_label, side_texts
from microdata.lines import unescaped
from microdata.publication import Publication
from microdata.refusals import RECORD, Reason, Refusals
from microdata.schema import Attribute, Schema
from microdata.showing import Show
from microdata.sources import Chunk, column_chunks, format_of, line_chunks, reading
from microdata.table import concat_public

Formulas: TypeAlias = Literal["escape", "keep"]
"""Whether texts that a spreadsheet would run have an apostrophe in front of them in CSV files."""


@dataclass(frozen=True, eq=False)
class Published:
    """A published table as anybody can read it: no person, no row number."""

    schema: Schema
    boxes: Boxes
    """One box per class, as published; where means are shown, their points."""
    classes: NDArray[np.int32]
    """Class of each row, from 0; every class has a row."""
    sensitive: NDArray[np.int32]
    """Rows × sensitive attributes: the index of the value on its grid, or of the leaf."""
    public: pa.Table | None = None
    """Public columns, in the order of the schema."""
    undeclared: tuple[str, ...] = ()
    """Columns of the file that the schema does not let out, the person's among them."""
    labels: tuple[str, ...] = ()
    """What the file calls each class; empty where it has no such column."""
    show: Show = "interval"
    """What the boxes are: around the rows of their class, or the means of them."""

    def __len__(self) -> int:
        return len(self.classes)


def class_column(schema: Schema) -> str:
    """Name of the column that tells classes apart."""
    name = "class"
    while name in schema.fields():
        name += "_"
    return name


def published_of(publication: Publication) -> Published:
    """What a publication lets out, in the order of its table."""
    own = publication.classes >= 0
    table = publication.table.take(own)
    classes, boxes = publication.classes[own], publication.shown()
    return Published(table.schema, boxes, classes, table.sensitive, table.public, show=publication.show)


def read_published(
    path: str | Path, schema: Schema, *, formulas: Formulas = "escape", show: Show = "interval"
) -> Published:
    """Read a published file, whoever wrote it, and understand it by the schema and by how its classes are shown.

    Rows are one class when they agree in all generalized values and, where there is a column `class`, in that.
    """
    path = Path(path)
    sheet = _Sheet(schema, show)
    with reading(path):
        wanted = [attribute.name for attribute in schema.quasi + schema.sensitive]
        optional = [class_column(schema), *schema.public]
        is_json = format_of(path) == "json"
        for chunk in _json_chunks(path, wanted) if is_json else column_chunks(path, wanted, optional):
            sheet.add(_unescaped(chunk) if formulas == "escape" and format_of(path) == "csv" else chunk)
        return sheet.published()


def _unescaped(chunk: Chunk) -> Chunk:
    columns = [unescaped(column) for column in chunk.columns.columns]
    return replace(chunk, columns=pa.record_batch(columns, names=chunk.columns.schema.names))


class _Sheet:
    """A published table while it is read: codes per row, what they stand for per column."""

    def __init__(self, schema: Schema, show: Show) -> None:
        self._schema = schema
        self._show = show
        self._sides = [_Side(attribute, points=show == "mean" and attribute.ordered) for attribute in schema.quasi]
        self._class_codes: dict[str | None, int] = {}
        self._codes: list[NDArray[np.int32]] = []
        self._sensitive: list[NDArray[np.int32]] = []
        self._public: list[pa.Table] = []
        self._names: dict[str, None] = {}

    def add(self, chunk: Chunk) -> None:
        """Take the next rows; the first values that are not understood end it."""
        columns, rows = chunk.columns, len(chunk.rows)
        self._names |= dict.fromkeys(chunk.names)
        found = [(RECORD, np.full(len(chunk.misshapen), Reason.WRONG_SHAPE, np.int8), chunk.misshapen)]
        codes = np.zeros((rows, len(self._sides) + 1), np.int32)
        for position, side in enumerate(self._sides):
            codes[:, position], reasons = side.encode(field_column(columns, side.attribute.name))
            found.append((self._field(side.attribute), reasons, chunk.rows))
        codes[:, -1] = self._classes(columns)
        sensitive = np.zeros((rows, len(self._schema.sensitive)), np.int32)
        for position, attribute in enumerate(self._schema.sensitive):
            sensitive[:, position], reasons = sensitive_codes(attribute, field_column(columns, attribute.name))
            found.append((self._field(attribute), reasons, chunk.rows))
        public = {}
        for name in (name for name in self._schema.public if field_source(columns.schema, name) is not None):
            public[name], reasons = public_values(field_column(columns, name))
            found.append((self._schema.fields().index(name), reasons, chunk.rows))
        self._check(found)
        self._codes.append(codes)
        self._sensitive.append(sensitive)
        self._public.append(pa.table(public))

    def published(self) -> Published:
        """The whole table."""
        if not sum(map(len, self._codes)):
            raise DataError("there are no rows")
        codes = np.concatenate(self._codes)
        first, classes = _grouped(codes)
        lo, hi = np.empty((2, len(first), len(self._sides)))
        for position, side in enumerate(self._sides):
            ends = np.array(list(side.pairs))[codes[first, position]]
            lo[:, position], hi[:, position] = ends[:, 0], ends[:, 1]
        public = concat_public(self._public)
        return Published(
            self._schema,
            Boxes(self._schema, lo, hi),
            classes,
            np.concatenate(self._sensitive),
            public if public.num_columns else None,
            self._undeclared(),
            self._labels(codes[first, -1]),
            self._show,
        )

    def _classes(self, columns: pa.RecordBatch) -> NDArray[np.int32]:
        """Code of each row's class number or name; all alike where the file has none."""
        index, values = distinct(texts(field_column(columns, class_column(self._schema)))[0])
        known = self._class_codes
        codes = [known.setdefault(value, len(known)) for value in [*values.to_pylist(), None]]
        return np.array(codes, np.int32)[index]

    def _labels(self, codes: NDArray[np.int32]) -> tuple[str, ...]:
        if class_column(self._schema) not in self._names:
            return ()
        labels = list(self._class_codes)
        return tuple(labels[code] or "" for code in codes)

    def _field(self, attribute: Attribute) -> int:
        return self._schema.fields().index(attribute.name)

    def _check(self, found: Sequence[tuple[int, NDArray[np.int8], NDArray[np.int64]]]) -> None:
        parts = [
            Refusals(self._schema, rows[bad], np.full(int(bad.sum()), field, np.int16), reasons[bad])
            for field, reasons, rows in found
            if (bad := reasons != 0).any()
        ]
        if parts:
            refusals = Refusals.concat(self._schema, parts)
            raise DataError("not understood (rows counted from 1, without the header)", fields=refusals.complaints())

    def _undeclared(self) -> tuple[str, ...]:
        """Columns that no published role names, those inside structs included."""
        roles = self._schema.roles()
        allowed = (class_column(self._schema), *roles["quasi"], *roles["sensitive"], *roles["public"])
        return tuple(
            name for name in self._names if not any(name == own or name.startswith(own + ".") for own in allowed)
        )


class _Side:
    """One quasi-identifier of a published table: each distinct text is parsed once, each interval has one code."""

    def __init__(self, attribute: Attribute, *, points: bool) -> None:
        self.attribute = attribute
        self._points = points
        self.pairs: dict[tuple[float, float], int] = {}
        self._known: dict[str | None, tuple[int, int]] = {None: (0, Reason.MISSING), "": (0, Reason.MISSING)}

    def encode(self, column: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
        """Code and reason of every row."""
        labels, against = side_texts(column)
        index, values = distinct(labels)
        known = np.array([self._code(value) for value in [*values.to_pylist(), None]])
        return known[index, 0].astype(np.int32), np.where(against == 0, known[index, 1], against).astype(np.int8)

    def _code(self, label: str | None) -> tuple[int, int]:
        if label not in self._known:
            low, high, reason = parse_label(self.attribute, label or "")
            if self._points and not reason and low < high:
                reason = Reason.NOT_A_NUMBER if self.attribute.numeric else Reason.UNKNOWN_CATEGORY
            self._known[label] = self.pairs.setdefault((low, high), len(self.pairs)), reason
        return self._known[label]


def _grouped(codes: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """First row of each class, and the class of each row: rows that agree in every code are one class."""
    _, first, classes = np.unique(codes[:, -1], return_index=True, return_inverse=True)
    if not (codes == codes[first[classes]]).all():
        for position in range(codes.shape[1] - 1):
            column = codes[:, position].astype(np.int64)
            _, first, classes = np.unique(
                classes * (int(column.max()) + 1) + column, return_index=True, return_inverse=True
            )
    return first, classes.astype(np.int32)


def _json_chunks(path: Path, wanted: Sequence[str]) -> Iterator[Chunk]:
    done = 0
    for lines, share in line_chunks(path):
        if not lines:
            continue
        columns = _json_columns(lines)
        check_fields(columns.schema, wanted)
        rows = np.arange(done, done + len(lines))
        done += len(lines)
        yield Chunk(leaf_names(columns.schema), columns, rows, np.empty(0, np.int64), share)


def _json_columns(lines: Sequence[bytes]) -> pa.Table:
    """Parse lines at once where every field keeps its type, else field by field as text."""
    block = b"\n".join(lines)
    try:
        columns = pa_json.read_json(
            pa.BufferReader(block),
            read_options=pa_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
            parse_options=pa_json.ParseOptions(explicit_schema=_text_fields(lines[0])),
        )
        # The parser checks neither UTF-8 nor lists that hold nulls.
        columns.validate(full=True)
        if columns.num_rows == len(lines):
            return columns
    except pa.ArrowException:
        pass
    events = [_json_object(line) for line in lines]
    names = dict.fromkeys(name for event in events for name in event)
    return pa.table({name: pa.array([as_text(event.get(name)) for event in events], pa.string()) for name in names})


def _text_fields(line: bytes) -> pa.Schema:
    """The fields that hold text, so that none is taken for a date."""
    return pa.schema([(name, pa.string()) for name, value in _json_object(line).items() if isinstance(value, str)])


def _json_object(line: bytes) -> dict[str, Any]:
    try:
        return dict(orjson.loads(line))
    except (ValueError, TypeError):
        raise DataError("a line is not a JSON object") from None
