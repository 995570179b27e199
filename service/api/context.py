"""What the routes share: the parts of the service, who is asking, and which jobs they may see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ParamSpec, TypeAlias, TypeVar

from fastapi import Depends, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.openapi.models import HTTPBearer as HTTPBearerModel
from fastapi.security.base import SecurityBase
from fastapi.security.utils import get_authorization_scheme_param

from service.api.metrics import HttpMetrics
from service.api.policy_reader import PolicyReader
from service.api.settings import ServiceSettings
from service.api.tokens import EVERYBODY, Caller, Scope, Token, find
from service.api.uploads import Limits
from service.jobs import JobFiles, JobRunner, JobStore, JobView, is_id
from service.problems import ProblemError

Given = ParamSpec("Given")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Service:
    """The parts of a running service."""

    settings: ServiceSettings
    tokens: tuple[Token, ...]
    store: JobStore
    files: JobFiles
    runner: JobRunner
    metrics: HttpMetrics
    policies: PolicyReader

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

    async def read(self, query: Callable[Given, Found], *args: Given.args, **kwargs: Given.kwargs) -> Found:
        """What a query of the store finds. A thread costs more than SQLite takes; PostgreSQL may keep one waiting."""
        if self.store.embedded:
            return query(*args, **kwargs)
        return await run_in_threadpool(query, *args, **kwargs)


# Asynchronous although nothing is awaited: other functions go to a thread, which costs more than they do.
async def service_of(request: Request) -> Service:
    """The service that answers this request."""
    service: Service = request.app.state.service
    return service


class _Token(SecurityBase):
    """A bearer token, with one of these scopes where any are named.

    One dependency with its own way to the service: the framework takes longer to put three together than to call them.
    """

    scheme_name = "HTTPBearer"
    model = HTTPBearerModel(description="A token of `portcullis token new`; none where none is configured.")

    def __init__(self, *scopes: Scope) -> None:
        self._scopes = scopes

    async def __call__(self, request: Request) -> Caller:
        """Who is asking."""
        caller = _caller(request, await service_of(request))
        if self._scopes and not caller.may(*self._scopes):
            scopes = " or ".join(self._scopes)
            needed = f"This needs a token with the scope {scopes}; whoever runs the service can make one."
            raise ProblemError("forbidden", needed)
        return caller


def _caller(request: Request, service: Service) -> Caller:
    if not service.tokens:
        return EVERYBODY
    scheme, text = get_authorization_scheme_param(request.headers.get("authorization"))
    caller = find(text, service.tokens) if scheme.lower() == "bearer" else None
    if caller is None:
        raise ProblemError("unauthorized", "Send `Authorization: Bearer TOKEN` with a token that is configured.")
    return caller


JobId: TypeAlias = Annotated[str, Path(description="the job's `id`")]
InService: TypeAlias = Annotated[Service, Depends(service_of)]
Anybody: TypeAlias = Annotated[Caller, Depends(_Token())]
Submitter: TypeAlias = Annotated[Caller, Depends(_Token(Scope.SUBMIT))]
Reader: TypeAlias = Annotated[Caller, Depends(_Token(Scope.READ_OWN, Scope.READ_ALL))]
Overseer: TypeAlias = Annotated[Caller, Depends(_Token(Scope.READ_ALL))]
Admin: TypeAlias = Annotated[Caller, Depends(_Token(Scope.ADMIN))]


async def visible_job(service: Service, caller: Caller, job_id: str) -> JobView:
    """A job that the caller may see; to others it is as if it were not there."""
    job = await service.read(service.store.get, job_id) if is_id(job_id) else None
    if job is None or not (job.token == caller.name or caller.may(Scope.READ_ALL)):
        raise ProblemError(
            "not-found",
            "There is no job with this id, or it belongs to another token. GET /v1/jobs lists those that you may see.",
        )
    return job
