"""Arrays as bytes: the form in which state is kept.

Positions and times grow slowly, so their differences compress to a byte or two each.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from microdata import DataError

_MAGIC = b"PCS1"


def pack(head: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """One blob that `unpack` takes apart again."""
    index, blobs = [], []
    for name, array in arrays.items():
        differences = array.dtype == np.int64 and array.ndim == 1 and len(array) > 1
        stored = np.diff(array, prepend=0) if differences else array
        blobs.append(np.ascontiguousarray(stored).tobytes())
        index.append([name, array.dtype.str, list(array.shape), differences])
    header = msgspec.json.encode({"head": head, "arrays": index})
    return _MAGIC + struct.pack("<I", len(header)) + header + zlib.compress(b"".join(blobs), 1)


def unpack(blob: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Head and arrays of a blob that `pack` made."""
    if blob[:4] != _MAGIC:
        raise DataError("not a state record of this version")
    (length,) = struct.unpack_from("<I", blob, 4)
    header = msgspec.json.decode(blob[8 : 8 + length])
    body, place = zlib.decompress(blob[8 + length :]), 0
    arrays: dict[str, NDArray[Any]] = {}
    for name, dtype, shape, differences in header["arrays"]:
        count = int(np.prod(shape))
        stored = np.frombuffer(body, dtype, count, place).reshape(shape)
        place += stored.nbytes
        arrays[name] = np.cumsum(stored) if differences else stored
    return header["head"], arrays
