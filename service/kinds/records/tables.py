"""A table under a policy: read, anonymized, audited. Nothing that fails its audit gets out of here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from microdata import GuaranteeError, Progress, Publication, Refusals, read_table, silent
from privacy import Audit, Model, audit
from service.kinds.records.audits import failures, verdict_of
from service.ledger import Facts
from service.policy import Policy
from service.policy.data import Verdict
from service.report import Asked, Refused, TableReport, table_report


@dataclass(frozen=True)
class AnonymizedTable:
    """A publication that passed its audit."""

    publication: Publication
    refusals: Refusals
    audit: Audit
    models: tuple[Model, ...]

    @property
    def rows(self) -> int:
        """Rows that were read."""
        return len(self.publication.table)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Which rows were left out."""
        return (f"refused rows were left out\n{self.refusals.describe()}",) if len(self.refusals) else ()

    @property
    def verdict(self) -> Verdict:
        """What the audit found."""
        return verdict_of(self.audit, self.models)


def anonymize_table(
    policy: Policy, path: Path, *, seed: int | None = None, progress: Progress = silent
) -> AnonymizedTable:
    """Read and anonymize a table, and audit the result; raises `GuaranteeError` when that fails."""
    algorithm = policy.algorithm()
    reading = read_table(path, policy.schema, on_refused=policy.table.on_refused, progress=progress)
    table = reading.table
    models = algorithm.models(policy.schema)
    publication = replace(algorithm.anonymize(table, seed=seed, progress=progress), show=policy.show)
    result = audit(table, publication, models)
    if not result.holds:
        raise GuaranteeError(f"the publication failed its own audit and is not written: {failures(result)}")
    return AnonymizedTable(publication, reading.refusals, result, models)


def report_on(policy: Policy, result: AnonymizedTable, *, seconds: float, repeatable: bool = False) -> TableReport:
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


def facts_of(policy: Policy, result: AnonymizedTable, identity: Mapping[str, Any]) -> Facts:
    """What decides whether a release is comparable with others of its data set."""
    table, levels = result.publication.table, result.publication.details.get("levels")
    # Persons are codes of this run alone.
    rows = np.column_stack([table.quasi, table.sensitive])
    ordered = np.ascontiguousarray(rows[np.lexsort(rows.T)])
    read = hashlib.sha256(json.dumps(identity, sort_keys=True).encode() + ordered.tobytes()).hexdigest()
    if not isinstance(levels, Mapping) or result.publication.show == "mean" or result.publication.suppressed:
        return Facts(read)
    asked = policy.parameters.model_dump(mode="json")
    made = {"identity": identity, **{name: asked.get(name) for name in ("height", "widths")}}
    return Facts(read, hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest(), dict(levels))
