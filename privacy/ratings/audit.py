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

from collections import Counter
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from microdata.ratings import Ratings, Sparse
from privacy.ratings.models import RatingFinding, RatingModel, measure

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

    @property
    def holds(self) -> bool:
        """Whether all is as it should be."""
        return not self.faults and all(finding.holds for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {"holds": self.holds, **asdict(self)}


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
        wrong = _different(_all_rows(expected), _all_rows(published))
        if wrong:
            reason = "published persons whose ratings are not what the policy's algorithm makes of the original"
            faults.append(RatingFault("changed", wrong, reason))
    return RatingAudit(
        findings=tuple(finding for finding, _ in measure(models, published)),
        faults=tuple(faults),
        persons=len(published),
        ratings=published.count,
        suppressed=original.count - published.count,
        compared="totals" if expected is None else "rows",
    )


def _unlike(original: Ratings, published: Ratings, *, may_invent: bool) -> list[RatingFault]:
    """What no honest release does."""
    faults = []
    strangers = set(published.names) - set(original.names)
    if strangers:
        faults.append(RatingFault("unknown", len(strangers), "items that the original does not have"))
    if len(published) > len(original):
        more = len(published) - len(original)
        faults.append(RatingFault("persons", more, "more persons than the original has"))
    before, after = (_rows_by_name(one, one.sensitive) for one in (original, published))
    altered = sum((after - before).values())
    if altered:
        reason = "published persons whose sensitive ratings are nobody's in the original"
        faults.append(RatingFault("sensitive", altered, reason))
    if not may_invent:
        totals = [Counter(_named(one, one.open)) for one in (original, published)]
        invented = sum((totals[1] - totals[0]).values())
        if invented:
            faults.append(RatingFault("invented", invented, "more ratings of an item than the original has"))
    return faults


def _named(ratings: Ratings, rows: Sparse) -> list[str]:
    names = np.array(ratings.names, object)
    return names[rows.items].tolist()


def _rows_by_name(ratings: Ratings, rows: Sparse) -> Counter[bytes]:
    """Rows as they could be written, counted; items by name, as two files may have other ones. Empty rows are none."""
    names, starts = _named(ratings, rows), rows.starts.tolist()
    entries = list(zip(names, rows.values.tolist(), strict=True))
    made = (tuple(entries[start:end]) for start, end in pairwise(starts))
    return Counter(repr(row).encode() for row in made if row)


def _all_rows(ratings: Ratings) -> Counter[bytes]:
    parts = (ratings.open, ratings.sensitive)
    rows = np.concatenate([part.rows for part in parts])
    items = np.concatenate([part.items for part in parts])
    order = np.lexsort((items, rows))
    values = np.concatenate([part.values for part in parts])[order]
    return _rows_by_name(ratings, Sparse.of(rows[order], items[order], values, len(ratings)))


def _different(one: Counter[bytes], other: Counter[bytes]) -> int:
    """Rows of either that the other does not have, a changed one counted once."""
    return max(sum((one - other).values()), sum((other - one).values()))
