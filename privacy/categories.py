"""Categories of sensitivity: a class must not show that somebody belongs to one of the delicate ones.

p-sensitive, p⁺-sensitive, (p,α)- and (p⁺,α)-sensitive k-anonymity are what these conditions say together with k:

    p-sensitive                        k, p
    p⁺-sensitive                       k, p_categories
    (p,α)-sensitive                    k, p, alpha_weight
    (p⁺,α)- or enhanced (p,α)-sensitive  k, p_categories, alpha_weight

None of them bounds how many rows of a class are in one category: three of four may be in the most sensitive one. That
is what `max_category_share` is for.

Truta and Vinay, Privacy Protection: p-Sensitive k-Anonymity Property (2006); Sun, Privacy Preserving Data Sharing in
Data Mining Environment (2010), chapter 3; Sadad, Preventing Sensitive Attribute Disclosure Using Improved k-Anonymity
Model (2012).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from microdata import Attribute, Schema
from privacy.exact import Real, by_class, exact, floor_times
from privacy.keys import KEYS, MOST, Form, not_asked
from privacy.model import Groups, Histogram, SensitiveModel, require_positive, require_share, require_whole


@dataclass(frozen=True)
class PSensitivity(SensitiveModel):
    """Every class has at least `p` distinct sensitive values."""

    p: int
    attribute: str | None = None

    name: ClassVar[str] = "p-sensitivity"
    parameter: ClassVar[str] = "p"
    survives_merging = True
    survives_adding = True
    more_is_safer = True
    limited_by_domain = True

    def __post_init__(self) -> None:
        require_whole(self.parameter, self.p)

    def nearest(self, achieved: float) -> int:
        """A number of values."""
        return int(achieved)

    def _achieved(self, groups: Groups, histogram: Histogram) -> NDArray[np.float64]:
        return self._present(groups, histogram).astype(np.float64)

    def _holds(self, groups: Groups, histogram: Histogram) -> NDArray[np.bool_]:
        return self._present(groups, histogram) >= self.p

    def _present(self, groups: Groups, histogram: Histogram) -> NDArray[np.int64]:  # noqa: ARG002 - one signature
        """How many different values each class has."""
        return np.diff(histogram.starts)


class _OfCategories(SensitiveModel):
    """A condition on the categories of an attribute that has them."""

    def objection(self, attribute: Attribute) -> str | None:
        """Without categories nothing would be protected."""
        return None if attribute.sensitivity else "it has no categories; declare its sensitivity"


@dataclass(frozen=True)
class PPlusSensitivity(_OfCategories, PSensitivity):
    """Every class has values of at least `p` categories of sensitivity."""

    name = "p-plus-sensitivity"

    def _present(self, groups: Groups, histogram: Histogram) -> NDArray[np.int64]:  # noqa: ARG002 - as above
        """How many different categories each class has."""
        return histogram.categories.present


@dataclass(frozen=True)
class CategoryWeight(_OfCategories):
    """The weights of the categories of a class's rows add up to at least `alpha`."""

    alpha: Real
    attribute: str | None = None

    name: ClassVar[str] = "category-weight"
    parameter = "alpha"
    survives_merging = True
    survives_adding = True
    more_is_safer = True

    def __post_init__(self) -> None:
        require_positive("alpha_weight", self.alpha)

    def _achieved(self, groups: Groups, histogram: Histogram) -> NDArray[np.float64]:  # noqa: ARG002 - as above
        return self._total(histogram) / _parts(histogram.attribute)

    def _holds(self, groups: Groups, histogram: Histogram) -> NDArray[np.bool_]:  # noqa: ARG002 - as above
        return self._total(histogram) >= least_parts(self.alpha, histogram.attribute)

    def _total(self, histogram: Histogram) -> NDArray[np.int64]:
        """The weight of each class, in parts: every row counts, as in the tables of the literature."""
        return by_class(np.add, histogram.counts * histogram.weights, histogram.starts, empty=0)


@dataclass(frozen=True)
class CategoryValueWeight(CategoryWeight):
    """The weights of the distinct values of a class add up to at least `alpha`; a value that repeats counts once."""

    name = "category-value-weight"
    limited_by_domain = True

    def _total(self, histogram: Histogram) -> NDArray[np.int64]:
        """The weight of each class, in parts."""
        return by_class(np.add, histogram.weights, histogram.starts, empty=0)


@dataclass(frozen=True)
class MaxCategoryShare(_OfCategories):
    """No category of sensitivity has more than this share of a class's rows."""

    share: Real
    attribute: str | None = None

    name: ClassVar[str] = "max-category-share"
    parameter = "share"
    survives_merging = True
    survives_adding = False
    more_is_safer = False
    limited_by_domain = True

    def __post_init__(self) -> None:
        require_share("max_category_share", self.share)

    def best_counts(self, attribute: Attribute) -> NDArray[np.int64]:
        """One row of each category."""
        counts = np.zeros(attribute.size or 0, np.int64)
        counts[np.unique(attribute.category_of, return_index=True)[1]] = 1
        return counts

    def _achieved(self, groups: Groups, histogram: Histogram) -> NDArray[np.float64]:
        return self._largest(histogram) / np.maximum(groups.rows, 1)

    def _holds(self, groups: Groups, histogram: Histogram) -> NDArray[np.bool_]:
        return (self._largest(histogram) <= floor_times(exact(self.share), groups.rows)).astype(bool)

    def _largest(self, histogram: Histogram) -> NDArray[np.int64]:
        """Rows of the category that is bounded, of each class."""
        return histogram.categories.most


