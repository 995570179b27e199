"""A mutation: a small change to the source code that makes it wrong, and that a test must notice."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path


class DoesNotApplyError(Exception):
    """The text that a mutation replaces is not there, or is there several times."""


@dataclass(frozen=True)
class Mutation:
    """Replace `old`, which occurs exactly once inside of the function or class `scope`, by `new`."""

    scope: str
    """Its dotted name, such as `Gate.passes`; empty for the whole file."""
    old: str
    new: str
    equivalent: str = ""
    """Why no test can notice the mutation. An empty text means that a test must."""

    def apply(self, source: str, path: str) -> str:
        """Return the mutated source code of the file `path`."""
        start, end = _bounds(source, self.scope)
        count = source[start:end].count(self.old)
        if end == 0 or count != 1:
            where = f"{path}: {self.scope or 'file'}"
            what = f"contains {self.old!r} {count} times" if end else "does not exist"
            raise DoesNotApplyError(f"{where} {what}; the mutation must name a text that occurs exactly once")
        return source[:start] + source[start:end].replace(self.old, self.new) + source[end:]

    def line(self, source: str) -> int:
        """Return the number of the line that it changes."""
        return source.count("\n", 0, source.index(self.old, _bounds(source, self.scope)[0])) + 1


@dataclass(frozen=True)
class Target:
    """The mutations of one source file, and the tests that must notice them."""

    path: str
    tests: tuple[str, ...]
    """Arguments of pytest. The tests that notice most come first."""
    mutations: tuple[Mutation, ...]
    compiled: bool = True
    """Whether kernels are compiled. Kernels that are mutated run as plain Python: compiling them takes too long."""

    def source(self, root: Path) -> str:
        """Return the source code as it is in this copy of the repository."""
        return (root / self.path).read_text(encoding="utf-8")


@cache
def _bounds(source: str, scope: str) -> tuple[int, int]:
    """Return where the source of a function or class begins and ends; (0, 0) if there is none of this name."""
    if not scope:
        return 0, len(source)
    nodes: list[ast.stmt] = ast.parse(source).body
    found: ast.stmt | None = None
    for name in scope.split("."):
        named = [node for node in nodes if getattr(node, "name", None) == name]
        if not named:
            return 0, 0
        found = named[0]
        nodes = getattr(found, "body", [])
    assert found is not None
    assert found.end_lineno is not None
    lines = source.splitlines(keepends=True)
    decorators = getattr(found, "decorator_list", [])
    first = min([found.lineno, *(one.lineno for one in decorators)])
    start = sum(map(len, lines[: first - 1]))
    return start, start + sum(map(len, lines[first - 1 : found.end_lineno]))
