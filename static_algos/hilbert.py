"""The Hilbert curve: one number per row, such that rows with near numbers are near in all quasi-identifiers.

Every quasi-identifier is cut into 2**bits cells over its declared domain. The walk through the cells follows
J. Skilling, "Programming the Hilbert curve", AIP Conf. Proc. 707 (2004).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, Progress, Schema, geometry, kernel, silent

_WORD = 64
_CHUNK = 1 << 18


def hilbert_keys(schema: Schema, quasi: NDArray[np.float64], progress: Progress = silent) -> NDArray[np.uint64]:
    """Position of each row on the curve through the quasi-identifiers that have a weight."""
    space = geometry(schema)
    axes = np.flatnonzero((space.weight > 0) & (space.scale > 0))[:_WORD]
    keys = np.zeros(len(quasi), np.uint64)
    if not len(axes):
        return keys
    bits = curve_bits([schema.quasi[axis] for axis in axes])
    for start in range(0, len(quasi), _CHUNK):
        progress("order", start, len(quasi))
        part = slice(start, start + _CHUNK)
        _walk(quasi[part], axes, space.low, space.scale, bits, keys[part])
    return keys


def curve_bits(attributes: Sequence[Attribute]) -> int:
    """Bits per axis: enough to tell all values of the largest domain apart, as far as they fit into one word."""
    wanted = max(_WORD if one.size is None else (one.size - 1).bit_length() for one in attributes)
    return max(1, min(wanted, _WORD // len(attributes), 32))


@kernel
def _walk(
    quasi: NDArray[np.float64],
    axes: NDArray[np.int64],
    low: NDArray[np.float64],
    scale: NDArray[np.float64],
    bits: int,
    keys: NDArray[np.uint64],
) -> None:
    cells = np.float64(1 << bits)
    last = np.uint64((1 << bits) - 1)
    x = np.empty(axes.shape[0], np.uint64)
    for row in range(quasi.shape[0]):
        for i in range(axes.shape[0]):
            share = (quasi[row, axes[i]] - low[axes[i]]) * scale[axes[i]]
            x[i] = min(last, np.uint64(max(share, 0.0) * cells))
        _turn(x, bits)
        keys[row] = _interleaved(x, bits)


@kernel
def _turn(x: NDArray[np.uint64], bits: int) -> None:
    """From the coordinates of a cell to its position on the curve, whose bits are spread over the axes."""
    zero, one = np.uint64(0), np.uint64(1)
    bit = one << np.uint64(bits - 1)
    while bit > one:
        mask = bit - one
        for i in range(x.shape[0]):
            if x[i] & bit:
                x[0] ^= mask
            else:
                swap = (x[0] ^ x[i]) & mask
                x[0] ^= swap
                x[i] ^= swap
        bit >>= one
    for i in range(1, x.shape[0]):
        x[i] ^= x[i - 1]
    parity = zero
    bit = one << np.uint64(bits - 1)
    while bit > one:
        if x[-1] & bit:
            parity ^= bit - one
        bit >>= one
    for i in range(x.shape[0]):
        x[i] ^= parity


@kernel
def _interleaved(x: NDArray[np.uint64], bits: int) -> np.uint64:
    """The bits of all axes in one word, the highest of each axis first."""
    key, one = np.uint64(0), np.uint64(1)
    for level in range(bits - 1, -1, -1):
        for i in range(x.shape[0]):
            key = (key << one) | ((x[i] >> np.uint64(level)) & one)
    return key
