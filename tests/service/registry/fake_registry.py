"""A schema registry in this process, which can be told to be away, broken, slow or somebody else."""

import json
import ssl
import threading
import time
from base64 import b64encode
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import unquote

from service.registry import Registry, RegistrySettings

MOODS = {"html": (200, b"<html>welcome</html>"), "list": (200, b"[1, 2]")}
USER, PASSWORD, TOKEN = "portcullis", "open-sesame", "a-token"


class FakeRegistry:
    """Knows subjects and ids as Confluent's registry does, judges no compatibility, and counts what it is asked."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.subjects: dict[str, list[int]] = {}
        self.schemas: dict[int, dict[str, Any]] = {}
        self.asked: Counter[str] = Counter()
        self.mood = ""
        """`500`, `html`, `slow`, `401`, `409`, `list`; as it should be where empty."""
        self.answers: tuple[int, bytes] | None = None
        """Status and text of every answer, whatever is asked; None for what it knows."""
        self.needs: str | None = None
        """The authorization that is asked for."""
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._reply(*registry.answer("GET", unquote(self.path), None, self.headers.get("Authorization")))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._reply(*registry.answer("POST", unquote(self.path), body, self.headers.get("Authorization")))

            def _reply(self, status: int, text: bytes) -> None:
                if registry.mood == "slow":
                    time.sleep(0.6)
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign] # clients hang up on a slow one
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}/api"

    def client(self, **settings: Any) -> Registry:
        return Registry(RegistrySettings(url=self.url, **{"timeout": 0.3, **settings}))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, subject: str, schema: Any, kind: str = "AVRO", references: Any = ()) -> int:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        for number in self.subjects.get(subject, ()):
            if self.schemas[number]["schema"] == text:
                return number
        number = len(self.schemas) + 1
        self.schemas[number] = {"schema": text, "schemaType": kind, "references": list(references)}
        self.subjects.setdefault(subject, []).append(number)
        return number

    def answer(self, method: str, path: str, body: Any, authorization: str | None) -> tuple[int, bytes]:
        self.asked[f"{method} {path}"] += 1
        if self.answers is not None:
            return self.answers
        if self.mood in MOODS or self.mood.isdecimal():
            return MOODS.get(self.mood) or (int(self.mood), b'{"error_code": 1, "message": "field b is\\n new"}')
        if self.needs is not None and authorization != self.needs:
            return 401, b"{}"
        match path.partition("?")[0].removeprefix("/api/").split("/"):
            case ["schemas", "ids", asked] if int(asked) in self.schemas:
                return self._said(self.schemas[int(asked)])
            case ["subjects", subject, "versions", version] if subject in self.subjects and method == "GET":
                place = -1 if version == "latest" else int(version) - 1
                number = self.subjects[subject][place]
                return self._said({"id": number, **self.schemas[number]})
            case ["subjects", subject, "versions"] if method == "POST":
                return self._said({"id": self.add(subject, body["schema"], body.get("schemaType", "AVRO"))})
            case ["subjects", subject] if method == "POST":
                for number in self.subjects.get(subject, ()):
                    if same(self.schemas[number]["schema"], body["schema"]):
                        return self._said({"id": number})
        return 404, b'{"error_code": 40403, "message": "not found"}'

    def _said(self, answer: Any) -> tuple[int, bytes]:
        return 200, json.dumps(answer).encode()


def same(one: str, other: str) -> bool:
    """Whether two schemas are the same; those of Protobuf are not JSON."""
    return one == other or (one[0] + other[0] == "{{" and json.loads(one) == json.loads(other))


def basic() -> str:
    return "Basic " + b64encode(f"{USER}:{PASSWORD}".encode()).decode()
