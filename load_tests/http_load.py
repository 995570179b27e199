"""The HTTP service under load: light routes and submissions, idle and while jobs run, beside an empty FastAPI route.

    python -m load_tests.http_load [--quick] [--json FILE]

One connection asks one thing after the other, so that the time of a request is what a client waits. There are two empty
routes: one of an application that has nothing else, in its own process with the same server, and one of the service
itself, behind its guard and its metrics. All are asked in turns, because the machine changes its mind. Then many small
jobs, one after the other and many at once, again and again: none may be lost or done twice, and memory has to level off
in each process. (Many at once run in as many threads, and each of those takes memory of its own from the system.)
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from load_tests.harness import arguments, print_machine, print_table, write_json
from service.ports import free_port

POLICY = """\
name: shop
schema:
  person: id
  quasi: {age: {type: number, min: 0, max: 120, integer: true}}
  sensitive: {item: {type: category, hierarchy: {Any: [lamp, book, tea]}}}
guarantee: {algorithm: mondrian, k: 4, l: 2}
"""
SMALL, LARGE = 100, 200_000
BOUNDARY = "load"
EMPTY = """
import sys, uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.get("/")
async def empty() -> dict[str, str]:
    return {}
uvicorn.run(app, port=int(sys.argv[1]), log_level="warning", access_log=False, timeout_keep_alive=60)
"""
SERVE = """
from fastapi.routing import APIRoute
import service.cli.serve as command
from service.api import create_app
async def empty() -> dict[str, str]:
    return {}
def with_empty_route(settings):
    app = create_app(settings)
    app.router.routes.insert(0, APIRoute("/empty", empty))
    return app
