"""What every privacy model is: a condition on classes, checked for all of them at once."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, Category, InfeasibleError, Schema, SchemaError, count_persons
from privacy._kernels import category_counts
from privacy.exact import Real


@dataclass(frozen=True, eq=False)
class Histogram:
    """How often each value of one sensitive attribute occurs in each class: sparse rows, values ascending."""

    attribute: Attribute
    reference: NDArray[np.int64]
    """Count of every value of the domain in the table (or window) that classes are compared with."""
    starts: NDArray[np.int64]
    """Where each class begins in `values` and `counts`; one more entry than classes."""
    values: NDArray[np.int32]
    counts: NDArray[np.int64]

    @cached_property
    def total(self) -> int:
        """Rows behind the reference."""
        return int(self.reference.sum())

    @cached_property
    def classes(self) -> NDArray[np.int64]:
        """Class of each entry of `values`."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @cached_property
    def categories(self) -> CategoryCounts:
        """How the rows of each class are spread over the attribute's categories of sensitivity."""
        attribute = self.attribute
        assert attribute.sensitivity is not None
        return CategoryCounts(
            *category_counts(self.starts, self.values, self.counts, attribute.category_of, len(attribute.sensitivity))
        )

    @cached_property
    def weights(self) -> NDArray[np.int64]:
        """Weight of the category of each entry of `values`, in parts of a whole (see `Sensitivity.parts`)."""
        attribute = self.attribute
        assert attribute.sensitivity is not None
        return attribute.sensitivity.units[attribute.category_of[self.values]]

    def nodes(self) -> Iterator[NodeCounts]:
        """How often the nodes of the attribute's hierarchy occur in the classes, by height from the leaves up.

        Nodes of which a class has no row are left out, as is the root.
        """
        assert isinstance(self.attribute, Category)
        tree = self.attribute.hierarchy
        classes, nodes, counts = self.classes, tree.leaf_nodes[self.values], self.counts
        for height in range(int(tree.height[0])):
            here = tree.height[nodes] == height
            yield NodeCounts(height, classes[here], nodes[here], counts[here])
            nodes = np.where(here, tree.parent[nodes], nodes)
            # A node's leaves are neighbours, so what climbed to the same node stands side by side.
            first = _run_starts(classes, nodes)
            classes, nodes = classes[first], nodes[first]
            counts = np.add.reduceat(counts, first) if len(first) else counts


class CategoryCounts(NamedTuple):
    """The rows of each class by category of sensitivity."""

    present: NDArray[np.int64]
    """Categories that the class has rows of."""
    most: NDArray[np.int64]
    """Rows of its most frequent category."""
    first: NDArray[np.int64]
    """Rows of the most sensitive category."""


@dataclass(frozen=True, eq=False)
class NodeCounts:
    """The nodes of one height that occur in the classes."""

    height: int
    classes: NDArray[np.int64]
    nodes: NDArray[np.int32]
    counts: NDArray[np.int64]
    """Rows of the class below the node."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Classes as the models see them."""

    rows: NDArray[np.int64]
    """Rows of each class."""
    persons: NDArray[np.int64]
    """Distinct persons of each class."""
    most: NDArray[np.int64]
    """Rows of the person with the most rows, of each class."""
    histograms: tuple[Histogram, ...]
    """One per sensitive attribute."""
    company: NDArray[np.int64] | None = None
    """Persons behind each class over time, with rows in it or without; None where nobody keeps a record."""

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of(
        cls,
        schema: Schema,
        persons: NDArray[np.int64],
        sensitive: NDArray[np.int32],
        classes: NDArray[np.integer],
        count: int,
        references: Sequence[NDArray[np.int64]] | None = None,
        *,
        people: int | None = None,
    ) -> Groups:
        """Group rows by class 0 … count - 1; rows of class -1 count in the reference only.

        `references` holds one histogram per sensitive attribute; left out, it is taken over all given rows. `people`
        says how many persons all given rows are about, where somebody has counted them.
        """
        one_row_each = (count_persons(persons) if people is None else people) == len(persons)
        own = classes >= 0
        if references is None:
            references = schema.histograms(sensitive)
        if not own.all():
            persons, sensitive, classes = persons[own], sensitive[own], classes[own]
        rows = np.bincount(classes, minlength=count)
        if one_row_each:  # then there are no pairs to sort
            distinct, most = rows, np.minimum(rows, 1)
        else:
            person_class, _, person_rows = pairs(classes, persons)
            distinct, most = np.bincount(person_class, minlength=count), np.zeros(count, np.int64)
            np.maximum.at(most, person_class, person_rows)
        return cls(
            rows=rows,
            persons=distinct,
            most=most,
            histograms=tuple(
                _histogram(attribute, classes, sensitive[:, column], count, references[column])
                for column, attribute in enumerate(schema.sensitive)
            ),
        )


