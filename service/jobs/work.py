"""What a job does, from files to files. It runs in a process of its own and knows neither database nor HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from microdata import (
    Attribute,
    Cancelled,
    Category,
    Number,
    PortcullisError,
    Progress,
    Schema,
    read_published,
    read_table,
    write_published,
)
from privacy import Audit, audit
from service.jobs.job import JobKind
from service.jobs.shape import check_shape
from service.policy import Policy, parse_policy
from service.problems import Place, ProblemError
from service.tables import anonymize_table, report_on

RESULTS = ("csv", "parquet", "jsonl")
"""Every result is written in each of these, so that asking for one costs no time."""


@dataclass(frozen=True)
class Task:
    """All that a job's process is told."""

    kind: JobKind
    policy: str
    """As JSON, hierarchies included."""
    inputs: Mapping[str, str]
    """Path of each part."""
    out: str
    """Directory for the result."""
    most_columns: int
    most_bytes: int


def work(task: Task, progress: Progress) -> str:
    """Do the job; its report as JSON. What goes wrong is raised as a `ProblemError` that holds no record's value."""
    policy: Policy | None = None
    try:
        policy = parse_policy(json.loads(task.policy))
        for part, path in task.inputs.items():
            if part != "distribution":
                check_shape(Path(path), part, most_columns=task.most_columns, most_bytes=task.most_bytes)
        return _anonymize(policy, task, progress) if task.kind == "anonymize" else _audit(policy, task, progress)
    except Cancelled:
        raise
    except PortcullisError as error:
        raise ProblemError.of(error, policy.schema.fields() if policy else ()) from None


def _anonymize(policy: Policy, task: Task, progress: Progress) -> str:
    started = time.monotonic()
    result = anonymize_table(policy, Path(task.inputs["table"]), progress=progress)
    progress("report", 0, len(result.publication.table))
    report = report_on(policy, result, seconds=time.monotonic() - started)
    for ending in RESULTS:
        write_published(
            result.publication, Path(task.out) / f"result.{ending}", progress=progress, formulas=policy.table.formulas
        )
    return report.model_dump_json()


def _audit(policy: Policy, task: Task, progress: Progress) -> str:
    published = read_published(Path(task.inputs["published"]), policy.schema, formulas=policy.table.formulas)
    progress("read", len(published), len(published))
    if "original" in task.inputs:
        path = Path(task.inputs["original"])
        table = read_table(path, policy.schema, on_refused=policy.table.on_refused, progress=progress).table
        result = audit(table, published, policy.models())
    else:
        result = audit(_distribution(policy.schema, Path(task.inputs["distribution"])), published, policy.models())
    return json.dumps(audit_report(policy, result))


def audit_report(policy: Policy, result: Audit) -> dict[str, Any]:
    """An audit as data. What the published file calls its classes and columns was sent, so it is not repeated."""
    report = result.as_dict()
    for finding, model in zip(report["findings"], policy.models(), strict=True):
        del finding["classes"]
        finding["more_is_safer"] = model.more_is_safer
    for fault in report["faults"]:
        fault["reason"] = fault["reason"].partition(":")[0]
    return {"name": policy.name, "fingerprint": policy.fingerprint(), **report}


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
        index = _index(attribute, value)
        if index is None or not 0 <= index < len(counts):
            raise _wrong(place, "holds a value that is not in the attribute's domain")
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count < 2**53:
            raise _wrong(place, "counts must be whole numbers from 0")
        counts[index] = count
    return counts


def _index(attribute: Attribute, value: str) -> int | None:
    if isinstance(attribute, Category):
        return attribute.hierarchy.codes.get(value.strip())
    assert isinstance(attribute, Number)
    try:
        return round((float(value) - attribute.low) / (attribute.grid or 1.0))
    except (ValueError, OverflowError):
        return None


def _wrong(path: str, reason: str) -> ProblemError:
    return ProblemError("bad-upload", "The distribution cannot be used.", [Place(path=path, reason=reason)])
