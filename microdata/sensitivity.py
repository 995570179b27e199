"""Categories of sensitivity: how delicate the values of a sensitive attribute are, from HIV to flu.

Whoever learns that somebody has one of four lung diseases has learned enough; so has who learns that it is HIV or
cancer. Categories say which values are alike in that sense, and their order says which of them harm most.

Sun, Privacy Preserving Data Sharing in Data Mining Environment (2010), chapter 3; Sadad, Preventing Sensitive Attribute
Disclosure Using Improved k-Anonymity Model (2012), chapter 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from microdata.errors import SchemaError

Item: TypeAlias = str | float | tuple[float, float]
"""A value, a node of a hierarchy with all values below it, or a range of a number with both its ends."""

WEIGHT_PARTS = 1_000_000
"""Weights are whole multiples of one part of a whole, of which there are at most so many: sums of them are exact."""
_LISTED = 3
"""Items of a category that its label names."""


@dataclass(frozen=True)
class Sensitivity:
    """Categories of a sensitive attribute's values, from the most sensitive to the least, each with a weight.

    Weights ascend from 0 for the most sensitive category to 1 for the least, evenly unless they are given.

    >>> health = Sensitivity((("HIV", "cancer"), ("asthma",), ("flu", "cold")))
    >>> [str(weight) for weight in health.weights]
    ['0', '1/2', '1']
    """

    categories: tuple[tuple[Item, ...], ...]
    weights: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        items = tuple(tuple(some) for some in self.categories)
        object.__setattr__(self, "categories", items)
        if not items or not all(items):
            raise SchemaError("sensitivity needs at least one category, and each category a value")
        given = tuple(Fraction(str(weight)) for weight in self.weights)
        object.__setattr__(self, "weights", given or _even_weights(len(items)))
        self._check_weights()

    def __len__(self) -> int:
        return len(self.categories)

    def _check_weights(self) -> None:
        if len(self.weights) != len(self):
            both = f"{len(self.weights)} weights of {len(self)} categories"
            raise SchemaError("every category needs one weight", given=both)
        shown = ", ".join(f"{float(weight):g}" for weight in self.weights)
        if list(self.weights) != sorted(self.weights) or not 0 <= self.weights[0] <= self.weights[-1] <= 1:
            raise SchemaError("weights must ascend within 0 … 1, from the most sensitive category on", given=shown)
        if self.weights[-1] == 0:
            raise SchemaError("the least sensitive category must weigh more than 0", given=shown)
        if self.parts > WEIGHT_PARTS:
            raise SchemaError("weights have at most 6 digits behind the point", given=shown)

    @cached_property
    def parts(self) -> int:
        """Into how many parts a whole is divided, so that every weight is a whole number of them."""
        return math.lcm(*(weight.denominator for weight in self.weights))

    @cached_property
    def units(self) -> NDArray[np.int64]:
        """The weight of each category, in parts."""
        return np.array([int(weight * self.parts) for weight in self.weights], np.int64)

    def label(self, category: int) -> str:
        """A category for people: its first items."""
        items = [_text(item) for item in self.categories[category]]
        return ", ".join([*items[:_LISTED], *(["…"] if len(items) > _LISTED else [])])

    def declaration(self) -> dict[str, Any]:
        """All that decides which class meets what, as JSON."""
        return {"categories": self.categories, "weights": [str(weight) for weight in self.weights]}

    def codes(
        self, size: int, span: Callable[[Item], tuple[int, int]], text: Callable[[int], str], at: str
    ) -> NDArray[np.int32]:
        """Category of each of `size` values, if every value has exactly one.

        `span` tells the first and the last value that an item means, `text` what a value is called.
        """
        codes = np.full(size, -1, np.int32)
        for category, item in self._items():
            first, last = span(item)
            taken = np.flatnonzero(codes[first : last + 1] >= 0)
            if len(taken):
                twice = text(first + int(taken[0]))
                raise SchemaError("sensitivity: a value is named twice, but has one category", at=at, given=twice)
            codes[first : last + 1] = category
        left = np.flatnonzero(codes < 0)
        if len(left):
            raise SchemaError("sensitivity: a value belongs to no category", at=at, given=text(int(left[0])))
        return codes

    def _items(self) -> Iterator[tuple[int, Item]]:
        return ((category, item) for category, items in enumerate(self.categories) for item in items)


def _even_weights(count: int) -> tuple[Fraction, ...]:
    """0 for the first to 1 for the last; the only one weighs 1."""
    return (*(Fraction(number, count - 1) for number in range(count - 1)), Fraction(1))


def _text(item: Item | Sequence[float]) -> str:
    if isinstance(item, str):
        return item
    return f"{item[0]:g} … {item[1]:g}" if isinstance(item, Sequence) else f"{item:g}"
