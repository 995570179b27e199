"""Databases that cannot be opened are refused with what to do about it, and without the password."""

import sys
from pathlib import Path
from typing import Any

import pytest

from service.jobs import open_database
from service.jobs.database import DatabaseError
from service.ports import free_port


def test_postgresql_without_its_driver_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, portcullis: Any
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.setenv("PORTCULLIS_DATABASE_URL", "postgresql://127.0.0.1/jobs")
    result = portcullis("serve", "--data", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.endswith("error: database_url: psycopg is not installed (extra `postgres`)\n")


@pytest.mark.parametrize("url", ["mysql://me:secret@127.0.0.1/jobs", "secret", "postgresql//me:secret@127.0.0.1/jobs"])
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(DatabaseError, match="must begin with postgresql://") as caught:
        open_database(url)
    assert "secret" not in str(caught.value)


def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    port = free_port()
    with pytest.raises(DatabaseError) as caught:
        open_database(f"postgresql://me:secret@127.0.0.1:{port}/jobs")
    assert f"postgresql+psycopg://me:***@127.0.0.1:{port}/jobs does not answer" in str(caught.value)


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match=r"nowhere/jobs\.db does not answer, or refuses us"):
        open_database(f"sqlite:///{tmp_path}/nowhere/jobs.db")