CheckedOn: TypeAlias = Literal["class", "window", "history"]
CHECKED_ON: tuple[CheckedOn, ...] = get_args(CheckedOn)
"""Each includes those before it."""


class Model(ABC):
    """A condition that every class must meet.

    Subclasses are frozen dataclasses whose fields are the model's parameters. `achieved` says how far each class gets
    in the unit of the parameter; `holds` decides, exactly or on the safe side.
    """

    name: ClassVar[str]
    parameter: ClassVar[str]
    """Name of the field that is the threshold."""
    survives_merging: ClassVar[bool]
    """Whether the union of two classes that meet the condition meets it."""
    survives_adding: ClassVar[bool]
    """Whether a class that meets the condition still does after rows are added to it."""
    more_is_safer: ClassVar[bool]
    """Whether a larger achieved value is the safer one (k, ℓ) or a smaller one (t, β)."""
    checked_on: ClassVar[CheckedOn] = "class"
    """What it takes to check it: the rows of the class; also the table or window that the class is compared with; or
    also a record of what was published before."""
    limited_by_domain: ClassVar[bool] = False
    """Whether a small sensitive domain can make it infeasible, whatever the data."""

    @property
    def label(self) -> str:
        """The name, with the sensitive attribute where the model is about one."""
        return self.name

    @property
    def asked(self) -> float:
        """The threshold, in the unit of `achieved`."""
        return float(getattr(self, self.parameter))

    def basis(self, groups: Groups) -> str | None:  # noqa: ARG002 - for models that can be measured in several ways
        """What the achieved value is measured by, where the name of the model does not say it."""
        return None

    @property
    def least_persons(self) -> int:
        """Fewer persons than this never meet the condition: searches need not look at smaller classes."""
        return 1

    def nearest(self, achieved: float) -> float | str | None:
        """What to ask for where no more than `achieved` is possible, rounded to the feasible side; None for nothing."""
        if not math.isfinite(achieved):
            return None
        scaled = achieved * 10_000
        return (math.floor(scaled) if self.more_is_safer else math.ceil(scaled)) / 10_000

    @abstractmethod
    def achieved(self, groups: Groups) -> NDArray[np.float64]:
        """The strictest parameter that each class meets; over several sensitive attributes the least safe counts.

        Infinite where no parameter would do.
        """

    @abstractmethod
    def holds(self, groups: Groups) -> NDArray[np.bool_]:
        """Whether each class meets the condition."""


