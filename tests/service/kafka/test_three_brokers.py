"""A first start on three real brokers, which hear of a new topic each at its own time."""

import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.kafka import KafkaSettings, connect
from service.ports import free_port
from tests.service.kafka.real_kafka import RealKafka
from tests.service.kafka.world import eventually

pytestmark = [pytest.mark.soak, pytest.mark.needs_tool("kafka"), pytest.mark.kafka]

PARTITIONS = 6
POLICY = """
name: {name}
schema:
  person: who
  quasi: {{age: {{type: number, min: 0, max: 99, integer: true}}}}
guarantee: {{algorithm: castle, k: 2, delay: {{tuples: 50, seconds: 5}}}}
stream: {{input: {name}.raw, output: {name}.safe, start: earliest, dead_letters: {name}.dead}}
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with RealKafka() as first, RealKafka(node=2, first=first) as second, RealKafka(node=3, first=first) as third:
        yield ",".join(each.bootstrap for each in (first, second, third))


def status(port: Any) -> Any:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/status") as answer:
        return json.load(answer)
    return {}


@pytest.mark.parametrize("start", range(5))
@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])
def test_a_first_start_meets_no_unknown_topic(cluster: Any, tmp_path: Path, client: str, start: Any) -> None:
    name, port = f"{client}-{start}", free_port()
    (tmp_path / "policy.yaml").write_text(POLICY.format(name=name))
    run = subprocess.Popen(
        [sys.executable, "-m", "service", "run", str(tmp_path / "policy.yaml"), "--status-port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={
            **os.environ,
            "PORTCULLIS_KAFKA_CLIENT": client,
            "PORTCULLIS_KAFKA_BOOTSTRAP_SERVERS": cluster,
            "PORTCULLIS_WORKER_CREATE_TOPICS": "true",
            "PORTCULLIS_WORKER_PARTITIONS": str(PARTITIONS),
        },
    )
    try:
        eventually(lambda: run.poll() is not None or status(port).get("ready"), 300)
        found = status(port)
    finally:
        run.terminate()
        said, _ = run.communicate(timeout=240)
    assert run.returncode == 0, said
    assert "UNKNOWN_TOPIC_OR_PARTITION" not in found["kafka_errors"], said
    assert len(found["partitions"]) == PARTITIONS
    assert leaders(cluster, f"{name}.raw") == {1, 2, 3}


def leaders(cluster: Any, topic: Any) -> Any:
    """The brokers that lead the partitions of a topic."""
    client = connect(KafkaSettings(bootstrap_servers=cluster, client="confluent-kafka"))
    with contextlib.closing(client.admin()) as admin:
        found = admin._admin.list_topics(topic, timeout=30).topics[topic]  # type: ignore[attr-defined]
    return {each.leader for each in found.partitions.values()}
