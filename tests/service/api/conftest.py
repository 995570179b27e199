"""Services to talk to."""

import sys
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

sys.path.insert(0, str(Path(__file__).parents[1]))  # cli_world

from api_world import ServiceProcess

from service.api import Scope, ServiceSettings, create_app, new_token
from service.jobs import JobStore, open_database
from service.jobs.tables import METADATA
from tests.postgres_server import postgres_server


@pytest.fixture
def open_client(tmp_path):
    """Make a client of a service that accepts jobs and never runs them."""
    clients = []

    def make(**settings):
        app = create_app(ServiceSettings(data=tmp_path / "data", job_workers=0, **settings))
        client = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)
        clients.append(client.__enter__())
        return client

    yield make
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(open_client):
    """A service without tokens."""
    return open_client()


@pytest.fixture
def guarded(open_client):
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
def live(tmp_path_factory):
    """A service that runs jobs, in a process of its own."""
    running = ServiceProcess(
        tmp_path_factory.mktemp("live") / "data", job_workers=2, job_memory_bytes=3 << 30, lease_seconds=20
    ).start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def postgres_url():
    """A PostgreSQL server; tests that use it carry `needs_tool("postgres")`."""
    with postgres_server() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.needs_tool("postgres"))])
def database_url(request, tmp_path):
    """Each database that the queue works on, empty."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'jobs.db'}"
    url = request.getfixturevalue("postgres_url")
    engine = open_database(url)
    with engine.begin() as connection:
        for table in METADATA.sorted_tables:
            connection.execute(table.delete())
    engine.dispose()
    return url


@pytest.fixture
def stores(database_url):
    """Make stores over one database, as several machines would."""
    made = []

    def make():
        made.append(JobStore(open_database(database_url)))
        return made[-1]

    yield make
    for store in made:
        store.close()
