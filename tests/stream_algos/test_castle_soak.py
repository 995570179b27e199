"""Ten million rows with flat memory: only in `make soak`."""

from pathlib import Path

import numpy as np
import pytest
from castle_streams import castle, stream

from microdata import Category, Hierarchy, Number, Schema
from stream_algos import Batch

SCHEMA = Schema(
    "person",
    (Number("x", 0, 40), Number("y", -10, 10), Category("place", Hierarchy.flat("abcdefgh"))),
    sensitive=(Category("illness", Hierarchy.flat("ABCDEF")),),
)
ROWS, PIECE = 10_000_000, 100_000


def resident():
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) * 1024


@pytest.mark.soak
@pytest.mark.parametrize("formation", ["deadline", "arrival"])
def test_ten_million_rows_take_no_more_memory_than_one_million(formation):
    pieces = [stream(SCHEMA, seed, PIECE, persons=PIECE // 3) for seed in range(5)]
    engine = castle(SCHEMA, formation=formation, k=10, l=2, delta=5000, reuse=True)
    decided, early = 0, 0
    for number in range(ROWS // PIECE):
        piece = pieces[number % len(pieces)]
        shift = number * PIECE
        release = engine.push(Batch(piece.positions + shift, piece.times, piece.persons, piece.quasi, piece.sensitive))
        decided += len(release.members) + len(release.suppressed)
        assert decided + len(engine.pending()) == shift + PIECE
        if shift + PIECE == ROWS // 10:
            early = resident()
    assert len(engine._state.rows.slots) <= 4 * 5000
    assert resident() - early < 20e6
    release = engine.flush()
    assert decided + len(release.members) + len(release.suppressed) == ROWS
    assert np.all(np.diff(release.starts) >= 1)
