"""Counting who passed, inside kernels.

Boxes are taken in rounds. Those of one round do not overlap in any column unless they have the same side there, so a
row is in one of them at most, apart from their edges, and is found there by looking up its sides. Engines climb a few
rungs, whose boxes lie side by side: that is a round each, or a few, and each costs one pass over the window.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata.compile import kernel

NOBODY = -1
SHARED = -2
"""An end of an interval: of two, where they touch."""
MOST_TOUCHING = 8
"""Columns of a row in which two sides touch at its value, and both are tried, together with those of other columns."""
TINY = np.finfo(np.float64).tiny


@kernel
def box_numbers(lo: NDArray[np.float64], hi: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same number for entries with the same box, in the order in which they first come; the first of each."""
    places = np.full(_room(len(lo)), NOBODY)
    examples = np.empty(len(lo), np.int64)
    numbers, known = np.empty(len(lo), np.int64), 0
    sides = np.concatenate((lo, hi), axis=1).view(np.uint64)
    for entry in range(len(lo)):
        mixed = np.uint64(0)
        for side in sides[entry]:
            mixed = _mixed(mixed, side)
        place = np.int64(mixed & np.uint64(len(places) - 1))
        while places[place] != NOBODY and not np.array_equal(sides[examples[places[place]]], sides[entry]):
            place = (place + 1) & (len(places) - 1)
        if places[place] == NOBODY:
            places[place] = known
            examples[known] = entry
            known += 1
        numbers[entry] = places[place]
    return numbers, examples[:known]


