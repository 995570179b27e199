"""β-likeness: no sensitive value is much more likely in a class than in the table.

An attacker who knows the table's distribution gains (q - p) / p on a value with share p in the table and q in the
class; only gains are bounded. Enhanced, the gain is also at most -ln p, which keeps frequent values from reaching
certainty.

Cao and Karras, Publishing Microdata with a Robust Privacy Guarantee (2012).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from microdata import Attribute, Category, InfeasibleError, Number, Schema
from privacy._kernels import range_gains
from privacy.emd import node_reference
from privacy.exact import SLACK, Real, by_class, exact, integers
from privacy.keys import KEYS, OneOf, Part
from privacy.model import Groups, Histogram, Model, SensitiveModel, require_parameter, require_positive, require_whole


@dataclass(frozen=True, eq=False)
class Shares:
    """Values (or sets of values) with their counts in a class of `rows` rows and in the reference of `total`."""

    inside: NDArray[np.int64]
    reference: NDArray[np.int64]
    rows: NDArray[np.int64]
    total: int

    @classmethod
    def of(cls, groups: Groups, histogram: Histogram) -> Shares:
        """Every value that occurs in a class; the others are no gain."""
        reference = histogram.reference[histogram.values]
        return cls(histogram.counts, reference, groups.rows[histogram.classes], histogram.total)

    def gain(self) -> NDArray[np.float64]:
        """(q - p) / p, 0 for a loss, infinite for what the reference does not have."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.inside * float(self.total) / (self.reference * self.rows.astype(np.float64))
        return np.where(self.inside > 0, np.where(self.reference > 0, np.maximum(ratio - 1, 0), np.inf), 0.0)

    def within(self, beta: Real) -> NDArray[np.bool_]:
        """Whether q ≤ (1 + β) p, exactly."""
        factor = 1 + exact(beta)
        top, bottom = factor.numerator, factor.denominator
        most = int(self.rows.max(initial=1))
        largest = max(top, bottom) * max(self.total, 1) * most
        held = integers(self.inside, largest) * (self.total * bottom)
        allowed = integers(self.reference, largest) * self.rows * top
        return np.asarray(held <= allowed, bool) & ((self.reference > 0) | (self.inside == 0))

    def within_logarithm(self) -> NDArray[np.bool_]:
        """Whether q ≤ p (1 - ln p), on the safe side."""
        p = self.reference / max(self.total, 1)
        q = self.inside / np.maximum(self.rows, 1)
        bound = p * (1 - np.log(np.where(p > 0, p, 1.0)))
        return (q <= bound * (1 - SLACK)) | self.within(0)


@dataclass(frozen=True)
class BetaLikeness(SensitiveModel):
    """No class has a value of share p in the table more often than p (1 + min(β, -ln p)); basic: than p (1 + β)."""

    beta: Real
    kind: Literal["enhanced", "basic"] = "enhanced"
    attribute: str | None = None

    name = "beta-likeness"
    parameter = "beta"
    survives_merging = True
    survives_adding = False
    more_is_safer = False
    checked_on = "window"

    def __post_init__(self) -> None:
        require_positive("beta", self.beta)

    def _achieved(self, groups: Groups, histogram: Histogram) -> NDArray[np.float64]:
        """The largest gain; enhanced, infinite where a gain exceeds its logarithmic bound."""
        shares = Shares.of(groups, histogram)
        gain = shares.gain()
        if self.kind == "enhanced":
            gain = np.where(shares.within_logarithm(), gain, np.inf)
        return by_class(np.maximum, gain, histogram.starts, empty=0.0)

    def _holds(self, groups: Groups, histogram: Histogram) -> NDArray[np.bool_]:
        shares = Shares.of(groups, histogram)
        holds = shares.within(self.beta)
        if self.kind == "enhanced":
            holds &= shares.within_logarithm()
        return by_class(np.logical_and, holds, histogram.starts, empty=True)


