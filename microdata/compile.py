"""The one place where numba is reached.

Kernels are compiled on first use and cached on disk beside their module (or in `NUMBA_CACHE_DIR`). They hold no lock,
so a thread that runs one does not stop the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile `function` to machine code; its type for the rest of the program stays what it was."""
    return cast("Function", numba.njit(cache=True, nogil=True, error_model="numpy")(function))
