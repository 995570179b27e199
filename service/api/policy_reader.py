"""Policies that came by HTTP are read in processes of their own, within limits of time and memory.

Bounds on what a policy may hold keep each well below these limits. They are there for what the bounds have missed: it
ends a process that is quickly replaced, and nobody who asks for something else waits for it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import multiprocessing
import resource
import signal
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal, TypeAlias

from fastapi.concurrency import run_in_threadpool

from service.api.given_policy import given_policy
from service.jobs.process import die_with_parent
from service.policy import PolicyError, PolicyProblem, choose, open_to, parse_policy
from service.problems import Problem, ProblemError

log = logging.getLogger(__name__)

_PROCESSES = 2
_WAIT_SECONDS = 30.0
"""How long a policy waits for its turn, and how long it may take in all on a machine that is busy."""
_START_SECONDS = 120.0
"""How long a process may take until it can read: the first one loads everything."""
_MOST_WAITING = 64 << 20
"""Bytes of policies and hierarchies that wait for their turn."""


@dataclass(frozen=True)
class GivenPolicy:
    """What the service needs to know of a policy that can be used."""

    name: str
    kind: Literal["table", "stream", "audit"]
    models: Mapping[str, float]
    """What is asked, by the label of each privacy model."""
    fingerprint: str
    text: str
    """As JSON that needs no file beside it."""
    purposes: tuple[str, ...]
    """Those that the token may ask for."""


@dataclass(frozen=True)
class _Question:
    raw: bytes
    hierarchies: Mapping[str, bytes]
    for_table: bool
    """Whether it must have an algorithm for tables."""
    stored: bool
    """Whether it was read before and is kept as the JSON that came of it: with its hierarchies it may be longer."""
    purpose: str | None
    """Which of its purposes is asked for, where it must have an algorithm for tables."""
    who: str | None
    """The token that asks; None for those that may ask for every purpose."""


@dataclass(frozen=True)
class _Unusable:
    problems: tuple[PolicyProblem, ...]


@dataclass(frozen=True)
class _TooMuch:
    """Reading took more of something than it may."""

    of: str


@dataclass(frozen=True)
class _Fault:
    """A fault of ours, which the process has told to the log."""


_Answer: TypeAlias = GivenPolicy | _Unusable | Problem | _TooMuch | _Fault


class PolicyReader:
    """Reads policies, one of each caller at a time: who sends many waits behind himself."""

    def __init__(self, *, seconds: float, memory: int) -> None:
        self._free: asyncio.Queue[_Process] = asyncio.Queue()
        self._processes = [_Process(seconds, memory) for _ in range(_PROCESSES)]
        for process in self._processes:
            self._free.put_nowait(process)
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._waiting = 0

    async def read(
        self,
        caller: str,
        raw: bytes,
        hierarchies: Mapping[str, bytes] | None = None,
        *,
        for_table: bool = False,
        stored: bool = False,
        purpose: str | None = None,
        who: str | None = None,
    ) -> GivenPolicy:
        """The policy in this YAML or JSON text; raises `PolicyError` where it cannot be used."""
        question = _Question(raw, hierarchies or {}, for_table, stored, purpose, who)
        size = len(raw) + sum(map(len, question.hierarchies.values()))
        if self._waiting + size > _MOST_WAITING:
            raise _busy()
        self._waiting += size
        try:
            async with asyncio.timeout(_WAIT_SECONDS) as until, self._turns[caller]:
                process = await self._free.get()
                until.reschedule(None)
                try:
                    answer = await run_in_threadpool(process.ask, question)
                finally:
                    self._free.put_nowait(process)
        except TimeoutError:
            raise _busy() from None
        finally:
            self._waiting -= size
        return _policy(answer)

    def close(self) -> None:
        """End all processes."""
        for process in self._processes:
            process.end()


def _busy() -> ProblemError:
    return ProblemError("not-ready", "Too many policies wait to be read; try again.")


def _policy(answer: _Answer) -> GivenPolicy:
    match answer:
        case GivenPolicy():
            return answer
        case _Unusable():
            raise PolicyError(answer.problems)
        case _TooMuch():
            raise PolicyError(
                [
                    PolicyProblem(
                        "", f"reading it takes more than {answer.of}; make its hierarchies smaller, or its numbers"
                    )
                ]
            )
        case Problem():
            raise ProblemError.of_problem(answer)
        case _Fault():
            raise RuntimeError("a policy could not be read")


class _Process:
    """One process, started when it is first needed and replaced when it has gone too far."""

    def __init__(self, seconds: float, memory: int) -> None:
        self._seconds = seconds
        self._memory = memory
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None

    def ask(self, question: _Question) -> _Answer:
        """Let it read a policy."""
        try:
            pipe = self._started()
            pipe.send(question)
            if pipe.poll(_WAIT_SECONDS):
                answer: _Answer = pipe.recv()
                if isinstance(answer, _TooMuch):
                    self.end()
                return answer
        except (EOFError, OSError):
            return self._died()
        self.end()
        raise _busy()

    def end(self) -> None:
        """End it, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None

    def _started(self) -> Connection:
        if self._process is not None and self._process.exitcode is not None:
            self.end()
        if self._pipe is None:
            # Forked from a process that has loaded everything and does nothing: a new one takes milliseconds.
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload([__name__])
            self._pipe, theirs = context.Pipe()
            arguments = (theirs, self._seconds, self._memory)
            self._process = context.Process(target=serve_policies, args=arguments, name="policies", daemon=True)
            self._process.start()
            theirs.close()
            if self._pipe.poll(_START_SECONDS):
                self._pipe.recv()
        return self._pipe

    def _died(self) -> _Answer:
        process = self._process
        if process is not None:
            process.join(1.0)
        code = None if process is None else process.exitcode
        self.end()
        if code == -signal.SIGXCPU:
            return _TooMuch(f"{self._seconds:g} s")
        log.error("a process that reads policies ended with status %s", code)
        return _Fault()


