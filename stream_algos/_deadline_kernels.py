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

from microdata import Geometry, Schema, kernel, nth_smallest, widened_range
from stream_algos._chain_kernels import Chains, held_rows, link, new_chains
from stream_algos._held_kernels import (
    AFTER,
    CAPPED,
    CLUSTER,
    COUNT,
    DUE,
    EVERYWHERE,
    HEAD,
    HELD,
    MARK,
    NONE,
    NUMBER,
    OVER,
    PERSON,
    PERSONS,
    POSITION,
    TAIL,
    TOP,
    UNDER,
    Conditions,
    Rows,
    Rules,
    copy,
    count_met,
    enough,
    exceeds,
    find,
    fresh_mark,
    gain,
    meet,
    new_rows,
    oldest,
    take,
)
from stream_algos._neighbour_kernels import (
    HI,
    LO,
    RECENT,
    UNIT,
    Blocks,
    add_costs,
    insert,
    lower_costs,
    measure_rarity,
    new_blocks,
    remove,
    unit_value,
)
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
from stream_algos._split_kernels import may_leave

VISITED = 4096
"""Rows that a gathering row looks at, nearest blocks first, if there are more; for large k, twice its candidates."""

CHOICE, LEAST_CHOICE = 16, 256
"""Of these, it chooses among the best 16 per member that is still to come, but at least 256."""

LANES, CHUNK = 16, 128
"""Scores that are compared at a time, and of which the least is remembered."""

SAMPLED = 8
"""One in so many scores is looked at to find a limit for the best."""

AGES = 256
"""Parts of the oldest row's age, in which ages are measured."""

MEMBER = -2
"""Number of a person who is in the class; see `meet`."""


class Search(NamedTuple):
    """Scratch space of one search for company."""

    scores: NDArray[np.float32]
    """Enlargement less worth, of visited rows and then of candidates; infinite for who is chosen."""
    slots: NDArray[np.int32]
    columns: NDArray[np.float32]
    """Quasi-identifier, candidate."""
    lanes: NDArray[np.float32]
    lows: NDArray[np.float32]
    """Least score of each chunk."""
    seed: NDArray[np.float32]
    box: NDArray[np.float32]
    """End, quasi-identifier: the box of the class so far."""
    members: NDArray[np.int64]
    own: NDArray[np.int64]
    """Further rows of the members' persons, of which some become members too."""
    chosen: NDArray[np.bool_]
    """By slot: whether the row is a member already; nobody is between two decisions."""
    amounts: NDArray[np.int64]
    """What the members have of each condition."""
    shown: NDArray[np.int64]
    """Condition, capped code: how many of the members have it."""


class State(NamedTuple):
    """Everything that the kernels of this module change."""

    rows: Rows
    blocks: Blocks
    chains: Chains
    published: Published
    search: Search


