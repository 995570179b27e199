"""What tests of the HTTP service share: requests about the marked shop, and a service in a process."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import yaml

from service.ports import free_port
from tests.patience import happens
from tests.service.cli.cli_world import POLICY, table_text

ROOT = Path(__file__).parents[3]


def policy_text(name: str = "shop", **guarantee: Any) -> Any:
    """The shop's policy under another name, with other parameters."""
    policy = yaml.safe_load(POLICY)
    policy["name"] = name
    policy["guarantee"] |= guarantee
    return yaml.safe_dump(policy)


def parts(table: Any = None, policy: Any = POLICY, **more: Any) -> Any:
    """Parts of a request for a job."""
    return {"table": ("t.csv", table or table_text()), "policy": ("p.yaml", policy), **more}


def submit(client: Any, policy: Any = POLICY, table: Any = None, headers: Any = None) -> Any:
    """Submit a job that is accepted; the job."""
    answer = client.post("/v1/jobs", files=parts(table, policy), headers=headers)
    assert answer.status_code == 202, answer.text
    return answer.json()


def wait_for(client: Any, job: Any, *states: Any, seconds: int = 120, headers: Any = None) -> Any:
    """The job once it is in one of these states."""
    states = states or ("succeeded", "failed", "cancelled")
    found = {}

    def is_there() -> bool:
        found.update(client.get(f"/v1/jobs/{job['id']}", headers=headers).json())
        return found["state"] in states

    assert happens(is_there, seconds), found
    return found


def wait_until(holds: Any, seconds: int = 120) -> None:
    """Wait for something that the service does right after it has answered."""
    assert happens(holds, seconds)


class ServiceProcess:
    """`portcullis serve` in a process, with jobs that misbehave when their policy's name says so."""

    def __init__(self, data: Any, *, trusted: Any = None, **settings: Any) -> None:
        self.data = Path(data)
        self.port = free_port()
        self._settings = {f"PORTCULLIS_{name.upper()}": str(value) for name, value in settings.items()}
        self.log = self.data.with_suffix(".log")
        scheme = "http" if trusted is None else "https"
        self.client = httpx.Client(base_url=f"{scheme}://127.0.0.1:{self.port}", timeout=120, verify=trusted or True)
        self.process = None

    def start(self) -> Any:
        """Start, and wait until it is ready."""
        arguments = [sys.executable, str(Path(__file__).with_name("odd_service.py"))]
        environment = {
            **os.environ,
            **self._settings,
            "PYTHONPATH": str(ROOT),
            "PORTCULLIS_DATA": str(self.data),
            "PORTCULLIS_PORT": str(self.port),
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(arguments, env=environment, stdout=log, stderr=log, cwd=ROOT)  # type: ignore[assignment]
        try:
            wait_until(self._is_ready, seconds=840)  # a first start compiles, beside others that do
        except BaseException:
            self.kill()
            raise
        return self

    def _is_ready(self) -> Any:
        assert self.process.poll() is None, self.log.read_text()  # type: ignore[attr-defined]
        with suppress(httpx.TransportError):
            return self.client.get("/readyz").status_code == 200

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()  # type: ignore[attr-defined]
        self.process.wait()  # type: ignore[attr-defined]

    def stop(self) -> None:
        """Ask to stop."""
        self.process.send_signal(signal.SIGTERM)  # type: ignore[attr-defined]
        assert self.process.wait(120) in {0, -signal.SIGTERM}, self.log.read_text()  # type: ignore[attr-defined]
        self.client.close()

    def worker_pid(self, job: Any, attempt: int = 1) -> Any:
        """Process of a job that misbehaves, which tells it."""
        path = self.data / "jobs" / job["id"] / f"result-{attempt}" / "pid"
        assert happens(lambda: path.exists() and path.read_text(), 120), self.log.read_text()
        return int(path.read_text())


def is_alive(pid: Any) -> Any:
    """Whether a process is there and not only waits to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
