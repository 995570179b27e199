"""β-likeness as caps: the largest share that a value, or a run of neighbouring values, may have in a class."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, Category, Number, Schema
from privacy import BetaLikeness, Model, RangeLikeness, SemanticLikeness, SensitiveModel
from privacy.exact import SLACK, exact
from static_algos.limits import Cap, Reference

_FINE = 2**60


def likeness_caps(
    models: Iterable[Model],
    schema: Schema,
    references: Sequence[Reference],
    present: Sequence[NDArray[np.int64]] | None = None,
) -> list[list[Cap]]:
    """The caps of every sensitive attribute whose distributions are the references.

    `present` are the values that rows have, ascending, per attribute: caps that no class of such rows can reach, or
    that a narrower one implies, are left out. A domain may be large, and a table have few of its values.
    """
    asked = list(models)
    values = present if present is not None else [np.arange(len(reference)) for reference in references]
    return [
        [
            cap
            for model in asked
            if isinstance(model, SensitiveModel) and model.attribute in {None, attribute.name}
            for cap in _caps(model, attribute, reference, own)
        ]
        for attribute, reference, own in zip(schema.sensitive, references, values, strict=True)
    ]


def value_caps(caps: Iterable[Cap], size: int) -> list[Fraction]:
    """The cap of every single value of a domain of this size; 1 where there is none."""
    shares = [Fraction(1)] * size
    for cap in caps:
        if cap.first == cap.last:
            shares[cap.first] = min(shares[cap.first], cap.share)
    return shares


def largest_share(count: int, total: int, beta: Fraction, *, enhanced: bool = True) -> Fraction:
    """f(p) = p (1 + min(β, -ln p)), or p (1 + β); the logarithm is rounded to the safe side."""
    p = Fraction(count, total)
    linear = min(p * (1 + beta), Fraction(1))
    if not enhanced or not 0 < p < 1:
        return linear
    # The models keep the same distance from the logarithm, so that a class within this cap passes their check.
    bound = float(p) * (1 - math.log(p)) * (1 - 2 * SLACK)
    return min(linear, max(p, Fraction(math.floor(bound * _FINE), _FINE)))


def _caps(
    model: SensitiveModel, attribute: Attribute, reference: Reference, present: NDArray[np.int64]
) -> Iterator[Cap]:
    before = np.concatenate(([0], np.cumsum(reference)))
    total = int(before[-1])

    def cap(first: int, last: int, beta: Fraction, *, enhanced: bool = True) -> Cap:
        share = largest_share(int(before[last + 1] - before[first]), total, beta, enhanced=enhanced)
        return Cap(first, last, share)

    if isinstance(model, BetaLikeness):
        beta = exact(model.beta)
        for value in present.tolist():
            yield cap(value, value, beta, enhanced=model.kind == "enhanced")
    elif isinstance(model, SemanticLikeness) and isinstance(attribute, Category):
        tree, beta = attribute.hierarchy, exact(model.beta)
        reached = np.searchsorted(present, tree.first) < np.searchsorted(present, tree.last, side="right")
        for node in np.flatnonzero((tree.height >= 1) & (tree.height <= model.height) & reached):
            yield cap(int(tree.first[node]), int(tree.last[node]), beta)
    elif isinstance(model, RangeLikeness) and isinstance(attribute, Number):
        # A run that is cut back to values that rows have holds the same rows, and its cap is no larger.
        beta, values = exact(model.beta), present.tolist()
        for number, last in enumerate(_last_within(model, attribute, values)):
            for end in values[number : bisect_right(values, last)]:
                yield cap(values[number], end, beta)


def _last_within(model: RangeLikeness, attribute: Number, values: list[int]) -> list[int]:
    """For each of these values, the last one that is at most `width` away."""
    low, grid, width = exact(attribute.low), exact(attribute.grid or 0), exact(model.width)
    reach = [width * (low + value * grid) if model.relative else width for value in values]
    return [value + int(further // grid) for value, further in zip(values, reach, strict=True)]
