"""What all tests share: hypothesis' profiles, tools that a machine may lack, and the two Kafka brokers.

Tools. `@pytest.mark.needs_tool("kcat")` skips a test where the tool is missing, and fails it where
`PORTCULLIS_REQUIRE` (a comma list, set in CI) names it. The end of every run says which tools took part.

Brokers. `bootstrap` gives a test the address of the embedded broker and, in a second run of the same test, of a real
Apache Kafka (`PORTCULLIS_TEST_BOOTSTRAP` names one that runs already). The real one is started once for all xdist
workers, the embedded one once for each.
"""

import functools
import gc
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from numba.core.event import Event, Listener, register

from tests.service.kafka import real_kafka as apache
from tests.service.registry import real_registry as apicurio
from tests.shared_kafka import SharedKafka, shared_kafka
from tests.two_queues import TwoQueues, processes

# A first example may compile a kernel, and machines are shared: no test asserts a speed. `make test` tries the same
# examples each time, so that a change is judged by what it changed; `make soak` looks for new ones, `make quick` tries
# few.
settings.register_profile("new", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("new"), derandomize=True)
settings.register_profile("few", settings.get_profile("same"), max_examples=5)
settings.load_profile("same")

BROKER_FIXTURES = {"bootstrap", "embedded_kafka", "real_kafka", "real_bootstrap"}
LONGEST_NAME = 100  # of a value in the name of a test
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


def _real_registry_missing() -> str | None:
    tool = apicurio.missing_tool()
    if tool is not None:
        return f"{tool} is not installed (Debian: openjdk-17-jre-headless)"
    try:
        apicurio.fetch()
    except OSError as error:
        return f"Apicurio Registry {apicurio.VERSION} could not be fetched: {error}"
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
    "registry": _real_registry_missing,
    "kcat": functools.partial(_program_missing, "kcat", "kafkacat"),
    "postgres": _postgres_missing,
    "chromium": _chromium_missing,
    "openssl": functools.partial(_program_missing, "openssl"),
    "promtool": functools.partial(_program_missing, "promtool"),
}


@functools.cache
def _missing(tool: str) -> str | None:
    return TOOLS[tool]()  # type: ignore[operator]


