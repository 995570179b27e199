"""The HTTP service as an application."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from service.api import about, evidence, jobs, releases, results, streams
from service.api import policies as policy_routes
from service.api.context import Service
from service.api.errors import install
from service.api.metrics import HttpMetrics
from service.api.middleware import Guard
from service.api.policy_reader import PolicyReader
from service.api.settings import ServiceSettings
from service.console import ConsoleFiles
from service.jobs import JobFiles, JobRunner, JobStore, RunnerLimits, open_database

log = logging.getLogger(__name__)

_DESCRIPTION = """Anonymizes tables about people, checks what others published, and shows what stream workers do.

Errors are RFC 9457 problems; they name the place and what is allowed, and never repeat what was sent."""


def create_app(settings: ServiceSettings) -> FastAPI:
    """The application; its job processes live as long as its lifespan."""
    service = _service(settings)
    if not service.tokens:
        log.warning("no token is configured: everybody on this machine may use the service, nobody else")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.runner.start()
        yield
        service.policies.close()
        service.runner.stop()
        service.store.close()

    app = FastAPI(
        title="Portcullis",
        version="1",
        description=_DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # it would be fetched from elsewhere
        redoc_url=None,
    )
    app.state.service = service
    install(app)
    for router in (
        jobs.looking,
        *(part.router for part in (jobs, results, evidence, policy_routes, releases, streams, about)),
    ):
        app.router.routes.extend(router.routes)  # one list: a router inside another is searched anew for each request
    app.mount("/", ConsoleFiles(), name="console")
    app.add_middleware(
        Guard, metrics=service.metrics, tls=settings.tls_certificate is not None, local_only=not service.tokens
    )
    return app


def _service(settings: ServiceSettings) -> Service:
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    store = JobStore(open_database(settings.url))
    job_files = JobFiles(settings.data)
    metrics = HttpMetrics(store)
    limits = RunnerLimits(
        processes=settings.job_workers,
        memory=settings.job_memory_bytes,
        seconds=settings.job_seconds,
        lease=settings.lease_seconds,
        keep=settings.result_seconds,
        columns=settings.max_columns,
        table_bytes=settings.max_table_bytes,
    )
    runner = JobRunner(store, job_files, limits, metrics.job_ended)
    policies = PolicyReader(seconds=settings.policy_seconds, memory=settings.policy_memory_bytes)
    return Service(settings, settings.all_tokens, store, job_files, runner, metrics, policies)
