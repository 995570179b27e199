"""What leaves: the buffers a kernel writes its release into, the recent losses, and the boxes that may be reused.

Which boxes are kept, and which one makes room when there are too many, follows from the released boxes and their use
alone. An observer of the output could keep the same list, so the list tells him nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import Geometry, box_loss, kernel, part, widened_range
from stream_algos._held_kernels import HELD, NONE, Rows, Rules, copy, leave

LO, HI = range(2)
"""First index of arrays of boxes."""

CLUSTERS, MEMBERS, SUPPRESSED, WORDS, REACHED = range(5)
"""Entries of `Output.meta`: how much of each array is filled or, for words, used up; and the last position taken."""

KEPT, TURN, LOSSES, NEXT_LOSS = range(4)
"""Entries of `Published.meta`: kept boxes, releases of kept boxes so far, losses in the ring, place of the next one."""

TIE = 1e-12
"""Losses closer than this are equal."""


class Output(NamedTuple):
    """A release as slots of the ring: cluster c holds `slots[starts[c]:starts[c + 1]]`."""

    ids: NDArray[np.uint64]
    boxes: NDArray[np.float64]
    starts: NDArray[np.int64]
    reused: NDArray[np.bool_]
    slots: NDArray[np.int64]
    suppressed: NDArray[np.int64]
    decided: NDArray[np.int64]
    """Last position that was taken when each cluster was decided."""
    given_up: NDArray[np.int64]
    """The same for each suppressed row."""
    words: NDArray[np.uint64]
    """Unpredictable words."""
    meta: NDArray[np.int64]


class Published(NamedTuple):
    """Ω and τ: boxes that may be reused (no two alike), and the losses of the latest clusters."""

    ids: NDArray[np.uint64]
    boxes: NDArray[np.float64]
    used: NDArray[np.int64]
    """Turn of each box's latest release."""
    losses: NDArray[np.float64]
    """A ring of the μ latest losses; behind it their mean, which is τ."""
    meta: NDArray[np.int64]


def new_output(capacity: int, width: int) -> Output:
    """Empty buffers for a ring of this capacity."""
    return Output(
        ids=np.zeros(capacity + 2, np.uint64),
        boxes=np.zeros((2, capacity + 2, width)),
        starts=np.zeros(capacity + 3, np.int64),
        reused=np.zeros(capacity + 2, np.bool_),
        slots=np.zeros(capacity, np.int64),
        suppressed=np.zeros(capacity, np.int64),
        decided=np.zeros(capacity + 2, np.int64),
        given_up=np.zeros(capacity, np.int64),
        words=np.empty(0, np.uint64),
        meta=np.zeros(5, np.int64),
    )


def new_published(bound: int, width: int, mu: int) -> Published:
    """Nothing published yet; at most `bound` boxes are kept."""
    return Published(
        ids=np.zeros(bound, np.uint64),
        boxes=np.zeros((2, bound, width)),
        used=np.zeros(bound, np.int64),
        losses=np.zeros(mu + 1),
        meta=np.zeros(4, np.int64),
    )


