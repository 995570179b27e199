"""The kind `ratings`, from its policies to its reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from microdata import Progress, Sample, silent, words
from microdata.ratings import RatingSchema, write_ratings
from privacy.ratings import check_scale
from service.kinds.ratings.page import report_html
from service.kinds.ratings.proposal import RatingsProposal, propose
from service.kinds.ratings.report import RatingsReport, report_on
from service.kinds.ratings.section import RatingsSection, schema_of
from service.kinds.ratings.tables import (
    AnonymizedRatings,
    RatingsCheck,
    anonymize_ratings,
    audit_published,
    check_table,
)
from service.policy import Policy, PolicyProblem
from service.policy.data import Beside, DataKind, Example, Verdict
from static_algos.ratings import RATING_ALGORITHMS, RatingGuarantee

BEGINNING = """\
# Everybody's published ratings are those of at least 5 persons. q17 and q18 are published as they are, and differ
# among the persons who could be meant.
name: survey
data: ratings
schema:
  person: respondent
  layout: long                # or wide: one column per item
  item: question
  rating: {field: stars, min: 1, max: 5, step: 1}
  sensitive: [q17, q18]       # names of items or patterns
guarantee: {algorithm: ke_anon, k: 5, epsilon: 1, strategy: same, l: {sd: 0.5}}
"""


class Ratings(DataKind):
    """Who gave which item how many stars."""

    name = "ratings"
    section = RatingsSection
    guarantee = RatingGuarantee
    algorithms = RATING_ALGORITHMS
    report_model = RatingsReport

    def schema(self, section: RatingsSection, beside: Beside, problems: list[PolicyProblem]) -> RatingSchema | None:
        """Roles and scale; no file is named."""
        del beside
        return schema_of(section, problems)

    def fields(self, schema: RatingSchema) -> Sequence[str]:
        """The declared columns."""
        return schema.fields()

    def identity(self, schema: RatingSchema) -> Mapping[str, Any]:
        """All of the schema."""
        return schema.declaration()

    def check_feasible(self, models: Sequence[Any], schema: RatingSchema) -> None:
        """Whether the scale has what the models ask for."""
        check_scale(tuple(models), schema)

    def anonymize(
        self, policy: Policy, table: Path, *, seed: int | None = None, progress: Progress = silent
    ) -> AnonymizedRatings:
        """Read, anonymize and audit ratings."""
        return anonymize_ratings(policy, table, seed=seed, progress=progress)

    def write(
        self,
        policy: Policy,
        result: AnonymizedRatings,
        out: Path,
        *,
        links: Path | None = None,
        seed: int | None = None,
        progress: Progress = silent,
    ) -> None:
        """Ratings under random numbers of persons, in random order."""
        assert links is None, "ratings keep none"
        released, formulas = result.publication.released, policy.table.formulas
        write_ratings(released, out, words=words(seed), formulas=formulas, progress=progress)

    def report(
        self, policy: Policy, result: AnonymizedRatings, *, seconds: float, repeatable: bool = False
    ) -> RatingsReport:
        """Achieved, lost, attacked."""
        return report_on(policy, result, seconds=seconds, repeatable=repeatable)

    def page(self, report: RatingsReport) -> str:
        """The report with pictures."""
        return report_html(report)

    def audit(
        self, policy: Policy, published: Path, basis: Mapping[str, Path], *, progress: Progress = silent
    ) -> Verdict:
        """Check published ratings against their original."""
        return audit_published(policy, published, basis, progress=progress)

    def check(self, policy: Policy, table: Path, *, progress: Progress = silent) -> RatingsCheck:
        """Rows that the schema refuses, feasibility, what is not promised."""
        return check_table(policy, table, progress)

    def propose(self, sample: Sample, name: str) -> RatingsProposal | None:
        """A policy where columns are called and filled like ratings."""
        return propose(sample, name)

    def beginning(self) -> str:
        """A survey with two sensitive questions."""
        return BEGINNING

    def examples(self) -> Iterator[Example]:
        """A small survey for every algorithm."""
        for entry in RATING_ALGORITHMS:
            data = entry.algorithm.example_data()
            rows = [
                f"{person},{data.names[item]},{value}"
                for part in (data.open, data.sensitive)
                for person, item, value in zip(
                    part.rows.tolist(), part.items.tolist(), part.values.tolist(), strict=True
                )
            ]
            schema = {
                "person": "person",
                "item": "item",
                "rating": {"field": "rating", "min": data.scale.low, "max": data.scale.high},
                "sensitive": list(data.schema.sensitive),
            }
            guarantee = {"algorithm": entry.name, **entry.algorithm.example}
            policy = {"name": "warm-up", "data": "ratings", "schema": schema, "guarantee": guarantee}
            yield Example(policy, "person,item,rating\n" + "\n".join(rows) + "\n")


RATINGS = Ratings()
