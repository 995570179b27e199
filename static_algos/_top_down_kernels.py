"""Inner loops of top-down recoding: nodes are segments of an order of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import kernel
from static_algos.recoding import Recoding


class Levels(NamedTuple):
    """The group of every code at every level, of all quasi-identifiers one after the other."""

    group: NDArray[np.int32]
    loss: NDArray[np.float64]
    """What publishing each code at each level costs, in the same order, by the weight of its quasi-identifier."""
    start: NDArray[np.int64]
    """Where each quasi-identifier begins."""
    codes: NDArray[np.int64]
    """Codes of each of them: a level is so long."""


def levels_of(recoded: Sequence[Recoding], weights: Sequence[float]) -> Levels:
    """The levels of these recodings."""
    groups = [np.concatenate([level.group for level in one.levels]) for one in recoded]
    losses = [
        weight * np.concatenate([level.loss[level.group] for level in one.levels])
        for one, weight in zip(recoded, weights, strict=True)
    ]
    return Levels(
        group=np.concatenate(groups),
        loss=np.concatenate(losses),
        start=np.cumsum([0, *map(len, groups)])[:-1],
        codes=np.array([len(one.levels[0].group) for one in recoded], np.int64),
    )


@kernel
def settle(
    levels: Levels,
    codes: NDArray[np.int32],
    order: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    level: NDArray[np.int64],
) -> None:
    """Lower the levels of each node (nodes × quasi-identifiers) as far as all its rows stay together: that is free."""
    for node in range(len(begin)):
        for a in range(codes.shape[1]):
            together = True
            while together and level[node, a] > 0:
                base = levels.start[a] + (level[node, a] - 1) * levels.codes[a]
                group = levels.group[base + codes[order[begin[node]], a]]
                for place in range(begin[node] + 1, end[node]):
                    if levels.group[base + codes[order[place], a]] != group:
                        together = False
                        break
                level[node, a] -= together


@kernel
def split(
    levels: Levels,
    codes: NDArray[np.int32],
    order: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    level: NDArray[np.int64],
    by: NDArray[np.int64],
    label: NDArray[np.int32],
) -> NDArray[np.int64]:
    """Split each node one level down, by the quasi-identifier that it names; -1 leaves it alone.

    `label` gets the part of the row at each place of the order, -1 outside of nodes; the answer is each part's node.
    """
    most = 0
    for a in range(len(levels.codes)):
        most = max(most, levels.codes[a])
    stamp = np.full(most, -1, np.int64)
    local = np.empty(most, np.int32)
    parent = np.empty(len(label), np.int64)
    count = 0
    label[:] = -1
    for node in range(len(begin)):
        a = by[node]
        if a < 0:
            continue
        base = levels.start[a] + (level[node, a] - 1) * levels.codes[a]
        for place in range(begin[node], end[node]):
            group = levels.group[base + codes[order[place], a]]
            if stamp[group] != node:
                stamp[group] = node
                local[group] = count
                parent[count] = node
                count += 1
            label[place] = local[group]
    return parent[:count].copy()
