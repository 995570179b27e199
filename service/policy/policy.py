"""A policy as it is used: schema, guarantee, and where its data comes from and goes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from microdata import InfeasibleError, PersonSource, SchemaError, Show, Words, missing_extensions, system_words
from service.codec import DEFAULT_FORMAT, PROTOBUF, RAW, Format, Route, key_format_names
from service.policy.data import Beside, DataKind, Outside, kind_of, policy_file
from service.policy.errors import PolicyError, PolicyProblem, dotted, shown, unknown_name
from service.policy.file import (
    AttackSection,
    PresetSection,
    RejectedSection,
    ReleasesSection,
    StreamSection,
    TableSection,
)
from service.policy.fingerprint import fingerprint
from service.policy.formats import format_of
from service.policy.purposes import choose, completed, guarantee_for
from service.policy.text import invisible, parse_text, read_policy_text
from service.policy.validation import validated
from service.registry import Registry
from static_algos import Catalogue
from stream_algos import Engine, StreamParameters


@dataclass(frozen=True, eq=False)
class Policy:
    """One policy for tables, streams and audits."""

    name: str
    data: DataKind
    """The kind of data that it is about."""
    schema: Any
    """What the kind makes of the policy's schema; a `microdata.Schema` for records."""
    guarantee: Mapping[str, Any]
    """As it was given: `algorithm`, if any, and parameters."""
    parameters: BaseModel
    """The same, validated, with defaults."""
    stream: StreamSection | None
    table: TableSection
    asked_show: Show | None = None
    """How classes are to be published, where the policy says it."""
    purposes: tuple[str, ...] = ()
    """What tables may be asked for."""
    purpose: str | None = None
    """The one that is chosen: it is in `guarantee`."""
    releases: ReleasesSection | None = None
    """Of what the tables are, where all that is released of it is written down."""
    attacks: Mapping[str, float] = field(default_factory=dict)
    """On which share of the rows of a table each attack may succeed."""
    format: Format = field(default_factory=Format)
    """How the records of a stream's topics are written."""
    rejected: RejectedSection = field(default_factory=RejectedSection)
    """When reports warn of rows that fail validation."""
    preset: PresetSection | None = None
    """Rules of a regulation that everything published is checked against."""

    @property
    def show(self) -> Show:
        """How classes are published: as the policy says, else as the algorithm does it."""
        return self.asked_show or self.data.shows(self.algorithm_name) or "interval"

    @property
    def algorithm_name(self) -> str | None:
        """Name of the algorithm; None for a policy that can only be audited."""
        return self.guarantee.get("algorithm")

    @property
    def kind(self) -> Literal["table", "stream", "audit"]:
        """What the policy can run."""
        if self.algorithm_name is None:
            return "audit"
        return "table" if self.algorithm_name in self.data.algorithms else "stream"

    @property
    def _given(self) -> dict[str, Any]:
        return {key: value for key, value in self.guarantee.items() if key != "algorithm"}

    def algorithm(self) -> Any:
        """The algorithm that makes a table safe."""
        if self.kind != "table" or self.algorithm_name is None:
            raise PolicyError([_needs("a table", self.data.algorithms.names(), self.algorithm_name)])
        if self.purposes and self.purpose is None:
            raise PolicyError([PolicyProblem("purpose", f"must be one of {', '.join(self.purposes)}")])
        return self._algorithm()

    def _algorithm(self) -> Any:
        return self.data.algorithms[self.algorithm_name or ""].algorithm(**self._given)

    @property
    def asked_of_engine(self) -> StreamParameters:
        """The parameters of the algorithm that makes a stream safe."""
        if not isinstance(self.parameters, StreamParameters):
            raise PolicyError([_needs("a stream", self.data.engines.names(), self.algorithm_name)])
        return self.parameters

    def engine(self, *, words: Words = system_words, asked: StreamParameters | None = None) -> Engine:
        """A new engine that makes a stream safe; `asked` takes the place of the policy's own parameters."""
        asked = asked or self.asked_of_engine
        entry = self.data.engines[self.algorithm_name or ""]
        engine: Engine = entry.algorithm(self.schema, words=words, **asked.model_dump())
        return engine

    def models(self) -> tuple[Any, ...]:
        """The privacy models that a publication must meet."""
        match self.kind:
            case "table":
                made = self._algorithm().models(self.schema)
            case "stream":
                made = self.engine().models()
            case "audit":
                guarantee: Any = self.data.guarantee.model_validate(self._given)
                made = guarantee.models(self.schema)
        return tuple(made)

    def route(self, registry: Registry | None = None) -> Route:
        """What the codec of the policy's stream is made for; the registry is asked where its format needs one."""
        assert self.stream is not None, "only a stream has topics"
        topics = self.stream.input, self.stream.output
        return Route(self.schema, self.format, *topics, self.stream.emit, self.show, registry)

    def fields(self) -> tuple[str, ...]:
        """The declared fields."""
        return tuple(self.data.fields(self.schema))

    @cached_property
    def _fingerprint(self) -> str:
        guarantee = {"algorithm": self.algorithm_name, **self.parameters.model_dump(mode="json")}
        route = self.stream.model_dump(include={"input", "output", "emit"}) if self.stream else {}
        if self.format.identity() != DEFAULT_FORMAT:
            # Only where it is another: policies without keep their fingerprint.
            route["format"] = self.format.identity()
        if self.stream is not None and self.stream.keyed is not None:
            route["keyed"] = self.stream.keyed
        return fingerprint(self.data.name, self.data.identity(self.schema), guarantee, route, self.show)

    @property
    def outside(self) -> Outside:
        """What it says that others have beside what is published."""
        return Outside(self.table.population, self.table.counts)

    def fingerprint(self) -> str:
        """The same for two policies exactly when they encode, cluster and publish alike."""
        return self._fingerprint


