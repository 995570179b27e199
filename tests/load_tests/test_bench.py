"""The one page of numbers: made of any results, held against the last ones, honest about failures."""

import pytest

from load_tests import bench

FACTS = {"date": "2026-01-01", "cores": 2, "load": 0.5}


def result(seconds, load=0.5):
    rows = [{"name": "sabre", "rows": 10, "seconds": seconds}, {"name": "burel", "rows": 10, "seconds": 3.0}]
    found = {"machine": FACTS, "seconds": 9, "results": {"speed": rows}}
    return {"machine": {**FACTS, "load": load}, "benchmarks": {"static_speed": found, "other": {"failed": "no Java"}}}


def test_results_of_any_shape_become_flat_numbers():
    found = dict(bench.numbers({"a": [{"name": "x", "n": 1}, {"name": "y", "n": 2}], "b": [3, 4], "c": None}))
    assert found == {"a x n": 1, "a y n": 2, "b 0": 3, "b 1": 4}


@pytest.mark.parametrize(("before", "now", "changes"), [(1.0, 1.05, 0), (1.0, 2.0, 1), (2.0, 1.0, 1)])
def test_what_changed_by_more_than_a_tenth_is_told(before, now, changes):
    assert len(list(bench.compared(result(now), result(before)))) == changes


def test_the_page_tells_numbers_failures_and_a_busy_machine():
    page = bench.page(result(1.5, load=7.0), {"benchmarks": {}})
    assert "| speed sabre seconds | 1.5 |" in page
    assert "Failed: no Java." in page
    assert "The machine was busy" in page
    assert "The machine was busy" not in bench.page(result(1.5), {"benchmarks": {}})


def test_what_takes_too_long_is_a_failure():
    assert "longer" in bench.measure("audit_speed", 0.05)["failed"]


def test_every_benchmark_takes_part():
    assert {"audit_speed", "static_speed", "stream_faults", "stream_throughput"} <= set(bench.benchmarks())
