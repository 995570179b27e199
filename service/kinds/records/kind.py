"""The kind `records`, from its policies to its reports."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from microdata import DataError, PersonSource, Progress, Sample, Schema, Show, silent, words, write_published
from privacy import ATTACKS, KEYS, TRIALS, Guarantee, Model, check_domains, least_risk
from service.codec import Events
from service.kinds.records.attacked import attack_stream, attack_table
from service.kinds.records.audits import audit_published
from service.kinds.records.embedding import embed
from service.kinds.records.examples import BEGINNING, examples
from service.kinds.records.figures import figures_of_replay, figures_of_table
from service.kinds.records.links import write_links
from service.kinds.records.outside import report_against, wrong_counts
from service.kinds.records.preset import wrong_preset
from service.kinds.records.schema import check_fields, schema_of
from service.kinds.records.section import SchemaSection
from service.kinds.records.table_check import RecordsCheck, check_table
from service.kinds.records.tables import AnonymizedTable, anonymize_table, facts_of, report_on
from service.ledger import Facts
from service.policy import Policy, PolicyProblem
from service.policy.data import Beside, DataKind, Example, Outside, TopicFacts, Verdict
from service.policy.hierarchies import Hierarchies
from service.proposal import Proposal, propose
from service.report import Attacked, TableReport, report_html
from static_algos import STATIC_ALGORITHMS, Entry, StaticAlgorithm
from static_algos.learning import MOST_LABELS
from stream_algos import STREAM_ALGORITHMS


class Records(DataKind):
    """Tables and events, one record after the other."""

    name = "records"
    section = SchemaSection
    guarantee = Guarantee
    algorithms = STATIC_ALGORITHMS
    engines = STREAM_ALGORITHMS
    keeps_links = True
    report_model = TableReport

    def bound(self, given: object) -> None:
        """At most so many fields."""
        check_fields(given)

    def schema(self, section: SchemaSection, beside: Beside, problems: list[PolicyProblem]) -> Schema | None:
        """Roles with their domains and hierarchies."""
        return schema_of(section, Hierarchies(beside.base, beside.sent), problems)

    def fields(self, schema: Schema) -> tuple[str, ...]:
        """The fields of every role."""
        return schema.fields()

    def identity(self, schema: Schema) -> Mapping[str, Any]:
        """Roles, domains and the contents of hierarchies."""
        return {
            "person": schema.person if isinstance(schema.person, str) else _source(schema),
            "quasi": [attribute.declaration() for attribute in schema.quasi],
            "sensitive": [attribute.declaration() for attribute in schema.sensitive],
            "public": schema.public,
            "weights": schema.weights,
        }

    def check_feasible(self, models: Sequence[Model], schema: Schema) -> None:
        """Whether the sensitive domains have what the models ask for."""
        check_domains(models, schema)

    def check_attacks(self, attacks: Mapping[str, float], schema: Schema) -> Iterator[PolicyProblem]:
        """Those that ask for a sensitive value need one; trials show no less than their number allows."""
        for name, most in attacks.items():
            if (ATTACKS | TRIALS)[name].sensitive and not schema.sensitive:
                yield PolicyProblem(f"attacks.{name}", "needs a sensitive attribute; the schema has none")
            if name == "linkability" and len(schema.quasi) < 2:
                yield PolicyProblem(f"attacks.{name}", "needs two quasi-identifiers; the schema has fewer")
            if name in TRIALS and most < least_risk():
                least = math.ceil(1000 * least_risk()) / 1000
                yield PolicyProblem(f"attacks.{name}", f"trials cannot show less than {least}: allow so much or more")

    def check_preset(self, policy: Policy) -> Iterator[PolicyProblem]:
        """Yield fields that are not declared, and what a stream could publish against the rules."""
        return wrong_preset(policy)

    def check_learning(self, names: Sequence[str], schema: Schema) -> Iterator[PolicyProblem]:
        """Sensitive attributes with a few values are what is predicted."""
        sizes = {one.name: one.size or 0 for one in schema.sensitive}
        few = [name for name, size in sizes.items() if size <= MOST_LABELS]
        for place, name in enumerate(names):
            if name not in few:
                reason = (
                    f"a sensitive attribute of at most {MOST_LABELS} values is needed: {', '.join(few) or 'none is'}"
                )
                yield PolicyProblem(f"table.learn[{place}]", reason)

    def not_guaranteed(self, entry: Entry[Any], given: dict[str, Any]) -> list[PolicyProblem]:
        """Those that have a key in guarantees and are none of the algorithm's parameters."""
        keys = [key.name for key in KEYS if key.name in given and key.name not in entry.parameters.model_fields]
        for key in keys:
            del given[key]
        names = ", ".join(model.name for model in entry.algorithm.guarantees) or "nothing"
        return [
            PolicyProblem(f"guarantee.{key}", f"{entry.name} does not take it; it guarantees {names}") for key in keys
        ]

    def check_able(self, algorithm: StaticAlgorithm, schema: Schema) -> None:
        """Whether its models survive what the algorithm does to classes."""
        algorithm.check_able(schema)

    def shows(self, algorithm: str | None) -> Show:
        """As the algorithm says; engines, and who only audits, as intervals."""
        return self.algorithms[algorithm].algorithm.shows if algorithm and algorithm in self.algorithms else "interval"

    def embed(self, given: Mapping[str, Any], schema: Schema) -> None:
        """Hierarchies that the policy names as files."""
        embed(given, schema)

    def anonymize(
        self, policy: Policy, table: Path, *, seed: int | None = None, progress: Progress = silent
    ) -> AnonymizedTable:
        """Read, anonymize and audit a table."""
        return anonymize_table(policy, table, seed=seed, progress=progress)

    def write(
        self,
        policy: Policy,
        result: AnonymizedTable,
        out: Path,
        *,
        links: Path | None = None,
        seed: int | None = None,
        progress: Progress = silent,
    ) -> None:
        """Classes with their boxes or means, in random order."""
        formulas = policy.table.formulas
        written = write_published(result.publication, out, words=words(seed), progress=progress, formulas=formulas)
        if links is not None:
            write_links(links, result.positions[written])

    def report(
        self, policy: Policy, result: AnonymizedTable, *, seconds: float, repeatable: bool = False
    ) -> TableReport:
        """Achieved, lost, at risk."""
        made, declared = report_on(policy, result, seconds=seconds, repeatable=repeatable), policy.outside
        return report_against(policy, result, made, declared) if declared else made

    def check_outside(self, outside: Outside, schema: Schema) -> Iterator[PolicyProblem]:
        """Counts are by quasi-identifiers, of sensitive values."""
        return wrong_counts(schema, outside)

    def against(
        self,
        policy: Policy,
        result: AnonymizedTable,
        report: TableReport,
        outside: Outside,
        *,
        progress: Progress = silent,
    ) -> TableReport:
        """Journalist risk and reconstruction."""
        return report_against(policy, result, report, outside, progress=progress)

    def facts(self, policy: Policy, result: AnonymizedTable) -> Facts:
        """The rows, and the levels that quasi-identifiers are on where there are such."""
        return facts_of(policy, result, self.identity(policy.schema))

    def page(self, report: TableReport) -> str:
        """The report with plots."""
        return report_html(report)

    def audit(
        self, policy: Policy, published: Path, basis: Mapping[str, Path], *, progress: Progress = silent
    ) -> Verdict:
        """Check a published table against its original, or how often each sensitive value was in it."""
        return audit_published(policy, published, basis, progress=progress)

    def attack(
        self,
        policy: Policy,
        original: Path | Events,
        published: Path,
        *,
        links: Path | None = None,
        ticks: Sequence[int] | None = None,
        progress: Progress = silent,
    ) -> Attacked:
        """All attacks on a table; on a stream those of who ties rows together and who knows when people act."""
        if policy.kind == "stream":
            return attack_stream(policy, original, published, links, ticks, progress)
        if isinstance(original, Events):
            raise DataError("a table is attacked with the file that it was made from")
        return attack_table(policy, original, published, links, progress)

    def figures(
        self,
        policy: Policy,
        original: Path,
        published: Path,
        *,
        links: Path | None = None,
        progress: Progress = silent,
    ) -> Mapping[str, Any]:
        """Counts, models, losses and attacks that do not draw at random."""
        if policy.kind == "stream":
            assert links is not None, "replays keep links"
            return figures_of_replay(policy, original, published, links, progress)
        return figures_of_table(policy, original, published, links, progress)

    def check(self, policy: Policy, table: Path, *, progress: Progress = silent) -> RecordsCheck:
        """Rows that the schema refuses, feasibility, fields that point at persons."""
        return check_table(policy, table, progress)

    def propose(self, sample: Sample, name: str) -> Proposal:
        """Every table has records: who is asked last always answers."""
        return propose(sample, name)

    def propose_stream(self, sample: Sample, name: str, topic: TopicFacts) -> Proposal:
        """So has every topic."""
        return propose(sample, name, topic)

    def beginning(self) -> str:
        """A policy with two quasi-identifiers and a sensitive attribute."""
        return BEGINNING

    def examples(self) -> Iterator[Example]:
        """An invented shop."""
        return examples()


RECORDS = Records()


def _source(schema: Schema) -> dict[str, Any]:
    """Where the person of a record comes from, if that is no field of its value."""
    assert isinstance(schema.person, PersonSource), "a field has a name"
    return {"source": schema.person.value, **({"field": schema.key_field} if schema.key_field is not None else {})}
