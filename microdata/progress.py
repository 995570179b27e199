"""How long work says how far it is, and how it is stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from microdata.errors import Cancelled

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with (phase, rows done, rows in all).

It may raise `Cancelled` to stop the work, or `Enough` to have the best that a search has found so far.
"""


class Enough(Cancelled):
    """The caller's progress callback asked to stop with the best so far: a search publishes it, other work ends."""


def silent(phase: str, done: int, total: int) -> None:
    """Report to nobody."""
    del phase, done, total
