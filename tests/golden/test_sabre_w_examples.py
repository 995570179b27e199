"""Section 6 of the specification: the sequence of Example 6.1, with windows of four panes."""

from typing import Any

import numpy as np
import pytest

from microdata import Category, Hierarchy, Number, PersonSource, Schema, Table, seeded_words
from stream_algos import Batch, SabreW

SCHEMA = Schema(
    PersonSource.ROW, (Number("age", 0, 99),), (Category("disease", Hierarchy.flat(["flu", "ulcer", "colic", "sars"])),)
)
PANE = 8


def pane(number: Any, values: Any) -> Any:
    """One pane of eight rows, of which row i has the i-th of these values."""
    n = np.arange(number * PANE, (number + 1) * PANE)
    ages = (n * 37 % 100).astype(float)[:, None]
    return Batch(n, n.astype(float), n, ages, np.array(values, np.int32)[:, None])


def cases_taken(panes: Any, monkeypatch: Any, classes: Any) -> Any:
    """What each window does, when its classes are the given ones (of the undecided rows, by DIRECT step)."""
    engine = SabreW(SCHEMA, words=seeded_words(1), t=0.1, k=2, floor=0, window={"size": 4 * PANE, "advance": PANE})
    chosen = iter(classes)
    monkeypatch.setattr(engine, "_partition", lambda rows, references: next(chosen))
    taken, released = [], []
    for number, values in enumerate(panes):
        before = engine.steps.copy()
        released.append(engine.push(pane(number, values)))
        taken += list((engine.steps - before).elements())
    return taken, released, engine


def test_example_6_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """W₁ and W₂ DIRECT, W₃ nothing to do, W₄ INDIRECT with all classes of W₂, W₅ nothing to do, W₆ all undecided."""
    even, skewed = [0, 1, 2, 3] * 2, [0] * 8
    stripes = np.arange(4 * PANE, dtype=np.int32) // PANE
    # W₂ lets out its first two panes and half of the others; what is left of them then misses in W₄.
    halves = np.array([0] * 16 + [0, 0, 0, 0, 1, 1, 1, 1] * 2, np.int32)

    panes = [even] * 5 + [skewed] * 4
    taken, released, engine = cases_taken(panes, monkeypatch, [stripes, halves, stripes])
    assert taken == ["direct", "direct", "idle", "indirect", "idle", "direct"]
    assert sorted(released[3].members.tolist()) == list(range(8))
    assert released[3].windows.tolist() == [[0, 31]]
    assert sorted(released[4].members.tolist()) == [*range(8, 28), *range(32, 36)]
    assert sorted(released[6].members.tolist()) == [28, 29, 30, 31, 36, 37, 38, 39], "all pending classes of W₂ leave"
    assert released[6].windows.tolist() == [[8, 39]], "they are close to W₂, not to W₄"
    assert released[8].windows.tolist() == [[40, 71]]
    assert engine.steps["uncovered"] == 0


def test_the_threshold_is_what_the_distance_leaves() -> None:
    """Undecided rows that are D away from the window leave t - D: here D = 3/8."""
    engine = SabreW(SCHEMA, words=seeded_words(1), t=0.25, k=1, window={"size": 16, "advance": 8})
    rows = pane(0, [0, 1, 2, 3] * 2)
    table_rows = Batch.concat([rows, pane(1, [0] * 8)])
    window = engine._window(table_rows)
    left = engine._room(_table(rows), window.references)
    assert left == pytest.approx(1 - (3 / 8) / 0.25)
    assert engine._room(_table(table_rows), window.references) == 1.0


def _table(rows: Any) -> Any:
    return Table(SCHEMA, rows.persons, rows.quasi, rows.sensitive)
