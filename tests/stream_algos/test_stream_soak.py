"""Ten million rows with flat memory: only in `make soak`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from microdata import Category, Hierarchy, Number, Schema, seeded_words
from stream_algos import STREAM_ALGORITHMS, Batch
from tests.stream_algos.castle_streams import stream

SCHEMA = Schema(
    "person",
    (Number("x", 0, 40), Number("y", -10, 10), Category("place", Hierarchy.flat("abcdefgh"))),
    sensitive=(Category("illness", Hierarchy.flat("ABCDEF")),),
)
ROWS, PIECE, HELD = 10_000_000, 100_000, 5000
CLUSTERS = {"k": 10, "l": 2, "delta": HELD, "reuse": True}
WINDOWS = {"k": 10, "window": {"size": HELD, "advance": HELD // 2}}
ENGINES: dict[str, Any] = {
    "castle, deadline": ("castle", {**CLUSTERS, "formation": "deadline"}),
    "castle, arrival": ("castle", {**CLUSTERS, "formation": "arrival"}),
    "sabre_w": ("sabre_w", {**WINDOWS, "t": 0.3}),
    "burel_w": ("burel_w", {**WINDOWS, "beta": 2.0}),
    "mondrian_w": ("mondrian_w", {**WINDOWS, "t": 0.3}),
    "incognito_w": ("incognito_w", {**WINDOWS, "t": 0.3}),
    "dynamic_group": ("dynamic_group", WINDOWS),
    "blocks": ("blocks", {"size": HELD // 2, "table": {"algorithm": "mondrian", "k": 10}}),
    "z": ("z", {"z": 10, "window": {"tuples": HELD}}),
    "quantile": ("quantile", {"k": 10, "universe": 100_000, "window": HELD}),
    "cohorts": ("cohorts", {"k": 10, "l": 2, "delay": {"tuples": HELD}, "company": "standing"}),
}


def resident() -> Any:
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) * 1024


def test_every_engine_is_soaked() -> None:
    assert {name for name, _ in ENGINES.values()} == {entry.name for entry in STREAM_ALGORITHMS}


@pytest.mark.soak
@pytest.mark.parametrize("which", ENGINES)
def test_ten_million_rows_take_no_more_memory_than_one_million(which: Any) -> None:
    assert bytes_grown(which) < 20e6


def bytes_grown(which: Any) -> Any:
    """What the process holds more after ten million rows than after one; every row is decided once."""
    pieces = [stream(SCHEMA, seed, PIECE, persons=PIECE // 3) for seed in range(5)]
    name, given = ENGINES[which]
    engine = STREAM_ALGORITHMS[name].algorithm(SCHEMA, words=seeded_words(1), **given)
    decided, early = 0, 0
    for number in range(ROWS // PIECE):
        piece = pieces[number % len(pieces)]
        shift = number * PIECE
        release = engine.push(Batch(piece.positions + shift, piece.times, piece.persons, piece.quasi, piece.sensitive))
        decided += len(release.members) + len(release.suppressed)
        held = len(engine.pending())
        assert decided + held == shift + PIECE
        assert held <= 2 * HELD
        if shift + PIECE == ROWS // 10:
            early = resident()
    grown = resident() - early
    release = engine.flush()
    assert decided + len(release.members) + len(release.suppressed) == ROWS
    assert np.all(np.diff(release.starts) >= 1)
    return grown
