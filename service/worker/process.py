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
from service.kafka import FatalError, InstanceTakenError, KafkaSettings, RetriableError, connect
from service.logs import fault, log_to_stderr
from service.policy import load_policy
from service.worker.loop import Worker
from service.worker.metrics import Metrics
from service.worker.settings import WorkerSettings
from service.worker.status import StatusServer
from service.worker.stream import stream_of
from service.worker.warmup import spare_the_collector, warm_up

log = logging.getLogger(__name__)

BROKEN = 1
WRONG_USE = 2
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_STOP_SECONDS = 45.0
_GRACE_SECONDS = 5.0
_LONGEST_PAUSE = 30.0


@dataclass(frozen=True)
class Job:
    """What one worker process does."""

    policy: str
    kafka: KafkaSettings
    settings: WorkerSettings


def work(job: Job) -> None:
    """Run one worker in this process until SIGTERM or SIGINT."""
    stop = threading.Event()
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell)
    for number in _STOP_SIGNALS:
        signal.signal(number, lambda *_: None)
    threading.Thread(target=_await_the_end, args=(told, stop), name="signals", daemon=True).start()
    stream = stream_of(load_policy(job.policy), job.settings)
    warm_up(stream)
    spare_the_collector()
    metrics = Metrics(stream)
    server = StatusServer(metrics, job.settings.status_host, job.settings.status_port)
    log.info("%s: status at http://%s:%d/", stream.name, job.settings.status_host, server.port)
    try:
        Worker(stream, connect(job.kafka), job.settings, metrics).run(stop)
    finally:
        server.close()


def _await_the_end(told: int, stop: threading.Event) -> None:
    """Pass a signal on, and end the process when that does not help.

    Python's own handlers wait for the main thread, which may be inside a client that does not come back. Nothing is
    lost with a process that is ended: what is durable decides.
    """
    os.read(told, 1)
    stop.set()
    time.sleep(_STOP_SECONDS)
    log.error("the worker did not stop within %.0f s and is ended", _STOP_SECONDS)
    os._exit(BROKEN)


def supervise(jobs: Sequence[Job]) -> int:
    """Run one process per job and replace those that die; the exit status when told to stop."""
    stop = threading.Event()
    for number in _STOP_SIGNALS:
        signal.signal(number, lambda *_: stop.set())
    slots = [_Slot(job, place) for place, job in enumerate(jobs)]
    status = 0
    while not stop.is_set() and status == 0:
        for slot in slots:
            status = status or slot.look()
        stop.wait(0.2)
    for slot in slots:
        slot.stop()
    return status


class _Slot:
    """One worker process and its successors."""

    def __init__(self, job: Job, place: int) -> None:
        self._job = job
        self._name = f"worker-{place}"
        self._pause = 0.0
        self._ready_at = 0.0
        self._started_at = 0.0
        self._process: BaseProcess | None = None

    def look(self) -> int:
        """Start the process when it is due; the exit status of one that can never work."""
        now = time.monotonic()
        if self._process is None:
            if now >= self._ready_at:
                context = multiprocessing.get_context("spawn")
                self._process = context.Process(target=_child, args=(self._job,), name=self._name)
                self._process.start()
                self._started_at = now
            return 0
        code = self._process.exitcode
        if code is None:
            return 0
        self._process = None
        if code == WRONG_USE:
            return code
        # One that ran for a while starts again at once, one that dies young waits longer each time.
        self._pause = 0.5 if now - self._started_at > 60 else min(_LONGEST_PAUSE, max(0.5, self._pause * 2))
        self._ready_at = now + self._pause
        log.error("%s ended with %s, starting another in %.1f s", self._name, code, self._pause)
        return 0

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


def _child(job: Job) -> None:
    log_to_stderr("%(asctime)s %(levelname)s %(processName)s %(message)s")
    try:
        work(job)
    except PortcullisError as error:
        log.error("%s", error)  # noqa: TRY400 - the message says it all, a traceback might quote data
        # By a broker that comes back, by a new client, or by whoever ends the other process of this name.
        curable = isinstance(error, RetriableError | FatalError | InstanceTakenError)
        raise SystemExit(BROKEN if curable else WRONG_USE) from None
    except Exception as error:
        if os.environ.get("PORTCULLIS_TRACEBACK") == "1":
            raise
        log.error("%s", fault(error))  # noqa: TRY400 - a traceback might quote data
        raise SystemExit(BROKEN) from None
