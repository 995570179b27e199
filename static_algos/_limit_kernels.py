"""Kernels that decide whether given rows may form a class: what SABRE and BUREL merge and refine by."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import kernel
from static_algos._distance_kernels import hierarchy_work
from static_algos.ratios import product_at_most

CATEGORY, NUMBER, CAPS = 0, 1, 2


class Limits(NamedTuple):
    """What a class must meet. Values of all sensitive attributes stand side by side in one array of counts."""

    least: int
    """Distinct persons."""
    person: NDArray[np.int32]
    """Person of each row, numbered from 0; empty when every row is another person."""
    value: NDArray[np.int32]
    """Rows × sensitive attributes: place of the row's value in the array of counts."""
    kind: NDArray[np.int64]
    """How each attribute is limited: by its distance to the reference, or by caps."""
    start: NDArray[np.int64]
    """Place of each attribute's first value; one more entry than attributes."""
    reference: NDArray[np.int64]
    """Count of each value in the distribution that classes are compared with."""
    total: NDArray[np.int64]
    """Rows of each attribute's reference."""
    unit: NDArray[np.int64]
    """Of distances: height of the hierarchy, or values of the number's domain less one."""
    t_over: int
    t_under: int
    """The threshold t as a fraction."""
    node_start: NDArray[np.int64]
    """CATEGORY: first node of each attribute in the next two arrays; one more entry than attributes."""
    node_parent: NDArray[np.int64]
    node_height: NDArray[np.int64]
    node: NDArray[np.int64]
    """Node of each value, where its attribute is a CATEGORY."""
    cap_start: NDArray[np.int64]
    """CAPS: first cap of each attribute in the next four arrays; one more entry than attributes."""
    cap_first: NDArray[np.int64]
    cap_last: NDArray[np.int64]
    """First and last value that the cap counts together."""
    cap_over: NDArray[np.int64]
    cap_under: NDArray[np.int64]
    """The largest share as a fraction."""


@kernel
def within(limits: Limits, counts: NDArray[np.int64], rows: int) -> bool:
    """Whether a class of this many rows with these counts of sensitive values meets all distances and caps."""
    for attribute in range(limits.kind.shape[0]):
        if limits.kind[attribute] == CAPS:
            if not _within_caps(limits, attribute, counts, rows):
                return False
            continue
        if limits.kind[attribute] == CATEGORY:
            moved = category_distance(limits, attribute, counts, rows)
        else:
            moved = number_distance(limits, attribute, counts, rows)
        whole = rows * limits.total[attribute] * limits.unit[attribute]
        if not product_at_most(moved, limits.t_under, limits.t_over, whole):
            return False
    return True


@kernel
def category_distance(limits: Limits, attribute: int, counts: NDArray[np.int64], rows: int) -> int:
    """Earth mover's distance over a hierarchy, in units of 1 / (rows · total · unit)."""
    base, end = limits.node_start[attribute], limits.node_start[attribute + 1]
    total = limits.total[attribute]
    extra = np.zeros(end - base, np.int64)
    for place in range(limits.start[attribute], limits.start[attribute + 1]):
        extra[limits.node[place]] = counts[place] * total - limits.reference[place] * rows
    return hierarchy_work(limits.node_parent[base:end], limits.node_height[base:end], extra)


@kernel
def number_distance(limits: Limits, attribute: int, counts: NDArray[np.int64], rows: int) -> int:
    """Earth mover's distance over ranks, in units of 1 / (rows · total · unit)."""
    total = limits.total[attribute]
    moved, ahead = 0, 0
    for place in range(limits.start[attribute], limits.start[attribute + 1]):
        ahead += counts[place] * total - limits.reference[place] * rows
        moved += abs(ahead)
    return moved


@kernel
def _within_caps(limits: Limits, attribute: int, counts: NDArray[np.int64], rows: int) -> bool:
    base, values = limits.start[attribute], limits.start[attribute + 1] - limits.start[attribute]
    below = np.zeros(values + 1, np.int64)
    for value in range(values):
        below[value + 1] = below[value] + counts[base + value]
    for cap in range(limits.cap_start[attribute], limits.cap_start[attribute + 1]):
        together = below[limits.cap_last[cap] + 1] - below[limits.cap_first[cap]]
        if not product_at_most(together, limits.cap_under[cap], limits.cap_over[cap], rows):
            return False
    return True
