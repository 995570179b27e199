"""The runner: takes jobs from the queue, gives them to processes, and keeps the promises about them.

One thread of the service. It renews the leases of what it runs (a busy process cannot be relied on for that), passes
cancellations on and kills what does not listen, notices processes that die, and cleans up what is over.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

from sqlalchemy.exc import SQLAlchemyError

from service.jobs.files import JobFiles, new_id
from service.jobs.job import Job, State
from service.jobs.process import STOP, STOP_SEARCH, Done, Failed, Message, Ready, Step, Stopped, serve_tasks
from service.jobs.store import JobStore, LedgerEntry
from service.jobs.work import Result, Task
from service.ledger import IncomparableError, Released
from service.problems import Problem, problem

log = logging.getLogger(__name__)

_LISTEN_SECONDS = 0.5
"""A job that is cancelled may take so long to hear it before its process is killed."""
_LOOK_SECONDS = 0.25
_SWEEP_SECONDS = 2.0
_RESTART_SECONDS = 1.0
_TIDY_SECONDS = 30.0


@dataclass(frozen=True)
class RunnerLimits:
    """What jobs may use."""

    processes: int
    memory: int
    seconds: float
    lease: float
    keep: float
    """Seconds until the result of a job is deleted."""
    columns: int
    table_bytes: int


@dataclass(frozen=True)
class _Outcome:
    """How a job ended."""

    state: State
    problem: Problem | None = None
    result: Result | None = None


class JobRunner:
    """Runs jobs until it is stopped. `ended` hears of each with its state and how long it took."""

    def __init__(
        self, store: JobStore, files: JobFiles, limits: RunnerLimits, ended: Callable[[str, float], None]
    ) -> None:
        self._store = store
        self._files = files
        self._limits = limits
        self._ended = ended
        self._name = new_id()
        self._stopping = False
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._woken, False)
        self._seats = [_Seat(limits.memory) for _ in range(limits.processes)]
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)
        self._due = dict.fromkeys(("renew", "sweep", "tidy"), 0.0)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Look at the queue now: something has changed."""
        with suppress(BlockingIOError):  # a full pipe wakes as well
            os.write(self._wake, b"!")

    def stop(self) -> None:
        """Stop; jobs that run go back into the queue."""
        self._stopping = True
        self.wake()
        self._thread.join()
        os.close(self._wake)
        os.close(self._woken)

    def ready(self) -> int:
        """Number of processes that wait for a task or work on one."""
        return sum(seat.ready for seat in self._seats) if self._thread.is_alive() else 0

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._cycle()
            except (SQLAlchemyError, OSError) as error:
                # Its message may quote a statement with its values.
                log.error("jobs: %s; trying again", type(error).__name__)  # noqa: TRY400
                time.sleep(1.0)
        for seat in self._seats:
            seat.kill()
            if seat.job is not None:
                self._store.give_back(seat.job)
                self._files.drop_result(seat.job.id, seat.job.attempts)

    def _cycle(self) -> None:
        for seat in self._seats:
            seat.start()
        self._look_at_leases()  # first: after a pause of the machine our own would look like those of the dead
        if self._is_due("sweep", _SWEEP_SECONDS):
            self._sweep()
        for seat in self._seats:
            if seat.is_free() and not self._claim(seat):
                break
        objects = [self._woken, *(handle for seat in self._seats for handle in seat.handles())]
        if self._woken in wait(objects, _LOOK_SECONDS):
            os.read(self._woken, 1 << 16)
        for seat in self._seats:
            self._listen(seat)

    def _is_due(self, what: str, seconds: float) -> bool:
        now = time.monotonic()
        if now < self._due[what]:
            return False
        self._due[what] = now + seconds
        return True

    def _claim(self, seat: _Seat) -> bool:
        job = self._store.claim(self._name, self._limits.lease)
        if job is None:
            return False
        self._files.drop_result(job.id, job.attempts - 1)  # what a runner that died had begun
        try:
            task = self._task(job)
        except OSError:
            self._store.give_back(job)
            raise
        seat.give(job, task)
        return True

    def _task(self, job: Job) -> Task:
        upload = self._files.upload(job.id)
        return Task(
            kind=job.kind,
            policy=job.policy,
            inputs={part: str(upload / name) for part, name in job.inputs.items()},
            out=str(self._files.new_result(job.id, job.attempts)),
            by=job.token,
            most_columns=self._limits.columns,
            most_bytes=self._limits.table_bytes,
        )

    def _look_at_leases(self) -> None:
        busy = [seat for seat in self._seats if seat.job is not None]
        if not busy:
            return
        if self._is_due("renew", self._limits.lease / 4):
            self._store.renew(self._name, self._limits.lease, [seat.job.id for seat in busy if seat.job is not None])
        held = {(one.id, one.attempt): one for one in self._store.held(self._name)}
        for seat in busy:
            assert seat.job is not None
            asked = held.get((seat.job.id, seat.job.attempts))
            if asked is None:
                # Somebody took us for dead and the job is not ours any more.
                seat.kill()
                self._files.drop_result(seat.job.id, seat.job.attempts)
                seat.job = None
                continue
            if asked.stop_search:
                seat.stop_search()
            if asked.cancel:
                seat.cancel()
            elif seat.busy_seconds() > self._limits.seconds:
                seat.kill()
                seat.outcome = _Outcome("failed", problem("job-too-long", f"The limit is {self._limits.seconds:g} s."))

    def _listen(self, seat: _Seat) -> None:
        while (message := seat.hear()) is not None:
            self._heard(seat, message)
        if seat.outcome is None and seat.too_deaf():
            seat.kill()
            seat.outcome = _Outcome("cancelled")
        code = seat.died()
        if code is not None and seat.outcome is None:
            how = f"signal {-code}" if code < 0 else f"exit status {code}"
            reason = f"It ended with {how}; signal 9 often means that the machine ran out of memory."
            seat.outcome = _Outcome("failed", problem("job-killed", reason))
        if seat.job is None:
            seat.outcome = None
        elif seat.outcome is not None:
            self._end(seat, seat.job, seat.outcome)

    def _heard(self, seat: _Seat, message: Message) -> None:
        match message:
            case Ready():
                seat.ready = True
                log.info("a job process is ready after %.1f s", seat.age())
            case Step():
                if seat.job is not None and seat.should_tell(message.phase):
                    self._store.progress(seat.job, message.phase, message.done, message.total)
            case Done():
                seat.outcome = _Outcome("succeeded", result=message.result)
            case Failed():
                seat.outcome = _Outcome("failed", message.problem)
                seat.ready = seat.ready and not message.last
            case Stopped():
                seat.outcome = _Outcome("cancelled")

    def _end(self, seat: _Seat, job: Job, outcome: _Outcome) -> None:
        """Write down how a job ended. Where the database does not answer, the outcome is kept and this is repeated."""
        state = outcome.state
        try:
            own = self._finish(job, outcome)
        except IncomparableError as error:
            state = "failed"
            own = self._finish(job, _Outcome("failed", problem("incomparable-release", f"Here {error.reason}.")))
        if not own:
            state = "cancelled"
            own = self._store.finish(job, state)
        seat.job = seat.outcome = None
        if state != "succeeded" or not own:
            self._files.drop_result(job.id, job.attempts)
        if own:
            self._files.drop_upload(job.id)
            self._ended(state, seat.busy_seconds())
            log.info("a job %s after %.1f s", state, seat.busy_seconds())

    def _finish(self, job: Job, outcome: _Outcome) -> bool:
        """Write down an outcome, and with a success its release; False where the job is not ours any more."""
        result = outcome.result
        asked = result.release if result else None
        entry = None
        if asked is not None:
            release = Released.now(asked.data_set, asked.policy, asked.purpose, job.token, asked.facts)
            entry = LedgerEntry(release, asked.allow)
        report = result.report if result else None
        return self._store.finish(job, outcome.state, failed=outcome.problem, report=report, release=entry)

    def _sweep(self) -> None:
        for job_id in self._store.take_up():
            self._files.drop(job_id)
        for job_id in self._store.purge(time.time() - self._limits.keep):
            self._files.drop(job_id)
        if self._is_due("tidy", _TIDY_SECONDS):
            self._tidy()

    def _tidy(self) -> None:
        """Delete what a service that died had no time to delete."""
        for job_id in self._store.unknown(list(self._files.left())):
            self._files.drop(job_id)
        for job_id in self._store.over(list(self._files.with_upload())):
            self._files.drop_upload(job_id)


