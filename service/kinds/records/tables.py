"""A table under a policy: read, anonymized, audited. Nothing that fails its audit gets out of here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microdata import Encoded, GuaranteeError, InfeasibleError, Progress, Publication, Refusals, read_table, silent
from privacy import Audit, Model, audit
from privacy.trials import FEWEST
from service.kinds.records.audits import failures, verdict_of
from service.kinds.records.preset import require_preset
from service.ledger import Facts
from service.policy import Policy
from service.policy.data import Verdict
from service.report import (
    Asked,
    Condition,
    Rejected,
    Rejection,
    TableReport,
    conditions,
    exposed,
    learnt_of,
    needs_control,
    rejected_sentence,
    table_report,
    tried,
)


@dataclass(frozen=True)
class AnonymizedTable:
    """A publication that passed its audit."""

    publication: Publication
    refusals: Refusals
    audit: Audit
    models: tuple[Model, ...]
    positions: NDArray[np.int64]
    """Where each row of the table is in the file that was read, from 0."""
    rejected: Rejected
    """Rows that fail validation."""
    attacked: tuple[Condition, ...] = ()
    """Attacks that the policy names."""
    preset: str = ""
    """What the check against the policy's preset found; empty if there is no preset."""

    @property
    def rows(self) -> int:
        """Rows that were read."""
        return len(self.publication.table)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Which rows were rejected, by column."""
        if not self.rejected.rows:
            return ()
        sentence = rejected_sentence(self.rejected, self.publication.given, "rows")
        return (f"{sentence}\n{self.refusals.describe()}",)

    @property
    def verdict(self) -> Verdict:
        """What the audit found."""
        found = verdict_of(self.audit, self.models)
        notes = [*found.notes, self.preset] if self.preset else found.notes
        return replace(found, findings=[*found.findings, *(one.finding for one in self.attacked)], notes=notes)


def anonymize_table(
    policy: Policy, path: Path, *, seed: int | None = None, progress: Progress = silent
) -> AnonymizedTable:
    """Read and anonymize a table, audit and attack the result; raises `GuaranteeError` when that fails."""
    algorithm = policy.algorithm()
    reading = read_table(path, policy.schema, on_refused=policy.table.on_refused, progress=progress)
    table = reading.table
    models = algorithm.models(policy.schema)
    publication = replace(algorithm.anonymize(table, seed=seed, progress=progress), show=policy.show)
    result = audit(table, publication, models)
    if not result.holds:
        raise GuaranteeError(f"the publication failed its own audit and is not written: {failures(result)}")
    return AnonymizedTable(
        publication,
        reading.refusals,
        result,
        models,
        reading.rows,
        rejected_rows(reading, policy.rejected.warn_above),
        _attacked(policy, publication),
        require_preset(policy, publication),
    )


def rejected_rows(reading: Encoded, warn_above: float) -> Rejected:
    """Return how many rows of a file fail validation, by field and reason."""
    counts = reading.refusals.counts().items()
    reasons = [Rejection(field=field, reason=reason.code, rows=rows) for (field, reason), rows in counts]
    rows = reading.table.rejected
    return Rejected.of(rows, len(reading.table) + rows, reasons, warn_above)


def _attacked(policy: Policy, publication: Publication) -> tuple[Condition, ...]:
    """Try the attacks that the policy names; raises `GuaranteeError` where one gets too far."""
    if not policy.attacks:
        return ()
    controlled = tried(publication) if needs_control(policy.attacks) else []
    if needs_control(policy.attacks) and not controlled:
        persons = len(np.unique(publication.table.persons[publication.classes >= 0]))
        reason = "persons that must be published for an attack with a control to be tried"
        raise InfeasibleError(reason, parameter="attacks", given=persons, nearest=FEWEST)
    found = conditions(policy.attacks, exposed(publication), controlled)
    failed = [one.failure for one in found if not one.holds]
    if failed:
        raise GuaranteeError(f"the publication can be attacked and is not written: {'; '.join(failed)}")
    return found


def report_on(policy: Policy, result: AnonymizedTable, *, seconds: float, repeatable: bool = False) -> TableReport:
    """The report of a table that was anonymized under a policy."""
    made = table_report(
        result.publication,
        policy.models(),
        asked=Asked(algorithm=policy.algorithm_name, parameters=policy.parameters.model_dump(mode="json")),
        seconds=seconds,
        name=policy.name,
        fingerprint=policy.fingerprint(),
        audited=result.audit,
        rejected=result.rejected,
        repeatable=repeatable,
    )
    return made.model_copy(update={"learnt": learnt_of(result.publication, policy.table.learn)})


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