@kernel
def words_needed(rules: Rules, held: int) -> int:
    """Enough words for any one decision over so many rows: places in a shuffle, ids, drawn rows."""
    return (2 if rules.is_conditional else 1) * held + 3 * (held // rules.k) + 8


@part
def is_short(rows: Rows, out: Output, rules: Rules) -> bool:
    """Whether a decision might need more words, or more room for clusters, than there are."""
    words, room = len(out.words) - out.meta[WORDS], len(out.ids) - out.meta[CLUSTERS]
    return words < words_needed(rules, rows.meta[HELD]) or room < rows.meta[HELD] + 2


@part
def word(out: Output) -> np.uint64:
    """The next unpredictable word."""
    out.meta[WORDS] += 1
    return out.words[out.meta[WORDS] - 1]


@part
def below(out: Output, bound: int) -> int:
    """A uniform choice from 0 … bound - 1; the modulo's bias is below 2**-40 for any bound that fits in memory."""
    return int(word(out) % np.uint64(bound))


@kernel
def note_loss(published: Published, loss: float) -> None:
    """Count a released cluster's loss in τ."""
    losses, meta = published.losses, published.meta
    size = len(losses) - 1
    losses[meta[NEXT_LOSS]] = loss
    meta[NEXT_LOSS] = (meta[NEXT_LOSS] + 1) % size
    meta[LOSSES] = min(meta[LOSSES] + 1, size)
    losses[size] = np.sum(losses[: meta[LOSSES]]) / meta[LOSSES]


@kernel
def keep(published: Published, id: np.uint64, lo: NDArray[np.float64], hi: NDArray[np.float64]) -> None:  # noqa: A002
    """Make a published box reusable; one that is already there counts as used.

    A full list loses the box whose latest release is longest ago: where the stream has moved on, it covers nobody.
    """
    boxes, meta = published.boxes, published.meta
    place = 0
    while place < meta[KEPT] and not (_equal(boxes[LO, place], lo) and _equal(boxes[HI, place], hi)):
        place += 1
    if place == meta[KEPT]:
        if place == len(published.ids):
            place = int(np.argmin(published.used))
        else:
            meta[KEPT] += 1
        published.ids[place] = id
        copy(boxes[LO, place], lo)
        copy(boxes[HI, place], hi)
    meta[TURN] += 1
    published.used[place] = meta[TURN]


@part
def _equal(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    for index in range(len(one)):  # noqa: SIM110 - numba compiles no generator expression
        if one[index] != other[index]:
            return False
    return True


@kernel
def draw(published: Published, out: Output, row: NDArray[np.float64], covering: NDArray[np.int64]) -> int:
    """A uniformly chosen box among those that cover the row, NONE if none does. `covering` is scratch space.

    Any rule that prefers one box would tell where the row is not (Example 5.5), so there is no preference.
    """
    boxes, found = published.boxes, 0
    for box in range(published.meta[KEPT]):
        attribute = 0
        while (
            attribute < len(row)
            and boxes[LO, box, attribute] <= row[attribute]
            and row[attribute] <= boxes[HI, box, attribute]
        ):
            attribute += 1
        if attribute == len(row):
            covering[found] = box
            found += 1
    return covering[below(out, found)] if found else NONE


@part
def release_again(rows: Rows, published: Published, out: Output, slot: int, box: int) -> None:
    """Release one row with a box that was published before."""
    published.meta[TURN] += 1
    published.used[box] = published.meta[TURN]
    cluster, member = out.meta[CLUSTERS], out.meta[MEMBERS]
    copy(out.boxes[LO, cluster], published.boxes[LO, box])
    copy(out.boxes[HI, cluster], published.boxes[HI, box])
    out.slots[member] = slot
    out.meta[MEMBERS] += 1
    _close(out, published.ids[box], True)  # noqa: FBT003 - numba has no keyword-only arguments
    leave(rows, slot)


@part
def suppress(rows: Rows, out: Output, slot: int) -> None:
    """Decide that a row never leaves."""
    out.suppressed[out.meta[SUPPRESSED]] = slot
    out.given_up[out.meta[SUPPRESSED]] = out.meta[REACHED]
    out.meta[SUPPRESSED] += 1
    leave(rows, slot)


@part
def release(
    rows: Rows, published: Published, out: Output, space: Geometry, rules: Rules, slots: NDArray[np.int64]
) -> None:
    """Release rows as one new cluster, in shuffled order, with the widened box around them."""
    cluster, first = out.meta[CLUSTERS], out.meta[MEMBERS]
    lo, hi = out.boxes[LO, cluster], out.boxes[HI, cluster]
    copy(lo, rows.quasi[slots[0]])
    copy(hi, lo)
    for index in range(len(slots)):
        slot, other = slots[index], below(out, index + 1)
        include(lo, hi, rows.quasi[slot])
        out.slots[first + index] = out.slots[first + other]
        out.slots[first + other] = slot
        leave(rows, slot)
    out.meta[MEMBERS] += len(slots)
    loss = box_loss(space, lo, hi)
    for attribute in range(len(lo)):
        lo[attribute], hi[attribute] = widened_range(space, attribute, lo[attribute], hi[attribute])
    _close(out, word(out), False)  # noqa: FBT003 - numba has no keyword-only arguments
    note_loss(published, loss)
    if rules.reuse and loss < rules.keep_below * published.losses[-1] - TIE:
        keep(published, out.ids[cluster], lo, hi)


@part
def _close(out: Output, id: np.uint64, reused: bool) -> None:  # noqa: A002
    cluster = out.meta[CLUSTERS]
    out.ids[cluster] = id
    out.reused[cluster] = reused
    out.starts[cluster + 1] = out.meta[MEMBERS]
    out.decided[cluster] = out.meta[REACHED]
    out.meta[CLUSTERS] += 1


@part
def include(lo: NDArray[np.float64], hi: NDArray[np.float64], row: NDArray[np.float64]) -> None:
    """Extend a box to a row."""
    for attribute in range(len(lo)):
        lo[attribute] = min(lo[attribute], row[attribute])
        hi[attribute] = max(hi[attribute], row[attribute])
