"""`portcullis serve`: the HTTP API with its job processes and the console."""

from __future__ import annotations

import ctypes
import logging
import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
import uvicorn
from pydantic import ValidationError

from service.api import ServiceSettings, create_app
from service.api.connections import guarded_protocol
from service.cli.output import say
from service.exit_status import INTERNAL
from service.ports import address_of, listening

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
    with ExitStack() as stack:
        # Before anything else is started: who finds the port taken has nothing to stop, and hears it at once.
        remedy = "choose another port with --port (0 takes any free one)"
        sockets = [stack.enter_context(each) for each in listening(settings.host, settings.port, remedy)]
        _run(settings, sockets)


def _run(settings: ServiceSettings, sockets: list[socket.socket]) -> None:
    config = uvicorn.Config(
        create_app(settings),
        http=guarded_protocol(settings),
        log_config=None,
        access_log=False,  # addresses of requests hold what users write; the metrics count them
        server_header=False,
        timeout_graceful_shutdown=5,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
    )
    try:
        config.load()
    except OSError:  # ssl's errors are among them; neither names the file
        raise typer.BadParameter("tls_certificate, tls_key: needed are PEM files that belong together") from None
    try:
        _Server(config, settings).run(sockets)
    except SystemExit:  # the server's own way to say that the application did not start; its status means another thing
        raise typer.Exit(INTERNAL) from None


class _Server(uvicorn.Server):
    """Says where it is once it listens."""

    def __init__(self, config: uvicorn.Config, settings: ServiceSettings) -> None:
        super().__init__(config)
        self._settings = settings

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application and listen."""
        await super().startup(sockets)
        settings = self._settings
        scheme = "https" if settings.tls_certificate else "http"
        port = self.servers[0].sockets[0].getsockname()[1]
        say(f"Portcullis on {scheme}://{address_of(settings.host, port)}/, data in {settings.data.resolve()}")
        if settings.job_workers:
            say("Jobs run when /readyz says so; the very first start compiles, which may take a minute.")


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
