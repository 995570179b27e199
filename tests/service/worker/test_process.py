"""How a worker process ends decides whether its supervisor starts another."""

import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
from pydantic import ValidationError
from typer import Exit

from service.exit_status import INTERNAL, REFUSED, UNAVAILABLE, WRONG_USE
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
def test_a_process_tells_its_supervisor_how_it_ended(monkeypatch, error, status):
    def work(job):
        raise error

    monkeypatch.setattr(process, "work", work)
    monkeypatch.setattr(process, "log_to_stderr", lambda _: None)
    with pytest.raises(SystemExit) as ended:
        process._child(process.Job("orders.yaml", KafkaSettings(), WorkerSettings()))
    assert ended.value.code == status


class Part:
    """A process on paper: runs until it is told to stop, or ends with its status at once."""

    def __init__(self, status, started):
        self.exitcode, self._started = None, started
        self._status = status

    def start(self):
        self._started.append(self)
        self.exitcode = self._status

    def terminate(self):
        self.exitcode = self.exitcode or 0

    def join(self, _):
        pass


@pytest.fixture
def supervise(monkeypatch):
    """Supervise parts that end with these statuses (None: runs) until something is true; what was started, and how."""

    def supervise(*statuses, until=lambda started: False):
        started, jobs = [], [process.Job(str(n), KafkaSettings(), WorkerSettings()) for n in range(len(statuses))]
        paper = SimpleNamespace(Process=lambda args, **_: Part(statuses[int(args[0].policy)], started))
        monkeypatch.setattr(process.multiprocessing, "get_context", lambda _: paper)
        look = process._Slot.look

        def watched(slot):
            look(slot)
            if until(started):
                signal.raise_signal(signal.SIGTERM)

        monkeypatch.setattr(process._Slot, "look", watched)
        monkeypatch.setattr(process, "_LONGEST_PAUSE", 0.0)
        return process.supervise(jobs), started

    before = {number: signal.getsignal(number) for number in process._STOP_SIGNALS}
    yield supervise
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("status", [WRONG_USE, REFUSED, UNAVAILABLE, INTERNAL, -9])
def test_a_process_that_ends_is_tried_again_and_ends_no_other(supervise, status):
    status, started = supervise(None, status, until=lambda started: len(started) >= 4)
    assert status == 0
    assert [part._status for part in started[:4]] == [None, *3 * [started[1]._status]]


def test_a_supervisor_ends_when_somebody_has_to_help_every_process(supervise):
    status, started = supervise(REFUSED, WRONG_USE)
    assert status == REFUSED
    assert len(started) == 2


def test_a_fault_of_ours_is_told_without_what_it_says_which_might_be_a_value(monkeypatch, caplog, capfd):
    def work(job):
        raise ValueError("could not convert 's3cr3t'")

    monkeypatch.delenv("PORTCULLIS_TRACEBACK", raising=False)
    monkeypatch.setattr(process, "work", work)
    monkeypatch.setattr(process, "log_to_stderr", lambda _: None)
    with pytest.raises(SystemExit) as ended:
        process._child(process.Job("orders.yaml", KafkaSettings(), WorkerSettings()))
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
        return True

    def run(self, stop):
        print("running", flush=True)
        # As in a client's library that does not come back: no Python runs in this thread, and no signal wakes it.
        mutex = ctypes.create_string_buffer(64)
        for _ in range(2):
            ctypes.CDLL(None).pthread_mutex_lock(mutex)

process.Worker, process.warm_up, process._STOP_SECONDS = Stuck, lambda _: None, 1.0
process.work(process.Job("examples/orders/policy.yaml", KafkaSettings(), WorkerSettings(status_port=0)))
"""


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_is_stuck_in_its_client_ends_when_told_to(sign):
    with subprocess.Popen([sys.executable, "-c", STUCK], stdout=subprocess.PIPE, text=True) as worker:
        try:
            assert worker.stdout.readline() == "running\n"
            worker.send_signal(sign)
            assert worker.wait(240) == UNAVAILABLE
        finally:
            worker.kill()


def test_every_process_has_a_name_and_a_port_of_its_own(monkeypatch):
    started = []
    monkeypatch.setattr(command, "supervise", lambda jobs: started.extend(jobs) or 0)
    monkeypatch.setattr(command, "work", started.append)
    monkeypatch.setattr(command, "log_to_stderr", lambda: None)
    monkeypatch.setenv("PORTCULLIS_WORKER_INSTANCE", "pod-7")
    with pytest.raises(Exit):
        command.run_command(["examples/orders/policy.yaml"], workers=3, status_port=9_500)
    assert [job.settings.instance for job in started] == ["pod-7-0", "pod-7-1", "pod-7-2"]
    assert [job.settings.status_port for job in started] == [9_500, 9_501, 9_502]
    started.clear()
    command.run_command(["examples/orders/policy.yaml"])
    assert [job.settings.instance for job in started] == ["pod-7"]
    started.clear()
    monkeypatch.delenv("PORTCULLIS_WORKER_INSTANCE")
    with pytest.raises(Exit):
        command.run_command(["examples/orders/policy.yaml"], workers=2, status_port=0)
    assert {(job.settings.instance, job.settings.status_port) for job in started} == {(None, 0)}


@pytest.mark.parametrize("name", ["", "two words", "ä", "x" * 201])
def test_a_name_that_kafka_does_not_take_is_refused(name):
    with pytest.raises(ValidationError, match="instance"):
        WorkerSettings(instance=name)
