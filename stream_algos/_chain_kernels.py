"""The held rows of each person, from the newest to the oldest, without a search.

Nobody takes a row out of a chain when it leaves. Who walks a chain stops as soon as it has met as many held rows as the
person has, and so never comes to a slot that has a newer row by now: rows that are older than such a slot's have all
left. What it passes over is cut out on the way, so that it is passed over once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import kernel, part
from stream_algos._held_kernels import CLUSTER, COUNT, NONE, PERSON, Rows


class Chains(NamedTuple):
    """Slots of the newest row of each person and of the next older one of each row."""

    newest: NDArray[np.int32]
    """By the person's entry of `Rows.tally`."""
    older: NDArray[np.int32]
    """By slot."""


def new_chains(rows: Rows) -> Chains:
    """No rows yet."""
    return Chains(np.full(len(rows.tally), NONE, np.int32), np.full(len(rows.slots), NONE, np.int32))


@part
def link(rows: Rows, chains: Chains, slot: int) -> None:
    """Put the row that was just taken at the head of its person's chain."""
    person = rows.slots[slot, PERSON]
    chains.older[slot] = chains.newest[person] if rows.tally[person, COUNT] > 1 else NONE
    chains.newest[person] = slot


@kernel
def held_rows(rows: Rows, chains: Chains, person: int, slots: NDArray[np.int64]) -> int:
    """Write the slots of a person's held rows, oldest first; how many they are."""
    count, newer, slot = rows.tally[person, COUNT], NONE, chains.newest[person]
    for place in range(count - 1, -1, -1):
        while rows.slots[slot, CLUSTER] == NONE:
            slot = chains.older[slot]
        if newer == NONE:
            chains.newest[person] = slot
        else:
            chains.older[newer] = slot
        slots[place] = slot
        newer, slot = slot, chains.older[slot]
    return count
