"""A kernel in the cache is used only while all that was compiled into it is as it was."""

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from numba.core.codegen import JITCPUCodegen

from microdata import compile as compiling
from stream_algos import castle

PROGRAM = "from stream_algos.caller import call; print(call(1.0), sum(call.stats.cache_hits.values()))"
CALLER = """
from microdata.compile import kernel
from stream_algos.callee import FACTOR, called

@kernel
def call(x):
    return called(x) * FACTOR
"""
CALLEE = """
from microdata.compile import kernel

FACTOR = {factor}

@kernel
def called(x):
    return x + {added}
"""


def called(folder: Any) -> Any:
    """What the kernel answers in a new process, and whether it came from the cache."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # files change within a second, which Python would not notice
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return tuple(map(float, done.stdout.split()))


@pytest.fixture
def callee(tmp_path: Path) -> Any:
    """The file of a kernel that another one calls, in packages of their own."""
    for package in ("microdata", "stream_algos"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "microdata" / "compile.py").write_bytes(Path(compiling.__file__).read_bytes())
    (tmp_path / "stream_algos" / "caller.py").write_text(CALLER)
    callee = tmp_path / "stream_algos" / "callee.py"
    callee.write_text(CALLEE.format(factor=1, added=1))
    return callee


@pytest.mark.slow
def test_a_change_in_another_file_is_noticed(tmp_path: Path, callee: Any) -> None:
    assert called(tmp_path) == (2.0, 0)
    assert called(tmp_path) == (2.0, 1)
    callee.write_text(CALLEE.format(factor=1, added=5))
    assert called(tmp_path) == (6.0, 0)
    callee.write_text(CALLEE.format(factor=3, added=5))
    assert called(tmp_path) == (18.0, 0)
    assert called(tmp_path) == (18.0, 1)


@pytest.mark.slow
def test_a_file_that_a_kernel_has_its_types_from_may_get_another_name(tmp_path: Path, callee: Any) -> None:
    caller, types = (
        callee.with_name("caller.py"),
        "from typing import NamedTuple\nclass Pair(NamedTuple):\n    one: float\n",
    )
    caller.write_text(
        "from microdata.compile import kernel\nfrom stream_algos.before import Pair\n"
        "@kernel\ndef of(pair):\n    return pair.one\ndef call(x):\n    return of(Pair(x))\ncall.stats = of.stats\n"
    )
    callee.with_name("before.py").write_text(types)
    assert called(tmp_path)[0] == 1
    callee.with_name("before.py").rename(callee.with_name("after.py"))
    caller.write_text(caller.read_text().replace("before", "after"))
    assert called(tmp_path)[0] == 1


@pytest.mark.slow
def test_a_change_beside_what_a_kernel_imports_costs_nothing(tmp_path: Path, callee: Any) -> None:
    (tmp_path / "microdata" / "__init__.py").write_text("from microdata.compile import kernel\n")
    other = tmp_path / "microdata" / "other.py"
    callee.write_text(callee.read_text().replace("from microdata.compile", "from microdata"))
    other.write_text("ONE = 1")
    assert called(tmp_path) == (2.0, 0)
    (tmp_path / "microdata" / "__init__.py").write_text(
        "from microdata.compile import kernel\nfrom microdata.other import ONE\n"
    )
    other.write_text("ONE = 2")
    assert called(tmp_path) == (2.0, 1)


@pytest.mark.slow
def test_processes_that_need_a_kernel_at_once_compile_it_once(tmp_path: Path, callee: Any) -> None:
    """The second waits for the first, and finds in the cache what that has compiled."""
    waiting = "import os, time\nprint('ready', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.001)\n"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", "import stream_algos.caller\n" + waiting + PROGRAM]
    running = [
        subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    for process in running:
        assert process.stdout.readline() == "ready\n"  # type: ignore[union-attr]
    (tmp_path / "go").touch()
    answers = sorted(process.communicate()[0] for process in running)
    assert answers == ["2.0 0\n", "2.0 1\n", "2.0 1\n"]


def test_imports_are_followed_within_our_packages_only() -> None:
    found = compiling._imported(Path(castle.__file__).resolve())
    names = {str(file.relative_to(compiling.HOME)) for file in found}
    assert {"stream_algos/_release_kernels.py", "stream_algos/_held_kernels.py", "microdata/errors.py"} <= names
    assert all(name.split("/")[0] in compiling.PACKAGES for name in names)


def test_no_import_is_overlooked() -> None:
    """Imports are found in the text of a file; what Python itself finds is among them."""
    for package in compiling.PACKAGES:
        for file in (compiling.HOME / package).rglob("*.py"):
            nodes = list(ast.walk(ast.parse(file.read_bytes())))
            meant = {one.name for node in nodes if isinstance(node, ast.Import) for one in node.names}
            for node in nodes:
                if isinstance(node, ast.ImportFrom):
                    meant |= {f"{node.module}.{one.name}" for one in node.names}
            assert meant <= set(compiling._names(file).values()), file


def test_every_package_with_kernels_is_known() -> None:
    ours = ("microdata", "privacy", "static_algos", "stream_algos", "service")
    using = {name for name in ours for file in (compiling.HOME / name).rglob("*.py") if "@kernel" in file.read_text()}
    assert "service" in using
    assert using <= set(compiling.PACKAGES)


def test_a_constant_is_no_reason_to_compile_again() -> None:
    @compiling.kernel
    def twice(number: int) -> int:
        return 2 * number

    @compiling.kernel
    def calls(number: int) -> int:
        return twice(1) + twice(2) + twice(number)

    assert calls(3) == 12
    assert len(twice.signatures) == 1  # type: ignore[attr-defined]


def test_a_part_of_kernels_is_compiled_into_them_and_stays_as_it_is_for_python() -> None:
    @compiling.part
    def joined(one: Any, other: Any) -> Any:
        return one + other

    @compiling.kernel
    def calls(number: int) -> Any:
        return joined(number, 1) + joined(number, 2)

    assert calls(3) == 9
    assert joined("three", "four") == "threefour"  # what is compiled would refuse it, or end the process


def test_parts_become_machine_code_only_in_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    @compiling.part
    def checked(number: int) -> int:
        if number < 0:
            raise ValueError("it must not be negative")
        return number + 1

    @compiling.part
    def both(number: int) -> int:
        return checked(number) + checked(2 * number)

    @compiling.kernel
    def calls(number: int) -> int:
        return both(number) + checked(number)

    translated = []
    add_module = JITCPUCodegen._add_module

    def noted(self: Any, module: Any) -> Any:
        translated.append(module.name)
        return add_module(self, module)

    monkeypatch.setattr(JITCPUCodegen, "_add_module", noted)
    assert calls(3) == 4 + 7 + 4
    with pytest.raises(ValueError, match="it must not be negative"):
        calls(-1)
    assert [name for name in translated if name.startswith("test_")] == [calls.py_func.__qualname__]  # type: ignore[attr-defined]
