"""What the API answers, as models: they document themselves in the OpenAPI document."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field

from service.jobs import JobKind, JobView, ListedRelease, State, StoredPolicy
from service.problems import Place, Problem

_ID = "Qm5zYk1hZ2ljTm90R3Vlc3NhYmxlSWQx"
_FINGERPRINT = "4d02538594eb68e1d432b5f9830442df5227b9f0fbdaf599b9807d96c92bf1e8"


class Answer(BaseModel):
    """Base of every answer."""

    model_config = ConfigDict(frozen=True)


def _like(example: dict[str, Any]) -> ConfigDict:
    """An example for those who read the API's description."""
    return ConfigDict(json_schema_extra={"examples": [example]})


class Progress(Answer):
    """How far a running job is."""

    phase: str
    rows_done: int
    rows_total: int
    seconds_left: float | None = Field(description="estimate for this phase, from its speed so far")


class JobAnswer(Answer):
    """A job."""

    model_config = _like(
        {
            "id": _ID,
            "kind": "anonymize",
            "state": "running",
            "policy": "adult",
            "created_at": "2026-11-16T08:36:17.125000Z",
            "started_at": "2026-11-16T08:36:17.129000Z",
            "finished_at": None,
            "expires_at": None,
            "attempts": 1,
            "progress": {"phase": "refine", "rows_done": 12000, "rows_total": 30162, "seconds_left": 0.4},
            "problem": None,
            "report": None,
            "links": {"self": f"/v1/jobs/{_ID}", "events": f"/v1/jobs/{_ID}/events"},
        }
    )

    id: str
    kind: JobKind
    state: State
    policy: str = Field(description="name of the policy")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    expires_at: datetime | None = Field(description="when result and report are deleted")
    attempts: int = Field(description="how often it was started; a job whose machine died is started again once")
    progress: Progress | None = Field(description="while it runs")
    problem: Problem | None = Field(description="why it failed")
    report: dict[str, Any] | None = Field(description="of a job that succeeded; not in lists")
    links: dict[str, str]

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
        links |= {"result": f"{here}/result", "evidence": f"{here}/evidence"}
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
    if job.phase_at is not None and 0 < job.done < job.total:
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

    model_config = _like(
        {
            "usable": True,
            "problems": [],
            "name": "adult",
            "kind": "table",
            "models": {"k-anonymity": 5, "t-closeness": 0.2},
            "fingerprint": _FINGERPRINT,
            "purposes": [],
        }
    )

    usable: bool
    problems: list[Place] = Field(description="everything that is wrong")
    name: str | None = None
    kind: Literal["table", "stream", "audit"] | None = None
    models: dict[str, float] = Field(default_factory=dict, description="privacy models with what is asked of them")
    fingerprint: str | None = Field(None, description="the same for policies that publish alike")
    purposes: list[str] = Field(
        default_factory=list, description="what a job may be for: those of its purposes that the token may ask for"
    )


class PolicyAnswer(Answer):
    """A stored policy."""

    model_config = _like(
        {
            "name": "shop",
            "text": '{"name": "shop", "schema": {}, "guarantee": {}}',
            "fingerprint": _FINGERPRINT,
            "updated_at": "2026-11-16T08:36:17.125000Z",
        }
    )

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


class ReleaseAnswer(Answer):
    """One release of a data set."""

    model_config = _like(
        {
            "job": _ID,
            "owner": "token:alice",
            "data_set": "hospital-2026",
            "policy": "visits",
            "purpose": "research",
            "who": "alice",
            "at": "2026-11-16T08:36:17.125000Z",
            "levels": {"age": 2, "postcode": 1},
        }
    )

    job: str
    owner: str = Field(description="whose data set it is: `token:NAME`, or `group:NAME` for tokens of a group")
    data_set: str
    policy: str
    purpose: str | None
    who: str = Field(description="the token that asked for it")
    at: datetime
    levels: dict[str, int] | None = Field(
        description="the level of each quasi-identifier; null where it can be compared with no other"
    )

    @classmethod
    def of(cls, listed: ListedRelease) -> Self:
        """The answer for an entry of the ledger."""
        release = listed.release
        levels = release.facts.levels
        return cls(
            job=listed.job,
            owner=listed.owner,
            data_set=release.data_set,
            policy=release.policy,
            purpose=release.purpose,
            who=release.who,
            at=moment(release.at),
            levels=None if levels is None else dict(levels),
        )


class ReleaseList(Answer):
    """Releases, the newest first."""

    releases: list[ReleaseAnswer]


class AlgorithmAnswer(Answer):
    """An algorithm of the catalogue."""

    model_config = _like(
        {
            "name": "sabre",
            "data": "records",
            "runs_on": "table",
            "summary": "t-closeness: classes that draw from buckets of similar values in proportion.",
            "guarantees": ["k-anonymity", "t-closeness"],
            "parameters": {"type": "object", "properties": {"t": {"type": "number", "minimum": 0, "maximum": 1}}},
        }
    )

    name: str
    data: str = Field(description="the kind of data that it is for, as policies name it")
    runs_on: Literal["table", "stream"]
    summary: str
    guarantees: list[str]
    parameters: dict[str, Any] = Field(description="JSON schema")


class AlgorithmList(Answer):
    """The catalogue."""

    algorithms: list[AlgorithmAnswer]


class KindAnswer(Answer):
    """A kind of data."""

    model_config = _like(
        {"name": "records", "policy": "name: people\nschema: …\nguarantee: {algorithm: sabre, k: 5}\n"}
    )

    name: str = Field(description="what `data` says in a policy; the first one need not be named")
    policy: str = Field(description="a small policy of this kind as YAML, to begin with")


class KindList(Answer):
    """Kinds of data, the default first."""

    kinds: list[KindAnswer]


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

    model_config = _like(
        {
            "name": "orders",
            "input": "orders.raw",
            "output": "orders.safe",
            "ready": True,
            "workers": [
                {
                    "address": "http://127.0.0.1:9400",
                    "ready": True,
                    "reason": None,
                    "started": "2026-11-16T08:36:17Z",
                    "counts": {"taken": 1000, "released": 998, "suppressed": 2, "clusters": 199},
                    "gauges": {"loss": 0.25, "delay": 1.1, "pending": 0, "lag": 0},
                    "guarantee": [{"model": "k-anonymity", "asked": 5, "achieved": 5, "more_is_safer": True}],
                    "delay_limit": 10,
                    "partitions": {"0": {"position": 1000, "pending": 0, "thin": False}},
                    "stopped": {},
                }
            ],
        }
    )

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

    model_config = _like({"ready": True, "checks": {"database": "ok", "files": "ok", "job_workers": "ok"}})

    ready: bool
    checks: dict[str, str]
