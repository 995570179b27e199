"""Which rows of a class may leave together: nobody has too large a share of them, nor has any code.

Rows that may leave are moved to the front of `slots`; the others stay held.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import part
from stream_algos._held_kernels import CAPPED, OVER, UNDER, Rows, Rules, copy, counts, exceeds, lacks, number_persons


@part
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


@part
def within_caps(rows: Rows, slots: NDArray[np.int64], expiring: int) -> int:
    """Move rows that keep every cap to the front, the expiring one first; how many."""
    if not rows.conditions.is_capped:
        return len(slots)
    for index in range(len(slots)):
        if slots[index] == expiring:
            slots[0], slots[index] = expiring, slots[0]
    caps, size, kept = rows.conditions.caps, len(slots) + 1, len(slots)
    chosen = np.empty(len(slots), np.bool_)
    # With fewer rows fewer of each code may stay, and so on, until what stays is enough for itself.
    while kept < size:
        size, kept = kept, 0
        have = np.zeros((len(caps), caps[:, CAPPED].max() + 1), np.int64)
        for index in range(len(slots)):
            fits = True
            for condition in range(len(caps)):
                code = int(rows.codes[slots[index], condition])
                if code < caps[condition, CAPPED]:
                    fits = fits and (have[condition, code] + 1) * caps[condition, UNDER] <= caps[condition, OVER] * size
            chosen[index] = fits
            if fits:
                kept += 1
                for condition in range(len(caps)):
                    code = int(rows.codes[slots[index], condition])
                    have[condition, min(code, caps[condition, CAPPED])] += 1
    kept, stay = 0, np.empty(len(slots), np.int64)
    for index in range(len(slots)):
        if chosen[index]:
            slots[kept] = slots[index]
            kept += 1
        else:
            stay[index - kept] = slots[index]
    copy(slots[kept:], stay[: len(slots) - kept])
    return kept


@part
def may_leave(rows: Rows, rules: Rules, slots: NDArray[np.int64], expiring: int) -> int:
    """Move rows that may leave as one class to the front; how many, 0 if no class is possible.

    What the shares of persons and of codes do not allow stays behind; the rest may be too little then.
    """
    kept = within_share(rows, rules, slots[: within_caps(rows, slots, expiring)], expiring)
    if kept < len(slots):
        left = slots[:kept]
        if number_persons(rows, left, left.copy()) < rules.k or fails(rows, left):
            return 0
    return kept


@part
def fails(rows: Rows, slots: NDArray[np.int64]) -> bool:
    """Whether these rows lack something that is needed, or have too much of one code."""
    return lacks(rows, slots) or exceeds(rows, slots)
