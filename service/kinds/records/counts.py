"""Counts that somebody intends to publish beside a table: a file with a line for each of them.

Its columns are quasi-identifiers, as values, nodes of their hierarchies or intervals, one sensitive attribute, and
`count`, exact or rounded or with noise. A count that is left empty is not published.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from microdata import DataError, Reason, Schema, read_sample
from microdata.columns import plain, texts
from microdata.encoding import sensitive_codes
from microdata.generalizations import parse_label, side_texts
from privacy import CountTable

COUNT = "count"
MOST_LINES = 10_000
_NOT_PUBLISHED = ("", "*")


def read_counts(path: Path, schema: Schema) -> CountTable:
    """The counts of a file; one that is not understood ends it, named by its line."""
    sample = read_sample(path, MOST_LINES + 1)
    if sample.columns.num_rows > MOST_LINES or not sample.whole:
        raise DataError(f"{path.name}: there are more than {MOST_LINES:,} counts")
    if sample.misshapen:
        raise DataError(f"{path.name}: {sample.misshapen} lines have another number of cells than the header")
    columns = dict(zip(sample.columns.column_names, map(plain, sample.columns.columns), strict=True))
    quasi = [one for one in schema.quasi if one.name in columns]
    sensitive = [one for one in schema.sensitive if one.name in columns]
    _check_names(path, list(columns), [one.name for one in quasi], [one.name for one in sensitive], schema)
    counts = _numbers(path, texts(columns[COUNT])[0].to_pylist())
    there = ~np.isnan(counts)
    lo, hi = np.empty((2, len(counts), len(quasi)))
    for place, attribute in enumerate(quasi):
        for line, label in enumerate(side_texts(columns[attribute.name])[0].to_pylist()):
            low, high, reason = parse_label(attribute, label) if label else (0.0, 0.0, int(Reason.MISSING))
            _check(path, line, attribute.name, reason)
            lo[line, place], hi[line, place] = low, high
    values, reasons = sensitive_codes(sensitive[0], columns[sensitive[0].name])
    for line in np.flatnonzero(reasons).tolist():
        _check(path, line, sensitive[0].name, int(reasons[line]))
    names = tuple(one.name for one in quasi)
    return CountTable(sensitive[0].name, names, lo[there], hi[there], values[there].astype(np.int64), counts[there])


def _check_names(path: Path, names: list[str], quasi: list[str], sensitive: list[str], schema: Schema) -> None:
    others = [name for name in names if name not in {*quasi, *sensitive, COUNT}]
    if others or COUNT not in names or len(sensitive) != 1:
        allowed = ", ".join(one.name for one in schema.quasi)
        one_of = ", ".join(one.name for one in schema.sensitive)
        raise DataError(f"{path.name}: the columns must be some of {allowed}, one of {one_of}, and {COUNT}")


def _numbers(path: Path, given: list[str | None]) -> NDArray[np.float64]:
    """The counts; not a number where one is not published."""
    found = np.full(len(given), np.nan)
    for line, text in enumerate(given):
        if (text or "").strip() in _NOT_PUBLISHED:
            continue
        try:
            found[line] = float(text or "")
        except ValueError:
            found[line] = math.inf
        if not math.isfinite(found[line]):
            _check(path, line, COUNT, int(Reason.NOT_A_NUMBER))
    return found


def _check(path: Path, line: int, field: str, reason: int) -> None:
    if reason:
        raise DataError(f"{path.name}: count {line + 1}, {field}: {Reason(reason).sentence}")
