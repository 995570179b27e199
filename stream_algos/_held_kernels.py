"""Rows that an engine holds: a ring in order of arrival, and how often each person and sensitive value occurs in it.

Row number n of the stream lives in slot n modulo the capacity, so the oldest rows are found without a search and a slot
keeps its row until the ring has gone round. Kernels pass all arrays of a tuple with every call, and numba takes its
time to compile that: so whole numbers share one table per kind of thing, with named columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import kernel, part

NONE = -1
"""No slot, no entry, no cluster."""

POSITION, CODE, PERSON, CLUSTER, AFTER = range(5)
"""Columns of `Rows.slots`: the row's position, its person as the caller names it and as an entry of `tally`, the
cluster that holds it (NONE: decided), and the next newer row of that cluster."""

KEY, SCOPE, COUNT, NEXT, MARK, NUMBER = range(6)
"""Columns of `Rows.tally`: what is counted, where, how often, the next entry of the same bucket, the last count of
distinct things that met it (see `fresh_mark`), and its number in that count."""

HEAD, TAIL, HELD, DUE, PERSONS, SERIAL, FREE, OPEN, TOP = range(9)
"""Entries of `Rows.meta`: numbers of the oldest and the next row, held rows, the position up to which rows are due,
distinct held persons, the last mark, the first free entry of `tally`, open clusters, and the block from which on all
blocks are empty."""

EVERYWHERE = -1
"""Scope of persons counted over all held rows; codes of condition c are counted in scope -2 - c."""

OVER, UNDER, CAPPED = range(3)
"""Columns of `Conditions.caps`: a code has at most OVER of every UNDER rows, if it is below CAPPED."""


class Conditions(NamedTuple):
    """What a class must have of its sensitive values.

    Each condition adds up gains: what a row's code is worth, every time or only the first time that it is met. A class
    needs at least so much. ℓ-diversity is a gain of 1 for every new value, a weight the gain of every row. A condition
    may cap the share of a class's rows that have one code, too.
    """

    needs: NDArray[np.int64]
    once: NDArray[np.bool_]
    first: NDArray[np.int64]
    """Where the gains of each condition's codes begin; NONE: each is worth 1."""
    gains: NDArray[np.int64]
    caps: NDArray[np.int64]
    is_capped: bool
    """Whether any condition has a cap."""


class Rows(NamedTuple):
    """The ring, and a chained hash table that counts persons and values in it; a key has its entry while it occurs."""

    slots: NDArray[np.int64]
    quasi: NDArray[np.float64]
    codes: NDArray[np.int32]
    """What each row shows in each condition: a sensitive value, or its category."""
    buckets: NDArray[np.int32]
    tally: NDArray[np.int64]
    amounts: NDArray[np.int64]
    """What the held rows have of each condition."""
    conditions: Conditions
    meta: NDArray[np.int64]


class Rules(NamedTuple):
    """The parameters, as kernels want them."""

    k: int
    delta: int
    reuse: bool
    share_of: int
    share_in: int
    """One person may have at most `share_of` of every `share_in` rows of a class, and always one."""
    keep_below: float
    """A box is kept for reuse if its loss is below this part of τ."""
    is_conditional: bool
    """Whether classes have more to meet than k."""


def new_rows(width: int, conditions: Conditions, capacity: int, scopes: int) -> Rows:
    """An empty ring; `capacity` is a power of two, and each row is counted in so many scopes."""
    count = len(conditions.needs)
    entries = capacity * scopes * (1 + count)
    tally = np.zeros((entries, 6), np.int64)
    tally[:, NEXT] = np.arange(1, entries + 1)
    slots = np.zeros((capacity, 5), np.int64)
    slots[:, CLUSTER] = NONE
    meta = np.zeros(9, np.int64)
    meta[DUE] = np.iinfo(np.int64).min
    return Rows(
        slots=slots,
        quasi=np.zeros((capacity, width)),
        codes=np.zeros((capacity, count), np.int32),
        buckets=np.full(1 << (2 * entries - 1).bit_length(), NONE, np.int32),
        tally=tally,
        amounts=np.zeros(count, np.int64),
        conditions=conditions,
        meta=meta,
    )