@dataclass(frozen=True)
class SemanticLikeness(SensitiveModel):
    """Enhanced β-likeness for groups of related values: every inner node of the hierarchy up to `height`.

    Single values are not part of it; ask for `BetaLikeness` beside it.
    """

    beta: Real
    height: int
    attribute: str | None = None

    name = "semantic-beta-likeness"
    parameter = "beta"
    survives_merging = True
    survives_adding = False
    more_is_safer = False
    checked_on = "window"

    def __post_init__(self) -> None:
        require_positive("beta", self.beta)
        require_whole("height", self.height)

    def objection(self, attribute: Attribute) -> str | None:
        """A number has no inner nodes."""
        return None if isinstance(attribute, Category) else "a number has no hierarchy"

    def _achieved(self, groups: Groups, histogram: Histogram) -> NDArray[np.float64]:
        result = np.zeros(len(groups))
        for classes, shares in self._levels(groups, histogram):
            np.maximum.at(result, classes, np.where(shares.within_logarithm(), shares.gain(), np.inf))
        return result

    def _holds(self, groups: Groups, histogram: Histogram) -> NDArray[np.bool_]:
        result = np.ones(len(groups), bool)
        for classes, shares in self._levels(groups, histogram):
            np.logical_and.at(result, classes, shares.within(self.beta) & shares.within_logarithm())
        return result

    def _levels(self, groups: Groups, histogram: Histogram) -> list[tuple[NDArray[np.int64], Shares]]:
        reference = node_reference(histogram)
        return [
            (
                level.classes,
                Shares(level.counts, reference[level.nodes], groups.rows[level.classes], histogram.total),
            )
            for level in histogram.nodes()
            if 1 <= level.height <= self.height
        ]


