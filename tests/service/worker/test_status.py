"""The worker's web server says no when the worker is not assigned, not restored, stopped or waiting."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from service.kafka import Partition
from service.worker import metrics as module
from service.worker.metrics import Metrics
from service.worker.rejections import Rejecting
from service.worker.status import StatusServer
from tests.service.worker.test_crashes import Simulation, stream_of

PLACE = Partition("raw", 0)


@pytest.fixture
def metrics() -> Any:
    return Metrics(stream_of(2, 0))


@pytest.fixture
def ask(metrics: Any) -> Iterator[Any]:
    server = StatusServer(metrics, "127.0.0.1", 0)

    def get(path: Any) -> Any:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}") as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    yield get
    server.close()


def running(metrics: Any, *, assigned: bool = True, restored: bool = True, stopped: bool = False) -> Any:
    partition = Simulation([0, 1, 2], 2, 0).partition
    metrics.polled(frozenset([PLACE] if assigned else []), {}, {PLACE: "state is gone"} if stopped else {})
    if restored:
        metrics.restored(PLACE, partition, 0.1)
    return partition


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"assigned": False, "restored": False}, "no partition is assigned"),
        ({"restored": False}, "partitions are being restored"),
        ({"stopped": True}, "1 partition is stopped"),
    ],
)
def test_a_worker_that_does_not_do_its_job_is_not_ready_but_alive(
    metrics: Any, ask: Any, state: Any, reason: str
) -> None:
    running(metrics, **state)
    assert ask("/readyz") == (503, f"{reason}\n")
    assert ask("/healthz") == (200, "ok\n")


def test_a_worker_that_starts_or_waits_for_its_broker_is_alive_and_says_why_it_is_not_ready(
    metrics: Any, ask: Any
) -> None:
    assert ask("/healthz") == (200, "ok\n")
    assert ask("/readyz") == (503, "it is starting\n")
    metrics.waits("no broker answers")
    assert ask("/healthz") == (200, "ok\n")
    assert ask("/readyz") == (503, "no broker answers\n")
    running(metrics)
    assert ask("/readyz") == (200, "ok\n")


def test_worker_that_rejects_most_records_is_ready_and_says_so(metrics: Any, ask: Any) -> None:
    running(metrics)
    metrics.rejecting(PLACE, Rejecting(90, 120, "age", "wrong_type", 7))
    rejects = "90 of the last 120 records are rejected, most of them for age wrong_type, schema id 7"
    assert ask("/readyz") == (200, f"ok\npartition {PLACE.number}: {rejects}\n")
    metrics.rejecting(PLACE, None)
    assert ask("/readyz") == (200, "ok\n")


def test_a_loop_that_waits_in_one_step_is_alive_but_not_ready(
    metrics: Any, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    running(metrics)
    metrics.step("committing")
    monkeypatch.setattr(module, "_QUIET_SECONDS", -1.0)
    assert ask("/healthz") == (200, "ok\n")
    assert ask("/readyz") == (503, "no poll for 0 s, in: committing\n")


def test_a_loop_that_does_not_turn_is_neither(metrics: Any, ask: Any) -> None:
    metrics._patience = -1.0
    assert ask("/healthz") == (200, "ok\n"), "nothing turns before the first step; compiling takes its time"
    running(metrics)
    metrics.step("committing")
    assert ask("/healthz") == (503, "the loop has not turned for 0 s, in: committing\n")
    assert ask("/readyz") == (503, "the loop has not turned for 0 s, in: committing\n")


def test_metrics_and_status_count_the_same(metrics: Any, ask: Any) -> None:
    simulation = Simulation([0, 1, 2, 3, 4], 2, 0)
    metrics.polled(frozenset([PLACE]), {PLACE: simulation.partition}, {})
    metrics.restored(PLACE, simulation.partition, 0.1)
    for _ in range(2):
        start = simulation.partition.position
        if start < 5:
            simulation.partition.take(simulation.read(start, 5), 5, 0.0)
        settlement = simulation.partition.settle(simulation.partition.publish())
        metrics.settled(PLACE, simulation.partition, settlement, 0.0)
        simulation.partition.committed(settlement)
    counts = json.loads(ask("/status")[1])["counts"]
    text = ask("/metrics")[1]
    assert counts["taken"] == 5
    assert counts["released"] == 4
    assert 'portcullis_events_released_total{stream="s"} 4.0' in text
    assert 'portcullis_refused_releases_total{stream="s"} 0.0' in text
    assert 'portcullis_delay_tuples_bucket{le="10.0",stream="s"} 4.0' in text
    assert ask("/")[0] == 200
    assert ask("/nowhere")[0] == 404
