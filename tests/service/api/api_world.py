"""What tests of the HTTP service share: requests about the marked shop, and a service in a process."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx
import yaml
from cli_world import POLICY, table_text

from service.ports import free_port

ROOT = Path(__file__).parents[3]


def policy_text(name="shop", **guarantee):
    """The shop's policy under another name, with other parameters."""
    policy = yaml.safe_load(POLICY)
    policy["name"] = name
    policy["guarantee"] |= guarantee
    return yaml.safe_dump(policy)


def parts(table=None, policy=POLICY, **more):
    """Parts of a request for a job."""
    return {"table": ("t.csv", table or table_text()), "policy": ("p.yaml", policy), **more}


def submit(client, policy=POLICY, table=None, headers=None):
    """Submit a job that is accepted; the job."""
    answer = client.post("/v1/jobs", files=parts(table, policy), headers=headers)
    assert answer.status_code == 202, answer.text
    return answer.json()


def wait_for(client, job, *states, seconds=120, headers=None):
    """The job once it is in one of these states."""
    states = states or ("succeeded", "failed", "cancelled")
    until = time.monotonic() + seconds
    while True:
        found = client.get(f"/v1/jobs/{job['id']}", headers=headers).json()
        if found["state"] in states:
            return found
        assert time.monotonic() < until, found
        time.sleep(0.05)


def wait_until(holds, seconds=120):
    """Wait for something that the service does right after it has answered."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


class ServiceProcess:
    """`portcullis serve` in a process, with jobs that misbehave when their policy's name says so."""

    def __init__(self, data, *, trusted=None, **settings):
        self.data = Path(data)
        self.port = free_port()
        self._settings = {f"PORTCULLIS_{name.upper()}": str(value) for name, value in settings.items()}
        self.log = self.data.with_suffix(".log")
        scheme = "http" if trusted is None else "https"
        self.client = httpx.Client(base_url=f"{scheme}://127.0.0.1:{self.port}", timeout=120, verify=trusted or True)
        self.process = None

    def start(self):
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
            self.process = subprocess.Popen(arguments, env=environment, stdout=log, stderr=log, cwd=ROOT)
        try:
            wait_until(self._is_ready, seconds=480)  # a first start compiles
        except BaseException:
            self.kill()
            raise
        return self

    def _is_ready(self):
        assert self.process.poll() is None, self.log.read_text()
        with suppress(httpx.TransportError):
            return self.client.get("/readyz").status_code == 200

    def kill(self):
        """kill -9."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Ask to stop."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(120) in {0, -signal.SIGTERM}, self.log.read_text()
        self.client.close()

    def worker_pid(self, job, attempt=1):
        """Process of a job that misbehaves, which tells it."""
        path = self.data / "jobs" / job["id"] / f"result-{attempt}" / "pid"
        until = time.monotonic() + 120
        while not (path.exists() and path.read_text()):
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.05)
        return int(path.read_text())


def is_alive(pid):
    """Whether a process is there and not only waits to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
