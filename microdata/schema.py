"""What a record is made of: who it is about, what is generalized, what is protected, what is passed on.

A schema fixes domains and hierarchies for good. Loss and distances are measured over them, never over the values seen
so far, and a value outside of them is refused. A field that no role names is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from microdata.errors import SchemaError
from microdata.hierarchy import Hierarchy
from microdata.sensitivity import Item, Sensitivity

# Rounding to decimals finds the right one while the errors of four operations, each 2**-53 of all digits taken as one
# integer, stay well below a half.
_MOST_DECIMALS = 15
_MOST_EXACT = 2.0**49

LARGEST = 2**53 - 1
"""Up to here float64 holds every whole number, and no greater one is rounded down into it."""
_NARROWEST = 1e-200
"""A domain of several values is at least this wide: 1 / width stays far from the end of float64."""
_READABLE = 1e30
"""Numbers below are written with all their digits in messages."""
_RANKS = 1_000_000
"""Parts of a declared distribution in which ranks are counted."""
_ROUNDING = 1e-6
"""Part of a grid's step by which the end of a range may miss a place of the grid."""
_MOST_CODES = 2**31 - 1
"""Values of a sensitive domain, whose codes are 32 bits wide."""


class PersonSource(Enum):
    """Where the person comes from when it is not a field of the record."""

    KEY = "key"
    """The key of the Kafka record."""
    ROW = "row"
    """Every row of the table is another person."""


