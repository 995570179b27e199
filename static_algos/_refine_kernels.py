"""Kernels of the refinement: where to cut a class in two, so that both parts keep the limits and lose least."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import Geometry, kernel, part, range_loss
from static_algos._limit_kernels import Limits, Rules, strain

STRETCHES = 32
"""Cuts that are tried along one sequence of rows."""
ENOUGH = 1.1
"""Proportional cuts are tried where the best plain one costs more than this times the least loss of any plain one."""
LINES = 32
"""Quasi-identifiers by which the rows of a class are lined up at most."""
CAUTION = 0.025
"""What it costs to come near a limit with a part that could be cut again."""


class Block(NamedTuple):
    """Rows that are cut together, in arrays small enough for the cache."""

    row: NDArray[np.int32]
    """Row of the table."""
    point: NDArray[np.float64]
    """Quasi-identifiers."""
    value: NDArray[np.int32]
    """Places of the sensitive values in the array of counts."""
    person: NDArray[np.int32]
    """Empty when every row is another person."""
    order: NDArray[np.int32]
    """Quasi-identifiers × rows: the block's rows in ascending order; a class is a range, the same in all of them."""


class Desk(NamedTuple):
    """Room to work in."""

    sequence: NDArray[np.int32]
    """Sequences × rows: the ways to line up the rows of a class."""
    cost: NDArray[np.float64]
    """Sequences × rows: mean loss after cutting the sequence behind each row; infinite where no cut is tried."""
    back: NDArray[np.int32]
    """A sequence from its end."""
    ahead: NDArray[np.float64]
    """Loss of its first rows."""
    edges: NDArray[np.float64]
    """Box and loss of the rows so far, per quasi-identifier."""
    seen: NDArray[np.int64]
    """Per person, the mark of the last count."""
    mark: NDArray[np.int64]
    """One entry: the last mark."""
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    """Counts of sensitive values on both sides of a cut."""
    side: NDArray[np.bool_]
    """Per row, whether it goes to the left."""
    run: NDArray[np.int32]
    """Per row, where the rows begin that are equal to it."""
    free: NDArray[np.int32]
    """Per such beginning, the next place to fill."""


class Cut(NamedTuple):
    """A sequence and how many of its rows go to the left; no sequence (-1) where no cut keeps the limits."""

    sequence: int
    rows: int


@kernel
def fill_block(
    quasi: NDArray[np.float64], limits: Limits, whole: NDArray[np.bool_], rows: NDArray[np.int32], block: Block
) -> None:
    """Copy the rows into the block and sort them by each quasi-identifier; `whole` tells those with whole numbers."""
    for place in range(rows.shape[0]):
        block.row[place] = rows[place]
        for column in range(quasi.shape[1]):
            block.point[place, column] = quasi[rows[place], column]
        for column in range(limits.value.shape[1]):
            block.value[place, column] = limits.value[rows[place], column]
        if block.person.shape[0]:
            block.person[place] = limits.person[rows[place]]
    for column in range(quasi.shape[1]):
        _sort(block.point[: rows.shape[0], column].copy(), whole[column], block.order[column])


@part
def _sort(values: NDArray[np.float64], whole: bool, order: NDArray[np.int32]) -> None:
    """Places of the values in ascending order; by counting, where there are few different ones."""
    size = values.shape[0]
    low, high = values.min(), values.max()
    if not whole or high - low > 4 * size:
        order[:size] = np.argsort(values)
        return
    starts = np.zeros(np.int64(high - low) + 2, np.int64)
    for place in range(size):
        starts[np.int64(values[place] - low) + 1] += 1
    for step in range(starts.shape[0] - 1):
        starts[step + 1] += starts[step]
    for place in range(size):
        cell = np.int64(values[place] - low)
        order[starts[cell]] = place
        starts[cell] += 1


