"""Kinds of data: what each of them must be able to do, and which there are.

A policy says with `data` which kind it is about. Commands, jobs, HTTP, console and reports ask the kind's object for
all that depends on it and know no kind by name. The objects are in `service/kinds/`, one room each, and in packages of
others that declare an entry point of the group `portcullis.kinds`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

import yaml
from pydantic import BaseModel, Field, create_model

from microdata import Progress, Sample, Show, silent
from privacy import Outcome
from service.codec import Events
from service.policy.errors import PolicyError, PolicyProblem, unknown_name
from service.policy.file import DEFAULT, PolicyFile, Section
from static_algos import Catalogue, Entry

if TYPE_CHECKING:
    from service.ledger import Facts
    from service.policy.policy import Policy


@dataclass(frozen=True)
class Verdict:
    """What an audit found, in the words of the kind. No value of a record is in it."""

    outcome: Outcome
    """Whether every guarantee holds; or is not shown to, because the published file does not tell enough."""
    failures: str
    """What does not hold or is not shown, in one line; empty where all holds."""
    findings: Sequence[tuple[str, str, str, str]]
    """Each model, what was asked, what was achieved, and whether it holds."""
    faults: Sequence[str]
    """What must not be there, whatever the models say."""
    notes: Sequence[str]
    """The numbers around it, as sentences."""
    data: Mapping[str, Any]
    """Everything, for JSON: `holds`, `outcome`, `findings`, `faults` and what else the kind measures."""
    shown: Mapping[str, Any]
    """The same for somebody who must not see what the published file calls its parts; findings say `more_is_safer`."""

    @property
    def holds(self) -> bool:
        """Whether every guarantee is shown to hold and nothing is there that must not be."""
        return self.outcome == "holds"


class Anonymized(Protocol):
    """Something made safe, which has passed its audit."""

    @property
    def rows(self) -> int:
        """How much was read, as progress counts it."""

    @property
    def warnings(self) -> Sequence[str]:
        """What was left out, and whatever else its owner should know."""

    @property
    def verdict(self) -> Verdict:
        """What its audit found."""


class Refused(NamedTuple):
    """Rows that were not read, by field and reason."""

    field: str
    reason: str
    rows: int


class TableCheck(Protocol):
    """What a table says about a policy."""

    @property
    def rows(self) -> int:
        """Rows that the policy accepts."""

    @property
    def refused(self) -> Sequence[Refused]:
        """Rows that it does not."""

    @property
    def problems(self) -> Sequence[PolicyProblem]:
        """Why a run would stop."""

    @property
    def warnings(self) -> Sequence[str]:
        """What is feasible and still a mistake."""


class Guess(Protocol):
    """What is proposed for one column."""

    @property
    def name(self) -> str:
        """The column."""

    @property
    def role(self) -> str:
        """What it is taken for."""

    @property
    def reason(self) -> str:
        """Why."""


class Proposal(Protocol):
    """A first policy for a table."""

    @property
    def guesses(self) -> Sequence[Guess]:
        """What is proposed for each column."""

    @property
    def warnings(self) -> Sequence[str]:
        """What its author must decide."""

    def write(self, directory: Path) -> Path:
        """Write the policy and what it names; nothing that is already there is replaced."""


@dataclass(frozen=True)
class TopicFacts:
    """What is known of a topic beside its records."""

    name: str
    keyed: bool = False
    """Whether its records have keys that come back, as those of persons do."""
    tags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What its schema says of fields, such as PII, where there is one."""
    format: str = "json"
    """How its records are written."""
    key_format: str = "raw"
    """How their keys are."""
    key_fields: Sequence[str] = ()
    """Fields of a key that is a record."""
    envelope: str | None = None
    """What is around each event, as policies name it."""


@dataclass(frozen=True)
class Example:
    """An invented table that a policy fits, small enough to be anonymized in a moment."""

    policy: Mapping[str, Any]
    table: str
    """As CSV."""


@dataclass(frozen=True)
class Beside:
    """Where the files are that a policy names."""

    base: Path | None
    """The directory of a policy that is a file on this machine; without one nothing is opened."""
    sent: Mapping[str, str] | None
    """Texts that came along with a policy from outside, by the last part of their names."""


@dataclass(frozen=True)
class Outside:
    """What an attacker may have beside what is published, as its owner declares it."""

    population: int | Path | None = None
    """The people that a table was drawn from: a file of them, or how many they are."""
    counts: Sequence[Sequence[str]] = ()
    """Fields over whose combinations sensitive values are counted, in tables that are to be published too."""
    count_files: Sequence[Path] = ()
    """Such tables as they are to be published, rounded or noisy."""

    def __bool__(self) -> bool:
        return self.population is not None or bool(self.counts) or bool(self.count_files)


