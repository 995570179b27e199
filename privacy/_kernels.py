"""Loops over pairs: of values, and of classes and rows."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from microdata import kernel
from privacy.row_tree import RowTree

NOBODY, SEVERAL = -1, -2
"""In the place of a code: nobody fits, or there are several codes."""


@kernel
def range_gains(
    starts: NDArray[np.int64],
    values: NDArray[np.int32],
    inside_before: NDArray[np.int64],
    reference_before: NDArray[np.int64],
    rows: NDArray[np.int64],
    reach: NDArray[np.int64],
    slack: float,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Counts in the class and in the reference of each class's run of greatest gain; whether q ≤ p (1 - ln p) in all.

    A run goes from one value of the class to another, which lies at most at `reach` of the first.
    """
    classes = len(starts) - 1
    total = reference_before[-1]
    best_inside = np.empty(classes, np.int64)
    best_reference = np.empty(classes, np.int64)
    bounded = np.empty(classes, np.bool_)
    for one in range(classes):
        most, least, fits = np.int64(0), np.int64(1), True
        for first in range(starts[one], starts[one + 1]):
            limit = reach[values[first]]
            inside_first, reference_first = inside_before[first], reference_before[values[first]]
            last = first
            while last < starts[one + 1] and values[last] <= limit:
                inside = inside_before[last + 1] - inside_first
                reference = reference_before[values[last] + 1] - reference_first
                if inside * least > most * reference:
                    most, least = inside, reference
                if reference == 0:
                    fits = False
                elif inside * total > reference * rows[one]:
                    p = reference / total
                    if inside / rows[one] > p * (1.0 - math.log(p)) * (1.0 - slack):
                        fits = False
                last += 1
        best_inside[one], best_reference[one], bounded[one] = most, least, fits
    return best_inside, best_reference, bounded