command.create_app = with_empty_route
command.serve()
"""
ALONE, INSIDE = "empty FastAPI route, alone", "empty FastAPI route, in the service"
ENDED = {"succeeded", "failed", "cancelled"}


def body(rows: int) -> bytes:
    """A submission with so many rows."""
    items = ("lamp", "book", "tea")
    table = "id,age,item\n" + "".join(f"{row},{row % 90},{items[row % 3]}\n" for row in range(rows))
    return (
        "".join(
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; filename="x"\r\n\r\n{content}\r\n'
            for name, content in (("table", table), ("policy", POLICY))
        ).encode()
        + f"--{BOUNDARY}--\r\n".encode()
    )


class Client:
    """One connection that stays open."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def ask(self, method: str, path: str, content: bytes | None = None) -> tuple[int, bytes]:
        """Status and content of an answer."""
        headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"} if content else {}
        self._connection.request(method, path, content, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def submit(self, content: bytes) -> dict[str, Any]:
        """A job that is accepted."""
        status, answer = self.ask("POST", "/v1/jobs", content)
        assert status == 202, answer
        job: dict[str, Any] = json.loads(answer)
        return job

    def wait(self, job: dict[str, Any]) -> dict[str, Any]:
        """The job when it has ended."""
        while True:
            found: dict[str, Any] = json.loads(self.ask("GET", job["links"]["self"])[1])
            if found["state"] in ENDED:
                return found
            time.sleep(0.02)


@contextmanager
def process(command: list[str], port: int, path: str, **environment: str) -> Iterator[int]:
    """A server; yields its process id when it answers."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env={**os.environ, **environment}, stdout=quiet, stderr=quiet) as running:
        try:
            while True:
                try:
                    if Client(port).ask("GET", path)[0] == 200:
                        break
                except OSError:
                    assert running.poll() is None
                time.sleep(0.1)
            yield running.pid
        finally:
            running.terminate()


def measure(asks: dict[str, Callable[[], object]], rounds: int, each: int) -> dict[str, list[float]]:
    """Milliseconds of every request, the kinds in turns."""
    taken: dict[str, list[float]] = {name: [] for name in asks}
    for _ in range(rounds):
        for name, ask in asks.items():
            for _ in range(each):
                started = time.perf_counter()
                ask()
                taken[name].append((time.perf_counter() - started) * 1_000)
    return taken


def summary(when: str, taken: dict[str, list[float]]) -> list[dict[str, Any]]:
    median = {name: statistics.median(times) for name, times in taken.items()}
    return [
        {
            "when": when,
            "route": name,
            "requests/s": round(1_000 / median[name]),
            "p50 ms": round(median[name], 2),
            "p99 ms": round(statistics.quantiles(times, n=100)[98], 2),
            "times the empty one": round(median[name] / median[ALONE], 2),
            "times the one inside": round(median[name] / median[INSIDE], 2),
        }
        for name, times in taken.items()
    ]


def megabytes(pid: int) -> dict[str, float]:
    """Resident memory of the service and of each process that runs jobs."""
    children = [child for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()]
    workers = [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
    named = {"service": pid, **{f"job process {place}": one for place, one in enumerate(sorted(workers), 1)}}
    return {name: _resident(one) for name, one in named.items()}


def _resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1_024, 1)


def routes(port: int, empty_port: int, large: bytes | None) -> list[dict[str, Any]]:
    """Light routes and submissions, while a large job runs or none."""
    client, empty = Client(port), Client(empty_port)
    running = [client.submit(large) for _ in range(8)] if large else []
    known = client.submit(body(SMALL))
    yardsticks: dict[str, Callable[[], object]] = {
        ALONE: lambda: empty.ask("GET", "/"),
        INSIDE: lambda: client.ask("GET", "/empty"),
    }
    asks: dict[str, Callable[[], object]] = {
        "GET /healthz": lambda: client.ask("GET", "/healthz"),
        "GET /v1/algorithms": lambda: client.ask("GET", "/v1/algorithms"),
        "GET /v1/jobs/{id}": lambda: client.ask("GET", known["links"]["self"]),
        "GET /v1/jobs": lambda: client.ask("GET", "/v1/jobs?limit=20"),
    }
    when, small = "jobs run" if large else "idle", body(SMALL)
    found = summary(when, measure({**yardsticks, **asks}, 10, 40))
    posts = {**yardsticks, "POST /v1/jobs": lambda: client.submit(small)}
    found += summary(when, measure(posts, 4, 10))[len(yardsticks) :]
    for job in running:
        client.ask("DELETE", job["links"]["self"])
    return found


def many_jobs(port: int, pid: int, count: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Small jobs in a row and 50 at once, several times, and how memory goes."""
    client, small = Client(port), body(SMALL)
    for job in json.loads(client.ask("GET", "/v1/jobs?limit=200")[1])["jobs"]:
        client.wait(job)
    rows, memory = [], [{"small jobs done": 0, **megabytes(pid)}]
    step = count // 5
    for name, number, at_once in (*[("in a row", step, 1)] * 5, *[("at once", 50, 50)] * 6):
        started = time.perf_counter()
        with ThreadPoolExecutor(at_once) as pool:
            ended = list(pool.map(lambda _: (own := Client(port)).wait(own.submit(small)), range(number)))
        seconds = time.perf_counter() - started
        good = [job for job in ended if (job["state"], job["attempts"]) == ("succeeded", 1)]
        assert len({job["id"] for job in good}) == number, f"{number - len(good)} jobs lost, failed or done twice"
        rows.append({"jobs": f"{number} {name}", "jobs/s": round(number / seconds, 1), "lost or twice": 0})
        memory.append({"small jobs done": memory[-1]["small jobs done"] + number, **megabytes(pid)})
    return rows, memory


def main() -> None:
    given = arguments(__doc__)
    print_machine()
    port, empty_port = free_port(), free_port()
    with tempfile.TemporaryDirectory() as data:
        settings = {"PORT": str(port), "DATA": data, "MAX_JOBS_PER_TOKEN": "10000"}
        with (
            process([sys.executable, "-c", EMPTY, str(empty_port)], empty_port, "/"),
            process(
                [sys.executable, "-c", SERVE],
                port,
                "/readyz",
                **{f"PORTCULLIS_{name}": value for name, value in settings.items()},
            ) as pid,
        ):
            client = Client(port)
            client.wait(client.submit(body(SMALL)))  # kernels are loaded
            found = routes(port, empty_port, None) + routes(port, empty_port, body(LARGE))
            print_table("Requests, one after the other", list(found[0]), [list(row.values()) for row in found])
            jobs, memory = many_jobs(port, pid, 50 if given.quick else 500)
            print_table("Small jobs", list(jobs[0]), [list(row.values()) for row in jobs])
            print_table("Resident megabytes", list(memory[0]), [list(row.values()) for row in memory])
    write_json(given.json, "http_load", {"routes": found, "jobs": jobs, "memory": memory})


if __name__ == "__main__":
    main()
