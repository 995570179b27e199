"""`portcullis run` and `portcullis drain` as processes."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.kafka import KafkaSettings, Partition, UnknownTopicError, connect
from service.ports import free_port
from tests.service.kafka.world import eventually
from tests.service.unasked import unasked

POLICY = """
name: {name}
schema:
  person: who
  quasi: {{age: {{type: number, min: 0, max: 99, integer: true}}}}
  public: [trace]
guarantee: {{algorithm: castle, k: {k}, delay: {{tuples: 50, seconds: 5}}}}
stream: {{input: {name}.raw, output: {name}.safe, start: earliest}}
"""


@pytest.fixture
def place(tmp_path: Path, embedded_kafka: Any) -> Iterator[Any]:
    client = connect(KafkaSettings(bootstrap_servers=embedded_kafka))
    admin = client.admin()
    for suffix in ("raw", "safe"):
        admin.create_topic(f"run-test.{suffix}", 2)
    yield tmp_path, embedded_kafka, client
    for suffix in ("raw", "safe"):
        admin.delete_topic(f"run-test.{suffix}")
    with contextlib.suppress(UnknownTopicError):
        admin.delete_topic("portcullis.run-test.safe.state")
    admin.close()


def policy(directory: Path, k: int) -> Path:
    path = directory / f"policy-{k}.yaml"
    path.write_text(POLICY.format(name="run-test", k=k))
    return path


def portcullis(*arguments: Any, **options: Any) -> Any:
    return subprocess.Popen([sys.executable, "-m", "service", *map(str, arguments)], stderr=subprocess.PIPE, **options)


def children(parent: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, text=True, check=False).stdout
    pids = []
    for pid in found.split():
        with contextlib.suppress(OSError):  # it may have ended since
            if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text():
                pids.append(int(pid))
    return pids


def status(port: Any) -> Any:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/status") as answer:
            return json.load(answer)
    except OSError:
        return {}


def feed(client: Any, numbers: Any) -> None:
    producer = client.producer("run-test-feeder")
    producer.init_transactions()
    producer.begin()
    for n in numbers:
        value = json.dumps({"who": f"p{n % 9}", "age": n % 90, "trace": n}).encode()
        producer.produce(Partition("run-test.raw", n % 2), [value])
    producer.flush()
    producer.commit()
    producer.close()


def released(client: Any) -> Any:
    reader, found = client.reader(), []
    for number in range(2):
        low, high = reader.watermarks(Partition("run-test.safe", number))
        for batch in reader.read(Partition("run-test.safe", number), low, high, 60):
            found += [row["trace"] for value in batch.values for row in json.loads(value)["rows"]]
    reader.close()
    return sorted(found)


@pytest.mark.timeout(600)
def test_workers_are_replaced_stop_on_sigterm_and_drain_into_a_new_policy(place: Any) -> None:
    directory, bootstrap, client = place
    port = free_port()
    run = portcullis("run", policy(directory, 3), "--workers", 2, "--bootstrap", bootstrap, "--status-port", port)
    try:
        eventually(lambda: all(status(port + n).get("ready") for n in range(2)), 480)
        feed(client, range(40))
        eventually(lambda: len(released(client)) > 30)
        before = children(run.pid)
        assert len(before) == 2
        assert not unasked(before[0])
        os.kill(before[0], signal.SIGKILL)
        eventually(lambda: len(children(run.pid)) == 2 and children(run.pid) != before)
        feed(client, range(40, 80))
        eventually(lambda: max(released(client)) >= 40 and len(released(client)) > 60)
    finally:
        run.terminate()
        _, errors = run.communicate(timeout=240)
    assert run.returncode == 0, errors.decode()
    assert b"starting another" in errors

    changed = policy(directory, 4)
    alone = portcullis("run", changed, "--bootstrap", bootstrap, "--status-port", port)
    eventually(lambda: status(port).get("stopped"))
    assert "portcullis drain" in status(port)["stopped"]["0"]
    alone.terminate()
    alone.communicate(timeout=240)

    drain = portcullis("drain", policy(directory, 3), "--bootstrap", bootstrap, stdout=subprocess.PIPE)
    output, errors = drain.communicate(timeout=240)
    assert drain.returncode == 0, errors.decode()
    assert b"run-test.raw/1: drained up to offset" in output

    alone = portcullis("run", changed, "--bootstrap", bootstrap, "--status-port", port)
    try:
        eventually(lambda: status(port).get("ready"))
        feed(client, range(80, 120))
        eventually(lambda: max(released(client)) >= 80 and len(released(client)) > 90)
    finally:
        alone.terminate()
        alone.communicate(timeout=240)
    assert alone.returncode == 0
    assert len(released(client)) == len(set(released(client)))


def test_what_cannot_work_ends_with_status_2_and_a_reason(place: Any) -> None:
    directory, bootstrap, _ = place
    path = directory / "late.yaml"
    path.write_text(POLICY.format(name="run-test", k=3).replace("seconds: 5", "seconds: 0.5"))
    run = portcullis("run", path, "--bootstrap", bootstrap)
    _, errors = run.communicate(timeout=240)
    assert run.returncode == 2
    assert b"delay.seconds" in errors
    assert b"more than 1" in errors