class SensitiveModel(Model):
    """A condition on the sensitive values of a class.

    With an `attribute` it is about that one, without about every sensitive attribute of the schema.
    """

    attribute: str | None

    @property
    def label(self) -> str:
        """The name and the attribute."""
        return self.name if self.attribute is None else f"{self.name} of {self.attribute}"

    def achieved(self, groups: Groups) -> NDArray[np.float64]:
        """The least safe of the attributes."""
        worst = np.minimum if self.more_is_safer else np.maximum
        return np.asarray(worst.reduce([self._achieved(groups, one) for one in self.histograms(groups)]))

    def holds(self, groups: Groups) -> NDArray[np.bool_]:
        """Whether the condition is met in every attribute."""
        return np.logical_and.reduce([self._holds(groups, one) for one in self.histograms(groups)])

    def objection(self, attribute: Attribute) -> str | None:  # noqa: ARG002 - for models that cannot take every one
        """Why the condition cannot be put on this attribute; None where it can."""
        return None

    def best_counts(self, attribute: Attribute) -> NDArray[np.int64]:
        """Rows of every value in a class that meets the condition as well as the domain allows: one of each."""
        return np.ones(attribute.size or 0, np.int64)

    def histograms(self, groups: Groups) -> list[Histogram]:
        """The histograms that the condition is about."""
        found = [one for one in groups.histograms if self.attribute in {None, one.attribute.name}]
        self.check_attributes([one.attribute for one in found])
        return found

    def check_attributes(self, attributes: Sequence[Attribute]) -> None:
        """Raise where one of them cannot be protected, and where there is none: nothing would be protected."""
        if not attributes:
            if self.attribute is None:
                raise SchemaError(f"{self.name} needs a sensitive attribute; the schema has none")
            reason = f"{self.name} is asked for of an attribute that is not sensitive"
            raise SchemaError(reason, given=repr(self.attribute))
        for attribute in attributes:
            objection = self.objection(attribute)
            if objection is not None:
                raise SchemaError(f"{self.name} cannot protect {attribute.name!r}: {objection}")

    @abstractmethod
    def _achieved(self, groups: Groups, histogram: Histogram) -> NDArray[np.float64]: ...

    @abstractmethod
    def _holds(self, groups: Groups, histogram: Histogram) -> NDArray[np.bool_]: ...


def require_parameter(parameter: str, value: Real, allowed: bool, expected: str, nearest: float | None = None) -> None:
    """Refuse a parameter that is out of its range."""
    if not allowed:
        raise InfeasibleError(f"must be {expected}", parameter=parameter, given=value, nearest=nearest)


def require_whole(parameter: str, value: Real) -> None:
    """Refuse what cannot be a number of persons, values or levels."""
    nearest = math.ceil(value) if 1 < value < math.inf else 1  # between two numbers, the safer one
    require_parameter(parameter, value, value >= 1 and value % 1 == 0, "a whole number from 1", nearest=nearest)


def require_positive(parameter: str, value: Real) -> None:
    """Refuse 0 and what is below it."""
    require_parameter(parameter, value, value > 0, "above 0")


def require_share(parameter: str, value: Real) -> None:
    """Refuse what is no share; none is the nearest to those that are too small, because 0 itself is one of them."""
    require_parameter(parameter, value, 0 < value <= 1, "above 0 and at most 1", nearest=1 if value > 1 else None)


def _run_starts(classes: NDArray[np.integer], values: NDArray[np.integer]) -> NDArray[np.int64]:
    """Where a new (class, value) begins in rows that are ordered by them."""
    new = np.ones(len(classes), bool)
    new[1:] = (classes[1:] != classes[:-1]) | (values[1:] != values[:-1])
    return np.flatnonzero(new)


def pairs(
    classes: NDArray[np.integer], values: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Class, value and number of rows of each distinct (class, value), ordered by class, then value."""
    order = np.lexsort((values, classes))
    ordered_classes, ordered_values = classes[order], values[order]
    first = _run_starts(ordered_classes, ordered_values)
    counts = np.diff(np.append(first, len(order)))
    return ordered_classes[first].astype(np.int64), ordered_values[first].astype(np.int64), counts


def _histogram(
    attribute: Attribute,
    classes: NDArray[np.integer],
    column: NDArray[np.int32],
    count: int,
    reference: NDArray[np.int64],
) -> Histogram:
    size = len(reference)
    keys, counts = np.unique(classes.astype(np.int64) * size + column, return_counts=True)
    starts = np.searchsorted(keys, np.arange(count + 1) * size)
    return Histogram(attribute, reference, starts, (keys % size).astype(np.int32), counts)
