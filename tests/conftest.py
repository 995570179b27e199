"""What all tests share: hypothesis' profiles, tools that a machine may lack, and the two Kafka brokers.

Tools. `@pytest.mark.needs_tool("kcat")` skips a test where the tool is missing, and fails it where
`PORTCULLIS_REQUIRE` (a comma list, set in CI) names it. The end of every run says which tools took part.

Brokers. `bootstrap` gives a test the address of the embedded broker and, in a second run of the same test, of a real
Apache Kafka (`PORTCULLIS_TEST_BOOTSTRAP` names one that runs already). Each is started once per session; tests that
use them are put onto one xdist worker, for which pytest wants `--dist loadgroup`.
"""

import functools
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.kafka import real_kafka as apache

# A first example may compile a kernel, and machines are shared: no test asserts a speed. `make test` tries the same
# examples each time, so that a change is judged by what it changed; `make soak` looks for new ones.
settings.register_profile("new", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("new"), derandomize=True)
settings.load_profile("same")

BROKER_FIXTURES = {"bootstrap", "embedded_kafka", "real_kafka", "real_bootstrap"}
EXISTING_BROKER = "PORTCULLIS_TEST_BOOTSTRAP"


def _real_kafka_missing() -> str | None:
    if os.environ.get(EXISTING_BROKER):
        return None
    tool = apache.missing_tool()
    if tool is not None:
        return f"{tool} is not installed (Debian: openjdk-17-jre-headless, maven), nor is {EXISTING_BROKER} set"
    try:
        apache.fetch()
    except (OSError, subprocess.SubprocessError) as error:
        return f"Maven could not fetch Apache Kafka {apache.VERSION}: {error}"
    return None


def _program_missing(*names: str) -> str | None:
    if any(shutil.which(name) for name in names):
        return None
    return f"none of these programs is installed: {', '.join(names)}"


def _postgres_missing() -> str | None:
    servers = Path("/usr/lib/postgresql").glob("*/bin/initdb")  # Debian keeps them off the path
    return _program_missing("initdb", *map(str, servers))


def _chromium_missing() -> str | None:
    browser = _program_missing("chromium", "chromium-browser", "google-chrome")
    return browser or _program_missing("chromedriver")


TOOLS = {
    "kafka": _real_kafka_missing,
    "kcat": functools.partial(_program_missing, "kcat", "kafkacat"),
    "postgres": _postgres_missing,
    "chromium": _chromium_missing,
    "openssl": functools.partial(_program_missing, "openssl"),
    "promtool": functools.partial(_program_missing, "promtool"),
}


@functools.cache
def _missing(tool: str) -> str | None:
    return TOOLS[tool]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"needs_tool(name): needs one of {', '.join(TOOLS)}; see tests/conftest.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if BROKER_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.kafka)
            item.add_marker(pytest.mark.xdist_group("kafka"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    required = set(filter(None, os.environ.get("PORTCULLIS_REQUIRE", "").replace(" ", "").split(",")))
    for tool in [mark.args[0] for mark in item.iter_markers("needs_tool")]:
        reason = _missing(tool)
        item.user_properties.append(("tool", f"{tool}: {reason or 'there'}"))
        if reason is not None and tool in required:
            pytest.fail(f"PORTCULLIS_REQUIRE names {tool}, but {reason}", pytrace=False)
        if reason is not None:
            pytest.skip(f"{tool} is missing: {reason}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Which tools and brokers took part; with xdist the words travel with the tests' reports."""
    counts: dict[str, int] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call" or getattr(report, "outcome", "passed") != "passed":
                for word in {
                    value for key, value in getattr(report, "user_properties", ()) if key in {"tool", "broker"}
                }:
                    counts[word] = counts.get(word, 0) + 1
    if counts:
        terminalreporter.section("tools and brokers")
        for word, count in sorted(counts.items()):
            terminalreporter.write_line(f"{word} ({count} test{'s' if count > 1 else ''})")


@pytest.fixture(scope="session")
def embedded_kafka() -> Iterator[str]:
    """The embedded broker's address."""
    from service.broker import Broker  # noqa: PLC0415 - most tests need no Kafka

    with Broker() as broker:
        yield broker.bootstrap


@pytest.fixture(scope="session")
def real_kafka() -> Iterator[apache.RealKafka]:
    """A real Apache Kafka of our own; tests that use it carry `needs_tool("kafka")`."""
    with apache.RealKafka() as kafka:
        yield kafka


@pytest.fixture(scope="session")
def real_bootstrap(request: pytest.FixtureRequest) -> str:
    """The address of a real Apache Kafka, ours or one that runs already."""
    return os.environ.get(EXISTING_BROKER) or request.getfixturevalue("real_kafka").bootstrap


@pytest.fixture(params=["embedded", pytest.param("apache", marks=pytest.mark.needs_tool("kafka"))])
def bootstrap(request: pytest.FixtureRequest) -> str:
    """The address of a broker: the embedded one, then a real one."""
    request.node.user_properties.append(("broker", f"broker: {request.param}"))
    return str(request.getfixturevalue("embedded_kafka" if request.param == "embedded" else "real_bootstrap"))