@dataclass(frozen=True)
class Number:
    """A number within the declared domain `low … high`.

    Values are kept as float64, so a domain lies where that holds every whole number: its ends and its width are at
    most 9007199254740991. `step` is a grid that starts at `low`. A quasi-identifier's published intervals are widened
    to it, so that their ends are no one's true value. A sensitive number takes only values on it (integers: a step of
    1 unless declared).
    """

    name: str
    low: float
    high: float
    integer: bool = False
    step: float | None = None
    quantiles: tuple[float, ...] = ()
    """Values that cut the declared distribution of a sensitive number into equally likely parts, `low` and `high` left
    out; empty where every value of the grid counts alike."""
    sensitivity: Sensitivity | None = None
    """Categories of a sensitive number's values."""
    capped: bool = False
    """Whether a value above `high` is read as `high`, which then stands for that much or more; else it is refused."""

    numeric: ClassVar[bool] = True
    """Whether a value is a number; else it is a label."""
    ordered: ClassVar[bool] = True
    """Whether values have an order, and so a middle."""

    def __post_init__(self) -> None:
        given = f"{_shown(self.low)} … {_shown(self.high)}"
        if not -math.inf < self.low < math.inf or not -math.inf < self.high < math.inf:
            raise SchemaError("the domain must be finite", at=self.name, given=given)
        if self.low > self.high:
            raise SchemaError("min must not exceed max", at=self.name, given=given)
        if self.step is not None and not 0 < self.step < math.inf:
            raise SchemaError("step must be a positive number", at=self.name, given=_shown(self.step))
        if self.step is not None and self.step > LARGEST:
            raise SchemaError(f"step must be at most {LARGEST}", at=self.name, given=_shown(self.step))
        if max(abs(self.low), abs(self.high)) > LARGEST:
            allowed = f"within ±{LARGEST}, where every whole number is kept exactly"
            raise SchemaError(f"min and max must lie {allowed}", at=self.name, given=given)
        if self.high - self.low > LARGEST:
            allowed = f"at most {LARGEST}, so that every distance is kept exactly"
            raise SchemaError(f"max - min must be {allowed}", at=self.name, given=given)
        if 0 < self.high - self.low < _NARROWEST:
            raise SchemaError(f"max - min must be 0 or at least {_NARROWEST:g}", at=self.name, given=given)
        if self.integer and not (float(self.low).is_integer() and float(self.high).is_integer()):
            raise SchemaError("an integer domain has whole ends", at=self.name, given=given)
        self._check_step()
        object.__setattr__(self, "quantiles", tuple(self.quantiles))
        if not all(one < other for one, other in pairwise((self.low, *self.quantiles, self.high))) and self.quantiles:
            raise SchemaError("quantiles must ascend and lie between min and max, without these two", at=self.name)
        _check_categories(self)

    def _check_step(self) -> None:
        """Refuse a grid whose places float64 does not keep apart."""
        if self.step is None or (self.integer and self.step % 1 == 0):
            return
        finest = max(abs(self.low), abs(self.high), self.high - self.low) / _MOST_EXACT
        if self.step < finest:
            reason = "places on a finer grid are not kept apart in this domain"
            raise SchemaError(f"step must be at least {finest:.2g}: {reason}", at=self.name, given=_shown(self.step))

    @property
    def grid(self) -> float | None:
        """Distance between neighbouring values, None where the domain is continuous."""
        return self.step if self.step is not None else (1.0 if self.integer else None)

    @property
    def size(self) -> int | None:
        """Number of values on the grid, None where the domain is continuous."""
        return None if self.grid is None else int((self.high - self.low) / self.grid + 1e-9) + 1

    @cached_property
    def decimals(self) -> float:
        """Ten to the number of digits behind the point that values on the grid have; 0 where they are not decimal."""
        digits = max(_decimals(self.low), _decimals(self.grid or 1.0))
        largest = max(abs(self.low), abs(self.high))
        return 10.0**digits if digits <= _MOST_DECIMALS and largest * 10.0**digits < _MOST_EXACT else 0.0

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """Rank of every value of the grid: its number, or its place in the declared distribution, in millionths."""
        if not self.quantiles:
            return np.arange(self.size or 0)
        cuts = [self.low, *self.quantiles, self.high]
        share = np.interp(self.values(), cuts, np.linspace(0.0, 1.0, len(cuts)))
        return np.rint(share * _RANKS).astype(np.int64)

    @property
    def names(self) -> tuple[str, ...]:
        """What a generalized value may be called; nothing, because it is an interval."""
        return ()

    def declaration(self) -> dict[str, Any]:
        """All that decides how a value is encoded and published, as JSON."""
        return {
            "name": self.name,
            "domain": [float(self.low), float(self.high)],
            "integer": self.integer,
            "step": self.step,
            # Only where they are given: policies without keep their fingerprint.
            **({"quantiles": self.quantiles} if self.quantiles else {}),
            **({"capped": True} if self.capped else {}),
            **_declared(self.sensitivity),
        }

    @cached_property
    def category_of(self) -> NDArray[np.int32]:
        """Category of sensitivity of every value of the grid; empty where there are none."""
        return _categories(self, self.sensitivity, self._span)

    def _span(self, item: Item) -> tuple[int, int]:
        """The first and the last value of the grid that a number or a range of numbers means."""
        if isinstance(item, str):
            raise SchemaError("sensitivity: a number or a range of two numbers is needed", at=self.name, given=item)
        low, high = item if isinstance(item, tuple) else (item, item)
        if not self.low <= low <= high <= self.high:
            raise SchemaError("sensitivity: ranges ascend and lie within min … max", at=self.name, given=item)
        grid = self.grid or 1.0
        # The first and the last place of the grid that the range holds, up to rounding.
        first = math.ceil((low - self.low) / grid - _ROUNDING)
        last = math.floor((high - self.low) / grid + _ROUNDING)
        if first > last:
            raise SchemaError("sensitivity: a range holds no value of the grid", at=self.name, given=item)
        return first, last

    def code_of(self, text: str) -> int | None:
        """The place on the grid that is nearest to a number written as text; None where it is none."""
        try:
            return round((float(text) - self.low) / (self.grid or 1.0))
        except (ValueError, OverflowError):
            return None

    def label(self, first: int, last: int) -> str:
        """The values from one code to another, for people."""
        grid = self.grid or 1.0
        one, other = f"{self.low + first * grid:g}", f"{self.low + last * grid:g}"
        return one if one == other else f"{one} … {other}"

    def domain(self) -> list[float | str]:
        """Every value of the grid as it is published, by its code."""
        return [int(value) if self.integer else float(value) for value in self.values()]

    def spread(self, count: int) -> NDArray[np.float64]:
        """So many encoded values from all over the domain."""
        return np.where(np.arange(count) % 2, self.low, self.high).astype(np.float64)

    def on_grid(self, index: NDArray[Any]) -> NDArray[np.float64]:
        """Values at these places of the grid, as a person would write them (0.3, not 0.30000000000000004)."""
        assert self.grid is not None, "a continuous domain has no grid"
        exact = self.low + self.grid * index
        return np.rint(exact * self.decimals) / self.decimals if self.decimals else exact

    def values(self) -> NDArray[np.float64]:
        """Every value on the grid."""
        return self.on_grid(np.arange(self.size or 0))

    def floor(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The greatest values on the grid that do not exceed these."""
        nearest = np.rint((numbers - self.low) / (self.grid or 1.0))
        below = self.on_grid(nearest)
        return np.where(below > numbers, self.on_grid(nearest - 1), below)

    def ceil(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The least values on the grid, or the end of the domain, that these do not exceed."""
        nearest = np.rint((numbers - self.low) / (self.grid or 1.0))
        above = self.on_grid(nearest)
        return np.minimum(np.where(above < numbers, self.on_grid(nearest + 1), above), self.high)

    def nearest(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values on the grid, or the end of the domain, that are nearest to these; themselves without a grid."""
        if self.grid is None:
            return numbers
        # Adding zero turns -0.0 into 0.0.
        return np.minimum(self.on_grid(np.rint((numbers - self.low) / self.grid)), self.high) + 0.0


@dataclass(frozen=True)
class Category:
    """A value that is a leaf of a hierarchy.

    With `other`, a value that the hierarchy does not know becomes that leaf; without, it is refused. `ordered` says
    that the leaves stand in an order that means something, so that one of several is in the middle. With `characters`
    no more than so many first ones of a value are read: what follows is known to nobody from there on.
    """

    name: str
    hierarchy: Hierarchy
    other: str | None = None
    ordered: bool = False
    sensitivity: Sensitivity | None = None
    """Categories of a sensitive attribute's values."""
    characters: int | None = None
    forms: tuple[str, ...] = ()
    """How values are written, with a 9 for each digit: `99999-9999`. A value of another form is unknown, because its
    first characters mean something else: `3601.0` is the postcode 03601. Empty if every form is accepted."""

    numeric: ClassVar[bool] = False
    """Whether a value is a number; else it is a label."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "other", self.other and self.other.strip())
        if self.other is not None and self.other not in self.hierarchy.codes:
            raise SchemaError("other must be a leaf of the hierarchy", at=self.name, given=repr(self.other))
        _check_categories(self)

    @property
    def size(self) -> int:
        """Number of leaves."""
        return self.hierarchy.size

    @property
    def names(self) -> tuple[str, ...]:
        """What a generalized value may be called: every node of the hierarchy."""
        return tuple(self.hierarchy.labels)

    def declaration(self) -> dict[str, Any]:
        """All that decides how a value is encoded and published, as JSON."""
        tree = self.hierarchy
        return {
            "name": self.name,
            "tree": [tree.labels, tree.parent.tolist()],
            "other": self.other,
            # Only where it is given: policies without keep their fingerprint.
            **({"ordered": True} if self.ordered else {}),
            **({"characters": self.characters} if self.characters is not None else {}),
            **({"forms": list(self.forms)} if self.forms else {}),
            **_declared(self.sensitivity),
        }

    @cached_property
    def category_of(self) -> NDArray[np.int32]:
        """Category of sensitivity of every leaf; empty where there are none."""
        return _categories(self, self.sensitivity, self._span)

    def _span(self, item: Item) -> tuple[int, int]:
        """The first and the last leaf that a label means: those below its node."""
        tree = self.hierarchy
        if not isinstance(item, str) or item.strip() not in self._nodes:
            raise SchemaError("sensitivity: the hierarchy has no such label", at=self.name, given=repr(item))
        node = self._nodes[item.strip()]
        return int(tree.first[node]), int(tree.last[node])

    @cached_property
    def _nodes(self) -> dict[str, int]:
        return {label: node for node, label in enumerate(self.hierarchy.labels)}

    def code_of(self, text: str) -> int | None:
        """The leaf of this label; None where there is none."""
        return self.hierarchy.codes.get(text.strip())

    def read(self, value: str) -> str:
        """Return what is read of a value; nothing of one that is not written in one of the forms.

        >>> postcode = Category("postcode", Hierarchy.flat(["537", "902"]), characters=3, forms=("99999", "99999-9999"))
        >>> postcode.read("53711-2030"), postcode.read("5371.0")
        ('537', '')
        """
        return "" if self.forms and form_of(value) not in self.forms else value[: self.characters]

    def label(self, first: int, last: int) -> str:
        """The values from one code to another, for people."""
        leaves = self.hierarchy.leaves
        return leaves[first] if first == last else f"{leaves[first]} … {leaves[last]}"

    def domain(self) -> list[float | str]:
        """Every leaf as it is published, by its code."""
        return list(self.hierarchy.leaves)

    def spread(self, count: int) -> NDArray[np.float64]:
        """So many encoded values from all over the domain."""
        return (np.arange(count) % self.size).astype(np.float64)


Attribute: TypeAlias = Number | Category

_DIGITS = str.maketrans("012345678", "999999999")


def form_of(value: str) -> str:
    """Return how a value is written, with a 9 for each digit.

    >>> form_of("2024-01-31T08:00")
    '9999-99-99T99:99'
    """
    return value.translate(_DIGITS)


def _check_categories(attribute: Attribute) -> None:
    """Refuse categories that miss a value or name one twice."""
    if attribute.sensitivity is not None and attribute.size is None:
        raise SchemaError("sensitivity needs a fixed set of values; declare a step", at=attribute.name)
    _ = attribute.category_of


def _categories(
    attribute: Attribute, sensitivity: Sensitivity | None, span: Callable[[Item], tuple[int, int]]
) -> NDArray[np.int32]:
    if sensitivity is None:
        return np.empty(0, np.int32)
    return sensitivity.codes(attribute.size or 0, span, lambda code: attribute.label(code, code), attribute.name)


def _declared(sensitivity: Sensitivity | None) -> dict[str, Any]:
    """Only where there is one: policies without keep their fingerprint."""
    return {} if sensitivity is None else {"sensitivity": sensitivity.declaration()}


def _shown(number: float) -> str:
    """A number for a message, however large."""
    return str(number) if abs(number) < _READABLE else f"{Decimal(number):.3g}"


def _decimals(number: float) -> int:
    """Digits behind the point in the shortest text of a number."""
    exponent = Decimal(repr(float(number))).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


@dataclass(frozen=True)
class Schema:
    """The roles of a record's fields. Names of nested fields are dotted: `customer.id`."""

    person: str | PersonSource
    quasi: tuple[Attribute, ...]
    sensitive: tuple[Attribute, ...] = ()
    public: tuple[str, ...] = ()
    weights: tuple[float, ...] = field(default=())
    """Weight of each quasi-identifier in the loss; equal when left out. They are normalized to sum to 1."""
    key_field: str | None = None
    """Field of the record key that names the person, where the key is itself a record. Dotted, as other names."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "quasi", tuple(self.quasi))
        object.__setattr__(self, "sensitive", tuple(self.sensitive))
        object.__setattr__(self, "public", tuple(self.public))
        if not self.quasi:
            raise SchemaError("at least one quasi-identifier is needed", at="quasi")
        if self.key_field is not None:
            if self.person is not PersonSource.KEY:
                raise SchemaError("a field of the record key needs the person to be in the key", at="person")
            if not all(self.key_field.split(".")):
                raise SchemaError("a field name must not be empty", at="person", given=repr(self.key_field))
        self._check_names()
        self._check_sensitive()
        weights = tuple(self.weights) or (1.0,) * len(self.quasi)
        if len(weights) != len(self.quasi) or min(weights) < 0 or not 0 < sum(weights) < math.inf:
            raise SchemaError(
                f"one non-negative number per quasi-identifier ({len(self.quasi)}) is needed", at="weights"
            )
        object.__setattr__(self, "weights", tuple(weight / sum(weights) for weight in weights))

    def _check_names(self) -> None:
        seen: dict[str, str] = {}
        for role, names in self.roles().items():
            for name in names:
                if not name or not all(name.split(".")):
                    raise SchemaError("a field name must not be empty", at=role, given=repr(name))
                if name in seen:
                    raise SchemaError(f"a field is already declared as {seen[name]}", at=role, given=repr(name))
                seen[name] = role
        # In this order a field is followed by what it contains, however long the names are.
        for name, other in pairwise(sorted(seen, key=lambda name: name.split("."))):
            if other.startswith(f"{name}."):
                both = f"{name!r} and {other!r}"
                raise SchemaError("a field contains another declared field", at=seen[name], given=both)

    def _check_sensitive(self) -> None:
        for attribute in self.quasi:
            if attribute.sensitivity is not None:
                raise SchemaError("only sensitive attributes have a sensitivity", at=attribute.name)
        for attribute in self.sensitive:
            if attribute.size is None:
                raise SchemaError(
                    f"{attribute.name!r} is a real number without a step; declare a step (its distribution is measured "
                    "over a fixed grid of values)",
                    at="sensitive",
                )
            if attribute.size > _MOST_CODES:
                raise SchemaError(
                    f"of {attribute.name!r} at most {_MOST_CODES} values can be told apart; declare a larger step",
                    at="sensitive",
                    given=f"{attribute.size} values",
                )

    def roles(self) -> dict[str, tuple[str, ...]]:
        """Field names by role; a person that is no field of the record has none."""
        return {
            "person": (self.person,) if isinstance(self.person, str) else (),
            "quasi": tuple(attribute.name for attribute in self.quasi),
            "sensitive": tuple(attribute.name for attribute in self.sensitive),
            "public": self.public,
        }

    def histograms(self, sensitive: NDArray[np.int32]) -> list[NDArray[np.int64]]:
        """How often each value of each sensitive attribute occurs in these rows, over the whole declared domain."""
        return [
            np.bincount(sensitive[:, column], minlength=attribute.size or 0)
            for column, attribute in enumerate(self.sensitive)
        ]

    def fields(self) -> tuple[str, ...]:
        """Every declared field."""
        return tuple(name for names in self.roles().values() for name in names)