class DataKind(ABC):
    """One kind of data, from the words of its policies to the page of its reports."""

    name: ClassVar[str]
    """What `data` says in a policy."""
    section: ClassVar[type[Section]]
    """The policy's `schema`."""
    guarantee: ClassVar[type[BaseModel]]
    """The `guarantee` of a policy without an algorithm, which can only be audited; has `models(schema)`."""
    algorithms: ClassVar[Catalogue[Any]]
    """What makes a table safe. Each is made of its parameters by name and has `models(schema)`, which have `label` and
    `asked`."""
    engines: ClassVar[Catalogue[Any]] = Catalogue()
    """What makes a stream safe."""
    keeps_links: ClassVar[bool] = False
    """Whether `write` can keep which row of the original each published row is, and `audit` and `attack` use that."""
    report_model: ClassVar[type[BaseModel]]
    """What `report` makes. Its field `data` is the name of the kind, so that a report that was kept tells its kind."""

    # -- what a policy says -------------------------------------------------------------------------------------------

    def bound(self, given: object) -> None:  # noqa: B027 - for kinds whose sections may have many parts
        """Refuse a schema that is too large to be looked at: everything that is wrong in it would be described."""

    @abstractmethod
    def schema(self, section: Any, beside: Beside, problems: list[PolicyProblem]) -> Any:
        """What the section means, with the files that it names. None where `problems` were found."""

    @abstractmethod
    def fields(self, schema: Any) -> Sequence[str]:
        """The declared fields: errors may name these."""

    @abstractmethod
    def identity(self, schema: Any) -> Mapping[str, Any]:
        """All that decides how data is read and published, as JSON: the same for schemas that do so alike."""

    @abstractmethod
    def check_feasible(self, models: Sequence[Any], schema: Any) -> None:
        """Raise `InfeasibleError` or `SchemaError` where no data of this schema could satisfy the models."""

    def check_learning(self, names: Sequence[str], schema: Any) -> Iterator[PolicyProblem]:  # noqa: ARG002 - as below
        """What no model can learn from such data; here, anything."""
        if names:
            yield PolicyProblem("table.learn", f"models learn from records, not from {self.name}; leave it out")

    def check_attacks(self, attacks: Mapping[str, float], schema: Any) -> Iterator[PolicyProblem]:  # noqa: ARG002 - as below
        """Attacks that a policy names and that cannot be tried on such data; here, all."""
        if attacks:
            yield PolicyProblem("attacks", f"there are none for {self.name}; leave it out")

    def check_preset(self, policy: Policy) -> Iterator[PolicyProblem]:
        """Yield why the policy contradicts the rules of its preset; here, there are no rules for such data."""
        if policy.preset is not None:
            yield PolicyProblem("preset", f"its rules are about records, not about {self.name}; leave it out")

    def not_guaranteed(self, entry: Entry[Any], given: dict[str, Any]) -> list[PolicyProblem]:  # noqa: ARG002 - as above
        """Models of other algorithms that are asked of this one; they are taken out of what is given."""
        return []

    def check_able(self, algorithm: Any, schema: Any) -> None:  # noqa: B027 - as above
        """Raise `InfeasibleError` where an algorithm cannot keep what it is asked for with this schema."""

    def shows(self, algorithm: str | None) -> Show | None:  # noqa: ARG002 - for kinds with classes
        """How the classes of this algorithm are published where a policy does not say it; None without classes."""
        return None

    def embed(self, given: Mapping[str, Any], schema: Any) -> None:  # noqa: B027 - for kinds with files
        """Put what files held into the policy in the place of their names, so that it needs none beside it."""

    # -- what is done under a policy ----------------------------------------------------------------------------------

    @abstractmethod
    def anonymize(
        self, policy: Policy, table: Path, *, seed: int | None = None, progress: Progress = silent
    ) -> Anonymized:
        """Read, anonymize and audit; raises `GuaranteeError` where the audit fails, so that nothing of it gets out."""

    @abstractmethod
    def write(
        self,
        policy: Policy,
        result: Any,
        out: Path,
        *,
        links: Path | None = None,
        seed: int | None = None,
        progress: Progress = silent,
    ) -> None:
        """Write what may leave as the ending of `out` says: CSV, Parquet, JSON lines.

        `links` gets the row of the original behind each published row, where the kind `keeps_links`; they undo the
        anonymization.
        """

    @abstractmethod
    def report(self, policy: Policy, result: Any, *, seconds: float, repeatable: bool = False) -> BaseModel:
        """What was asked, what was achieved, what it cost."""

    def check_outside(self, outside: Outside, schema: Any) -> Iterator[PolicyProblem]:  # noqa: ARG002 - for kinds that can
        """What an attacker cannot have of such data; here, all."""
        if outside:
            yield PolicyProblem("table", f"populations and counts are known for records, not for {self.name}")

    def against(
        self,
        policy: Policy,  # noqa: ARG002 - as above
        result: Any,  # noqa: ARG002
        report: Any,
        outside: Outside,  # noqa: ARG002
        *,
        progress: Progress = silent,  # noqa: ARG002
    ) -> Any:
        """The report with what an attacker gets who has this too."""
        return report

    def facts(self, policy: Policy, result: Any) -> Facts | None:  # noqa: ARG002 - for kinds whose releases are kept
        """What decides whether a release is comparable with others of its data set; None where nobody can know."""
        return None

    @abstractmethod
    def page(self, report: Any) -> str:
        """The report as one page that needs nothing else."""

    @abstractmethod
    def audit(
        self, policy: Policy, published: Path, basis: Mapping[str, Path], *, progress: Progress = silent
    ) -> Verdict:
        """Check what somebody published against its `original`, or where a kind knows how, its `distribution`.

        With `links` beside the `original`, as `anonymize` and `replay` keep them, persons are counted exactly. What a
        stream left behind is checked with both of them, or by itself, with no basis at all.
        """

    def figures(
        self,
        policy: Policy,  # noqa: ARG002 - as above
        original: Path,  # noqa: ARG002
        published: Path,  # noqa: ARG002
        *,
        links: Path | None = None,  # noqa: ARG002
        progress: Progress = silent,  # noqa: ARG002
    ) -> Mapping[str, Any]:
        """Return what a report says of these files and can be measured again, by the report's names; here, none.

        A section may be returned in part. Verification of evidence compares what is returned, and says that the rest
        was not checked.
        """
        return {}

    def attack(
        self,
        policy: Policy,  # noqa: ARG002 - for kinds that can
        original: Path | Events,  # noqa: ARG002 - as above
        published: Path,  # noqa: ARG002 - as above
        *,
        links: Path | None = None,  # noqa: ARG002 - as above
        ticks: Sequence[int] | None = None,  # noqa: ARG002 - as above
        progress: Progress = silent,  # noqa: ARG002 - as above
    ) -> Any:
        """What attacks get of what is published, for its owner: an `Attacked` of `service.report`.

        `links` are what `anonymize` or `replay` kept; `ticks` say when each line of a stream's output left.
        """
        raise PolicyError([PolicyProblem("data", f"what is published of {self.name} cannot be attacked yet")])

    @abstractmethod
    def check(self, policy: Policy, table: Path, *, progress: Progress = silent) -> TableCheck:
        """Read a table as a run would, and look instead of anonymizing."""

    # -- what there is before a policy --------------------------------------------------------------------------------

    def propose(self, sample: Sample, name: str) -> Proposal | None:  # noqa: ARG002 - for kinds that can
        """A policy for tables like this sample; None where it is not of this kind."""
        return None

    def propose_stream(self, sample: Sample, name: str, topic: TopicFacts) -> Proposal | None:  # noqa: ARG002 - as above
        """A policy for a topic with records like this sample; None where it is not of this kind."""
        return None

    def beginning(self) -> str:
        """A policy as YAML for somebody who begins to write one; the first example, where a kind has no better one."""
        return str(yaml.safe_dump(dict(next(self.examples()).policy), sort_keys=False, allow_unicode=True))

    @abstractmethod
    def examples(self) -> Iterator[Example]:
        """One example for every algorithm; whoever waits for the first table runs them before."""