def new_state(schema: Schema, conditions: Conditions, capacity: int, published: Published) -> State:
    """An empty ring of this capacity."""
    width, room = len(schema.quasi), capacity + CHUNK
    search = Search(
        scores=np.zeros(room, np.float32),
        slots=np.zeros(room, np.int32),
        columns=np.zeros((width, room), np.float32),
        lanes=np.zeros(LANES, np.float32),
        lows=np.zeros(room // CHUNK, np.float32),
        seed=np.zeros(width, np.float32),
        box=np.zeros((2, width), np.float32),
        members=np.zeros(capacity, np.int64),
        own=np.zeros(capacity, np.int64),
        chosen=np.zeros(capacity, np.bool_),
        amounts=np.zeros(len(conditions.needs), np.int64),
        shown=np.zeros((len(conditions.needs), int(conditions.caps[:, CAPPED].max(initial=0)) + 1), np.int64),
    )
    rows = new_rows(width, conditions, capacity, 1)
    return State(rows, new_blocks(schema, capacity), new_chains(rows), published, search)


@kernel
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


@kernel
def _decide(state: State, out: Output, space: Geometry, rules: Rules, slot: int, ending: bool) -> None:
    """Reuse a box for the expiring row, release it with the class it gathers, or suppress it."""
    rows = state.rows
    box = draw(state.published, out, rows.quasi[slot], state.search.members) if rules.reuse else NONE
    if box != NONE:
        remove(rows, state.blocks, slot)
        release_again(rows, state.published, out, slot, box)
        return
    kept = 0
    count = _gather(state, space, rules, slot) if enough(rows, rules) else 0
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


@kernel
def _persons_left(rows: Rows, members: NDArray[np.int64]) -> int:
    """Persons that would still be held without these rows."""
    mark, left = fresh_mark(rows), rows.meta[PERSONS]
    for member in members:
        person = rows.slots[member, PERSON]
        meet(rows, person, mark, rows.tally[person, COUNT])
        rows.tally[person, NUMBER] -= 1
        left -= rows.tally[person, NUMBER] == 0
    return left


@kernel
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


@kernel
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


@kernel
def _lost_rows(state: State, rules: Rules, count: int, left: int) -> int:
    """Fill `own` with the held rows, oldest first, that are no members and likely to be lost; how many."""
    rows, search, found = state.rows, state.search, 0
    _choose(search, count, True)  # noqa: FBT003 - numba has no keyword-only arguments
    for number in range(rows.meta[HEAD], rows.meta[TAIL]):
        slot = number & (len(rows.slots) - 1)
        if rows.slots[slot, CLUSTER] != NONE and not search.chosen[slot] and _is_lost(rows, rules, slot, left):
            search.own[found] = slot
            found += 1
    _choose(search, count, False)  # noqa: FBT003 - as above
    return found


@kernel
def _choose(search: Search, count: int, chosen: bool) -> None:
    for member in search.members[:count]:
        search.chosen[member] = chosen


@kernel
def _further_rows(state: State, count: int) -> int:
    """Fill `own` with the held rows of the members' persons that are no members, each person's oldest first."""
    rows, search, found, mark = state.rows, state.search, 0, fresh_mark(state.rows)
    _choose(search, count, True)  # noqa: FBT003 - as above
    for member in search.members[:count]:
        person = rows.slots[member, PERSON]
        if rows.tally[person, COUNT] > 1 and meet(rows, person, mark, 0):
            begin = found
            for place in range(begin, begin + held_rows(rows, state.chains, person, search.own[begin:])):
                search.own[found] = search.own[place]
                found += not search.chosen[search.own[place]]
    _choose(search, count, False)  # noqa: FBT003 - as above
    return found


@kernel
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
        if attribute == width and _fits(rows, state.search, slot, count + 1):
            members[count] = slot
            count += 1
            _show(rows, state.search, slot)
        else:
            own[outside] = slot
            outside += 1
    return count, outside


@kernel
def _join_dear(state: State, space: Geometry, rules: Rules, some: NDArray[np.int64], count: int, left: int) -> int:
    """Make those rows members that cost more if they are left behind; how many members there are then."""
    rows, blocks, search = state.rows, state.blocks, state.search
    for slot in some:
        behind = UNIT if _is_lost(rows, rules, slot, left) else float(_worth_of(rows, blocks, slot))
        if count * _cost(rows, blocks, search, slot) < behind and _fits(rows, search, slot, count + 1):
            search.members[count] = slot
            count += 1
            _show(rows, search, slot)
            _extend(rows, blocks, search, space, 0, slot)
    return count


@kernel
def _is_lost(rows: Rows, rules: Rules, slot: int, left: int) -> bool:
    """Whether a row that stays is likely to find fewer than k persons by its deadline.

    They are those who are left, and those to come: in a whole delay as many as are held now, in what a row has left of
    it a part of them.
    """
    return left * AGES + rows.meta[PERSONS] * (AGES - int(_age(rows, slot))) < rules.k * AGES


@kernel
def _gather(state: State, space: Geometry, rules: Rules, seed: int) -> int:
    """Fill `members` with a class around the expiring row; how many they are, 0 if there is none."""
    rows, search, mark = state.rows, state.search, fresh_mark(state.rows)
    for attribute in range(rows.quasi.shape[1]):
        value = unit_value(space, state.blocks, attribute, rows.quasi[seed, attribute])
        search.seed[attribute] = search.box[LO, attribute] = search.box[HI, attribute] = value
    search.amounts[:] = 0
    search.shown[:] = 0
    search.members[0] = seed
    _join(rows, search, seed, mark)
    visited = _visit(rows, state.blocks, search, rules)
    candidates = _candidates(rows, state.blocks, search, rules, visited, mark)
    count, size = 1, rules.k
    while count < rules.k or _lacks(rows, search) or _exceeds(rows, search, count):
        wanted = _wanted(rules, count)
        if count > 1 and candidates > 2 * wanted:
            candidates = _narrow(search, candidates, wanted)
        if count < rules.k and not rows.conditions.is_capped:
            best = _best(rows, search, candidates)
        else:
            best = _best_helping(rows, search, rules, candidates, count, size, mark)
        if best != NONE:
            slot = int(search.slots[best])
            search.scores[best] = np.inf
        else:
            slot = _best_of_all(state, rules, count, size, mark)
        if slot == NONE:
            # Only caps can forbid everybody: in a larger class more rows may have one code.
            if size >= rows.meta[HELD]:
                return 0
            size *= 2
            continue
        search.members[count] = slot
        count += 1
        _join(rows, search, slot, mark)
        _extend(rows, state.blocks, search, space, candidates, slot)
    return count


@kernel
def _join(rows: Rows, search: Search, slot: int, mark: int) -> None:
    """Note the person of a new member, and count what the row brings."""
    person = rows.slots[slot, PERSON]
    rows.tally[person, MARK] = mark
    rows.tally[person, NUMBER] = MEMBER
    for condition in range(len(search.amounts)):
        search.amounts[condition] += count_met(rows, condition, slot, mark)
    _show(rows, search, slot)


@kernel
def _show(rows: Rows, search: Search, slot: int) -> None:
    """Count the codes of a new member, where they are capped."""
    if rows.conditions.is_capped:
        for condition in range(len(search.shown)):
            search.shown[condition, min(int(rows.codes[slot, condition]), search.shown.shape[1] - 1)] += 1


@kernel
def _lacks(rows: Rows, search: Search) -> bool:
    """Whether the members have less than is needed of some condition."""
    for condition in range(len(search.amounts)):  # noqa: SIM110 - numba compiles no generator expression
        if search.amounts[condition] < rows.conditions.needs[condition]:
            return True
    return False


@kernel
def _exceeds(rows: Rows, search: Search, count: int) -> bool:
    """Whether too many of so many members have one and the same code."""
    if not rows.conditions.is_capped:
        return False
    caps = rows.conditions.caps
    for condition in range(len(caps)):
        for code in range(caps[condition, CAPPED]):
            if search.shown[condition, code] * caps[condition, UNDER] > caps[condition, OVER] * count:
                return True
    return False


@kernel
def _fits(rows: Rows, search: Search, slot: int, size: int) -> bool:
    """Whether a class of this size may have one more row with this row's codes."""
    if not rows.conditions.is_capped:
        return True
    caps = rows.conditions.caps
    for condition in range(len(caps)):
        code = int(rows.codes[slot, condition])
        if code < caps[condition, CAPPED]:
            have = search.shown[condition, code] + 1
            if have * caps[condition, UNDER] > caps[condition, OVER] * size:
                return False
    return True


@kernel
def _helps(rows: Rows, search: Search, rules: Rules, slot: int, count: int, size: int, mark: int) -> bool:
    """Whether the class needs this row: another person, or something that it lacks, or a row that thins out a code."""
    if not _fits(rows, search, slot, max(size, count + 1)):
        return False
    lacks = False
    for condition in range(len(search.amounts)):
        if search.amounts[condition] < rows.conditions.needs[condition]:
            lacks = True
            code = rows.codes[slot, condition]
            if gain(rows, condition, code) > 0:
                if not rows.conditions.once[condition]:
                    return True
                if rows.tally[find(rows, code, EVERYWHERE - 1 - condition), MARK] != mark:
                    return True
    return count < rules.k or not lacks


@kernel
def _visit(rows: Rows, blocks: Blocks, search: Search, rules: Rules) -> int:
    """Score the rows of the nearest blocks; how many. All blocks are visited unless they hold too many rows."""
    visited, enough_rows = 0, min(rows.meta[HELD], max(VISITED, 2 * CHOICE * rules.k))
    if rows.meta[HELD] == enough_rows:
        for block in range(rows.meta[TOP]):
            visited = _score_block(rows, blocks, search, block, visited)
        return visited
    bounds = _bounds(rows, blocks, search)
    while visited < enough_rows:
        block = int(np.argmin(bounds))
        bounds[block] = np.inf
        visited = _score_block(rows, blocks, search, block, visited)
    return visited


@kernel
def _bounds(rows: Rows, blocks: Blocks, search: Search) -> NDArray[np.float32]:
    """The least enlargement that any row of each block can cost; infinite for empty blocks."""
    width, count = search.box.shape[1], rows.meta[TOP]
    bounds, clamped = np.empty(count, np.float32), np.empty(count, np.float32)
    for block in range(count):
        bounds[block] = 0.0 if blocks.counts[block] else np.inf
    for attribute in range(width):
        value = search.box[LO, attribute]
        lo, hi = blocks.boxes[LO, attribute], blocks.boxes[HI, attribute]
        for block in range(count):
            clamped[block] = min(max(value, lo[block]), hi[block])
        add_costs(blocks, attribute, value, clamped, bounds)
    return bounds


@kernel
def _score_block(rows: Rows, blocks: Blocks, search: Search, block: int, visited: int) -> int:
    """Score the rows of one block against the seed, behind those that are visited; how many are visited then."""
    count, width = blocks.counts[block], search.box.shape[1]
    scores, seen = search.scores[visited : visited + count], search.slots[visited : visited + count]
    slots, rarity = blocks.slots[block], blocks.columns[block, width]
    tail, last, youth = rows.meta[TAIL] - 1, len(rows.slots) - 1, _youth(rows)
    for index in range(count):
        seen[index] = slots[index]
        scores[index] = -_worth(rarity[index], np.floor(np.float32((tail - slots[index]) & last) * youth))
    for attribute in range(width):
        add_costs(blocks, attribute, search.box[LO, attribute], blocks.columns[block, attribute, :count], scores)
    return visited + count


@kernel
def _youth(rows: Rows) -> np.float32:
    """Age in parts of the oldest row's, per row that came later."""
    return np.float32(AGES) / np.float32(rows.meta[TAIL] - rows.meta[HEAD])


@kernel
def _worth(rarity: np.float32, age: np.float32) -> np.float32:
    """What leaving a row behind would cost: its rarity, and up to a quarter more with its age."""
    return rarity + np.floor(rarity * age * np.float32(0.25 / AGES))


@kernel
def _candidates(rows: Rows, blocks: Blocks, search: Search, rules: Rules, visited: int, mark: int) -> int:
    """Keep the best rows, one of each person who is not in the class yet; how many."""
    share = rows.meta[HELD] // rows.meta[PERSONS] + (rows.meta[HELD] > rows.meta[PERSONS])
    count = _keep_best(search, visited, share * _wanted(rules, 0))
    count = _one_of_each(rows, search, count, mark)
    if count > 2 * _wanted(rules, 1):
        count = _keep_best(search, count, _wanted(rules, 1))
    for index in range(count):
        slot = search.slots[index]
        block, place = rows.slots[slot, CLUSTER], rows.slots[slot, AFTER]
        for attribute in range(search.box.shape[1]):
            search.columns[attribute, index] = blocks.columns[block, attribute, place]
    _fill_up(search, count)
    return count


@kernel
def _wanted(rules: Rules, count: int) -> int:
    """Candidates to choose the next member from, when a class has so many."""
    return max(LEAST_CHOICE, CHOICE * (rules.k - count))


@kernel
def _keep_best(search: Search, count: int, wanted: int) -> int:
    """Keep about as many of the scored rows as wanted, the best ones; how many."""
    scores, slots = search.scores, search.slots
    if count <= wanted:
        return count
    limit, kept = _limit(scores[:count], wanted), 0
    for index in range(count):
        score = scores[index]
        scores[kept], slots[kept] = score, slots[index]
        kept += score <= limit
    return kept


@kernel
def _narrow(search: Search, count: int, wanted: int) -> int:
    """Give up about all candidates but the best; how many are left. The first members matter most for the box."""
    limit, kept = _limit(search.scores[:count], wanted), 0
    for index in range(count):
        score = search.scores[index]
        search.scores[kept], search.slots[kept] = score, search.slots[index]
        for attribute in range(search.box.shape[1]):
            search.columns[attribute, kept] = search.columns[attribute, index]
        kept += score <= limit
    _fill_up(search, kept)
    return kept


@kernel
def _limit(scores: NDArray[np.float32], wanted: int) -> np.float32:
    """The score that about so many do not exceed: a sample tells well enough."""
    sample = np.empty((len(scores) + SAMPLED - 1) // SAMPLED)
    for index in range(len(sample)):
        sample[index] = scores[index * SAMPLED]
    return np.float32(nth_smallest(sample, min(len(sample) - 1, wanted // SAMPLED)))


@kernel
def _one_of_each(rows: Rows, search: Search, count: int, mark: int) -> int:
    """Keep the best row of each person who is not in the class yet, the older one of equals; how many."""
    scores, slots, kept = search.scores, search.slots, 0
    unique = rows.meta[HELD] == rows.meta[PERSONS]
    for index in range(count):
        score, slot, number = scores[index], slots[index], kept
        if unique:
            kept += slot != search.members[0]
        else:
            person = rows.slots[slot, PERSON]
            if rows.tally[person, MARK] != mark:
                rows.tally[person, MARK] = mark
                rows.tally[person, NUMBER] = kept
                kept += 1
            else:
                number = rows.tally[person, NUMBER]
                if number == MEMBER or not _is_better(rows, score, slot, scores[number], slots[number]):
                    continue
        scores[number], slots[number] = score, slot
    return kept


@kernel
def _is_better(rows: Rows, score: np.float32, slot: int, other_score: np.float32, other: int) -> bool:
    """Whether a row has a lower score than another, or the same and is older."""
    return bool(score < other_score or (score == other_score and _is_older(rows, slot, other)))


@kernel
def _fill_up(search: Search, count: int) -> None:
    """Infinite scores behind the last candidate, so that whole chunks can be compared."""
    for index in range(count, count + CHUNK):
        search.scores[index] = np.inf


@kernel
def _is_older(rows: Rows, one: int, other: int) -> bool:
    """Whether a row came before another."""
    tail, last = rows.meta[TAIL], len(rows.slots) - 1
    return (tail - 1 - one) & last > (tail - 1 - other) & last


@kernel
def _best(rows: Rows, search: Search, candidates: int) -> int:
    """The candidate with the least score, the older one of equals; NONE if all are chosen."""
    scores, slots, lanes, lows = search.scores, search.slots, search.lanes, search.lows
    least = np.float32(np.inf)
    for chunk in range((candidates + CHUNK - 1) // CHUNK):
        for lane in range(LANES):
            lanes[lane] = scores[chunk * CHUNK + lane]
        for first in range(chunk * CHUNK + LANES, (chunk + 1) * CHUNK, LANES):
            for lane in range(LANES):
                lanes[lane] = min(lanes[lane], scores[first + lane])
        for half in (8, 4, 2, 1):
            for lane in range(half):
                lanes[lane] = min(lanes[lane], lanes[lane + half])
        lows[chunk] = lanes[0]
        least = min(least, lows[chunk])
    best = NONE
    if least < np.inf:
        for chunk in range((candidates + CHUNK - 1) // CHUNK):
            if lows[chunk] == least:
                for index in range(chunk * CHUNK, (chunk + 1) * CHUNK):
                    if scores[index] == least and (best == NONE or _is_older(rows, slots[index], slots[best])):
                        best = index
    return best


@kernel
def _best_helping(rows: Rows, search: Search, rules: Rules, candidates: int, count: int, size: int, mark: int) -> int:
    """The same among the candidates that the class needs."""
    scores, slots, best = search.scores, search.slots, NONE
    for index in range(candidates):
        if scores[index] == np.inf or (best != NONE and scores[index] > scores[best]):
            continue
        if best != NONE and scores[index] == scores[best] and _is_older(rows, slots[best], slots[index]):
            continue
        if _helps(rows, search, rules, int(slots[index]), count, size, mark):
            best = index
    return best


@kernel
def _extend(rows: Rows, blocks: Blocks, search: Search, space: Geometry, candidates: int, slot: int) -> None:
    """Extend the box of the class to a new member, and tell the candidates what they cost now."""
    box = search.box
    for attribute in range(box.shape[1]):
        value = unit_value(space, blocks, attribute, rows.quasi[slot, attribute])
        lo, hi = box[LO, attribute], box[HI, attribute]
        if value < lo or value > hi:
            box[LO, attribute] = min(lo, value)
            box[HI, attribute] = max(hi, value)
            column = search.columns[attribute, :candidates]
            lower_costs(blocks, attribute, lo, hi, min(lo, value), max(hi, value), column, search.scores)


@kernel
def _best_of_all(state: State, rules: Rules, count: int, size: int, mark: int) -> int:
    """The held row with the least score where the candidates have nobody to offer: slow, and hardly ever needed.

    Before k persons are together, one of another person; after that, one that the class needs, of another person if
    there is one. NONE where nobody may join.
    """
    rows, blocks, search, best = state.rows, state.blocks, state.search, NONE
    _choose(search, count, True)  # noqa: FBT003 - numba has no keyword-only arguments
    for of_member in range(1 if count < rules.k else 2):
        least = np.inf
        for number in range(rows.meta[HEAD], rows.meta[TAIL]):
            slot = number & (len(rows.slots) - 1)
            if rows.slots[slot, CLUSTER] == NONE or search.chosen[slot]:
                continue
            person = rows.slots[slot, PERSON]
            is_member = rows.tally[person, MARK] == mark and rows.tally[person, NUMBER] == MEMBER
            if is_member != (of_member == 1):
                continue
            if not _helps(rows, search, rules, slot, count, size, mark):
                continue
            score = _score(rows, blocks, search, slot)
            if score < least:
                best, least = slot, score
        if best != NONE:
            break
    _choose(search, count, False)  # noqa: FBT003 - as above
    return best


@kernel
def _score(rows: Rows, blocks: Blocks, search: Search, slot: int) -> float:
    """What taking in a row costs now, less its worth."""
    return _cost(rows, blocks, search, slot) - float(_worth_of(rows, blocks, slot))


@kernel
def _cost(rows: Rows, blocks: Blocks, search: Search, slot: int) -> float:
    """How much a row enlarges the box of the class."""
    block, place = rows.slots[slot, CLUSTER], rows.slots[slot, AFTER]
    cost = np.zeros(1, np.float32)
    for attribute in range(search.box.shape[1]):
        seed, lo, hi = search.seed[attribute], search.box[LO, attribute], search.box[HI, attribute]
        column = blocks.columns[block, attribute, place : place + 1]
        add_costs(blocks, attribute, seed, column, cost)
        lower_costs(blocks, attribute, seed, seed, lo, hi, column, cost)
    return float(cost[0])


@kernel
def _worth_of(rows: Rows, blocks: Blocks, slot: int) -> np.float32:
    """The worth of one row."""
    rarity = blocks.columns[rows.slots[slot, CLUSTER], rows.quasi.shape[1], rows.slots[slot, AFTER]]
    return _worth(rarity, _age(rows, slot))


@kernel
def _age(rows: Rows, slot: int) -> np.float32:
    """A row's age, in parts of the oldest row's."""
    return np.floor(np.float32((rows.meta[TAIL] - 1 - slot) & (len(rows.slots) - 1)) * _youth(rows))
