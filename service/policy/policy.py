"""A policy as it is used: schema, guarantee, and where its data comes from and goes to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from microdata import (
    Attribute,
    Category,
    HierarchyError,
    InfeasibleError,
    Number,
    Schema,
    SchemaError,
    Words,
    missing_extensions,
    system_words,
)
from privacy import KEYS, Guarantee, Model, check_domains
from service.policy.errors import PolicyError, Problem, dotted, shown, unknown_name
from service.policy.file import CategoryField, NumberField, PolicyFile, StreamSection, TableSection
from service.policy.fingerprint import fingerprint
from service.policy.hierarchies import Hierarchies
from service.policy.text import parse_text, read_policy_text
from service.policy.validation import validated
from static_algos import STATIC_ALGORITHMS, Catalogue, Entry, StaticAlgorithm
from stream_algos import STREAM_ALGORITHMS, Engine, StreamParameters

MAX_VALUES = 1_000_000
"""Values of all sensitive domains together: there is one count for each of them."""
MAX_FIELDS = 1_000
"""Fields that a policy declares."""


@dataclass(frozen=True, eq=False)
class Policy:
    """One policy for tables, streams and audits."""

    name: str
    schema: Schema
    guarantee: Mapping[str, Any]
    """As it was given: `algorithm`, if any, and parameters."""
    parameters: BaseModel
    """The same, validated, with defaults."""
    stream: StreamSection | None
    table: TableSection

    @property
    def algorithm_name(self) -> str | None:
        """Name of the algorithm; None for a policy that can only be audited."""
        return self.guarantee.get("algorithm")

    @property
    def kind(self) -> Literal["table", "stream", "audit"]:
        """What the policy can run."""
        if self.algorithm_name is None:
            return "audit"
        return "table" if self.algorithm_name in STATIC_ALGORITHMS else "stream"

    @property
    def _given(self) -> dict[str, Any]:
        return {key: value for key, value in self.guarantee.items() if key != "algorithm"}

    def algorithm(self) -> StaticAlgorithm:
        """The algorithm that makes a table safe."""
        if self.kind != "table" or self.algorithm_name is None:
            raise PolicyError([_needs("a table", STATIC_ALGORITHMS.names(), self.algorithm_name)])
        return STATIC_ALGORITHMS[self.algorithm_name].algorithm(**self._given)

    @property
    def asked_of_engine(self) -> StreamParameters:
        """The parameters of the algorithm that makes a stream safe."""
        if not isinstance(self.parameters, StreamParameters):
            raise PolicyError([_needs("a stream", STREAM_ALGORITHMS.names(), self.algorithm_name)])
        return self.parameters

    def engine(self, *, words: Words = system_words, asked: StreamParameters | None = None) -> Engine:
        """A new engine that makes a stream safe; `asked` takes the place of the policy's own parameters."""
        asked = asked or self.asked_of_engine
        return STREAM_ALGORITHMS[self.algorithm_name or ""].algorithm(self.schema, words=words, **asked.model_dump())

    def models(self) -> tuple[Model, ...]:
        """The privacy models that every class must meet."""
        match self.kind:
            case "table":
                return self.algorithm().models(self.schema)
            case "stream":
                return self.engine().models()
            case "audit":
                return Guarantee.model_validate(self._given).models(self.schema)

    @cached_property
    def _fingerprint(self) -> str:
        guarantee = {"algorithm": self.algorithm_name, **self.parameters.model_dump(mode="json")}
        route = self.stream.model_dump(include={"input", "output", "emit"}) if self.stream else {}
        return fingerprint(self.schema, guarantee, route)

    def fingerprint(self) -> str:
        """The same for two policies exactly when they encode, cluster and publish alike."""
        return self._fingerprint


def load_policy(path: str | Path) -> Policy:
    """The policy in this YAML or JSON file; paths of hierarchies are relative to it."""
    path = Path(path)
    try:
        mapping = parse_text(read_policy_text(path), json_only=path.suffix.lower() == ".json")
        return parse_policy(mapping, path.parent)
    except PolicyError as error:
        raise PolicyError(error.problems, source=str(path)) from None


def parse_policy(source: Mapping[str, Any] | str, base: Path | None = None) -> Policy:
    """The policy in this text or mapping. Without a `base` directory no hierarchy is read from a file."""
    given = parse_text(source) if isinstance(source, str) else source
    _check_fields(given.get("schema"))
    file = validated(PolicyFile, given)
    problems: list[Problem] = []
    schema = _schema(file, Hierarchies(base), problems)
    parameters = _parameters(file, problems)
    if problems or schema is None or parameters is None:
        raise PolicyError(problems)
    policy = Policy(file.name, schema, file.guarantee, parameters, file.stream, file.table)
    problems.extend(_contradictions(policy))
    if problems:
        raise PolicyError(problems)
    return policy


def _check_fields(schema: object) -> None:
    """First of all: every field that is wrong is a problem to describe."""
    roles = [schema.get(role) for role in ("quasi", "sensitive", "public")] if isinstance(schema, Mapping) else []
    fields = sum(len(fields) for fields in roles if isinstance(fields, Mapping | list))
    if fields > MAX_FIELDS:
        raise PolicyError([Problem("schema", f"at most {MAX_FIELDS} fields are declared", f"{fields} of them")])


