"""ℓ-diversity in its forms: a class must leave several sensitive values possible.

Machanavajjhala et al., ℓ-Diversity: Privacy Beyond k-Anonymity (2007); Xiao and Tao, Anatomy (2006) for the frequency
form; Wong et al., (α,k)-Anonymity (2006).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from microdata import Schema
from privacy.exact import Real, by_class, exact, floor_times, integers
from privacy.keys import KEYS, MOST, OneOf, Part
from privacy.model import (
    Groups,
    Histogram,
    Model,
    SensitiveModel,
    require_parameter,
    require_positive,
    require_share,
    require_whole,
)

EXACT_ENTROPY_ROWS = 10_000
"""Up to this many rows (over the counts' common divisor) an entropy at its threshold is settled with whole numbers."""


@dataclass(frozen=True)
class DistinctDiversity(SensitiveModel):
    """Every class has at least `l` distinct sensitive values."""

    l: int  # noqa: E741 - the literature's letter, and the parameter's name in policies
    attribute: str | None = None

    name = "distinct-l-diversity"
    parameter = "l"
    survives_merging = True
    survives_adding = True
    more_is_safer = True
    limited_by_domain = True

    def __post_init__(self) -> None:
        require_whole("l", self.l)

    def nearest(self, achieved: float) -> int:
        """A number of values."""
        return int(achieved)

    def _achieved(self, groups: Groups, histogram: Histogram) -> NDArray[np.float64]:  # noqa: ARG002 - one signature
        return np.diff(histogram.starts).astype(np.float64)

    def _holds(self, groups: Groups, histogram: Histogram) -> NDArray[np.bool_]:  # noqa: ARG002 - one signature
        return np.diff(histogram.starts) >= self.l


@dataclass(frozen=True)
class EntropyDiversity(SensitiveModel):
    """The entropy of the sensitive values of every class is at least log `l`."""

    l: Real  # noqa: E741 - the literature's letter, and the parameter's name in policies
    attribute: str | None = None

    name = "entropy-l-diversity"
    parameter = "l"
    survives_merging = True
    survives_adding = False
    more_is_safer = True
    limited_by_domain = True

    def __post_init__(self) -> None:
        require_parameter("l", self.l, self.l >= 1, "a number from 1", nearest=1)

    def _achieved(self, groups: Groups, histogram: Histogram) -> NDArray[np.float64]:
        """The number of equally frequent values that would have the class's entropy."""
        surprise = histogram.counts * np.log(histogram.counts)
        rows = np.maximum(groups.rows, 1)
        spent = by_class(np.add, surprise, histogram.starts, empty=0.0)
        return np.where(groups.rows > 0, np.exp(np.log(rows) - spent / rows), 0.0)

    def _holds(self, groups: Groups, histogram: Histogram) -> NDArray[np.bool_]:
        achieved, asked, l = self._achieved(groups, histogram), float(self.l), exact(self.l)  # noqa: E741 - as above
        holds = achieved >= asked * (1 + 1e-9)
        for one in np.flatnonzero(~holds & (achieved > asked * (1 - 1e-9))):
            counts = histogram.counts[histogram.starts[one] : histogram.starts[one + 1]]
            holds[one] = _entropy_reaches(l, counts)
        return holds


def _entropy_reaches(l: Fraction, counts: NDArray[np.int64]) -> bool:  # noqa: E741 - as above
    """Whether n^n ≥ l^n · Π c^c, in whole numbers; no for classes too large to tell."""
    reduced = [int(count) for count in counts // np.gcd.reduce(counts)]
    rows = sum(reduced)
    if rows > EXACT_ENTROPY_ROWS:
        return False
    return (rows * l.denominator) ** rows >= l.numerator**rows * math.prod(count**count for count in reduced)


@dataclass(frozen=True)
class RecursiveDiversity(SensitiveModel):
    """r₁ < c · (r_ℓ + r_ℓ₊₁ + …) in every class, where rᵢ counts its i-th most frequent sensitive value."""

    c: Real
    l: int  # noqa: E741 - the literature's letter, and the parameter's name in policies
    attribute: str | None = None

    name = "recursive-c-l-diversity"
    parameter = "c"
    survives_merging = True
    survives_adding = False
    more_is_safer = False
    limited_by_domain = True

    def __post_init__(self) -> None:
        require_positive("c", self.c)
        require_whole("l", self.l)

    def nearest(self, achieved: float) -> str | None:
        """A bound that c must exceed."""
        return f"c above {achieved:.4f}" if math.isfinite(achieved) else None

    def _achieved(self, groups: Groups, histogram: Histogram) -> NDArray[np.float64]:  # noqa: ARG002 - one signature
        """The c that the class stays just below."""
        largest, tail = self._sides(histogram)
        return np.where(tail > 0, largest / np.maximum(tail, 1), np.inf)

    def _holds(self, groups: Groups, histogram: Histogram) -> NDArray[np.bool_]:
        largest, tail = self._sides(histogram)
        c = exact(self.c)
        bound = max(c.numerator, c.denominator) * int(groups.rows.max(initial=1))
        return (integers(largest, bound) * c.denominator < integers(tail, bound) * c.numerator).astype(bool)

    def _sides(self, histogram: Histogram) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count of the most frequent value, and of all from the ℓ-th on."""
        order = np.lexsort((-histogram.counts, histogram.classes))
        before = np.concatenate(([0], np.cumsum(histogram.counts[order])))
        start, end = histogram.starts[:-1], histogram.starts[1:]
        largest = before[np.minimum(start + 1, end)] - before[start]
        return largest, before[end] - before[np.minimum(start + self.l - 1, end)]


@dataclass(frozen=True)
class FrequencyDiversity(SensitiveModel):
    """No sensitive value has more than a share of 1/`l` in any class."""

    l: Real  # noqa: E741 - the literature's letter, and the parameter's name in policies
    attribute: str | None = None

    name = "frequency-l-diversity"
    parameter = "l"
    survives_merging = True
    survives_adding = False
    more_is_safer = True
    limited_by_domain = True

    def __post_init__(self) -> None:
        require_parameter("l", self.l, self.l >= 1, "a number from 1", nearest=1)

    def _achieved(self, groups: Groups, histogram: Histogram) -> NDArray[np.float64]:
        return groups.rows / np.maximum(_largest(histogram), 1)

    def _holds(self, groups: Groups, histogram: Histogram) -> NDArray[np.bool_]:
        return (_largest(histogram) <= floor_times(1 / exact(self.l), groups.rows)).astype(bool)


@dataclass(frozen=True)
class AlphaK(SensitiveModel):
    """Every class is about at least `k` persons and no sensitive value has more than a share of `alpha` in it."""

    alpha: Real
    k: int
    attribute: str | None = None

    name = "alpha-k-anonymity"
    parameter = "alpha"
    survives_merging = True
    survives_adding = False
    more_is_safer = False
    limited_by_domain = True

    def __post_init__(self) -> None:
        require_share("alpha", self.alpha)
        require_whole("k", self.k)

    @property
    def least_persons(self) -> int:
        """As many as `k`."""
        return self.k

    def _achieved(self, groups: Groups, histogram: Histogram) -> NDArray[np.float64]:
        """The largest share of a value; infinite where the class has fewer than k persons."""
        share = _largest(histogram) / np.maximum(groups.rows, 1)
        return np.where(groups.persons >= self.k, share, np.inf)

    def _holds(self, groups: Groups, histogram: Histogram) -> NDArray[np.bool_]:
        rare = (_largest(histogram) <= floor_times(exact(self.alpha), groups.rows)).astype(bool)
        return rare & (groups.persons >= self.k)


def _largest(histogram: Histogram) -> NDArray[np.int64]:
    """Rows of the most frequent value of each class."""
    return by_class(np.maximum, histogram.counts, histogram.starts, empty=0)


class Recursive(Part):
    """Parameters of recursive (c,ℓ)-diversity."""

    c: float = Field(gt=0, allow_inf_nan=False, description="r₁ < c · (r_ℓ + r_ℓ₊₁ + …); above 0")
    l: int = Field(ge=1, le=MOST, description="from which rank on values are summed; a whole number from 1")  # noqa: E741 - as above


class Diversity(OneOf):
    """ℓ-diversity in one of its forms; a bare number means distinct values."""

    plain = "distinct"

    distinct: int | None = Field(
        None, ge=1, le=MOST, description="distinct sensitive values per class; a whole number from 1"
    )
    entropy: float | None = Field(
        None, ge=1, allow_inf_nan=False, description="the entropy of a class is at least the logarithm of this; from 1"
    )
    recursive: Recursive | None = Field(None, description="recursive (c,ℓ)-diversity")
    frequency: float | None = Field(
        None, ge=1, allow_inf_nan=False, description="no value has a share above 1 over this; from 1"
    )


@KEYS.add(
    "l",
    Diversity,
    DistinctDiversity,
    EntropyDiversity,
    RecursiveDiversity,
    FrequencyDiversity,
    requests=[
        (2, 5),
        ({"entropy": 1.5}, {"entropy": 3.5}),
        ({"recursive": {"c": 3, "l": 2}}, {"recursive": {"c": 0.9, "l": 2}}),
        ({"frequency": 1.5}, {"frequency": 2.8}),
    ],
    description="diversity of sensitive values: a number of distinct values, or one of the other forms",
)
def _diversity(given: Diversity, _beside: Mapping[str, Any], _schema: Schema) -> Iterator[Model]:
    if given.distinct is not None:
        yield DistinctDiversity(given.distinct)
    if given.entropy is not None:
        yield EntropyDiversity(given.entropy)
    if given.recursive is not None:
        yield RecursiveDiversity(given.recursive.c, given.recursive.l)
    if given.frequency is not None:
        yield FrequencyDiversity(given.frequency)


@KEYS.add(
    "alpha",
    float,
    AlphaK,
    requests=[(0.8, 0.4)],
    gt=0,
    le=1,
    description="largest share of a sensitive value; above 0, at most 1",
)
def _alpha(given: float, beside: Mapping[str, Any], _schema: Schema) -> Iterator[AlphaK]:
    yield AlphaK(given, beside.get("k", 1))
