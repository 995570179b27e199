"""Where cohorts come from: the pool, or a cohort that has become large, is cut in two as long as both sides are enough.

The cuts are Mondrian's: of all cuts of all quasi-identifiers the one after which least is lost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import Geometry, box_loss, part, range_loss, widened_range
from stream_algos._cohort_mark_kernels import bound_of, mark
from stream_algos._cohort_person_kernels import (
    enlist,
    unlist,
    wide,
)
from stream_algos._cohort_release_kernels import (
    accompany,
    let_out,
    show,
    waiting_for,
    word,
)
from stream_algos._cohort_state import (
    ABOVE,
    AFTER,
    ASKING,
    AT,
    COUNT,
    CUT,
    DISMISSED,
    EDGE,
    HEAD,
    ID,
    J_HI,
    J_LO,
    LASTING,
    LEAVES,
    LEFT,
    LINE,
    LOSS,
    LOWEST,
    MADE,
    MEMBER,
    MEMBERS,
    NEEDED,
    NEXT,
    NODE,
    NODES,
    NOTES,
    OPEN,
    P_HI,
    P_LO,
    PARENT,
    PERSON,
    POOL,
    POOLED_PERSONS,
    RIGHT,
    ROLE,
    ROOT,
    SHOWN,
    SOUGHT,
    SPLITS,
    TRY,
    WAITING,
    WHOLE,
    WORDS,
    Output,
    Rules,
    State,
)
from stream_algos._cohort_undo_kernels import note_node
from stream_algos._cohort_value_kernels import take_values, value_at
from stream_algos._held_kernels import NONE, copy

SAMPLE = 1024
"""Persons among whom the best cut is looked for: more tell little more."""
LEAST_SIDE = 16
"""Of more persons than that, a cut leaves at least one in so many on each side: so the work does not add up."""
LARGE = 32
"""Members from which on, if they are 3k as well, a cohort that could not be cut is large."""
AT_ONCE = 1024
"""Members of the cohorts that are split at once, if it is more than one cohort."""
GAPS = (701, 301, 132, 57, 23, 10, 4, 1)
"""Of the sort: Ciura's."""
GAIN = 1e-12
"""A cut must gain more than this."""


class Divided(NamedTuple):
    """Persons who are to be divided, with the least and the greatest value of each that counts."""

    who: NDArray[np.int64]
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    shown: NDArray[np.int16]
    """Of everybody who is known: see `State`."""
    stamps: NDArray[np.int64]
    """The same, of the conditions that cohorts must meet."""
    keys: NDArray[np.float64]
    behind: NDArray[np.float64]
    """Scratch space: what persons are ordered by, and the loss of those from each on."""


@part
def _spread(divided: Divided, rules: Rules, order: NDArray[np.int64], turn: int) -> int:
    """How many of these, from the first (turn 1) or the last (-1) on, show the codes together that are asked for."""
    count, missing, stamps = len(order), len(divided.stamps), divided.stamps
    found = np.zeros(missing, np.int64)
    for condition in range(missing):
        stamps[condition, 0] += 1
    for index in range(count):
        if missing == 0:
            return index
        shown = divided.shown[divided.who[order[index if turn == 1 else count - 1 - index]]]
        for place in range(len(shown)):
            condition, code = place // rules.most, shown[place] + 1
            if code and stamps[condition, code] != stamps[condition, 0]:
                stamps[condition, code] = stamps[condition, 0]
                found[condition] += 1
                if found[condition] == rules.needs[condition]:
                    missing -= 1
    return count if missing == 0 else count + 1


@part
def _sort(keys: NDArray[np.float64], order: NDArray[np.int64]) -> None:
    """Sort keys, and with them what they belong to (Shell's sort)."""
    for gap in GAPS:
        for index in range(gap, len(keys)):
            key, one, place = keys[index], order[index], index
            while place >= gap and keys[place - gap] > key:
                keys[place], order[place] = keys[place - gap], order[place - gap]
                place -= gap
            keys[place], order[place] = key, one


