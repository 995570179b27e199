"""What the API answers, as models: they document themselves in the OpenAPI document."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field

from service.jobs import JobKind, JobView, State, StoredPolicy
from service.problems import Place, Problem

_ID = "Qm5zYk1hZ2ljTm90R3Vlc3NhYmxlSWQx"


class Answer(BaseModel):
    """Base of every answer."""

    model_config = ConfigDict(frozen=True)


class Progress(Answer):
    """How far a running job is."""

    phase: str = Field(examples=["draw"])
    rows_done: int
    rows_total: int
    seconds_left: float | None = Field(description="estimate for this phase, from its speed so far")


class JobAnswer(Answer):
    """A job."""

    id: str = Field(examples=[_ID])
    kind: JobKind
    state: State
    policy: str = Field(description="name of the policy", examples=["adult"])
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    expires_at: datetime | None = Field(description="when result and report are deleted")
    attempts: int = Field(description="how often it was started; a job whose machine died is started again once")
    progress: Progress | None = Field(description="while it runs")
    problem: Problem | None = Field(description="why it failed")
    report: dict[str, Any] | None = Field(description="of a job that succeeded; not in lists")
    links: dict[str, str] = Field(examples=[{"self": f"/v1/jobs/{_ID}"}])

    @classmethod
    def of(cls, job: JobView, *, keep: float) -> Self:
        """What users see of a job, without its report."""
        return cls(**shown_job(job, keep=keep))


def shown_job(job: JobView, *, keep: float) -> dict[str, Any]:
    """The fields of a `JobAnswer`, without the report; as data, because pages of models take longer to build."""
    here = f"/v1/jobs/{job.id}"
    links = {"self": here, "events": f"{here}/events"}
    if job.state == "succeeded":
        links["report"] = f"{here}/report"
    if job.state == "succeeded" and job.kind == "anonymize":
        links["result"] = f"{here}/result"
    return {
        "id": job.id,
        "kind": job.kind,
        "state": job.state,
        "policy": job.policy_name,
        "created_at": moment(job.created_at),
        "started_at": job.started_at and moment(job.started_at),
        "finished_at": job.finished_at and moment(job.finished_at),
        "expires_at": job.finished_at and moment(job.finished_at + keep),
        "attempts": job.attempts,
        "progress": _progress(job) if job.state == "running" else None,
        "problem": orjson.loads(job.problem) if job.problem else None,
        "report": None,
        "links": links,
    }


def moment(seconds: float) -> datetime:
    """A time as RFC 3339 wants it: with its offset, to the millisecond."""
    return datetime.fromtimestamp(round(seconds * 1_000) / 1_000, UTC)


def _progress(job: JobView) -> dict[str, Any]:
    left = None
    if job.phase_at is not None and 0 < job.done <= job.total:
        elapsed = max(0.0, datetime.now(UTC).timestamp() - job.phase_at)
        left = round(elapsed * (job.total - job.done) / job.done, 1)
    return {"phase": job.phase or "start", "rows_done": job.done, "rows_total": job.total, "seconds_left": left}


def as_json(given: dict[str, Any]) -> bytes:
    """An answer that is data already; the framework would check it against its model first."""
    return orjson.dumps(given, option=orjson.OPT_UTC_Z)


class JobPage(Answer):
    """Some jobs, from the newest to the oldest."""

    jobs: list[JobAnswer]
    next: str | None = Field(description="`after` for the next page; null on the last one")


class PolicyCheck(Answer):
    """Whether a policy can be used."""

    usable: bool
    problems: list[Place] = Field(description="everything that is wrong")
    name: str | None = None
    kind: Literal["table", "stream", "audit"] | None = None
    models: dict[str, float] = Field(default_factory=dict, description="privacy models with what is asked of them")
    fingerprint: str | None = Field(None, description="the same for policies that publish alike")


class PolicyAnswer(Answer):
    """A stored policy."""

    name: str
    text: str = Field(description="as JSON, hierarchies included")
    fingerprint: str
    updated_at: datetime

    @classmethod
    def of(cls, policy: StoredPolicy) -> Self:
        """What users see of a policy."""
        return cls(**{**policy._asdict(), "updated_at": moment(policy.updated_at)})


class PolicyList(Answer):
    """All stored policies."""

    policies: list[PolicyAnswer]


class AlgorithmAnswer(Answer):
    """An algorithm of the catalogue."""

    name: str = Field(examples=["sabre"])
    runs_on: Literal["table", "stream"]
    summary: str
    guarantees: list[str]
    parameters: dict[str, Any] = Field(description="JSON schema")


class AlgorithmList(Answer):
    """The catalogue."""

    algorithms: list[AlgorithmAnswer]


class Achieved(Answer):
    """One privacy model of a stream's guarantee."""

    model: str
    asked: float
    achieved: float | None = Field(description="by the least safe cluster that was published; null before the first")
    more_is_safer: bool


class StreamWorker(Answer):
    """What one worker process says of itself."""

    address: str
    ready: bool
    reason: str | None = Field(description="why it is not ready")
    started: str | None
    counts: dict[str, float]
    gauges: dict[str, float]
    guarantee: list[Achieved]
    delay_limit: float | None = Field(description="seconds that the policy allows between an event and its publication")
    partitions: dict[str, Any]
    stopped: dict[str, Any]


class StreamAnswer(Answer):
    """A stream and the workers that serve it."""

    name: str
    input: str
    output: str
    ready: bool = Field(description="whether all of its workers are")
    workers: list[StreamWorker]


class StreamList(Answer):
    """All streams whose workers answer."""

    streams: list[StreamAnswer]
    silent: list[str] = Field(description="configured worker addresses that do not answer")


class Readiness(Answer):
    """What was checked."""

    ready: bool
    checks: dict[str, str]
