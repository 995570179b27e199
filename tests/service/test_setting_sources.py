import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from service.kafka import KafkaSettings
from service.logs import Repeats
from service.settings import SettingsError, read_settings_file, settings_of
from service.worker.settings import WorkerSettings

SECRET = "hunter2-marked"


@pytest.fixture
def environment() -> Iterator[Any]:
    """An environment of its own: what a settings file puts there is gone after the test."""
    with patch.dict(os.environ):
        for name in [name for name in os.environ if name.startswith("PORTCULLIS_")]:
            del os.environ[name]
        yield os.environ


def test_flags_go_before_the_environment_and_that_before_the_file(tmp_path: Path, environment: Any) -> None:
    file = tmp_path / "worker.env"
    file.write_text(
        "PORTCULLIS_WORKER_COMMIT_INTERVAL=3\nPORTCULLIS_WORKER_COMMIT_EVENTS=7\nPORTCULLIS_WORKER_POLL_RECORDS=5\n"
    )
    environment["PORTCULLIS_WORKER_COMMIT_EVENTS"] = "8"
    read_settings_file(file)
    settings = settings_of(WorkerSettings, {"commit_interval": 1.5, "poll_records": None})
    assert (settings.commit_interval, settings.commit_events, settings.poll_records) == (1.5, 8, 5)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"no\.env does not exist"):
        read_settings_file(tmp_path / "no.env")


def test_an_error_names_the_setting_and_not_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTCULLIS_KAFKA_SASL_MECHANISM", SECRET)
    with pytest.raises(SettingsError) as caught:
        settings_of(KafkaSettings, {"sasl_password": SECRET})
    assert "sasl_mechanism (PORTCULLIS_KAFKA_SASL_MECHANISM)" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_client_that_repeats_itself_is_heard_once_in_a_while() -> None:
    filter_ = Repeats()

    def passes(name: Any, message: Any) -> Any:
        return filter_.filter(logging.LogRecord(name, logging.ERROR, "", 0, message, (), None))

    assert [passes("service.kafka.confluent", f"FAIL connection {n}") for n in range(3)] == [True, False, False]
    assert passes("service.kafka.confluent", "OFFSET reset")
    assert all(passes("service.worker.loop", "partition stopped") for _ in range(3))
