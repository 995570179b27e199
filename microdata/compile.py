"""The one place where numba is reached.

Kernels are compiled on first use and cached on disk beside their module (or in `NUMBA_CACHE_DIR`). They hold no lock,
so a thread that runs one does not stop the others.

numba takes a cached kernel as long as its own file is unchanged. But kernels call kernels of other files and have their
constants compiled in: after a change there the old one would run on, wrongly or into a crash. So what is compared is a
digest of the file and of all files of ours that it imports. A name that is imported from a package is followed to the
file that it comes from, so that a change elsewhere in the package costs nobody minutes of compiling.

Processes that need the same kernel at the same time wait for one of them to compile it.
"""

from __future__ import annotations

import contextlib
import fcntl
import re
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.sigutils import normalize_signature
from numba.extending import register_jitable

Function = TypeVar("Function", bound=Callable[..., object])
HOME = Path(__file__).resolve().parents[1]
PACKAGES = ("microdata", "privacy", "static_algos", "stream_algos", "service")
"""Those that have kernels."""
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|.+)|import[ \t]+(.+))", re.MULTILINE)
_COMMENT = re.compile(r"#.*")


def kernel(function: Function) -> Function:
    """Compile `function` to machine code; its type for the rest of the program stays what it was."""
    compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    if hasattr(compiled, "_cache"):  # not where NUMBA_DISABLE_JIT leaves functions as they are
        file = compiled._cache._cache_file  # noqa: SLF001 - numba has no public way
        digest = source_digest(Path(function.__code__.co_filename))
        # What another version has written is not even unpickled: it may name modules that are gone.
        file._source_stamp, file._version = digest, f"{file._version} {digest}"  # noqa: SLF001
        compiled.compile = _one_at_a_time(compiled.compile, Path(file._index_path).with_suffix(".lock"))  # noqa: SLF001
    return cast("Function", compiled)


def part(function: Function) -> Function:
    """Compile `function` into the kernels that call it, and only there: from Python it is called as it is written.

    A kernel is made callable from Python, optimized and translated with all that it calls, and each kernel that calls
    it does all of that again. What only kernels call is left to them: it is optimized there alone, and in their cache.
    """
    given = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "no_cpython_wrapper": True}
    return cast("Function", register_jitable(pipeline_class=_PartCompiler, **given)(function))


class _PartCompiler(Compiler):  # type: ignore[misc]
    """numba's, but its result is never machine code by itself."""

    def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
        super().__init__(typing, target, library or _PartLibrary(target.codegen(), "part"), *others)


class _PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """What numba's compiler and linker want of a library, without what only machine code needs."""

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)  # noqa: SLF001 - as numba does it
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)  # noqa: SLF001
        self._finalized = True

    def get_pointer_to_function(self, _: str) -> int:
        self._ensure_finalized()
        return 0  # nobody calls it

    @property
    def codegen(self) -> _PartLibrary:
        """Itself: it is asked to keep what Python objects in kernels need, and nothing else. There are none."""
        return self

    def set_env(self, name: str, environment: object) -> None:
        """Not kept."""


_held = set[Path]()
"""Locks of this process: a kernel that is compiled may ask for itself, with other types."""


def _one_at_a_time(compile_: Callable[[Any], Any], lock: Path) -> Callable[[Any], Any]:
    """Who comes second finds in the cache what the first has compiled."""

    def compiled(signature: Any) -> Any:
        # numba's own lock first, as its compiler does: else two threads could wait for each other's.
        with global_compiler_lock, _only_process(lock):
            # A constant in a call is a type of its own to numba, and would have everything below compiled again.
            return compile_(tuple(numba.types.unliteral(one) for one in normalize_signature(signature)[0]))

    return compiled


@contextlib.contextmanager
def _only_process(lock: Path) -> Iterator[None]:
    if lock in _held:
        yield
        return
    with contextlib.ExitStack() as stack:
        # Where the cache cannot be written nobody would find anything there.
        with contextlib.suppress(OSError):
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(lock.open("ab"))
            fcntl.flock(file, fcntl.LOCK_EX)
        _held.add(lock)
        stack.callback(_held.discard, lock)
        yield


@cache
def source_digest(path: Path) -> str:
    """Changes with the file and with every file of ours that it imports, directly or not."""
    found, waiting = set[Path](), [path.resolve()]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += _imported(file)
    return sha256(b"".join(_file_digest(file) for file in sorted(found))).hexdigest()


@cache
def _file_digest(file: Path) -> bytes:
    return sha256(file.read_bytes()).digest()


@cache
def _imported(file: Path) -> tuple[Path, ...]:
    """Files of ours that a file imports."""
    return tuple(sorted({place for name in _names(file).values() for place in _places(name)}))


@cache
def _names(file: Path) -> dict[str, str]:
    """What a file imports: whole names by those that it uses. A search of its text: syntax trees take half a second."""
    found = {}
    for module, names, modules in _IMPORT.findall(_COMMENT.sub("", file.read_text(encoding="utf-8"))):
        for name in (names or modules).strip("()").split(","):
            if words := name.split():
                found[words[-1]] = f"{module}.{words[0]}" if module else words[0]
    return found


def _places(name: str) -> Iterator[Path]:
    """The file of a module, or the one that a module's name comes from; none unless it is ours."""
    first, *rest = name.split(".")
    if first not in PACKAGES:
        return
    path = HOME.joinpath(first, *rest)
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            yield file
            return
    if not rest:
        return
    package = path.parent / "__init__.py"
    origin = _names(package).get(rest[-1]) if package.is_file() else None
    yield from _places(origin or name.rpartition(".")[0])
