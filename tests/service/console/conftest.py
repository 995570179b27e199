"""One service, one live stream and one browser for all tests of the console."""

import pytest
from console_world import Console, chromium, serving, stopped_worker

from service.demo import Demo


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    with Demo(tmp_path_factory.mktemp("demo"), 400_000, rate=1_000, traced=False) as running:
        yield running


@pytest.fixture(scope="session")
def service(tmp_path_factory, demo):
    with stopped_worker() as stopped, serving(tmp_path_factory.mktemp("service"), [demo.status_url, stopped]) as given:
        yield given


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("browser")) as driver:
        yield driver


@pytest.fixture
def console(browser, service, tmp_path):
    page = Console(browser, *service, tmp_path / "saved")
    page.width(None)
    page.prefer("light")
    yield page
    assert page.complaints() == []