def load_policy(path: str | Path, *, purpose: str | None = None) -> Policy:
    """The policy in this YAML or JSON file, for one of its purposes; paths of hierarchies are relative to it."""
    path = Path(path)
    try:
        mapping = parse_text(read_policy_text(path), json_only=path.suffix.lower() == ".json")
        return parse_policy(mapping if purpose is None else choose(mapping, purpose), path.parent)
    except PolicyError as error:
        raise PolicyError(error.problems, source=str(path)) from None


def parse_policy(
    source: Mapping[str, Any] | str, base: Path | None = None, *, sent: Mapping[str, str] | None = None
) -> Policy:
    """The policy in this text or mapping. Without a `base` directory no file is read: those it may name are `sent`."""
    given = parse_text(source) if isinstance(source, str) else source
    hidden = list(invisible(given))
    if hidden:
        raise PolicyError(hidden)
    kind = kind_of(given)
    kind.bound(given.get("schema"))
    file = validated(policy_file(kind), given)
    problems: list[PolicyProblem] = []
    schema = kind.schema(file.schema_, Beside(base, sent), problems)
    guarantee = guarantee_for(file, problems)
    parameters = _parameters(guarantee, kind, problems)
    for name, section in file.purposes.items():
        wrong: list[PolicyProblem] = []
        _parameters(completed(file.guarantee, section), kind, wrong)
        problems.extend(one._replace(path=f"purposes.{name} ({one.path})") for one in wrong)
    topics = Format() if file.stream is None else format_of(file.stream, Beside(base, sent), problems)
    if problems or schema is None or parameters is None:
        raise PolicyError(problems)
    policy = Policy(
        file.name,
        kind,
        schema,
        guarantee,
        parameters,
        file.stream,
        file.table,
        file.show,
        tuple(file.purposes),
        file.purpose,
        file.releases,
        {name: one.most if isinstance(one, AttackSection) else one for name, one in file.attacks.items()},
        topics,
        file.rejected,
        file.preset,
    )
    problems.extend(_contradictions(policy))
    if problems:
        raise PolicyError(problems)
    return policy


def located(error: SchemaError) -> PolicyProblem:
    """A schema that contradicts itself as a problem of the policy."""
    return PolicyProblem(dotted(("schema", *filter(None, [error.at]))), error.reason, error.given)


