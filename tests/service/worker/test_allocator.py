"""Large blocks have memory of their own, whatever was given back before."""

import ctypes
from typing import Any

import pytest

from service.worker.allocator import give_back_large_blocks


class Facts(ctypes.Structure):
    """What glibc tells of its memory; number 3 counts blocks that have their own."""

    _fields_ = [(f"fact_{number}", ctypes.c_size_t) for number in range(10)]


def test_a_large_block_is_the_systems_again_when_it_is_given_back() -> None:
    libc: Any = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        pytest.skip("mallinfo2 is missing")
    libc.mallinfo2.restype, libc.malloc.restype = Facts, ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    libc.free(libc.malloc(20 << 20))  # from here on, glibc keeps smaller ones
    give_back_large_blocks()
    before = libc.mallinfo2().fact_3
    blocks = [libc.malloc(2 << 20) for _ in range(100)]  # the first may fit where others were
    assert libc.mallinfo2().fact_3 > before
    for block in blocks:
        libc.free(block)
    assert libc.mallinfo2().fact_3 == before
