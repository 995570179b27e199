"""How a worker process ends decides whether its supervisor starts another."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError
from typer import Exit

from service.exit_status import DONE, INTERNAL, REFUSED, UNAVAILABLE, WRONG_USE
from service.kafka import DeniedError, FatalError, InstanceTakenError, KafkaSettings, RetriableError
from service.ports import PortError
from service.settings import SettingsError
from service.worker import command, process
from service.worker.settings import WorkerSettings
from service.worker.topics import TopicError


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (RetriableError("the broker is away"), UNAVAILABLE),
        (FatalError("the client broke"), UNAVAILABLE),
        (TopicError("there is no such topic"), UNAVAILABLE),
        (PortError("another program listens there"), UNAVAILABLE),
        (DeniedError("not you"), REFUSED),
        (InstanceTakenError("another worker has this name"), WRONG_USE),
        (SettingsError("commit_interval: must be greater than 0"), WRONG_USE),
    ],
)
def test_a_process_tells_its_supervisor_how_it_ended(monkeypatch: pytest.MonkeyPatch, error: Any, status: Any) -> None:
    def work(duty: Any) -> None:
        raise error

    monkeypatch.setattr(process, "work", work)
    monkeypatch.setattr(process, "log_to_stderr", lambda _: None)
    with pytest.raises(SystemExit) as ended:
        process._child(process.Duty("orders.yaml", KafkaSettings(), WorkerSettings()))
    assert ended.value.code == status


class Part:
    """A process on paper: runs until it is told to stop, or ends with its status at once."""

    def __init__(self, status: Any, started: Any) -> None:
        self.exitcode, self._started = None, started
        self._status = status

    def start(self) -> None:
        self._started.append(self)
        self.exitcode = self._status

    def terminate(self) -> None:
        self.exitcode = self.exitcode or 0  # type: ignore[assignment, redundant-expr]

    def join(self, _: Any) -> None:
        pass


@pytest.fixture
def supervise(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Supervise parts that end with these statuses (None: runs) until something is true; what was started, and how."""

    def supervise(*statuses: Any, until: Any = lambda started: False) -> Any:
        started, duties = [], [process.Duty(str(n), KafkaSettings(), WorkerSettings()) for n in range(len(statuses))]  # type: ignore[var-annotated]
        paper = SimpleNamespace(Process=lambda args, **_: Part(statuses[int(args[0].policy)], started))
        monkeypatch.setattr(process.multiprocessing, "get_context", lambda _: paper)  # type: ignore[attr-defined]
        look = process._Supervised.look

        def watched(slot: Any) -> None:
            look(slot)
            if until(started):
                signal.raise_signal(signal.SIGTERM)

        monkeypatch.setattr(process._Supervised, "look", watched)
        monkeypatch.setattr(process, "_LONGEST_PAUSE", 0.0)
        return process.supervise(duties), started

    before = {number: signal.getsignal(number) for number in process._STOP_SIGNALS}
    yield supervise
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("status", [WRONG_USE, REFUSED, UNAVAILABLE, INTERNAL, -9])
def test_a_process_that_ends_is_tried_again_and_ends_no_other(supervise: Any, status: Any) -> None:
    status, started = supervise(None, status, until=lambda started: len(started) >= 4)
    assert status == 0
    assert [part._status for part in started[:4]] == [None, *3 * [started[1]._status]]


def test_a_supervisor_ends_when_somebody_has_to_help_every_process(supervise: Any) -> None:
    status, started = supervise(REFUSED, WRONG_USE)
    assert status == REFUSED
    assert len(started) == 2


def test_a_fault_of_ours_is_told_without_what_it_says_which_might_be_a_value(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    def work(duty: Any) -> None:
        raise ValueError("could not convert 's3cr3t'")

    monkeypatch.delenv("PORTCULLIS_TRACEBACK", raising=False)
    monkeypatch.setattr(process, "work", work)
    monkeypatch.setattr(process, "log_to_stderr", lambda _: None)
    with pytest.raises(SystemExit) as ended:
        process._child(process.Duty("orders.yaml", KafkaSettings(), WorkerSettings()))
    assert ended.value.code == INTERNAL
    assert "internal error: ValueError in" in caplog.text
    assert "s3cr3t" not in caplog.text + "".join(capfd.readouterr())


STUCK = """
import ctypes
from service.kafka import KafkaSettings
from service.worker import command, process
from service.worker.settings import WorkerSettings

class Stuck:
    def __init__(self, *_):
        pass

    def open(self, stop):
        return PHASE == "open" and self.hang()

    def run(self, stop):
        self.hang()

    def hang(self):
        print("running", flush=True)
        # As in a client's library that does not come back: no Python runs in this thread, and no signal wakes it.
        mutex = ctypes.create_string_buffer(64)
        for _ in range(2):
            ctypes.CDLL(None).pthread_mutex_lock(mutex)

process.Worker, process._STOP_SECONDS, process._EMPTY_SECONDS = Stuck, 1.0, 1.0
process.work(process.Duty("examples/orders/policy.yaml", KafkaSettings(), WorkerSettings(status_port=0)))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sign", "phase", "status"),
    [
        (signal.SIGTERM, "run", UNAVAILABLE),
        (signal.SIGINT, "run", UNAVAILABLE),
        # A broker that says nothing is asked for half a minute: nobody has to wait for that who holds nothing.
        (signal.SIGTERM, "open", DONE),
    ],
)
def test_a_worker_that_is_stuck_in_its_client_ends_when_told_to(sign: Any, phase: str, status: int) -> None:
    program = f"PHASE = {phase!r}\n{STUCK}"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as worker:
        try:
            assert worker.stdout.readline() == "running\n"  # type: ignore[union-attr]
            worker.send_signal(sign)
            assert worker.wait(240) == status
        finally:
            worker.kill()


def test_every_process_has_a_name_and_a_port_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    monkeypatch.setattr(command, "supervise", lambda duties: started.extend(duties) or 0)  # type: ignore[func-returns-value, redundant-expr]
    monkeypatch.setattr(command, "work", started.append)
    monkeypatch.setattr(command, "log_to_stderr", lambda: None)
    monkeypatch.setenv("PORTCULLIS_WORKER_INSTANCE", "pod-7")
    with pytest.raises(Exit):
        command.run_command(["examples/orders/policy.yaml"], workers=3, status_port=9_500)
    assert [duty.settings.instance for duty in started] == ["pod-7-0", "pod-7-1", "pod-7-2"]
    assert [duty.settings.status_port for duty in started] == [9_500, 9_501, 9_502]
    started.clear()
    command.run_command(["examples/orders/policy.yaml"])
    assert [duty.settings.instance for duty in started] == ["pod-7"]
    started.clear()
    monkeypatch.delenv("PORTCULLIS_WORKER_INSTANCE")
    with pytest.raises(Exit):
        command.run_command(["examples/orders/policy.yaml"], workers=2, status_port=0)
    assert {(duty.settings.instance, duty.settings.status_port) for duty in started} == {(None, 0)}


@pytest.mark.parametrize("name", ["", "two words", "ä", "x" * 201])
def test_a_name_that_kafka_does_not_take_is_refused(name: Any) -> None:
    with pytest.raises(ValidationError, match="instance"):
        WorkerSettings(instance=name)
