"""A first start that takes long says so, and is given the time that it takes."""

import pytest

from microdata import PortcullisError
from service.demo import world


def test_whoever_waits_is_told_for_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "_TOLD_EVERY", 0.0)
    answers, told = iter([False, False, True]), []  # type: ignore[var-annotated]
    world._eventually(lambda: next(answers), "never", told.append)
    assert len(told) == 2
    assert told == sorted(told)


def test_what_never_happens_is_complained_about_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "_START_SECONDS", 0.0)
    with pytest.raises(PortcullisError, match="the worker does not get ready"):
        world._eventually(lambda: False, "the worker does not get ready")
