"""One broker for all processes of a run: started when the first asks, once, and stopped at the end."""

from typing import Any, ClassVar

import pytest

from tests.service.kafka.real_kafka import RealKafka
from tests.shared_kafka import SharedKafka, shared_kafka


class Counted(RealKafka):
    """Counts instead of starting anything."""

    calls: ClassVar[list[str]] = []

    def __enter__(self) -> Any:
        self.calls.append("start")
        return self

    def __exit__(self, *_: object) -> None:
        self.calls.append("stop")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(Counted, "calls", [])
    return Counted.calls


def test_it_starts_once_and_stops_with_the_run(calls: Any) -> None:
    shared = SharedKafka(lambda: Counted().__enter__())
    assert calls == []
    first, second = shared_kafka(*shared.address), shared_kafka(*shared.address)
    assert (first.bootstrap, first.ca_file) == (second.bootstrap, second.ca_file)
    assert calls == ["start"]
    shared.close()
    assert calls == ["start", "stop"]


def test_nobody_asks_and_nothing_starts(calls: Any) -> None:
    SharedKafka(lambda: Counted().__enter__()).close()
    assert calls == []


def test_whoever_asks_hears_why_it_does_not_start() -> None:
    def fail() -> None:
        raise RuntimeError("Kafka did not start")

    shared = SharedKafka(fail)  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(RuntimeError, match="RuntimeError: Kafka did not start"):
            shared_kafka(*shared.address)
    shared.close()