@part
def _in_proportion(
    block: Block, desk: Desk, attribute: int, column: int, begin: int, end: int, sequence: NDArray[np.int32]
) -> None:
    """Line up the rows such that any cut takes about the same share of every sensitive value, in ascending order.

    A row's place is its rank among the rows with its value, relative to their number.
    """
    size = end - begin
    total, before = desk.left, desk.right
    for place in range(begin, end):
        value = block.value[block.order[column, place], attribute]
        total[value] = before[value] = 0
    for place in range(begin, end):
        total[block.value[block.order[column, place], attribute]] += 1
    starts = np.zeros(size + 1, np.int64)
    cell = np.empty(size, np.int64)
    for place in range(size):
        value = block.value[block.order[column, begin + place], attribute]
        cell[place] = np.int64((2 * before[value] + 1) * size // (2 * total[value]))
        before[value] += 1
        starts[cell[place] + 1] += 1
    for place in range(size):
        starts[place + 1] += starts[place]
    for place in range(size):
        sequence[starts[cell[place]]] = block.order[column, begin + place]
        starts[cell[place]] += 1


@part
def _running_loss(
    space: Geometry,
    point: NDArray[np.float64],
    wide: NDArray[np.int64],
    sequence: NDArray[np.int32],
    edges: NDArray[np.float64],
    loss: NDArray[np.float64],
) -> None:
    """Loss of the box around the first row of the sequence, the first two, …, in the quasi-identifiers `wide`."""
    lo, hi, part = edges[0], edges[1], edges[2]
    total = 0.0
    for axis in range(wide.shape[0]):
        lo[axis] = hi[axis] = point[sequence[0], wide[axis]]
        part[axis] = space.weight[wide[axis]] * range_loss(space, wide[axis], lo[axis], hi[axis])
        total += part[axis]
    for place in range(sequence.shape[0]):
        row = sequence[place]
        for axis in range(wide.shape[0]):
            value = point[row, wide[axis]]
            if value < lo[axis] or value > hi[axis]:
                lo[axis] = min(lo[axis], value)
                hi[axis] = max(hi[axis], value)
                total -= part[axis]
                part[axis] = space.weight[wide[axis]] * range_loss(space, wide[axis], lo[axis], hi[axis])
                total += part[axis]
        loss[place] = total


@part
def _rows_for(block: Block, desk: Desk, sequence: NDArray[np.int32], least: int) -> int:
    """How many rows from the start of the sequence are about `least` persons; more than there are, if none."""
    if block.person.shape[0] == 0:
        return least
    desk.mark[0] += 1
    persons = 0
    for place in range(sequence.shape[0]):
        person = block.person[sequence[place]]
        if desk.seen[person] != desk.mark[0]:
            desk.seen[person] = desk.mark[0]
            persons += 1
            if persons == least:
                return place + 1
    return sequence.shape[0] + 1


@part
def _price(
    space: Geometry, block: Block, desk: Desk, wide: NDArray[np.int64], number: int, size: int, least: int
) -> float:
    """Mean loss after each cut of a sequence that leaves enough persons on both sides; returns the least.

    A long sequence is divided into stretches, and only the best cut of each is kept.
    """
    sequence, back, cost = desk.sequence[number, :size], desk.back[:size], desk.cost[number]
    for place in range(size):
        back[place] = sequence[size - 1 - place]
    first = _rows_for(block, desk, sequence, least)
    last = size - _rows_for(block, desk, back, least)
    _running_loss(space, block.point, wide, sequence, desk.edges, cost)
    _running_loss(space, block.point, wide, back, desk.edges, desk.ahead)
    stretch = max(1, (last - first) // STRETCHES)
    best, kept = np.inf, -1
    for place in range(size):
        rows = place + 1
        own = cost[place]
        cost[place] = np.inf
        if rows < first or rows > last:
            continue
        price = (rows * own + (size - rows) * desk.ahead[size - rows - 1]) / size
        if (rows - first) % stretch == 0 or price < cost[kept]:
            if (rows - first) % stretch > 0:
                cost[kept] = np.inf
            cost[place], kept = price, place
        best = min(best, price)
    return best


@part
def _worry(rules: Rules, counts: NDArray[np.int64], rows: int, least: int) -> float:
    """Infinite for a part that breaks a limit; else the more, the nearer it is and the more often it could be cut."""
    used = strain(rules, counts, rows)
    if used > 1.0:
        return np.inf
    return CAUTION * (used * used) ** 2 * np.log2(max(rows / least, 1.0))


@part
def _try_cuts(
    rules: Rules, block: Block, desk: Desk, number: int, size: int, least: int, best: float
) -> tuple[float, int]:
    """The cheapest cut of a sequence below `best` that keeps the limits: its price and its rows, or 0."""
    desk.left[:] = 0
    desk.right[:] = 0
    sequence = desk.sequence[number]
    for place in range(size):
        for attribute in range(block.value.shape[1]):
            desk.right[block.value[sequence[place], attribute]] += 1
    found = 0
    for place in range(size - 1):
        for attribute in range(block.value.shape[1]):
            value = block.value[sequence[place], attribute]
            desk.left[value] += 1
            desk.right[value] -= 1
        if desk.cost[number, place] >= best:
            continue
        rows = place + 1
        price = desk.cost[number, place] + rows * _worry(rules, desk.left, rows, least) / size
        if price < best:
            price += (size - rows) * _worry(rules, desk.right, size - rows, least) / size
        if price < best:
            best, found = price, rows
    return best, found


@part
def _lines(
    space: Geometry, block: Block, desk: Desk, wide: NDArray[np.int64], begin: int, end: int, least: int
) -> NDArray[np.int64]:
    """The quasi-identifiers to line up by: all of `wide`, or those by which a cut seems to gain most.

    Every line prices boxes in all of them, so without a bound the work would grow with the square of their number.
    What a cut gains is judged by the line's own quasi-identifier and some of the others.
    """
    count, size = wide.shape[0], end - begin
    if count <= LINES:
        return wide
    some = wide[np.arange(LINES) * count // LINES]
    gain = np.empty(count)
    for axis in range(count):
        column = wide[axis]
        sides = np.append(some[some != column], column)
        desk.sequence[0, :size] = block.order[column, begin:end]
        price = _price(space, block, desk, sides, 0, size, least)
        gain[axis] = desk.ahead[size - 1] - price
    return wide[np.sort(np.argsort(-gain, kind="mergesort")[:LINES])]


@kernel
def find_cut(space: Geometry, limits: Limits, block: Block, desk: Desk, begin: int, end: int) -> Cut:
    """The best cut of the class in this range of the block."""
    size = end - begin
    if size < 2 * limits.least:
        return Cut(-1, 0)
    columns, attributes = block.point.shape[1], block.value.shape[1]
    wide = np.empty(columns, np.int64)
    count = 0
    for column in range(columns):
        low, high = block.order[column, begin], block.order[column, end - 1]
        if block.point[low, column] < block.point[high, column]:
            wide[count] = column
            count += 1
    wide = wide[:count]
    lines = _lines(space, block, desk, wide, begin, end, limits.least)
    ways = 1 + attributes
    least = np.full(columns * ways, np.inf)
    best, cut = np.inf, Cut(-1, 0)
    for way in range(ways):
        for column in lines:
            number = column * ways + way
            if way == 0:
                desk.sequence[number, :size] = block.order[column, begin:end]
            else:
                _in_proportion(block, desk, way - 1, column, begin, end, desk.sequence[number])
            least[number] = _price(space, block, desk, wide, number, size, limits.least)
        for number in np.argsort(least[way::ways]) * ways + way:
            if least[number] >= best:
                break
            best, rows = _try_cuts(limits.rules, block, desk, number, size, limits.least, best)
            if rows > 0:
                cut = Cut(number, rows)
        if best <= ENOUGH * least.min():
            break
    return cut


@part
def _divide(block: Block, desk: Desk, cut: Cut, begin: int, end: int) -> None:
    """Move the rows of the left part to the beginning of the range, in every order.

    Rows that are equal in an order take the sequence of the cut, so that later cuts go on where this one left off.
    """
    sequence, middle = desk.sequence[cut.sequence], begin + cut.rows
    for place in range(end - begin):
        desk.side[sequence[place]] = place < cut.rows
    run, free = desk.run, desk.free
    for column in range(block.order.shape[0]):
        left, right = begin, middle
        left_run, right_run = begin, middle
        left_value, right_value = -np.inf, -np.inf
        for place in range(begin, end):
            row = block.order[column, place]
            value = block.point[row, column]
            if desk.side[row]:
                if value > left_value:
                    left_value, left_run = value, left
                    free[left] = left
                run[row] = left_run
                left += 1
            else:
                if value > right_value:
                    right_value, right_run = value, right
                    free[right] = right
                run[row] = right_run
                right += 1
        for place in range(end - begin):
            row = sequence[place]
            block.order[column, free[run[row]]] = row
            free[run[row]] += 1


@kernel
def split_blocks(
    space: Geometry,
    limits: Limits,
    quasi: NDArray[np.float64],
    whole: NDArray[np.bool_],
    rows: NDArray[np.int32],
    bounds: NDArray[np.int64],
    block: Block,
    desk: Desk,
    first: int,
    classes: NDArray[np.int32],
) -> int:
    """Cut the classes that lie between the `bounds` of `rows` until no cut is left.

    The parts are numbered from `first`; returns the next number.
    """
    for number in range(bounds.shape[0] - 1):
        part = rows[bounds[number] : bounds[number + 1]]
        fill_block(quasi, limits, whole, part, block)
        first = _split_block(space, limits, block, desk, part.shape[0], first, classes)
    return first


@part
def _split_block(
    space: Geometry, limits: Limits, block: Block, desk: Desk, size: int, first: int, classes: NDArray[np.int32]
) -> int:
    begins, ends = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
    begins[0], ends[0], waiting = 0, size, 1
    while waiting:
        waiting -= 1
        begin, end = begins[waiting], ends[waiting]
        cut = find_cut(space, limits, block, desk, begin, end)
        if cut.sequence < 0:
            for place in range(begin, end):
                classes[block.row[block.order[0, place]]] = first
            first += 1
            continue
        _divide(block, desk, cut, begin, end)
        begins[waiting], ends[waiting] = begin + cut.rows, end
        begins[waiting + 1], ends[waiting + 1] = begin, begin + cut.rows
        waiting += 2
    return first


@kernel
def cut_by_sample(
    space: Geometry,
    limits: Limits,
    quasi: NDArray[np.float64],
    whole: NDArray[np.bool_],
    rows: NDArray[np.int32],
    stride: int,
    block: Block,
    desk: Desk,
) -> int:
    """Cut a class too large for a block where a sample of its rows says; returns the rows of the left part, or 0.

    The left part moves to the beginning of `rows`. What the sample says is checked on all rows.
    """
    sample = rows[::stride].copy()
    fill_block(quasi, limits, whole, sample, block)
    cut = find_cut(space, limits, block, desk, 0, sample.shape[0])
    if cut.sequence < 0:
        return 0
    goes = _sides(limits, quasi, rows, block, desk, cut, sample.shape[0])
    left = 0
    desk.left[:] = 0
    desk.right[:] = 0
    for place in range(rows.shape[0]):
        counts = desk.left if goes[place] else desk.right
        for attribute in range(limits.value.shape[1]):
            counts[limits.value[rows[place], attribute]] += 1
        left += goes[place]
    right = rows.shape[0] - left
    if strain(limits.rules, desk.left, left) > 1.0 or strain(limits.rules, desk.right, right) > 1.0:
        return 0
    if not _enough(limits, desk, rows, goes):
        return 0
    spare = rows[~goes].copy()
    rows[:left] = rows[goes]
    rows[left:] = spare
    return left


@part
def _enough(limits: Limits, desk: Desk, rows: NDArray[np.int32], goes: NDArray[np.bool_]) -> bool:
    """Whether both sides of a cut are about enough persons."""
    for side in range(2):
        desk.mark[0] += 1
        persons = 0
        for place in range(rows.shape[0]):
            if goes[place] != side:
                continue
            if limits.person.shape[0] == 0:
                persons += 1
            elif desk.seen[limits.person[rows[place]]] != desk.mark[0]:
                desk.seen[limits.person[rows[place]]] = desk.mark[0]
                persons += 1
            if persons >= limits.least:
                break
        if persons < limits.least:
            return False
    return True


@part
def _sides(
    limits: Limits,
    quasi: NDArray[np.float64],
    rows: NDArray[np.int32],
    block: Block,
    desk: Desk,
    cut: Cut,
    size: int,
) -> NDArray[np.bool_]:
    """Which rows go to the left when a cut of the sample is carried over to all of them.

    Per sensitive value (or for all together, where the sequence does not heed them): up to the greatest value of the
    left part, and of the rows that are equal to it the same share.
    """
    ways = 1 + block.value.shape[1]
    column, attribute = cut.sequence // ways, cut.sequence % ways - 1
    groups = desk.left.shape[0]
    edge = np.full(groups, -np.inf)
    inside, equal, sampled = np.zeros(groups, np.int64), np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    sequence = desk.sequence[cut.sequence]
    for place in range(size):
        group = 0 if attribute < 0 else block.value[sequence[place], attribute]
        sampled[group] += 1
        if place < cut.rows:
            edge[group] = max(edge[group], block.point[sequence[place], column])
    for place in range(size):
        group = 0 if attribute < 0 else block.value[sequence[place], attribute]
        if block.point[sequence[place], column] == edge[group]:
            equal[group] += 1
            inside[group] += place < cut.rows
    met = np.zeros(groups, np.int64)
    goes = np.empty(rows.shape[0], np.bool_)
    for place in range(rows.shape[0]):
        group = 0 if attribute < 0 else limits.value[rows[place], attribute]
        value = quasi[rows[place], column]
        if sampled[group] == 0:
            met[group] += 1
            goes[place] = met[group] * cut.rows // size > (met[group] - 1) * cut.rows // size
        elif value == edge[group]:
            met[group] += 1
            goes[place] = met[group] * inside[group] // equal[group] > (met[group] - 1) * inside[group] // equal[group]
        else:
            goes[place] = value < edge[group]
    return goes
