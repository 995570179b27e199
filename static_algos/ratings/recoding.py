"""From groups of persons to ratings that are alike within each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from microdata.ratings import Sparse
from static_algos.ratings._recode_kernels import CENTROID, CLIP, PAPER, group_cost, recode_groups

Strategy: TypeAlias = Literal["clip", "centroid", "same", "paper"]
NullPolicy: TypeAlias = Literal["suppress", "majority"]
_KERNEL = {"clip": CLIP, "same": CLIP, "centroid": CENTROID, "paper": PAPER}


@dataclass(frozen=True)
class Recoding:
    """How a group is made an ε-clique; knows what that costs."""

    steps: int
    """ε in steps of the scale; 0 for `same`."""
    size: int
    """Ratings of the scale."""
    width: int
    """Number of items."""
    strategy: Strategy = "clip"
    null_policy: NullPolicy = "suppress"

    @property
    def majority(self) -> bool:
        """Whether most of a group decide for all of it whether an item is published."""
        return self.null_policy == "majority"

    def cost(self, rows: Sparse, members: Sequence[int] | NDArray[np.int64]) -> int:
        """What it would cost to make these rows one group."""
        seen, touched, slot = self.room()
        own = np.asarray(members, np.int64)
        return group_cost(
            rows.starts, rows.items, rows.values, own, self.steps, self.majority, self.size, seen, touched, slot
        )

    def room(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """What the kernels need to think: a number for each item, thrice."""
        return np.zeros(self.width, np.int32), np.empty(self.width, np.int32), np.full(self.width, -1, np.int32)

    def recode(self, rows: Sparse, groups: NDArray[np.int64]) -> Sparse:
        """Rows after each group (a number from 0 for every row) was made an ε-clique."""
        members = np.argsort(groups, kind="stable")
        bounds = np.append(0, np.cumsum(np.bincount(groups)))
        made = recode_groups(
            rows.starts,
            rows.items,
            rows.values,
            members,
            bounds,
            self.width,
            self.steps,
            _KERNEL[self.strategy],
            self.majority,
            self.size,
        )
        return Sparse(*made)
