"""The ledger: what was released of each data set, to whom, for what."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from service.api.answers import ReleaseAnswer, ReleaseList
from service.api.context import InService, Reader
from service.api.errors import documented
from service.api.tokens import Scope

router = APIRouter(prefix="/v1/releases", tags=["releases"])


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
    """Releases from the newest to the oldest: one's own, or everybody's with the scope read:all."""
    who = None if caller.may(Scope.READ_ALL) else caller.name
    found = await service.read(service.store.releases, who=who, data_set=data_set, limit=limit)
    return ReleaseList(releases=[ReleaseAnswer.of(job, release) for job, release in found])
