"""Jobs and audits: submit, list, look at, cancel and delete."""

from __future__ import annotations

import base64
import math
import time
from contextlib import ExitStack
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from service.api.answers import JobAnswer, JobPage, as_json, shown_job
from service.api.context import InService, JobId, Reader, Service, Submitter, visible_job
from service.api.errors import documented
from service.api.given_policy import EXAMPLE, FILE, HIERARCHIES_PART, NO_POLICY, POLICY_PART
from service.api.policy_reader import GivenPolicy
from service.api.routes import LightRoute, StrictRoute
from service.api.tokens import Caller, Scope
from service.api.uploads import Form, read_form, required
from service.jobs import Job, JobKind, JobView, State, is_id, new_id
from service.problems import Place, ProblemError

router = APIRouter(prefix="/v1", tags=["jobs"], route_class=StrictRoute)
looking = APIRouter(prefix="/v1", tags=["jobs"], route_class=LightRoute)

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="the same key with the same request gives the same job, however often it is sent",
    ),
]
_POLICY_PARTS: dict[str, Any] = {
    "policy": POLICY_PART,
    "policy_name": {"type": "string", "description": "or the name of a stored one", "example": EXAMPLE["name"]},
    "hierarchies": HIERARCHIES_PART,
}


def _one_of(*parts: str) -> dict[str, Any]:
    """Exactly one of these parts is sent."""
    return {"oneOf": [{"required": [part]} for part in parts]}


def _multipart(required_parts: list[str], *one_of: tuple[str, ...], **parts: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {**parts, **_POLICY_PARTS},
        "required": required_parts,
        "allOf": [_one_of("policy", "policy_name"), *(_one_of(*names) for names in one_of)],
        "additionalProperties": False,
    }
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


_SUBMIT_PROBLEMS = documented(
    "bad-request",
    "not-found",
    "timeout",
    "too-large",
    "bad-parameter",
    "bad-upload",
    "bad-policy",
    "infeasible-guarantee",
    "idempotency-key-reused",
    "too-many-jobs",
)
_TABLE = {**FILE, "description": "CSV or JSON lines, both may be gzipped, or Parquet"}
_PURPOSE = {
    "type": "string",
    "description": "which of the policy's purposes it is for; left out, the only one that the token may ask for",
    "example": "research",
}
_COUNTS = {
    "type": "string",
    "description": "JSON: {sensitive attribute: {value: count in the original}}",
    "example": '{"item": {"lamp": 27, "book": 27, "tea": 26}}',
}


@router.post(
    "/jobs",
    status_code=202,
    response_description="The job, with its address in `Location`",
    responses=_SUBMIT_PROBLEMS,
    summary="Anonymize a table",
    openapi_extra=_multipart(["table"], table=_TABLE, purpose=_PURPOSE),
)
async def submit_job(
    request: Request, response: Response, service: InService, caller: Submitter, key: Key = None
) -> JobAnswer:
    """Take a table and a policy. The job runs later: follow its `Location`, or its events."""
    return await _submit(service, caller, request, response, "anonymize", key)


@router.post(
    "/audits",
    status_code=202,
    response_description="The job, with its address in `Location`",
    responses=_SUBMIT_PROBLEMS,
    summary="Check something published",
    openapi_extra=_multipart(
        ["published"], ("original", "distribution"), published=_TABLE, original=_TABLE, distribution=_COUNTS
    ),
)
async def submit_audit(
    request: Request, response: Response, service: InService, caller: Submitter, key: Key = None
) -> JobAnswer:
    """Check a published table against its original, or against the original's distribution of sensitive values.

    It is a job like others; what was found is its report.
    """
    return await _submit(service, caller, request, response, "audit", key)


_TABLES: dict[JobKind, tuple[str, ...]] = {"anonymize": ("table",), "audit": ("published", "original")}


