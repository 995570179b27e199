"""split^k and split^ℓ: how a cluster of at least 2k persons is cut into clusters of about k.

Both look at every pair of rows in the worst case. A large cluster is therefore first cut at medians, along the
attribute that costs most, into blocks that keep enough persons; inside a block the rows are neighbours anyway, so
the result is as good (`load_tests/stream_quality.py` compares).

`part` receives the number of the new cluster of each row. Rows may change places in `slots`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import Geometry, kernel, nth_smallest, part, range_loss
from stream_algos._held_kernels import (
    EVERYWHERE,
    NONE,
    NUMBER,
    Rows,
    Rules,
    copy,
    counts,
    find,
    fresh_mark,
    meet,
    number_persons,
)
from stream_algos._leaving_kernels import fails
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
    """Cut rows with at least 2k persons into clusters that all have k persons and what else is needed; their number."""
    starts = _blocks(rows, space, rules, slots)
    choice = max(CHOICE * rules.k, LEAST_CHOICE) if len(starts) > 2 else 0
    clusters = 0
    for block in range(len(starts) - 1):
        some, parts = slots[starts[block] : starts[block + 1]], part[starts[block] : starts[block + 1]]
        parts[:] = NONE
        if rules.is_conditional:
            made = _split_l(rows, out, space, rules, some, parts)
        else:
            made = _split_k(rows, out, space, rules, some, parts, choice)
        parts += clusters
        clusters += made
    return clusters


@part
def is_plain(space: Geometry, attribute: int) -> bool:
    """Whether a loss is proportional to the interval's length: a number without a step."""
    return space.start[attribute] < 0 and space.step[attribute] == 0.0


@part
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


@part
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


@part
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


@part
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
    for side in (ordered[:half], ordered[half:]):
        if number_persons(rows, side, scratch) < 2 * rules.k or fails(rows, side):
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
    persons = alive = number_persons(rows, slots, bucket)
    left = counts(bucket, persons)
    live, columns = np.arange(len(slots)), _columns(rows, slots)
    nearest, candidate = np.empty(persons), np.empty(persons, np.int64)
    clusters = 0
    while alive >= rules.k:
        seed = _draw_row(out, part, bucket, left, alive)
        own = bucket[seed]
        _nearest_of_each(space, columns, rows.quasi[slots[seed]], bucket[live], nearest, candidate)
        nearest[own] = np.inf
        near = least(nearest, rules.k - 1 if choice == 0 else min(choice, alive - 1))
        if choice:
            near = _gather_least(space, columns, candidate, near, rows.quasi[slots[seed]], rules.k - 1)
        part[seed] = clusters
        left[own] -= 1
        alive -= left[own] == 0
        for chosen in near:
            part[live[candidate[chosen]]] = clusters
            left[chosen] -= 1
            alive -= left[chosen] == 0
        clusters += 1
        live = _still_without(part, live, columns)
    _assign_rest(rows, space, slots, part, bucket, clusters)
    return clusters


@part
def _columns(rows: Rows, slots: NDArray[np.int64]) -> NDArray[np.float64]:
    """Quasi-identifiers of these rows, one after the other."""
    columns = np.empty((rows.quasi.shape[1], len(slots)))
    for index in range(len(slots)):
        for attribute in range(len(columns)):
            columns[attribute, index] = rows.quasi[slots[index], attribute]
    return columns


@part
def _still_without(part: NDArray[np.int64], live: NDArray[np.int64], columns: NDArray[np.float64]) -> NDArray[np.int64]:
    """Those live rows that have no part yet; their values move to the front of the columns."""
    kept = 0
    for index in range(len(live)):
        if part[live[index]] == NONE:
            live[kept] = live[index]
            for attribute in range(len(columns)):
                columns[attribute, kept] = columns[attribute, index]
            kept += 1
    return live[:kept]


