"""Who joins the class of an expiring row: the row whose enlargement, less its worth, is least, one after the other.

Rows of the nearest blocks are scored; of those the best are candidates, one of each person, and are told what they cost
whenever the box grows. Where the candidates have nobody to offer whom the class needs, all held rows are looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import Geometry, nth_smallest, part
from stream_algos._held_kernels import (
    AFTER,
    CAPPED,
    CLUSTER,
    EVERYWHERE,
    HEAD,
    HELD,
    MARK,
    NONE,
    NUMBER,
    OVER,
    PERSON,
    PERSONS,
    TAIL,
    TOP,
    UNDER,
    Conditions,
    Rows,
    Rules,
    count_met,
    find,
    fresh_mark,
    gain,
)
from stream_algos._neighbour_kernels import HI, LO, Blocks, add_costs, lower_costs, unit_value

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


def new_search(width: int, conditions: Conditions, capacity: int) -> Search:
    """Room for so many held rows."""
    room = capacity + CHUNK
    return Search(
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


@part
def gather(rows: Rows, blocks: Blocks, search: Search, space: Geometry, rules: Rules, seed: int) -> int:
    """Fill `members` with a class around the expiring row; how many they are, 0 if there is none."""
    mark = fresh_mark(rows)
    for attribute in range(rows.quasi.shape[1]):
        value = unit_value(space, blocks, attribute, rows.quasi[seed, attribute])
        search.seed[attribute] = search.box[LO, attribute] = search.box[HI, attribute] = value
    search.amounts[:] = 0
    search.shown[:] = 0
    search.members[0] = seed
    _join(rows, search, seed, mark)
    visited = _visit(rows, blocks, search, rules)
    candidates = _candidates(rows, blocks, search, rules, visited, mark)
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
            slot = _best_of_all(rows, blocks, search, rules, count, size, mark)
        if slot == NONE:
            # Only caps can forbid everybody: in a larger class more rows may have one code.
            if size >= rows.meta[HELD]:
                return 0
            size *= 2
            continue
        search.members[count] = slot
        count += 1
        _join(rows, search, slot, mark)
        extend(rows, blocks, search, space, candidates, slot)
    return count


@part
def _join(rows: Rows, search: Search, slot: int, mark: int) -> None:
    """Note the person of a new member, and count what the row brings."""
    person = rows.slots[slot, PERSON]
    rows.tally[person, MARK] = mark
    rows.tally[person, NUMBER] = MEMBER
    for condition in range(len(search.amounts)):
        search.amounts[condition] += count_met(rows, condition, slot, mark)
    show(rows, search, slot)


@part
def show(rows: Rows, search: Search, slot: int) -> None:
    """Count the codes of a new member, where they are capped."""
    if rows.conditions.is_capped:
        for condition in range(len(search.shown)):
            search.shown[condition, min(int(rows.codes[slot, condition]), search.shown.shape[1] - 1)] += 1


@part
def _lacks(rows: Rows, search: Search) -> bool:
    """Whether the members have less than is needed of some condition."""
    for condition in range(len(search.amounts)):  # noqa: SIM110 - numba compiles no generator expression
        if search.amounts[condition] < rows.conditions.needs[condition]:
            return True
    return False


@part
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


@part
def fits(rows: Rows, search: Search, slot: int, size: int) -> bool:
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


@part
def _helps(rows: Rows, search: Search, rules: Rules, slot: int, count: int, size: int, mark: int) -> bool:
    """Whether the class needs this row: another person, or something that it lacks, or a row that thins out a code."""
    if not fits(rows, search, slot, max(size, count + 1)):
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


@part
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


@part
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


@part
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


@part
def _youth(rows: Rows) -> np.float32:
    """Age in parts of the oldest row's, per row that came later."""
    return np.float32(AGES) / np.float32(rows.meta[TAIL] - rows.meta[HEAD])


