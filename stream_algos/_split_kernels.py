"""split^k and split^ℓ: how a cluster of at least 2k persons is cut into clusters of about k.

Both look at every pair of rows in the worst case. A large cluster is therefore first cut at medians, along the
attribute that costs most, into blocks that keep enough persons; inside a block the rows are neighbours anyway, so
the result is as good (`load_tests/stream_quality.py` compares).

`part` receives the number of the new cluster of each row. Rows may change places in `slots`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import Geometry, kernel, range_loss
from stream_algos._held_kernels import NONE, Rows, Rules, copy, counts, lacks_values, number_persons, number_values
from stream_algos._release_kernels import HI, LO, Output, below, include

BLOCK_PAIRS = 1 << 17
"""Pairs of rows that splitting one block may look at."""

CHOICE, LEAST_CHOICE = 3, 64
"""In a block, the company of a row is chosen among 3k nearest rows, but at least 64."""

SAMPLE = 512
"""Pairs of rows that tell along which attribute rows differ most."""


@kernel
def split(
    rows: Rows, out: Output, space: Geometry, rules: Rules, slots: NDArray[np.int64], part: NDArray[np.int64]
) -> int:
    """Cut rows with at least 2k persons into clusters that all have k persons and ℓ values; their number."""
    starts = _blocks(rows, space, rules, slots)
    choice = max(CHOICE * rules.k, LEAST_CHOICE) if len(starts) > 2 else 0
    clusters = 0
    for block in range(len(starts) - 1):
        some, parts = slots[starts[block] : starts[block + 1]], part[starts[block] : starts[block + 1]]
        parts[:] = NONE
        if rules.l > 1:
            made = _split_l(rows, out, space, rules, some, parts)
        else:
            made = _split_k(rows, out, space, rules, some, parts, choice)
        parts += clusters
        clusters += made
    return clusters


@kernel
def pair_loss(space: Geometry, one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Loss of the box around two rows: their distance."""
    total = 0.0
    for attribute in range(len(one)):
        lo, hi = min(one[attribute], other[attribute]), max(one[attribute], other[attribute])
        total += space.weight[attribute] * range_loss(space, attribute, lo, hi)
    return total


@kernel
def enlargement(
    space: Geometry,
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
    more_lo: NDArray[np.float64],
    more_hi: NDArray[np.float64],
) -> float:
    """How much the loss of a box grows when it takes in another box (or a row: a box of one point)."""
    total = 0.0
    for attribute in range(len(lo)):
        low, high = lo[attribute], hi[attribute]
        if more_lo[attribute] < low or more_hi[attribute] > high:
            wider = range_loss(space, attribute, min(low, more_lo[attribute]), max(high, more_hi[attribute]))
            total += space.weight[attribute] * (wider - range_loss(space, attribute, low, high))
    return total


@kernel
def _side_growth(space: Geometry, attribute: int, lo: float, hi: float, value: float) -> float:
    wider = range_loss(space, attribute, min(lo, value), max(hi, value))
    return space.weight[attribute] * (wider - range_loss(space, attribute, lo, hi))


