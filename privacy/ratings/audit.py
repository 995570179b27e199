"""An audit of published ratings: whether the guarantee holds, and whether they are what they should be.

The guarantee is checked on what was published alone. Persons have random numbers there, so a row cannot be laid beside
the one it came from. What can be said without that link:

* sensitive ratings are published as they are, so the rows of sensitive ratings, counted, must be the same;
* where ratings may be left out but not invented, no item has more ratings than before;
* where the policy names the algorithm, it is run again: it depends on nothing but the ratings, whatever their order,
  so that the rows it makes, counted, are those that were published. Any rating that was changed, added or taken away
  shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from microdata.ratings import Ratings, Sparse
from privacy.audit import Outcome
from privacy.ratings.models import RatingFinding, RatingModel, measure
from privacy.ratings.neighbours import equal_rows

Compared = Literal["rows", "totals"]
"""With what the algorithm makes, row by row; or only with what must hold of any release."""


@dataclass(frozen=True)
class RatingFault:
    """Something that must not be there."""

    kind: str
    count: int
    reason: str


@dataclass(frozen=True)
class RatingAudit:
    """What was found."""

    findings: tuple[RatingFinding, ...]
    faults: tuple[RatingFault, ...]
    persons: int
    ratings: int
    suppressed: int
    """Ratings that were not published."""
    compared: Compared
    rejected: int = 0
    """Rows of the original file that fail validation; who reads the file counts them."""

    @property
    def outcome(self) -> Outcome:
        """Whether all is as it should be; persons are told apart in published ratings, so that nothing is unknown."""
        failed = self.faults or not all(finding.holds for finding in self.findings)
        return "does not hold" if failed else "holds"

    @property
    def holds(self) -> bool:
        """Whether all is as it should be."""
        return self.outcome == "holds"

    def as_dict(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {"holds": self.holds, "outcome": self.outcome, **asdict(self)}


def audit_ratings(
    original: Ratings,
    published: Ratings,
    models: tuple[RatingModel, ...],
    *,
    expected: Ratings | None = None,
    may_invent: bool = False,
) -> RatingAudit:
    """Check published ratings; `expected` is what the policy's algorithm makes of the original."""
    faults = [*_unlike(original, published, may_invent=may_invent)]
    if expected is not None:
        lost, new = _differences(_whole(expected), _whole(published))
        if lost or new:
            reason = "published persons whose ratings are not what the policy's algorithm makes of the original"
            faults.append(RatingFault("changed", max(lost, new), reason))
    return RatingAudit(
        findings=tuple(finding for finding, _ in measure(models, published)),
        faults=tuple(faults),
        persons=len(published),
        ratings=published.count,
        suppressed=original.count - published.count,
        compared="totals" if expected is None else "rows",
    )


def _unlike(original: Ratings, published: Ratings, *, may_invent: bool) -> Iterator[RatingFault]:
    """What no honest release does."""
    strangers = len(set(published.names) - set(original.names))
    if strangers:
        yield RatingFault("unknown", strangers, "items that the original does not have")
    if len(published) > len(original):
        yield RatingFault("persons", len(published) - len(original), "more persons than the original has")
    before, after = (_Named(one.names, one.sensitive) for one in (original, published))
    _, altered = _differences(before, after)
    if altered:
        yield RatingFault(
            "sensitive", altered, "published persons whose sensitive ratings are nobody's in the original"
        )
    if not may_invent:
        rows, count = _together(_Named(original.names, original.open), _Named(published.names, published.open))
        totals = [np.bincount(one.items, minlength=count) for one in rows]
        invented = int(np.maximum(totals[1] - totals[0], 0).sum())
        if invented:
            yield RatingFault("invented", invented, "more ratings of an item than the original has")


class _Named(NamedTuple):
    """Rows with the names of their items, in alphabetical order."""

    names: tuple[str, ...]
    rows: Sparse


def _whole(ratings: Ratings) -> _Named:
    """Open and sensitive ratings of everybody in one row."""
    parts = (ratings.open, ratings.sensitive)
    rows, items, values = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "items", "values")
    )
    order = np.lexsort((items, rows))
    return _Named(ratings.names, Sparse.of(rows[order], items[order], values[order], len(ratings)))


def _together(one: _Named, other: _Named) -> tuple[tuple[Sparse, Sparse], int]:
    """Rows of both with the same codes for the same names, as two files may have other items; and their number."""
    names = sorted({*one.names, *other.names})
    code = {name: place for place, name in enumerate(names)}
    made = []
    for given in (one, other):
        codes = np.array([code[name] for name in given.names], np.int32)
        items = codes[given.rows.items] if len(codes) else given.rows.items
        made.append(Sparse(given.rows.starts, items, given.rows.values))
    return (made[0], made[1]), len(names)


def _differences(one: _Named, other: _Named) -> tuple[int, int]:
    """How many rows of the first the second does not have, and the other way round. Rows without a rating are none."""
    (first, second), _ = _together(one, other)
    first, second = (rows.take(np.flatnonzero(rows.rated > 0)) for rows in (first, second))
    starts = np.append(first.starts, first.starts[-1] + second.starts[1:])
    both = Sparse(starts, np.append(first.items, second.items), np.append(first.values, second.values))
    labels = equal_rows(both, values=True)
    count = int(labels.max(initial=-1)) + 1
    numbers = [np.bincount(part, minlength=count) for part in (labels[: len(first)], labels[len(first) :])]
    more = numbers[0] - numbers[1]
    return int(np.maximum(more, 0).sum()), int(np.maximum(-more, 0).sum())
