"""What every privacy model is: a condition on classes, checked for all of them at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, Schema


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
    ) -> Groups:
        """Group rows by class 0 … count - 1; rows of class -1 count in the reference only.

        `references` holds one histogram per sensitive attribute; left out, it is taken over all given rows.
        """
        own = classes >= 0
        if references is None:
            references = [
                np.bincount(sensitive[:, column], minlength=attribute.size or 0)
                for column, attribute in enumerate(schema.sensitive)
            ]
        if not own.all():
            persons, sensitive, classes = persons[own], sensitive[own], classes[own]
        person_class, person_rows = _pairs(classes, persons)
        most = np.zeros(count, np.int64)
        np.maximum.at(most, person_class, person_rows)
        return cls(
            rows=np.bincount(classes, minlength=count),
            persons=np.bincount(person_class, minlength=count),
            most=most,
            histograms=tuple(
                _histogram(attribute, classes, sensitive[:, column], count, references[column])
                for column, attribute in enumerate(schema.sensitive)
            ),
        )


class Model(ABC):
    """A condition that every class must meet.

    Subclasses are frozen dataclasses whose fields are the model's parameters. `achieved` says how far each class gets
    in the unit of the parameter; `holds` decides, exactly or on the safe side.
    """

    name: ClassVar[str]
    survives_merging: ClassVar[bool]
    """Whether the union of two classes that meet the condition meets it."""
    survives_adding: ClassVar[bool]
    """Whether a class that meets the condition still does after rows are added to it."""
    more_is_safer: ClassVar[bool]
    """Whether a larger achieved value is the safer one (k, ℓ) or a smaller one (t, β)."""

    @property
    @abstractmethod
    def asked(self) -> float:
        """The threshold, in the unit of `achieved`."""

    @abstractmethod
    def achieved(self, groups: Groups) -> NDArray[np.float64]:
        """What each class achieves; over several sensitive attributes the least safe counts."""

    @abstractmethod
    def holds(self, groups: Groups) -> NDArray[np.bool_]:
        """Whether each class meets the condition."""


def _pairs(classes: NDArray[np.integer], values: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Class and number of rows of each distinct (class, value), ordered by class, then value."""
    order = np.lexsort((values, classes))
    ordered_classes, ordered_values = classes[order], values[order]
    new = np.ones(len(order), bool)
    new[1:] = (ordered_classes[1:] != ordered_classes[:-1]) | (ordered_values[1:] != ordered_values[:-1])
    first = np.flatnonzero(new)
    return ordered_classes[first].astype(np.int64), np.diff(np.append(first, len(order)))


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
