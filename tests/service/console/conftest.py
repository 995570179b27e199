"""One service, one live stream and one browser for all tests of the console, and not a moment longer: they work on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.demo import Demo
from tests.service.console.console_world import Console, chromium, serving, stopped_worker


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with Demo(tmp_path_factory.mktemp("demo"), 400_000, rate=1_000, traced=False) as running:
        yield running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, demo: Any) -> Iterator[Any]:
    with stopped_worker() as stopped, serving(tmp_path_factory.mktemp("service"), [demo.status_url, stopped]) as given:
        yield given


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("browser")) as driver:
        yield driver


@pytest.fixture
def console(browser: Any, service: Any, tmp_path: Path) -> Iterator[Any]:
    page = Console(browser, *service, tmp_path / "saved")  # type: ignore[call-arg]
    page.width(None)
    page.prefer("light")
    yield page
    assert page.complaints() == []