def _parameters(guarantee: Mapping[str, Any], kind: DataKind, problems: list[PolicyProblem]) -> BaseModel | None:
    given = dict(guarantee)
    name = given.pop("algorithm", None)
    at = ("guarantee",)
    try:
        if name is None:
            return validated(kind.guarantee, given, at)
        catalogues: tuple[Catalogue[Any], ...] = (kind.algorithms, kind.engines)
        for catalogue in catalogues:
            if isinstance(name, str) and name in catalogue:
                entry = catalogue[name]
                problems.extend(kind.not_guaranteed(entry, given))
                return validated(entry.parameters, given, at)
    except PolicyError as error:
        problems.extend(error.problems)
        return None
    except InfeasibleError as error:
        problems.append(at_parameter(error))
        return None
    known = (*kind.algorithms.names(), *kind.engines.names())
    problems.append(unknown_name(name, known)._replace(path="guarantee.algorithm"))
    problems.extend(PolicyProblem("guarantee.algorithm", missing) for missing in missing_extensions())
    return None


def _contradictions(policy: Policy) -> list[PolicyProblem]:
    """What is well-formed but cannot work."""
    problems = []
    if policy.stream is not None and policy.kind != "stream":
        problems.append(_needs("a stream", policy.data.engines.names(), policy.algorithm_name))
    refused = policy.parameters.refused if isinstance(policy.parameters, StreamParameters) else None
    if refused is not None:
        problems.append(PolicyProblem(f"guarantee.{refused[0]}", refused[1]))
    problems.extend(_keys_not_read(policy))
    problems.extend(_not_shown(policy))
    if policy.releases is not None and policy.kind == "stream":
        problems.append(PolicyProblem("releases", "only releases of tables are written down; leave it out"))
    if policy.attacks and policy.kind != "table":
        problems.append(PolicyProblem("attacks", "only tables are attacked before they are written; leave it out"))
    problems.extend(policy.data.check_attacks(policy.attacks, policy.schema))
    problems.extend(policy.data.check_learning(policy.table.learn, policy.schema))
    problems.extend(policy.data.check_outside(policy.outside, policy.schema))
    problems.extend(policy.data.check_preset(policy))
    try:
        policy.data.check_feasible(policy.models(), policy.schema)
        if policy.kind == "table":
            policy.data.check_able(policy._algorithm(), policy.schema)  # noqa: SLF001 - without a purpose too
    except InfeasibleError as error:
        problems.append(at_parameter(error))
    except SchemaError as error:
        problems.append(located(error))
    return problems


def _keys_not_read(policy: Policy) -> Iterator[PolicyProblem]:
    """Why the policy does not say who is the person of a stream's record key."""
    if policy.stream is None:
        return
    key, at = policy.format.key_type, "stream.format.key"
    if getattr(policy.schema, "person", None) is not PersonSource.KEY:
        if policy.format.key is not None:
            yield PolicyProblem(at, "the person is not in the record key (schema.person); leave it out")
    elif policy.format.key_must_be_declared:
        yield PolicyProblem(
            at,
            "is missing: keys may carry the id of a schema, and a new version of it would count every person again; "
            f"say how keys are written, for example format: {{input: {policy.format.input.type}, output: "
            f"{policy.format.output.type}, key: {RAW}}}. Must be one of {', '.join(key_format_names())}",
        )
    elif policy.schema.key_field is not None and key == RAW:
        yield PolicyProblem("schema.person", "a raw key has no fields; say in stream.format.key how keys are written")
    elif policy.schema.key_field is None and key == PROTOBUF:
        yield PolicyProblem("schema.person", "a key of Protobuf is a message; name its field that is the person")


def _not_shown(policy: Policy) -> Iterator[PolicyProblem]:
    """Why classes cannot be published as it is asked."""
    if policy.asked_show is not None and policy.data.shows(policy.algorithm_name) is None:
        yield PolicyProblem("show", "this kind of data has no classes that can be shown; leave it out")
    alone = policy.parameters.alone if isinstance(policy.parameters, StreamParameters) else None
    if policy.show == "mean" and alone is not None:
        reason = f"with this {alone} a row may leave without those who hide it, as its own mean; must be interval"
        yield PolicyProblem("show", reason, "mean")


def at_parameter(error: InfeasibleError) -> PolicyProblem:
    """An infeasible request as a problem of the policy."""
    path = "guarantee" if error.parameter == "guarantee" else f"guarantee.{error.parameter}"
    return PolicyProblem(path, error.reason, error.given, error.nearest)


def _needs(what: str, names: tuple[str, ...], given: str | None) -> PolicyProblem:
    if not names:
        return PolicyProblem("data", f"{what} of this kind of data cannot be made safe: no algorithm is for it")
    return PolicyProblem("guarantee.algorithm", f"{what} needs one of {', '.join(names)}", shown(given))