@dataclass(frozen=True)
class RangeLikeness(SensitiveModel):
    """Enhanced β-likeness for every run of neighbouring numbers whose ends are at most `width` apart.

    Relative, the distance of the ends is measured in units of the smaller end, which must be positive. A single value
    is a run too.
    """

    beta: Real
    width: Real
    relative: bool = False
    attribute: str | None = None

    name = "range-beta-likeness"
    parameter = "beta"
    survives_merging = True
    survives_adding = False
    more_is_safer = False
    checked_on = "window"

    def __post_init__(self) -> None:
        require_positive("beta", self.beta)
        require_parameter("width", self.width, self.width >= 0, "0 or more", nearest=0)

    def objection(self, attribute: Attribute) -> str | None:
        """A category has no widths, and 0 no multiples."""
        if not isinstance(attribute, Number):
            return "a category has no widths"
        return "a relative width needs a domain above 0" if self.relative and attribute.low <= 0 else None

    def _achieved(self, groups: Groups, histogram: Histogram) -> NDArray[np.float64]:
        shares, bounded = self._worst(groups, histogram)
        return np.where(bounded, shares.gain(), np.inf)

    def _holds(self, groups: Groups, histogram: Histogram) -> NDArray[np.bool_]:
        shares, bounded = self._worst(groups, histogram)
        return bounded & shares.within(self.beta)

    def _worst(self, groups: Groups, histogram: Histogram) -> tuple[Shares, NDArray[np.bool_]]:
        """The run of greatest gain of each class, and whether all its runs keep the logarithmic bound.

        A run may be cut back to the class's own values at both ends: that leaves q and makes p, and with it the bound,
        only smaller. So the runs between own values decide.
        """
        # Shares do not change when counts are divided, and the kernel's 64-bit products reach further.
        common = max(int(np.gcd.reduce(histogram.counts)), 1)
        divisor = max(int(np.gcd.reduce(histogram.reference)), 1)
        rows = groups.rows // common
        assert histogram.total // divisor * int(rows.max(initial=0)) < 2**63
        inside, reference, bounded = range_gains(
            histogram.starts,
            histogram.values,
            np.concatenate(([0], np.cumsum(histogram.counts // common))),
            np.concatenate(([0], np.cumsum(histogram.reference // divisor))),
            rows,
            self._reach(histogram),
            SLACK,
        )
        return Shares(inside, reference, rows, histogram.total // divisor), bounded

    def _reach(self, histogram: Histogram) -> NDArray[np.int64]:
        """Index of the last value within `width` of each value of the domain."""
        attribute = histogram.attribute
        assert isinstance(attribute, Number)
        low, grid, width = exact(attribute.low), exact(attribute.grid or 0), exact(self.width)
        index = np.arange(len(histogram.reference))
        if not self.relative:
            return index + min(int(width // grid), len(index))
        # From v = low + i · grid one may go on by width · v: i grows by ⌊(width / grid) · low + width · i⌋.
        base = width * low / grid
        common = base.denominator * width.denominator
        first, each = base.numerator * width.denominator, width.numerator * base.denominator
        largest = max(first + each * len(index), common)
        further = (integers(index, largest) * each + first) // common
        return index + np.minimum(further, len(index)).astype(np.int64)


class SemanticParameters(Part):
    """Parameters of semantic β-likeness."""

    beta: float = Field(gt=0, allow_inf_nan=False, description="largest relative gain; above 0")
    height: int = Field(
        ge=1, le=1000, description="inner nodes up to this height are bounded too; a whole number from 1"
    )


class RangeParameters(Part):
    """Parameters of range-based β-likeness."""

    beta: float = Field(gt=0, allow_inf_nan=False, description="largest relative gain; above 0")
    width: float = Field(ge=0, allow_inf_nan=False, description="runs of numbers up to this wide are bounded; from 0")
    relative: bool = Field(
        default=False, description="width in units of the run's smaller end (needs a domain above 0)"
    )


class Likeness(OneOf):
    """β-likeness in one of its forms; a bare number means enhanced."""

    plain = "enhanced"

    enhanced: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="largest relative gain on a value, at most -ln p; above 0"
    )
    basic: float | None = Field(None, gt=0, allow_inf_nan=False, description="largest relative gain; above 0")
    semantic: SemanticParameters | None = Field(None, description="enhanced, and for groups of related values")
    range: RangeParameters | None = Field(None, description="enhanced, and for runs of neighbouring numbers")

    def models(self, schema: Schema) -> Iterator[Model]:
        """The models of the form that is given; the extended forms protect single values too."""
        if self.basic is not None:
            yield BetaLikeness(self.basic, "basic")
        if self.enhanced is not None:
            yield BetaLikeness(self.enhanced)
        if self.semantic is not None:
            semantic = self.semantic
            yield BetaLikeness(semantic.beta)
            for name in _named(schema, Category, "semantic", "a sensitive category"):
                yield SemanticLikeness(semantic.beta, semantic.height, attribute=name)
        if self.range is not None:
            ranged = self.range
            yield BetaLikeness(ranged.beta)
            for name in _named(schema, Number, "range", "a sensitive number"):
                yield RangeLikeness(ranged.beta, ranged.width, ranged.relative, attribute=name)


def _named(schema: Schema, kind: type[Attribute], form: str, wanted: str) -> list[str]:
    names = [attribute.name for attribute in schema.sensitive if isinstance(attribute, kind)]
    if not names:
        raise InfeasibleError(f"{form} likeness needs {wanted}; the schema has none", parameter="beta")
    return names


@KEYS.add(
    "beta",
    Likeness,
    BetaLikeness,
    SemanticLikeness,
    RangeLikeness,
    requests=[
        (3, 0.3),
        ({"basic": 3}, {"basic": 0.3}),
        ({"semantic": {"beta": 3, "height": 1}}, {"semantic": {"beta": 0.3, "height": 1}}),
        ({"range": {"beta": 3, "width": 2}}, {"range": {"beta": 0.3, "width": 2}}),
    ],
    description="largest relative gain on a sensitive value (enhanced), or another form",
)
def _likeness(given: Likeness, _beside: Mapping[str, Any], schema: Schema) -> Iterator[Model]:
    return given.models(schema)
