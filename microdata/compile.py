"""The one place where numba is reached.

Kernels are compiled on first use and cached on disk beside their module (or in `NUMBA_CACHE_DIR`). They hold no lock,
so a thread that runs one does not stop the others.

numba takes a cached kernel as long as its own file is unchanged. But kernels call kernels of other files and have their
constants compiled in: after a change there the old one would run on, wrongly or into a crash. So what is compared is a
digest of the file and of all files of ours that it imports.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])
HOME = Path(__file__).resolve().parents[1]
PACKAGES = ("microdata", "privacy", "static_algos", "stream_algos", "service")
"""Those that have kernels."""


def kernel(function: Function) -> Function:
    """Compile `function` to machine code; its type for the rest of the program stays what it was."""
    compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    if hasattr(compiled, "_cache"):  # not where NUMBA_DISABLE_JIT leaves functions as they are
        compiled._cache._cache_file._source_stamp = source_digest(Path(function.__code__.co_filename))  # noqa: SLF001 - numba has no public way
    return cast("Function", compiled)


@cache
def source_digest(path: Path) -> str:
    """Changes with the file and with every file of ours that it imports, directly or not."""
    found, waiting = set[Path](), [path.resolve()]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += _imported(file)
    return sha256(b"".join(file.read_bytes() for file in sorted(found))).hexdigest()


@cache
def _imported(file: Path) -> tuple[Path, ...]:
    """Files of ours that a file imports."""
    return tuple(place for name in _names(file) for place in _places(name) if place.is_file())


def _names(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))


def _places(name: str) -> tuple[Path, ...]:
    """Where a module of that name would be; nowhere unless it is ours."""
    first, *rest = name.split(".")
    if first not in PACKAGES:
        return ()
    folder = HOME.joinpath(first, *rest)
    return (folder / "__init__.py", folder.with_suffix(".py"))
