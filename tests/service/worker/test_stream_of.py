"""From a policy to a stream: time is shared out, and what a worker cannot do is refused."""

from typing import Any

import pytest

from microdata import InfeasibleError
from service.policy import PolicyError, parse_policy
from service.worker import stream as streams
from service.worker.settings import WorkerSettings
from service.worker.stream import stream_of
from service.worker.warmup import warm_up
from stream_algos._cohort_memory import CohortMemory

BASE = {
    "name": "s",
    "schema": {"person": "who", "quasi": {"age": {"type": "number", "min": 0, "max": 9, "integer": True}}},
    "guarantee": {"algorithm": "castle", "k": 3, "delay": {"tuples": 50, "seconds": 5}},
    "stream": {"input": "a", "output": "b", "start": "earliest"},
}


def policy(**changes: Any) -> Any:
    return parse_policy({**BASE, **changes})


def test_the_engine_decides_two_commit_intervals_before_the_promise() -> None:
    stream = stream_of(policy(), WorkerSettings(commit_interval=0.5))
    assert stream.engine().parameters.delay.seconds == 4.0  # type: ignore[attr-defined]
    assert stream.delay_seconds == stream.history_seconds == 5


def test_a_delay_without_time_for_two_commits_is_refused_with_the_nearest() -> None:
    with pytest.raises(InfeasibleError, match="more than 6"):
        stream_of(policy(), WorkerSettings(commit_interval=3))


def test_windows_by_time_need_their_history() -> None:
    sensitive = {"item": {"type": "category", "hierarchy": {"*": ["x", "y"]}}}
    guarantee = {"algorithm": "sabre_w", "k": 2, "t": 0.5, "window": {"seconds": 60, "advance_seconds": 20}}
    schema = {**BASE["schema"], "sensitive": sensitive}  # type: ignore[dict-item]
    assert stream_of(policy(schema=schema, guarantee=guarantee), WorkerSettings()).history_seconds == 120


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"stream": None}, "stream"),
        ({"stream": {"input": "a", "output": "b"}}, "stream.start"),
        ({"guarantee": {**BASE["guarantee"], "order": "arrival"}}, "guarantee.order"),  # type: ignore[dict-item]
    ],
)
def test_what_a_worker_cannot_run_is_refused_with_its_path(changes: Any, path: str) -> None:
    with pytest.raises(PolicyError) as caught:
        stream_of(policy(**changes), WorkerSettings())
    assert caught.value.problems[0].path == path


def test_an_engine_that_remembers_persons_must_let_a_worker_keep_them(monkeypatch: pytest.MonkeyPatch) -> None:
    cohorts = {"algorithm": "cohorts", "k": 3, "delay": {"tuples": 50}, "company": "standing"}
    asked = policy(guarantee=cohorts, stream={**BASE["stream"], "keyed": "crc32"})  # type: ignore[dict-item]
    stream = stream_of(asked, WorkerSettings())
    assert (stream.remembers, stream.keyed, stream.stays_put) == (True, "crc32", True)
    monkeypatch.setattr(streams, "Memory", int)
    with pytest.raises(PolicyError, match="cannot be kept across restarts"):
        stream_of(asked, WorkerSettings())


def test_what_only_a_restart_needs_is_ready_when_a_worker_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    cohorts = {"algorithm": "cohorts", "k": 3, "delay": {"tuples": 50}, "company": "standing"}
    recalled: list[dict[str, int]] = []
    recall = CohortMemory.recall

    def noted(own: CohortMemory, *given: Any) -> None:
        recall(own, *given)
        recalled.append(own.sizes())

    monkeypatch.setattr(CohortMemory, "recall", noted)
    warm_up(stream_of(policy(guarantee=cohorts), WorkerSettings()))
    (sizes,) = recalled
    assert sizes["nodes"] > 0


def test_a_policy_without_sensitive_attributes_warms_up() -> None:
    warm_up(stream_of(policy(), WorkerSettings()))
