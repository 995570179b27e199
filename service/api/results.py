"""What a job leaves: its result as a file, its report as data or as a page, and its events while it runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, StreamingResponse
from starlette.types import Message, Receive, Send
from starlette.types import Scope as HttpScope

from service.api.accept import chosen
from service.api.answers import as_json, shown_job
from service.api.context import InService, JobId, Reader, Service, visible_job
from service.api.errors import answer, documented
from service.api.routes import StrictRoute
from service.jobs import JobView
from service.kinds import report_page
from service.problems import ProblemError, problem

router = APIRouter(prefix="/v1/jobs/{job_id}", tags=["jobs"], route_class=StrictRoute)

_FORMATS = {
    "text/csv": "csv",
    "application/vnd.apache.parquet": "parquet",
    "application/x-ndjson": "jsonl",
}
_TABLES: dict[str, dict[str, Any]] = {
    "text/csv": {"example": 'class,age,country,item\n7,"[25,30]",Europe,Lamp\n'},
    "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
    "application/x-ndjson": {"example": '{"class":7,"age":[25,30],"country":"Europe","item":"Lamp"}\n'},
}
_REPORT = {
    "name": "adult",
    "holds": True,
    "rows": {"given": 2000, "published": 1980, "suppressed": 8, "rejected": {"rows": 12, "share": 0.006}},
    "results": [{"model": "k-anonymity", "asked": 5, "achieved": 6, "holds": True, "failing": 0}],
    "loss": {"mean": 0.32},
}
"""The beginning of one."""
PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
"""What a page that a job leaves may load: nothing."""
_LOOK_SECONDS = 0.3
_QUIET_SECONDS = 15.0
_LONGEST_SECONDS = 3_600.0


class _ResultFile(FileResponse):
    """A file with ranges; a range that cannot be had is answered with a problem, as everything else."""

    async def __call__(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        refused = False

        async def watch(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start" and message["status"] in {400, 416}:
                refused = True
                found = dict(message["headers"]).get(b"content-range", b"").decode("latin-1")
                await answer(
                    problem("wrong-range", "The range cannot be had; leave it out to get the whole file."),
                    {"Content-Range": found} if found else {},
                )(scope, receive, send)
            elif not refused:
                await send(message)

        await super().__call__(scope, receive, watch)


@router.get(
    "/result",
    responses={
        **documented("not-found", "not-acceptable", "conflict", "wrong-range"),
        200: {"description": "The published table", "content": _TABLES},
        206: {"description": "The range of it that was asked for"},
    },
    response_class=Response,
    summary="The published table",
)
async def get_result(job_id: JobId, request: Request, service: InService, caller: Reader) -> Response:
    """CSV, Parquet or JSON lines, as `Accept` says; ranges are served."""
    job = finished(await visible_job(service, caller, job_id))
    kind = chosen(request.headers.get("accept"), tuple(_FORMATS))
    path = service.files.result(job.id, job.attempts) / f"result.{_FORMATS[kind]}"
    if job.kind != "anonymize" or not path.is_file():
        raise ProblemError("not-found", "This job has no result, only a report: GET /v1/jobs/ID/report.")
    name = f"{job.policy_name}.{_FORMATS[kind]}"
    return _ResultFile(path, media_type=kind, filename=name, headers={"Vary": "Accept"})


@router.get(
    "/report",
    responses={
        **documented("not-found", "not-acceptable", "conflict"),
        200: {
            "description": "What was asked, what was achieved, what it cost",
            "content": {
                "application/json": {"schema": {"type": "object"}, "example": _REPORT},
                "text/html": {"example": "<!doctype html>…"},
            },
        },
    },
    response_class=Response,
    summary="The report of a job",
)
async def get_report(job_id: JobId, request: Request, service: InService, caller: Reader) -> Response:
    """As JSON, or as one page with plots where `Accept` prefers text/html (not for audits)."""
    job = finished(await visible_job(service, caller, job_id))
    kinds = ("application/json", "text/html") if job.kind == "anonymize" else ("application/json",)
    headers = {"Vary": "Accept", "Content-Security-Policy": PAGE_POLICY}
    if chosen(request.headers.get("accept"), kinds) == "text/html":
        page = await run_in_threadpool(_page, job)
        return Response(page, headers=headers, media_type="text/html")
    return Response(job.report, headers=headers, media_type="application/json")


def _page(job: JobView) -> str:
    return report_page(job.report or "")


def finished(job: JobView) -> JobView:
    """The same job, if it succeeded."""
    if job.state != "succeeded":
        raise ProblemError("conflict", f"The job is {job.state}; only a job that succeeded has a result and a report.")
    return job


@router.get(
    "/events",
    responses={
        **documented("not-found", "not-ready"),
        200: {
            "description": "Server-sent events `job`, each with the job as JSON, until it has ended",
            "content": {
                "text/event-stream": {"example": 'event: job\ndata: {"state": "running", …}\n\n'},
            },
        },
    },
    response_class=Response,
    summary="Follow a job",
)
async def follow_job(job_id: JobId, service: InService, caller: Reader) -> Response:
    """The job whenever it changes, as server-sent events."""
    job = await visible_job(service, caller, job_id)
    settings, followers = service.settings, service.metrics.followers
    most, own = settings.max_event_streams, settings.max_event_streams_per_token
    if followers.total() >= most or followers[caller.name] >= own:
        raise ProblemError("not-ready", "Too many clients follow events; ask for the job itself from time to time.")
    return _Events(service, caller.name, job)


class _Events(StreamingResponse):
    """Events of a job. It counts from the moment it is made, so that many that come at once are all seen."""

    def __init__(self, service: Service, caller: str, job: JobView) -> None:
        super().__init__(_events(service, job), headers={"X-Accel-Buffering": "no"}, media_type="text/event-stream")
        self._following = service.metrics.following(caller)
        self._following.__enter__()

    async def __call__(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._following.__exit__(None, None, None)


async def _events(service: Service, job: JobView) -> AsyncIterator[bytes]:
    until = time.monotonic() + _LONGEST_SECONDS
    said, said_at = b"", 0.0
    while time.monotonic() < until:
        event = _event(service, job)
        if event != said:
            said, said_at = event, time.monotonic()
            yield event
        elif time.monotonic() - said_at > _QUIET_SECONDS:
            said_at = time.monotonic()
            yield b": still here\n\n"
        if job.ended:
            return
        await asyncio.sleep(_LOOK_SECONDS)
        found = await run_in_threadpool(service.store.get, job.id)  # nobody waits for it, so the event loop does not
        if found is None:
            return
        job = found


def _event(service: Service, job: JobView) -> bytes:
    return b"event: job\ndata: %s\n\n" % as_json(shown_job(job, keep=service.settings.result_seconds))
