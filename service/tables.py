"""A table under a policy: read, anonymized, audited. Nothing that fails its audit gets out of here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from microdata import GuaranteeError, Progress, Publication, Refusals, read_table, silent
from privacy import Audit, audit
from service.policy import Policy
from service.report import Asked, Refused, TableReport, table_report


@dataclass(frozen=True)
class Anonymized:
    """A publication that passed its audit."""

    publication: Publication
    refusals: Refusals
    audit: Audit


def anonymize_table(policy: Policy, path: Path, *, seed: int | None = None, progress: Progress = silent) -> Anonymized:
    """Read and anonymize a table, and audit the result; raises `GuaranteeError` when that fails."""
    algorithm = policy.algorithm()
    reading = read_table(path, policy.schema, on_refused=policy.table.on_refused, progress=progress)
    table = reading.table
    models = algorithm.models(policy.schema)
    publication = algorithm.anonymize(table, seed=seed, progress=progress)
    result = audit(table, publication, models)
    if not result.holds:
        raise GuaranteeError(f"the publication failed its own audit and is not written: {failures(result)}")
    return Anonymized(publication, reading.refusals, result)


def report_on(policy: Policy, result: Anonymized, *, seconds: float, repeatable: bool = False) -> TableReport:
    """The report of a table that was anonymized under a policy."""
    refused = [
        Refused(field=field, reason=reason.code, rows=rows)
        for (field, reason), rows in result.refusals.counts().items()
    ]
    return table_report(
        result.publication,
        policy.models(),
        asked=Asked(algorithm=policy.algorithm_name, parameters=policy.parameters.model_dump(mode="json")),
        seconds=seconds,
        name=policy.name,
        fingerprint=policy.fingerprint(),
        audited=result.audit,
        refused=refused,
        repeatable=repeatable,
    )


def failures(result: Audit) -> str:
    """What does not hold, in one line."""
    failed = [
        f"{finding.model} of {finding.asked:g} fails in {finding.failing} of {result.classes} classes"
        for finding in result.findings
        if not finding.holds
    ]
    return "; ".join([*failed, *(f"{fault.count} {fault.reason}" for fault in result.faults)])
