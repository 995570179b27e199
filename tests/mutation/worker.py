"""Runs tests in forked processes of one scratch copy of the repository, one request after the other.

A request is a line of JSON: pytest's arguments, whether kernels run uncompiled, and the seconds that it may take. The
answer is one line too. Libraries are imported once, before any process is forked; nothing of the project is.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

import numba
import pytest

_LIBRARIES = (
    "hypothesis",
    "hypothesis.extra.numpy",
    "msgspec",
    "numpy",
    "orjson",
    "prometheus_client",
    "pyarrow",
    "pyarrow.csv",
    "pyarrow.parquet",
    "pydantic",
    "xdist.scheduler",
    "yaml",
)
_UNCOMPILED = ("-W", "ignore:overflow encountered:RuntimeWarning")
"""Kernels multiply words that wrap around. Compiled code does so silently; numpy warns, and a warning is an error."""


_QUIET = ("-W", "ignore:Module already imported so cannot be rewritten")
"""Plugins of pytest are among the libraries; their own assertions need not be rewritten."""


def run_tests(arguments: list[str], output: Path, *, compiled: bool) -> None:
    """Run pytest and end this process with its exit status."""
    with output.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if not compiled:
        os.environ["NUMBA_DISABLE_JIT"] = "1"  # for processes that tests start
        numba.config.DISABLE_JIT = True
        arguments = [*arguments, *_UNCOMPILED]
    status = 1
    try:
        status = int(pytest.main(["-x", "-q", "--no-header", "--tb=line", *_QUIET, *arguments]))
    except BaseException:  # noqa: BLE001 - this process ends below, whatever it was
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def answer(request: dict[str, Any], output: Path) -> dict[str, Any]:
    """Return pytest's exit status (None after a timeout) and how long it took."""
    began = time.monotonic()
    process = os.fork()
    if not process:
        os.setsid()  # whatever the tests start ends with them
        run_tests(request["arguments"], output, compiled=request["compiled"])
    status: int | None = None
    while time.monotonic() < began + request["seconds"]:
        ended, code = os.waitpid(process, os.WNOHANG)
        if ended:
            status = os.waitstatus_to_exitcode(code)
            break
        time.sleep(0.01)
    else:
        os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
    return {"status": status, "seconds": time.monotonic() - began}


def main() -> None:
    """Answer requests from standard input until it ends."""
    output = Path(sys.argv[1])
    for library in _LIBRARIES:
        import_module(library)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), output)), flush=True)


if __name__ == "__main__":
    main()