@kernel
def person_numbers(persons: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Persons as numbers from 0, and the last row of each."""
    room = _room(len(persons))
    places, names = np.full(room, NOBODY), np.empty(room, np.int64)
    numbers, last, known = np.empty(len(persons), np.int64), np.empty(len(persons), np.int64), 0
    for row in range(len(persons)):
        place = np.int64(_mixed(np.uint64(0), np.uint64(persons[row])) & np.uint64(room - 1))
        while places[place] != NOBODY and names[place] != persons[row]:
            place = (place + 1) & (room - 1)
        if places[place] == NOBODY:
            places[place], names[place] = known, persons[row]
            known += 1
        numbers[row] = places[place]
        last[places[place]] = row
    return numbers, last[:known]


@kernel
def cells_of(edges: NDArray[np.float64], values: NDArray[np.float64], cells: NDArray[np.int32]) -> None:
    """Which cell each value is in: 2 i for the edge i itself, 2 i + 1 between it and the next one, else -1."""
    # A few parts of equal width first, each with few edges, in which to search.
    parts = 4 * len(edges)
    scale = (parts - 1) / max(edges[-1] - edges[0], TINY)
    starts = np.zeros(parts + 1, np.int64)
    for edge in edges:
        starts[int((edge - edges[0]) * scale) + 1] += 1
    starts = np.cumsum(starts)
    for row in range(len(values)):
        value = values[row]
        cells[row] = NOBODY
        if not (edges[0] <= value <= edges[-1]):
            continue
        part = int((value - edges[0]) * scale)
        place = starts[part] + np.searchsorted(edges[starts[part] : starts[part + 1]], value)
        cells[row] = 2 * place if edges[place] == value else 2 * place - 1


@kernel
def count_passed(
    order: NDArray[np.int64],
    sides: NDArray[np.int64],
    begin: NDArray[np.int32],
    end: NDArray[np.int32],
    boxes: NDArray[np.int64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    cells: NDArray[np.int32],
    persons: NDArray[np.int64],
    people: int,
) -> NDArray[np.int64]:
    """For each entry how many persons have a row in its box among the rows from first to last.

    Entries come in the order of `last`, and `first` never goes back. `order` are the boxes, the wide ones first;
    `sides` the number of each side of them among those of its column, which is from cell `begin` to cell `end`.
    `cells` are those of the rows.
    """
    found = np.zeros(len(boxes), np.int64)
    starts, entries = _grouped(boxes, len(order))
    painted = np.empty((end.shape[1], end.max() + 2), np.int64)
    latest, whose = np.empty(people, np.int64), np.full(people, NOBODY)
    left = order
    while len(left):
        chosen = _chosen(painted, left, sides, begin, end)
        rows, own = _members(painted, left[chosen], sides, cells)
        member_starts, members = _grouped(own, len(order))
        for box in left[chosen]:
            _slide(
                found,
                entries[starts[box] : starts[box + 1]],
                first,
                last,
                rows[members[member_starts[box] : member_starts[box + 1]]],
                persons,
                latest,
                whose,
                box,
            )
        left = left[~chosen]
    return found


@kernel
def _chosen(
    painted: NDArray[np.int64],
    left: NDArray[np.int64],
    sides: NDArray[np.int64],
    begin: NDArray[np.int32],
    end: NDArray[np.int32],
) -> NDArray[np.bool_]:
    """The boxes of the next round; `painted` then has the side that each cell of each column belongs to.

    The ends of an interval are shared: it may touch another one there.
    """
    painted[:] = NOBODY
    chosen = np.zeros(len(left), np.bool_)
    for place in range(len(left)):
        box = left[place]
        chosen[place] = True
        for column in range(len(painted)):
            first, last = begin[box, column], end[box, column]
            chosen[place] &= _fits(painted[column], first, last, sides[box, column])
        if chosen[place]:
            for column in range(len(painted)):
                first, last, side = begin[box, column], end[box, column], sides[box, column]
                if first == last:
                    painted[column, first] = side
                elif painted[column, first + 1] == NOBODY:
                    painted[column, first + 1 : last] = side
                    painted[column, first] = painted[column, last] = SHARED
    return chosen


@kernel
def _fits(painted: NDArray[np.int64], first: int, last: int, side: int) -> bool:
    """Whether a side overlaps no other one, apart from an end that they share."""
    if first == last:
        return painted[first] == NOBODY or painted[first] == side
    if painted[first + 1] == side:
        return True
    if painted[first] >= 0 or painted[last] >= 0:
        return False
    for cell in range(first + 1, last):  # noqa: SIM110 - numba compiles no generator expression
        if painted[cell] != NOBODY:
            return False
    return True


@kernel
def _members(
    painted: NDArray[np.int64], chosen: NDArray[np.int64], sides: NDArray[np.int64], cells: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and the boxes that they are in, in the order of rows."""
    room = _room(len(chosen))
    places = np.full(room, NOBODY)
    for box in chosen:
        place = _place(sides[box], room)
        while places[place] != NOBODY:
            place = (place + 1) & (room - 1)
        places[place] = box
    lower, upper = _sides_at(painted)
    width = cells.shape[1]
    rows, boxes, filled = np.empty(len(cells), np.int64), np.empty(len(cells), np.int64), 0
    own = np.empty(width, np.int64)
    for row in range(len(cells)):
        inside, touching = True, 0
        for column in range(width):
            cell = cells[row, column]
            own[column] = NOBODY if cell == NOBODY else lower[column, cell]
            if own[column] == NOBODY:
                inside = False
                break
            touching += upper[column, cell] != own[column]
        if touching > MOST_TOUCHING:
            # A row that counts in fewer boxes lets nothing leave that must not. Engines count it in the upper ones.
            touching = 0
            for column in range(width):
                own[column] = upper[column, cells[row, column]]
        # One way to take a side of each column, twice as many for each column where two touch.
        for way in range(inside << touching):
            rest = way
            for column in range(width if touching else 0):
                cell = cells[row, column]
                own[column] = lower[column, cell]
                if upper[column, cell] != own[column]:
                    if rest & 1:
                        own[column] = upper[column, cell]
                    rest >>= 1
            box = _box_of(places, sides, own)
            if box != NOBODY:
                if filled == len(rows):
                    rows, boxes = np.append(rows, rows), np.append(boxes, boxes)
                rows[filled], boxes[filled] = row, box
                filled += 1
    return rows[:filled], boxes[:filled]


@kernel
def _box_of(places: NDArray[np.int64], sides: NDArray[np.int64], own: NDArray[np.int64]) -> int:
    """The box with these sides, if there is one in this round."""
    place = _place(own, len(places))
    while places[place] != NOBODY:
        box, same = places[place], True
        for column in range(len(own)):
            same &= sides[box, column] == own[column]
        if same:
            return box
        place = (place + 1) & (len(places) - 1)
    return NOBODY


@kernel
def _sides_at(painted: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The sides that a value of each cell is in: two different ones where they touch, NOBODY where there is none."""
    lower, upper = painted.copy(), painted.copy()
    for column in range(len(painted)):
        for cell in range(painted.shape[1]):
            if painted[column, cell] == SHARED:
                before = painted[column, cell - 1] if cell > 0 else NOBODY
                behind = painted[column, cell + 1]
                lower[column, cell] = before if before != NOBODY else behind
                upper[column, cell] = behind if behind != NOBODY else before
    return lower, upper


@kernel
def _slide(
    found: NDArray[np.int64],
    entries: NDArray[np.int64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    rows: NDArray[np.int64],
    persons: NDArray[np.int64],
    latest: NDArray[np.int64],
    whose: NDArray[np.int64],
    box: int,
) -> None:
    """Count the persons of each window over the rows of one box: a person counts with the latest row.

    `latest` is the row of each person who was seen in this box, `whose` says who was.
    """
    count, come, gone = 0, 0, 0
    for entry in entries:
        while come < len(rows) and rows[come] <= last[entry]:
            person = persons[rows[come]]
            count += whose[person] != box or latest[person] < rows[gone]
            latest[person], whose[person] = rows[come], box
            come += 1
        while gone < come and rows[gone] < first[entry]:
            count -= latest[persons[rows[gone]]] == rows[gone]
            gone += 1
        found[entry] = count


@kernel
def _grouped(labels: NDArray[np.int64], count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each label begins in the second, which has the places of the labels, those of one label together."""
    starts = np.zeros(count + 2, np.int64)
    for label in labels:
        starts[label + 2] += 1
    starts = np.cumsum(starts)
    places = np.empty(len(labels), np.int64)
    for place in range(len(labels)):
        places[starts[labels[place] + 1]] = place
        starts[labels[place] + 1] += 1
    return starts, places


@kernel
def _place(sides: NDArray[np.int64], room: int) -> int:
    mixed = np.uint64(0)
    for side in sides:
        mixed = _mixed(mixed, np.uint64(side))
    return int(np.int64(mixed & np.uint64(room - 1)))


@kernel
def _mixed(before: np.uint64, word: np.uint64) -> np.uint64:
    mixed = (before ^ word) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(29))


@kernel
def _room(entries: int) -> int:
    """A power of two that is at least twice as many."""
    room = 16
    while room < 2 * entries:
        room *= 2
    return room
