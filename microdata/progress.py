"""How long work says how far it is, and how it is stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with (phase, rows done, rows in all); it may raise `Cancelled` to stop the work."""


def silent(phase: str, done: int, total: int) -> None:
    """Report to nobody."""
    del phase, done, total
