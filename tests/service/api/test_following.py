"""Clients that follow a job by its events: so many in all, so many of a token, and none holds up the event loop."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from service.api import Scope, ServiceSettings, create_app, new_token
from service.jobs import Job, new_id
from tests.service.api.api_world import submit

MOST, MOST_OF_ONE = 10, 6


class Follower:
    """Asks for the events of a job, and reads until the job has ended."""

    def __init__(self, app: Any, job: Any, secret: Any) -> None:
        self._app, self._path = app, f"/v1/jobs/{job}/events"
        self._headers = [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {secret}".encode())]
        self._asks = [{"type": "http.request", "body": b""}]
        self.status = 0
        self.answered = asyncio.Event()

    async def follow(self) -> None:
        scope = {"type": "http", "http_version": "1.1", "method": "GET", "scheme": "http", "root_path": ""}
        where = {"path": self._path, "raw_path": self._path.encode(), "query_string": b"", "headers": self._headers}
        ends = {"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "asgi": {"version": "3.0"}}
        await self._app(scope | where | ends, self._receive, self._send)

    async def _receive(self) -> Any:
        return self._asks.pop() if self._asks else await asyncio.Event().wait()

    async def _send(self, message: Any) -> None:
        await asyncio.sleep(0)  # as a server that writes to a socket
        self.status = message.get("status", self.status)
        if message.get("body"):
            self.answered.set()


@pytest.fixture
def app(tmp_path: Path) -> Any:
    """A service with two tokens that see everything."""
    made = {name: new_token(name, [Scope.SUBMIT, Scope.READ_ALL]) for name in ("alice", "bob")}
    app = create_app(
        ServiceSettings(
            data=tmp_path,
            job_workers=0,
            tokens=tuple(token for _, token in made.values()),
            max_event_streams=MOST,
            max_event_streams_per_token=MOST_OF_ONE,
        )
    )
    app.state.secrets = {name: text for name, (text, _) in made.items()}
    return app


@asynccontextmanager
async def following(app: Any, names: Any) -> AsyncIterator[Any]:
    """A job and who follows it, all of them at once; at the end the job ends, and so do they."""
    async with app.router.lifespan_context(app), asyncio.timeout(240):
        store = app.state.service.store
        job = Job(
            new_id(),
            "alice",
            "anonymize",
            "queued",
            "shop",
            time.time(),
            policy="{}",
            owner="token:local",
            inputs={"table": "t.csv"},
        )
        store.add(job, most=9)
        followers = [(name, Follower(app, job.id, app.state.secrets[name])) for name in names]
        async with asyncio.TaskGroup() as tasks:
            for _, one in followers:
                tasks.create_task(one.follow())
            for _, one in followers:
                await one.answered.wait()
            yield followers
            store.cancel(job.id)


def admitted(followers: Any) -> Any:
    assert {one.status for _, one in followers} <= {200, 503}
    return Counter(name for name, one in followers if one.status == 200)


def test_who_comes_at_the_same_moment_is_counted_before_the_next_one_is_let_in(app: Any) -> None:
    async def check() -> None:
        async with following(app, ["alice", "bob"] * 20) as followers:
            assert admitted(followers).total() == MOST
            assert app.state.service.metrics.followers == admitted(followers)
        assert app.state.service.metrics.followers.total() == 0, "who has gone does not count"

    asyncio.run(check())


def test_one_token_does_not_take_the_places_of_the_others(app: Any) -> None:
    async def check() -> None:
        async with following(app, ["alice"] * 20 + ["bob"] * 3) as followers:
            assert admitted(followers) == {"alice": MOST_OF_ONE, "bob": 3}

    asyncio.run(check())


def test_jobs_are_looked_at_in_threads(app: Any) -> None:
    """A query for each follower and look would hold up everybody else."""
    threads, store = [], app.state.service.store
    ask = store.get

    async def check() -> None:
        loop, enough = asyncio.get_running_loop(), asyncio.Event()

        def look(job_id: Any) -> Any:
            threads.append(threading.get_ident())
            if len(threads) >= 6:
                loop.call_soon_threadsafe(enough.set)
            return ask(job_id)

        async with following(app, ["alice"] * 3):
            store.get = look
            await enough.wait()

    asyncio.run(check())
    assert threading.get_ident() not in threads


def test_who_asks_for_the_head_of_the_events_is_not_counted(guarded: Any) -> None:
    client, headers = guarded
    job = submit(client, headers=headers["alice"])
    assert client.head(f"/v1/jobs/{job['id']}/events", headers=headers["overseer"]).status_code == 200
    assert client.app.state.service.metrics.followers.total() == 0
