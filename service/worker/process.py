"""Worker processes: one loop in this process, or several under a supervisor that replaces those that die."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess

from microdata import PortcullisError
from service.exit_status import DONE, INTERNAL, REFUSED, UNAVAILABLE, WRONG_USE, status_of
from service.kafka import KafkaSettings, connect
from service.lean_start import leave_out_what_nobody_asked_for
from service.logs import fault, log_to_stderr
from service.policy import load_policy
from service.ports import address_of
from service.worker.allocator import give_back_large_blocks
from service.worker.loop import Worker
from service.worker.metrics import PATIENCE, Metrics
from service.worker.settings import WorkerSettings
from service.worker.status import StatusServer
from service.worker.stream import stream_of
from service.worker.warmup import spare_the_collector, warm_up

log = logging.getLogger(__name__)

FINAL = frozenset({WRONG_USE, REFUSED})
"""Exit statuses of a process that somebody has to help; another one would end in the same way."""
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_STOP_SECONDS = 45.0
_EMPTY_SECONDS = 2.0
"""For so long a process may go on that has taken nothing yet."""
_GRACE_SECONDS = 5.0
_LONGEST_PAUSE = 30.0


@dataclass(frozen=True)
class Duty:
    """What one worker process does."""

    policy: str
    kafka: KafkaSettings
    settings: WorkerSettings


def work(duty: Duty) -> None:
    """Run one worker in this process until SIGTERM or SIGINT."""
    give_back_large_blocks()
    stop, joins = threading.Event(), threading.Event()
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell)
    for number in _STOP_SIGNALS:
        signal.signal(number, lambda *_: None)
    threading.Thread(target=_await_the_end, args=(told, stop, joins), name="signals", daemon=True).start()
    leave_out_what_nobody_asked_for()
    settings = duty.settings
    stream = stream_of(load_policy(duty.policy), settings)
    metrics = Metrics(stream, _patience(duty.kafka))
    worker = Worker(stream, connect(duty.kafka), settings, metrics)
    server = StatusServer(metrics, settings.status_host, settings.status_port, settings.status_names)
    log.info("%s: status at http://%s/", stream.name, address_of(settings.status_host, server.port))
    try:
        # What is missing is told before the compiler is waited for, and nobody joins before it is done.
        if worker.open(stop):
            metrics.starts("its kernels are being compiled")
            warm_up(stream)
            spare_the_collector()
        joins.set()
        worker.run(stop)
    finally:
        server.close()


def _patience(kafka: KafkaSettings) -> float:
    """How long one step of the loop may take: twice as long as a broker may, and a while to work."""
    longest = max(kafka.request_timeout_ms, kafka.transaction_timeout_ms) / 1000
    return max(PATIENCE, 30.0 + 2 * longest)


def _await_the_end(told: int, stop: threading.Event, joins: threading.Event) -> None:
    """Pass a signal on, and end the process when that does not help.

    Python's own handlers wait for the main thread, which may be inside a client that does not come back, or in the
    compiler. Nothing is lost with a process that is ended: what is durable decides. One that has not joined the others
    yet has nobody to say goodbye to, so it is not waited for.
    """
    os.read(told, 1)
    stop.set()
    if not joins.wait(_EMPTY_SECONDS):
        log.info("told to stop before anything was taken")
        os._exit(DONE)
    time.sleep(_STOP_SECONDS)
    log.error("the worker did not stop within %.0f s and is ended", _STOP_SECONDS)
    os._exit(UNAVAILABLE)


def supervise(duties: Sequence[Duty]) -> int:
    """Run one process per duty and replace those that die; the exit status when told to stop."""
    stop = threading.Event()
    for number in _STOP_SIGNALS:
        signal.signal(number, lambda *_: stop.set())
    processes = [_Supervised(duty, number) for number, duty in enumerate(duties)]
    while not stop.is_set():
        for process in processes:
            process.look()
        if all(process.ended_with in FINAL for process in processes):
            return int(processes[0].ended_with or 0)
        stop.wait(0.2)
    for process in processes:
        process.stop()
    return 0


class _Supervised:
    """One worker process and its successors."""

    def __init__(self, duty: Duty, number: int) -> None:
        self._duty = duty
        self._name = f"worker-{number}"
        self.ended_with: int | None = None
        """Exit status of the last process, None while one runs."""
        self._pause = 0.0
        self._ready_at = 0.0
        self._started_at = 0.0
        self._process: BaseProcess | None = None

    def look(self) -> None:
        """Start the process when it is due.

        One that somebody has to help is tried again too: what the broker refuses today it may allow tomorrow, and the
        streams of the other processes are none of its business.
        """
        now = time.monotonic()
        if self._process is None:
            if now >= self._ready_at:
                context = multiprocessing.get_context("spawn")
                self._process = context.Process(target=_child, args=(self._duty,), name=self._name)
                self._process.start()
                self._started_at, self.ended_with = now, None
            return
        self.ended_with = self._process.exitcode
        if self.ended_with is None:
            return
        self._process = None
        # One that ran for a while starts again at once, one that dies young waits longer each time.
        young = min(_LONGEST_PAUSE, max(0.5, self._pause * 2))
        self._pause = _LONGEST_PAUSE if self.ended_with in FINAL else 0.5 if now - self._started_at > 60 else young
        self._ready_at = now + self._pause
        log.error(
            "%s (%s) ended with %s, starting another in %.1f s",
            self._name,
            self._duty.policy,
            self.ended_with,
            self._pause,
        )

    def stop(self) -> None:
        """Ask the process to stop, and insist when it takes too long."""
        if self._process is None:
            return
        self._process.terminate()
        self._process.join(_STOP_SECONDS + _GRACE_SECONDS)
        if self._process.exitcode is None:
            log.error("%s did not stop within %.0f s and is killed", self._name, _STOP_SECONDS + _GRACE_SECONDS)
            self._process.kill()
            self._process.join()


def _child(duty: Duty) -> None:
    log_to_stderr("%(asctime)s %(levelname)s %(processName)s %(message)s")
    try:
        work(duty)
    except PortcullisError as error:
        log.error("%s", error)  # noqa: TRY400 - the message says it all, a traceback might quote data
        raise SystemExit(status_of(error)) from None
    except Exception as error:
        if os.environ.get("PORTCULLIS_TRACEBACK") == "1":
            raise
        log.error("%s", fault(error))  # noqa: TRY400 - a traceback might quote data
        raise SystemExit(INTERNAL) from None
