"""Odd requests to every route of the HTTP service: what answers with a fault, without a problem, or with an echo.

    python -m load_tests.http_fuzz [--seed N] [--requests N]

Each request is a good one with odd values in one or more of its parts: path, query, headers, body, multipart parts
and boundary, policy. They are given to the application itself, as a client would have them refused or repaired on the
way. The same seed makes the same requests.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from fastapi import FastAPI

from service.api import ServiceSettings, create_app
from service.api.given_policy import EXAMPLE
from service.jobs import Job, new_id
from service.problems import KINDS, PREFIX

MARK = "zqMarkedzq"
"""In most odd values; seen again in an error, it was echoed."""
KEY = "zqKeyedzq"
"""The same in what may be a key of a policy, which the path to a wrong place may repeat."""
PATIENCE = 240.0
"""Seconds after which an answer counts as one that never came."""
BOUNDARY = b"between"
TABLE = b"customer,age,item\n1,20,lamp\n2,30,book\n3,40,tea\n"

_NUMBERS = [
    *("9" * 5_000, "-" + "9" * 400, "1e999999", "1e-999999", "0.1" + "0" * 9_000, "9" * 19, "18446744073709551616"),
    *("-9223372036854775809", "nan", "NaN", "Infinity", "-inf", "0x1f", "1_0", "\u0663", "-0", "1.", ".", "1e", "08"),
]
_TEXTS = [
    *(
        "",
        " ",
        "\0",
        f"{MARK}\0",
        f"\r\n{MARK}: 1",
        f"{MARK}\n",
        f"../../{MARK}",
        f"..\\{MARK}",
        f"{MARK}%00",
        "%",
        "%zz",
    ),
    *(f"\u202e{MARK}", f"\ufeff{MARK}", f"\ud800{MARK}", f"\U0001f600{MARK}", f"e\u0301{MARK}", f"\x7f{MARK}\x1b[2J"),
    *(MARK * 20, MARK * 900, MARK * 7_000, f"'{MARK}\";--", f"${{{MARK}}}", f"{{{MARK}}}", f"<{MARK}>", f"={MARK}()"),
    *("null", "true", "[]", "{}", "*/*", ";" * 5_000, "," * 5_000, "=" * 200, '"' * 99, "\\" * 99, "bytes=0-0,0-0"),
]
_BYTES = [
    *(b"\xff\xfe" + MARK.encode("utf-16-le"), b"\x80\x81", b"\xc0\xaf", b"\xed\xa0\x80", b"\x1f\x8b\x08\x00", b"PAR1"),
    *(
        b"\x00" * 4_000,
        b"[" * 50_000,
        b'{"a":' * 20_000,
        b"- " * 20_000,
        b"%PDF-1.4",
        MARK.encode("utf-32"),
        b"\r" * 999,
    ),
]
_HEADERS = [
    *("accept", "accept-encoding", "authorization", "content-encoding", "content-length", "content-type", "cookie"),
    *("expect", "host", "idempotency-key", "if-match", "if-modified-since", "if-none-match", "if-range", "origin"),
    *("range", "transfer-encoding", "upgrade", "x-forwarded-for", "x-http-method-override"),
]
_HEADER_VALUES = [
    *(
        "http://[",
        "http://[::1",
        "//[",
        "[::1",
        "127.0.0.1:x",
        "127.0.0.1:99999999",
        "http://127.0.0.1",
        "Bearer",
        "Basic \0",
    ),
    *(
        "bytes=",
        "bytes=-",
        "bytes=9-1",
        "bytes=0-,1-",
        "bytes=" + "0-0," * 900,
        "bytes=-" + "9" * 5_000,
        "chunked",
        "gzip",
    ),
    *("multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=" + "b" * 5_000),
    *(
        'multipart/form-data; boundary="',
        "multipart/form-data; boundary*=utf-8''%ff",
        "multipart/mixed; boundary=between",
    ),
    *(
        "application/json; charset=utf-16",
        "application/json; charset=\0",
        "text/csv;q=nan, */*;q=1e999",
        "a/b;q=" + "9" * 5_000,
    ),
]


@dataclass(frozen=True)
class Asked:
    """A request as it arrives."""

    operation: str
    method: str
    path: bytes
    query: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes


@dataclass
class Seen:
    """What was answered."""

    requests: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    """Answers of 500, and answers that never came."""
    no_problems: list[str] = field(default_factory=list)
    """Errors that are no RFC 9457 problem."""
    echoes: list[str] = field(default_factory=list)
    """Errors that repeat what was sent."""
    slowest: float = 0.0


class Requests:
    """Makes odd requests out of good ones."""

    def __init__(self, app: FastAPI, seed: int) -> None:
        document = app.openapi()
        self._operations = [
            (path, method, operation) for path, item in document["paths"].items() for method, operation in item.items()
        ]
        self._random = random.Random(seed)
        self._app = app
        self._job = ""

    def __iter__(self) -> Iterator[Asked]:
        """Every operation in turn, without end."""
        while True:
            for path, method, operation in self._operations:
                yield self._request(path, method, operation)

    def _request(self, path: str, method: str, operation: dict[str, Any]) -> Asked:
        where = f"{method.upper()} {path}"
        body, kind = self._body(list(operation.get("requestBody", {}).get("content", ())))
        headers = [(b"host", b"127.0.0.1"), *([(b"content-type", kind)] if kind else [])]
        while self._often(0.4):
            value = self._one(_HEADER_VALUES) if self._often(0.5) else self._odd()
            one = (self._one(_HEADERS).encode(), value.encode("utf-8", "surrogatepass"))
            headers += [one] * (2 if self._often(0.2) else 1)
        names = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
        if self._often(0.1):
            method = self._one(["patch", "options", "trace", "put", "delete", "post", "head", MARK.lower()])
        return Asked(where, method.upper(), self._path(path), self._query(names), headers, body)

    def _path(self, path: str) -> bytes:
        parts = []
        for part in path.split("/"):
            if part.startswith("{"):
                good = self._good_job() if part == "{job_id}" else EXAMPLE["name"]
                parts.append(self._odd_bytes() if self._often(0.5) else good.encode())
            else:
                parts.append(part.encode())
        return b"/".join(parts)

    def _query(self, names: list[str]) -> bytes:
        given = []
        while self._often(0.5):
            name = self._one([*names, *names, self._odd()[:99]])
            given.append(quote(name, errors="surrogatepass").encode() + b"=" + self._odd_bytes())
        return b"&".join(given)

    def _body(self, kinds: list[str]) -> tuple[bytes, bytes]:
        if not kinds:
            return (self._odd_bytes(), b"") if self._often(0.1) else (b"", b"")
        if self._often(0.1):
            # As YAML or JSON, whatever it is may have keys.
            odd = _as_key(self._odd_bytes().decode("latin-1")).encode("latin-1")
            return odd, self._one(["application/json", MARK, "text/plain", *kinds]).encode()
        kind = self._one(kinds)
        if kind == "multipart/form-data":
            return self._multipart(), b"multipart/form-data; boundary=" + BOUNDARY
        return self._policy(), kind.encode()

    def _policy(self) -> bytes:
        """The example with odd values in some places, written as they are, so that they need not be JSON."""
        policy = copy.deepcopy(EXAMPLE)
        places = [(node, key) for node in _mappings(policy) for key in node]
        for node, key in self._random.sample(places, self._one([0, 1, 1, 2])):
            if self._often(0.2):
                node[_as_key(self._odd())] = node.pop(key)
            else:
                node[key] = "@odd@"
        text = json.dumps(policy, ensure_ascii=self._often(0.5))
        while '"@odd@"' in text:
            odd = (
                self._one(_NUMBERS) if self._often(0.5) else self._one([json.dumps(self._odd()), _as_key(self._odd())])
            )
            text = text.replace('"@odd@"', odd, 1)
        encoded = text.encode(self._one(["utf-8"] * 8 + ["utf-16", "utf-8-sig"]), "surrogatepass")
        return encoded[: self._random.randrange(len(encoded) + 1)] if self._often(0.1) else encoded

    def _multipart(self) -> bytes:
        names = ["table", "policy", "published", "original", "distribution", "hierarchies", "policy_name", self._odd()]
        chosen = ["table", "policy"] if self._often(0.5) else ["published", "original", "policy"]
        chosen = [self._one(names) if self._often(0.2) else name for name in chosen]
        ends = [b"\r\n"] * 9 + [b"\n", b"\r", b""]
        text = b"".join(self._part(name, self._one(ends)) for name in chosen)
        last = self._one(
            [b"--" + BOUNDARY + b"--\r\n"] * 6 + [b"", b"--", b"--" + BOUNDARY, b"--" + BOUNDARY + b"\r\n"]
        )
        return text + last

    def _part(self, name: str, end: bytes) -> bytes:
        content = self._table() if name in {"table", "published", "original"} else self._policy()
        if self._often(0.2):
            content = self._odd_bytes()
            if name not in {"table", "published", "original"}:
                content = _as_key(content.decode("latin-1")).encode("latin-1")
        written = (
            f'Content-Disposition: form-data; name="{name}"; filename="{self._odd() if self._often(0.3) else "a.csv"}"'
        )
        lines = [b"--" + BOUNDARY, written.encode("utf-8", "surrogatepass")]
        if self._often(0.3):
            lines.append(self._odd_bytes() + b": " + self._odd_bytes())
        return end.join([*lines, b"", content]) + end

    def _table(self) -> bytes:
        """A table with odd names or values in some cells."""
        rows = [line.split(b",") for line in TABLE.splitlines()]
        while self._often(0.4):
            self._one(rows)[self._random.randrange(3)] = self._odd_bytes()
        return b"".join(b",".join(row) + b"\n" for row in rows)

    def _good_job(self) -> str:
        """A job that has ended, with a result."""
        service = self._app.state.service
        if not self._job or service.store.get(self._job) is None:
            job = Job(
                new_id(),
                "local",
                "anonymize",
                "queued",
                "shop",
                0.0,
                policy="{}",
                owner="token:local",
                inputs={"table": "table.csv"},
            )
            service.store.add(job, most=1 << 30)
            (service.files.new_result(job.id, 1) / "result.csv").write_bytes(TABLE)
            while (claimed := service.store.claim("fuzz", 60)) is not None:
                service.store.finish(claimed, "succeeded", report="{}")
            self._job = job.id
        return self._job

    def _odd(self) -> str:
        return self._one(_NUMBERS if self._often(0.4) else _TEXTS)

    def _odd_bytes(self) -> bytes:
        if self._often(0.3):
            return self._one(_BYTES)
        odd = self._odd()
        return quote(odd, errors="surrogatepass").encode() if self._often(0.5) else odd.encode("utf-8", "surrogatepass")

    def _one(self, choices: list[Any]) -> Any:
        return self._random.choice(choices)

    def _often(self, share: float) -> bool:
        return self._random.random() < share


def _as_key(odd: str) -> str:
    return odd.replace(MARK, KEY)


def _mappings(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for inner in node.values():
            yield from _mappings(inner)


async def ask(app: FastAPI, asked: Asked) -> tuple[int, dict[bytes, bytes], bytes]:
    """The answer of the application: status, headers, body."""
    started: dict[str, Any] = {}
    content = bytearray()
    waiting = [{"type": "http.request", "body": asked.body}]

    async def receive() -> dict[str, Any]:
        return waiting.pop() if waiting else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            started.update(message)
        else:
            content.extend(message.get("body", b""))

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "root_path": "",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "method": asked.method,
        "path": unquote(asked.path.decode("latin-1")),
        "raw_path": asked.path,
        "query_string": asked.query,
        "headers": asked.headers,
    }
    await asyncio.wait_for(app(scope, receive, send), PATIENCE)  # type: ignore[arg-type]
    return started.get("status", 0), dict(started.get("headers", ())), bytes(content)


def is_problem(status: int, headers: dict[bytes, bytes], body: bytes) -> bool:
    """Whether an answer is an RFC 9457 problem of a kind that is known."""
    if headers.get(b"content-type") != b"application/problem+json":
        return False
    given = json.loads(body)
    known = given["type"].removeprefix(PREFIX) in KINDS
    return known and given["status"] == status and bool(given["title"] and given["detail"])


def is_echo(headers: dict[bytes, bytes], body: bytes) -> bool:
    """Whether an error repeats what was sent. The path to a wrong place of a policy may: it is made of its keys."""
    told = b"".join(headers.values())
    if headers.get(b"content-type") != b"application/problem+json":
        return any(mark.encode() in told + body for mark in (MARK, KEY))
    given = json.loads(body)
    places = given.get("errors", ())
    paths = json.dumps([place["path"] for place in places])
    rest = json.dumps({**given, "errors": [{**place, "path": ""} for place in places]}) + told.decode("latin-1")
    return MARK in paths + rest or KEY in rest


async def fuzz(app: FastAPI, seed: int, requests: int) -> Seen:
    """Send so many odd requests, and keep what is wrong with the answers."""
    seen = Seen()
    for asked, _ in zip(Requests(app, seed), range(requests), strict=False):
        began = time.perf_counter()
        try:
            status, headers, body = await ask(app, asked)
        except TimeoutError:
            status, headers, body = 0, {}, b""
        seen.slowest = max(seen.slowest, time.perf_counter() - began)
        seen.requests += 1
        seen.statuses[status] += 1
        seen.operations[asked.operation] += 1
        where = f"{seen.requests}: {asked.operation}, {status}: {_short(asked)}"
        if status in {0, 500}:
            seen.faults.append(where)
        if status >= 400 and asked.method != "HEAD" and not asked.operation.endswith("/readyz"):
            if not is_problem(status, headers, body):
                seen.no_problems.append(where)
            if is_echo(headers, body):
                seen.echoes.append(where)
    return seen


def _short(asked: Asked) -> str:
    shown = {name: f"{value[:60]!r} ({len(value)})" for name, value in asked.headers}
    return (
        f"{asked.method[:20]} {asked.path[:80]!r} {asked.query[:80]!r} {shown} {asked.body[:200]!r} ({len(asked.body)})"
    )


async def run(app: FastAPI, seed: int, requests: int) -> Seen:
    """The same over the life of an application."""
    async with app.router.lifespan_context(app):
        return await fuzz(app, seed, requests)


def main() -> None:
    """Fuzz a service of our own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests", type=int, default=5_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        settings = ServiceSettings(data=Path(data), job_workers=0, max_jobs_per_token=1 << 30, receive_seconds=2)
        seen = asyncio.run(run(create_app(settings), given.seed, given.requests))
    print(
        f"seed {given.seed}: {seen.requests} requests to {len(seen.operations)} operations;",
        f"the slowest took {seen.slowest:.1f} s",
    )
    print("statuses:", ", ".join(f"{status} {count}" for status, count in sorted(seen.statuses.items())))
    print(f"500 or no answer: {len(seen.faults)}, no problem: {len(seen.no_problems)}, echoes: {len(seen.echoes)}")
    wrong = {"fault": seen.faults, "no problem": seen.no_problems, "echo": seen.echoes}
    for kind, found in wrong.items():
        for one in found[:20]:
            print(f"{kind} {one}")
    sys.exit(any(wrong.values()))


if __name__ == "__main__":
    main()
