"""What tests of the command line share."""

import pytest
from cli_world import POLICY, table_text
from typer.testing import CliRunner

from service.cli import app


@pytest.fixture
def portcullis():
    """Run a command as a user would; returns its result with exit_code, stdout and stderr."""
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def shop(tmp_path):
    """A directory with a policy and a table of marked persons that it fits."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "table.csv").write_text(table_text())
    return tmp_path
