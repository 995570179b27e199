"""Arrays as bytes: the form in which state is kept.

Positions and times grow slowly, so their differences compress to a byte or two each.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microdata import DataError

_MAGIC, _BEFORE = b"PCS2", b"PCS1"
"""Of what is written; and of records of version 0.1, which zlib has made smaller: four times as slow."""
_SMALLER = pa.Codec("zstd", 1)


class Packed(NamedTuple):
    """Arrays made smaller, with what stands where."""

    shapes: list[list[Any]]
    body: bytes


def packed(arrays: Mapping[str, NDArray[Any]]) -> Packed:
    """Arrays as `pack` takes them: the work of it, which need not be done again for another head."""
    index, blobs = [], []
    for name, array in arrays.items():
        differences = array.dtype == np.int64 and array.ndim == 1 and len(array) > 1
        stored = np.diff(array, prepend=0) if differences else array
        blobs.append(np.ascontiguousarray(stored).tobytes())
        index.append([name, array.dtype.str, list(array.shape), differences])
    return Packed(index, _SMALLER.compress(b"".join(blobs), asbytes=True))


def pack(head: Mapping[str, Any], arrays: Packed) -> bytes:
    """One blob that `unpack` takes apart again."""
    header = msgspec.json.encode({"head": head, "arrays": arrays.shapes})
    return _MAGIC + struct.pack("<I", len(header)) + header + arrays.body


def unpack(blob: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Head and arrays of a blob that `pack` made."""
    if blob[:4] not in (_MAGIC, _BEFORE):
        raise DataError("not a state record of this version")
    (length,) = struct.unpack_from("<I", blob, 4)
    header = msgspec.json.decode(blob[8 : 8 + length])
    size = sum(np.dtype(dtype).itemsize * int(np.prod(shape)) for _, dtype, shape, _ in header["arrays"])
    smaller, place = blob[8 + length :], 0
    body = zlib.decompress(smaller) if blob[:4] == _BEFORE else _SMALLER.decompress(smaller, size, asbytes=True)
    arrays: dict[str, NDArray[Any]] = {}
    for name, dtype, shape, differences in header["arrays"]:
        count = int(np.prod(shape))
        stored = np.frombuffer(body, dtype, count, place).reshape(shape)
        place += stored.nbytes
        arrays[name] = np.cumsum(stored) if differences else stored
    return header["head"], arrays
