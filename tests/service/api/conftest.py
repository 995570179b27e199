"""Services to talk to."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.api import Scope, ServiceSettings, create_app, new_token
from tests.service.api.api_world import ServiceProcess


@pytest.fixture
def open_client(tmp_path: Path) -> Iterator[Any]:
    """Make a client of a service that accepts jobs and never runs them."""
    clients = []

    def make(**settings: Any) -> Any:
        app = create_app(ServiceSettings(data=tmp_path / "data", job_workers=0, **settings))
        client = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)
        clients.append(client.__enter__())
        return client

    yield make
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(open_client: Any) -> Any:
    """A service without tokens."""
    return open_client()


@pytest.fixture
def guarded(open_client: Any) -> Any:
    """A service with tokens, and the header of each."""
    scopes = {
        "alice": [Scope.SUBMIT, Scope.READ_OWN],
        "bob": [Scope.SUBMIT, Scope.READ_OWN],
        "writer": [Scope.SUBMIT],
        "reader": [Scope.READ_OWN],
        "overseer": [Scope.READ_ALL],
        "admin": [Scope.ADMIN],
    }
    made = {name: new_token(name, given) for name, given in scopes.items()}
    client = open_client(tokens=tuple(token for _, token in made.values()))
    return client, {name: {"Authorization": f"Bearer {text}"} for name, (text, _) in made.items()}


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A service that runs jobs, in a process of its own."""
    running = ServiceProcess(
        tmp_path_factory.mktemp("live") / "data", job_workers=2, job_memory_bytes=3 << 30, lease_seconds=20
    ).start()
    yield running
    running.stop()
