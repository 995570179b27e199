"""`portcullis serve`: the HTTP API with its job processes and the console."""

from __future__ import annotations

import ctypes
import logging
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
import uvicorn
from pydantic import ValidationError

from service.api import ServiceSettings, create_app
from service.api.connections import guarded_protocol
from service.cli.output import say

_KEEP_ALIVE_SECONDS = 30
_M_ARENA_MAX = -8
"""The parameter's number in glibc's malloc.h."""


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on; without tokens loopback only.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535, help="Port; 0 takes any free one.")] = None,
    data: Annotated[Path | None, typer.Option(help="Directory of uploads, results and the database.")] = None,
    tokens_file: Annotated[Path | None, typer.Option(help="Lines of `portcullis token new`.")] = None,
    job_workers: Annotated[int | None, typer.Option(min=0, max=256, help="Processes that run jobs.")] = None,
    worker: Annotated[list[str] | None, typer.Option(help="Address of a stream worker; may be repeated.")] = None,
) -> None:
    """Serve the HTTP API and the console. Every other setting comes from the environment (PORTCULLIS_…)."""
    flags: dict[str, Any] = {
        "host": host,
        "port": port,
        "data": data,
        "tokens_file": tokens_file,
        "job_workers": job_workers,
        "workers": tuple(worker) if worker else None,
    }
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    settings = _settings({name: value for name, value in flags.items() if value is not None})
    _share_heaps()
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=guarded_protocol(settings),
        log_config=None,
        access_log=False,  # addresses of requests hold what users write; the metrics count them
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=5,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
    )
    scheme = "https" if settings.tls_certificate else "http"
    say(f"Portcullis on {scheme}://{settings.host}:{settings.port}/, data in {settings.data.resolve()}")
    if settings.job_workers:
        say("Jobs run when /readyz says so; the very first start compiles, which may take a minute.")
    uvicorn.Server(config).run()


def _share_heaps() -> None:
    """Let all threads allocate from two heaps: glibc gives each its own and hands little of that back."""
    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


def _settings(flags: dict[str, Any]) -> ServiceSettings:
    try:
        return ServiceSettings(**flags)
    except ValidationError as error:
        lines = [
            f"{'.'.join(map(str, one['loc']))}: {one['msg']}".removeprefix(": ").removeprefix("Value error, ")
            for one in error.errors(include_input=False, include_url=False)
        ]
        raise typer.BadParameter("; ".join(lines)) from None
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"tokens_file: {type(error).__name__}; needed is a line of JSON per token") from None
