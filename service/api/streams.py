"""Streams, as the workers tell that serve them."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterable
from http.client import HTTPException
from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.concurrency import run_in_threadpool
from pydantic import ValidationError

from service.api.answers import StreamAnswer, StreamList, StreamWorker
from service.api.context import Anybody, InService, Service
from service.api.errors import documented
from service.api.routes import StrictRoute
from service.problems import ProblemError

router = APIRouter(prefix="/v1/streams", tags=["streams"], route_class=StrictRoute)

_SECONDS = 2.0
_MOST_BYTES = 4 << 20
_OPENER = urllib.request.OpenerDirector()
"""Asks the address itself over HTTP: through no proxy of the environment, following no redirect, opening no file."""
for _handler in (urllib.request.HTTPHandler, urllib.request.HTTPSHandler, urllib.request.HTTPDefaultErrorHandler):
    _OPENER.add_handler(_handler())
_OPENER.add_handler(urllib.request.HTTPErrorProcessor())


@router.get("", response_description="The streams", responses=documented(), summary="List streams")
async def list_streams(service: InService, caller: Anybody) -> StreamList:
    """What the configured workers do."""
    del caller
    return await _ask_all(service)


@router.get("/{name}", response_description="The stream", responses=documented("not-found"), summary="A stream")
async def get_stream(
    name: Annotated[str, Path(description="the name in its policy")], service: InService, caller: Anybody
) -> StreamAnswer:
    """One stream with its workers."""
    del caller
    for stream in (await _ask_all(service)).streams:
        if stream.name == name:
            return stream
    raise ProblemError(
        "not-found",
        "No worker has a stream of this name. GET /v1/streams lists all streams, and workers that do not answer.",
    )


async def _ask_all(service: Service) -> StreamList:
    addresses = service.settings.workers
    told = await asyncio.gather(*(run_in_threadpool(_ask, address) for address in addresses))
    silent = [address for address, status in zip(addresses, told, strict=True) if status is None]
    return StreamList(streams=_streams(status for status in told if status is not None), silent=silent)


def _ask(address: str) -> tuple[dict[str, Any], StreamWorker] | None:
    try:
        with _OPENER.open(f"{address.rstrip('/')}/status", timeout=_SECONDS) as response:
            status = json.loads(response.read(_MOST_BYTES))
        fields = {name: status.get(name) for name in StreamWorker.model_fields}
        return status, StreamWorker.model_validate({**fields, "address": address})
    except (OSError, ValueError, AttributeError, RecursionError, HTTPException, ValidationError):
        return None


def _streams(told: Iterable[tuple[dict[str, Any], StreamWorker]]) -> list[StreamAnswer]:
    by_name: dict[str, list[tuple[dict[str, Any], StreamWorker]]] = {}
    for status, worker in told:
        by_name.setdefault(str(status.get("stream")), []).append((status, worker))
    return [
        StreamAnswer(
            name=name,
            input=str(found[0][0].get("input")),
            output=str(found[0][0].get("output")),
            ready=all(worker.ready for _, worker in found),
            workers=[worker for _, worker in found],
        )
        for name, found in sorted(by_name.items())
    ]
