"""The improved CASTLE: rows wait together, and the expiring one gathers its class when it must leave.

The class grows by one row at a time: the one whose enlargement, less its worth, is least. The worth of a row is what it
would cost to leave it behind: rows far from most others, and old rows, find no good company later. Choosing each class
as small as possible, without it, uses up the common rows and leaves the rare ones for bad classes at their deadlines.

Once k persons are together, their other waiting rows come along: those in the box at no cost, the rest where the larger
box costs all members less than leaving the row behind. So do rows that nobody else is likely to take in time. Otherwise
who acts in bursts would be company for many classes with one row each, and most of the rows would find none in time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import Geometry, Schema, kernel, part, widened_range
from stream_algos._chain_kernels import Chains, held_rows, link, new_chains
from stream_algos._gather_kernels import (
    AGES,
    Search,
    age_of,
    choose,
    cost_of,
    extend,
    fits,
    gather,
    new_search,
    show,
    worth_of,
)
from stream_algos._held_kernels import (
    CLUSTER,
    COUNT,
    DUE,
    HEAD,
    HELD,
    NONE,
    NUMBER,
    PERSON,
    PERSONS,
    POSITION,
    TAIL,
    Conditions,
    Rows,
    Rules,
    copy,
    enough,
    exceeds,
    fresh_mark,
    meet,
    new_rows,
    oldest,
    take,
)
from stream_algos._leaving_kernels import may_leave
from stream_algos._neighbour_kernels import RECENT, UNIT, Blocks, insert, measure_rarity, new_blocks, remove
from stream_algos._release_kernels import (
    REACHED,
    Output,
    Published,
    draw,
    include,
    is_short,
    release,
    release_again,
    suppress,
)


class State(NamedTuple):
    """Everything that the kernels of this module change."""

    rows: Rows
    blocks: Blocks
    chains: Chains
    published: Published
    search: Search


def new_state(schema: Schema, conditions: Conditions, capacity: int, published: Published) -> State:
    """An empty ring of this capacity."""
    width = len(schema.quasi)
    rows = new_rows(width, conditions, capacity, 1)
    return State(
        rows, new_blocks(schema, capacity), new_chains(rows), published, new_search(width, conditions, capacity)
    )


@part
def zeal(k: int) -> float:
    """How much of a row's mean distance counts as its worth: measured on Adult, power-law and uniform data."""
    return min(0.4, 0.6 / k**0.25)


@kernel
def refill(
    state: State,
    space: Geometry,
    rules: Rules,
    positions: NDArray[np.int64],
    persons: NDArray[np.int64],
    quasi: NDArray[np.float64],
    codes: NDArray[np.int32],
) -> None:
    """Hold rows that were held before."""
    for index in range(len(positions)):
        slot = take(state.rows, positions[index], persons[index], quasi[index], codes[index])
        link(state.rows, state.chains, slot)
    if len(positions):
        measure_rarity(state.rows, state.blocks, space)
    for slot in range(len(positions)):
        insert(state.rows, state.blocks, space, zeal(rules.k), slot)


