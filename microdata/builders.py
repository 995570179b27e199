"""Hierarchies made for people: intervals, quantiles, dates, prefixes.

A builder lays its levels from fine to coarse. Dates and prefixes have every level that was asked for and a root above
them, whatever the values: the number of levels decides how far an algorithm generalizes. Intervals that would read like
their child are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microdata.errors import HierarchyError
from microdata.hierarchy import Hierarchy
from microdata.schema import Number

_QUARTERS = {f"{month:02}": f"Q{(month + 2) // 3}" for month in range(1, 13)}
_DATE_LEVELS: dict[str, Callable[[str], str]] = {
    "day": lambda day: day,
    "month": lambda day: day[:7],
    "quarter": lambda day: day[:5] + _QUARTERS[day[5:7]],
    "year": lambda day: day[:4],
}
"""What is left of a date in ISO 8601."""


def interval_hierarchy(low: float, high: float, widths: Sequence[float] = (5, 10, 20), *, step: float = 1) -> Hierarchy:
    """Intervals of fixed widths over the numbers low, low + step, … high.

    A width that is no multiple of the one below it takes the finer intervals that begin inside of it.

    >>> interval_hierarchy(0, 9, widths=[5]).rows()[7]
    ['7', '[5,9]', '[0,9]']
    """
    numbers = Number("interval", low, high, step=step).values()
    if not widths or list(widths) != sorted(set(widths)) or widths[0] <= 0:
        raise HierarchyError("widths must be positive and ascending", given=list(widths))
    # A little slack: on which side of a border a number falls must not hang on the last bit of a decimal.
    starts = numbers - low + step * 1e-6
    levels = []
    for width in widths:
        group = np.floor(starts / width)
        starts = starts[np.searchsorted(group, group)]
        levels.append(group)
    return _nested(numbers, levels)


def quantile_hierarchy(values: Iterable[float], levels: Sequence[int] = (16, 4)) -> Hierarchy:
    """Intervals with about the same number of the given values each; `levels` says how many intervals, fine to coarse.

    >>> quantile_hierarchy([1, 2, 3, 4, 10, 20, 30, 90], levels=[4, 2]).rows()[1]
    ['2', '[1,2]', '[1,4]', '[1,90]']
    """
    given = np.array(list(values), float)
    if not len(given) or not np.isfinite(given).all():
        raise HierarchyError("quantiles need at least one value, and finite ones")
    if not levels or list(levels) != sorted(set(levels), reverse=True) or levels[-1] < 1:
        raise HierarchyError("levels must be positive and descending numbers of intervals", given=list(levels))
    numbers, counts = np.unique(given + 0.0, return_counts=True)
    groups: list[NDArray[np.float64]] = []
    for wanted in levels:
        # A value belongs where the middle of its rows falls, and the finer interval it is in goes there as a whole.
        middle = (np.cumsum(counts) - counts / 2) / len(given)
        group = np.floor(middle * wanted)
        if groups:
            group = group[np.searchsorted(groups[-1], groups[-1])]
        groups.append(group)
    return _nested(numbers, groups)


def date_hierarchy(
    start: date | str, end: date | str, levels: Sequence[str] = ("day", "month", "quarter", "year")
) -> Hierarchy:
    """Days (or months, quarters, years) from start to end, both included, written as in ISO 8601.

    >>> date_hierarchy("2023-12-31", "2024-01-02").rows()[2]
    ['2024-01-02', '2024-01', '2024-Q1', '2024', '*']
    """
    first, last = _date(start), _date(end)
    if first > last:
        raise HierarchyError("start must not be after end", given=f"{first} … {last}")
    order = [name for name in _DATE_LEVELS if name in levels]
    if not levels or list(levels) != order:
        raise HierarchyError(f"levels must be of {', '.join(_DATE_LEVELS)}, in this order", given=", ".join(levels))
    days = [date.fromordinal(day).isoformat() for day in range(first.toordinal(), last.toordinal() + 1)]
    rows = dict.fromkeys(zip(*(map(_DATE_LEVELS[level], days) for level in levels), strict=True))
    return Hierarchy.from_rows([*row, "*"] for row in rows)


def prefix_hierarchy(values: Iterable[Any], keep: Sequence[int] = (3, 2, 1)) -> Hierarchy:
    """Texts such as postcodes by how many leading characters are kept.

    >>> prefix_hierarchy(["53711", "53712", "53903"]).rows()[0]
    ['53711', '537**', '53***', '5****', '*****']
    """
    texts = sorted({str(value).strip() for value in values})
    if not texts or not texts[0]:
        raise HierarchyError("prefixes need at least one value, and none that is empty")
    if not keep or list(keep) != sorted(set(keep), reverse=True) or keep[-1] < 1:
        raise HierarchyError("keep must be positive and descending numbers of characters", given=list(keep))
    longest = len(max(texts, key=len))
    alike = longest == len(min(texts, key=len))

    def hidden(text: str, kept: int) -> str:
        return text[:kept] + "*" * (max(longest - kept, 0) if alike else 1)

    root = "*" * (longest if alike else 1)
    return Hierarchy.from_rows((text, *(hidden(text, kept) for kept in keep), root) for text in texts)


def _nested(numbers: NDArray[np.float64], levels: Sequence[NDArray[np.float64]]) -> Hierarchy:
    """A tree over ascending numbers from group numbers per level, each level made of whole groups of the one before.

    From the root down, a node for every group that is smaller than the one it lies in.
    """
    texts = [str(int(number)) if number.is_integer() else str(number) for number in numbers.tolist()]
    if len(set(texts)) < len(texts):
        raise HierarchyError("two neighbouring numbers are written alike; widen the step")
    root = _interval(texts, 0, len(texts) - 1)
    edges: dict[str, str | None] = {root: None}
    above, named = np.zeros(1, np.int64), [root]
    for group in [*reversed(levels), np.arange(len(numbers))]:
        first = np.flatnonzero(np.diff(group, prepend=np.nan))
        last = np.append(first[1:], len(numbers)) - 1
        inside = np.searchsorted(above, first, side="right") - 1
        ends = np.append(above[1:], len(numbers)) - 1
        labels = []
        for low, high, place, same in zip(
            first.tolist(),
            last.tolist(),
            inside.tolist(),
            (last - first == (ends - above)[inside]).tolist(),
            strict=True,
        ):
            labels.append(named[place] if same else _interval(texts, low, high))
            if not same:
                edges[labels[-1]] = named[place]
        above, named = first, labels
    return Hierarchy.from_parents(edges)


def _interval(texts: Sequence[str], low: int, high: int) -> str:
    return texts[low] if low == high else f"[{texts[low]},{texts[high]}]"


def _date(value: date | str) -> date:
    try:
        return date.fromisoformat(value) if isinstance(value, str) else date(value.year, value.month, value.day)
    except ValueError:
        raise HierarchyError("a date is written as 2024-01-31") from None
