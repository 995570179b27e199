"""What a table of ratings says: whose they are, of what, and on which scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from microdata.errors import SchemaError
from microdata.schema import Number

Layout: TypeAlias = Literal["long", "wide"]
"""One row per rating, or one row per person with a column per item."""
MOST_VALUES = 1000
"""Values of the finest scale."""
MOST_PATTERNS = 100
"""Patterns of a list of items: every item is compared with each of them."""
_MISSED = 1e-6
"""A share of a step by which a decimal number may miss a place on the scale: decimal steps are not binary."""


@dataclass(frozen=True)
class Scale:
    """The ratings that can be given: `low`, `low + step`, … `high`. In memory they are 1, 2, … `size`; 0 is no rating.

    >>> stars = Scale(0.5, 5, 0.5)
    >>> stars.size, stars.values(np.array([1, 10])).tolist(), stars.steps(1)
    (10, [0.5, 5.0], 2)
    """

    low: float
    high: float
    step: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise SchemaError("min must be below max, both finite", at="rating", given=f"{self.low:g} … {self.high:g}")
        if not 0 < self.step < math.inf:
            raise SchemaError("step must be a positive number", at="rating", given=f"{self.step:g}")
        places = (self.high - self.low) / self.step
        if abs(places - round(places)) > _MISSED:
            raise SchemaError("max must be a whole number of steps above min", at="rating", given=f"{self.step:g}")
        if not 1 <= round(places) < MOST_VALUES:
            raise SchemaError(f"a scale has 2 to {MOST_VALUES} values", at="rating", given=f"{round(places) + 1}")

    @property
    def size(self) -> int:
        """How many ratings can be given."""
        return round((self.high - self.low) / self.step) + 1

    @property
    def whole(self) -> bool:
        """Whether every rating is a whole number."""
        return float(self.low).is_integer() and float(self.step).is_integer()

    def number(self, name: str) -> Number:
        """The scale as the domain of a field."""
        return Number(name, self.low, self.high, step=self.step)

    def values(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Ratings as they are written."""
        numbers = np.round(self.low + (np.asarray(codes, np.float64) - 1) * self.step, 9)
        return numbers.astype(np.int64) if self.whole else numbers

    def steps(self, distance: float) -> int:
        """How many steps of the scale fit into a distance between ratings."""
        return math.floor(distance / self.step + _MISSED)


@dataclass(frozen=True)
class RatingSchema:
    """The roles of the fields, the scale, and which items are sensitive.

    `items` and `sensitive` are names of items or patterns (`q*`, `film-19??`). In a long table `items` is the list of
    what may be rated, None for anything; in a wide one it tells which columns are items, so that no other column gets
    in. Sensitive items need not be in it.
    """

    person: str
    scale: Scale
    layout: Layout = "long"
    item: str = "item"
    rating: str = "rating"
    items: tuple[str, ...] | None = None
    sensitive: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for at, given in (("items", self.items or ()), ("sensitive", self.sensitive)):
            if sum(map(_is_pattern, given)) > MOST_PATTERNS:
                raise SchemaError(f"at most {MOST_PATTERNS} patterns; names may be more", at=at)
        if self.layout == "wide":
            if self.items is None:
                raise SchemaError("a wide table needs the names or patterns of its item columns", at="items")
            if self.knows([self.person]).any():
                raise SchemaError("the person's column must not be an item", at="items")
        elif len({self.person, self.item, self.rating}) < 3:
            raise SchemaError("person, item and rating must be three fields", at="item")

    def knows(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """Which of these are items."""
        if self.items is None:
            return np.ones(len(names), bool)
        return _matching(names, (*self.items, *self.sensitive))

    def is_sensitive(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """Which of these items are sensitive."""
        return _matching(names, self.sensitive)

    def fields(self) -> tuple[str, ...]:
        """The declared fields; patterns name none."""
        if self.layout == "long":
            return (self.person, self.item, self.rating)
        named = dict.fromkeys(name for name in (*(self.items or ()), *self.sensitive) if not _is_pattern(name))
        return (self.person, *named)

    def declaration(self) -> dict[str, Any]:
        """All that decides how a table is read and written."""
        long = {"item": self.item, "rating": self.rating} if self.layout == "long" else {}
        return {
            "person": self.person,
            "layout": self.layout,
            **long,
            "scale": [self.scale.low, self.scale.high, self.scale.step],
            "items": self.items and sorted(self.items),
            "sensitive": sorted(self.sensitive),
        }


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[")


def _matching(names: Sequence[str], wanted: Sequence[str]) -> NDArray[np.bool_]:
    exact, patterns = {name for name in wanted if not _is_pattern(name)}, [*filter(_is_pattern, wanted)]
    matches = [name in exact or any(fnmatchcase(name, one) for one in patterns) for name in names]
    return np.array(matches, bool)
