"""How a worker process ends decides whether its supervisor starts another."""

import pytest

from service.kafka import DeniedError, FatalError, KafkaSettings, RetriableError
from service.worker import process
from service.worker.settings import WorkerSettings
from service.worker.topics import TopicError


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (RetriableError("the broker is away"), process.BROKEN),
        (FatalError("the client broke"), process.BROKEN),
        (TopicError("there is no such topic"), process.WRONG_USE),
        (DeniedError("not you"), process.WRONG_USE),
    ],
)
def test_only_what_repeating_cannot_cure_ends_every_worker(monkeypatch, error, status):
    def work(job):
        raise error

    monkeypatch.setattr(process, "work", work)
    monkeypatch.setattr(process, "log_to_stderr", lambda _: None)
    with pytest.raises(SystemExit) as ended:
        process._child(process.Job("orders.yaml", KafkaSettings(), WorkerSettings()))
    assert ended.value.code == status
