"""A claim is said to hold only where the curves show it."""

from __future__ import annotations

from typing import Any

import pytest

from load_tests.plot import Panel
from load_tests.quality.claims import both, falls, flatter, grows, limited, ordered, steady


def panel(**series: Any) -> Any:
    return Panel("title", "x", [1, 2, 3], series)


@pytest.mark.parametrize(
    ("values", "down", "up"),
    [
        ([3.0, 2.0, 1.0], True, False),
        ([1.0, 2.0, 3.0], False, True),
        ([3.0, 1.0, 2.0], False, False),
        ([2.0, 2.01, 1.0], True, False),
        ([1.0, 1.0, 1.0], False, False),
        ([3.0, None, 1.0], True, False),
    ],
)
def test_direction(values: Any, down: bool, up: bool) -> None:
    chart = panel(a=values)
    assert falls(chart, ["a"])[0] is down
    assert grows(chart, ["a"])[0] is up


def test_order_holds_at_every_point_or_not_at_all() -> None:
    chart = panel(low=[1.0, 1.0, 1.0], high=[2.0, 2.0, 0.5], top=[20.0, None, 30.0])
    assert ordered(chart, "low", "top")[0]
    assert not ordered(chart, "low", "high")[0]
    assert "2 of 3" in ordered(chart, "low", "high")[1]
    assert ordered(chart, "low", "top", factor=10)[0]
    assert not ordered(chart, "high", "top", factor=12)[0]
    assert not both(ordered(chart, "low", "top"), ordered(chart, "low", "high"))[0]


def test_a_comparison_without_points_does_not_hold() -> None:
    assert not ordered(panel(a=[None] * 3, b=[1.0] * 3), "a", "b")[0]


def test_growth_steadiness_and_limits() -> None:
    chart = panel(flat=[1.0, 1.05, 1.1], steep=[1.0, 2.0, 4.0])
    assert flatter(chart, ["flat"], ["steep"])[0]
    assert not flatter(chart, ["steep"], ["flat"])[0]
    assert steady(chart, ["flat"], 0.1)[0]
    assert not steady(chart, ["flat", "steep"], 0.1)[0]
    assert limited(chart, ["steep"], [1.0, 2.0, 4.0])[0]
    assert not limited(chart, ["steep"], [1.0, 2.0, 3.9])[0]
