"""Audits of records: of what somebody published, and in words that people read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from microdata import Attribute, Progress, Schema, Table, read_published, read_table
from privacy import Audit, Finding, KOverTime, Model, Outcome, audit, audit_linked
from service.kinds.records.links import read_links
from service.kinds.records.replayed import audit_alone, audit_replayed, read_replay
from service.policy import Policy
from service.policy.data import Verdict
from service.problems import Place, ProblemError

_PERSONS = {
    "exact": "distinct persons",
    "at least": "the fewest that the original allows: a published table does not show whose rows it has",
    "rows": "rows, for want of persons",
}
NOT_ATTACKED = "the attacks of the policy were not tried: that is done when a table is made"


def audit_published(policy: Policy, published: Path, basis: Mapping[str, Path], *, progress: Progress) -> Verdict:
    """Check a published table against its original, or against the counts of the original's sensitive values."""
    schema, models, original = policy.schema, policy.models(), basis.get("original")
    if policy.kind == "stream" and ("links" in basis or not basis):
        return _audit_lines(policy, published, basis, progress)
    known: Table | list[NDArray[np.int64]]
    if original is None:
        known = _distribution(schema, basis["distribution"])
    else:
        reading = read_table(original, schema, on_refused=policy.table.on_refused, progress=progress)
        known = reading.table
    read = read_published(published, schema, formulas=policy.table.formulas, show=policy.show)
    progress("read", len(read), len(read))
    if original is not None and "links" in basis:
        linked = read_links(basis["links"], reading.rows, len(read))
        found = audit_linked(reading.table, read, linked, models)
    else:
        found = audit(known, read, models)
    verdict = verdict_of(found, models)
    return replace(verdict, notes=[*verdict.notes, NOT_ATTACKED]) if policy.attacks else verdict


def _audit_lines(policy: Policy, published: Path, basis: Mapping[str, Path], progress: Progress) -> Verdict:
    """Check what a stream left behind, with links to the events or by itself."""
    if "links" in basis:
        files = read_replay(policy, published, basis["original"], basis["links"], progress)
        result, models, notes = audit_replayed(policy, files)
    else:
        result, models, notes = audit_alone(policy, published)
    verdict = verdict_of(result, models)
    return replace(verdict, notes=[*verdict.notes, *notes], shown={**verdict.shown, "not_repeated": notes})


def verdict_of(result: Audit, models: Sequence[Model]) -> Verdict:
    """What an audit found, for people and programs."""
    return Verdict(
        outcome=result.outcome,
        failures=failures(result),
        findings=_findings(result),
        faults=[f"{fault.count} {fault.reason}" for fault in result.faults],
        notes=_notes(result),
        data=result.as_dict(),
        shown=_shown(result, models),
    )


def failures(result: Audit) -> str:
    """What does not hold, or is not shown, in one line."""
    failed = [
        f"{finding.model} of {finding.asked:g} {_why_not(finding, result)}"
        for finding in result.findings
        if not finding.holds
    ]
    return "; ".join([*failed, *(f"{fault.count} {fault.reason}" for fault in result.faults)])


def _findings(result: Audit) -> list[tuple[str, str, str, str]]:
    """Asked, achieved and holds for each model."""
    return [
        (
            finding.model + (f" (by {finding.ground})" if finding.ground else ""),
            f"{finding.asked:g}",
            _achieved(finding),
            _ANSWERS[finding.outcome] + ("" if finding.holds else f" {_where(finding, result)}"),
        )
        for finding in result.findings
    ]


_ANSWERS: Mapping[Outcome, str] = {"holds": "yes", "not shown": "not shown", "does not hold": "NO, fails"}


def _achieved(finding: Finding) -> str:
    """What the least safe class achieves, or a bound of it."""
    if finding.achieved is None:
        return "–"
    return f"{finding.bound} {finding.achieved:.4g}" if finding.bound else f"{finding.achieved:.4g}"


def _why_not(finding: Finding, result: Audit) -> str:
    """How a model fails, or why it is not known whether it does."""
    if finding.outcome == "not shown":
        return f"cannot be shown from the published file: {_achieved(finding)}, {_where(finding, result)}"
    known = f": {_achieved(finding)}" if finding.bound else ""
    return f"fails {_where(finding, result)}{known}"


def _where(finding: Finding, result: Audit) -> str:
    """How often a model fails or is not shown: what holds over time is counted for persons."""
    number = finding.failing or finding.not_shown
    over_time = finding.model == KOverTime.name
    return f"for {number} persons" if over_time else f"in {number} of {result.classes} classes"


def _notes(result: Audit) -> list[str]:
    """The numbers around it."""
    suppressed = "" if result.suppressed is None else f", {result.suppressed} suppressed"
    if result.rejected:
        suppressed += f", {result.rejected} rejected"
    loss = "shown as means" if result.loss is None else f"loss {result.loss:.4f} (0 nothing lost, 1 all)"
    notes = [f"{result.rows} rows in {result.classes} classes{suppressed}; {loss}"]
    if result.fewest_persons is not None:
        notes.append(f"smallest class: {result.fewest_persons} persons (counted as {_PERSONS[result.persons]})")
    if result.largest_share is not None:
        bound = "at most " if result.persons == "at least" else ""
        notes.append(f"largest share of one person in a class: {bound}{result.largest_share:.1%}")
    return notes


def _shown(result: Audit, models: Sequence[Model]) -> dict[str, Any]:
    """An audit as data. What the published file calls its classes and columns was sent, so it is not repeated."""
    report = result.as_dict()
    for finding, model in zip(report["findings"], models, strict=True):
        del finding["classes"]
        finding["more_is_safer"] = model.more_is_safer
    for fault in report["faults"]:
        fault["reason"] = fault["reason"].partition(":")[0]
    return report


def _distribution(schema: Schema, path: Path) -> list[NDArray[np.int64]]:
    """Counts of every value of each sensitive attribute, from `{attribute: {value: count}}`."""
    try:
        given = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError:
        given = None
    if not isinstance(given, dict):
        raise _wrong("distribution", "must be JSON: {attribute: {value: count}}")
    return [_counts(attribute, given.get(attribute.name)) for attribute in schema.sensitive]


def _counts(attribute: Attribute, given: object) -> NDArray[np.int64]:
    place = f"distribution.{attribute.name}"
    if not isinstance(given, dict):
        raise _wrong(place, "is missing; must be a mapping from values to counts")
    counts = np.zeros(attribute.size or 0, np.int64)
    for value, count in given.items():
        index = attribute.code_of(value)
        if index is None or not 0 <= index < len(counts):
            raise _wrong(place, "holds a value that is not in the attribute's domain")
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count < 2**53:
            raise _wrong(place, "counts must be whole numbers from 0")
        counts[index] = count
    return counts


def _wrong(path: str, reason: str) -> ProblemError:
    return ProblemError("bad-upload", "The distribution cannot be used.", [Place(path=path, reason=reason)])
