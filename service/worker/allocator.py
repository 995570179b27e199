"""How the process takes memory."""

from __future__ import annotations

import ctypes
from contextlib import suppress

_MMAP_THRESHOLD = -3
"""The name that glibc's `malloc.h` has for it."""
_LARGE = 1 << 20


def give_back_large_blocks() -> None:
    """Let the system have the memory of arrays as soon as nobody uses them, from a megabyte on.

    glibc does so too, until the first large one is given back. From then on it keeps blocks up to that size for others,
    and what lies between them: a worker that has restored millions of persons would never be as small again.
    """
    with suppress(OSError, AttributeError):  # of another C library
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE)
