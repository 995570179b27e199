"""A job's process: started once, does one task after the other, limited in memory, dies with its parent.

Messages to the process: a `Task`, and while it works `STOP_SEARCH` or `STOP`. Messages from it: `Ready`, `Step`s, then
`Done`, `Failed` or `Stopped`.
"""

from __future__ import annotations

import errno
import logging
import multiprocessing
import os
import resource
import signal
import threading
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import TypeAlias

from microdata import Cancelled
from service.jobs.warmup import warm_up
from service.jobs.work import Result, Task, work
from service.lean_start import leave_out_what_nobody_asked_for
from service.problems import Problem, ProblemError, problem

log = logging.getLogger(__name__)

STOP = "stop"
STOP_SEARCH = "stop search"
"""Publish the best that a search has found so far, or the first that it finds; other work goes on."""
_STEP_SECONDS = 0.1
_NICENESS = 10
"""Jobs give way to whoever answers requests."""


@dataclass(frozen=True)
class Ready:
    """The process waits for a task."""


@dataclass(frozen=True)
class Step:
    """How far the task is."""

    phase: str
    done: int
    total: int


@dataclass(frozen=True)
class Done:
    """The task is done."""

    result: Result


@dataclass(frozen=True)
class Failed:
    """The task failed."""

    problem: Problem
    last: bool = False
    """Whether the process ends with it."""


@dataclass(frozen=True)
class Stopped:
    """The task was stopped because the parent said so."""


Message: TypeAlias = Ready | Step | Done | Failed | Stopped


def serve_tasks(pipe: Connection, memory: int) -> None:
    """Main function of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    threading.Thread(target=die_with_parent, daemon=True).start()
    os.nice(_NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold records
    leave_out_what_nobody_asked_for()
    warm_up()
    pipe.send(Ready())
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):
            return
        if isinstance(task, Task) and not _answer(pipe, task):
            return


def _answer(pipe: Connection, task: Task) -> bool:
    """Do one task; False where the process should not do another."""
    try:
        pipe.send(Done(work(task, _Reporter(pipe))))
    except Cancelled:
        pipe.send(Stopped())
    except ProblemError as error:
        pipe.send(Failed(error.problem))
    except OSError as error:
        kind = "disk-full" if error.errno in {errno.ENOSPC, errno.EDQUOT} else "files-unavailable"
        pipe.send(Failed(problem(kind, "Submit the job again when this has passed.")))
    except MemoryError:
        limit = f"Its process may use {resource.getrlimit(resource.RLIMIT_AS)[0] >> 20} MB."
        pipe.send(Failed(problem("out-of-memory", limit), last=True))
        return False
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not be shown: it may quote a record
        place = traceback.extract_tb(error.__traceback__)[-1]
        log.error("job failed: %s in %s, line %s", type(error).__name__, place.filename, place.lineno)  # noqa: TRY400
        pipe.send(Failed(problem("internal", "This is a fault of Portcullis, please report it.")))
    return True


class _Reporter:
    """Passes progress on, not too often, and hears when to stop."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._phase = ""
        self._at = 0.0
        self._stop_search = False

    def __call__(self, phase: str, done: int, total: int) -> bool:
        while self._pipe.poll():
            if self._pipe.recv() != STOP_SEARCH:
                raise Cancelled
            self._stop_search = True
        now = time.monotonic()
        if phase != self._phase or now - self._at > _STEP_SECONDS:
            self._phase, self._at = phase, now
            self._pipe.send(Step(phase, int(done), int(total)))
        return self._stop_search


def die_with_parent() -> None:
    """Wait for the end of the process that has started this one, and end then."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
