"""Mutation tests: `python -m tests.mutation.run` reports every mutation that the tests do not notice.

Each mutation is made in a scratch copy of the repository, never in the working tree, and the tests that concern it run
there. It is killed if a test fails or does not end in time; otherwise it survives. The exit status is 1 if a mutation
survives that is not declared equivalent, or if one that is declared equivalent is killed.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal, NamedTuple, TypeAlias

from microdata.compile import PACKAGES
from tests.mutation.mutation import Mutation, Target
from tests.mutation.mutations import QUICK, TARGETS

ROOT = Path(__file__).resolve().parents[2]
BASELINE_SECONDS = 900.0
"""How long the tests may take without a mutation, when kernels may have to be compiled."""
SLOWER, MORE_SECONDS = 3.0, 20.0
"""With a mutation, tests may take so many times as long as without one, and some seconds; more is a timeout."""
PASSED = 0
Result: TypeAlias = Literal["killed", "timeout", "survived", "equivalent", "not equivalent"]


@dataclass(frozen=True)
class Job:
    """One mutation, or none: then it is seen whether the tests pass without one."""

    target: Target
    mutation: Mutation | None


class Ended(NamedTuple):
    """How the tests of a job ended."""

    job: Job
    status: int | None
    """pytest's exit status; None after a timeout."""
    seconds: float
    output: str


class Scratch(AbstractContextManager["Scratch"]):
    """A copy of the working tree with a process that runs tests in it."""

    def __init__(self, place: Path, seconds: dict[tuple[tuple[str, ...], bool], float]) -> None:
        """`seconds` says how long tests take without a mutation, for all copies."""
        self.root, self._output = place / "repository", place / "output"
        names = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split("\0")
        kernels = [
            str(one.relative_to(ROOT))
            for package in PACKAGES
            for one in (ROOT / package).glob("**/__pycache__/*.nb[ic]")
        ]
        for name in filter(None, [*names, *kernels]):
            if (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name)
        # By default Python compares times in seconds, and would take the bytecode of a mutation for that of the source.
        checked = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(self.root, quiet=2, invalidation_mode=checked)
        variables = {**os.environ, "PYTHONPATH": str(self.root)}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        self._seconds = seconds
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.mutation.worker", str(self._output)],
            cwd=self.root,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def output(self) -> str:
        """Return the end of what the tests have printed last."""
        return self._output.read_text(encoding="utf-8", errors="replace")[-3000:]

    def run(self, job: Job) -> tuple[int | None, float]:
        """Return the exit status of the job's tests (None after a timeout) and how many seconds they took."""
        file, source = self.root / job.target.path, job.target.source(self.root)
        try:
            if job.mutation is not None:
                file.write_text(job.mutation.apply(source, job.target.path), encoding="utf-8")
            key = job.target.tests, job.target.compiled
            seconds = SLOWER * self._seconds[key] + MORE_SECONDS if job.mutation else BASELINE_SECONDS
            status, took = self._ask(arguments=job.target.tests, compiled=job.target.compiled, seconds=seconds)
            if job.mutation is None:
                self._seconds[key] = took
            return status, took
        finally:
            file.write_text(source, encoding="utf-8")

    def _ask(self, **request: Any) -> tuple[int | None, float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        return answer["status"], answer["seconds"]


def result_of(mutation: Mutation, status: int | None) -> Result:
    """Return what became of a mutation whose tests ended with this status."""
    if status == PASSED:
        return "equivalent" if mutation.equivalent else "survived"
    if mutation.equivalent:
        return "not equivalent"
    return "timeout" if status is None else "killed"


def run_all(jobs: Sequence[Job], scratches: Sequence[Scratch]) -> Iterator[Ended]:
    """Yield how each job ended, in their order; each scratch copy runs one at a time."""
    free = SimpleQueue[Scratch]()
    for scratch in scratches:
        free.put(scratch)

    def one(job: Job) -> Ended:
        scratch = free.get()
        try:
            status, seconds = scratch.run(job)
            return Ended(job, status, seconds, scratch.output())
        finally:
            free.put(scratch)

    with ThreadPoolExecutor(len(scratches)) as pool:
        yield from pool.map(one, jobs)


def require_passing(targets: Sequence[Target], scratches: Sequence[Scratch]) -> None:
    """Exit unless the tests of these targets pass without a mutation.

    Tests of compiled kernels run in every copy: one that compiles first would take too long with a mutation.
    """
    distinct = list({(target.tests, target.compiled): Job(target, None) for target in targets}.values())
    compiled = [job for job in distinct if job.target.compiled]
    print(f"{len(distinct)} sets of tests run without a mutation first", flush=True)
    for ended in run_all([job for job in distinct if not job.target.compiled], scratches):
        require_passed(ended)
    with ThreadPoolExecutor(len(scratches)) as pool:
        for each in pool.map(lambda scratch: list(run_all(compiled, [scratch])), scratches):
            for ended in each:
                require_passed(ended)


def require_passed(ended: Ended) -> None:
    """Exit unless these tests, which ran without a mutation, have passed."""
    if ended.status != PASSED:
        sys.exit(f"The tests of {ended.job.target.path} fail without a mutation. Repair them first:\n{ended.output}")


def describe(target: Target, mutation: Mutation) -> str:
    """Return where a mutation is, and what it changes."""
    line = mutation.line(target.source(ROOT))
    return f"{target.path}:{line} {mutation.scope}: {mutation.old!r} -> {mutation.new!r}"


def chosen_targets(quick: bool, texts: list[str]) -> list[Target]:
    """Return the targets to run: all or those of continuous integration, and only files that a text is part of."""
    return [
        target
        for target in TARGETS
        if (not quick or target in QUICK) and (not texts or any(text in target.path for text in texts))
    ]


def main() -> None:
    """Run the mutations that the command line asks for."""
    parser = argparse.ArgumentParser(description="Report mutations that the tests do not notice.")
    parser.add_argument("paths", nargs="*", help="run only mutations of files whose path contains one of these texts")
    parser.add_argument("--quick", action="store_true", help="run what continuous integration runs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="scratch copies that run tests at a time")
    asked = parser.parse_args()
    targets, began = chosen_targets(asked.quick, asked.paths), time.monotonic()
    jobs = [Job(target, each) for target in targets for each in target.mutations]
    told = [describe(target, each) for target in targets for each in target.mutations]
    results = Counter[Result]()
    wrong = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        taken: dict[tuple[tuple[str, ...], bool], float] = {}
        scratches = [Scratch(Path(folder) / str(number), taken) for number in range(asked.jobs)]
        try:
            require_passing(targets, scratches)
            for number, (ended, what) in enumerate(zip(run_all(jobs, scratches), told, strict=True), 1):
                assert ended.job.mutation is not None
                result = result_of(ended.job.mutation, ended.status)
                results[result] += 1
                print(f"{number}/{len(jobs)} {result} ({ended.seconds:.1f} s) {what}", flush=True)
                if result in {"survived", "not equivalent"}:
                    wrong.append(f"{result}: {what}")
        finally:
            for scratch in scratches:
                scratch.__exit__()
    counts = ", ".join(f"{count} {result}" for result, count in results.items())
    print(f"{len(jobs)} mutations in {time.monotonic() - began:.0f} s: {counts}")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
