"""What tests of several parts of the service share: commands, and the databases of the queue."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from service.cli import app
from service.jobs import JobStore, open_database
from service.jobs.tables import METADATA
from tests.postgres_server import postgres_server
from tests.service.cli.cli_world import POLICY, table_text


@pytest.fixture
def portcullis() -> Any:
    """Run a command as a user would; returns its result with exit_code, stdout and stderr."""
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def shop(tmp_path: Path) -> Any:
    """A directory with a policy and a table of marked persons that it fits."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "table.csv").write_text(table_text())
    return tmp_path


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[Any]:
    """A PostgreSQL server; tests that use it carry `needs_tool("postgres")`."""
    with postgres_server() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.needs_tool("postgres"))])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
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
def stores(database_url: Any) -> Iterator[Any]:
    """Make stores over one database, as several machines would."""
    made = []

    def make() -> Any:
        made.append(JobStore(open_database(database_url)))
        return made[-1]

    yield make
    for store in made:
        store.close()