async def _submit(
    service: Service,
    caller: Caller,
    request: Request,
    response: Response,
    kind: JobKind,
    key: str | None,
) -> JobAnswer:
    job_id = new_id()
    kept: Job | None = None
    uploading = ExitStack()
    try:
        uploading.enter_context(service.files.uploading(job_id))
        form = await read_form(request, service.limits, _TABLES[kind], service.files.upload(job_id))
        inputs = await run_in_threadpool(_inputs, service, kind, job_id, form)
        policy = await _policy(service, caller, form, for_table=kind == "anonymize")
        job = Job(
            id=job_id,
            token=caller.name,
            kind=kind,
            state="queued",
            policy_name=policy.name,
            policy=policy.text,
            inputs=inputs,
            created_at=time.time(),
            idempotency_key=key,
            digest=form.digest,
            owner=caller.owner,
        )
        kept = await run_in_threadpool(service.store.add, job, most=service.settings.max_jobs_per_token)
    finally:
        if kept is None or kept.id != job_id:
            await run_in_threadpool(service.files.drop, job_id)
        uploading.close()
    if kept is None:
        limit = service.settings.max_jobs_per_token
        raise ProblemError("too-many-jobs", f"{limit} jobs of this token wait or run; that is the limit.")
    if kept.digest != job.digest:
        raise ProblemError("idempotency-key-reused", "Use a new Idempotency-Key for a new request.")
    service.runner.wake()
    response.headers["Location"] = f"/v1/jobs/{kept.id}"
    return JobAnswer.of(kept, keep=service.settings.result_seconds)


def _inputs(service: Service, kind: JobKind, job_id: JobId, form: Form) -> dict[str, str]:
    """The files that a job of this kind works on; refused where one is missing."""
    inputs = dict(form.tables)
    if kind == "anonymize":
        required(form, "table")
    else:
        required(form, "published")
        if form.distribution is not None:
            inputs["distribution"] = "distribution.json"
            (service.files.upload(job_id) / "distribution.json").write_bytes(form.distribution)
        if ("original" in inputs) == ("distribution" in inputs):
            reason = "exactly one of original and distribution is needed"
            raise ProblemError("bad-upload", "A part is missing.", [Place(path="original", reason=reason)])
    return inputs


async def _policy(service: Service, caller: Caller, form: Form, *, for_table: bool) -> GivenPolicy:
    if (form.policy is None) == (form.policy_name is None):
        reason = "exactly one of policy and policy_name is needed"
        raise ProblemError("bad-upload", "A part is missing.", [Place(path="policy", reason=reason)])
    purpose = None if form.purpose is None else form.purpose.decode("utf-8", errors="replace")
    asked: dict[str, Any] = {"for_table": for_table, "purpose": purpose, "who": caller.asks_as}
    if form.policy is not None:
        return await service.policies.read(caller.name, form.policy, form.hierarchies, **asked)
    name = (form.policy_name or b"").decode("utf-8", errors="replace")
    stored = await service.read(service.store.policy, name) if name.isprintable() else None
    if stored is None:
        raise ProblemError("not-found", NO_POLICY)
    return await service.policies.read(caller.name, stored.text.encode(), stored=True, **asked)


@looking.get(
    "/jobs",
    response_description="A page of jobs",
    responses=documented("bad-parameter"),
    summary="List jobs",
    response_model=JobPage,
)
async def list_jobs(
    service: InService,
    caller: Reader,
    state: Annotated[State | None, Query(description="only jobs in this state")] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="jobs per page")] = 50,
    after: Annotated[str | None, Query(max_length=200, description="`next` of the page before")] = None,
) -> Response:
    """Jobs from the newest to the oldest: one's own, or everybody's with the scope read:all."""
    owner = None if caller.may(Scope.READ_ALL) else caller.name
    store, before = service.store, _place(after)
    found = await service.read(store.page, token=owner, state=state, before=before, limit=limit + 1)
    jobs = [shown_job(job, keep=service.settings.result_seconds) for job in found[:limit]]
    cursor = _cursor(found[limit - 1]) if len(found) > limit else None
    return Response(as_json({"jobs": jobs, "next": cursor}), media_type="application/json")


