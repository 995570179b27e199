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


@contextmanager
def postgres_server() -> Iterator[str]:
    """Its URL; it trusts whoever reaches it, and is gone at the end."""
    with TemporaryDirectory(prefix="portcullis-postgres-") as folder:
        yield from _serve(Path(folder))


def _serve(directory: Path) -> Iterator[str]:
    found = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb"))) or [str(shutil.which("initdb"))]
    programs, port, as_user = Path(found[-1]).parent, free_port(), []
    if os.getuid() == 0:  # the server refuses to run as root
        user = pwd.getpwnam("postgres" if "postgres" in {one.pw_name for one in pwd.getpwall()} else "nobody")
        os.chown(directory, user.pw_uid, user.pw_gid)
        as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    initdb = [*as_user, programs / "initdb", "-D", directory / "data", "-U", "portcullis", "-A", "trust", "--no-sync"]
    subprocess.run(initdb, check=True, capture_output=True, cwd=directory)
    options = ["-k", directory, "-h", "127.0.0.1", "-p", str(port), "-c", "fsync=off"]
    command = [*as_user, programs / "postgres", "-D", directory / "data", *options]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=directory)
    try:
        deadline = time.monotonic() + 240
        asking = [programs / "pg_isready", "-h", "127.0.0.1", "-p", str(port)]
        while subprocess.run(asking, capture_output=True, check=False).returncode:
            assert time.monotonic() < deadline
            assert server.poll() is None
            time.sleep(0.1)
        yield f"postgresql://portcullis@127.0.0.1:{port}/postgres"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(120)