@part
def _best_cut(divided: Divided, space: Geometry, rules: Rules, own: NDArray[np.int64]) -> tuple[int, float]:
    """The attribute and the edge of the cut with the least loss over both sides; NONE where none is allowed.

    Everybody counts with the loss of their side. A range of values is on the side of its middle.
    """
    width, step = divided.lo.shape[1], max(1, len(own) // SAMPLE)
    best, edge, lowest, whole = NONE, 0.0, np.inf, 0.0
    if len(own) < 2 * rules.k:
        return best, edge
    order, behind = own[::step].copy(), divided.behind
    count = len(order)
    keys = divided.keys[:count]
    least = rules.k if step == 1 else max(1, count // LEAST_SIDE)
    lo, hi, losses, differ = np.empty(width), np.empty(width), np.zeros(width), np.empty(width, np.bool_)
    for side in range(width):
        low, high = np.inf, -np.inf
        for one in order:
            low, high = min(low, divided.lo[one, side]), max(high, divided.hi[one, side])
        differ[side] = low < high
        whole += space.weight[side] * range_loss(space, side, low, high)
    whole *= count
    for attribute in range(width):
        if not differ[attribute]:
            continue
        for index in range(count):
            one = order[index]
            keys[index] = divided.lo[one, attribute] + divided.hi[one, attribute]
        _sort(keys, order)
        first, last = least, count - least
        if step == 1:
            first = max(first, _spread(divided, rules, order, 1))
            last = min(last, count - _spread(divided, rules, order, -1))
        if first > last or keys[first - 1] == keys[last]:
            continue
        for turn in range(2):
            for side in range(width):
                lo[side], hi[side] = np.inf, -np.inf
            for index in range(last if turn else count - first):
                size = index + 1 if turn else count - index
                one, loss = order[size - 1], 0.0
                for side in range(width):
                    if divided.lo[one, side] < lo[side] or divided.hi[one, side] > hi[side]:
                        lo[side] = min(lo[side], divided.lo[one, side])
                        hi[side] = max(hi[side], divided.hi[one, side])
                        losses[side] = space.weight[side] * range_loss(space, side, lo[side], hi[side])
                    loss += losses[side]
                if turn == 0:
                    behind[size - 1] = loss
                elif first <= size and keys[size - 1] < keys[size]:
                    cost = size * loss + (count - size) * behind[size]
                    if cost < lowest:
                        best, edge, lowest = attribute, keys[size - 1], cost
    return (best, edge) if lowest < whole - GAIN else (NONE, 0.0)


@part
def _halve(divided: Divided, space: Geometry, rules: Rules, own: NDArray[np.int64]) -> tuple[int, int, float]:
    """Put those on the left of the best cut first: how many they are, and the cut.

    Nobody is on the left where there is no cut that leaves on both sides what is asked for.
    """
    attribute, edge = _best_cut(divided, space, rules, own)
    left = 0
    if attribute == NONE:
        return left, attribute, edge
    for index in range(len(own)):
        one = own[index]
        if divided.lo[one, attribute] + divided.hi[one, attribute] <= edge:
            own[index], own[left] = own[left], one
            left += 1
    right = len(own) - left
    enough = left >= rules.k and right >= rules.k
    if enough and len(divided.stamps):
        enough = _spread(divided, rules, own[:left], 1) <= left and _spread(divided, rules, own[left:], 1) <= right
    return (left if enough else 0), attribute, edge


@part
def _new_node(state: State) -> int:
    """A cohort of nobody."""
    node = state.meta[NODES]
    state.meta[NODES] += 1
    for column in range(state.nodes.shape[1]):
        state.nodes[node, column] = 0
    for column in (LEFT, RIGHT, HEAD, AFTER):
        state.nodes[node, column] = NONE
    state.due[node, ABOVE] = NONE
    return node


@part
def _later(count: int, k: int) -> int:
    """Members at which a cohort that could not be cut is tried again: so the work does not add up.

    One that has become large without a cut has members who hardly differ, and is tried less often.
    """
    return count + max(1, count // 10 if count < max(LARGE, 3 * k) else count // 3)


@part
def _settle(
    state: State,
    out: Output,
    space: Geometry,
    rules: Rules,
    divided: Divided,
    own: NDArray[np.int64],
    node: int,
    top: int,
) -> None:
    """These persons become a cohort: their hull, widened, is published; the joining box is cut with it."""
    nodes, boxes = state.nodes, state.boxes
    nodes[node, COUNT], nodes[node, HEAD] = 0, NONE
    for one in own:
        enlist(state, divided.who[one], node, MEMBER)
    for attribute in range(boxes.shape[2]):
        lo, hi = np.inf, -np.inf
        for one in own:
            lo, hi = min(lo, divided.lo[one, attribute]), max(hi, divided.hi[one, attribute])
        lo, hi = widened_range(space, attribute, lo, hi)
        boxes[node, P_LO, attribute], boxes[node, P_HI, attribute] = lo, hi
        boxes[node, J_LO, attribute] = max(lo, boxes[top, J_LO, attribute])
        boxes[node, J_HI, attribute] = min(hi, boxes[top, J_HI, attribute])
    state.sizes[node, LOSS] = state.sizes[node, LOWEST] = box_loss(space, boxes[node, P_LO], boxes[node, P_HI])
    state.ids[node, PARENT] = state.ids[top, ID] if nodes[top, SHOWN] else state.ids[top, PARENT]
    state.ids[node, ID] = word(out)
    nodes[node, MADE] = state.meta[AT]
    count = nodes[node, COUNT]
    nodes[node, TRY] = 2 * rules.k if count < 2 * rules.k else _later(count, rules.k)
    state.meta[LEAVES] += 1


@part
def _cut_up(state: State, out: Output, space: Geometry, rules: Rules, divided: Divided, top: int) -> None:
    """Divide persons below a node as long as both sides have what is asked for; what is left are cohorts.

    Nothing changes where there is no cut and the node is a cohort already.
    """
    nodes, count = state.nodes, len(divided.who)
    own = np.arange(count)
    stack, height = np.empty((count // rules.k + 2, 4), np.int64), 1
    left, nodes[top, CUT], state.sizes[top, EDGE] = _halve(divided, space, rules, own)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = top, 0, count, left
    if nodes[top, COUNT]:
        if left == 0:
            nodes[top, TRY] = _later(nodes[top, COUNT], rules.k)
            return
        state.meta[LEAVES] -= 1
        state.meta[MEMBERS] -= nodes[top, COUNT]
    while height:
        height -= 1
        node, begin, end, left = stack[height]
        if left == 0:
            _settle(state, out, space, rules, divided, own[begin:end], node, top)
            continue
        for half in range(2):
            child = _new_node(state)
            nodes[node, LEFT + half] = child
            state.due[child, ABOVE] = node
            first = begin + half * left
            last = end if half else begin + left
            size, nodes[child, CUT], state.sizes[child, EDGE] = _halve(divided, space, rules, own[first:last])
            stack[height, 0], stack[height, 1], stack[height, 2], stack[height, 3] = child, first, last, size
            height += 1


@part
def _looks_divisible(state: State, space: Geometry, rules: Rules, top: int) -> bool:
    """Whether those who joined a large cohort last show a cut; if not, nobody need look at all the others."""
    count, width = 2 * SAMPLE, state.narrow.shape[1]
    who, values, place = np.empty(count, np.int64), np.empty((count, width)), 0
    person = state.nodes[top, HEAD]
    while place < count:
        if state.persons[person, ROLE] == MEMBER:
            take_values(state.narrow, state.exact, state.lows, person, values[place])
            place += 1
        person = state.persons[person, NEXT]
    stamps = state.stamps[: len(state.tally)]
    divided = Divided(who, values, values, state.shown, stamps, np.empty(count), np.empty(count))
    return _best_cut(divided, space, rules, np.arange(count))[0] != NONE


@part
def _plant(state: State, top: int) -> None:
    """Put a root behind the others: the first trees have the most cohorts, and the smallest boxes."""
    root = state.meta[ROOT]
    if root == NONE:
        state.meta[ROOT] = top
        return
    while state.nodes[root, AFTER] != NONE:
        root = state.nodes[root, AFTER]
    note_node(state, root)
    state.nodes[root, AFTER] = top


@part
def _divide(state: State, out: Output, space: Geometry, rules: Rules, top: int) -> None:
    """Divide everybody in the pool, whose rows wait no longer for a cohort, or a cohort."""
    persons, nodes, boxes, meta = state.persons, state.nodes, state.boxes, state.meta
    founding, dismissed = top == POOL, NONE
    count = meta[POOLED_PERSONS] if founding else nodes[top, COUNT]
    who, width = np.empty(count, np.int64), state.narrow.shape[1]
    lo, hi = np.empty((count, width)), np.empty((count, width))
    waiting = waiting_for(state, POOL) if founding else np.empty(0, np.int64)
    if founding:
        for slot in waiting:
            show(state, rules, state.slots[slot, PERSON], state.codes[slot])
        for place in range(count):
            who[place] = state.pool[place]
            copy(lo[place], state.hulls[0, place])
            copy(hi[place], state.hulls[1, place])
        top = _new_node(state)
        state.ids[top, PARENT] = 0
        for attribute in range(width):
            boxes[top, J_LO, attribute], boxes[top, J_HI, attribute] = -np.inf, np.inf
        _plant(state, top)
        meta[POOLED_PERSONS] = 0
    else:
        person, place = nodes[top, HEAD], 0
        while person != NONE:
            after = persons[person, NEXT]
            if persons[person, ROLE] == MEMBER:
                who[place] = person
                take_values(state.narrow, state.exact, state.lows, person, lo[place])
                copy(hi[place], lo[place])
                place += 1
            else:
                unlist(state, person)
                persons[person, NEXT] = dismissed
                dismissed = person
            person = after
    first = meta[NODES]
    divided = Divided(who, lo, hi, state.shown, state.stamps[: len(state.tally)], np.empty(count), np.empty(count))
    _cut_up(state, out, space, rules, divided, top)
    while dismissed != NONE:  # they go where their last values would
        after, node = persons[dismissed, NEXT], top
        while nodes[node, LEFT] != NONE:
            value = value_at(state.narrow, state.exact, state.lows, dismissed, nodes[node, CUT])
            right = 2.0 * value > state.sizes[node, EDGE]
            node = nodes[node, RIGHT] if right else nodes[node, LEFT]
        enlist(state, dismissed, node, DISMISSED)
        dismissed = after
    _tell_above(state, space, top, first)
    if founding and rules.present:
        for slot in waiting:
            accompany(state, slot, wide(persons[state.slots[slot, PERSON], NODE]))
    elif founding:
        _let_founders_out(state, out, rules, top, waiting)


@part
def _tell_above(state: State, space: Geometry, top: int, first: int) -> None:
    """Nodes from a first one on are new below a top: tell all above them their least loss, and where one may join."""
    nodes, boxes, sizes = state.nodes, state.boxes, state.sizes
    node = state.meta[NODES] - 1 if state.meta[NODES] > first else top
    while node != NONE:  # children come behind their parents
        left, right = nodes[node, LEFT], nodes[node, RIGHT]
        if left != NONE:
            sizes[node, LOWEST] = min(sizes[left, LOWEST], sizes[right, LOWEST])
            if node >= first or node == top:
                for attribute in range(boxes.shape[2]):
                    boxes[node, J_LO, attribute] = min(boxes[left, J_LO, attribute], boxes[right, J_LO, attribute])
                    boxes[node, J_HI, attribute] = max(boxes[left, J_HI, attribute], boxes[right, J_HI, attribute])
        if node >= first or node == top:
            mark(state, space, node)
        else:
            state.marks[node, state.marks.shape[1] - 2] = bound_of(sizes[node, LOWEST])
        node = node - 1 if node > first else top if node == first else state.due[node, ABOVE]


@part
def _let_founders_out(state: State, out: Output, rules: Rules, top: int, waiting: NDArray[np.int64]) -> None:
    """Rows of the pool leave, those of each new cohort together."""
    starts = np.zeros(state.meta[NODES] - top + 1, np.int64)
    for slot in waiting:
        starts[state.persons[state.slots[slot, PERSON], NODE] - top + 1] += 1
    for node in range(1, len(starts)):
        starts[node] += starts[node - 1]
    ordered, ends = np.empty(len(waiting), np.int64), starts[:-1].copy()
    for slot in waiting:
        node = state.persons[state.slots[slot, PERSON], NODE] - top
        ordered[ends[node]] = slot
        ends[node] += 1
    for node in range(len(ends)):
        if starts[node + 1] > starts[node]:
            let_out(state, out, rules, top + node, ordered[starts[node] : starts[node + 1]], state.meta[AT])


@part
def room_for(state: State, rules: Rules, rows: int) -> int:
    """Nodes that may be added or written down while so many rows are taken, behind what is to be divided now."""
    nodes, due, meta = state.nodes, state.due, state.meta
    divided = meta[POOLED_PERSONS] if meta[NEEDED] == POOL else 0
    if meta[NEEDED] == SPLITS:
        for place in range(meta[ASKING]):
            divided += nodes[due[place, LINE], COUNT]
    # Of each row a node is written down, of each that is divided, and a root.
    return 2 * (divided // rules.k + 2) + min(meta[LASTING], meta[NOTES] + meta[ASKING] + rows + 1)


@part
def may_divide(state: State, out: Output, rules: Rules, rows: int) -> bool:
    """Whether there is room and words for that."""
    more, meta = room_for(state, rules, rows), state.meta
    enough = len(state.nodes) >= meta[NODES] + more
    return enough and len(out.words) - out.meta[WORDS] >= 2 * meta[WAITING] + more


@part
def divide(state: State, out: Output, space: Geometry, rules: Rules) -> None:
    """Divide what needs it: the pool, or of the cohorts that stand in line as many as there is time for."""
    nodes, due, meta = state.nodes, state.due, state.meta
    count = 1 if meta[NEEDED] == POOL else meta[ASKING]
    tops, keys = np.full(count, POOL), np.empty(count)
    if meta[NEEDED] != POOL:
        for place in range(count):
            tops[place] = keys[place] = due[place, LINE]
        _sort(keys, tops)  # an order that a restart does not change
    done, size = 0, 0
    while done < count and (done == 0 or size <= AT_ONCE):
        top, wanted = tops[done], True
        if top != POOL and nodes[top, TRY] == WHOLE:
            wanted = False
        elif top != POOL:
            size += nodes[top, COUNT]
            note_node(state, top)
            nodes[top, TRY] = 2 * rules.k
            wanted = nodes[top, COUNT] >= 2 * rules.k and not nodes[top, OPEN]
            if wanted and nodes[top, COUNT] > 4 * SAMPLE and not _looks_divisible(state, space, rules, top):
                nodes[top, TRY] = _later(nodes[top, COUNT], rules.k)
                wanted = False
        if wanted:
            _divide(state, out, space, rules, top)
        done += 1
    if meta[NEEDED] != POOL:
        meta[ASKING] = count - done
        for place in range(count - done):
            due[place, LINE] = tops[done + place]
    meta[NEEDED] = NONE
    out.meta[SOUGHT] = 0
