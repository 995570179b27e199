"""The worker's own small web server: /status (JSON), /metrics, /healthz, /readyz, and a page for people at /."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from service.worker.metrics import Metrics

log = logging.getLogger(__name__)

_PAGE = """<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<meta name="viewport" content="width=device-width"><title>portcullis {stream}</title>
<style>:root{{color-scheme:light dark;font:16px system-ui}}body{{margin:2rem auto;max-width:44rem;padding:0 1rem}}
td{{padding:.2rem 1rem .2rem 0}}td+td{{font-variant-numeric:tabular-nums}}</style>
<h1>{stream}</h1><p>{input} → {output}: <strong>{word}</strong></p><table>{rows}</table>
<p><a href="/status">status</a> · <a href="/metrics">metrics</a></p>"""


class StatusServer:
    """Serves what `metrics` knows, from a thread of its own."""

    def __init__(self, metrics: Metrics, host: str, port: int) -> None:
        routes: dict[str, Callable[[], tuple[int, str, bytes]]] = {
            "/": lambda: (200, "text/html; charset=utf-8", _page(metrics.status())),
            "/status": lambda: (200, "application/json", msgspec.json.encode(metrics.status())),
            "/metrics": lambda: (200, CONTENT_TYPE_LATEST, generate_latest(metrics.registry)),
            "/healthz": lambda: _answer(metrics.stuck()),
            "/readyz": lambda: _answer(metrics.unready()),
        }

        class Handler(BaseHTTPRequestHandler):
            server_version, sys_version = "portcullis", ""

            def do_GET(self) -> None:
                route = routes.get(self.path.partition("?")[0])
                status, kind, body = route() if route else (404, "text/plain", b"not found\n")
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
                log.debug(format, *args)

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="status", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _answer(problem: str | None) -> tuple[int, str, bytes]:
    return (200, "text/plain", b"ok\n") if problem is None else (503, "text/plain", f"{problem}\n".encode())


def _page(status: dict[str, Any]) -> bytes:
    numbers = status["counts"] | status["gauges"]
    rows = "".join(f"<tr><td>{escape(key)}<td>{value:,.6g}" for key, value in sorted(numbers.items()))
    word = "ready" if status["ready"] else f"not ready: {status['reason']}"
    names = {key: escape(str(status[key])) for key in ("stream", "input", "output")}
    return _PAGE.format(word=escape(word), rows=rows, **names).encode()
