"""Randomness as arrays of 64-bit words, so that kernels hold no generator.

What protects people comes from the operating system. A seed is for tests and experiments; its output is not for
release.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = Callable[[int], NDArray[np.uint64]]
"""Called with a number, returns that many unpredictable words."""


def system_words(count: int) -> NDArray[np.uint64]:
    """Words from the operating system."""
    return np.frombuffer(os.urandom(8 * count), np.uint64)


def seeded_words(seed: int) -> Words:
    """Words that repeat: for tests and experiments only."""
    generator = np.random.default_rng(seed)
    return lambda count: generator.integers(0, 2**64, size=count, dtype=np.uint64, endpoint=False)


def words(seed: int | None) -> Words:
    """The operating system's words, or a seed's."""
    return system_words if seed is None else seeded_words(seed)
