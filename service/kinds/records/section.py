"""What a policy says about records: who they are about, what is generalized, protected, passed on."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from microdata import PersonSource
from service.policy.file import FieldName, Finite, Section


@dataclass(frozen=True)
class KeyField:
    """Takes the person from this field of the record key."""

    name: str


def _person(value: object) -> object:
    """A field name, or where else the person comes from."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, dict) and len(value) == 1:
        for source in PersonSource:
            if value.get(source.value) is True:
                return source
        name = value.get(PersonSource.KEY.value)
        if isinstance(name, str) and name:
            return KeyField(name)
    if isinstance(value, PersonSource | KeyField):
        return value
    raise PydanticCustomError("person", "a field name, {key: true}, {key: FIELD} or {row: true}")


def _hierarchy(value: object) -> object:
    """The path of a CSV file, a nested mapping or a builder; what it holds is checked when it is resolved."""
    if (isinstance(value, str) and value) or (isinstance(value, dict) and value):
        return value
    raise PydanticCustomError(
        "hierarchy", "the path of a CSV file, a nested mapping with one root, or {{builder: …}} with its parameters"
    )


_PERSON_SCHEMA = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        *(
            {
                "type": "object",
                "properties": {source.value: allowed},
                "required": [source.value],
                "additionalProperties": False,
            }
            for source, allowed in (
                (PersonSource.KEY, {"anyOf": [{"const": True}, {"type": "string", "minLength": 1}]}),
                (PersonSource.ROW, {"const": True}),
            )
        ),
    ]
}
_HIERARCHY_SCHEMA = {"anyOf": [{"type": "string", "minLength": 1}, {"type": "object", "minProperties": 1}]}

Person: TypeAlias = Annotated[str | PersonSource | KeyField, BeforeValidator(_person), WithJsonSchema(_PERSON_SCHEMA)]
HierarchySource: TypeAlias = Annotated[
    str | dict[str, Any], BeforeValidator(_hierarchy), WithJsonSchema(_HIERARCHY_SCHEMA)
]
Weight: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False, description="weight in the loss")]


class Ranks(Section):
    """How the values of a sensitive number are ranked in windows, where the values that occur change."""

    quantiles: list[Finite] = Field(
        min_length=1,
        max_length=10_000,
        description="values that cut the distribution into equally likely parts, ascending, without min and max",
    )


MAX_READ = 1_000
"""Characters of a value that may be asked for."""
_ITEM = "a value, a label of the hierarchy, or a range [from, to] of a number"


def _item(value: object) -> object:
    """One of the values of a category; what it means is checked beside the domain."""
    ends = value if isinstance(value, list | tuple) else [value]
    if (isinstance(value, str) and value) or (
        (len(ends) == 2 or value is ends[0])
        and all(isinstance(end, int | float) and not isinstance(end, bool) and isfinite(end) for end in ends)
    ):
        return tuple(ends) if isinstance(value, list) else value
    raise PydanticCustomError("item", _ITEM)


def _categories(value: object) -> object:
    """A bare list is the categories."""
    return {"categories": value} if isinstance(value, list) else value


_ITEM_SCHEMA = {
    "description": _ITEM,
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "number"},
        {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
    ],
}
_CATEGORIES_SCHEMA = {"type": "array", "minItems": 1, "items": {"type": "array", "minItems": 1, "items": _ITEM_SCHEMA}}
_SENSITIVITY_SCHEMA = {
    "anyOf": [
        _CATEGORIES_SCHEMA,
        {
            "type": "object",
            "properties": {
                "categories": _CATEGORIES_SCHEMA,
                "weights": {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}},
            },
            "required": ["categories"],
            "additionalProperties": False,
        },
    ]
}

SensitiveValue: TypeAlias = Annotated[Any, BeforeValidator(_item), WithJsonSchema(_ITEM_SCHEMA)]


class SensitivitySection(Section):
    """Categories of sensitivity, and what they weigh."""

    categories: list[Annotated[list[SensitiveValue], Field(min_length=1)]] = Field(
        min_length=1, max_length=1_000, description="from the most sensitive category to the least; every value in one"
    )
    weights: list[Finite] | None = Field(
        None, description="what each category weighs, ascending within 0 … 1; by default evenly from 0 to 1"
    )


SensitivitySource: TypeAlias = Annotated[
    SensitivitySection, BeforeValidator(_categories), WithJsonSchema(_SENSITIVITY_SCHEMA)
]
_SENSITIVITY = (
    "sensitive attributes: categories of values, from the most sensitive to the least, for p_categories, alpha_weight "
    "and max_category_share"
)


class NumberField(Section):
    """A number with its domain."""

    type: Literal["number"]
    min: Finite = Field(description="least value of the domain")
    max: Finite = Field(description="greatest value of the domain")
    integer: bool = Field(default=False, description="whole numbers only")
    capped: bool = Field(
        default=False, description="a value above max is read as max, which then stands for that much or more"
    )
    step: Finite | None = Field(None, gt=0, description="grid to which published intervals are widened")
    ranks: Ranks | None = Field(
        None, description="sensitive numbers: ranks for t in windows; by default every value of the domain counts alike"
    )
    sensitivity: SensitivitySource | None = Field(None, description=_SENSITIVITY)
    weight: Weight = 1.0


class CategoryField(Section):
    """A category with its hierarchy."""

    type: Literal["category"]
    hierarchy: HierarchySource = Field(description="CSV file beside the policy, nested mapping, or a builder")
    on_unknown: Literal["refuse", "other"] = Field("refuse", description="what becomes of a value it does not hold")
    other: str | None = Field(None, description="leaf that stands for unknown values, with on_unknown: other")
    characters: int | None = Field(
        None, ge=1, le=MAX_READ, description="so many first characters of a value are read, and no more of it"
    )
    forms: list[Annotated[str, Field(min_length=1, max_length=MAX_READ)]] = Field(
        default_factory=list,
        max_length=100,
        description="how values are written, with a 9 for each digit, such as 99999-9999; a value of another form "
        "counts as unknown. Left out, every form is accepted",
    )
    ordered: bool = Field(
        default=False, description="the order of the leaves means something: a mean shows the one in the middle"
    )
    sensitivity: SensitivitySource | None = Field(None, description=_SENSITIVITY)
    weight: Weight = 1.0

    @model_validator(mode="after")
    def _other_is_named(self) -> Self:
        if (self.on_unknown == "other") != (self.other is not None):
            raise PydanticCustomError("other", "on_unknown: other and other: LABEL belong together; one is missing")
        return self


AttributeField: TypeAlias = Annotated[NumberField | CategoryField, Field(discriminator="type")]


class SchemaSection(Section):
    """The roles of a record's fields; a field that is not named here is dropped."""

    person: Person = Field(
        description="field that says whom a record is about; {key: true} for the record key, {key: FIELD} for a field "
        "of a key that is a record, {row: true} where every row is about another person"
    )
    quasi: dict[FieldName, AttributeField] = Field(min_length=1, description="what is generalized")
    sensitive: dict[FieldName, AttributeField] = Field(default_factory=dict, description="what is protected")
    public: list[FieldName] = Field(default_factory=list, description="what is passed on as it is")
