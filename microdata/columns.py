"""Arrow columns as the encoder wants them: found by field name, and as canonical text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from microdata.errors import DataError
from microdata.refusals import Reason

_NAMES_SHOWN = 20


def field_column(columns: pa.Table | pa.RecordBatch, name: str) -> pa.Array:
    """Column of a field: one of that very name, or the end of a dotted path into structs; nulls where there is none."""
    same = columns.schema.get_all_field_indices(name)
    if len(same) > 1:
        raise DataError(f"column {name!r} is there {len(same)} times")
    if same:
        return plain(columns.column(same[0]))
    head, _, path = name.partition(".")
    if not path or head not in columns.schema.names:
        return pa.nulls(columns.num_rows)
    struct = plain(columns.column(head))
    if not pa.types.is_struct(struct.type):
        return pa.nulls(columns.num_rows)
    return field_column(pa.RecordBatch.from_struct_array(struct), path)


def field_source(schema: pa.Schema, name: str) -> str | None:
    """The top-level column in which a field is found, None where it is not."""
    if name in schema.names:
        return name
    head, _, path = name.partition(".")
    if not path or head not in schema.names:
        return None
    below = schema.field(head).type
    inner = pa.types.is_struct(below) and field_source(pa.schema(list(below)), path)
    return head if inner else None


def leaf_names(schema: pa.Schema) -> tuple[str, ...]:
    """Dotted names of all fields, those inside structs one by one."""
    names: list[str] = []
    for field in schema:
        inner = leaf_names(pa.schema(list(field.type))) if pa.types.is_struct(field.type) else ()
        names += [f"{field.name}.{name}" for name in inner] or [field.name]
    return tuple(names)


def check_fields(schema: pa.Schema, wanted: Sequence[str]) -> None:
    """Every wanted field is there, and once."""
    missing = [name for name in wanted if field_source(schema, name) is None]
    if missing:
        fields = [(name, "is missing") for name in missing]
        raise DataError("declared columns are missing", given=f"columns {name_list(schema.names)}", fields=fields)
    for name in wanted:
        if schema.names.count(name) > 1:
            raise DataError(f"column {name!r} is there {schema.names.count(name)} times")


def name_list(names: Sequence[str]) -> str:
    """Names for a message, not too many of them."""
    more = ", …" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(repr(name) for name in names[:_NAMES_SHOWN]) + more


def distinct(column: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """Index of each row into the distinct values (-1 for null), and these values."""
    encoded = column.dictionary_encode()
    return pc.fill_null(encoded.indices.cast(pa.int64()), -1).to_numpy(), encoded.dictionary


def texts(column: pa.Array) -> tuple[pa.Array, NDArray[np.int8]]:
    """Canonical text of every value, null where there is none, and reasons for values that have no text.

    Whole numbers read alike whatever their type (5, 5.0); so do days (2024-01-31) whether date or timestamp.
    """
    kind = column.type
    reasons = np.zeros(len(column), np.int8)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column, reasons
    if pa.types.is_null(kind):
        return column.cast(pa.string()), reasons
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _decoded(column, reasons)
    if pa.types.is_floating(kind):
        return _number_texts(column.cast(pa.float64())), reasons
    if pa.types.is_decimal(kind):
        return _decimal_texts(column), reasons
    if pa.types.is_timestamp(kind):
        return pc.strftime(column, format="%Y-%m-%d"), reasons
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date(kind):
        return column.cast(pa.string()), reasons
    reasons[is_valid(column)] = Reason.WRONG_TYPE
    return pa.nulls(len(column), pa.string()), reasons


def is_absent(values: pa.Array) -> NDArray[np.bool_]:
    """Where a text is null or empty."""
    return pc.fill_null(pc.equal(pc.binary_length(values), 0), fill_value=True).to_numpy(zero_copy_only=False)


def is_valid(column: pa.Array) -> NDArray[np.bool_]:
    """Where a value is not null."""
    return column.is_valid().to_numpy(zero_copy_only=False)


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this type are texts (or bytes that may be texts)."""
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(kind) for test in tests)


def plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One chunk, in a type that every compute function knows."""
    if pa.types.is_dictionary(column.type):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        values = [plain(chunk.dictionary).take(chunk.indices) for chunk in chunks]
        return pa.concat_arrays(values) if values else pa.nulls(0)
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    elif pa.types.is_binary_view(column.type):
        column = column.cast(pa.large_binary())
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _decoded(column: pa.Array, reasons: NDArray[np.int8]) -> tuple[pa.Array, NDArray[np.int8]]:
    """Bytes as UTF-8 text; where they are none, a null and a reason."""
    text = pa.large_string() if pa.types.is_large_binary(column.type) else pa.string()
    try:
        return column.cast(text), reasons
    except pa.ArrowInvalid:
        values = [_text_or_none(value) for value in column.to_pylist()]
    result = pa.array(values, text)
    reasons[is_valid(column) & ~is_valid(result)] = Reason.NOT_UTF8
    return result, reasons


def _text_or_none(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _number_texts(column: pa.Array) -> pa.Array:
    """Text of floats: whole numbers without a point, NaN as missing."""
    numbers = column.to_numpy(zero_copy_only=False)
    whole = np.isfinite(numbers) & (np.floor(numbers) == numbers) & (np.abs(numbers) < 2**53)
    integers = pa.array(np.where(whole, numbers, 0).astype(np.int64), mask=~whole).cast(pa.string())
    return pc.coalesce(integers, pc.if_else(pa.array(np.isnan(numbers)), None, column).cast(pa.string()))


def _decimal_texts(column: pa.Array) -> pa.Array:
    """Text of decimals with all their digits, but no zeros behind the last one (5.00 reads like 5)."""
    index, values = distinct(column)
    labels = [format(value, "f") for value in values.to_pylist()]
    labels = [label.rstrip("0").rstrip(".") if "." in label else label for label in labels]
    return pa.array(labels, pa.string()).take(pa.array(index, mask=index < 0))
