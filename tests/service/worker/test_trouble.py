"""Errors that may pass, on paper: each is survived wherever it comes, said once, counted and shown."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import generate_latest

from service.kafka import (
    AbortableError,
    DeniedError,
    FatalError,
    FencedError,
    FinalError,
    GoneError,
    KafkaError,
    RetriableError,
    StaleGroupError,
    UnclearError,
    UnknownTopicError,
)
from service.worker import loop, trouble
from service.worker.metrics import Metrics
from service.worker.trouble import Trouble
from tests.service.worker.paper_kafka import Paper
from tests.service.worker.test_crashes import stream_of
from tests.service.worker.test_cycle import RAW, RAW_1, STATE, Hall, event

PASSING = [RetriableError, AbortableError, StaleGroupError, FencedError, UnclearError, UnknownTopicError]
PLACES = {
    "poll": [*PASSING[:3], UnknownTopicError],
    "init": [*PASSING, FatalError],
    "committed offsets": [*PASSING, FatalError],
    f"watermarks of {STATE}": [*PASSING, FatalError],
    f"read {STATE}/0": [*PASSING, FatalError],
    "begin": [*PASSING, FatalError],
    "wait": [*PASSING, FatalError],
    "flush": [*PASSING, FatalError],
    "offsets": [*PASSING, FatalError],
    "commit": [*PASSING, FatalError],
    "committed": [UnclearError, FatalError],
}


@pytest.fixture
def metrics() -> Any:
    return Metrics(stream_of(2, 0))


@pytest.mark.parametrize(("call", "kind"), [(call, kind) for call, kinds in PLACES.items() for kind in kinds])
def test_whatever_may_pass_costs_and_doubles_nothing_wherever_it_comes(call: Any, kind: Any) -> None:
    hall = Hall()
    hall.cycle()
    hall.feed(event(0, 0), event(1, 1))
    hall.cycle()
    hall.worker._owned.discard()
    hall.paper.errors[call] = kind("it passes", "SOME_CODE")
    hall.feed(event(2, 2), event(3, 3))
    hall.cycle(6)
    assert not hall.paper.errors, "it has happened"
    assert sorted(row["trace"] for cluster in hall.output() for row in cluster["rows"]) == [0, 1, 2, 3]
    status = hall.worker.metrics.status()
    assert status["kafka_errors"] == {"SOME_CODE": 1}
    assert status["trouble"] == {}, "it is over"
    hall.worker.close()


@pytest.mark.parametrize("call", [call for call in PLACES if call != "committed"])
def test_what_is_final_ends_the_worker_wherever_it_comes(call: Any) -> None:
    hall = Hall()
    hall.cycle()
    hall.worker._owned.discard()
    hall.feed(event(0, 0), event(1, 1))
    hall.paper.errors[call] = DeniedError("not you")
    with pytest.raises(DeniedError, match="not you"):
        hall.cycle(3)
    hall.worker.close()


@pytest.mark.parametrize("kind", [*PASSING, FatalError, FinalError, DeniedError])
def test_measuring_the_lag_never_ends_a_worker(monkeypatch: pytest.MonkeyPatch, kind: Any) -> None:
    monkeypatch.setattr(loop, "_LAG_SECONDS", 0.0)
    hall = Hall()
    hall.cycle()
    for _ in range(2):
        hall.paper.errors["watermarks of raw"] = kind("whatever", "SOME_CODE")
        hall.cycle()
    status = hall.worker.metrics.status()
    assert (status["trouble"]["measuring the lag"]["tries"], status["kafka_errors"]) == (2, {"SOME_CODE": 2})
    hall.feed(event(0, 0), event(1, 1))
    hall.cycle(2)
    assert len(hall.output()) == 1
    assert hall.worker.metrics.status()["trouble"] == {}
    hall.worker.close()


def test_a_partition_that_cannot_be_restored_holds_up_no_other() -> None:
    hall = Hall(2)
    hall.cycle()
    hall.worker._owned.discard()
    hall.feed(event(0, 0), event(1, 1))
    hall.feed(event(10, 0), event(11, 1), place=RAW_1)
    for _ in range(5):
        hall.paper.errors[f"read {STATE}/0"] = RetriableError("its leader is away")
        hall.cycle()
    assert set(hall.worker._owned.running) == {RAW_1}
    assert {row["trace"] for cluster in hall.output() for row in cluster["rows"]} == {10, 11}
    assert hall.worker.metrics.unready() == "restoring partitions does not work: its leader is away"
    hall.paper.errors.clear()
    hall.cycle(3)
    assert {row["trace"] for cluster in hall.output() for row in cluster["rows"]} == {0, 1, 10, 11}
    hall.worker.close()


@pytest.mark.parametrize("what", ["watermarks of raw", None])
def test_an_offset_that_is_out_of_range_for_a_moment_stops_no_partition(what: Any) -> None:
    hall = Hall()
    hall.cycle()
    hall.feed(event(0, 0), event(1, 1))
    hall.paper.errors["poll"] = GoneError(*RAW, 0)
    if what is not None:
        hall.paper.errors[what] = RetriableError("away")
    hall.cycle(4)
    assert hall.worker.metrics.status()["stopped"] == {}
    assert sorted(row["trace"] for cluster in hall.output() for row in cluster["rows"]) == [0, 1]
    hall.worker.close()


@pytest.mark.parametrize("call", ["poll", "init", "wait", "commit", "committed", "committed offsets"])
def test_a_drain_survives_what_may_pass(call: str) -> None:
    hall = Hall()
    hall.cycle()
    hall.feed(event(0, 0), event(1, 1), event(2, 2))
    hall.cycle()
    hall.worker._owned.discard()
    drain = Hall(paper=hall.paper)
    hall.paper.errors[call] = UnclearError("no answer") if call.startswith("commit") else RetriableError("away")
    assert drain.worker.drain() == {0: 3}
    assert not hall.paper.errors
    assert sorted(row["trace"] for cluster in hall.output() for row in cluster["rows"]) == [0, 1]
    hall.worker.close()


def test_topics_are_looked_at_again_while_a_broker_asks_for_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = [RetriableError("not yet", "NOT_CONTROLLER"), UnknownTopicError("not known here yet")]

    def create(*_: Any) -> None:
        if errors:
            raise errors.pop()

    monkeypatch.setattr(Paper, "create_topic", create)
    hall = Hall()
    assert errors == []
    assert hall.worker.metrics.status()["kafka_errors"] == {"NOT_CONTROLLER": 1, "UNKNOWN_TOPIC_OR_PARTITION": 1}
    assert hall.worker.metrics.status()["trouble"] == {}
    hall.worker.close()


def test_a_kind_of_error_is_said_once_and_counted_each_time(metrics: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    restoring = Trouble("restoring partitions", metrics)
    for _ in range(50):
        restoring.note(RetriableError("the coordinator moves", "NOT_COORDINATOR"))
        restoring.note(RetriableError("nobody leads", "LEADER_NOT_AVAILABLE"))
    assert [record.message for record in caplog.records] == [
        "restoring partitions does not work at the moment (the coordinator moves), trying again",
        "restoring partitions does not work at the moment (nobody leads), trying again",
    ]
    told = generate_latest(metrics.registry).decode()
    assert 'portcullis_kafka_errors_total{code="NOT_COORDINATOR",stream="s"} 50.0' in told
    status = json.loads(json.dumps(metrics.status()))
    assert status["kafka_errors"] == {"NOT_COORDINATOR": 50, "LEADER_NOT_AVAILABLE": 50}
    (known,) = status["trouble"].values()
    assert (known["code"], known["tries"]) == ("LEADER_NOT_AVAILABLE", 100)
    assert known["since"].endswith("Z")
    restoring.over()
    assert metrics.status()["trouble"] == {}
    restoring.note(RetriableError("again, a little later", "NOT_COORDINATOR"))
    assert len(caplog.records) == 2, "an error that comes and goes fills no log"


def test_it_is_news_again_when_it_was_not_seen_for_a_while(
    metrics: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Trouble("reading the input", metrics)
    reading.note(RetriableError("away"))
    monkeypatch.setattr(trouble, "_QUIET_SECONDS", 0.0)
    reading.note(RetriableError("away"))
    assert len(caplog.records) == 2


def test_the_pause_grows_has_a_bound_and_ends_with_the_trouble(metrics: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trouble, "FIRST_PAUSE", 100.0)
    monkeypatch.setattr(trouble, "LONGEST_PAUSE", 1_000.0)
    restoring, pauses = Trouble("restoring partitions", metrics), []
    assert restoring.pause == 0
    for _ in range(2_000):
        restoring.note(RetriableError("away"))
        pauses.append(restoring.pause)
    for tries, pause in enumerate(pauses):
        most = min(1_000, 100 * 2**tries)
        assert most / 2 - 1 <= pause <= most, "half of it at least, and never the same for all"
    assert len({round(pause) for pause in pauses[10:]}) > 10
    restoring.over()
    assert restoring.pause == 0


def test_while_it_waits_the_loop_turns_and_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trouble, "FIRST_PAUSE", 100.0)
    hall = Hall()
    hall.paper.errors["committed offsets"] = RetriableError("away")
    hall.cycle(4)
    assert hall.paper.polls == 4
    assert hall.names() == ["poll", "token"]
    assert hall.worker.metrics.stuck() is None
    hall.worker.close()


def test_every_kind_of_error_has_a_code_of_its_own() -> None:
    kinds = [KafkaError, *_below(KafkaError)]
    assert all(kind.own_code.isupper() for kind in kinds)
    assert RetriableError("x").code == "NO_ANSWER"
    assert RetriableError("x", "THAT").code == "THAT"


def _below(kind: Any) -> Iterator[Any]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)
