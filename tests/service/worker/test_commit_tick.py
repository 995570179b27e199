"""The time on what leaves: near the commit, and too coarse to tell when an event arrived."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from service.publishing.messages import commit_tick


@given(st.floats(0, 4e9), st.floats(0, 60, exclude_min=True))
def test_the_tick_is_at_most_one_step_before_the_commit(now: float, interval: float) -> None:
    step = max(1.0, interval)
    assert now - step - 0.001 <= commit_tick(now, interval) / 1000 <= now + 0.001


@given(st.floats(0, 4e9), st.sampled_from([0.1, 1.0, 1.001, 2.01, 2.5, 60.0]))
def test_ticks_are_whole_steps(now: float, interval: Any) -> None:
    assert commit_tick(now, interval) % round(1000 * max(1.0, interval)) == 0
