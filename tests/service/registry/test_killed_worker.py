"""A worker process that is killed among messages of Protobuf, on a real Kafka with a real registry."""

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from service.kafka import KafkaSettings, Partition, connect
from service.ports import free_port
from service.registry import Registry, RegistrySettings
from tests.service.codec.protobuf_world import classes, written
from tests.service.kafka.test_run import portcullis, status
from tests.service.kafka.world import eventually

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs_tool("kafka"),
    pytest.mark.needs_tool("registry"),
    pytest.mark.xdist_group("registry"),
]
TEXT = 'syntax = "proto3"; message Visit { string who = 1; int32 age = 2; int64 trace = 3; }'
POLICY = """
name: killed
schema:
  person: who
  quasi: {age: {type: number, min: 0, max: 99, integer: true}}
  public: [trace]
guarantee: {algorithm: castle, k: 3, delay: {tuples: 50, seconds: 5}}
stream: {input: killed.raw, output: killed.safe, start: earliest, format: protobuf}
"""


@pytest.mark.timeout(600)
def test_what_a_killed_worker_held_leaves_once(
    tmp_path: Path, real_bootstrap: str, real_registry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PORTCULLIS_REGISTRY_URL", real_registry.url)
    (tmp_path / "policy.yaml").write_text(POLICY)
    registry = Registry(RegistrySettings(url=real_registry.url))
    head = b"\0" + registry.register("killed.raw-value", "PROTOBUF", TEXT).to_bytes(4, "big") + b"\0"
    client, port = connect(KafkaSettings(bootstrap_servers=real_bootstrap)), free_port()
    with closing(client.admin()) as admin:
        for topic in ("killed.raw", "killed.safe"):
            admin.create_topic(topic, 1)

    def feed(numbers: range) -> None:
        with closing(client.producer("killed-feeder")) as producer:
            producer.init_transactions()
            producer.begin()
            rows = [{"who": f"p{n % 9}", "age": n % 90, "trace": n + 1} for n in numbers]
            producer.produce(Partition("killed.raw", 0), [head + written(TEXT, row, "Visit") for row in rows])
            producer.flush()
            producer.commit()

    def released() -> list[int]:
        newest, found = registry.newest("killed.safe-value"), []
        read = classes(newest.text)["portcullis.killed_safe.Cluster"].FromString if newest else None
        with closing(client.reader()) as reader:
            low, high = reader.watermarks(Partition("killed.safe", 0))
            for batch in reader.read(Partition("killed.safe", 0), low, high, 60):
                assert read is not None
                found += [row.trace for value in batch.values for row in read((value or b"")[len(head) :]).rows]
        return sorted(found)

    def more_than(least: int) -> bool:
        return len(released()) > least

    command = "run", tmp_path / "policy.yaml", "--bootstrap", real_bootstrap, "--status-port", port
    for first in (0, 100, 200):
        run = portcullis(*command)
        try:
            eventually(lambda: status(port).get("ready"), 300)
            feed(range(first, first + 100))
            # It is in the middle of them.
            eventually(partial(more_than, first), 240)
            if first == 200:
                eventually(lambda: len(released()) >= 290, 240)
                run.terminate()
            else:
                run.kill()
            _, errors = run.communicate(timeout=120)
        finally:
            run.kill()
    assert run.returncode == 0, errors.decode()
    # All of them by now: a worker that stops publishes or suppresses what waits, and nothing twice.
    left = released()
    assert len(set(left)) == len(left) >= 290
    assert set(left) <= set(range(1, 301))