@part
def copy(into: NDArray[Any], values: NDArray[Any]) -> None:
    """Copy one array of the same length into another; a slice assignment takes numba seconds to compile."""
    for index in range(len(values)):
        into[index] = values[index]


@part
def counts(numbers: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """How often each number from 0 to size - 1 occurs."""
    result = np.zeros(size, np.int64)
    for number in numbers:
        result[number] += 1
    return result


@part
def _bucket(rows: Rows, key: int, scope: int) -> int:
    mixed = (np.uint64(key) + np.uint64(scope) * np.uint64(0xD6E8FEB86659FD93)) * np.uint64(0x9E3779B97F4A7C15)
    return int((mixed >> np.uint64(24)) & np.uint64(len(rows.buckets) - 1))


@part
def find(rows: Rows, key: int, scope: int) -> int:
    """The entry of a key that occurs, NONE otherwise."""
    tally, entry = rows.tally, int(rows.buckets[_bucket(rows, key, scope)])
    while entry != NONE and (tally[entry, KEY] != key or tally[entry, SCOPE] != scope):
        entry = tally[entry, NEXT]
    return entry


@part
def add(rows: Rows, key: int, scope: int) -> int:
    """Count one more occurrence; the entry of the key."""
    tally, entry = rows.tally, find(rows, key, scope)
    if entry == NONE:
        bucket = _bucket(rows, key, scope)
        entry = rows.meta[FREE]
        rows.meta[FREE] = tally[entry, NEXT]
        tally[entry, KEY] = key
        tally[entry, SCOPE] = scope
        tally[entry, COUNT] = 0
        tally[entry, NEXT] = rows.buckets[bucket]
        rows.buckets[bucket] = entry
    tally[entry, COUNT] += 1
    return entry


@part
def drop(rows: Rows, key: int, scope: int) -> int:
    """Count one occurrence less; how many are left."""
    tally, bucket = rows.tally, _bucket(rows, key, scope)
    before, entry = NONE, int(rows.buckets[bucket])
    while tally[entry, KEY] != key or tally[entry, SCOPE] != scope:
        before, entry = entry, tally[entry, NEXT]
    tally[entry, COUNT] -= 1
    left = tally[entry, COUNT]
    if left == 0:
        if before == NONE:
            rows.buckets[bucket] = tally[entry, NEXT]
        else:
            tally[before, NEXT] = tally[entry, NEXT]
        tally[entry, NEXT] = rows.meta[FREE]
        rows.meta[FREE] = entry
    return left


@part
def fresh_mark(rows: Rows) -> int:
    """A mark that no person carries yet: who carries it later has been met since."""
    rows.meta[SERIAL] += 1
    return rows.meta[SERIAL]


@part
def meet(rows: Rows, entry: int, mark: int, number: int) -> bool:
    """Whether an entry is met for the first time since this mark was made; if so, it gets this number."""
    if rows.tally[entry, MARK] == mark:
        return False
    rows.tally[entry, MARK] = mark
    rows.tally[entry, NUMBER] = number
    return True


@part
def number_persons(rows: Rows, slots: NDArray[np.int64], numbers: NDArray[np.int64]) -> int:
    """Number the persons of these rows from 0 in order of appearance; how many there are."""
    mark, persons = fresh_mark(rows), 0
    for index in range(len(slots)):
        person = rows.slots[slots[index], PERSON]
        persons += meet(rows, person, mark, persons)
        numbers[index] = rows.tally[person, NUMBER]
    return persons


@part
def gain(rows: Rows, condition: int, code: int) -> int:
    """What a code is worth."""
    first = rows.conditions.first[condition]
    return 1 if first == NONE else rows.conditions.gains[first + code]


@part
def count_in(rows: Rows, condition: int, code: int, scope: int) -> int:
    """Count a row's code in a scope; how much more the scope has of the condition."""
    if rows.conditions.once[condition] and rows.tally[add(rows, code, scope), COUNT] > 1:
        return 0
    return gain(rows, condition, code)


@part
def count_out(rows: Rows, condition: int, code: int, scope: int) -> int:
    """Count a row's code no longer; how much less the scope has of the condition."""
    if rows.conditions.once[condition] and drop(rows, code, scope) > 0:
        return 0
    return gain(rows, condition, code)


@part
def count_met(rows: Rows, condition: int, slot: int, mark: int) -> int:
    """What a held row adds to those that were met since this mark was made."""
    code = rows.codes[slot, condition]
    if rows.conditions.once[condition]:
        entry = find(rows, code, EVERYWHERE - 1 - condition)
        if not meet(rows, entry, mark, 0):
            return 0
    return gain(rows, condition, code)


@part
def lacks(rows: Rows, slots: NDArray[np.int64]) -> bool:
    """Whether these rows have less than is needed of some condition."""
    mark = fresh_mark(rows)
    for condition in range(len(rows.conditions.needs)):
        amount = 0
        for slot in slots:
            amount += count_met(rows, condition, slot, mark)
        if amount < rows.conditions.needs[condition]:
            return True
    return False


@part
def exceeds(rows: Rows, slots: NDArray[np.int64]) -> bool:
    """Whether too many of these rows have one and the same code."""
    if not rows.conditions.is_capped:
        return False
    caps = rows.conditions.caps
    for condition in range(len(caps)):
        have = np.zeros(caps[condition, CAPPED] + 1, np.int64)
        for slot in slots:
            code = min(int(rows.codes[slot, condition]), caps[condition, CAPPED])
            have[code] += 1
        for code in range(caps[condition, CAPPED]):
            if have[code] * caps[condition, UNDER] > caps[condition, OVER] * len(slots):
                return True
    return False


@part
def take(rows: Rows, position: int, code: int, quasi: NDArray[np.float64], codes: NDArray[np.int32]) -> int:
    """Put a row into the ring; its slot. The caller has seen to room for it and sets its cluster."""
    slot = rows.meta[TAIL] & (len(rows.slots) - 1)
    rows.meta[TAIL] += 1
    rows.meta[HELD] += 1
    person = add(rows, code, EVERYWHERE)
    rows.meta[PERSONS] += rows.tally[person, COUNT] == 1
    rows.slots[slot, POSITION] = position
    rows.slots[slot, CODE] = code
    rows.slots[slot, PERSON] = person
    for attribute in range(len(quasi)):
        rows.quasi[slot, attribute] = quasi[attribute]
    for condition in range(len(codes)):
        rows.codes[slot, condition] = codes[condition]
        rows.amounts[condition] += count_in(rows, condition, codes[condition], EVERYWHERE - 1 - condition)
    return slot


@part
def leave(rows: Rows, slot: int) -> None:
    """The row is decided: it counts no more, though its slot can be read until the ring has gone round."""
    rows.slots[slot, CLUSTER] = NONE
    rows.meta[HELD] -= 1
    rows.meta[PERSONS] -= drop(rows, rows.slots[slot, CODE], EVERYWHERE) == 0
    for condition in range(len(rows.amounts)):
        rows.amounts[condition] -= count_out(rows, condition, rows.codes[slot, condition], EVERYWHERE - 1 - condition)


@kernel
def oldest(rows: Rows) -> int:
    """Slot of the oldest held row, NONE for an empty ring."""
    last = len(rows.slots) - 1
    while rows.meta[HEAD] < rows.meta[TAIL]:
        slot = rows.meta[HEAD] & last
        if rows.slots[slot, CLUSTER] != NONE:
            return slot
        rows.meta[HEAD] += 1
    return NONE


@part
def sort_by_age(rows: Rows, slots: NDArray[np.int64]) -> None:
    """Put slots of held rows in order of arrival (Shell's sort)."""
    head, last = rows.meta[HEAD], len(rows.slots) - 1
    gap = len(slots) // 2
    while gap:
        for index in range(gap, len(slots)):
            slot, place = slots[index], index
            while place >= gap and ((slots[place - gap] - head) & last) > ((slot - head) & last):
                slots[place] = slots[place - gap]
                place -= gap
            slots[place] = slot
        gap //= 2


@part
def enough(rows: Rows, rules: Rules) -> bool:
    """Whether the held rows, taken together, could make one class."""
    if rows.meta[PERSONS] < rules.k:
        return False
    for condition in range(len(rows.amounts)):  # noqa: SIM110 - numba compiles no generator expression
        if rows.amounts[condition] < rows.conditions.needs[condition]:
            return False
    return True
