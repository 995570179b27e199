"""Kernels of the edge: what is done to every value of a batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata.compile import kernel


@kernel
def _rotate(word: int, by: int) -> int:
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))  # type: ignore[return-value] # one machine word


@kernel
def hash_texts(offsets: NDArray[np.integer], data: NDArray[np.uint8], key: NDArray[np.uint64]) -> NDArray[np.int64]:
    """SipHash-1-3 of each text `data[offsets[i]:offsets[i + 1]]` under a secret key of two words."""
    count = len(offsets) - 1
    result = np.empty(count, np.int64)
    for text in range(count):
        begin, end = offsets[text], offsets[text + 1]
        v0 = key[0] ^ np.uint64(0x736F6D6570736575)
        v1 = key[1] ^ np.uint64(0x646F72616E646F6D)
        v2 = key[0] ^ np.uint64(0x6C7967656E657261)
        v3 = key[1] ^ np.uint64(0x7465646279746573)
        length = end - begin
        blocks = length // 8
        for block in range(blocks + 4):
            # One round per block of eight bytes, one for the tail with the length, three to finish.
            word = np.uint64(0)
            if block < blocks:
                for byte in range(8):
                    word |= np.uint64(data[begin + 8 * block + byte]) << np.uint64(8 * byte)
            elif block == blocks:
                for byte in range(length - 8 * blocks):
                    word |= np.uint64(data[begin + 8 * blocks + byte]) << np.uint64(8 * byte)
                word |= np.uint64(length & 0xFF) << np.uint64(56)
            elif block == blocks + 1:
                v2 ^= np.uint64(0xFF)
            v3 ^= word
            v0 += v1
            v1 = _rotate(v1, 13) ^ v0
            v0 = _rotate(v0, 32)
            v2 += v3
            v3 = _rotate(v3, 16) ^ v2
            v0 += v3
            v3 = _rotate(v3, 21) ^ v0
            v2 += v1
            v1 = _rotate(v1, 17) ^ v2
            v2 = _rotate(v2, 32)
            v0 ^= word
        result[text] = np.int64(v0 ^ v1 ^ v2 ^ v3)
    return result
