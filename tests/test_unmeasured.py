"""Coverage looks away where it would see nothing new, and looks on afterwards."""

import sys
import threading
from pathlib import Path
from typing import Any

import numba
import pytest


def test_a_tracer_sees_nothing_of_the_compiler_and_goes_on_after_it() -> None:
    seen = set()

    def tracer(frame: Any, *_: Any) -> None:
        seen.add(frame.f_globals.get("__name__"))

    def inner(number: int) -> int:
        return number + 1

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        numba.njit(inner)(1)
        after = sys.gettrace()
    finally:
        sys.settrace(before)
    assert after is tracer
    assert "numba.core.dispatcher" in seen
    assert "numba.core.compiler" not in seen


@pytest.mark.parametrize(("worker", "measured"), [("gw0", True), ("gw1", False)])
def test_of_all_processes_that_collect_the_same_one_is_measured(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, worker: str, measured: bool
) -> None:
    conftest = request.config.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))

    def tracer(*_: Any) -> None: ...

    monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        collecting = conftest.pytest_collection()  # type: ignore[union-attr]
        next(collecting)
        meanwhile = sys.gettrace()
        collecting.close()
        after = sys.gettrace()
    finally:
        sys.settrace(before)
    assert (meanwhile is tracer) == measured
    assert after is tracer


def test_threads_that_begin_while_tests_are_collected_are_not_measured(request: pytest.FixtureRequest) -> None:
    conftest = request.config.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))
    seen = []

    def tracer(*_: Any) -> None:
        seen.append(threading.current_thread().name)

    def run(name: str) -> None:
        thread = threading.Thread(target=str, name=name)
        thread.start()
        thread.join()

    before = threading.gettrace()
    threading.settrace(tracer)
    try:
        collecting = conftest.pytest_collection()  # type: ignore[union-attr]
        next(collecting)
        run("meanwhile")
        collecting.close()
        run("after")
    finally:
        threading.settrace(before)
    assert set(seen) == {"after"}
