"""Rows that an engine holds: a ring in order of arrival, and how often each person and sensitive value occurs in it.

Row number n of the stream lives in slot n modulo the capacity, so the oldest rows are found without a search and a slot
keeps its row until the ring has gone round. Kernels pass all arrays of a tuple with every call, and numba takes its
time to compile that: so whole numbers share one table per kind of thing, with named columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import Schema, kernel

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
"""Scope of persons counted over all held rows; values of sensitive attribute a are counted in scope -2 - a."""


class Rows(NamedTuple):
    """The ring, and a chained hash table that counts persons and values in it; a key has its entry while it occurs."""

    slots: NDArray[np.int64]
    quasi: NDArray[np.float64]
    sensitive: NDArray[np.int32]
    buckets: NDArray[np.int32]
    tally: NDArray[np.int64]
    diversity: NDArray[np.int64]
    """Distinct held values of each sensitive attribute."""
    meta: NDArray[np.int64]


class Rules(NamedTuple):
    """The parameters, as kernels want them."""

    k: int
    l: int  # noqa: E741 - ℓ is its name in the literature
    delta: int
    reuse: bool
    share_of: int
    share_in: int
    """One person may have at most `share_of` of every `share_in` rows of a class, and always one."""
    keep_below: float
    """A box is kept for reuse if its loss is below this part of τ."""


def new_rows(schema: Schema, capacity: int, scopes: int) -> Rows:
    """An empty ring; `capacity` is a power of two, and each row is counted in so many scopes."""
    sensitive = len(schema.sensitive)
    entries = capacity * scopes * (1 + sensitive)
    tally = np.zeros((entries, 6), np.int64)
    tally[:, NEXT] = np.arange(1, entries + 1)
    slots = np.zeros((capacity, 5), np.int64)
    slots[:, CLUSTER] = NONE
    meta = np.zeros(9, np.int64)
    meta[DUE] = np.iinfo(np.int64).min
    return Rows(
        slots=slots,
        quasi=np.zeros((capacity, len(schema.quasi))),
        sensitive=np.zeros((capacity, sensitive), np.int32),
        buckets=np.full(1 << (2 * entries - 1).bit_length(), NONE, np.int32),
        tally=tally,
        diversity=np.zeros(sensitive, np.int64),
        meta=meta,
    )


@kernel
def copy(into: NDArray[Any], values: NDArray[Any]) -> None:
    """Copy one array of the same length into another; a slice assignment takes numba seconds to compile."""
    for index in range(len(values)):
        into[index] = values[index]


@kernel
def counts(numbers: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """How often each number from 0 to size - 1 occurs."""
    result = np.zeros(size, np.int64)
    for number in numbers:
        result[number] += 1
    return result


@kernel
def _bucket(rows: Rows, key: int, scope: int) -> int:
    mixed = (np.uint64(key) + np.uint64(scope) * np.uint64(0xD6E8FEB86659FD93)) * np.uint64(0x9E3779B97F4A7C15)
    return int((mixed >> np.uint64(24)) & np.uint64(len(rows.buckets) - 1))


@kernel
def find(rows: Rows, key: int, scope: int) -> int:
    """The entry of a key that occurs, NONE otherwise."""
    tally, entry = rows.tally, int(rows.buckets[_bucket(rows, key, scope)])
    while entry != NONE and (tally[entry, KEY] != key or tally[entry, SCOPE] != scope):
        entry = tally[entry, NEXT]
    return entry


@kernel
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


@kernel
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


@kernel
def fresh_mark(rows: Rows) -> int:
    """A mark that no person carries yet: who carries it later has been met since."""
    rows.meta[SERIAL] += 1
    return rows.meta[SERIAL]


@kernel
def meet(rows: Rows, entry: int, mark: int, number: int) -> bool:
    """Whether an entry is met for the first time since this mark was made; if so, it gets this number."""
    if rows.tally[entry, MARK] == mark:
        return False
    rows.tally[entry, MARK] = mark
    rows.tally[entry, NUMBER] = number
    return True


@kernel
def number_persons(rows: Rows, slots: NDArray[np.int64], numbers: NDArray[np.int64]) -> int:
    """Number the persons of these rows from 0 in order of appearance; how many there are."""
    mark, persons = fresh_mark(rows), 0
    for index in range(len(slots)):
        person = rows.slots[slots[index], PERSON]
        persons += meet(rows, person, mark, persons)
        numbers[index] = rows.tally[person, NUMBER]
    return persons


@kernel
def number_values(rows: Rows, slots: NDArray[np.int64], attribute: int, numbers: NDArray[np.int64]) -> int:
    """Number the values of a sensitive attribute from 0 in order of appearance; how many there are."""
    mark, values = fresh_mark(rows), 0
    for index in range(len(slots)):
        value = find(rows, rows.sensitive[slots[index], attribute], EVERYWHERE - 1 - attribute)
        values += meet(rows, value, mark, values)
        numbers[index] = rows.tally[value, NUMBER]
    return values


@kernel
def lacks_values(rows: Rows, rules: Rules, slots: NDArray[np.int64]) -> bool:
    """Whether some sensitive attribute has fewer than ℓ values among these rows."""
    if rules.l == 1:
        return False
    numbers = np.empty(len(slots), np.int64)
    for attribute in range(rows.sensitive.shape[1]):  # noqa: SIM110 - numba compiles no generator expression
        if number_values(rows, slots, attribute, numbers) < rules.l:
            return True
    return False


@kernel
def take(rows: Rows, position: int, code: int, quasi: NDArray[np.float64], sensitive: NDArray[np.int32]) -> int:
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
    for attribute in range(len(sensitive)):
        rows.sensitive[slot, attribute] = sensitive[attribute]
        entry = add(rows, sensitive[attribute], EVERYWHERE - 1 - attribute)
        rows.diversity[attribute] += rows.tally[entry, COUNT] == 1
    return slot


@kernel
def leave(rows: Rows, slot: int) -> None:
    """The row is decided: it counts no more, though its slot can be read until the ring has gone round."""
    rows.slots[slot, CLUSTER] = NONE
    rows.meta[HELD] -= 1
    rows.meta[PERSONS] -= drop(rows, rows.slots[slot, CODE], EVERYWHERE) == 0
    for attribute in range(rows.sensitive.shape[1]):
        rows.diversity[attribute] -= drop(rows, rows.sensitive[slot, attribute], EVERYWHERE - 1 - attribute) == 0


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


@kernel
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


@kernel
def enough(rows: Rows, rules: Rules) -> bool:
    """Whether the held rows, taken together, could make one class."""
    if rows.meta[PERSONS] < rules.k:
        return False
    for attribute in range(len(rows.diversity)):  # noqa: SIM110 - numba compiles no generator expression
        if rows.diversity[attribute] < rules.l:
            return False
    return True
