"""What the routes share: the parts of the service, who is asking, and which jobs they may see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from service.api.metrics import HttpMetrics
from service.api.settings import ServiceSettings
from service.api.tokens import LOCAL, Caller, Scope, Token, find
from service.api.uploads import Limits
from service.jobs import Job, JobFiles, JobRunner, JobStore, is_id
from service.problems import ProblemError


@dataclass(frozen=True)
class Service:
    """The parts of a running service."""

    settings: ServiceSettings
    tokens: tuple[Token, ...]
    store: JobStore
    files: JobFiles
    runner: JobRunner
    metrics: HttpMetrics

    @property
    def limits(self) -> Limits:
        """What a request may bring."""
        given = self.settings
        return Limits(
            table_bytes=given.max_table_bytes,
            policy_bytes=given.max_policy_bytes,
            hierarchy_bytes=given.max_hierarchy_bytes,
            ratio=given.max_ratio,
            seconds=given.receive_seconds,
        )


# Asynchronous although nothing is awaited: other functions go to a thread, which costs more than they do.
async def service_of(request: Request) -> Service:
    """The service that answers this request."""
    service: Service = request.app.state.service
    return service


_BEARER = HTTPBearer(auto_error=False, description="A token of `portcullis token new`; none where none is configured.")


async def _caller(
    service: Annotated[Service, Depends(service_of)],
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)],
) -> Caller:
    if not service.tokens:
        return Caller(name=LOCAL, scopes=frozenset({Scope.ADMIN}))
    caller = find(given.credentials, service.tokens) if given else None
    if caller is None:
        raise ProblemError("unauthorized", "Send `Authorization: Bearer TOKEN` with a token that is configured.")
    return caller


def _needs(*scopes: Scope) -> Callable[[Caller], Awaitable[Caller]]:
    async def check(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
        if not caller.may(*scopes):
            raise ProblemError("forbidden", f"Needed is the scope {' or '.join(scopes)}.")
        return caller

    return check


InService: TypeAlias = Annotated[Service, Depends(service_of)]
Anybody: TypeAlias = Annotated[Caller, Depends(_caller)]
Submitter: TypeAlias = Annotated[Caller, Depends(_needs(Scope.SUBMIT))]
Reader: TypeAlias = Annotated[Caller, Depends(_needs(Scope.READ_OWN, Scope.READ_ALL))]
Overseer: TypeAlias = Annotated[Caller, Depends(_needs(Scope.READ_ALL))]
Admin: TypeAlias = Annotated[Caller, Depends(_needs(Scope.ADMIN))]


def visible_job(service: Service, caller: Caller, job_id: str) -> Job:
    """A job that the caller may see; to others it is as if it were not there."""
    job = service.store.get(job_id) if is_id(job_id) else None
    if job is None or not (job.token == caller.name or caller.may(Scope.READ_ALL)):
        raise ProblemError("not-found", "There is no job with this id, or it is not yours.")
    return job