_KINDS: dict[str, DataKind] = {}


def register(kind: DataKind) -> None:
    """Make a kind known to policies, and so to everything else."""
    if kind.name in _KINDS:
        raise ValueError(f"data {kind.name!r} is registered twice")
    if kind.name != DEFAULT and "data" not in kind.report_model.model_fields:
        raise TypeError(f"a report of {kind.name!r} needs a field `data` with this name")
    _KINDS[kind.name] = kind


def data_kinds() -> tuple[DataKind, ...]:
    """Every kind, the default first."""
    # By name: the rooms are above policies, and import them.
    import_module("service.kinds")
    return tuple(sorted(_KINDS.values(), key=lambda kind: (kind.name != DEFAULT, kind.name)))


def data_kind(name: object) -> DataKind:
    """The kind of this name; `PolicyError` where there is none."""
    known = {kind.name: kind for kind in data_kinds()}
    if not isinstance(name, str) or name not in known:
        raise PolicyError([unknown_name(name, tuple(known))._replace(path="data")])
    return known[name]


def kind_of(given: Mapping[str, Any]) -> DataKind:
    """The kind that a policy is about."""
    return data_kind(given.get("data", DEFAULT))


@cache
def policy_file(kind: DataKind) -> type[PolicyFile]:
    """What a policy file of this kind may say."""
    described = PolicyFile.model_fields
    named = Field(DEFAULT if kind.name == DEFAULT else ..., description=described["data"].description)
    section = Field(alias="schema", description=described["schema_"].description)
    changes: dict[str, Any] = {"data": (Literal[kind.name], named), "schema_": (kind.section, section)}
    return create_model("PolicyFile", __base__=PolicyFile, __doc__=PolicyFile.__doc__, **changes)