def _cursor(job: JobView) -> str:
    return base64.urlsafe_b64encode(f"{job.created_at!r} {job.id}".encode()).decode()


def _place(cursor: str | None) -> tuple[float, str] | None:
    if cursor is None:
        return None
    try:
        moment, job_id = base64.urlsafe_b64decode(cursor.encode()).decode("ascii").split(" ")
        before = (float(moment), job_id)
    except ValueError:
        before = (math.nan, "")
    if not (math.isfinite(before[0]) and is_id(before[1])):
        place = Place(path="after", reason="must be the `next` of an earlier page")
        raise ProblemError("bad-parameter", "A parameter is not allowed.", [place])
    return before


@looking.get(
    "/jobs/{job_id}",
    response_description="The job",
    responses=documented("not-found"),
    summary="Look at a job",
    response_model=JobAnswer,
)
async def get_job(job_id: JobId, service: InService, caller: Reader) -> Response:
    """State, progress with an estimate, and in the end the report or the problem."""
    job = await visible_job(service, caller, job_id)
    report = orjson.Fragment(job.report) if job.report else None
    shown = {**shown_job(job, keep=service.settings.result_seconds), "report": report}
    return Response(as_json(shown), media_type="application/json")


@router.delete(
    "/jobs/{job_id}",
    status_code=202,
    response_description="The job, which is told to stop",
    responses={
        **documented("not-found", "bad-parameter"),
        204: {"description": "The job had ended and is deleted, with all its files"},
    },
    summary="Cancel or delete a job",
    response_model=JobAnswer,
)
async def delete_job(job_id: JobId, service: InService, caller: Submitter) -> Any:
    """Stop a job that waits or runs, within a second; delete one that has ended, with its result and report."""
    job = await _own_job(service, caller, job_id)
    if job.ended:
        await run_in_threadpool(_delete, service, job)
        return Response(status_code=204)
    stopped = await run_in_threadpool(_cancel, service, job)
    service.runner.wake()
    return JobAnswer.of(stopped, keep=service.settings.result_seconds)


@router.post(
    "/jobs/{job_id}/stop-search",
    status_code=202,
    response_description="The job, which publishes the best result that its search has found",
    responses={
        **documented("not-found"),
        200: {"model": JobAnswer, "description": "The job had ended; nothing is changed"},
    },
    summary="Publish the best result of a search so far",
    response_model=JobAnswer,
)
async def stop_search(job_id: JobId, service: InService, caller: Submitter, response: Response) -> JobAnswer:
    """End the search of an algorithm that searches (`ogf`); the job goes on and publishes the best result so far.

    A search that has found nothing yet ends with its first result. Other algorithms do not search, so their jobs go on
    as before. A job that has ended keeps its result.
    """
    job = await _own_job(service, caller, job_id)
    stopped = await run_in_threadpool(service.store.stop_search, job.id) or job
    if stopped.ended:
        response.status_code = 200
    service.runner.wake()
    return JobAnswer.of(stopped, keep=service.settings.result_seconds)


async def _own_job(service: Service, caller: Caller, job_id: str) -> JobView:
    """Return a job that the caller may change."""
    job = await visible_job(service, caller, job_id)
    if job.token != caller.name and not caller.may(Scope.ADMIN):
        raise ProblemError("forbidden", "Only its owner and an admin may cancel, delete or stop a job.")
    return job


def _delete(service: Service, job: JobView) -> None:
    service.store.forget(job.id)
    service.files.drop(job.id)


def _cancel(service: Service, job: JobView) -> JobView:
    stopped = service.store.cancel(job.id) or job
    if stopped.state == "cancelled" and stopped.attempts == 0:
        service.files.drop(job.id)
    return stopped
