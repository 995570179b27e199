"""Ratings under a policy: read, anonymized, audited; and what somebody else published, audited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from microdata import GuaranteeError, InfeasibleError, Progress, silent
from microdata.ratings import RatingsReading, read_ratings
from privacy.ratings import RatingAudit, audit_ratings, check_persons, hamming_groups
from service.policy import Policy, PolicyProblem
from service.policy.data import Refused, Verdict
from service.policy.policy import at_parameter
from service.problems import Place, ProblemError
from service.report import Rejected, Rejection, rejected_sentence
from static_algos.ratings import RatingsPublication

_COMPARED = {
    "rows": "every published row is compared with what the policy's algorithm makes of the original",
    "totals": "the policy names no algorithm: compared are sensitive ratings and the number of ratings of each item, "
    "so that a changed rating may go unnoticed",
}
SPARSE = 0.5
"""Share of persons with a pattern of items of their own from which grouping by patterns makes no sense."""


@dataclass(frozen=True)
class AnonymizedRatings:
    """A publication that passed its audit."""

    publication: RatingsPublication
    reading: RatingsReading
    audit: RatingAudit
    exact: bool
    """Whether it also stops somebody who knows ratings exactly."""
    warn_above: float
    """Share of rejected rows above which the policy wants a warning."""

    @property
    def rejected(self) -> Rejected:
        """Rows that fail validation."""
        reasons = [Rejection(field=one.field, reason=one.code, rows=len(one.rows)) for one in self.reading.refused]
        return Rejected.of(self.reading.rejected, self.reading.rows, reasons, self.warn_above)

    @property
    def rows(self) -> int:
        """Ratings that were read."""
        return self.reading.ratings.count

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out, and what is not promised."""
        found = []
        if self.reading.refused:
            sentence = rejected_sentence(self.rejected, self.reading.rows, "rows")
            found.append(f"{sentence}\n{self.reading.describe()}")
        if self.publication.withheld:
            found.append(f"{self.publication.withheld} persons share no item with their group and are not published")
        if not self.exact:
            found.append(EXACT)
        return tuple(found)

    @property
    def verdict(self) -> Verdict:
        """What the audit found."""
        return verdict_of(self.audit)


EXACT = (
    "(k,ε) stops who knows no better than within ε what is published of a person, not who knows what the person really "
    "gave; strategy: same does, and the report shows both attacks"
)


@dataclass(frozen=True)
class RatingsCheck:
    """What a table says about a policy."""

    rows: int
    refused: tuple[Refused, ...]
    problems: tuple[PolicyProblem, ...]
    warnings: tuple[str, ...]


def anonymize_ratings(
    policy: Policy, path: Path, *, seed: int | None = None, progress: Progress = silent
) -> AnonymizedRatings:
    """Read and anonymize, and audit the result; raises `GuaranteeError` when that fails."""
    algorithm = policy.algorithm()
    reading = _read(policy, path, progress)
    publication = algorithm.anonymize(reading.ratings, seed=seed, progress=progress)
    invents = algorithm.parameters.null_policy == "majority"
    result = audit_ratings(reading.ratings, publication.released, policy.models(), may_invent=invents)
    result = replace(result, rejected=reading.rejected)
    if not result.holds:
        raise GuaranteeError(f"the publication failed its own audit and is not written: {failures(result)}")
    return AnonymizedRatings(publication, reading, result, stops_exact(policy), policy.rejected.warn_above)


def audit_published(policy: Policy, published: Path, basis: Mapping[str, Path], *, progress: Progress) -> Verdict:
    """Check a published file against its original; where the policy names an algorithm, against what that makes."""
    if "original" not in basis:
        place = Place(path="original", reason="is missing; ratings are audited against their original")
        raise ProblemError("bad-upload", "The audit needs the original table.", [place])
    reading = _read(policy, basis["original"], progress)
    original = reading.ratings
    seen = read_ratings(published, policy.schema, formulas=policy.table.formulas, progress=progress).ratings
    invents, expected = False, None
    if policy.kind == "table":
        algorithm = policy.algorithm()
        invents = algorithm.parameters.null_policy == "majority"
        expected = algorithm.anonymize(original, progress=progress).released
    found = audit_ratings(original, seen, policy.models(), expected=expected, may_invent=invents)
    return verdict_of(replace(found, rejected=reading.rejected), _COMPARED[found.compared])


def check_table(policy: Policy, path: Path, progress: Progress) -> RatingsCheck:
    """Read the table as a run would, and look instead of anonymizing."""
    reading = read_ratings(path, policy.schema, on_refused="drop", progress=progress)
    ratings, problems, warnings = reading.ratings, [], []
    if reading.refused:
        text = f"the schema refuses rows of the table\n{reading.describe()}"
        if policy.table.on_refused == "stop":
            problems.append(PolicyProblem("table.on_refused", text))
        else:
            warnings.append(text)
    try:
        check_persons(policy.models(), ratings)
    except InfeasibleError as error:
        problems.append(at_parameter(error))
    if policy.kind == "table":
        if not stops_exact(policy):
            warnings.append(EXACT)
        patterns = len(set(hamming_groups(ratings.open).tolist()))
        if policy.algorithm().parameters.items == "all" and patterns > SPARSE * len(ratings):
            warnings.append(
                f"guarantee.items: {patterns} of {len(ratings)} persons rated other items than everybody else; "
                "items: most keeps more of such ratings"
            )
    refused = tuple(Refused(one.field, one.code, len(one.rows)) for one in reading.refused)
    return RatingsCheck(ratings.count, refused, tuple(problems), tuple(warnings))


def stops_exact(policy: Policy) -> bool:
    """Whether the policy asks for groups with one row for all."""
    return policy.parameters.epsilon == 0 or policy.algorithm().parameters.strategy == "same"  # type: ignore[attr-defined]


def failures(result: RatingAudit) -> str:
    """What does not hold, in one line."""
    failed = [
        f"{finding.model} of {finding.asked:g} fails for {finding.failing} of {result.persons} persons"
        for finding in result.findings
        if not finding.holds
    ]
    return "; ".join([*failed, *(f"{fault.count} {fault.reason}" for fault in result.faults)])


def verdict_of(result: RatingAudit, *notes: str) -> Verdict:
    """What an audit found, for people and programs; `notes` are told behind its numbers."""
    data = result.as_dict()
    return Verdict(
        outcome=result.outcome,
        failures=failures(result),
        findings=[
            (
                finding.model,
                f"{finding.asked:g}",
                "–" if finding.achieved is None else f"{finding.achieved:.4g}",
                "yes" if finding.holds else f"NO, fails for {finding.failing} of {result.persons} persons",
            )
            for finding in result.findings
        ],
        faults=[f"{fault.count} {fault.reason}" for fault in result.faults],
        notes=[
            f"{result.ratings} ratings of {result.persons} persons; {result.suppressed} ratings are not published",
            f"{result.rejected} rows of the original were rejected",
            *notes,
        ],
        data=data,
        shown=data,
    )


def _read(policy: Policy, path: Path, progress: Progress) -> RatingsReading:
    return read_ratings(path, policy.schema, on_refused=policy.table.on_refused, progress=progress)
