"""β-likeness as caps: the largest share that a value, or a run of neighbouring values, may have in a class."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from microdata import Attribute, Category, Number, Schema
from privacy import BetaLikeness, Model, RangeLikeness, SemanticLikeness, SensitiveModel
from privacy.exact import SLACK, exact
from static_algos.limits import Cap, Reference

_FINE = 2**60


def likeness_caps(models: Iterable[Model], schema: Schema, references: Sequence[Reference]) -> list[list[Cap]]:
    """The caps of every sensitive attribute whose distributions are the references."""
    asked = list(models)
    return [
        [
            cap
            for model in asked
            if isinstance(model, SensitiveModel) and model.attribute in {None, attribute.name}
            for cap in _caps(model, attribute, reference)
        ]
        for attribute, reference in zip(schema.sensitive, references, strict=True)
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


def _caps(model: SensitiveModel, attribute: Attribute, reference: Reference) -> Iterator[Cap]:
    before = np.concatenate(([0], np.cumsum(reference))).tolist()

    def cap(first: int, last: int, beta: Fraction, *, enhanced: bool = True) -> Cap:
        return Cap(first, last, largest_share(before[last + 1] - before[first], before[-1], beta, enhanced=enhanced))

    if isinstance(model, BetaLikeness):
        for value in range(len(reference)):
            yield cap(value, value, exact(model.beta), enhanced=model.kind == "enhanced")
    elif isinstance(model, SemanticLikeness) and isinstance(attribute, Category):
        tree = attribute.hierarchy
        for node in np.flatnonzero((tree.height >= 1) & (tree.height <= model.height)):
            yield cap(int(tree.first[node]), int(tree.last[node]), exact(model.beta))
    elif isinstance(model, RangeLikeness) and isinstance(attribute, Number):
        for first, last in enumerate(_last_within(model, attribute, len(reference))):
            for end in range(first, last + 1):
                yield cap(first, end, exact(model.beta))


def _last_within(model: RangeLikeness, attribute: Number, size: int) -> list[int]:
    """For each value, the last one that is at most `width` away."""
    low, grid, width = exact(attribute.low), exact(attribute.grid or 0), exact(model.width)
    reach = [width * (low + first * grid) if model.relative else width for first in range(size)]
    return [min(size - 1, first + int(further // grid)) for first, further in enumerate(reach)]
