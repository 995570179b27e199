"""What a job does, from files to files. It runs in a process of its own and knows neither database nor HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from microdata import Cancelled, PortcullisError, Progress
from service.evidence import gather, keep_secret, new_secret, write
from service.jobs.job import JobKind
from service.jobs.shape import check_shape
from service.ledger import Facts
from service.policy import Policy, PolicyError, PolicyProblem, parse_policy
from service.problems import ProblemError

RESULTS = ("csv", "parquet", "jsonl")
"""Every result is written in each of these, so that asking for one costs no time."""
_QUICKEST_FIRST = ("parquet", "csv", "jsonl")
EVIDENCE, SECRET = "evidence.json", "evidence.secret"
"""Files beside the results."""


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
    by: str
    """Name of the token that it was submitted with."""
    most_columns: int
    most_bytes: int


@dataclass(frozen=True)
class ToRelease:
    """What must be written down before a result can be seen."""

    data_set: str
    policy: str
    purpose: str | None
    facts: Facts
    allow: bool
    """Whether the policy allows what is comparable with nothing."""


@dataclass(frozen=True)
class Result:
    """What came of a job."""

    report: str
    """As JSON."""
    release: ToRelease | None = None
    """None where nobody keeps a ledger of it."""


def work(task: Task, progress: Progress) -> Result:
    """Do the job. What goes wrong is raised as a `ProblemError` that holds no record's value."""
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
        raise ProblemError.of(error) from None


def _anonymize(policy: Policy, task: Task, progress: Progress) -> Result:
    started, kind = time.monotonic(), policy.data
    result = kind.anonymize(policy, Path(task.inputs["table"]), progress=progress)
    progress("report", 0, result.rows)
    release = _to_release(policy, result)
    report = kind.report(policy, result, seconds=time.monotonic() - started)
    for ending in RESULTS:
        kind.write(policy, result, Path(task.out) / f"result.{ending}", progress=progress)
    _file(policy, report, task, progress)
    return Result(report.model_dump_json(), release)


def _file(policy: Policy, report: BaseModel, task: Task, progress: Progress) -> None:
    """Evidence beside the result, and its secret, while the table is still there."""
    out, secret = Path(task.out), new_secret()
    filed = gather(
        policy,
        report,
        original=Path(task.inputs["table"]),
        published=[out / f"result.{ending}" for ending in _QUICKEST_FIRST],
        secret=secret,
        by=task.by,
        progress=progress,
    )
    write(filed, out / EVIDENCE)
    keep_secret(secret, out / SECRET)


def _to_release(policy: Policy, result: Any) -> ToRelease | None:
    asked = policy.releases
    if asked is None:
        return None
    facts = policy.data.facts(policy, result)
    if facts is None:
        raise PolicyError([PolicyProblem("releases", "releases of this kind of data cannot be compared; leave it out")])
    return ToRelease(asked.data_set, policy.name, policy.purpose, facts, asked.incomparable == "allow")


def _audit(policy: Policy, task: Task, progress: Progress) -> Result:
    basis = {part: Path(path) for part, path in task.inputs.items() if part != "published"}
    verdict = policy.data.audit(policy, Path(task.inputs["published"]), basis, progress=progress)
    return Result(json.dumps({"name": policy.name, "fingerprint": policy.fingerprint(), **verdict.shown}))
