"""Runs Python programs, each in a process of its own that others' libraries are loaded into already.

None of our packages is: a program that works here has imported what it needs. What it would wait for in a new process
is mostly numba, pyarrow and what these load. Started as a process, since only one without threads may fork.
"""

import contextlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

LIBRARIES = ("numba.np.arraymath", "numba.typed", "pandas", "pyarrow.compute", "pydantic", "scipy.linalg", "yaml")


class Programs:
    """What runs them."""

    def __init__(self, process: Any) -> None:
        self._process = process

    def run(self, text: str, folder: Path) -> tuple[int, str, str]:
        """Exit status, and what the program printed on both ways, when it has run in this folder."""
        self._process.stdin.write(json.dumps([text, str(folder)]) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        return status, (folder / ".out").read_text(), (folder / ".err").read_text()


@contextlib.contextmanager
def forked_programs(path: Path) -> Iterator[Programs]:
    """Ready for programs that find our packages at this path."""
    command = [sys.executable, __file__, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Programs(process)
        process.stdin.close()  # type: ignore[union-attr]


def _run(text: str, folder: str) -> None:
    """Become the program."""
    os.chdir(folder)
    for descriptor, name in ((0, os.devnull), (1, ".out"), (2, ".err")):
        flags = os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        os.dup2(os.open(name, flags), descriptor)
    sys.modules["__main__"] = main = ModuleType("__main__")
    status = 0
    try:
        exec(compile(text, "<program>", "exec"), main.__dict__)
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _serve(path: str) -> None:
    sys.path[0] = path
    for library in LIBRARIES:
        import_module(library)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _run(*json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    _serve(sys.argv[1])
