"""The short version of `load_tests/stream_faults.py`: real processes, real signals."""

from typing import Any

import pytest

from load_tests.stream_faults import run


@pytest.mark.parametrize(
    ("broker", "client"),
    [
        ("embedded", "confluent-kafka"),
        pytest.param("apache", "kafka-python", marks=pytest.mark.needs_tool("kafka")),
    ],
)
@pytest.mark.kafka
@pytest.mark.xdist_group("kafka")
def test_killed_and_frozen_workers_lose_and_double_nothing(broker: Any, client: Any) -> None:
    outcome = run(broker, client, events=6_000, kills=3, rate=1_000)
    assert outcome.happened["worker killed"] + outcome.happened["worker frozen"] >= 3
    assert outcome.released > 5_000
    assert outcome.holds, outcome


@pytest.mark.kafka
@pytest.mark.xdist_group("kafka")
def test_killed_and_frozen_workers_forget_nobody() -> None:
    """Whoever ties all rows of a person together, aborted ones too, finds k persons in all of their boxes."""
    outcome = run("embedded", "confluent-kafka", events=8_000, kills=2, rate=500, algorithm="cohorts")
    assert outcome.happened["worker killed"] + outcome.happened["worker frozen"] >= 2
    assert outcome.released > 1_000
    assert outcome.candidates is not None
    assert outcome.candidates >= 10
    assert outcome.holds, outcome


@pytest.mark.soak
@pytest.mark.parametrize("broker", ["embedded", pytest.param("apache", marks=pytest.mark.needs_tool("kafka"))])
@pytest.mark.parametrize("client", ["confluent-kafka", "kafka-python"])
def test_the_long_run(broker: Any, client: str) -> None:
    outcome = run(broker, client, events=200_000, kills=20)
    assert outcome.holds, outcome
