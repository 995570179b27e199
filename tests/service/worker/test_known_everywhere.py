"""Right after a topic is created, some brokers of a cluster say that there is none."""

from typing import Any

import pytest

from service.kafka import RetriableError, TopicExistsError, UnknownTopicError
from service.kafka.everywhere import wait_for_all
from service.worker import topics
from service.worker.settings import WorkerSettings
from tests.service.worker.paper_kafka import Paper
from tests.service.worker.test_cycle import Hall


class Slow:
    """A broker that knows nothing for a while."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def partitions_led(self, name: Any) -> Any:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


UNKNOWN = UnknownTopicError("no such topic")


def test_every_broker_is_waited_for() -> None:
    brokers = [Slow(3), Slow(UNKNOWN, UNKNOWN, 0, 2, 3), Slow(UNKNOWN, 3)]
    wait_for_all("state", 3, brokers, 30)
    assert [broker.answers for broker in brokers] == [[3], [3], [3]]
    gone = [Slow(1, 1, 0), Slow(2, UNKNOWN)]
    wait_for_all("state", 0, gone, 30)


def test_a_broker_that_does_not_answer_is_not_waited_for() -> None:
    wait_for_all("state", 3, [Slow(RetriableError("away")), Slow(3)], 30)


def test_the_wait_has_an_end_that_names_the_topic() -> None:
    with pytest.raises(RetriableError, match="'state'"):
        wait_for_all("state", 3, [Slow(3), Slow(UNKNOWN)], 0.1)


class Cluster(Paper):
    """Its state topic is there, but is not shown for a while."""

    def __init__(self, hidden: Any) -> None:
        super().__init__()
        self.hidden = hidden

    def create_topic(self, *_: Any) -> None:
        raise TopicExistsError("another worker was quicker")

    def describe_topic(self, name: Any) -> Any:
        if name.endswith(".state") and self.hidden:
            self.hidden -= 1
            raise UnknownTopicError("no such topic")
        return super().describe_topic(name)


def test_a_worker_waits_for_the_state_topic_that_somebody_has_just_created() -> None:
    Hall(paper=Cluster(hidden=3)).worker.close()


def test_a_state_topic_that_never_shows_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "_APPEAR_SECONDS", 0.2)
    with pytest.raises(RetriableError, match="safe"):
        topics._prepare_state(Cluster(hidden=1_000), "portcullis.safe.state", 1, WorkerSettings())  # type: ignore[arg-type]
