"""What an original table says about a published one in which no person can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from microdata import Published, Table
from privacy._kernels import match_classes
from privacy.assignment import assign
from privacy.model import Groups, pairs
from privacy.row_tree import row_tree


@dataclass(frozen=True, eq=False)
class Match:
    """How a published table can have come from an original one."""

    unplaced: NDArray[np.int64]
    """Rows of each class left over when as many as possible are placed on original rows of their own, with the same
    sensitive values and inside of the class's box."""
    surplus: int
    """Rows whose sensitive values are published more often than the original has them."""
    fewest_persons: NDArray[np.int64]
    """Each class is about at least so many persons; with one row per person it is exactly the number."""
    most_rows: NDArray[np.int64]
    """No person has more rows in the class."""
    most_persons: NDArray[np.int64]
    """Each class is about at most so many persons."""

    def safest(self, groups: Groups) -> Groups:
        """The same classes with as many persons as possible, whose rows are spread as evenly as possible."""
        return replace(groups, persons=self.most_persons, most=-(-groups.rows // np.maximum(self.most_persons, 1)))


def published_groups(published: Published, references: Sequence[NDArray[np.int64]] | None = None) -> Groups:
    """Classes of a published table, every row counted as a person of its own; compared with all its rows by default."""
    rows = np.arange(len(published))
    return Groups.of(published.schema, rows, published.sensitive, published.classes, len(published.boxes), references)


def match(original: Table, published: Published) -> Match:
    """Compare the rows of a published table with the original rows that its boxes cover."""
    own, others = value_codes(original.sensitive, published.sensitive)
    surplus = count_surplus(others, own)
    if published.show == "mean":
        return _anywhere(original, published, surplus)
    count = len(published.boxes)
    classes, contents, counts = pairs(published.classes, others)
    pair_of_row, pair_persons, pair_contents = _person_contents(original.persons, own)
    boxes = published.boxes
    left = assign(own, original.quasi, others, published.classes, boxes.lo, boxes.hi).rows < 0
    unplaced = np.bincount(published.classes[left], minlength=count)
    tree = row_tree(original.quasi)
    fewest, most, possible = match_classes(
        boxes.lo,
        boxes.hi,
        np.searchsorted(classes, np.arange(count + 1)),
        contents,
        counts,
        tree,
        pair_of_row[tree.rows],
        pair_persons,
        pair_contents,
    )
    # A row that no original row can explain may be about anybody.
    rows = np.bincount(published.classes, minlength=count)
    return Match(unplaced, surplus, fewest, most, np.minimum(possible + unplaced, rows))


def count_surplus(shown: NDArray[np.int64], known: NDArray[np.int64]) -> int:
    """Return how many of the shown codes are left over when each known code explains one of them."""
    codes, index = np.unique(np.concatenate([known, shown]), return_inverse=True)
    counts = [np.bincount(part, minlength=len(codes)) for part in (index[: len(known)], index[len(known) :])]
    return int(np.maximum(counts[1] - counts[0], 0).sum())


def _anywhere(original: Table, published: Published, surplus: int) -> Match:
    """The same for means, which do not say where the rows of a class are: they may be those of whoever has most."""
    rows = np.bincount(published.classes, minlength=len(published.boxes))
    each = np.sort(np.unique(original.persons, return_counts=True)[1])[::-1]
    fewest = np.minimum(np.searchsorted(np.cumsum(each), rows) + 1, rows)
    most = np.minimum(each.max(initial=0), rows)
    return Match(np.zeros_like(rows), surplus, fewest, most, np.minimum(len(each), rows))


def value_codes(own: NDArray[np.int32], others: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One code per combination of sensitive values, the same in both tables."""
    rows = np.concatenate([own, others]).astype(np.int64)
    codes = np.zeros(len(rows), np.int64)
    for column in rows.T:
        codes = np.unique(codes * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1]
    return codes[: len(own)], codes[len(own) :]


def _person_contents(
    persons: NDArray[np.int64], contents: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Number of each row's (person, content), ordered by person; person and content of each number."""
    person = np.unique(persons, return_inverse=True)[1]
    size = int(contents.max(initial=0)) + 1
    keys, numbers = np.unique(person * size + contents, return_inverse=True)
    return numbers, keys // size, keys % size
