"""Evidence of a job: to file it, as data or as a page, and the secret that its owner keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from service.api.accept import chosen
from service.api.context import InService, JobId, Reader, Service, visible_job
from service.api.errors import documented
from service.api.results import PAGE_POLICY, finished
from service.api.routes import StrictRoute
from service.api.tokens import Caller, Scope
from service.evidence import evidence_html, read
from service.jobs import EVIDENCE, SECRET, JobView
from service.problems import ProblemError

router = APIRouter(prefix="/v1/jobs/{job_id}/evidence", tags=["jobs"], route_class=StrictRoute)

_EXAMPLE: dict[str, Any] = {
    "hash": "b9807d96c92bf1e84d02538594eb68e1d432b5f9830442df5227b9f0fbdaf599",
    "hashes": {"made": "d432b5f9830442df5227b9f0fbdaf599b9807d96c92bf1e84d02538594eb68e1"},
    "parts": {"made": {"kind": "table", "format": 1, "by": "alice", "at": "2026-11-16T08:36:18+00:00"}},
}
"""The beginning of one."""


@router.get(
    "",
    responses={
        **documented("not-found", "not-acceptable", "conflict"),
        200: {
            "description": "What was asked, achieved and attacked, by whom and when, for somebody who checks it",
            "content": {
                "application/json": {"schema": {"type": "object"}, "example": _EXAMPLE},
                "text/html": {"example": "<!doctype html>…"},
            },
        },
    },
    response_class=Response,
    summary="Evidence of a job, to file",
)
async def get_evidence(job_id: JobId, request: Request, service: InService, caller: Reader) -> Response:
    """As JSON for `portcullis evidence verify`, or as one page where `Accept` prefers text/html.

    It holds no value of a record. It is deleted with the job's result.
    """
    path = await _file(service, caller, job_id, EVIDENCE)
    headers = {"Vary": "Accept", "Content-Security-Policy": PAGE_POLICY}
    if chosen(request.headers.get("accept"), ("application/json", "text/html")) == "text/html":
        page = await run_in_threadpool(_page, path)
        return Response(page, headers=headers, media_type="text/html")
    return Response(await run_in_threadpool(path.read_bytes), headers=headers, media_type="application/json")


@router.get(
    "/secret",
    responses={
        **documented("not-found", "conflict"),
        200: {
            "description": "The secret, as `portcullis evidence verify --secret` takes it",
            "content": {"text/plain": {"example": "4d02538594eb68e1d432b5f9830442df5227b9f0fbdaf599b9807d96c92bf1e8"}},
        },
    },
    response_class=Response,
    summary="The secret of a job's evidence",
)
async def get_secret(job_id: JobId, service: InService, caller: Reader) -> Response:
    """What the evidence names the table with. Keep it with the table: who has both could try whether a guess is it.

    For the job's owner and an admin only.
    """
    path = await _file(service, caller, job_id, SECRET)
    return Response(await run_in_threadpool(path.read_bytes), media_type="text/plain")


async def _file(service: Service, caller: Caller, job_id: str, name: str) -> Path:
    job = finished(await visible_job(service, caller, job_id))
    if name == SECRET and not _owns(caller, job):
        raise ProblemError("forbidden", "Only its owner and an admin may have the secret of a job's evidence.")
    path = service.files.result(job.id, job.attempts) / name
    if not path.is_file():
        raise ProblemError("not-found", "This job has no evidence: only what was anonymized has.")
    return path


def _owns(caller: Caller, job: JobView) -> bool:
    return job.token == caller.name or caller.may(Scope.ADMIN)


def _page(path: Path) -> str:
    return evidence_html(read(path))
