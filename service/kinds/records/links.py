"""Links: which rows of the original are behind each line of a published file.

A line of links is a JSON list of positions in the original, counted from 0. A table has one line per published row; a
stream has one line per published cluster. Links undo the anonymization: they are for the owner of the original alone.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import NDArray

from microdata import DataError

_OWNER_ONLY = 0o600


def write_links(path: Path, positions: NDArray[np.int64]) -> None:
    """Write the links of a table; the file appears when it is complete, and only its owner can read it."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    try:
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, _OWNER_ONLY)) as lines:
            lines.writelines(b"[%d]\n" % position for position in positions.tolist())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read_links(path: Path, positions: NDArray[np.int64], rows: int) -> list[NDArray[np.int64]]:
    """Return the rows behind each line of an output with this many rows; `positions` says where each row is."""
    with path.open("rb") as lines:
        linked = [_positions(line) for line in lines]
    together = np.concatenate([*linked, np.empty(0, np.int64)])
    if not np.isin(together, positions).all():
        raise DataError("the links name rows or events that are not there")
    if len(together) != rows:
        raise DataError("the links are not of this file: they are about another number of rows")
    starts = np.cumsum([len(own) for own in linked])[:-1]
    return np.split(np.searchsorted(positions, together), starts) if linked else []


def _positions(line: bytes) -> NDArray[np.int64]:
    try:
        own = orjson.loads(line)
    except orjson.JSONDecodeError:
        own = None
    if not isinstance(own, list) or not own or not all(type(one) is int for one in own):
        raise DataError("the links must be lines of positions, as --links writes them")
    return np.array(own, np.int64)
