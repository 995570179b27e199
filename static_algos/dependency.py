"""How much attributes depend on each other: variation of information, the best dependency tree, its key attributes.

The variation of information of two attributes is what each leaves open when the other is known, in bits: 0 where they
determine each other, largest where they are independent. It is a metric. (The source calls it MI, but it is not the
mutual information.)

X. Sun (2010), sections 4.2 and 5.3.

>>> import numpy as np
>>> gender, age = np.array([0, 0, 0, 1, 1, 1]), np.array([1, 1, 0, 0, 2, 2])
>>> round(variation_of_information(gender, age), 4)
1.2516
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from microdata import Progress, silent

MOST_CELLS = 100
"""Values of an attribute that are told apart: of values that hardly repeat, any two attributes seem dependent."""


def cells(column: NDArray[np.float64], most: int = MOST_CELLS) -> NDArray[np.int64]:
    """Values as codes from 0, in their order; where there are too many, runs of about equally many rows."""
    codes = np.unique(column, return_inverse=True)[1].astype(np.int64)
    if codes.max(initial=-1) < most:
        return codes
    before = np.concatenate(([0], np.cumsum(np.bincount(codes))))[:-1]
    return np.unique((before * most // len(column))[codes], return_inverse=True)[1].astype(np.int64)


def entropy(codes: NDArray[np.int64]) -> float:
    """Bits that are needed to tell the values of the rows apart; codes are from 0."""
    counts = np.bincount(codes)
    shares = counts[counts > 0] / max(len(codes), 1)
    return float(-(shares @ np.log2(shares)))


def variation_of_information(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """What each of two attributes leaves open when the other is known, in bits; codes are from 0."""
    both = one * (int(other.max(initial=0)) + 1) + other
    return max(0.0, 2 * entropy(both) - entropy(one) - entropy(other))


def distances(columns: Sequence[NDArray[np.int64]], progress: Progress = silent) -> NDArray[np.float64]:
    """Variation of information between every two of these attributes."""
    count = len(columns)
    result = np.zeros((count, count))
    for one in range(count):
        progress("comparing attributes", one, count)
        for other in range(one + 1, count):
            result[one, other] = result[other, one] = variation_of_information(columns[one], columns[other])
    return result


def dependency_tree(between: NDArray[np.float64]) -> list[tuple[int, int]]:
    """The edges of the minimum spanning tree, shortest first; of edges that are equally long the first counts."""
    count = len(between)
    ones, others = np.triu_indices(count, 1)
    part = np.arange(count)
    tree = []
    for edge in np.argsort(between[ones, others], kind="stable"):
        one, other = int(ones[edge]), int(others[edge])
        if part[one] != part[other]:
            part[part == part[other]] = part[one]
            tree.append((one, other))
    return tree


def key_attributes(tree: Sequence[tuple[int, int]], count: int) -> list[int]:
    """Those with the most neighbours in the tree of so many attributes, as few as have as many neighbours as these."""
    degrees = np.bincount(np.array(tree, np.int64).ravel(), minlength=count)
    order = np.argsort(-degrees, kind="stable")
    enough = int(np.searchsorted(np.cumsum(degrees[order]), count)) + 1
    return order[:enough].tolist()
