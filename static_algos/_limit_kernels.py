"""Kernels that decide whether given rows may form a class: what SABRE and BUREL merge and refine by."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import kernel
from static_algos._distance_kernels import hierarchy_work
from static_algos.ratios import product_at_most

CATEGORY, NUMBER, CAPS = 0, 1, 2

ATTRIBUTE = np.dtype(
    [
        ("kind", np.int64),  # limited by its distance to the reference, or by caps
        ("values", np.int64),  # first of its values in the array of counts
        ("values_end", np.int64),
        ("nodes", np.int64),  # CATEGORY: first of its nodes
        ("nodes_end", np.int64),
        ("caps", np.int64),  # CAPS: first of its caps
        ("caps_end", np.int64),
        ("total", np.int64),  # rows of its reference
        ("unit", np.int64),  # of distances: height of the hierarchy, or the greatest rank of the number's values
    ]
)
VALUE = np.dtype([("reference", np.int64), ("node", np.int64), ("gap", np.int64)])
"""Count in the distribution that classes are compared with; node in the hierarchy; ranks to the next value."""
CAP = np.dtype([("first", np.int64), ("last", np.int64), ("over", np.int64), ("under", np.int64)])
"""Values `first … last` of the attribute together have at most the share over / under."""


class Rules(NamedTuple):
    """What the sensitive values of a class must meet. Values of all attributes stand side by side."""

    attributes: NDArray[Any]
    values: NDArray[Any]
    parent: NDArray[np.int64]
    height: NDArray[np.int64]
    """Nodes of all hierarchies, each in pre-order."""
    caps: NDArray[Any]
    t_over: int
    t_under: int
    """The threshold t as a fraction."""
    room: NDArray[np.int64]
    """Two rows to compute in, long enough for the nodes or values of any attribute."""


class Limits(NamedTuple):
    """What a class must meet."""

    least: int
    """Distinct persons."""
    person: NDArray[np.int32]
    """Person of each row, numbered from 0; empty when every row is another person."""
    value: NDArray[np.int32]
    """Rows × sensitive attributes: place of the row's value in the array of counts."""
    rules: Rules


@kernel
def strain(rules: Rules, counts: NDArray[np.int64], rows: int) -> float:
    """How much of the tightest distance or cap a class with these counts uses up, from 0 to 1; infinite beyond.

    Whether it exceeds one is decided exactly, how near it comes is rounded.
    """
    most = 0.0
    for attribute in range(rules.attributes.shape[0]):
        kind = rules.attributes[attribute]["kind"]
        if kind == CAPS:
            used = _cap_strain(rules, attribute, counts, rows)
        else:
            moved = distance_work(rules, attribute, counts, rows)
            whole = rows * rules.attributes[attribute]["total"] * rules.attributes[attribute]["unit"]
            if not product_at_most(moved, rules.t_under, rules.t_over, whole):
                return np.inf
            used = 0.0 if moved == 0 else min(moved / whole * (rules.t_under / rules.t_over), 1.0)
        if used > 1.0:
            return used
        most = max(most, used)
    return most


@kernel
def distance_work(rules: Rules, attribute: int, counts: NDArray[np.int64], rows: int) -> int:
    """Earth mover's distance to the reference, in units of 1 / (rows · total · unit)."""
    own = rules.attributes[attribute]
    total = own["total"]
    if own["kind"] == NUMBER:
        work, ahead = 0, 0
        for place in range(own["values"], own["values_end"]):
            ahead += counts[place] * total - rules.values[place]["reference"] * rows
            work += abs(ahead) * rules.values[place]["gap"]
        return work
    base, end = own["nodes"], own["nodes_end"]
    extra, surplus = rules.room[0], rules.room[1]
    for node in range(end - base):
        extra[node] = surplus[node] = 0
    for place in range(own["values"], own["values_end"]):
        extra[rules.values[place]["node"]] = counts[place] * total - rules.values[place]["reference"] * rows
    return hierarchy_work(rules.parent[base:end], rules.height[base:end], extra, surplus)


@kernel
def _cap_strain(rules: Rules, attribute: int, counts: NDArray[np.int64], rows: int) -> float:
    own = rules.attributes[attribute]
    base, below = own["values"], rules.room[0]
    below[0] = 0
    for place in range(base, own["values_end"]):
        below[place - base + 1] = below[place - base] + counts[place]
    most = 0.0
    for number in range(own["caps"], own["caps_end"]):
        cap = rules.caps[number]
        together = below[cap["last"] + 1] - below[cap["first"]]
        if not product_at_most(together, cap["under"], cap["over"], rows):
            return np.inf
        if together > 0:
            most = max(most, together / rows * (cap["under"] / cap["over"]))
    return min(most, 1.0)
