"""JSON events in bulk: newline-delimited parsing where events are alike, one by one where they are not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json
from numpy.typing import NDArray

from microdata.columns import field_column
from microdata.encoding import Encoded, Layers, RejectedRows, encode, encode_layers, rejected_by_key
from microdata.persons import PersonKey
from microdata.refusals import Reason, Refusals
from microdata.schema import LARGEST, Number, Schema

# Stands for a field below something that is no object: a list, which every field refuses as the wrong type.
_NO_VALUE: list[Any] = []
# Types of fields are taken from this many events at the head of a batch.
_EXAMPLES = 16
# The parser reads deeper nesting than it writes, and a public value has to be written again.
_DEEPEST = 254
# The parser makes floats of whole numbers beyond 64 bits: what may hold one is read once more, with all digits.
_LONG = re.compile(rb"\d{20}")


def encode_events(
    schema: Schema,
    payloads: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None = None,
    *,
    person_key: PersonKey,
    positions: NDArray[np.int64] | None = None,
) -> Encoded:
    """Encode one JSON object per payload; undeclared fields are never looked at.

    What is no JSON object is refused as a whole. A batch whose fields keep their types is parsed at once; any other
    batch event by event, with the same result. Persons of several batches are the same only under the same
    `person_key`; `positions` are as in `encode`.

    >>> from microdata import Number, PersonKey, Schema
    >>> schema = Schema("customer.id", (Number("age", 0, 120),))
    >>> events = [b'{"customer": {"id": 7}, "age": 31}', b'{"age"']
    >>> encoded = encode_events(schema, events, person_key=PersonKey.random())
    >>> encoded.table.quasi
    array([[31.]])
    >>> encoded.refusals.counts()
    {('(record)', <Reason.NOT_JSON: 11>): 1}
    """
    columns = _parsed_at_once(schema, payloads)
    if columns is not None and _has_rounded(schema, columns):
        columns = None
    if columns is None:
        return _encode_each(schema, payloads, keys, person_key, positions)
    return encode(schema, columns, keys, person_key=person_key, positions=positions)


def arrow_schema(schema: Schema, examples: Sequence[Mapping[str, Any]] = ()) -> pa.Schema:
    """The Arrow schema with which `pyarrow.json` reads exactly the declared fields.

    Numbers are floats and all else is text, unless one of the example events shows another type.
    """
    tree: dict[str, Any] = {}
    numbers = {attribute.name for attribute in schema.quasi + schema.sensitive if isinstance(attribute, Number)}
    for name in schema.fields():
        found = (_pick(event, name) for event in examples)
        value = next((value for value in found if value is not None), None)
        *above, last = [name] if any(name in event for event in examples) else name.split(".")
        below = tree
        for step in above:
            below = below.setdefault(step, {})
        below[last] = _arrow_type(value, number=name in numbers)
    return pa.schema(_arrow_fields(tree))


def _arrow_type(value: object, *, number: bool) -> pa.DataType:
    if number and (value is None or type(value) in {int, float}):
        return pa.float64()
    if value is None:
        return pa.string()
    try:
        return pa.infer_type([value])
    except (pa.ArrowException, OverflowError):
        return pa.string()


def _arrow_fields(tree: Mapping[str, Any]) -> list[pa.Field]:
    return [
        pa.field(name, pa.struct(_arrow_fields(below)) if isinstance(below, dict) else below)
        for name, below in tree.items()
    ]


def _parsed_at_once(schema: Schema, payloads: Sequence[bytes | None]) -> pa.Table | None:
    """All payloads as one block of lines, None where that does not give exactly one row per payload."""
    # Every payload that begins and ends like an object gives at least one row or an error. So as many rows as payloads
    # means one row each, whatever else a payload contains.
    if not payloads or not all(payload and payload[0] == 0x7B and payload[-1] == 0x7D for payload in payloads):
        return None
    block = b"\n".join(cast("Sequence[bytes]", payloads))
    examples = [event for payload in payloads[:_EXAMPLES] if not isinstance(event := _event(payload), Reason)]
    if len(examples) < min(_EXAMPLES, len(payloads)):
        return None
    try:
        columns = pa_json.read_json(
            pa.BufferReader(block),
            read_options=pa_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
            parse_options=pa_json.ParseOptions(
                explicit_schema=arrow_schema(schema, examples), unexpected_field_behavior="ignore"
            ),
        )
        columns.validate(full=True)
    except pa.ArrowException:
        return None
    return columns if columns.num_rows == len(payloads) else None


def _has_rounded(schema: Schema, columns: pa.Table) -> bool:
    """Whether a whole number may have lost digits among floats; declared numbers so large are refused in any case."""
    numbers = {attribute.name for attribute in schema.quasi + schema.sensitive if isinstance(attribute, Number)}
    return any(_has_large(field_column(columns, name)) for name in schema.fields() if name not in numbers)


def _has_large(column: pa.Array) -> bool:
    if pa.types.is_struct(column.type):
        return any(map(_has_large, column.flatten()))
    if pa.types.is_list(column.type):
        return _has_large(column.flatten())
    if not pa.types.is_floating(column.type):
        return False
    return bool(pc.any(pc.greater(pc.abs(column), float(LARGEST))).as_py())


def _encode_each(
    schema: Schema,
    payloads: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None,
    person_key: PersonKey,
    positions: NDArray[np.int64] | None = None,
) -> Encoded:
    events: list[dict[str, Any]] = []
    taken: list[int] = []
    refused: list[int] = []
    reasons: list[int] = []
    for row, payload in enumerate(payloads):
        event = _event(payload)
        if isinstance(event, Reason):
            refused.append(row)
            reasons.append(event)
        else:
            taken.append(row)
            events.append(event)
    fields: dict[str, Layers] = {}
    for name in schema.fields():
        values = [_pick(event, name) for event in events]
        fields[name] = [public_column(values)] if name in schema.public else layers_of(values)
    rows = np.array(taken, np.int64)
    encoded = encode_layers(
        schema,
        fields,
        len(events),
        None if keys is None else [keys[row] for row in taken],
        person_key=person_key,
        positions=rows if positions is None else positions[rows],
    )
    inner = encoded.refusals
    outer = Refusals.records(schema, np.array(refused, np.int64), np.array(reasons, np.int8))
    refusals = Refusals.concat(schema, [outer, Refusals(schema, rows[inner.rows], inner.fields, inner.reasons)])
    parts = [encoded.rejected.at(rows)] if encoded.rejected else []
    if keys is not None:
        by_key = [row for row, reason in zip(refused, reasons, strict=True) if reason != Reason.TOMBSTONE]
        whole = rejected_by_key(schema, np.array(by_key, np.int64), [keys[row] for row in by_key], person_key)
        parts += [whole] if whole else []
    rejected = RejectedRows.concat(len(schema.quasi), parts)
    return Encoded(encoded.table, rows[encoded.rows], refusals, rejected=rejected)


def _event(payload: bytes | None) -> dict[str, Any] | Reason:
    if payload is None:
        return Reason.TOMBSTONE
    try:
        event = orjson.loads(payload)
        if payload.count(b"[") + payload.count(b"{") > _DEEPEST:
            orjson.dumps(event)
        if _LONG.search(payload):
            event = json.loads(payload)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return Reason.NOT_JSON
    return event if isinstance(event, dict) else Reason.WRONG_TYPE


def _pick(event: Mapping[str, Any], name: str) -> Any:
    """Value of a field: under its very name, or at the end of its dotted path; None where there is none."""
    if name in event:
        return event[name]
    value: Any = event
    for step in name.split("."):
        if value is None:
            return None
        if not isinstance(value, dict):
            return _NO_VALUE
        value = value.get(step)
    return value


def layers_of(values: list[Any]) -> Layers:
    """Values of several types as one array per type."""
    kinds: dict[str, list[Any]] = {}
    for row, value in enumerate(values):
        kind, stored = _stored(value)
        if kind and kind not in kinds:
            kinds[kind] = [None] * len(values)
        if kind:
            kinds[kind][row] = stored
    return [pa.array(column) for column in kinds.values()] or [pa.nulls(len(values))]


def _stored(value: Any) -> tuple[str, Any]:
    """Kind of a value and what an Arrow array of that kind holds for it; no kind for null."""
    if value is None:
        return "", None
    if isinstance(value, str):
        return "text", value
    if isinstance(value, bool):
        return "truth", value
    if isinstance(value, int):
        return ("whole", value) if -(2**63) <= value < 2**63 else ("text", str(value))
    if isinstance(value, float):
        return "number", value
    # Lists and objects are refused for what they are, whatever they hold.
    return "nested", []


def public_column(values: list[Any]) -> pa.Array:
    """Public values as they are; as JSON text where an Arrow array cannot hold all of them."""
    if bool not in (kinds := set(map(type, values))) or kinds <= {bool, type(None)}:
        try:
            return pa.array(values)
        except (pa.ArrowException, OverflowError):
            pass
    texts = (value if isinstance(value, str) else _json_text(value) for value in values)
    return pa.array([None if value is None else text for value, text in zip(values, texts, strict=True)], pa.string())


def _json_text(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # a whole number beyond 64 bits
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
