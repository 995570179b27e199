"""What a policy file may say: one pydantic model for YAML, JSON, the HTTP API's schema and the docs."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from microdata import PersonSource
from service.codec import CODECS, DEFAULT_FORMAT


class Section(BaseModel):
    """Base of every part of a policy: unknown keys are errors, texts are not taken for numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=False)


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
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
FieldName: TypeAlias = Annotated[str, Field(min_length=1)]


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


def _topic(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", value) or value in {".", ".."}:
        raise PydanticCustomError("topic", "a topic name has 1 to 249 letters, digits, dots, dashes and underscores")
    return value


Topic: TypeAlias = Annotated[str, AfterValidator(_topic)]


class StreamSection(Section):
    """Where a stream comes from and goes to."""

    input: Topic = Field(description="topic with the raw records")
    output: Topic = Field(description="topic with what may leave")
    emit: Literal["clusters", "tuples"] = Field(
        "clusters", description="one message per cluster, or one flat record per row without the cluster's id"
    )
    format: str = Field(
        DEFAULT_FORMAT,
        description="how the records of both topics are written",
        json_schema_extra=lambda schema: schema.update(enum=list(CODECS)),
    )
    start: Literal["earliest", "latest"] | None = Field(
        None, description="where the very first start begins; has no default because both are wrong for somebody"
    )
    dead_letters: Topic | None = Field(None, description="topic that names refused records, never their content")
    allow_compacted: bool = Field(
        default=False, description="accept an input topic whose cleanup policy may remove records that are still held"
    )

    @field_validator("format")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in CODECS:
            raise PydanticCustomError("format", "must be one of {known}", {"known": ", ".join(CODECS)})
        return name

    @model_validator(mode="after")
    def _topics_differ(self) -> Self:
        topics = [topic for topic in (self.input, self.output, self.dead_letters) if topic is not None]
        if len(set(topics)) < len(topics):
            raise PydanticCustomError("topics", "input, output and dead_letters must be different topics")
        return self


class TableSection(Section):
    """How a table is treated."""

    on_refused: Literal["stop", "drop"] = Field(
        default="stop", description="whether rows that the schema refuses stop the run or are left out and counted"
    )
    formulas: Literal["escape", "keep"] = Field(
        default="escape",
        description="whether a published CSV text that a spreadsheet would run (=, +, -, @) gets an apostrophe",
    )


class PolicyFile(Section):
    """A policy as it is written; `service.policy.Policy` is the policy as it is used."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", description="letters, digits, dots and dashes")
    schema_: SchemaSection = Field(alias="schema", description="roles, domains and hierarchies")
    guarantee: dict[str, Any] = Field(
        min_length=1,
        description="an algorithm with its parameters; without an algorithm, the privacy models that an audit checks",
    )
    stream: StreamSection | None = None
    table: TableSection = TableSection()