SHARED_KAFKA = pytest.StashKey[SharedKafka]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"needs_tool(name): needs one of {', '.join(TOOLS)}; see tests/conftest.py")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    cores = os.cpu_count() or 1
    return cores if QUICK else processes(cores)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> TwoQueues | None:
    return TwoQueues(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Before an xdist worker starts: tell it where to ask for the broker of this run."""
    stash = node.config.stash
    if SHARED_KAFKA not in stash:
        stash[SHARED_KAFKA] = SharedKafka()
    node.workerinput["shared_kafka"] = stash[SHARED_KAFKA].address


def pytest_unconfigure(config: pytest.Config) -> None:
    shared = config.stash.get(SHARED_KAFKA, None)
    if shared is not None:
        shared.close()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """A long text is named by its parameter: whole files as names travel to every process, and took seconds in each."""
    return argname if isinstance(val, str | bytes) and len(val) > LONGEST_NAME else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    few = settings.get_current_profile_name() == "few"
    for item in items:
        if BROKER_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.kafka)
        if item.get_closest_marker("needs_tool") or item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("hypothesis") or _sees_what_the_embedded_broker_showed(item):
            item.add_marker(pytest.mark.no_cover)  # a hundred examples see the same lines, and take twice as long
        if few:
            _try_few(item)
    # The longest of those that compute are the ones about everything: the last test should be a short one.
    items.sort(key=lambda item: item.path.parent != Path(__file__).parent)


def _sees_what_the_embedded_broker_showed(item: pytest.Item) -> bool:
    """The same test on the real one goes through the same lines."""
    callspec = getattr(item, "callspec", None)
    return callspec is not None and callspec.params.get("bootstrap") == "apache"


def _try_few(item: pytest.Item) -> None:
    """Tests that say how many examples they want get few all the same; hypothesis has no public way."""
    function: Any = getattr(item, "obj", None)
    function = getattr(function, "__func__", function)
    own = getattr(function, "_hypothesis_internal_use_settings", None)
    if own is not None:
        most = min(own.max_examples, settings.default.max_examples)  # type: ignore[union-attr]
        function._hypothesis_internal_use_settings = settings(own, max_examples=most)


class _CompilesUnmeasured(Listener):  # type: ignore[misc]
    """Coverage looks away while a kernel is compiled: it sees nothing there that it counts, and doubles the time."""

    def __init__(self) -> None:
        self._tracers: list[Any] = []  # one kernel compiles others

    def on_start(self, event: Event) -> None:
        self._tracers.append(sys.gettrace())
        sys.settrace(None)

    def on_end(self, event: Event) -> None:
        sys.settrace(self._tracers.pop())


register("numba:compile", _CompilesUnmeasured())

# What is collected stays to the end: Python need not look for garbage in it, neither now nor at every test.
gc.disable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """All xdist workers import the same, which coverage makes twice as slow: it looks on in the first one only.

    Nowhere does it look at threads that begin meanwhile (matplotlib has one while it makes its list of fonts): in the
    first one of a new folder it asks for our packages again, and then takes whatever was imported since from
    `sys.modules`, also what another thread is importing.
    """
    tracer, of_threads = sys.gettrace(), threading.gettrace()
    threading.settrace(None)
    if os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0":
        sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracer)
        threading.settrace(of_threads)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


QUICK = bool(os.environ.get("PORTCULLIS_QUICK"))
_running: list[pytest.Item] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    _running.append(item)
    try:
        yield
    finally:
        _running.clear()


def _refuse_processes(event: str, _: object) -> None:
    """In `make quick` a test that starts a process fails: it has to say that it is slow."""
    if event == "subprocess.Popen" and _running:
        pytest.fail("it starts a process: mark it with `slow`", pytrace=False)


if QUICK:
    sys.addaudithook(_refuse_processes)


CLOSING_SECONDS = 10.0
_told_of: set[threading.Thread] = set()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """A test that leaves a client of kafka-python running disturbs others: it goes on calling brokers, and `random`."""
    yield
    deadline = time.monotonic() + CLOSING_SECONDS
    while left := {each for each in threading.enumerate() if each.name.startswith("kafka-io")} - _told_of:
        if time.monotonic() > deadline:
            _told_of.update(left)
            pytest.fail(f"it leaves clients of Kafka open: {', '.join(each.name for each in left)}", pytrace=False)
        time.sleep(0.05)


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
def real_kafka(request: pytest.FixtureRequest) -> Iterator[apache.RealKafka]:
    """A real Apache Kafka of this run; tests that use it carry `needs_tool("kafka")` and share it with others."""
    workerinput = getattr(request.config, "workerinput", None)
    if workerinput is not None:
        yield shared_kafka(*workerinput["shared_kafka"])
        return
    with apache.RealKafka() as kafka:
        yield kafka


@pytest.fixture(scope="session")
def real_bootstrap(request: pytest.FixtureRequest) -> str:
    """The address of a real Apache Kafka, ours or one that runs already."""
    return os.environ.get(EXISTING_BROKER) or request.getfixturevalue("real_kafka").bootstrap


@pytest.fixture(scope="session")
def real_registry() -> Iterator[apicurio.RealRegistry]:
    """A real schema registry; tests that use it carry `needs_tool("registry")` and are of the group `registry`."""
    with apicurio.RealRegistry() as registry:
        yield registry


@pytest.fixture(params=["embedded", pytest.param("apache", marks=pytest.mark.needs_tool("kafka"))])
def bootstrap(request: pytest.FixtureRequest) -> str:
    """The address of a broker: the embedded one, then a real one."""
    request.node.user_properties.append(("broker", f"broker: {request.param}"))
    return str(request.getfixturevalue("embedded_kafka" if request.param == "embedded" else "real_bootstrap"))
