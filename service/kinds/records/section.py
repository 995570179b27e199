"""What a policy says about records: who they are about, what is generalized, protected, passed on."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from microdata import PersonSource
from service.policy.file import FieldName, Finite, Section


def _person(value: object) -> object:
    """A field name, or where else the person comes from."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, dict) and len(value) == 1:
        for source in PersonSource:
            if value.get(source.value) is True:
                return source
    if isinstance(value, PersonSource):
        return value
    raise PydanticCustomError("person", "a field name, {key: true} or {row: true}")


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
                "properties": {source.value: {"const": True}},
                "required": [source.value],
                "additionalProperties": False,
            }
            for source in PersonSource
        ),
    ]
}
_HIERARCHY_SCHEMA = {"anyOf": [{"type": "string", "minLength": 1}, {"type": "object", "minProperties": 1}]}

Person: TypeAlias = Annotated[str | PersonSource, BeforeValidator(_person), WithJsonSchema(_PERSON_SCHEMA)]
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


class NumberField(Section):
    """A number with its domain."""

    type: Literal["number"]
    min: Finite = Field(description="least value of the domain")
    max: Finite = Field(description="greatest value of the domain")
    integer: bool = Field(default=False, description="whole numbers only")
    step: Finite | None = Field(None, gt=0, description="grid to which published intervals are widened")
    ranks: Ranks | None = Field(
        None, description="sensitive numbers: ranks for t in windows; by default every value of the domain counts alike"
    )
    weight: Weight = 1.0


class CategoryField(Section):
    """A category with its hierarchy."""

    type: Literal["category"]
    hierarchy: HierarchySource = Field(description="CSV file beside the policy, nested mapping, or a builder")
    on_unknown: Literal["refuse", "other"] = Field("refuse", description="what becomes of a value it does not hold")
    other: str | None = Field(None, description="leaf that stands for unknown values, with on_unknown: other")
    ordered: bool = Field(
        default=False, description="the order of the leaves means something: a mean shows the one in the middle"
    )
    weight: Weight = 1.0

    @model_validator(mode="after")
    def _other_is_named(self) -> Self:
        if (self.on_unknown == "other") != (self.other is not None):
            raise PydanticCustomError("other", "on_unknown: other and other: LABEL belong together; one is missing")
        return self


AttributeField: TypeAlias = Annotated[NumberField | CategoryField, Field(discriminator="type")]


class SchemaSection(Section):
    """The roles of a record's fields; a field that is not named here is dropped."""

    person: Person = Field(description="field that says whom a record is about, {key: true} or {row: true}")
    quasi: dict[FieldName, AttributeField] = Field(min_length=1, description="what is generalized")
    sensitive: dict[FieldName, AttributeField] = Field(default_factory=dict, description="what is protected")
    public: list[FieldName] = Field(default_factory=list, description="what is passed on as it is")
