"""Benchmarks measure what they say."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from load_tests.harness import best_of, machine, peak_bytes, print_table, write_json


def allocate(megabytes: Any) -> Any:
    return lambda: np.ones(megabytes * 2**17).sum()


def test_best_of_tells_the_first_call_from_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.accumulate([0, 5, 0, 2, 0, 3])  # three calls: when each begins and ends
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    timing = best_of(lambda: None, repeat=2)
    assert (timing.first, timing.best) == (5, 2)


def test_peak_counts_what_the_call_takes() -> None:
    assert 60 < peak_bytes(allocate, 64) / 2**20 < 90


def test_json_names_the_machine(tmp_path: Path) -> None:
    write_json(tmp_path / "r.json", "some", [{"seconds": 1.0}])
    written = json.loads((tmp_path / "r.json").read_text())
    assert written["results"] == [{"seconds": 1.0}]
    assert written["machine"].keys() == machine().keys() >= {"processor", "cores", "commit", "numpy", "date"}


def test_tables_show_every_cell(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("Title", ["name", "rows", "seconds", "ok"], [["a", 12345, 0.25, True]], note="a note")
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("Title", "12,345", "0.25", "yes", "a note"))