def _schema(file: PolicyFile, trees: Hierarchies, problems: list[Problem]) -> Schema | None:
    section = file.schema_
    quasi = [_attribute(("schema", "quasi", name), field, trees, problems) for name, field in section.quasi.items()]
    for name, field in section.quasi.items():
        if isinstance(field, NumberField) and field.ranks:
            at = dotted(("schema", "quasi", name, "ranks"))
            problems.append(Problem(at, "only sensitive numbers have ranks; leave it out"))
    sensitive = []
    for name, field in section.sensitive.items():
        path = ("schema", "sensitive", name)
        if "weight" in field.model_fields_set:
            problems.append(Problem(dotted((*path, "weight")), "only quasi-identifiers have a weight; leave it out"))
        sensitive.append(_attribute(path, field, trees, problems))
    problems.extend(_too_many_values([one for one in sensitive if one]))
    if problems:
        return None
    try:
        return Schema(
            person=section.person,
            quasi=tuple(attribute for attribute in quasi if attribute),
            sensitive=tuple(attribute for attribute in sensitive if attribute),
            public=tuple(section.public),
            weights=tuple(field.weight for field in section.quasi.values()),
        )
    except SchemaError as error:
        problems.append(_located(error))
        return None


def _too_many_values(sensitive: Collection[Attribute]) -> Iterator[Problem]:
    """Those of these attributes from which on there are too many values."""
    values = 0
    for attribute in sensitive:
        values += attribute.size or 0
        if values > MAX_VALUES:
            reason = (
                f"its distribution is measured value by value, over at most {MAX_VALUES} of them (of all sensitive "
                "attributes together); declare a coarser step"
            )
            path = dotted(("schema", "sensitive", attribute.name))
            yield Problem(path, reason, f"a domain of {attribute.size} values")


def _located(error: SchemaError) -> Problem:
    """Schema errors begin with the role that they are about."""
    role, _, reason = str(error).partition(": ")
    return Problem(f"schema.{role}", reason)


def _attribute(
    path: tuple[str, ...], field: NumberField | CategoryField, trees: Hierarchies, problems: list[Problem]
) -> Attribute | None:
    name = path[-1]
    try:
        if isinstance(field, NumberField):
            quantiles = tuple(field.ranks.quantiles) if field.ranks else ()
            return Number(name, field.min, field.max, field.integer, field.step, quantiles)
        return Category(name, trees.resolve(field.hierarchy, (*path, "hierarchy")), field.other)
    except PolicyError as error:
        problems.extend(error.problems)
    except HierarchyError as error:
        problems.append(Problem(dotted((*path, "hierarchy")), str(error)))
    except SchemaError as error:
        problems.append(Problem(dotted(path), str(error).removeprefix(f"{name}: ")))
    return None


def _parameters(file: PolicyFile, problems: list[Problem]) -> BaseModel | None:
    given = dict(file.guarantee)
    name = given.pop("algorithm", None)
    at = ("guarantee",)
    try:
        if name is None:
            return validated(Guarantee, given, at)
        catalogues: tuple[Catalogue[Any], ...] = (STATIC_ALGORITHMS, STREAM_ALGORITHMS)
        for catalogue in catalogues:
            if isinstance(name, str) and name in catalogue:
                entry = catalogue[name]
                problems.extend(_not_guaranteed(entry, given))
                return validated(entry.parameters, given, at)
    except PolicyError as error:
        problems.extend(error.problems)
        return None
    except InfeasibleError as error:
        problems.append(at_parameter(error))
        return None
    known = (*STATIC_ALGORITHMS.names(), *STREAM_ALGORITHMS.names())
    problems.append(unknown_name(name, known)._replace(path="guarantee.algorithm"))
    problems.extend(Problem("guarantee.algorithm", missing) for missing in missing_extensions())
    return None


def _not_guaranteed(entry: Entry[Any], given: dict[str, Any]) -> list[Problem]:
    """Models that the algorithm does not take; they are taken out of what is given."""
    keys = [key.name for key in KEYS if key.name in given and key.name not in entry.parameters.model_fields]
    for key in keys:
        del given[key]
    names = ", ".join(model.name for model in entry.algorithm.guarantees) or "nothing"
    return [Problem(f"guarantee.{key}", f"{entry.name} does not take it; it guarantees {names}") for key in keys]


def _contradictions(policy: Policy) -> list[Problem]:
    """What is well-formed but cannot work."""
    problems = []
    if policy.stream is not None and policy.kind != "stream":
        problems.append(_needs("a stream", STREAM_ALGORITHMS.names(), policy.algorithm_name))
    try:
        check_domains(policy.models(), policy.schema)
        if policy.kind == "table":
            policy.algorithm().check_able(policy.schema)
    except InfeasibleError as error:
        problems.append(at_parameter(error))
    except SchemaError as error:
        problems.append(_located(error))
    return problems


def at_parameter(error: InfeasibleError) -> Problem:
    """An infeasible request as a problem of the policy."""
    path = "guarantee" if error.parameter == "guarantee" else f"guarantee.{error.parameter}"
    return Problem(path, error.reason, nearest=error.nearest)


def _needs(what: str, names: tuple[str, ...], given: str | None) -> Problem:
    return Problem("guarantee.algorithm", f"{what} needs one of {', '.join(names)}", shown(given))
