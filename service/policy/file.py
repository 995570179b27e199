"""What a policy file may say: one pydantic model for YAML, JSON, the HTTP API's schema and the docs."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from microdata import Show
from privacy import ATTACKS, TRIALS
from service.codec import AVRO, DEFAULT_FORMAT, JSON_SCHEMA, PROTOBUF, format_names, key_format_names
from service.kafka.partitioners import Partitioner

DEFAULT = "records"
"""The kind of data of a policy that names none."""


class Section(BaseModel):
    """Base of every part of a policy: unknown keys are errors, texts are not taken for numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=False)


Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
FieldName: TypeAlias = Annotated[str, Field(min_length=1)]


def _topic(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", value) or value in {".", ".."}:
        raise PydanticCustomError("topic", "a topic name has 1 to 249 letters, digits, dots, dashes and underscores")
    return value


Topic: TypeAlias = Annotated[str, AfterValidator(_topic)]


def _format_name(name: str) -> str:
    if name not in format_names():
        raise PydanticCustomError("format", "must be one of {known}", {"known": ", ".join(format_names())})
    return name


FormatName: TypeAlias = Annotated[
    str, AfterValidator(_format_name), Field(json_schema_extra=lambda schema: schema.update(enum=list(format_names())))
]


def _key_format_name(name: str) -> str:
    if name not in key_format_names():
        raise PydanticCustomError("format", "must be one of {known}", {"known": ", ".join(key_format_names())})
    return name


KeyFormatName: TypeAlias = Annotated[
    str,
    AfterValidator(_key_format_name),
    Field(json_schema_extra=lambda schema: schema.update(enum=list(key_format_names()))),
]


class TopicFormatSection(Section):
    """How the records of one topic are written."""

    type: FormatName = Field(description="the format")
    schema_: FieldName | None = Field(
        None,
        alias="schema",
        description="file with the schema: records have nothing in front of them then, and no registry is asked",
    )
    subject: FieldName | None = Field(
        None, description="where the registry has the schemas; TOPIC-value if left out, of keys TOPIC-key"
    )
    record: FieldName | None = Field(
        None, description="of Avro: name of the input's records or keys, where the topic has others too"
    )
    message: FieldName | None = Field(
        None, description="of Protobuf: name of the input's messages or keys; the first of the schema if left out"
    )
    register_: bool = Field(
        default=True, alias="register", description="whether the output's schema is registered, or has to be there"
    )
    aliases: dict[FieldName, list[FieldName]] = Field(
        default_factory=dict,
        description="of the input in Avro or Protobuf: other names that fields of the policy have in its schemas",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.type == DEFAULT_FORMAT and self.model_fields_set != {"type"}:
            raise PydanticCustomError("format", "json has no schema: leave everything but type out")
        if self.type == JSON_SCHEMA and not {self.schema_, self.record, self.message} <= {None}:
            reason = "documents are read as JSON, whatever their schema says: leave schema, record and message out"
            raise PydanticCustomError("format", reason)
        if self.type == JSON_SCHEMA and self.aliases:
            raise PydanticCustomError("format", "documents of JSON are read without their schema: leave aliases out")
        if any("." in other for names in self.aliases.values() for other in names):
            reason = "aliases are names without dots: a field stays in its record, for example {home.zip: [postcode]}"
            raise PydanticCustomError("format", reason)
        if (self.type == AVRO and self.message) or (self.type == PROTOBUF and self.record):
            raise PydanticCustomError("format", "Avro has records and Protobuf has messages: name the right one")
        if self.schema_ is not None and self.subject is not None:
            raise PydanticCustomError("format", "a schema comes from a file or from a subject; leave one of them out")
        return self


class FormatSection(Section):
    """How the records of the two topics are written, and the keys of the input's."""

    input: FormatName | TopicFormatSection = Field(DEFAULT_FORMAT, description="of the raw records")
    output: FormatName | TopicFormatSection = Field(DEFAULT_FORMAT, description="of what leaves")
    key: KeyFormatName | TopicFormatSection | None = Field(
        None,
        description="of the keys of raw records, where the person is in the key: raw compares their bytes, another "
        "format the decoded value. Must be said where the input has a schema registry; raw if left out elsewhere",
    )

    @field_validator("key")
    @classmethod
    def _is_only_read(cls, key: str | TopicFormatSection | None) -> str | TopicFormatSection | None:
        if isinstance(key, TopicFormatSection) and "register_" in key.model_fields_set:
            raise PydanticCustomError("format", "schemas of keys are only read: leave register out")
        if isinstance(key, TopicFormatSection) and key.aliases:
            raise PydanticCustomError("format", "only fields of the input have aliases: leave aliases out")
        return key

    @field_validator("output")
    @classmethod
    def _is_only_written(cls, output: str | TopicFormatSection) -> str | TopicFormatSection:
        if isinstance(output, TopicFormatSection) and output.aliases:
            raise PydanticCustomError("format", "only fields of the input have aliases: leave aliases out")
        return output


class StreamSection(Section):
    """Where a stream comes from and goes to."""

    input: Topic = Field(description="topic with the raw records")
    output: Topic = Field(description="topic with what may leave")
    emit: Literal["clusters", "tuples"] = Field(
        "clusters", description="one message per cluster, or one flat record per row without the cluster's id"
    )
    format: FormatName | FormatSection = Field(
        DEFAULT_FORMAT, description="how the records of both topics are written, or of each"
    )
    envelope: Literal["none", "debezium", "cloudevents"] = Field(
        "none",
        description="what is around each event of the input: change events of Debezium (their `after`), CloudEvents in "
        "structured mode (their `data`), or nothing; fields of the policy are those inside",
    )
    start: Literal["earliest", "latest"] | None = Field(
        None, description="where the very first start begins; has no default because both are wrong for somebody"
    )
    keyed: Partitioner | None = Field(
        None,
        description="how producers choose a partition by the record's key: murmur2 (the Java client, kafka-python), "
        "crc32 (librdkafka) or fnv1a (Sarama); records elsewhere are refused. Not checked if left out",
    )
    dead_letters: Topic | None = Field(None, description="topic that names refused records, never their content")
    allow_compacted: bool = Field(
        default=False, description="accept an input topic whose cleanup policy may remove records that are still held"
    )

    @model_validator(mode="after")
    def _topics_differ(self) -> Self:
        topics = [topic for topic in (self.input, self.output, self.dead_letters) if topic is not None]
        if len(set(topics)) < len(topics):
            raise PydanticCustomError("topics", "input, output and dead_letters must be different topics")
        return self


MOST_LEARNT = 16
"""Attributes that a model is made for: each is trained twice."""


class TableSection(Section):
    """How a table is treated."""

    on_refused: Literal["stop", "drop"] = Field(
        default="stop", description="whether rows that the schema refuses stop the run or are left out and counted"
    )
    formulas: Literal["escape", "keep"] = Field(
        default="escape",
        description="whether a published CSV text that a spreadsheet would run (=, +, -, @) gets an apostrophe",
    )
    learn: list[FieldName] = Field(
        default_factory=list,
        max_length=MOST_LEARNT,
        description="sensitive attributes that a model learns to predict from what is published, for the report; needs "
        "scikit-learn",
    )
    population: int | None = Field(
        default=None, ge=1, le=10**12, description="people that tables are drawn from: reports tell the risk among them"
    )
    counts: list[list[FieldName]] = Field(
        default_factory=list,
        max_length=16,
        description="fields by which counts of sensitive values are published too: reports tell what these give away",
    )


Name: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


class PurposeSection(Section):
    """What somebody may have a table for."""

    order: list[FieldName] = Field(
        default_factory=list, description="quasi-identifiers, the most useful for the purpose first"
    )
    trust: Finite = Field(ge=0, le=1, description="how far who asks is trusted: 0 not at all, 1 as oneself")
    models: dict[str, Any] = Field(
        default_factory=dict, description="what must hold for this purpose, in the place of the same in `guarantee`"
    )
    who: list[Name] | None = Field(
        None, description="names of the tokens that may ask for it over HTTP; left out, all may"
    )


class ReleasesSection(Section):
    """Of what a table is, so that all that is released of it is known."""

    data_set: Name = Field(description="the data that the table is of, whatever its rows are today")
    incomparable: Literal["refuse", "allow"] = Field(
        "refuse", description="a further release that is neither finer nor coarser than each earlier one"
    )


class AttackSection(Section):
    """How far an attack may get."""

    most: Finite = Field(ge=0, le=1, description="share of the rows on which it may succeed, or what it may add")


class PresetSection(Section):
    """Rules of a regulation that everything published under the policy is checked against."""

    name: Literal["hipaa"] = Field(description="which rules: hipaa is the Safe Harbor rule, 45 CFR 164.514(b)(2)")
    reviewed: list[FieldName] = Field(
        default_factory=list,
        max_length=1_000,
        description="fields that a reviewer has found to be none of the 18 identifiers, where names and "
        "values do not tell; values that are certainly identifiers are not published all the same",
    )


class RejectedSection(Section):
    """Rows and events that fail validation."""

    warn_above: Finite = Field(
        0.01,
        ge=0,
        le=1,
        description="share of the rows or events above which reports warn of rejected ones",
    )


class PolicyFile(Section):
    """A policy as it is written; `service.policy.Policy` is the policy as it is used."""

    # Each kind of data has its own: `policy_file` of `service/policy/data.py`.

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", description="letters, digits, dots and dashes")
    data: str = Field(DEFAULT, description="the kind of data that it is about")
    schema_: Any = Field(alias="schema", description="roles, domains and hierarchies")
    guarantee: dict[str, Any] = Field(
        min_length=1,
        description="an algorithm with its parameters; without an algorithm, the privacy models that an audit checks",
    )
    stream: StreamSection | None = None
    table: TableSection = TableSection()
    rejected: RejectedSection = RejectedSection()
    preset: PresetSection | None = None
    purposes: dict[Name, PurposeSection] = Field(
        default_factory=dict, max_length=1_000, description="what tables are asked for, and by whom; one is chosen"
    )
    purpose: Name | None = Field(None, description="the one that is chosen; commands and requests may say it instead")
    releases: ReleasesSection | None = None
    attacks: dict[str, Annotated[Finite, Field(ge=0, le=1)] | AttackSection] = Field(
        default_factory=dict,
        description="attacks that are tried on a table before it is written, and on which share of its rows each may "
        f"succeed: {', '.join(ATTACKS)}; or, with a control, how much being in the table may add: {', '.join(TRIALS)}",
        json_schema_extra={"propertyNames": {"enum": [*ATTACKS, *TRIALS]}},
    )
    show: Show | None = Field(
        None,
        description="how a class is published: as the box around its rows (interval), or as their mean; left out, as "
        "its algorithm does it",
    )

    @field_validator("attacks")
    @classmethod
    def _are_known(cls, given: dict[str, Any]) -> dict[str, Any]:
        known = [*ATTACKS, *TRIALS]
        if not set(given) <= set(known):
            raise PydanticCustomError("attacks", "must be some of {known}", {"known": ", ".join(known)})
        return given