class _Seat:
    """Where one job at a time is done: a process and its successors."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None
        self._since = 0.0
        self._cancelled_at: float | None = None
        self._search_stopped = False
        self._told_at = 0.0
        self._told_phase = ""
        self._started_at = -_RESTART_SECONDS
        self.ready = False
        self.job: Job | None = None
        self.outcome: _Outcome | None = None

    def start(self) -> None:
        """Start a process where there is none; one that dies at once must not be started all the time."""
        if self._process is not None or self.age() < _RESTART_SECONDS:
            return
        self._started_at = time.monotonic()
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve_tasks, args=(theirs, self._memory), name="job", daemon=True)
        self._process.start()
        theirs.close()

    def handles(self) -> list[Connection | int]:
        """What to wait for."""
        if self._pipe is None or self._process is None:
            return []
        return [self._pipe, self._process.sentinel]

    def is_free(self) -> bool:
        """Whether its process waits for a task."""
        return self.ready and self.job is None and self._process is not None and self._process.exitcode is None

    def give(self, job: Job, task: Task) -> None:
        """Let the process do a task."""
        assert self._pipe is not None
        self.job, self._since, self._cancelled_at, self._told_phase = job, time.monotonic(), None, ""
        self._search_stopped = False
        with suppress(OSError):  # it died while it waited: `died` tells
            self._pipe.send(task)

    def hear(self) -> Message | None:
        """The next thing that the process has said."""
        if self._pipe is None:
            return None
        try:
            return self._pipe.recv() if self._pipe.poll() else None
        except (EOFError, OSError):
            return None

    def should_tell(self, phase: str) -> bool:
        """Whether progress is worth writing down: every phase, and then a few times a second."""
        now = time.monotonic()
        if phase == self._told_phase and now - self._told_at < _LOOK_SECONDS:
            return False
        self._told_at, self._told_phase = now, phase
        return True

    def age(self) -> float:
        """Seconds since its process was started."""
        return time.monotonic() - self._started_at

    def busy_seconds(self) -> float:
        """For how long it has had its job."""
        return time.monotonic() - self._since

    def stop_search(self) -> None:
        """Ask the process to publish the best that a search has found, which may take as long as publishing takes."""
        if not self._search_stopped:
            self._search_stopped = True
            self._tell(STOP_SEARCH)

    def cancel(self) -> None:
        """Ask the process to stop its task."""
        if self._cancelled_at is None:
            self._cancelled_at = time.monotonic()
            self._tell(STOP)

    def _tell(self, what: str) -> None:
        if self._pipe is not None:
            with suppress(OSError):  # it is dead already: `died` tells
                self._pipe.send(what)

    def too_deaf(self) -> bool:
        """Whether a task goes on although it was cancelled."""
        since = self._cancelled_at
        return self.job is not None and since is not None and time.monotonic() - since > _LISTEN_SECONDS

    def died(self) -> int | None:
        """Exit status of a process that has ended; another one is started in its place."""
        code = None if self._process is None else self._process.exitcode
        if code is not None:
            self.kill()
        return code

    def kill(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None
        self.ready = False