@kernel
def advance(
    state: State,
    out: Output,
    space: Geometry,
    rules: Rules,
    done: int,
    due: NDArray[np.int64],
    positions: NDArray[np.int64],
    persons: NDArray[np.int64],
    quasi: NDArray[np.float64],
    codes: NDArray[np.int32],
) -> int:
    """Take rows from number `done` on, deciding each held row when it is due; how many rows are taken.

    `due` is the position up to which held rows are due once each of the rows is there; one entry more is a position
    that has passed behind the last of them.
    It stops early, before a decision, when words or room for clusters run short. NONE: everything is done.
    """
    rows = state.rows
    while True:
        # Positions that were left out have passed too, and nobody came with them.
        known = rows.meta[DUE]
        if done < len(due):
            passed = positions[done] - 1 if done < len(positions) else due[done]
            rows.meta[DUE] = max(known, passed - rules.delta)
        slot = oldest(rows)
        while slot != NONE and rows.slots[slot, POSITION] <= rows.meta[DUE]:
            if is_short(rows, out, rules):
                return done
            if rows.slots[slot, POSITION] > known:
                out.meta[REACHED] = max(out.meta[REACHED], rows.slots[slot, POSITION] + rules.delta)
            _decide(state, out, space, rules, slot, False)  # noqa: FBT003 - numba has no keyword-only arguments
            slot = oldest(rows)
        if done == len(positions):
            return NONE
        slot = take(rows, positions[done], persons[done], quasi[done], codes[done])
        link(rows, state.chains, slot)
        number = rows.meta[TAIL]
        if number % RECENT == 0 or (number < RECENT and number >= 64 and number & (number - 1) == 0):
            measure_rarity(rows, state.blocks, space)
        insert(rows, state.blocks, space, zeal(rules.k), slot)
        rows.meta[DUE] = max(rows.meta[DUE], due[done])
        out.meta[REACHED] = positions[done]
        done += 1


@kernel
def flush(state: State, out: Output, space: Geometry, rules: Rules) -> bool:
    """The end of the stream: everybody gathers in turn, and the last class takes in whoever could make none."""
    while state.rows.meta[HELD]:
        if is_short(state.rows, out, rules):
            return False
        _decide(state, out, space, rules, oldest(state.rows), True)  # noqa: FBT003 - as above
    return True


@part
def _decide(state: State, out: Output, space: Geometry, rules: Rules, slot: int, ending: bool) -> None:
    """Reuse a box for the expiring row, release it with the class it gathers, or suppress it."""
    rows = state.rows
    box = draw(state.published, out, rows.quasi[slot], state.search.members) if rules.reuse else NONE
    if box != NONE:
        remove(rows, state.blocks, slot)
        release_again(rows, state.published, out, slot, box)
        return
    kept = 0
    count = gather(rows, state.blocks, state.search, space, rules, slot) if enough(rows, rules) else 0
    if count:
        if rows.meta[HELD] > rows.meta[PERSONS]:  # else nobody has a further row
            count = _bring_along(state, space, rules, count)
        if ending and _persons_left(rows, state.search.members[:count]) < rules.k:
            count = _take_everybody(rows, state.search, count)
        kept = may_leave(rows, rules, state.search.members[:count], slot)
    if kept:
        members = state.search.members[:kept]
        for member in members:
            remove(rows, state.blocks, member)
        release(rows, state.published, out, space, rules, members)
    else:
        remove(rows, state.blocks, slot)
        suppress(rows, out, slot)


@part
def _persons_left(rows: Rows, members: NDArray[np.int64]) -> int:
    """Persons that would still be held without these rows."""
    mark, left = fresh_mark(rows), rows.meta[PERSONS]
    for member in members:
        person = rows.slots[member, PERSON]
        meet(rows, person, mark, rows.tally[person, COUNT])
        rows.tally[person, NUMBER] -= 1
        left -= rows.tally[person, NUMBER] == 0
    return left


@part
def _take_everybody(rows: Rows, search: Search, count: int) -> int:
    """Make all held rows members, unless too many of them have one code; how many members there are then."""
    everybody = search.own
    found = 0
    for number in range(rows.meta[HEAD], rows.meta[TAIL]):
        slot = number & (len(rows.slots) - 1)
        if rows.slots[slot, CLUSTER] != NONE:
            everybody[found] = slot
            found += 1
    if exceeds(rows, everybody[:found]):
        return count
    copy(search.members, everybody[:found])
    return found


