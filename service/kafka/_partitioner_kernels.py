"""Hashes by which producers choose partitions, over all keys of a batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microdata.compile import kernel

_MURMUR_SEED = 0x9747B28C
_MURMUR = np.uint32(0x5BD1E995)


def _crc_table() -> NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1).astype(np.uint32)
    return table


_CRC = _crc_table()


@kernel
def murmur2(starts: NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.int64]:
    """MurmurHash 2 with the seed of Kafka's Java client, without the sign."""
    hashes = np.empty(len(starts) - 1, np.int64)
    for key in range(len(hashes)):
        begin, length = starts[key], starts[key + 1] - starts[key]
        word = np.uint32(_MURMUR_SEED ^ length)
        whole = length - length % 4
        for place in range(begin, begin + whole, 4):
            block = np.uint32(0)
            for byte in range(4):
                block |= np.uint32(data[place + byte]) << np.uint32(8 * byte)
            block = np.uint32(block * _MURMUR)
            block = np.uint32((block ^ (block >> np.uint32(24))) * _MURMUR)
            word = np.uint32(np.uint32(word * _MURMUR) ^ block)
        for byte in range(length - whole - 1, -1, -1):
            word ^= np.uint32(data[begin + whole + byte]) << np.uint32(8 * byte)
        if length > whole:
            word = np.uint32(word * _MURMUR)
        word = np.uint32((word ^ (word >> np.uint32(13))) * _MURMUR)
        hashes[key] = np.int64(word ^ (word >> np.uint32(15))) & 0x7FFFFFFF
    return hashes


@kernel
def crc32(starts: NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The CRC-32 of zlib, as librdkafka takes it."""
    hashes = np.empty(len(starts) - 1, np.int64)
    for key in range(len(hashes)):
        word = np.uint32(0xFFFFFFFF)
        for place in range(starts[key], starts[key + 1]):
            word = _CRC[(word ^ np.uint32(data[place])) & np.uint32(0xFF)] ^ (word >> np.uint32(8))
        hashes[key] = np.int64(word ^ np.uint32(0xFFFFFFFF))
    return hashes


@kernel
def fnv1a(starts: NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.int64]:
    """FNV-1a of 32 bits as librdkafka has it from Sarama: its absolute value as a signed number."""
    hashes = np.empty(len(starts) - 1, np.int64)
    for key in range(len(hashes)):
        word = np.uint32(0x811C9DC5)
        for place in range(starts[key], starts[key + 1]):
            word = np.uint32((word ^ np.uint32(data[place])) * np.uint32(0x01000193))
        signed = np.int64(word)
        hashes[key] = 0x100000000 - signed if signed >= 0x80000000 else signed
    return hashes
