"""What the search for a cohort reads of each node, close together: half of what the memory hands over at a time.

The joining box is there as marks: of each side the level, of 128, on which it lies in the domain. Eight levels are one
word, with a bit to spare each, and so are compared by one subtraction. Who is outside of the marks is outside of the
box; whether somebody is inside, only the box itself says.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata import Geometry, kernel, part
from stream_algos._cohort_state import J_HI, J_LO, LEFT, LOWEST, NODES, State
from stream_algos._held_kernels import NONE

SPARE = np.uint64(0x8080808080808080)
"""The bits of a word of marks that are left out: one that is asked is larger by them, and keeps all that it should."""


@part
def marks_of(space: Geometry, box: NDArray[np.float64], word: int) -> np.uint64:
    """The levels of one side of a box, of eight quasi-identifiers."""
    marks = np.uint64(0)
    for place in range(min(8, len(box) - 8 * word)):
        attribute = 8 * word + place
        share = (box[attribute] - space.low[attribute]) * space.scale[attribute]
        marks |= np.uint64(127.0 * min(max(share, 0.0), 1.0)) << np.uint64(8 * place)
    return marks


@part
def bound_of(loss: float) -> np.uint64:
    """A loss as a whole number: of two losses, the greater one has no smaller number."""
    return np.uint64(loss * 1099511627776.0)


@part
def mark(state: State, space: Geometry, node: int) -> None:
    """Write down, for the search, what a node is."""
    marks, box, last = state.marks[node], state.boxes[node], state.marks.shape[1] - 1
    for word in range(last // 2):
        marks[2 * word] = marks_of(space, box[J_LO], word)
        marks[2 * word + 1] = marks_of(space, box[J_HI], word) | SPARE
    marks[last - 1] = bound_of(state.sizes[node, LOWEST])
    left = state.nodes[node, LEFT]
    marks[last] = np.uint64(0 if left == NONE else left)


@kernel
def mark_all(state: State, space: Geometry) -> None:
    """Do so for every node."""
    for node in range(state.meta[NODES]):
        mark(state, space, node)
