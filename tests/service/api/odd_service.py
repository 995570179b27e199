"""`portcullis serve`, with jobs that misbehave when their policy's name says so. Everything else is as it is."""

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import service.jobs.process
import service.jobs.runner

PLAIN_WORK = service.jobs.process.work  # type: ignore[attr-defined]


def odd_work(task: Any, progress: Any) -> Any:
    """Be slow, deaf, hungry or clumsy."""
    name = json.loads(task.policy)["name"]
    if name in ODD:
        Path(task.out, "pid").write_text(str(os.getpid()))
        return ODD[name](progress)
    return PLAIN_WORK(task, progress)


def slow(progress: Any) -> Any:
    for step in range(12_000):
        progress("wait", step, 12_000)
        time.sleep(0.05)
    return "{}"


def deaf(progress: Any) -> Any:
    progress("wait", 0, 1)
    time.sleep(600)
    return "{}"


def hungry(progress: Any) -> Any:
    progress("eat", 0, 1)
    return str(len([np.empty(1 << 28, np.uint8) for _ in range(64)]))


def clumsy(progress: Any) -> None:
    raise RuntimeError("Zq7mark must not be seen")


ODD = {"slow": slow, "deaf": deaf, "hungry": hungry, "clumsy": clumsy}


def serve_odd_tasks(pipe: Any, memory: Any) -> None:
    """Main function of a job's process."""
    service.jobs.process.work = odd_work  # type: ignore[attr-defined]
    service.jobs.process.serve_tasks(pipe, memory)


if __name__ == "__main__":
    import odd_service  # type: ignore[import-not-found]

    from service.cli.serve import serve

    service.jobs.runner.serve_tasks = odd_service.serve_odd_tasks  # type: ignore[attr-defined]
    serve()