def serve_policies(pipe: Connection, seconds: float, memory: int) -> None:
    """Main function of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    threading.Thread(target=die_with_parent, daemon=True).start()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit(resource.RLIMIT_AS, _address_space() + memory)
    gc.freeze()
    gc.disable()  # a tree of 200,000 labels is looked through over and over while it grows, and holds no cycle
    pipe.send("ready")
    while True:
        try:
            question = pipe.recv()
        except (EOFError, OSError):
            return
        _limit(resource.RLIMIT_CPU, int(time.process_time() + seconds) + 1)
        pipe.send(_answer(question, memory))
        _limit(resource.RLIMIT_CPU, resource.RLIM_INFINITY)
        gc.collect()


def _limit(what: int, most: int) -> None:
    resource.setrlimit(what, (most, resource.getrlimit(what)[1]))


def _address_space() -> int:
    """Bytes that the process has reserved so far: its libraries take much more than they use."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    return 4 << 30


def _answer(question: _Question, memory: int) -> _Answer:
    try:
        if question.stored:
            policy, text = parse_policy(json.loads(question.raw)), question.raw.decode()
        else:
            policy, text = given_policy(question.raw, question.hierarchies)
        purposes = open_to(json.loads(text), question.who) if policy.purposes else ()
        if question.for_table:
            if policy.purposes or question.purpose is not None:
                mapping = choose(json.loads(text), question.purpose, question.who)
                policy, text = parse_policy(mapping), json.dumps(mapping, ensure_ascii=False)
            policy.algorithm()  # refuses a policy for streams
        models = {model.label: float(model.asked) for model in policy.models()}
        return GivenPolicy(policy.name, policy.kind, models, policy.fingerprint(), text, tuple(purposes))
    except PolicyError as error:
        return _Unusable(error.problems)
    except ProblemError as error:
        return error.problem
    except MemoryError:
        return _TooMuch(f"{memory >> 20} MB")
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not be shown: it may quote the policy
        place = traceback.extract_tb(error.__traceback__)[-1]
        log.error("policy: %s in %s, line %s", type(error).__name__, place.filename, place.lineno)  # noqa: TRY400
        return _Fault()
