"""What the service says about itself: algorithms, health, readiness, metrics."""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy.exc import SQLAlchemyError

from service.api.answers import AlgorithmAnswer, AlgorithmList, KindAnswer, KindList, Readiness
from service.api.context import Anybody, InService, Overseer, Service
from service.api.errors import documented
from service.catalogue import algorithm_catalogue
from service.kinds import data_kinds

router = APIRouter(tags=["about"])

_METRICS = {"schema": {"type": "string"}, "example": 'portcullis_jobs{state="queued"} 1.0\n'}


@router.get(
    "/v1/algorithms",
    response_description="The catalogue",
    responses=documented(),
    response_model=AlgorithmList,
    summary="Algorithms and their parameters",
)
async def list_algorithms(caller: Anybody) -> Response:
    """Every algorithm with what it guarantees and the JSON schema of its parameters."""
    del caller
    return Response(_catalogue(), media_type="application/json")


@cache
def _catalogue() -> str:
    entries = [AlgorithmAnswer.model_validate(entry) for entry in algorithm_catalogue()]
    return AlgorithmList(algorithms=entries).model_dump_json()


@router.get(
    "/v1/kinds",
    response_description="Every kind",
    responses=documented(),
    response_model=KindList,
    summary="Kinds of data",
)
async def list_kinds(caller: Anybody) -> KindList:
    """What a policy may be about, each with a policy to begin with."""
    del caller
    return KindList(kinds=[KindAnswer(name=kind.name, policy=kind.beginning()) for kind in data_kinds()])


@router.get(
    "/healthz",
    responses={200: {"description": "It is", "content": {"application/json": {"example": {"status": "ok"}}}}},
    summary="Alive",
)
async def health() -> dict[str, str]:
    """The event loop answers."""
    return {"status": "ok"}


@router.get(
    "/readyz",
    response_description="Everything that is needed works",
    response_model=Readiness,
    responses={503: {"model": Readiness, "description": "Something that is needed does not work"}},
    summary="Ready",
)
def readiness(service: InService) -> Response:
    """The database answers, files can be written, job processes are there."""
    checks = {"database": _database(service), "files": _files(service), "job_workers": _job_workers(service)}
    ready = all(word == "ok" for word in checks.values())
    return JSONResponse({"ready": ready, "checks": checks}, 200 if ready else 503)


def _database(service: Service) -> str:
    try:
        service.store.check()
    except SQLAlchemyError:
        return "does not answer"
    return "ok"


def _files(service: Service) -> str:
    try:
        service.files.check()
    except OSError:
        return "cannot be written"
    return "ok"


def _job_workers(service: Service) -> str:
    wanted, there = service.settings.job_workers, service.runner.ready()
    return "ok" if there == wanted else f"{there} of {wanted}"


@router.get(
    "/metrics",
    responses={
        **documented(),
        200: {"description": "In Prometheus' text format", "content": {"text/plain": _METRICS}},
    },
    response_class=Response,
    summary="Metrics",
)
def metrics(service: InService, caller: Overseer) -> Response:
    """Requests and jobs, without anything that was sent."""
    del caller
    return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)