@kernel
def nth_smallest(values: NDArray[np.float64], nth: int) -> float:
    """The value that sorting would put at index `nth`; the values change places."""
    low, high = 0, len(values) - 1
    while low < high:
        pivot, i, j = values[(low + high) // 2], low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if nth <= j:
            high = j
        elif nth >= i:
            low = i
        else:
            break
    return values[nth]


@kernel
def least(values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Indexes of so many least values, ascending; among equals the first ones are chosen."""
    chosen = np.empty(count, np.int64)
    if count == 0:
        return chosen
    limit = nth_smallest(values.copy(), count - 1)
    ties = count
    for value in values:
        ties -= value < limit
    found = 0
    for index in range(len(values)):
        tied = values[index] == limit and ties > 0
        if values[index] < limit or tied:
            ties -= tied
            chosen[found] = index
            found += 1
    return chosen


@kernel
def within_share(rows: Rows, rules: Rules, slots: NDArray[np.int64], expiring: int) -> int:
    """Move the rows that may leave as one class to the front; how many. Each person keeps as many as the share allows.

    The expiring row comes first of its person's, then the others in the order given.
    """
    if rules.share_of >= rules.share_in:
        return len(slots)
    for index in range(len(slots)):
        if slots[index] == expiring:
            slots[0], slots[index] = expiring, slots[0]
    person = np.empty(len(slots), np.int64)
    persons = number_persons(rows, slots, person)
    owned = counts(person, persons)
    most, total = 1, persons
    while True:
        more = total + int(np.sum(owned > most))
        if more == total or (most + 1) * rules.share_in > rules.share_of * more:
            break
        most, total = most + 1, more
    owned[:] = 0
    kept, stay = 0, np.empty(len(slots), np.int64)
    for index in range(len(slots)):
        owned[person[index]] += 1
        if owned[person[index]] <= most:
            slots[kept] = slots[index]
            kept += 1
        else:
            stay[index - kept] = slots[index]
    copy(slots[kept:], stay[: len(slots) - kept])
    return kept


@kernel
def _blocks(rows: Rows, space: Geometry, rules: Rules, slots: NDArray[np.int64]) -> NDArray[np.int64]:
    """Put the rows of each block side by side; where the blocks start, and the end."""
    starts = np.empty(len(slots) + 1, np.int64)
    stack = np.empty((64, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, len(slots)
    depth, blocks = 1, 0
    while depth:
        depth -= 1
        begin, end = stack[depth, 0], stack[depth, 1]
        rows_here, middle = end - begin, (begin + end) // 2
        if rows_here * rows_here > 2 * rules.k * BLOCK_PAIRS and _halve(rows, space, rules, slots[begin:end]):
            stack[depth, 0], stack[depth, 1] = middle, end
            stack[depth + 1, 0], stack[depth + 1, 1] = begin, middle
            depth += 2
        else:
            starts[blocks] = begin
            blocks += 1
    starts[blocks] = len(slots)
    return starts[: blocks + 1]


@kernel
def _halve(rows: Rows, space: Geometry, rules: Rules, slots: NDArray[np.int64]) -> bool:
    """Move the lower half (along the attribute that costs most) to the front; False where a half would not do."""
    half = len(slots) // 2
    widest, most = 0, -1.0
    for attribute in range(rows.quasi.shape[1]):
        apart = 0.0
        for index in range(0, half, 1 + half // SAMPLE):
            one, other = rows.quasi[slots[index], attribute], rows.quasi[slots[half + index], attribute]
            apart += range_loss(space, attribute, min(one, other), max(one, other))
        if space.weight[attribute] * apart > most:
            widest, most = attribute, space.weight[attribute] * apart
    keys = np.empty(len(slots))
    for index in range(len(slots)):
        keys[index] = rows.quasi[slots[index], widest]
    ordered, lower = slots.copy(), 0
    upper = half
    chosen = least(keys, half)
    for index in range(len(slots)):
        if lower < half and chosen[lower] == index:
            ordered[lower] = slots[index]
            lower += 1
        else:
            ordered[upper] = slots[index]
            upper += 1
    scratch = np.empty(len(slots), np.int64)
    for part in (ordered[:half], ordered[half:]):
        if number_persons(rows, part, scratch) < 2 * rules.k or lacks_values(rows, rules, part):
            return False
    copy(slots, ordered)
    return True


@kernel
def _split_k(
    rows: Rows,
    out: Output,
    space: Geometry,
    rules: Rules,
    slots: NDArray[np.int64],
    part: NDArray[np.int64],
    choice: int,
) -> int:
    """Repeat while k persons are left: a random row and the nearest row of each of the k - 1 nearest other persons.

    With a `choice`, it is the k - 1 of so many nearest ones that enlarge the cluster least, one after the other.
    """
    bucket = np.empty(len(slots), np.int64)
    persons = number_persons(rows, slots, bucket)
    left = counts(bucket, persons)
    live, lives = np.arange(len(slots)), len(slots)
    nearest, candidate = np.empty(persons), np.empty(persons, np.int64)
    clusters = 0
    while np.sum(left > 0) >= rules.k:
        seed = _draw_row(out, part, bucket, left)
        own = bucket[seed]
        nearest[:] = np.inf
        for index in range(lives):
            row = live[index]
            if bucket[row] != own:
                loss = pair_loss(space, rows.quasi[slots[seed]], rows.quasi[slots[row]])
                if loss < nearest[bucket[row]]:
                    nearest[bucket[row]] = loss
                    candidate[bucket[row]] = row
        part[seed] = clusters
        left[own] -= 1
        others = int(np.sum(left > 0)) - (left[own] > 0)
        near = least(nearest, rules.k - 1 if choice == 0 else min(choice, others))
        if choice:
            near = _gather_least(rows, space, slots, candidate, near, slots[seed], rules.k - 1)
        for chosen in near:
            part[candidate[chosen]] = clusters
            left[chosen] -= 1
        clusters += 1
        kept = 0
        for index in range(lives):
            if part[live[index]] == NONE:
                live[kept] = live[index]
                kept += 1
        lives = kept
    _assign_rest(rows, space, slots, part, bucket, clusters)
    return clusters


@kernel
def _gather_least(
    rows: Rows,
    space: Geometry,
    slots: NDArray[np.int64],
    candidate: NDArray[np.int64],
    near: NDArray[np.int64],
    seed: int,
    count: int,
) -> NDArray[np.int64]:
    """So many of the near ones: each time the one that enlarges the box around the seed and those chosen least."""
    lo, hi = rows.quasi[seed].copy(), rows.quasi[seed].copy()
    growth = np.empty(len(near))
    for index in range(len(near)):
        row = rows.quasi[slots[candidate[near[index]]]]
        growth[index] = enlargement(space, lo, hi, row, row)
    chosen = np.empty(count, np.int64)
    for number in range(count):
        best = np.argmin(growth)
        chosen[number] = near[best]
        growth[best] = np.inf
        new = rows.quasi[slots[candidate[near[best]]]]
        for attribute in range(len(lo)):
            low, high = lo[attribute], hi[attribute]
            if new[attribute] < low or new[attribute] > high:
                lo[attribute], hi[attribute] = min(low, new[attribute]), max(high, new[attribute])
                for index in range(len(near)):
                    value = rows.quasi[slots[candidate[near[index]]], attribute]
                    if value < low or value > high:
                        cost = _side_growth(space, attribute, lo[attribute], hi[attribute], value)
                        growth[index] += cost - _side_growth(space, attribute, low, high, value)
    return chosen


@kernel
def _draw_row(out: Output, part: NDArray[np.int64], bucket: NDArray[np.int64], left: NDArray[np.int64]) -> int:
    """A random row of a random bucket, among the rows that have no part yet."""
    nth, chosen = below(out, int(np.sum(left > 0))), 0
    while left[chosen] == 0 or nth > 0:
        nth -= left[chosen] > 0
        chosen += 1
    nth, row = below(out, left[chosen]), 0
    while bucket[row] != chosen or part[row] != NONE or nth > 0:
        nth -= bucket[row] == chosen and part[row] == NONE
        row += 1
    return row


@kernel
def _boxes_of(rows: Rows, slots: NDArray[np.int64], part: NDArray[np.int64], clusters: int) -> NDArray[np.float64]:
    boxes = np.empty((2, clusters, rows.quasi.shape[1]))
    boxes[LO] = np.inf
    boxes[HI] = -np.inf
    for index in range(len(slots)):
        if part[index] != NONE:
            include(boxes[LO, part[index]], boxes[HI, part[index]], rows.quasi[slots[index]])
    return boxes


@kernel
def _assign_rest(
    rows: Rows,
    space: Geometry,
    slots: NDArray[np.int64],
    part: NDArray[np.int64],
    bucket: NDArray[np.int64],
    clusters: int,
) -> None:
    """Add all rows of each left bucket to the cluster that its first row enlarges least."""
    boxes = _boxes_of(rows, slots, part, clusters)
    target = np.full(len(slots), NONE)
    for index in range(len(slots)):
        if part[index] == NONE:
            row = rows.quasi[slots[index]]
            if target[bucket[index]] == NONE:
                target[bucket[index]] = _nearest(space, boxes, row, row, NONE)
            part[index] = target[bucket[index]]
            include(boxes[LO, part[index]], boxes[HI, part[index]], row)


@kernel
def _nearest(
    space: Geometry, boxes: NDArray[np.float64], lo: NDArray[np.float64], hi: NDArray[np.float64], without: int
) -> int:
    """The cluster, other than `without`, whose box grows least by taking in this one."""
    best, least_growth = NONE, np.inf
    for cluster in range(boxes.shape[1]):
        growth = enlargement(space, boxes[LO, cluster], boxes[HI, cluster], lo, hi)
        if growth < least_growth and cluster != without:
            best, least_growth = cluster, growth
    return best


@kernel
def _split_l(
    rows: Rows, out: Output, space: Geometry, rules: Rules, slots: NDArray[np.int64], part: NDArray[np.int64]
) -> int:
    """One random row per person, in buckets of equal value; each cluster takes its share of every bucket.

    Shares are rounded up: rounded down, a small bucket gives nothing and the cluster misses a value. With several
    sensitive attributes the buckets follow the one with the fewest values, and clusters that lack values of another
    are united with their nearest.
    """
    person = np.empty(len(slots), np.int64)
    persons = number_persons(rows, slots, person)
    chosen = _one_row_each(out, slots, person, persons)
    chosen_part = np.full(persons, NONE)
    bucket = _by_value(rows, chosen)
    left = counts(bucket, bucket.max() + 1)
    clusters, growth = 0, np.empty(persons)
    while np.sum(left > 0) >= rules.l and np.sum(left) >= rules.k:
        total = np.sum(left)
        seed = _draw_row(out, chosen_part, bucket, left)
        chosen_part[seed] = clusters
        left[bucket[seed]] -= 1
        lo, hi = rows.quasi[chosen[seed]].copy(), rows.quasi[chosen[seed]].copy()
        for value in range(len(left)):
            growth[:] = np.inf
            for index in range(persons):
                if bucket[index] == value and chosen_part[index] == NONE:
                    row = rows.quasi[chosen[index]]
                    growth[index] = enlargement(space, lo, hi, row, row)
            share = (rules.k * left[value] + total - 1) // total
            for index in least(growth, min(left[value], share)):
                chosen_part[index] = clusters
                left[value] -= 1
                include(lo, hi, rows.quasi[chosen[index]])
        clusters += 1
    if clusters == 0:
        part[:] = 0
        return 1
    _assign_rest(rows, space, chosen, chosen_part, np.arange(persons), clusters)
    for index in range(len(slots)):
        part[index] = chosen_part[person[index]]
    return _unite_lacking(rows, space, rules, slots, part, clusters)


@kernel
def _one_row_each(out: Output, slots: NDArray[np.int64], person: NDArray[np.int64], persons: int) -> NDArray[np.int64]:
    """Slot of one random row of each person."""
    skip = counts(person, persons)
    for who in range(persons):
        skip[who] = below(out, skip[who])
    chosen = np.empty(persons, np.int64)
    for index in range(len(person)):
        if skip[person[index]] == 0:
            chosen[person[index]] = slots[index]
        skip[person[index]] -= 1
    return chosen


@kernel
def _by_value(rows: Rows, slots: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the rows by their value of the attribute with the fewest values, in order of appearance."""
    numbers, best, fewest = np.empty(len(slots), np.int64), np.empty(len(slots), np.int64), len(slots) + 1
    for attribute in range(rows.sensitive.shape[1]):
        values = number_values(rows, slots, attribute, numbers)
        if values < fewest:
            fewest = values
            copy(best, numbers)
    return best


@kernel
def _unite_lacking(
    rows: Rows, space: Geometry, rules: Rules, slots: NDArray[np.int64], part: NDArray[np.int64], clusters: int
) -> int:
    """Unite each cluster that lacks values with its nearest until none does; how many are left."""
    cluster, members = 0, np.empty(len(slots), np.int64)
    while cluster < clusters and clusters > 1:
        count = 0
        for index in range(len(slots)):
            if part[index] == cluster:
                members[count] = slots[index]
                count += 1
        if not lacks_values(rows, rules, members[:count]):
            cluster += 1
            continue
        boxes = _boxes_of(rows, slots, part, clusters)
        other = _nearest(space, boxes, boxes[LO, cluster], boxes[HI, cluster], cluster)
        low, high, last = min(other, cluster), max(other, cluster), clusters - 1
        for index in range(len(slots)):
            if part[index] == high:
                part[index] = low
            elif part[index] == last:
                part[index] = high
        clusters -= 1
        cluster = min(cluster, low)
    return clusters
