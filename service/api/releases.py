"""The ledger: what was released of each data set, to whom, for what.

A data set belongs to the token that releases it, or to the token's group. Others may use the same name for their own.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.concurrency import run_in_threadpool

from service.api.answers import ReleaseAnswer, ReleaseList
from service.api.context import Admin, InService, JobId, Reader
from service.api.errors import documented
from service.api.routes import StrictRoute
from service.api.tokens import Scope
from service.jobs import is_id
from service.problems import ProblemError

router = APIRouter(prefix="/v1/releases", tags=["releases"], route_class=StrictRoute)


@router.get(
    "", response_description="The releases", responses=documented("bad-parameter"), summary="List releases of data sets"
)
async def list_releases(
    service: InService,
    caller: Reader,
    data_set: Annotated[
        str | None, Query(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", description="only of this data set")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="at most so many")] = 200,
) -> ReleaseList:
    """Releases from the newest to the oldest: those of the token or its group, or all with the scope read:all."""
    owner = None if caller.may(Scope.READ_ALL) else caller.owner
    found = await service.read(service.store.releases, owner=owner, data_set=data_set, limit=limit)
    return ReleaseList(releases=[ReleaseAnswer.of(one) for one in found])


@router.delete(
    "/{job_id}",
    status_code=204,
    response_class=Response,
    response_description="The release is not in the ledger any more",
    responses=documented("not-found"),
    summary="Remove a release from the ledger",
)
async def remove_release(job_id: JobId, service: InService, caller: Admin) -> Response:
    """Forget what a job released. Later releases are not compared with it, although its readers still have it."""
    del caller
    if not (is_id(job_id) and await run_in_threadpool(service.store.remove_release, job_id)):
        raise ProblemError("not-found", "No job with this id is in the ledger. GET /v1/releases lists those that are.")
    return Response(status_code=204)
