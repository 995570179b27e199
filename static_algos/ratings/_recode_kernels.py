"""Ratings of a group made alike, compiled.

A group is an ε-clique exactly when every item is rated by all of its members or by none, and the ratings of an item
differ by at most ε; items are independent of each other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata.compile import kernel

CLIP, CENTROID, PAPER = 0, 1, 2


@kernel
def sorted_order(column: NDArray[np.int16], size: int, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Members by rating, then by place; `places` is room for one more number than there are ratings."""
    places[:] = 0
    for value in column:
        places[value] += 1
    total = 0
    for value in range(size + 1):
        total, places[value] = total + places[value], total
    order = np.empty(len(column), np.int64)
    for member in range(len(column)):
        order[places[column[member]]] = member
        places[column[member]] += 1
    return order


@kernel
def window_start(column: NDArray[np.int16], order: NDArray[np.int64], steps: int) -> int:
    """Where the window `[a, a + steps]` begins to which the ratings have the least distance in sum.

    That sum is convex in a, with a breakpoint at every x and every x - steps: its slope is -n before the first and
    grows by 1 at each, so it is zero behind the n-th smallest of them. That lies between the least and the greatest
    rating.
    """
    low, high, start = 0, 0, 0
    for _ in range(len(column)):
        if low < len(column) and column[order[low]] - steps <= column[order[high]]:
            start = column[order[low]] - steps
            low += 1
        else:
            start = column[order[high]]
            high += 1
    return start


