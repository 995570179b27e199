"""Mutation tests: `python -m tests.mutation.run` reports every mutation that the tests do not notice.

Each mutation is made in a scratch copy of the repository, never in the working tree, and the tests that concern it run
there. It is killed if a test fails or does not end in time; otherwise it survives. The exit status is 1 if a mutation
survives that is not declared equivalent, or if one that is declared equivalent is killed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal, TypeAlias

from tests.mutation.mutation import Mutation, Target
from tests.mutation.mutations import QUICK, TARGETS

ROOT = Path(__file__).resolve().parents[2]
BASELINE_SECONDS = 900.0
"""How long the tests may take without a mutation, when kernels may have to be compiled."""
SLOWER, MORE_SECONDS = 3.0, 20.0
"""With a mutation, tests may take so many times as long as without one, and some seconds; more is a timeout."""
PASSED, FAILED = 0, 1
Result: TypeAlias = Literal["killed", "timeout", "survived", "equivalent", "not equivalent"]


@dataclass(frozen=True)
class Job:
    """One mutation, or none: then it is seen whether the tests pass without one."""

    target: Target
    mutation: Mutation | None


class Scratch(AbstractContextManager["Scratch"]):
    """A copy of the working tree with a process that runs tests in it."""

    def __init__(self, place: Path) -> None:
        self.root, self._output = place / "repository", place / "output"
        names = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split("\0")
        kernels = [str(one.relative_to(ROOT)) for one in ROOT.glob("*/**/__pycache__/*.nb[ic]")]
        for name in filter(None, [*names, *kernels]):
            if (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name)
        variables = {**os.environ, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}
        self._seconds: dict[tuple[tuple[str, ...], bool], float] = {}
        """How long tests take without a mutation."""
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
            self._seconds.setdefault(key, took)
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


def require_passing(targets: list[Target], scratches: list[Scratch]) -> None:
    """Exit unless the tests of these targets pass without a mutation, in every scratch copy."""
    distinct = {(target.tests, target.compiled): target for target in targets}
    for place, target in enumerate(distinct.values(), 1):
        print(f"without mutations {place}/{len(distinct)}: {' '.join(target.tests)}", flush=True)
        with ThreadPoolExecutor(len(scratches)) as pool:
            for scratch, (status, _) in pool.map(lambda one, of=target: (one, one.run(Job(of, None))), scratches):
                if status != PASSED:
                    sys.exit(f"The tests fail without a mutation. Repair them first:\n{scratch.output()}")


def run(targets: list[Target], scratches: list[Scratch]) -> Iterator[tuple[Job, Result, float]]:
    """Yield what becomes of every mutation."""
    free = SimpleQueue[Scratch]()
    for scratch in scratches:
        free.put(scratch)

    def one(job: Job) -> tuple[Job, Result, float]:
        scratch = free.get()
        try:
            assert job.mutation is not None
            status, seconds = scratch.run(job)
            if status not in {PASSED, FAILED, None}:  # an import that fails is noticed too; anything else is our fault
                print(scratch.output(), flush=True)
            return job, result_of(job.mutation, status), seconds
        finally:
            free.put(scratch)

    with ThreadPoolExecutor(len(scratches)) as pool:
        yield from pool.map(one, [Job(target, each) for target in targets for each in target.mutations])


def describe(job: Job) -> str:
    """Return where a mutation is, and what it changes."""
    mutation = job.mutation
    assert mutation is not None
    line = mutation.line(job.target.source(ROOT))
    return f"{job.target.path}:{line} {mutation.scope}: {mutation.old!r} -> {mutation.new!r}"


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
    total = sum(len(target.mutations) for target in targets)
    results = Counter[Result]()
    wrong = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        scratches = [Scratch(Path(folder) / str(number)) for number in range(asked.jobs)]
        try:
            require_passing(targets, scratches)
            for number, (job, result, seconds) in enumerate(run(targets, scratches), 1):
                results[result] += 1
                print(f"{number}/{total} {result} ({seconds:.1f} s) {describe(job)}", flush=True)
                if result in {"survived", "not equivalent"}:
                    wrong.append(f"{result}: {describe(job)}")
        finally:
            for scratch in scratches:
                scratch.__exit__()
    counts = ", ".join(f"{count} {result}" for result, count in results.items())
    print(f"{total} mutations in {time.monotonic() - began:.0f} s: {counts}")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
