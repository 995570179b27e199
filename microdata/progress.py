"""How long work says how far it is, and how it is stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, int, int], bool | None]
"""Called with (phase, rows done, rows in all). It may raise `Cancelled` to stop the work.

It returns True to stop a search: the search ends as soon as it has a result, and the best one so far is published. Work
that does not search ignores the answer.
"""


def silent(phase: str, done: int, total: int) -> None:
    """Report to nobody."""
    del phase, done, total