@part
def _nearest_of_each(
    space: Geometry,
    columns: NDArray[np.float64],
    seed: NDArray[np.float64],
    bucket: NDArray[np.int64],
    nearest: NDArray[np.float64],
    candidate: NDArray[np.int64],
) -> None:
    """Loss of the box around the seed and the nearest row of each bucket, and the index of that row."""
    distance = np.zeros(len(bucket))
    for attribute in range(len(columns)):
        _add_distances(space, attribute, seed[attribute], columns[attribute][: len(bucket)], distance)
    nearest[:] = np.inf
    for index in range(len(bucket)):
        if distance[index] < nearest[bucket[index]]:
            nearest[bucket[index]] = distance[index]
            candidate[bucket[index]] = index


@part
def _add_distances(
    space: Geometry, attribute: int, value: float, column: NDArray[np.float64], distance: NDArray[np.float64]
) -> None:
    """Add the weighted loss of the interval from a value to each value of a column."""
    weight, scale = space.weight[attribute], space.scale[attribute]
    if is_plain(space, attribute):
        for index in range(len(column)):
            distance[index] += weight * (abs(column[index] - value) * scale)
    elif space.start[attribute] >= 0 and space.leaves[attribute] < len(column):
        from_value = np.empty(space.leaves[attribute])
        for leaf in range(len(from_value)):
            from_value[leaf] = weight * range_loss(space, attribute, min(value, float(leaf)), max(value, float(leaf)))
        for index in range(len(column)):
            distance[index] += from_value[int(column[index])]
    else:
        for index in range(len(column)):
            lo, hi = min(value, column[index]), max(value, column[index])
            distance[index] += weight * range_loss(space, attribute, lo, hi)


@part
def _gather_least(
    space: Geometry,
    columns: NDArray[np.float64],
    candidate: NDArray[np.int64],
    near: NDArray[np.int64],
    seed: NDArray[np.float64],
    count: int,
) -> NDArray[np.int64]:
    """So many of the near ones: each time the one that enlarges the box around the seed and those chosen least."""
    own, growth = np.empty((len(columns), len(near))), np.zeros(len(near))
    for attribute in range(len(columns)):
        for index in range(len(near)):
            own[attribute, index] = columns[attribute, candidate[near[index]]]
        _add_distances(space, attribute, seed[attribute], own[attribute], growth)
    lo, hi = seed.copy(), seed.copy()
    chosen = np.empty(count, np.int64)
    for number in range(count):
        best = 0
        for index in range(1, len(near)):
            best = index if growth[index] < growth[best] else best
        chosen[number] = near[best]
        growth[best] = np.inf
        for attribute in range(len(columns)):
            value, low, high = own[attribute, best], lo[attribute], hi[attribute]
            if value < low or value > high:
                lo[attribute], hi[attribute] = min(low, value), max(high, value)
                _lower_growth(space, attribute, low, high, lo[attribute], hi[attribute], own[attribute], growth)
    return chosen


@part
def _lower_growth(
    space: Geometry,
    attribute: int,
    lo: float,
    hi: float,
    wider_lo: float,
    wider_hi: float,
    column: NDArray[np.float64],
    growth: NDArray[np.float64],
) -> None:
    """The side `lo … hi` has become wider: take off what no longer has to be paid for each value of a column."""
    weight = space.weight[attribute]
    if is_plain(space, attribute):
        scale, left, right = weight * space.scale[attribute], lo - wider_lo, wider_hi - hi
        for index in range(len(column)):
            value = column[index]
            growth[index] -= scale * (min(max(lo - value, 0.0), left) + min(max(value - hi, 0.0), right))
        return
    paid = range_loss(space, attribute, wider_lo, wider_hi) - range_loss(space, attribute, lo, hi)
    if paid == 0.0:
        return  # The same ancestor, or the same steps: nothing changes for anybody.
    for index in range(len(column)):
        value = column[index]
        if value < lo or value > hi:
            before = range_loss(space, attribute, min(lo, value), max(hi, value))
            after = range_loss(space, attribute, min(wider_lo, value), max(wider_hi, value))
            growth[index] += weight * (after - before - paid)


@part
def _draw_row(
    out: Output, part: NDArray[np.int64], bucket: NDArray[np.int64], left: NDArray[np.int64], alive: int
) -> int:
    """A random row of a random bucket, among the rows that have no part yet; so many buckets are not empty."""
    nth, chosen = below(out, alive), 0
    while left[chosen] == 0 or nth > 0:
        nth -= left[chosen] > 0
        chosen += 1
    nth, row = below(out, left[chosen]), 0
    while bucket[row] != chosen or part[row] != NONE or nth > 0:
        nth -= bucket[row] == chosen and part[row] == NONE
        row += 1
    return row


