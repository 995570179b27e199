"""On paper nothing needs time to recover."""

import pytest

from service.worker import trouble


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker tries again at once."""
    monkeypatch.setattr(trouble, "FIRST_PAUSE", 0.0)