@part
def _worth(rarity: np.float32, age: np.float32) -> np.float32:
    """What leaving a row behind would cost: its rarity, and up to a quarter more with its age."""
    return rarity + np.floor(rarity * age * np.float32(0.25 / AGES))


@part
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


@part
def _wanted(rules: Rules, count: int) -> int:
    """Candidates to choose the next member from, when a class has so many."""
    return max(LEAST_CHOICE, CHOICE * (rules.k - count))


@part
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


@part
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


@part
def _limit(scores: NDArray[np.float32], wanted: int) -> np.float32:
    """The score that about so many do not exceed: a sample tells well enough."""
    sample = np.empty((len(scores) + SAMPLED - 1) // SAMPLED)
    for index in range(len(sample)):
        sample[index] = scores[index * SAMPLED]
    return np.float32(nth_smallest(sample, min(len(sample) - 1, wanted // SAMPLED)))


@part
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


@part
def _is_better(rows: Rows, score: np.float32, slot: int, other_score: np.float32, other: int) -> bool:
    """Whether a row has a lower score than another, or the same and is older."""
    return bool(score < other_score or (score == other_score and _is_older(rows, slot, other)))


@part
def _fill_up(search: Search, count: int) -> None:
    """Infinite scores behind the last candidate, so that whole chunks can be compared."""
    for index in range(count, count + CHUNK):
        search.scores[index] = np.inf


@part
def _is_older(rows: Rows, one: int, other: int) -> bool:
    """Whether a row came before another."""
    tail, last = rows.meta[TAIL], len(rows.slots) - 1
    return (tail - 1 - one) & last > (tail - 1 - other) & last


@part
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


@part
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


@part
def extend(rows: Rows, blocks: Blocks, search: Search, space: Geometry, candidates: int, slot: int) -> None:
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


@part
def _best_of_all(rows: Rows, blocks: Blocks, search: Search, rules: Rules, count: int, size: int, mark: int) -> int:
    """The held row with the least score where the candidates have nobody to offer: slow, and hardly ever needed.

    Before k persons are together, one of another person; after that, one that the class needs, of another person if
    there is one. NONE where nobody may join.
    """
    best = NONE
    choose(search, count, True)  # noqa: FBT003 - numba has no keyword-only arguments
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
    choose(search, count, False)  # noqa: FBT003 - as above
    return best


@part
def _score(rows: Rows, blocks: Blocks, search: Search, slot: int) -> float:
    """What taking in a row costs now, less its worth."""
    return cost_of(rows, blocks, search, slot) - float(worth_of(rows, blocks, slot))


@part
def cost_of(rows: Rows, blocks: Blocks, search: Search, slot: int) -> float:
    """How much a row enlarges the box of the class."""
    block, place = rows.slots[slot, CLUSTER], rows.slots[slot, AFTER]
    cost = np.zeros(1, np.float32)
    for attribute in range(search.box.shape[1]):
        seed, lo, hi = search.seed[attribute], search.box[LO, attribute], search.box[HI, attribute]
        column = blocks.columns[block, attribute, place : place + 1]
        add_costs(blocks, attribute, seed, column, cost)
        lower_costs(blocks, attribute, seed, seed, lo, hi, column, cost)
    return float(cost[0])


@part
def worth_of(rows: Rows, blocks: Blocks, slot: int) -> np.float32:
    """The worth of one row."""
    rarity = blocks.columns[rows.slots[slot, CLUSTER], rows.quasi.shape[1], rows.slots[slot, AFTER]]
    return _worth(rarity, age_of(rows, slot))


@part
def age_of(rows: Rows, slot: int) -> np.float32:
    """A row's age, in parts of the oldest row's."""
    return np.floor(np.float32((rows.meta[TAIL] - 1 - slot) & (len(rows.slots) - 1)) * _youth(rows))


@part
def choose(search: Search, count: int, chosen: bool) -> None:
    for member in search.members[:count]:
        search.chosen[member] = chosen
