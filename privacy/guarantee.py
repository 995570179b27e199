"""A guarantee as people write it: which models, with which parameters.

Algorithms that can keep any guarantee inherit these fields as their own parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from microdata import Attribute, Category, InfeasibleError, Number, Schema, SchemaError, Table
from privacy.closeness import TCloseness
from privacy.disclosure import DeltaDisclosure
from privacy.diversity import AlphaK, DistinctDiversity, EntropyDiversity, FrequencyDiversity, RecursiveDiversity
from privacy.emd import Ground
from privacy.k_anonymity import KAnonymity, MaxShare
from privacy.likeness import BetaLikeness, RangeLikeness, SemanticLikeness
from privacy.model import Groups, Histogram, Model, SensitiveModel

MOST = 10**12
"""Persons, values and levels that a guarantee may count: more than any table has, and far from the end of a word."""


class _Part(BaseModel):
    """Part of a guarantee: unknown names are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _Form(_Part):
    """A part that may be written as a bare number, which then is the field `plain`."""

    plain: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, given: Any) -> Any:
        return given if isinstance(given, Mapping | cls) else {cls.plain: given}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        form = handler.resolve_ref_schema(handler(core))
        field = form["properties"][cls.plain]
        number = next((one for one in field.get("anyOf", []) if one.get("type") != "null"), field)
        return {"anyOf": [number, form]}


class _OneOf(_Form):
    """A form of which exactly one field is given."""

    @model_validator(mode="after")
    def _exactly_one(self) -> _OneOf:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"exactly one of {', '.join(type(self).model_fields)} is needed, given {len(given)}")
        return self


class Recursive(_Part):
    """Parameters of recursive (c,ℓ)-diversity."""

    c: float = Field(gt=0, allow_inf_nan=False, description="r₁ < c · (r_ℓ + r_ℓ₊₁ + …); above 0")
    l: int = Field(ge=1, le=MOST, description="from which rank on values are summed; a whole number from 1")  # noqa: E741 - as below


class Diversity(_OneOf):
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

    def models(self) -> Iterator[Model]:
        """The model of the form that is given."""
        if self.distinct is not None:
            yield DistinctDiversity(self.distinct)
        if self.entropy is not None:
            yield EntropyDiversity(self.entropy)
        if self.recursive is not None:
            yield RecursiveDiversity(self.recursive.c, self.recursive.l)
        if self.frequency is not None:
            yield FrequencyDiversity(self.frequency)


class Closeness(_Form):
    """t-closeness; a bare number is the threshold."""

    plain = "threshold"

    threshold: float = Field(ge=0, le=1, description="largest earth mover's distance of a class from all rows; 0 to 1")
    ground: Ground = Field(
        "auto",
        description="distance of two values: auto is the rank among the values that occur for numbers (rank), else "
        "hierarchy; domain is the rank in the declared domain",
    )


class SemanticParameters(_Part):
    """Parameters of semantic β-likeness."""

    beta: float = Field(gt=0, allow_inf_nan=False, description="largest relative gain; above 0")
    height: int = Field(
        ge=1, le=1000, description="inner nodes up to this height are bounded too; a whole number from 1"
    )


class RangeParameters(_Part):
    """Parameters of range-based β-likeness."""

    beta: float = Field(gt=0, allow_inf_nan=False, description="largest relative gain; above 0")
    width: float = Field(ge=0, allow_inf_nan=False, description="runs of numbers up to this wide are bounded; from 0")
    relative: bool = Field(
        default=False, description="width in units of the run's smaller end (needs a domain above 0)"
    )


class Likeness(_OneOf):
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


