"""Conformance with a client that nobody here wrote: Debian's kcat."""

import json
import shutil
import subprocess
import time
from typing import Any

import pytest

pytestmark = pytest.mark.needs_tool("kcat")


@pytest.fixture
def kcat(world: Any) -> Any:
    def run(*arguments: Any, stdin: str = "") -> Any:
        program = shutil.which("kcat") or shutil.which("kafkacat")
        command = [program, "-b", world.bootstrap, "-X", "topic.metadata.refresh.interval.ms=500", *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120, check=True).stdout

    return run


def test_it_sees_the_broker_and_its_topics(world: Any, kcat: Any) -> None:
    topic = world.topic(3).topic
    seen = json.loads(kcat("-L", "-J", "-t", topic))
    assert len(seen["brokers"]) == 1
    assert [each["topic"] for each in seen["topics"]] == [topic]
    assert len(seen["topics"][0]["partitions"]) == 3


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_it_writes_is_read_by_our_client_and_by_itself(world: Any, kcat: Any, compression: str) -> None:
    partition = world.topic()
    kcat("-P", "-t", partition.topic, "-K:", "-z", compression, stdin="a:one\nb:two\nc:three\n")
    assert kcat("-C", "-t", partition.topic, "-e", "-q", "-K:") == "a:one\nb:two\nc:three\n"
    assert world.read(partition) == [b"one", b"two", b"three"]


def test_it_writes_once_with_an_idempotent_producer(world: Any, kcat: Any) -> None:
    partition = world.topic()
    lines = "".join(f"{number}\n" for number in range(5000))
    kcat("-P", "-t", partition.topic, "-X", "enable.idempotence=true", stdin=lines)
    assert kcat("-C", "-t", partition.topic, "-e", "-q") == lines


def test_it_reads_what_our_client_committed_and_dirty_what_it_aborted(world: Any, kcat: Any) -> None:
    partition = world.topic()
    world.write(partition, b"one")
    world.write(partition, b"two", commit=False)
    world.write(partition, b"three")
    read = ("-C", "-t", partition.topic, "-e", "-q", "-X")
    assert kcat(*read, "isolation.level=read_committed") == "one\nthree\n"
    assert kcat(*read, "isolation.level=read_uncommitted") == "one\ntwo\nthree\n"


def test_it_reads_from_an_offset_and_from_a_time(world: Any, kcat: Any) -> None:
    partition = world.topic()
    now = time.time_ns() // 1_000_000
    world.write(partition, b"one", b"two", timestamp_ms=now)
    world.write(partition, b"three", timestamp_ms=now + 5_000)
    assert kcat("-C", "-t", partition.topic, "-o", "1", "-e", "-q") == "two\nthree\n"
    assert kcat("-Q", "-t", f"{partition.topic}:0:{now + 1}") == f"{partition.topic} [0] offset 2\n", (
        "the marker counts"
    )


def test_it_consumes_in_a_group_and_goes_on_where_it_stopped(world: Any, kcat: Any) -> None:
    partition = world.topic(2)
    group = (
        "-G",
        world.group,
        partition.topic,
        "-q",
        "-X",
        "auto.offset.reset=earliest",
        "-X",
        "session.timeout.ms=6000",
    )
    kcat("-P", "-t", partition.topic, "-p", "0", stdin="one\ntwo\n")
    kcat("-P", "-t", partition.topic, "-p", "1", stdin="three\n")
    assert sorted(kcat(*group, "-c", "3").split()) == ["one", "three", "two"]
    kcat("-P", "-t", partition.topic, "-p", "1", stdin="four\n")
    assert kcat(*group, "-c", "1") == "four\n"
    assert world.group in world.admin.list_groups()
