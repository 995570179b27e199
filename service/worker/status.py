"""The worker's own small web server: /status (JSON), /metrics, /healthz, /readyz, and a page for people at /.

It runs beside the loop, in one thread, and everything in it has a bound: connections, the time that each may take, and
the size of a request. Nobody can take the worker's threads or files by opening connections.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from html import escape
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from service.ports import listening, stop_listening
from service.worker.metrics import Metrics

log = logging.getLogger(__name__)

MOST_CONNECTIONS = 64
"""One more ends the oldest: whoever asks now is answered, whoever only holds a connection open loses it."""
MOST_HEAD_BYTES = 8 << 10
SECONDS = 5.0
"""How long a request may take to arrive, and its answer to leave."""
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_PAGE = """<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<meta name="viewport" content="width=device-width"><title>portcullis {stream}</title>
<style>:root{{color-scheme:light dark;font:16px system-ui}}body{{margin:2rem auto;max-width:44rem;padding:0 1rem}}
td{{padding:.2rem 1rem .2rem 0}}td+td{{font-variant-numeric:tabular-nums}}</style>
<h1>{stream}</h1><p>{input} → {output}: <strong>{word}</strong></p><table>{rows}</table>
<p><a href="/status">status</a> · <a href="/metrics">metrics</a></p>"""


class _Answer(NamedTuple):
    status: HTTPStatus
    body: bytes
    kind: str = "text/plain; charset=utf-8"


class StatusServer:
    """Serves what `metrics` knows, from a thread of its own.

    A browser can be made to send requests here by a page whose name its owner points at this machine. So only requests
    for this machine are answered: by its loopback names, the address that is listened on, and `names`.
    """

    def __init__(self, metrics: Metrics, host: str, port: int, names: Collection[str] = ()) -> None:
        self._names = _LOOPBACK | {host.lower(), *(name.lower() for name in names)}
        self._any_address = host in {"0.0.0.0", "::", ""}  # noqa: S104 - compared, not listened on
        self._routes: dict[str, Callable[[], _Answer]] = {
            "/": lambda: _Answer(HTTPStatus.OK, _page(metrics.status()), "text/html; charset=utf-8"),
            "/status": lambda: _Answer(HTTPStatus.OK, msgspec.json.encode(metrics.status()), "application/json"),
            "/metrics": lambda: _Answer(HTTPStatus.OK, generate_latest(metrics.registry), CONTENT_TYPE_LATEST),
            "/healthz": lambda: _word(metrics.stuck()),
            "/readyz": lambda: _word(metrics.unready(), metrics.notices()),
        }
        self._connections: dict[asyncio.StreamWriter, None] = {}
        self._sockets = listening(
            host, port, "choose another port with --status-port or PORTCULLIS_WORKER_STATUS_PORT (0 takes any free one)"
        )
        self.port = int(self._sockets[0].getsockname()[1])
        self._loop, self._ended = asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="status", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._listen())

    async def _listen(self) -> None:
        servers = [await asyncio.start_server(self._serve, sock=each, limit=MOST_HEAD_BYTES) for each in self._sockets]
        await self._ended.wait()
        await stop_listening(*servers)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: one request, one answer, each within its time."""
        while len(self._connections) >= MOST_CONNECTIONS:
            oldest = next(iter(self._connections))
            del self._connections[oldest]
            oldest.transport.abort()
        self._connections[writer] = None
        try:
            async with asyncio.timeout(SECONDS):
                answer, has_body = await self._answered(reader)
            async with asyncio.timeout(SECONDS):
                writer.write(_encoded(answer, has_body=has_body))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            log.debug("a client went away, or was too slow")
        finally:
            self._connections.pop(writer, None)
            writer.transport.abort()

    async def _answered(self, reader: asyncio.StreamReader) -> tuple[_Answer, bool]:
        """The answer to what comes, and whether its body is wanted."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return _refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE), True
        first, *lines = head.decode("latin-1").split("\r\n")
        method, _, rest = first.partition(" ")
        target, _, version = rest.partition(" ")
        headers = [line.partition(":") for line in lines]
        hosts = [value.strip() for name, _, value in headers if name.lower() == "host"]
        if not version.startswith("HTTP/1.") or len(hosts) > 1 or not (hosts or version == "HTTP/1.0"):
            return _refusal(HTTPStatus.BAD_REQUEST), True
        if hosts and not self._is_ours(hosts[0]):
            return _refusal(HTTPStatus.FORBIDDEN, "this name is not served; status_names may allow it"), True
        if method not in {"GET", "HEAD"}:
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED), True
        route = self._routes.get(target.partition("?")[0])
        return route() if route else _refusal(HTTPStatus.NOT_FOUND), method == "GET"

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            return False
        return name in self._names or (self._any_address and _is_address(name or ""))


def _is_address(name: str) -> bool:
    """Whether a host is written as an address, which no page of another machine can have for its name."""
    with suppress(ValueError):
        ipaddress.ip_address(name)
        return True
    return False


def _encoded(answer: _Answer, *, has_body: bool) -> bytes:
    head = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
        f"Content-Type: {answer.kind}\r\nContent-Length: {len(answer.body)}\r\n"
        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + (answer.body if has_body else b"")


def _refusal(status: HTTPStatus, why: str = "") -> _Answer:
    return _Answer(status, f"{why or status.phrase.lower()}\n".encode())


def _word(problem: str | None, notices: Sequence[str] = ()) -> _Answer:
    if problem is None:
        return _Answer(HTTPStatus.OK, "".join(f"{line}\n" for line in ("ok", *notices)).encode())
    return _refusal(HTTPStatus.SERVICE_UNAVAILABLE, problem)


def _page(status: dict[str, Any]) -> bytes:
    numbers = status["counts"] | status["gauges"]
    rows = "".join(f"<tr><td>{escape(key)}<td>{value:,.6g}" for key, value in sorted(numbers.items()))
    word = "ready" if status["ready"] else f"not ready: {status['reason']}"
    names = {key: escape(str(status[key])) for key in ("stream", "input", "output")}
    return _PAGE.format(word=escape(word), rows=rows, **names).encode()
