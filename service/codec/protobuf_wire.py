"""The outer form of Protobuf's bytes, a message at a time: for schemas and for few records. Kernels read the others."""

from __future__ import annotations

from collections.abc import Iterator

_SIZES = {1: 8, 5: 4}
"""Of values that are written in a fixed number of bytes, by how a tag says so."""


class WireError(ValueError):
    """Not a message: cut off, or something else."""


def walk(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values of a message's fields, in its order: whole numbers, or bytes that somebody must understand."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        if tag & 7 == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        size = _SIZES.get(tag & 7, -1)
        if tag & 7 == 2:
            size, at = _varint(data, at)
        if size < 0 or at + size > len(data):
            raise WireError
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise WireError