@part
def _bring_along(state: State, space: Geometry, rules: Rules, count: int) -> int:
    """Let further rows join; how many members there are then.

    Rows of the members' persons that lie in the box join at no cost. Another row of theirs, and any row that is likely
    to be lost, enlarges the box for all members, and joins where that costs less than to leave it behind.
    """
    rows, search = state.rows, state.search
    count, outside = _join_inside(state, space, count)
    before, left = count, _persons_left(rows, search.members[:count])
    count = _join_dear(state, space, rules, search.own[:outside], count, left)
    if left < rules.k:
        lost = _lost_rows(state, rules, count, left)
        count = _join_dear(state, space, rules, search.own[:lost], count, left)
    return _join_inside(state, space, count)[0] if count > before else count


@part
def _lost_rows(state: State, rules: Rules, count: int, left: int) -> int:
    """Fill `own` with the held rows, oldest first, that are no members and likely to be lost; how many."""
    rows, search, found = state.rows, state.search, 0
    choose(search, count, True)  # noqa: FBT003 - numba has no keyword-only arguments
    for number in range(rows.meta[HEAD], rows.meta[TAIL]):
        slot = number & (len(rows.slots) - 1)
        if rows.slots[slot, CLUSTER] != NONE and not search.chosen[slot] and _is_lost(rows, rules, slot, left):
            search.own[found] = slot
            found += 1
    choose(search, count, False)  # noqa: FBT003 - as above
    return found


@part
def _further_rows(state: State, count: int) -> int:
    """Fill `own` with the held rows of the members' persons that are no members, each person's oldest first."""
    rows, search, found, mark = state.rows, state.search, 0, fresh_mark(state.rows)
    choose(search, count, True)  # noqa: FBT003 - as above
    for member in search.members[:count]:
        person = rows.slots[member, PERSON]
        if rows.tally[person, COUNT] > 1 and meet(rows, person, mark, 0):
            begin = found
            for place in range(begin, begin + held_rows(rows, state.chains, person, search.own[begin:])):
                search.own[found] = search.own[place]
                found += not search.chosen[search.own[place]]
    choose(search, count, False)  # noqa: FBT003 - as above
    return found


@part
def _join_inside(state: State, space: Geometry, count: int) -> tuple[int, int]:
    """Make the further rows members that the published box of the members covers.

    How many members there are then, and how many further rows are left in `own`.
    """
    rows, members, own = state.rows, state.search.members, state.search.own
    width, further, outside = rows.quasi.shape[1], _further_rows(state, count), 0
    if further == 0:
        return count, 0
    lo, hi = rows.quasi[members[0]].copy(), rows.quasi[members[0]].copy()
    for member in members[:count]:
        include(lo, hi, rows.quasi[member])
    for attribute in range(width):
        lo[attribute], hi[attribute] = widened_range(space, attribute, lo[attribute], hi[attribute])
    for slot in own[:further]:
        attribute = 0
        while attribute < width and lo[attribute] <= rows.quasi[slot, attribute] <= hi[attribute]:
            attribute += 1
        if attribute == width and fits(rows, state.search, slot, count + 1):
            members[count] = slot
            count += 1
            show(rows, state.search, slot)
        else:
            own[outside] = slot
            outside += 1
    return count, outside


@part
def _join_dear(state: State, space: Geometry, rules: Rules, some: NDArray[np.int64], count: int, left: int) -> int:
    """Make those rows members that cost more if they are left behind; how many members there are then."""
    rows, blocks, search = state.rows, state.blocks, state.search
    for slot in some:
        behind = UNIT if _is_lost(rows, rules, slot, left) else float(worth_of(rows, blocks, slot))
        if count * cost_of(rows, blocks, search, slot) < behind and fits(rows, search, slot, count + 1):
            search.members[count] = slot
            count += 1
            show(rows, search, slot)
            extend(rows, blocks, search, space, 0, slot)
    return count


@part
def _is_lost(rows: Rows, rules: Rules, slot: int, left: int) -> bool:
    """Whether a row that stays is likely to find fewer than k persons by its deadline.

    They are those who are left, and those to come: in a whole delay as many as are held now, in what a row has left of
    it a part of them.
    """
    return left * AGES + rows.meta[PERSONS] * (AGES - int(age_of(rows, slot))) < rules.k * AGES
