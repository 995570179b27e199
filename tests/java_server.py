"""A server on Java that is started on loopback, waited for, and stopped by its id: a real Kafka, a real registry."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

CACHE = Path(os.environ.get("PORTCULLIS_CACHE", Path.home() / ".cache" / "portcullis"))
"""Where what was downloaded is kept."""
START_SECONDS = 180
_STOP_SECONDS = 60


class JavaServer(ABC):
    """One server; what it keeps lives in a temporary folder and survives `restart`."""

    name: str

    def __init__(self, *, lasting: bool = False) -> None:
        """Unless it is `lasting`, Java does not optimize what runs often: that takes longer than most tests do."""
        self.home = Path(tempfile.mkdtemp(prefix="portcullis-java-"))
        self._options = [] if lasting else ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str]:
        """What comes behind `java`."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether it takes requests."""

    @property
    def log_file(self) -> Path:
        """What it says."""
        return self.home / "server.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    def start(self) -> None:
        """Start it and wait until it is ready."""
        self._process = self.java(*self.command())
        deadline = time.monotonic() + START_SECONDS
        while not self.is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"{self.name} did not start:\n{self.log_file.read_text()[-3000:]}")
            time.sleep(0.1)

    def java(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """A process in its folder, which writes to its log."""
        with self.log_file.open("ab") as log:
            return subprocess.Popen(
                ["java", *self._options, *arguments], cwd=self.home, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def stop(self) -> None:
        """End it in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it without any warning (SIGKILL)."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Start again on the same ports with the same data."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Let it do nothing until `go_on`: connections stay open and nobody answers (SIGSTOP)."""
        assert self._process is not None, "it does not run"
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it answer again (SIGCONT)."""
        assert self._process is not None, "it does not run"
        self._process.send_signal(signal.SIGCONT)

    def freeze(self, seconds: float) -> None:
        """Let it do nothing for a while."""
        self.pause()
        time.sleep(seconds)
        self.go_on()

    def _end(self, sign: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(sign)
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


def run_until_interrupted(server: JavaServer, where: str) -> None:
    """As a program, until Ctrl-C."""
    with server:
        print(f"{server.name} answers at {where}; Ctrl-C stops it")  # noqa: T201 - a program
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("stopping")  # noqa: T201 - a program
