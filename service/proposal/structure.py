"""Hierarchies from what values look like: days, ranges, codes, common prefixes. What has no structure stays flat."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from datetime import date

from microdata import Hierarchy, prefix_hierarchy

_RANGE = re.compile(
    r"[\[(]?\s*[$€£]?\s*(?P<low>-?\d[\d,]*(?:\.\d+)?)\s*(?:-|–|to|bis|,|\.\.)\s*[$€£]?\s*(?P<high>-?\d[\d,]*(?:\.\d+)?)"
    r"\s*[\])]?\s*\w*"
)
_BELOW = re.compile(
    r"(?:<=?|under|below|up to|less than|≤)\s*[$€£]?\s*(?P<high>\d[\d,]*(?:\.\d+)?)\s*\w*", re.IGNORECASE
)
_ABOVE = re.compile(
    r"(?:>=?|over|above|more than|≥)\s*[$€£]?\s*(?P<low>\d[\d,]*(?:\.\d+)?)\s*\w*"
    r"|[$€£]?\s*(?P<also>\d[\d,]*(?:\.\d+)?)\s*(?:\+|and over|and more|or more|plus)",
    re.IGNORECASE,
)
_CODE = re.compile(r"[A-Za-z]{0,3}\d{2,}(?:\.\d+)?[A-Za-z]?")
_SEPARATORS = "/:>|-_. "
_FEWEST_RANGES = 4
_FEWEST_CODES = 20


def days_tree(labels: Sequence[str], days: Sequence[date]) -> Hierarchy:
    """Days as they are written, below months, quarters and years."""
    rows = [
        [label, f"{day:%Y-%m}", f"{day.year}-Q{(day.month + 2) // 3}", f"{day.year}", _root(labels)]
        for day, label in sorted(zip(days, labels, strict=True))
    ]
    return Hierarchy.from_rows(rows)


def codes_tree(labels: Sequence[str]) -> Hierarchy:
    """Codes by their first characters: three, two and one quarter of them, three to one of uneven ones.

    Characters with which all codes begin make no level.
    """
    lengths = {len(label) for label in labels}
    size = lengths.pop() if len(lengths) == 1 else 5
    keep = sorted({size * 3 // 4, size // 2, size // 4} - {0}, reverse=True)
    return prefix_hierarchy(labels, [kept for kept in keep if len({label[:kept] for label in labels}) > 1] or [1])


def look_coded(labels: Sequence[str]) -> bool:
    """Whether nearly all labels are codes, such as those of illnesses."""
    fitting = sum(_CODE.fullmatch(label) is not None for label in labels)
    return len(labels) >= _FEWEST_CODES and fitting >= 0.9 * len(labels)


def text_tree(labels: Sequence[str]) -> tuple[Hierarchy, str]:
    """The tree of some texts, and how it was found."""
    ordered = sorted(labels)
    return (
        _ranges(ordered)
        or _codes(ordered)
        or _prefixes(ordered)
        or (
            Hierarchy.flat(ordered, root=_root(ordered)),
            "the values below one root: group them as you would publish them",
        )
    )


def _ranges(labels: Sequence[str]) -> tuple[Hierarchy, str] | None:
    """Ranges in their order, two, four and eight of them together."""
    ends = {label: found for label in labels if (found := _ends(label)) is not None}
    if len(ends) < _FEWEST_RANGES or len(ends) < len(labels) - 2:
        return None
    ordered = sorted(ends, key=lambda label: ends[label])
    root = _root(labels)
    rows = [[label, *_wider(place, ordered, ends), root] for place, label in enumerate(ordered)]
    rows += [[label, root] for label in labels if label not in ends]
    if not _is_tree(rows):
        return None
    return Hierarchy.from_rows(rows), "ranges in their order, neighbours together"


def _ends(label: str) -> tuple[float, float] | None:
    for pattern in (_RANGE, _BELOW, _ABOVE):
        found = pattern.fullmatch(label.strip())
        if found:
            given = found.groupdict()
            low, high = given.get("low") or given.get("also"), given.get("high")
            return _number(low, -float("inf")), _number(high, float("inf"))
    return None


def _number(text: str | None, instead: float) -> float:
    return float(text.replace(",", "") or 0) if text else instead


def _wider(place: int, ordered: Sequence[str], ends: dict[str, tuple[float, float]]) -> list[str]:
    wider, width = [], 2
    while width < len(ordered):
        first = place // width * width
        last = min(first + width, len(ordered)) - 1
        low, high = ends[ordered[first]][0], ends[ordered[last]][1]
        wider.append(ordered[first] if first == last else f"{low:g} … {high:g}".replace("inf", "∞"))
        width *= 2
    return wider


def _codes(labels: Sequence[str]) -> tuple[Hierarchy, str] | None:
    """Codes of uneven length, such as those of illnesses: `E11.9` below `E11*` below `E1*`."""
    if not look_coded(labels):
        return None
    rows = [
        [label, *(f"{label[:kept]}*" for kept in (3, 2, 1) if kept < len(label)), _root(labels)] for label in labels
    ]
    return (Hierarchy.from_rows(rows), "codes by their first characters") if _is_tree(rows) else None


def _prefixes(labels: Sequence[str]) -> tuple[Hierarchy, str] | None:
    """Texts that share what stands before a separator: `Europe/Rome` and `Europe/Oslo`."""
    for separator in _SEPARATORS:
        heads = {
            label: label.partition(separator)[0].strip() for label in labels if separator in label.strip(separator)
        }
        sizes = Counter(heads.values())
        shared = {label: head for label, head in heads.items() if sizes[head] > 1 and head}
        groups = len(set(shared.values()))
        if groups > 1 and len(shared) >= 0.6 * len(labels) and groups <= len(shared) / 2:
            root = _root(labels)
            rows = [[label, *([f"{shared[label]}{separator}…"] if label in shared else []), root] for label in labels]
            if _is_tree(rows):
                return Hierarchy.from_rows(rows), f"by what stands before {separator!r}"
    return None


def _is_tree(rows: Sequence[Sequence[str]]) -> bool:
    """Whether every inner label has one parent and is no value itself."""
    leaves = {row[0] for row in rows}
    parents: dict[str, str] = {}
    for row in rows:
        path = list(dict.fromkeys(row))
        if any(label in leaves for label in path[1:]):
            return False
        if any(parents.setdefault(label, above) != above for label, above in itertools.pairwise(path)):
            return False
    return True


def _root(labels: Sequence[str]) -> str:
    taken = set(labels)
    return next(root for root in ("*", "any", "(any)", "(any value)", "(every value)") if root not in taken)
