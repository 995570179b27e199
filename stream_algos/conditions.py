"""What privacy models ask of the sensitive values of a class, in the one form that CASTLE's kernels know.

A model is a condition on the codes of one sensitive attribute: its values themselves, or their categories of
sensitivity. See `Conditions` for what the kernels do with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, Schema
from privacy import (
    CategoryValueWeight,
    CategoryWeight,
    DistinctDiversity,
    MaxCategoryShare,
    MaxFirstShare,
    Model,
    PPlusSensitivity,
    PSensitivity,
    SensitiveModel,
    least_parts,
)
from stream_algos._held_kernels import NONE, Conditions

SHARE_UNITS = 10**9
"""Shares are so many parts of a whole, in whole numbers."""

CONDITIONS: tuple[type[Model], ...] = (
    DistinctDiversity,
    PSensitivity,
    PPlusSensitivity,
    CategoryWeight,
    CategoryValueWeight,
    MaxCategoryShare,
    MaxFirstShare,
)
"""Every model that can be said so."""


@dataclass(frozen=True, eq=False)
class Condition:
    """One condition on one sensitive attribute."""

    column: int
    by_category: bool
    """Whether it looks at categories instead of values."""
    need: int = 0
    once: bool = False
    """Whether a code counts only when it is met for the first time."""
    gains: NDArray[np.int64] | None = None
    """What each code is worth; None for 1."""
    share: Fraction = Fraction(1)
    """Largest share of a class's rows that may have one code."""
    capped: int = 0
    """So many codes, the first ones, have no larger share."""


def conditions_of(schema: Schema, models: Sequence[Model]) -> list[Condition]:
    """The conditions of models on sensitive values; what every class meets anyhow is left out."""
    found = [
        _condition(model, column, attribute)
        for model in models
        if isinstance(model, CONDITIONS) and isinstance(model, SensitiveModel)
        for column, attribute in enumerate(schema.sensitive)
        if model.attribute in {None, attribute.name}
    ]
    return [one for one in found if one.need > 1 or one.gains is not None]


def packed(conditions: Sequence[Condition]) -> Conditions:
    """The conditions as arrays."""
    first, gains = [], [np.empty(0, np.int64)]
    for one in conditions:
        first.append(NONE if one.gains is None else sum(map(len, gains)))
        gains += [] if one.gains is None else [one.gains]
    caps = [(one.share.numerator, one.share.denominator, one.capped) for one in conditions]
    return Conditions(
        needs=np.array([one.need for one in conditions], np.int64),
        once=np.array([one.once for one in conditions], np.bool_),
        first=np.array(first, np.int64),
        gains=np.concatenate(gains),
        caps=np.array(caps, np.int64).reshape(-1, 3),
        is_capped=any(one.capped for one in conditions),
    )


def codes_of(schema: Schema, conditions: Sequence[Condition], sensitive: NDArray[np.int32]) -> NDArray[np.int32]:
    """What rows with these sensitive values show in each condition."""
    codes = np.empty((len(sensitive), len(conditions)), np.int32)
    for place, one in enumerate(conditions):
        column = sensitive[:, one.column]
        codes[:, place] = schema.sensitive[one.column].category_of[column] if one.by_category else column
    return codes


def rounded_share(share: float) -> Fraction:
    """A share that kernels can count with: rounded down, never up."""
    return Fraction(int(Fraction(str(share)) * SHARE_UNITS), SHARE_UNITS)


def _condition(model: Model, column: int, attribute: Attribute) -> Condition:
    match model:
        case PPlusSensitivity():
            return Condition(column, by_category=True, need=model.p, once=True)
        case PSensitivity():
            return Condition(column, by_category=False, need=model.p, once=True)
        case DistinctDiversity():
            return Condition(column, by_category=False, need=model.l, once=True)
        case CategoryWeight():
            return _weight(model, column, attribute)
        case MaxCategoryShare():
            return _share(model, column, attribute)
    raise AssertionError("a model that is no condition")


def _weight(model: CategoryWeight, column: int, attribute: Attribute) -> Condition:
    assert attribute.sensitivity is not None
    need, units = least_parts(model.alpha, attribute), attribute.sensitivity.units
    if isinstance(model, CategoryValueWeight):
        return Condition(column, by_category=False, need=need, once=True, gains=units[attribute.category_of])
    return Condition(column, by_category=True, need=need, gains=units)


def _share(model: MaxCategoryShare, column: int, attribute: Attribute) -> Condition:
    assert attribute.sensitivity is not None
    count = len(attribute.sensitivity)
    capped = 1 if isinstance(model, MaxFirstShare) else count
    share = rounded_share(float(model.share))
    return Condition(column, by_category=True, gains=np.zeros(count, np.int64), share=share, capped=capped)