@kernel
def category_counts(
    starts: NDArray[np.int64],
    values: NDArray[np.int32],
    counts: NDArray[np.int64],
    category_of: NDArray[np.int32],
    categories: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Of each class: how many categories it has rows of, the most rows of one of them, and the rows of the first."""
    classes = len(starts) - 1
    present = np.zeros(classes, np.int64)
    most = np.zeros(classes, np.int64)
    first = np.zeros(classes, np.int64)
    rows = np.zeros(categories, np.int64)
    for one in range(classes):
        for entry in range(starts[one], starts[one + 1]):
            category = category_of[values[entry]]
            present[one] += rows[category] == 0
            rows[category] += counts[entry]
            most[one] = max(most[one], rows[category])
        first[one] = rows[0]
        for entry in range(starts[one], starts[one + 1]):
            rows[category_of[values[entry]]] = 0
    return present, most, first


@kernel
def disjoint(
    lo: NDArray[np.float64], hi: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> bool:
    """Whether the boxes lo … hi and low … high have no point in common."""
    for attribute in range(len(lo)):  # noqa: SIM110 - numba compiles no generators
        if hi[attribute] < low[attribute] or high[attribute] < lo[attribute]:
            return True
    return False


@kernel
def rows_inside(tree: RowTree, lo: NDArray[np.float64], hi: NDArray[np.float64], inside: NDArray[np.int64]) -> int:
    """Put the tree's rows that lie in the box lo … hi at the beginning of `inside`; how many they are."""
    size = 0
    node = 0
    while node < len(tree.skip):
        if disjoint(lo, hi, tree.lo[node], tree.hi[node]):
            node = tree.skip[node]
            continue
        for row in range(tree.begin[node], tree.end[node]):
            if not disjoint(lo, hi, tree.quasi[row], tree.quasi[row]):
                inside[size] = row
                size += 1
        node += 1
    return size


@kernel
def match_classes(
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
    starts: NDArray[np.int64],
    contents: NDArray[np.int64],
    counts: NDArray[np.int64],
    tree: RowTree,
    pairs: NDArray[np.int64],
    pair_persons: NDArray[np.int64],
    pair_contents: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """What the original rows inside each class's box allow.

    Per class: the fewest persons that it can be about; the most rows that one person can have in it; the persons who
    have a row that can be one of the class. `contents` are codes of sensitive values, with `counts` per class; `pairs`
    numbers the (person, content) of each row of the tree, by person.
    """
    classes = len(starts) - 1
    fewest = np.zeros(classes, np.int64)
    most = np.zeros(classes, np.int64)
    possible = np.zeros(classes, np.int64)
    wanted = np.zeros(pair_contents.max() + 1 if len(pair_contents) else 1, np.int64)
    inside = np.empty(len(pairs), np.int64)
    holders = np.zeros(len(pairs) + 1, np.int64)
    for one in range(classes):
        need = 0
        for entry in range(starts[one], starts[one + 1]):
            need += counts[entry]
            if contents[entry] < len(wanted):
                wanted[contents[entry]] = counts[entry]
        size = 0
        for place in range(rows_inside(tree, lo[one], hi[one], inside)):
            pair = pairs[inside[place]]
            if wanted[pair_contents[pair]] > 0:
                inside[size] = pair
                size += 1
        inside[:size].sort()

        # A person can have as many rows of a content as lie inside, but no more than the class has of it.
        place = 0
        while place < size:
            person = pair_persons[inside[place]]
            able = 0
            while place < size and pair_persons[inside[place]] == person:
                pair = inside[place]
                run = 0
                while place < size and inside[place] == pair:
                    run += 1
                    place += 1
                able += min(run, wanted[pair_contents[pair]])
            holders[able] += 1
            most[one] = max(most[one], able)
            possible[one] += 1

        able = most[one]
        while able > 0:
            if need > 0:
                persons = min(holders[able], (need + able - 1) // able)
                fewest[one] += persons
                need -= persons * able
            holders[able] = 0
            able -= 1
        for entry in range(starts[one], starts[one + 1]):
            if contents[entry] < len(wanted):
                wanted[contents[entry]] = 0
    return fewest, most, possible


@kernel
def certainties(
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
    starts: NDArray[np.int64],
    values: NDArray[np.int32],
    code_of: NDArray[np.int32],
    tree: RowTree,
    excluded_starts: NDArray[np.int64],
    excluded: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The one code that the values of all boxes which a row fits have; NOBODY where there is none, SEVERAL.

    Values that are excluded for a row do not count for it. `excluded` and the result are in the order of the tree.
    """
    inside = np.empty(len(tree.rows), np.int64)
    found = np.full(len(tree.rows), NOBODY)
    for one in range(len(lo)):
        for place in range(rows_inside(tree, lo[one], hi[one], inside)):
            row = inside[place]
            own = excluded[excluded_starts[row] : excluded_starts[row + 1]]
            for entry in range(starts[one], starts[one + 1]):
                if found[row] == SEVERAL:
                    break
                left = True
                for value in own:
                    left = left and value != values[entry]
                if left:
                    code = code_of[values[entry]]
                    found[row] = code if found[row] == NOBODY or found[row] == code else SEVERAL
    return found


@kernel
def count_fitting(
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
    sizes: NDArray[np.int64],
    tree: RowTree,
    persons: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct persons that fit each box; over all boxes that a row fits, the sum of their `sizes`.

    `persons` and the second result are in the order of the tree's rows.
    """
    inside = np.empty(len(persons), np.int64)
    fitting = np.zeros(len(lo), np.int64)
    matching = np.zeros(len(persons), np.int64)
    for one in range(len(lo)):
        size = rows_inside(tree, lo[one], hi[one], inside)
        for place in range(size):
            matching[inside[place]] += sizes[one]
            inside[place] = persons[inside[place]]
        inside[:size].sort()
        for place in range(size):
            if place == 0 or inside[place] != inside[place - 1]:
                fitting[one] += 1
    return fitting, matching
