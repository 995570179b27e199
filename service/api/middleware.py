"""What every answer gets: security headers, a line in the metrics, and a problem instead of a traceback.

Written as plain ASGI: the framework's own middleware classes cost more than a light route does.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.errors import answer
from service.api.metrics import HttpMetrics
from service.api.settings import LOOPBACK
from service.problems import problem

log = logging.getLogger(__name__)

_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"content-security-policy": (
        b"default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; object-src 'none'; "
        b"base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
    ),
    b"cache-control": b"no-store",
}
_HSTS = (b"strict-transport-security", b"max-age=31536000")


class _Enough(Exception):  # noqa: N818 - no error: it ends a route whose body nobody wants
    """The answer to HEAD is complete."""


class Guard:
    """Around the whole application."""

    def __init__(self, app: ASGIApp, *, metrics: HttpMetrics, tls: bool, local_only: bool) -> None:
        self._app = app
        self._metrics = metrics
        self._extra = [_HSTS] if tls else []
        self._local_only = local_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0
        wanted = scope["method"]
        if wanted == "HEAD":  # whatever answers GET answers HEAD, without its body
            scope = {**scope, "method": "GET"}

        async def guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _completed(message.get("headers", ()), self._extra)
            elif wanted == "HEAD":
                await send({"type": "http.response.body"})
                raise _Enough
            await send(message)

        try:
            await (self._refused(scope) or self._app)(scope, receive, guarded)
        except _Enough:
            pass
        except Exception as error:  # noqa: BLE001 - the last line: nothing of it may be shown, it may quote a value
            place = traceback.extract_tb(error.__traceback__)[-1]
            log.error("%s in %s, line %s", type(error).__name__, place.filename, place.lineno)  # noqa: TRY400
            if not status:
                await answer(problem("internal", "This is a fault of Portcullis, please report it."))(
                    scope, receive, guarded
                )
        finally:
            self._metrics.seen(scope, wanted, status, time.perf_counter() - started)

    def _refused(self, scope: Scope) -> ASGIApp | None:
        """The answer to a request that goes no further."""
        if _is_ambiguous(scope):
            refused = problem("bad-request", "Content-Length and Transfer-Encoding exclude each other.")
            return answer(refused, {"Connection": "close"})
        if self._local_only and not _is_local(scope):
            return answer(problem("forbidden", "Without tokens only this machine is served."))
        return None


def _completed(given: Iterable[tuple[bytes, bytes]], extra: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    headers = list(given)
    present = {name.lower() for name, _ in headers}
    headers += [pair for pair in _HEADERS.items() if pair[0] not in present]
    return headers + extra


def _is_ambiguous(scope: Scope) -> bool:
    """Where such a request ends, a proxy may see otherwise; so the connection ends with it (RFC 9112, 6.1)."""
    return {b"content-length", b"transfer-encoding"} <= {name.lower() for name, _ in scope["headers"]}


def _is_local(scope: Scope) -> bool:
    """No page of another site reaches a service without tokens through somebody's browser."""
    headers = dict(scope["headers"])
    host = headers.get(b"host", b"").decode("latin-1")
    origin = headers.get(b"origin")
    try:
        if urlsplit(f"//{host}").hostname not in LOOPBACK:
            return False
        return origin is None or urlsplit(origin.decode("latin-1")).netloc == host
    except ValueError:  # no address at all, such as `http://[`
        return False