class Guarantee(_Part):
    """What every class must meet. Everything that is given must hold.

    >>> from microdata import Category, Hierarchy, Number, PersonSource, Schema
    >>> illness = Category("illness", Hierarchy.flat(["flu", "ulcer", "cancer"]))
    >>> schema = Schema(PersonSource.ROW, (Number("age", 0, 120),), (illness,))
    >>> Guarantee(k=5, l={"entropy": 2.5}).models(schema)
    (KAnonymity(k=5), EntropyDiversity(l=2.5, attribute=None))
    """

    k: int | None = Field(None, ge=1, le=MOST, description="distinct persons per class; a whole number from 1")
    l: Diversity | None = Field(  # noqa: E741 - the literature's letter
        None, description="diversity of sensitive values: a number of distinct values, or one of the other forms"
    )
    alpha: float | None = Field(None, gt=0, le=1, description="largest share of a sensitive value; above 0, at most 1")
    t: Closeness | None = Field(None, description="closeness to the distribution of all rows, from 0 (equal) to 1")
    beta: Likeness | None = Field(
        None, description="largest relative gain on a sensitive value (enhanced), or another form"
    )
    disclosure: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="δ: |ln(q / p)| stays below it for every value; above 0"
    )
    max_share: float | None = Field(
        None, gt=0, le=1, description="largest share of a class's rows that one person may have; above 0, at most 1"
    )

    def models(self, schema: Schema) -> tuple[Model, ...]:
        """The models, checked against the schema: what no data could meet is refused with the nearest value."""
        found = tuple(self._models(schema))
        if not found:
            names = ", ".join(Guarantee.model_fields)
            raise InfeasibleError(f"nothing is asked for; give at least one of {names}", parameter="guarantee")
        check_domains(found, schema)
        return found

    def _models(self, schema: Schema) -> Iterator[Model]:
        if self.k is not None:
            yield KAnonymity(self.k)
        if self.max_share is not None:
            yield MaxShare(self.max_share)
        if self.l is not None:
            yield from self.l.models()
        if self.alpha is not None:
            yield AlphaK(self.alpha, self.k or 1)
        if self.t is not None:
            yield TCloseness(self.t.threshold, self.t.ground)
        if self.beta is not None:
            yield from self.beta.models(schema)
        if self.disclosure is not None:
            yield DeltaDisclosure(self.disclosure)


def check_domains(models: Iterable[Model], schema: Schema) -> None:
    """Refuse what no data of this schema can meet."""
    for model in models:
        if isinstance(model, SensitiveModel):
            _check_domain(model, schema)


def check_feasible(models: Iterable[Model], table: Table) -> None:
    """Refuse what cannot be met by publishing every row of this table.

    A union of classes that meet a model meets it too (where the model survives merging). So if the whole table as one
    class does not, no partition does, and what it achieves is the nearest feasible value.
    """
    if not len(table):
        return
    whole = Groups.of(table.schema, table.persons, table.sensitive, np.zeros(len(table), np.int32), 1)
    for model in models:
        if model.survives_merging and not model.holds(whole)[0]:
            reason = f"{model.label} of {model.asked:g} cannot be met, even by all {len(table)} rows as one class"
            raise InfeasibleError(reason, parameter=_parameter(model), nearest=_nearest(model, whole))


_BY_DOMAIN = (DistinctDiversity, EntropyDiversity, RecursiveDiversity, FrequencyDiversity, AlphaK)
"""Models that a small sensitive domain can make infeasible, whatever the data."""


def _check_domain(model: SensitiveModel, schema: Schema) -> None:
    protected = [one for one in schema.sensitive if model.attribute in {None, one.name}]
    try:
        model.check_attributes(protected)
    except SchemaError as error:
        raise InfeasibleError(str(error), parameter=_parameter(model)) from None
    if not isinstance(model, _BY_DOMAIN):
        return
    for attribute in protected:
        best = _even(attribute)
        if not model.holds(best)[0]:
            reason = (
                f"{model.label} of {model.asked:g} cannot be met by the {attribute.size} values of {attribute.name}"
            )
            raise InfeasibleError(reason, parameter=_parameter(model), nearest=_nearest(model, best))


def _even(attribute: Attribute) -> Groups:
    """The most diverse class that a domain allows: each value once, each row another person."""
    values = np.arange(attribute.size or 0, dtype=np.int32)
    counts, rows = np.ones(len(values), np.int64), np.array([len(values)])
    histogram = Histogram(attribute, counts, np.array([0, len(values)]), values, counts)
    return Groups(
        rows=rows, persons=np.array([np.iinfo(np.int64).max]), most=np.ones(1, np.int64), histograms=(histogram,)
    )


_PARAMETERS: dict[type[Model], str] = {MaxShare: "max_share", DeltaDisclosure: "disclosure", RecursiveDiversity: "l"}
"""Where the name in a guarantee is not the field's own."""


def _parameter(model: Model) -> str:
    return _PARAMETERS.get(type(model), model.parameter)


def _nearest(model: Model, groups: Groups) -> float | str | None:
    """What the class achieves, rounded to the feasible side."""
    achieved = float(model.achieved(groups)[0])
    if not math.isfinite(achieved):
        return None
    if isinstance(model, KAnonymity | DistinctDiversity):
        return int(achieved)
    if isinstance(model, RecursiveDiversity):
        return f"c above {achieved:.4f}"
    scaled = achieved * 10_000
    return (math.floor(scaled) if model.more_is_safer else math.ceil(scaled)) / 10_000
