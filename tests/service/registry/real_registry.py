"""A real schema registry, Apicurio's, on loopback: its archive of Maven Central, run on Java 17, all in memory.

`make registry` runs one until Ctrl-C. In tests:

    with RealRegistry() as registry:
        RegistrySettings(url=registry.url)
"""

import argparse
import hashlib
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Self

from service.ports import free_port

VERSION = "3.0.9"
CACHE = Path(os.environ.get("PORTCULLIS_CACHE", Path.home() / ".cache" / "portcullis")) / f"apicurio-{VERSION}"
# Maven itself cannot fetch it: the project's parent is not published there.
ARCHIVE = (
    "https://repo.maven.apache.org/maven2/io/apicurio/apicurio-registry-app/"
    f"{VERSION}/apicurio-registry-app-{VERSION}-all.tar.gz"
)
DIGEST = "2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43"
START_SECONDS = 180


def missing_tool() -> str | None:
    """Which program stands between us and a real registry, if any."""
    return None if shutil.which("java") else "java"


def fetch() -> Path:
    """The folder of its jars; downloads them the first time."""
    if not _is_fetched():
        CACHE.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE.parent) as scratch:
            archive, jars = Path(scratch, "archive.tar.gz"), Path(scratch, "jars")
            with urllib.request.urlopen(ARCHIVE, timeout=60) as answer, archive.open("wb") as file:
                shutil.copyfileobj(answer, file)
            if hashlib.sha256(archive.read_bytes()).hexdigest() != DIGEST:
                raise OSError("the archive is not the one that was tried")
            with tarfile.open(archive) as tar:
                tar.extractall(jars, filter="data")
            if not _is_fetched():
                jars.rename(CACHE)
    return CACHE


def _jar() -> Path:
    return CACHE / f"apicurio-registry-app-{VERSION}-runner.jar"


def _is_fetched() -> bool:
    return _jar().exists()


class RealRegistry:
    """One registry; what it knows is gone when it stops."""

    def __init__(self, port: int = 0) -> None:
        self.port = port or free_port()
        self._home = Path(tempfile.mkdtemp(prefix="portcullis-registry-"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where its Confluent-compatible API begins."""
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    @property
    def log_file(self) -> Path:
        """What it says."""
        return self._home / "registry.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self._home, ignore_errors=True)

    def start(self) -> None:
        """Start it and wait until it answers."""
        fetch()
        command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        command += [f"-Dquarkus.http.port={self.port}", "-Dquarkus.http.host=127.0.0.1", "-jar", str(_jar())]
        with self.log_file.open("ab") as said:
            self._process = subprocess.Popen(command, cwd=self._home, stdout=said, stderr=said)
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"Apicurio Registry did not start:\n{self.log_file.read_text()[-3000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Let it answer nobody until `go_on` (SIGSTOP)."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Answer again (SIGCONT)."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=2):
                return True
        except (OSError, urllib.error.URLError):
            return False


def main() -> None:
    """Run one until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="loopback port; 0 takes a free one")
    options = parser.parse_args()
    with RealRegistry(options.port) as registry:
        print(f"Apicurio Registry {VERSION} answers at {registry.url}; Ctrl-C stops it")  # noqa: T201 - a program
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("stopping")  # noqa: T201 - a program


if __name__ == "__main__":
    main()
