"""Topics that are deleted and created again under a running worker, which no client tells it."""

import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from service.kafka import GoneError, Partition, RetriableError, UnknownTopicError
from service.worker.state import State
from tests.service.kafka.world import eventually
from tests.service.worker.test_cycle import RAW, STATE, Hall, event


@pytest.fixture
def hall() -> Iterator[Any]:
    """A worker that has taken the events 0 and 1, decided them and not published them yet."""
    hall = Hall(settings={"accept_loss": True})
    hall.cycle()
    hall.feed(event(0, 0), event(1, 1))
    hall.cycle()
    yield hall
    hall.worker.close()


def create_again(hall: Any, topic: Any, *events: Any) -> None:
    hall.paper.ids[topic] = UUID(int=8)
    if topic == "raw":
        hall.paper.logs[RAW] = list(events)


def stopped(hall: Any) -> Any:
    (reason,) = hall.worker.metrics.status()["stopped"].values()
    return reason


def durable(hall: Any) -> Any:
    return len(hall.paper.logs[Partition(STATE, 0)]), hall.paper.committed_offsets[RAW], hall.output()


def test_nothing_of_a_recreated_input_is_committed_under_the_old_id(hall: Any) -> None:
    before = durable(hall)
    create_again(hall, "raw", *(event(10 + n, n) for n in range(9)))
    hall.cycle(2)
    assert "the input topic was deleted and created again" in stopped(hall)
    assert durable(hall) == before
    hall.cycle(3)
    assert durable(hall) == before
    assert "poll" in hall.names()


def test_what_was_read_before_the_topic_was_seen_unchanged_is_committed(hall: Any) -> None:
    """The broker is asked after the poll: what a transaction settles was read from the topic that was seen."""
    asked = []
    hall.paper.topic_shapes, ask = lambda names: asked.append(hall.names()) or ask(names), hall.paper.topic_shapes  # type: ignore[func-returns-value, has-type, redundant-expr]
    hall.feed(event(2, 2))
    hall.cycle()
    assert asked[-1][-2:] == ["poll", "token"]
    assert "begin" not in asked[-1]


@pytest.mark.parametrize("accept_loss", [True, False])
def test_an_offset_that_a_recreated_input_does_not_have_is_not_called_a_loss(accept_loss: bool) -> None:
    hall = Hall(settings={"accept_loss": accept_loss})
    hall.cycle()
    hall.feed(event(0, 0), event(1, 1))
    hall.cycle(3)
    before = durable(hall)
    create_again(hall, "raw")
    hall.paper.low[RAW] = 0
    hall.paper.errors["poll"] = GoneError(*RAW, 2)
    hall.cycle()
    assert "created again" in stopped(hall)
    assert "retention" not in stopped(hall)
    assert durable(hall) == before
    hall.worker.close()


def test_a_topic_that_is_created_again_while_nobody_owns_it_stops_who_gets_it(hall: Any) -> None:
    hall.paper.assign()
    hall.cycle()
    create_again(hall, "raw", event(10, 0))
    hall.paper.assign(0)
    before = durable(hall)
    hall.cycle()
    assert "the input topic was deleted and created again" in stopped(hall)
    assert durable(hall) == before


def test_an_idle_worker_looks_now_and_then(hall: Any) -> None:
    hall.cycle(2)
    create_again(hall, "raw")
    hall.cycle()
    assert not hall.worker.metrics.status()["stopped"], "it has looked at its last commit"
    hall.worker._owned._look_at = 0.0
    hall.paper.errors["shapes"] = RetriableError("away")
    hall.cycle()
    hall.worker._owned._look_at = 0.0
    hall.cycle()
    hall.cycle()
    assert "created again" in stopped(hall)


def test_an_idle_worker_does_not_wait_for_a_broker_that_does_not_answer(hall: Any) -> None:
    hall.cycle(2)
    answers, answered, ask = threading.Event(), [], hall.paper.topic_shapes

    def late(names: Any) -> Any:
        answers.wait(30)
        answered.append(names)
        return ask(names)

    hall.paper.topic_shapes = late
    polls = hall.paper.polls
    for _ in range(3):
        hall.worker._owned._look_at = 0.0
        hall.cycle()
    assert not answered
    assert hall.paper.polls >= polls + 3
    create_again(hall, "raw")
    answers.set()

    def looks() -> Any:
        hall.worker._owned._look_at = 0.0
        hall.cycle()
        return hall.worker.metrics.status()["stopped"]

    eventually(looks)
    assert "created again" in stopped(hall)
    assert len(answered) == 2, "the look that was late, and one at once where it has found something"


def test_a_recreated_state_topic_stops_the_partition_before_anything_is_written_to_it(hall: Any) -> None:
    create_again(hall, STATE)
    before = durable(hall)
    hall.cycle(2)
    assert f"the state topic '{STATE}' was deleted and created again" in stopped(hall)
    assert f"delete topic '{STATE}' and the offsets of group" in stopped(hall)
    assert durable(hall) == before


def test_an_output_with_other_partitions_is_looked_at_anew_and_loses_nothing(hall: Any) -> None:
    hall.paper.grown["safe"] = 2
    create_again(hall, "safe")
    hall.feed(*(event(2 + n, n) for n in range(40)))
    hall.cycle(45)
    traces = [row["trace"] for cluster in hall.output() for row in cluster["rows"]]
    assert sorted(traces) == list(range(42))
    assert hall.paper.logs[Partition("safe", 1)], "new partitions are used"


def test_an_output_that_is_not_shown_while_it_is_looked_at_anew_stops_nothing(
    hall: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.worker.trouble.FIRST_PAUSE", 0.0)
    hall.paper.grown["safe"] = 2
    hall.paper.errors["settings of safe"] = UnknownTopicError("there is none")
    hall.cycle(4)
    assert not hall.paper.errors
    assert sorted(row["trace"] for cluster in hall.output() for row in cluster["rows"]) == [0, 1]
    assert not hall.worker.metrics.status()["stopped"]


def test_topics_that_cannot_be_looked_at_commit_nothing_and_cost_nothing(
    hall: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.worker.trouble.FIRST_PAUSE", 0.0)
    before = durable(hall)
    hall.paper.errors["shapes"] = RetriableError("topic 'raw' does not exist at the moment")
    hall.cycle()
    assert durable(hall) == before
    hall.cycle(2)
    assert sorted(row["trace"] for cluster in hall.output() for row in cluster["rows"]) == [0, 1]
    assert not hall.worker.metrics.status()["stopped"]


def test_a_recreated_input_that_cannot_be_used_stops_with_its_reason(hall: Any) -> None:
    hall.paper._config = {"cleanup.policy": "compact"}
    hall.paper.assign()
    hall.cycle()
    create_again(hall, "raw", event(10, 0))
    hall.paper.assign(0)
    hall.cycle()
    assert "cleanup.policy=compact" in stopped(hall)


def test_a_state_names_who_wrote_it(hall: Any) -> None:
    owners = [State.decode(value).owner for _, value in hall.paper.logs[Partition(STATE, 0)]]
    assert owners == [f"{STATE}.0", hall.worker._transactions.owner]