@part
def _boxes_of(rows: Rows, slots: NDArray[np.int64], part: NDArray[np.int64], clusters: int) -> NDArray[np.float64]:
    boxes = np.empty((2, clusters, rows.quasi.shape[1]))
    boxes[LO] = np.inf
    boxes[HI] = -np.inf
    for index in range(len(slots)):
        if part[index] != NONE:
            include(boxes[LO, part[index]], boxes[HI, part[index]], rows.quasi[slots[index]])
    return boxes


@part
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


@part
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


@part
def _split_l(
    rows: Rows, out: Output, space: Geometry, rules: Rules, slots: NDArray[np.int64], part: NDArray[np.int64]
) -> int:
    """One random row per person, in buckets of equal value; each cluster takes its share of every bucket.

    Shares are rounded up: rounded down, a small bucket gives nothing and the cluster misses a value. With several
    conditions the buckets follow the one with the fewest values, and clusters that lack something of another are
    united with their nearest.
    """
    person = np.empty(len(slots), np.int64)
    persons = number_persons(rows, slots, person)
    chosen = _one_row_each(out, slots, person, persons)
    chosen_part = np.full(persons, NONE)
    bucket, needed = _by_value(rows, chosen)
    left = counts(bucket, bucket.max() + 1)
    clusters, growth = 0, np.empty(persons)
    while np.sum(left > 0) >= needed and np.sum(left) >= rules.k:
        total = np.sum(left)
        seed = _draw_row(out, chosen_part, bucket, left, int(np.sum(left > 0)))
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
    return _unite_failing(rows, space, slots, part, clusters)


@part
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


@part
def _by_value(rows: Rows, slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Number the rows by their code in the condition with the fewest codes; of how many codes a class needs rows."""
    numbers, best, fewest = np.empty(len(slots), np.int64), np.empty(len(slots), np.int64), len(slots) + 1
    needed = 1
    for condition in range(rows.codes.shape[1]):
        values = _number_codes(rows, slots, condition, numbers)
        if values < fewest:
            fewest = values
            needed = rows.conditions.needs[condition] if rows.conditions.first[condition] == NONE else 1
            copy(best, numbers)
    return best, needed


@part
def _number_codes(rows: Rows, slots: NDArray[np.int64], condition: int, numbers: NDArray[np.int64]) -> int:
    """Number the codes of a condition from 0 in order of appearance; how many there are."""
    if not rows.conditions.once[condition]:
        return _number_categories(rows, slots, condition, numbers)
    mark, values = fresh_mark(rows), 0
    for index in range(len(slots)):
        value = find(rows, rows.codes[slots[index], condition], EVERYWHERE - 1 - condition)
        values += meet(rows, value, mark, values)
        numbers[index] = rows.tally[value, NUMBER]
    return values


@part
def _number_categories(rows: Rows, slots: NDArray[np.int64], condition: int, numbers: NDArray[np.int64]) -> int:
    """The same for codes that nobody counts: categories, of which there are few."""
    most = 0
    for slot in slots:
        most = max(most, int(rows.codes[slot, condition]))
    number, values = np.full(most + 1, NONE), 0
    for index in range(len(slots)):
        code = rows.codes[slots[index], condition]
        if number[code] == NONE:
            number[code] = values
            values += 1
        numbers[index] = number[code]
    return values


@part
def _unite_failing(
    rows: Rows, space: Geometry, slots: NDArray[np.int64], part: NDArray[np.int64], clusters: int
) -> int:
    """Unite each cluster that lacks or exceeds something with its nearest until none does; how many are left."""
    cluster, members = 0, np.empty(len(slots), np.int64)
    while cluster < clusters and clusters > 1:
        count = 0
        for index in range(len(slots)):
            if part[index] == cluster:
                members[count] = slots[index]
                count += 1
        if not fails(rows, members[:count]):
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