@kernel
def recode_column(column: NDArray[np.int16], steps: int, strategy: int, size: int, places: NDArray[np.int64]) -> None:
    """Bring the ratings of one item within so many steps. All strategies stay on the scale."""
    count = len(column)
    order = sorted_order(column, size, places)
    if strategy == CLIP:
        start = window_start(column, order, steps)
        # A window that begins below all ratings may as well begin at the least: the sum is the same.
        start = max(start, column[order[0]])
        for member in range(count):
            column[member] = min(max(column[member], start), start + steps)
        return
    total = 0
    for value in column:
        total += value
    mean, rest = total // count, total % count
    if steps == 0:
        column[:] = (2 * total + count) // (2 * count)
    elif rest == 0 and (steps == 1 or mean - 1 < 1 or mean + 1 > size):
        # In print an item whose ratings are all the least becomes 0 and 2: no rating, and one that nobody gave.
        column[:] = mean
    elif rest == 0:
        for rank in range(count):
            middle = count % 2 == 1 and rank == count // 2
            column[order[rank]] = mean if middle else (mean - 1 if rank < count // 2 else mean + 1)
    elif strategy == PAPER and rest <= steps and mean + rest <= size:
        column[:] = mean
        column[0] = mean + rest
    elif strategy == PAPER and rest > steps and mean + rest % steps <= size:
        column[:] = mean
        column[: rest // steps * steps] = mean + 1
        column[count - 1] = mean + rest % steps
    else:
        for rank in range(count):
            column[order[rank]] = mean + 1 if rank >= count - rest else mean


@kernel
def shared_items(
    starts: NDArray[np.int64],
    items: NDArray[np.int32],
    members: NDArray[np.int64],
    majority: bool,
    seen: NDArray[np.int32],
    touched: NDArray[np.int32],
) -> tuple[int, int]:
    """Items that the group publishes, ascending in `touched`, and all that it rated; `seen` is zero again."""
    found = 0
    for member in members:
        for at in range(starts[member], starts[member + 1]):
            if seen[items[at]] == 0:
                touched[found] = items[at]
                found += 1
            seen[items[at]] += 1
    kept = 0
    for at in range(found):
        item = touched[at]
        if seen[item] == len(members) or (majority and 2 * seen[item] >= len(members)):
            touched[kept] = item
            kept += 1
            seen[item] = 0
        else:
            seen[item] = 0
    touched[:kept].sort()
    return kept, found


@kernel
def group_columns(
    starts: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.int16],
    members: NDArray[np.int64],
    kept: NDArray[np.int32],
    slot: NDArray[np.int32],
) -> NDArray[np.int16]:
    """A line of ratings for each item that is published, 0 for who did not rate it; `slot` is -1 everywhere again."""
    columns = np.zeros((len(kept), len(members)), np.int16)
    for place in range(len(kept)):
        slot[kept[place]] = place
    for number in range(len(members)):
        for at in range(starts[members[number]], starts[members[number] + 1]):
            if slot[items[at]] >= 0:
                columns[slot[items[at]], number] = values[at]
    for place in range(len(kept)):
        slot[kept[place]] = -1
    return columns


@kernel
def filled(column: NDArray[np.int16], size: int, places: NDArray[np.int64]) -> bool:
    """Give who did not rate the item the lower median of those who did; tells whether that was needed."""
    missing = 0
    for value in column:
        if value == 0:
            missing += 1
    if missing == 0:
        return False
    order = sorted_order(column, size, places)
    median = column[order[missing + (len(column) - missing - 1) // 2]]
    for member in range(len(column)):
        if column[member] == 0:
            column[member] = median
    return True


@kernel
def spans(column: NDArray[np.int16]) -> int:
    """Greatest difference of its ratings."""
    low, high = column[0], column[0]
    for value in column:
        low, high = min(low, value), max(high, value)
    return high - low


@kernel
def group_cost(
    starts: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.int16],
    members: NDArray[np.int64],
    steps: int,
    majority: bool,
    size: int,
    seen: NDArray[np.int32],
    touched: NDArray[np.int32],
    slot: NDArray[np.int32],
) -> int:
    """Distortion of a group if it is clipped: all changes of ratings, a missing one counted as 0."""
    before = 0
    for member in members:
        for at in range(starts[member], starts[member + 1]):
            before += values[at]
    kept, _ = shared_items(starts, items, members, majority, seen, touched)
    columns = group_columns(starts, items, values, members, touched[:kept], slot)
    places = np.empty(size + 1, np.int64)
    cost = before
    for place in range(kept):
        column = columns[place]
        old = column.copy()
        filled(column, size, places)
        if spans(column) > steps:
            recode_column(column, steps, CLIP, size, places)
        for member in range(len(column)):
            cost += abs(int(column[member]) - int(old[member])) - int(old[member])
    return cost


@kernel
def recode_groups(
    starts: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.int16],
    members: NDArray[np.int64],
    bounds: NDArray[np.int64],
    width: int,
    steps: int,
    strategy: int,
    majority: bool,
    size: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int16]]:
    """Rows after every group was made an ε-clique. Group g is `members[bounds[g]:bounds[g + 1]]`."""
    seen, touched = np.zeros(width, np.int32), np.empty(width, np.int32)
    slot = np.full(width, -1, np.int32)
    lengths = np.zeros(len(starts) - 1, np.int64)
    for group in range(len(bounds) - 1):
        own = members[bounds[group] : bounds[group + 1]]
        kept, _ = shared_items(starts, items, own, majority, seen, touched)
        for member in own:
            lengths[member] = kept
    new_starts = np.zeros(len(starts), np.int64)
    for row in range(len(lengths)):
        new_starts[row + 1] = new_starts[row] + lengths[row]
    new_items = np.empty(new_starts[-1], np.int32)
    new_values = np.empty(new_starts[-1], np.int16)
    places = np.empty(size + 1, np.int64)
    for group in range(len(bounds) - 1):
        own = members[bounds[group] : bounds[group + 1]]
        kept, found = shared_items(starts, items, own, majority, seen, touched)
        columns = group_columns(starts, items, values, own, touched[:kept], slot)
        rewrite = False
        for place in range(kept):
            rewrite = filled(columns[place], size, places) or rewrite
        if strategy == PAPER:
            # As published: a group that is no clique yet is rewritten in all its items.
            rewrite = rewrite or kept < found
            for place in range(kept):
                rewrite = rewrite or spans(columns[place]) > steps
        else:
            rewrite = False
        for place in range(kept):
            if rewrite or spans(columns[place]) > steps:
                recode_column(columns[place], steps, strategy, size, places)
            for number in range(len(own)):
                new_items[new_starts[own[number]] + place] = touched[place]
                new_values[new_starts[own[number]] + place] = columns[place, number]
    return new_starts, new_items, new_values
