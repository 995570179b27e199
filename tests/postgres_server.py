"""A PostgreSQL server of our own on loopback, for tests marked `needs_tool("postgres")`."""

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from service.ports import free_port


class PostgresServer:
    """A server in a directory; it trusts whoever reaches it."""

    def __init__(self, directory: Path) -> None:
        found = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb"))) or [str(shutil.which("initdb"))]
        self._directory, self._programs, self._port = directory, Path(found[-1]).parent, free_port()
        self._as_user: list[str] = []
        if os.getuid() == 0:  # the server refuses to run as root
            user = pwd.getpwnam("postgres" if "postgres" in {one.pw_name for one in pwd.getpwall()} else "nobody")
            os.chown(directory, user.pw_uid, user.pw_gid)
            self._as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        initdb = [self._programs / "initdb", "-D", directory / "data", "-U", "portcullis", "-A", "trust", "--no-sync"]
        subprocess.run([*self._as_user, *initdb], check=True, capture_output=True, cwd=directory)  # type: ignore[list-item]
        self.url = f"postgresql://portcullis@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        """Start, and wait until it answers."""
        options = ["-k", self._directory, "-h", "127.0.0.1", "-p", str(self._port), "-c", "fsync=off"]
        command = [*self._as_user, self._programs / "postgres", "-D", self._directory / "data", *options]
        self._server = subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=self._directory)  # type: ignore[arg-type]
        deadline = time.monotonic() + 240
        asking = [self._programs / "pg_isready", "-h", "127.0.0.1", "-p", str(self._port)]
        while subprocess.run(asking, capture_output=True, check=False).returncode:  # type: ignore[arg-type]
            assert time.monotonic() < deadline
            assert self._server.poll() is None
            time.sleep(0.1)

    def stop(self) -> None:
        """End it, whoever is connected."""
        self._server.send_signal(signal.SIGINT)
        self._server.wait(120)

    def freeze(self) -> None:
        """Let it stand still with all its connections open."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        pid = self._server.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        for one in (pid, *map(int, children)):
            os.kill(one, number)


@contextmanager
def new_postgres() -> Iterator[PostgresServer]:
    """A server that runs, and is gone at the end."""
    with TemporaryDirectory(prefix="portcullis-postgres-") as folder:
        server = PostgresServer(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def postgres_server() -> Iterator[str]:
    """The URL of such a server."""
    with new_postgres() as server:
        yield server.url
