"""On paper nothing needs time to recover."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.worker import trouble
from service.worker.sealing import add_key
from tests.service.worker.quarter import Quarter


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker tries again at once."""
    monkeypatch.setattr(trouble, "FIRST_PAUSE", 0.0)


@pytest.fixture(autouse=True)
def closing() -> Iterator[None]:
    """Close every worker, also those of a test that fails."""
    yield
    while Quarter.open:
        Quarter.open.pop().hall.worker.close()


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    add_key(tmp_path / "keys.json")
    return tmp_path / "keys.json"


@pytest.fixture
def quarter(key_file: Path) -> Quarter:
    """A worker that knows people."""
    quarter = Quarter(key_file)
    quarter.hall.cycle()
    for _ in range(6):
        quarter.come(40)
        quarter.hall.cycle()
    return quarter
