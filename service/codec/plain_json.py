"""Plain JSON records, a batch at once: into columns without an object per record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microdata import Schema
from service.codec._json_kernels import END, NUMBER, PUBLIC, TEXT, Found, Tree, gather, scan

_END = bytes([END])
_NULL = b"null"
Names: TypeAlias = dict[str, "Names | str"]
"""Nested names; a declared field has its whole name."""


@dataclass(frozen=True, eq=False)
class Plain:
    """What the scanner has understood."""

    taken: NDArray[np.bool_]
    """Which of the records."""
    columns: Mapping[str, pa.Array]
    """Their declared fields: numbers, texts, and the JSON text of public values."""


class PlainRecords:
    """Scans records of one schema; those above `max_bytes` are not looked at."""

    def __init__(self, schema: Schema, max_bytes: int) -> None:
        numbers = {a.name for a in (*schema.quasi, *schema.sensitive) if a.numeric}
        kinds = dict.fromkeys(schema.fields(), TEXT) | dict.fromkeys(numbers, NUMBER)
        self._kinds = kinds | dict.fromkeys(schema.public, PUBLIC)
        self._tree = _tree(self._kinds)
        self._max_bytes = max_bytes

    def scan(self, values: Sequence[bytes | None]) -> Plain:
        """The declared fields of those records that are plain."""
        limit = self._max_bytes
        looked_at = [value if value is not None and len(value) <= limit else b"" for value in values]
        joined = _END.join((*looked_at, _NULL))
        data = np.frombuffer(joined, np.uint8)
        lengths = np.fromiter(chain((0,), map(len, looked_at)), np.int64, len(values) + 1)
        # A public field that is not there is null: the text behind the last record.
        found = self._nothing(len(values), len(joined) - len(_NULL), len(joined))
        taken = scan(data, np.cumsum(lengths) + np.arange(len(lengths)), self._tree, found, not _is_text(joined))
        rows = slice(None) if taken.all() else taken
        columns = {
            name: _numbers(joined, *(each[place][rows] for each in found))
            if kind == NUMBER
            else _texts(data, found.begins[place][rows], found.ends[place][rows])
            for place, (name, kind) in enumerate(self._kinds.items())
        }
        return Plain(taken, columns)

    def _nothing(self, records: int, begin: int, end: int) -> Found:
        shape = len(self._kinds), records
        return Found(np.full(shape, begin), np.full(shape, end), np.empty(shape))


def _is_text(joined: bytes) -> bool:
    """Whether all of it is UTF-8. The byte between two records belongs to no character, so each of them is, too."""
    try:
        return joined.isascii() or bool(joined.decode())
    except UnicodeDecodeError:
        return False


def _numbers(
    joined: bytes, begins: NDArray[np.int64], ends: NDArray[np.int64], numbers: NDArray[np.float64]
) -> pa.Array:
    for row in np.flatnonzero(np.isnan(numbers)).tolist():
        numbers[row] = float(joined[begins[row] : ends[row]])
    return pa.array(numbers)


def _texts(data: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64]) -> pa.Array:
    offsets, texts = gather(data, begins, ends)
    return pa.LargeStringArray.from_buffers(len(begins), pa.py_buffer(offsets), pa.py_buffer(texts))


def _tree(kinds: Mapping[str, int]) -> Tree:
    """The declared fields as the scanner walks through them."""
    root: Names = {}
    for name in kinds:
        *path, last = name.split(".")
        inside = root
        for part in path:
            inside = inside.setdefault(part, {})  # type: ignore[assignment] # no field lies inside of another
        inside[last] = name
    objects = list(_objects(root))
    places = {id(names): place for place, names in enumerate(objects)}
    children = [(part, below) for names in objects for part, below in names.items()]
    numbers = {name: place for place, name in enumerate(kinds)}
    texts = [part.encode() for part, _ in children]
    ends = np.cumsum([0, *map(len, texts)])
    return Tree(
        np.cumsum([0, *map(len, objects)]),
        np.frombuffer(b"".join(texts), np.uint8),
        np.column_stack([ends[:-1], ends[1:]]),
        np.array([places[id(below)] if isinstance(below, dict) else -1 for _, below in children], np.int64),
        np.array([-1 if isinstance(below, dict) else numbers[below] for _, below in children], np.int64),
        np.array(list(kinds.values()), np.int64),
    )


def _objects(names: Names) -> Iterator[Names]:
    """An object and those inside of it."""
    yield names
    for below in names.values():
        if isinstance(below, dict):
            yield from _objects(below)