@dataclass(frozen=True)
class MaxFirstShare(MaxCategoryShare):
    """The most sensitive category has no more than this share of a class's rows."""

    name = "max-first-category-share"

    def best_counts(self, attribute: Attribute) -> NDArray[np.int64]:
        """None of the most sensitive category, where there is another."""
        others = (attribute.category_of > 0).astype(np.int64)
        return others if others.any() else np.ones_like(others)

    def _largest(self, histogram: Histogram) -> NDArray[np.int64]:
        return histogram.categories.first


def _parts(attribute: Attribute) -> int:
    assert attribute.sensitivity is not None
    return attribute.sensitivity.parts


def least_parts(alpha: Real, attribute: Attribute) -> int:
    """The least weight, in parts, that is not below alpha."""
    asked = exact(alpha) * _parts(attribute)
    return -(-asked.numerator // asked.denominator)


class PerAttribute(Form):
    """Something that is asked for: as a bare number of every sensitive attribute, or of some of them."""

    plain = "every"

    @model_validator(mode="after")
    def _one_of_both(self) -> PerAttribute:
        if (getattr(self, "every", None) is None) == (not getattr(self, "each", None)):
            raise ValueError("exactly one of every, each is needed")
        return self

    def asked(self) -> Iterator[tuple[Any, str | None]]:
        """What is asked for, and of which attribute: None for every one."""
        every: Any = getattr(self, "every", None)
        each: Mapping[str, Any] = getattr(self, "each", None) or {}
        return iter([(every, None)] if every is not None else [(value, name) for name, value in each.items()])


_EVERY = "of every sensitive attribute"
_EACH = "of these sensitive attributes, each its own number: {attribute: number}"
Few: TypeAlias = Annotated[int, Field(ge=1, le=MOST)]
Weight: TypeAlias = Annotated[float, Field(gt=0, le=MOST)]
Share: TypeAlias = Annotated[float, Field(gt=0, le=1)]


class Distinct(PerAttribute):
    """How many different values or categories a class needs."""

    every: Few | None = Field(None, description=_EVERY)
    each: dict[str, Few] | None = Field(None, description=_EACH)


class LeastWeight(PerAttribute):
    """How much the categories of a class must weigh."""

    every: Weight | None = Field(None, description=_EVERY)
    each: dict[str, Weight] | None = Field(None, description=_EACH)
    over: Literal["rows", "values"] = Field("rows", description="count every row, or every distinct value once")


class LargestShare(PerAttribute):
    """How many of a class's rows may be in one category."""

    every: Share | None = Field(None, description=_EVERY)
    each: dict[str, Share] | None = Field(None, description=_EACH)
    of: Literal["all", "first"] = Field("all", description="bound every category, or the most sensitive one alone")


@KEYS.add(
    "p",
    Distinct,
    PSensitivity,
    requests=[(2, 5)],
    exclude_if=not_asked,
    description="distinct sensitive values per class (p-sensitive); a whole number from 1",
)
def _values(given: Distinct, _beside: Mapping[str, Any], _schema: Schema) -> Iterator[PSensitivity]:
    for p, attribute in given.asked():
        yield PSensitivity(p, attribute)


@KEYS.add(
    "p_categories",
    Distinct,
    PPlusSensitivity,
    requests=[(2, 3)],
    exclude_if=not_asked,
    description="distinct categories of sensitivity per class (p⁺-sensitive); a whole number from 1",
)
def _categories(given: Distinct, _beside: Mapping[str, Any], _schema: Schema) -> Iterator[PPlusSensitivity]:
    for p, attribute in given.asked():
        yield PPlusSensitivity(p, attribute)


@KEYS.add(
    "alpha_weight",
    LeastWeight,
    CategoryWeight,
    CategoryValueWeight,
    requests=[(1.5, 8), ({"every": 0.5, "over": "values"}, {"every": 2, "over": "values"})],
    exclude_if=not_asked,
    description="least total weight of a class's categories of sensitivity; above 0",
)
def _weight(given: LeastWeight, _beside: Mapping[str, Any], _schema: Schema) -> Iterator[CategoryWeight]:
    model = CategoryWeight if given.over == "rows" else CategoryValueWeight
    for alpha, attribute in given.asked():
        yield model(alpha, attribute)


@KEYS.add(
    "max_category_share",
    LargestShare,
    MaxCategoryShare,
    MaxFirstShare,
    requests=[(0.8, 0.4), ({"every": 0.6, "of": "first"}, {"every": 0.2, "of": "first"})],
    exclude_if=not_asked,
    description="largest share of a category of sensitivity in a class's rows; above 0, at most 1",
)
def _share(given: LargestShare, _beside: Mapping[str, Any], _schema: Schema) -> Iterator[MaxCategoryShare]:
    model = MaxCategoryShare if given.of == "all" else MaxFirstShare
    for share, attribute in given.asked():
        yield model(share, attribute)
