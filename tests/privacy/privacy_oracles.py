"""The models once more, one class at a time, in fractions and as the literature writes them."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import linprog

from microdata import Category, Hierarchy, Number


def counts_of(values: Any, size: Any) -> Any:
    counter = Counter(values)
    return [counter.get(value, 0) for value in range(size)]


def shares(counts: Any) -> Any:
    total = sum(counts)
    return [Fraction(count, total) for count in counts]


def rank_of(attribute: Any, ground: Any, present: Any) -> Any:
    """Rank of each value as a share of the greatest: among those present, in the domain, or among its quantiles."""
    if ground == "domain" and attribute.quantiles:
        cuts = [Fraction(str(cut)) for cut in (attribute.low, *attribute.quantiles, attribute.high)]
        values = [Fraction(str(value)) for value in attribute.values().tolist()]
        parts = [max(part for part in range(len(cuts) - 1) if cuts[part] <= value) for value in values]
        places = [
            part + (v - cuts[part]) / (cuts[part + 1] - cuts[part]) for part, v in zip(parts, values, strict=True)
        ]
        return [Fraction(round(place / (len(cuts) - 1) * 10**6), 10**6) for place in places]
    counted = [True] * len(present) if ground == "domain" else list(present)
    return [Fraction(sum(counted[:value]), max(sum(counted) - 1, 1)) for value in range(len(counted))]


def ground_distances(attribute: Any, present: Any, ground: str = "auto") -> Any:
    """The matrix of ground distances, walked up the tree where there is one."""
    size = attribute.size
    ranked = not isinstance(attribute, Category) or ground == "rank"
    rank = rank_of(attribute, ground, present) if ranked else []
    matrix = [[Fraction(0)] * size for _ in range(size)]
    for i in range(size):
        for j in range(size):
            if i == j:
                continue
            if ground == "equal":
                matrix[i][j] = Fraction(1)
            elif isinstance(attribute, Category) and ground != "rank":
                matrix[i][j] = Fraction(meeting_height(attribute.hierarchy, i, j), int(attribute.hierarchy.height[0]))
            else:
                matrix[i][j] = abs(rank[i] - rank[j])
    return matrix


def meeting_height(tree: Hierarchy, i: int, j: int) -> int:
    above, node = set(), int(tree.leaf_nodes[i])
    while node >= 0:
        above.add(node)
        node = int(tree.parent[node])
    node = int(tree.leaf_nodes[j])
    while node not in above:
        node = int(tree.parent[node])
    return int(tree.height[node])


def transport(p: Any, q: Any, distances: Any) -> float:
    """Earth mover's distance as the linear program that defines it."""
    size = len(p)
    cost = np.array(distances, float).ravel()
    leaving = np.kron(np.eye(size), np.ones(size))
    arriving = np.kron(np.ones(size), np.eye(size))
    result = linprog(
        cost, A_eq=np.vstack([leaving, arriving]), b_eq=np.array([*map(float, q), *map(float, p)]), bounds=(0, None)
    )
    assert result.success
    return result.fun


def emd(attribute: Any, p: Any, q: Any, ground: str = "auto") -> Fraction:
    """The closed forms of the specification, literally."""
    if ground == "equal":
        return sum((abs(a - b) for a, b in zip(p, q, strict=True)), Fraction(0)) / 2
    if isinstance(attribute, Number) or ground == "rank":
        rank = rank_of(attribute, ground, [a > 0 or b > 0 for a, b in zip(p, q, strict=True)])
        running, area = Fraction(0), Fraction(0)
        for value in range(len(p) - 1):
            running += q[value] - p[value]
            area += abs(running) * (rank[value + 1] - rank[value])
        return area
    tree = attribute.hierarchy
    extra = [Fraction(0)] * len(tree.labels)
    for leaf, node in enumerate(tree.leaf_nodes):
        extra[node] = q[leaf] - p[leaf]
    cost = Fraction(0)
    for node in range(len(tree.labels) - 1, -1, -1):
        children = [child for child in range(len(tree.labels)) if tree.parent[child] == node]
        if children:
            extra[node] = sum((extra[child] for child in children), Fraction(0))
            positive = sum((extra[child] for child in children if extra[child] > 0), Fraction(0))
            negative = -sum((extra[child] for child in children if extra[child] < 0), Fraction(0))
            cost += Fraction(int(tree.height[node]), int(tree.height[0])) * min(positive, negative)
    return cost


def distinct(q: Any) -> int:
    return sum(1 for share in q if share > 0)


def entropy_reaches(counts: Any, ell: Any) -> bool:
    """Π (1 / q)^c ≥ l^n, which is entropy ≥ log l without a logarithm."""
    rows = sum(counts)
    product = Fraction(1)
    for count in counts:
        if count:
            product *= Fraction(rows, count) ** count
    return product >= Fraction(str(ell)) ** rows


def recursive(counts: Any, c: Any, ell: Any) -> bool:
    ordered = sorted((count for count in counts if count), reverse=True)
    return ordered[0] < Fraction(str(c)) * sum(ordered[ell - 1 :])


def gain_within(p: Any, q: Any, beta: Any, *, enhanced: Any) -> bool:
    if q <= p:
        return True
    if p == 0:
        return False
    gain = (q - p) / p
    return gain <= Fraction(str(beta)) and (not enhanced or float(gain) < -math.log(p))


def likeness(p: Any, q: Any, beta: Any, *, enhanced: bool = True) -> bool:
    return all(gain_within(a, b, beta, enhanced=enhanced) for a, b in zip(p, q, strict=True))


def semantic(attribute: Any, p: Any, q: Any, beta: Any, height: Any) -> bool:
    tree = attribute.hierarchy
    for node in range(len(tree.labels)):
        if 1 <= tree.height[node] <= height:
            below = slice(tree.first[node], tree.last[node] + 1)
            if not gain_within(sum(p[below]), sum(q[below]), beta, enhanced=True):
                return False
    return True


def ranges(attribute: Any, p: Any, q: Any, beta: Any, width: Any, *, relative: Any) -> bool:
    low, grid = Fraction(str(attribute.low)), Fraction(str(attribute.grid))
    for i in range(len(p)):
        for j in range(i, len(p)):
            distance = (j - i) * grid
            if relative:
                distance /= low + i * grid
            if distance <= Fraction(str(width)) and not gain_within(
                sum(p[i : j + 1]), sum(q[i : j + 1]), beta, enhanced=True
            ):
                return False
    return True


def disclosure(p: Any, q: Any, delta: Any) -> bool:
    for a, b in zip(p, q, strict=True):
        if a == 0 and b == 0:
            continue
        if a == 0 or b == 0 or not abs(math.log(b / a)) < float(delta):
            return False
    return True
