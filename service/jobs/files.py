"""Where jobs keep their files: `DATA/jobs/ID/upload` and `DATA/jobs/ID/result-ATTEMPT`.

Ids are ours and checked; no part of a path comes from a user.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOCK = "uploading"
_BEGIN_SECONDS = 5.0
"""Between the making of a directory and its lock."""
_PROBE_BYTES = 1 << 16
_ID = re.compile(r"[A-Za-z0-9_-]{32}")


def new_id() -> str:
    """An id that nobody can guess."""
    return secrets.token_urlsafe(24)


def is_id(text: str) -> bool:
    """Whether a text can be an id of ours."""
    return _ID.fullmatch(text) is not None


class JobFiles:
    """The directory of all jobs."""

    def __init__(self, data: Path) -> None:
        self._root = data / "jobs"
        self._root.mkdir(parents=True, exist_ok=True, mode=0o700)

    def _of(self, job_id: str) -> Path:
        if not is_id(job_id):
            raise ValueError("not an id of a job")
        return self._root / job_id

    @contextmanager
    def uploading(self, job_id: str) -> Iterator[Path]:
        """Where a job's upload goes, and a sign for others that somebody is at it, which ends with this process."""
        path = self.upload(job_id)
        sign = path.parent / _LOCK
        with sign.open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                yield path
            finally:
                sign.unlink(missing_ok=True)

    def upload(self, job_id: str) -> Path:
        """Where a job's upload is."""
        return self._private(job_id, "upload")

    def result(self, job_id: str, attempt: int) -> Path:
        """Where the result of an attempt is."""
        return self._of(job_id) / f"result-{attempt}"

    def new_result(self, job_id: str, attempt: int) -> Path:
        """Where an attempt may put its result."""
        return self._private(job_id, self.result(job_id, attempt).name)

    def _private(self, job_id: str, name: str) -> Path:
        """Return a directory of a job that only the service may enter. `parents=True` ignores the mode above it."""
        path = self._of(job_id) / name
        for directory in (path.parent, path):
            directory.mkdir(exist_ok=True, mode=0o700)
        return path

    def drop_upload(self, job_id: str) -> None:
        """Delete what was uploaded."""
        shutil.rmtree(self._of(job_id) / "upload", ignore_errors=True)

    def drop_result(self, job_id: str, attempt: int) -> None:
        """Delete what an attempt wrote."""
        shutil.rmtree(self.result(job_id, attempt), ignore_errors=True)

    def drop(self, job_id: str) -> None:
        """Delete all files of a job."""
        shutil.rmtree(self._of(job_id), ignore_errors=True)

    def check(self) -> None:
        """Raise unless files can be written, with something in them: a full disk still takes empty ones."""
        probe = self._root / f".probe-{os.getpid()}"
        try:
            with probe.open("wb") as file:
                file.write(bytes(_PROBE_BYTES))
                file.flush()
                os.fsync(file.fileno())
        finally:
            probe.unlink(missing_ok=True)

    def with_upload(self) -> Iterator[str]:
        """Ids whose upload is still there."""
        return (path.name for path in self._root.iterdir() if is_id(path.name) and (path / "upload").is_dir())

    def left(self) -> Iterator[str]:
        """Ids that nobody uploads to, however long that takes; those of a process that died are among them at once."""
        limit = time.time() - _BEGIN_SECONDS
        for path in self._root.iterdir():
            with suppress(FileNotFoundError):  # somebody else was quicker
                if is_id(path.name) and path.stat().st_mtime < limit and not _is_locked(path / _LOCK):
                    yield path.name


def _is_locked(path: Path) -> bool:
    try:
        with path.open("rb+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False
