"""Algorithms whose parameters nobody here has heard of: known by what they declare, and by nothing else."""

import json
import logging
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import Field

from microdata import InfeasibleError, Publication, silent
from privacy import KAnonymity, MaxShare
from service.jobs.warmup import warm_up as warm_up_jobs
from service.policy import PolicyError, parse_policy
from service.worker.settings import WorkerSettings
from service.worker.stream import stream_of
from service.worker.warmup import warm_up as warm_up_worker
from static_algos import STATIC_ALGORITHMS, Parameters, StaticAlgorithm
from stream_algos import STREAM_ALGORITHMS, Castle, Engine, Hold, StreamParameters


class CrowdParameters(Parameters):
    crowd: int = Field(ge=2, description="persons of a class")


class Crowd(StaticAlgorithm):
    """All rows in one class."""

    Parameters = CrowdParameters
    parameters: CrowdParameters
    guarantees = (KAnonymity,)
    example: ClassVar = {"crowd": 5}

    def models(self, schema: Any) -> Any:
        return (KAnonymity(self.parameters.crowd),)

    def anonymize(self, table: Any, *, seed: Any = None, progress: Any = silent) -> Any:
        progress("gathering", 1, 1)
        return Publication.of(table, np.zeros(len(table), np.int64))


class PatienceParameters(StreamParameters):
    crowd: int = Field(ge=1, description="persons of a class")
    patience: float = Field(gt=0, description="seconds that a row waits")
    unfair: bool = Field(default=False, description="ask for a model that is not declared")

    @property
    def hold(self) -> Any:
        return Hold(tuples=100, seconds=self.patience)

    def within(self, seconds: Any) -> Any:
        return self.model_copy(update={"patience": seconds})


class Patience(Engine):
    """Castle under other names."""

    Parameters = PatienceParameters
    parameters: PatienceParameters
    guarantees = (KAnonymity,)
    example: ClassVar = {"crowd": 3, "patience": 10}

    def __init__(self, schema: Any, **given: Any) -> None:
        super().__init__(schema, **given)
        asked = self.parameters
        self._inner = Castle(schema, words=self.words, k=asked.crowd, delta=100, seconds=asked.patience)

    def models(self) -> Any:
        more = (MaxShare(0.5),) if self.parameters.unfair else ()
        return (KAnonymity(self.parameters.crowd), *more)

    def push(self, batch: Any) -> Any:
        return self._inner.push(batch)

    def advance(self, position: Any) -> Any:
        return self._inner.advance(position)

    def expire(self, now: Any) -> Any:
        return self._inner.expire(now)

    def flush(self) -> Any:
        return self._inner.flush()

    def pending(self) -> Any:
        return self._inner.pending()

    def needed_from(self) -> Any:
        return self._inner.needed_from()

    def snapshot(self) -> Any:
        return self._inner.snapshot()

    def restore(self, snapshot: Any, rows: Any) -> None:
        self._inner.restore(snapshot, rows)

    def status(self) -> Any:
        return self._inner.status()


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The algorithms above are registered for a test; nothing else is."""
    monkeypatch.setattr(STATIC_ALGORITHMS, "_entries", {})
    monkeypatch.setattr(STREAM_ALGORITHMS, "_entries", {})
    STATIC_ALGORITHMS.register("crowd", CrowdParameters)(Crowd)
    STREAM_ALGORITHMS.register("patience", PatienceParameters)(Patience)


def policy(**guarantee: Any) -> Any:
    return parse_policy(
        json.dumps(
            {
                "name": "orders",
                "schema": {"person": "id", "quasi": {"age": {"type": "number", "min": 0, "max": 99}}},
                "guarantee": guarantee,
                "stream": {"input": "in", "output": "out", "start": "earliest"},
            }
        )
    )


def test_a_job_process_becomes_ready(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        warm_up_jobs()
    assert not caplog.records


def test_an_algorithm_that_cannot_do_its_example_keeps_no_process_from_becoming_ready(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any, table: Any, **_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Crowd, "anonymize", fail)
    with caplog.at_level(logging.WARNING):
        warm_up_jobs()
    assert "crowd could not do its own example: ZeroDivisionError" in caplog.text


def test_a_worker_becomes_ready_and_keeps_its_reserve() -> None:
    stream = stream_of(policy(algorithm="patience", crowd=4, patience=5.0), WorkerSettings(commit_interval=0.5))
    assert stream.delay_seconds == 5.0
    assert stream.history_seconds == 5.0
    assert stream.engine().parameters.patience == 4.0  # type: ignore[attr-defined]
    warm_up_worker(stream)


def test_a_worker_says_where_no_time_is_left() -> None:
    with pytest.raises(InfeasibleError, match="leave no time"):
        stream_of(policy(algorithm="patience", crowd=4, patience=1.0), WorkerSettings(commit_interval=0.5))


def test_what_an_engine_does_not_declare_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"max_share: the algorithm cannot keep max-share; it guarantees k-anonymity"):
        policy(algorithm="patience", crowd=4, patience=5.0, unfair=True)


def test_a_model_that_an_algorithm_does_not_take_is_refused_by_name() -> None:
    with pytest.raises(PolicyError, match=r"guarantee.t: patience does not take it; it guarantees k-anonymity"):
        policy(algorithm="patience", crowd=4, patience=5.0, t=0.2)
