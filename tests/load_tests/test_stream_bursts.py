"""The benchmark of bursts, at a size that is quick."""

import numpy as np
import pytest

from load_tests import stream_bursts
from load_tests.stream_bursts import COLUMNS, SETTINGS, compare, largest_share, loss
from load_tests.stream_quality import Outcome
from microdata import Number, Schema, Table
from stream_algos import Release


def test_loss_and_share_by_hand() -> None:
    """Four rows: two of one person and one of another leave in half of the domain, one is suppressed."""
    schema = Schema("person", (Number("age", 0, 100),))
    table = Table(schema, np.array([7, 7, 8, 9]), np.array([[0.0], [50], [20], [99]]), np.empty((4, 0), np.int32))
    empty = Release.empty(1)
    left = {"ids": np.ones(1, np.uint64), "lo": np.array([[0.0]]), "hi": np.array([[50.0]]), "starts": np.array([0, 3])}
    left |= {"members": np.array([2, 0, 1]), "reused": np.zeros(1, bool), "windows": np.full((1, 2), -1)}
    left |= {"suppressed": np.array([3]), "decided": np.array([3]), "given_up": np.array([3])}
    outcome = Outcome(table, Release(**{**vars(empty), **left}), 0.0, {})
    assert loss(outcome) == pytest.approx((3 * 0.5 + 1) / 4)
    assert largest_share(outcome) == pytest.approx(2 / 3)


def test_every_setting_has_both_formations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_bursts, "SETTINGS", SETTINGS[:2])
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in compare([0, 1], events=3_000)]
    assert [(row["k"], row["formation"]) for row in rows] == [
        (10, "arrival"),
        (10, "deadline"),
        (5, "arrival"),
        (5, "deadline"),
    ]
    assert all(0 < row["loss"] <= 1 and 0 < row["largest share of a person"] <= 1 for row in rows)  # type: ignore[operator]
