"""The commands that a worker names after an incompatible schema change, run as processes in the order that it says."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from service.kafka import Partition
from service.ports import free_port
from tests.service.codec.avro_world import read
from tests.service.codec.protobuf_world import classes
from tests.service.kafka.world import World, eventually

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what it imports
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroSerializer
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

pytestmark = [
    pytest.mark.needs_tool("kafka"),
    pytest.mark.needs_tool("registry"),
    pytest.mark.xdist_group("registry"),
    pytest.mark.timeout(600),
]
POLICY = """\
name: {name}
schema:
  person: who
  quasi: {{age: {{type: number, min: 0, max: 99, integer: true}}}}
  public: {public}
guarantee: {{algorithm: castle, k: 3, delay: {{tuples: 6}}}}
stream: {{input: {name}-raw, output: {name}-safe, start: earliest, dead_letters: {name}-dead, format: {format}}}
"""
PROTO = 'syntax = "proto3"; package shop; message Order {{ string who = 1; int32 {age} = 2; int32 trace = 3; }}'


def avro(**types: str) -> str:
    fields = {"who": "string", "age": "int", "trace": "int"} | types
    made = [{"name": name, "type": kind} for name, kind in fields.items() if kind]
    return json.dumps({"type": "record", "name": "Order", "fields": made})


@dataclass(frozen=True)
class Change:
    """A schema that replaces another, and the policy that fits it."""

    old: str
    new: str
    new_event: Any
    formats: tuple[str, str] = ("avro", "avro")
    public: tuple[str, str] = ("[trace]", "[trace]")
    kind: str = "AVRO"


CHANGES = {
    "avro field renamed": Change(
        avro(),
        avro(age="", years="int"),
        lambda n: {"who": f"p{n}", "years": n, "trace": n},
        ("avro", "{input: {type: avro, aliases: {age: [years]}}, output: avro}"),
    ),
    "public field removed": Change(
        avro(note="string"),
        avro(),
        lambda n: {"who": f"p{n}", "age": n, "trace": n},
        public=("[trace, note]", "[trace]"),
    ),
    "public type widened": Change(
        avro(),
        avro(trace="string"),
        lambda n: {"who": f"p{n}", "age": n, "trace": f"{n}"},
        ("avro", "{input: avro, output: {type: avro, subject: SUBJECT}}"),
    ),
    "protobuf field renamed": Change(
        PROTO.format(age="age"),
        PROTO.format(age="years"),
        lambda n: {"who": f"p{n}", "years": n, "trace": n},
        ("protobuf", "{input: {type: protobuf, aliases: {age: [years]}}, output: protobuf}"),
        kind="PROTOBUF",
    ),
}


class Place:
    """A stream on a real Kafka with a real registry, whose commands are processes."""

    def __init__(self, world: World, url: str, directory: Path, change: Change) -> None:
        self.world, self.change, self.directory = world, change, directory
        self.registry = SchemaRegistryClient({"url": url})
        for role in ("raw", "safe", "dead"):
            world.topic(1, f"-{role}")
        self.log: list[str] = []
        self.running: list[subprocess.Popen[str]] = []
        self.port = free_port()

    def policy(self, new: int) -> Path:
        path = self.directory / f"{'new' if new else 'old'}.yaml"
        formats = self.change.formats[new].replace("SUBJECT", f"{self.world.name}-safe-2")
        path.write_text(POLICY.format(name=self.world.name, public=self.change.public[new], format=formats))
        return path

    def portcullis(self, *arguments: Any) -> "subprocess.Popen[str]":
        self.log.append("$ portcullis " + " ".join(getattr(each, "name", str(each)) for each in arguments))
        command = [sys.executable, "-m", "service", *map(str, arguments), "--bootstrap", self.world.bootstrap]
        if arguments[0] == "run":
            command += ["--status-port", str(self.port)]
        made = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.running.append(made)
        return made

    def ended(self, process: "subprocess.Popen[str]", send: int | None = None) -> int:
        if send is not None:
            process.send_signal(send)
        out, _ = process.communicate(timeout=120)
        self.log += [*out.splitlines(), f"(exit {process.returncode})"]
        return process.returncode

    def answer(self, page: str) -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{page}") as found:
                return str(found.read().decode())
        except OSError:  # it does not listen yet, or is not ready
            return ""

    def counts(self, name: str) -> int:
        found = self.answer("status")
        return int(json.loads(found)["counts"].get(name, 0)) if found else 0

    def write(self, schema: str, *events: Any) -> None:
        context = SerializationContext(f"{self.world.name}-raw", MessageField.VALUE)
        if self.change.kind == "AVRO":
            write: Any = AvroSerializer(self.registry, schema)
            values = [write(event, context) for event in events]
        else:
            made = classes(schema)["shop.Order"]
            write = ProtobufSerializer(made, self.registry, {"use.deprecated.format": False})
            values = [write(made(**event), context) for event in events]
        self.world.write(Partition(f"{self.world.name}-raw", 0), *values)

    def register(self, schema: str) -> None:
        self.registry.register_schema(f"{self.world.name}-raw-value", Schema(schema, self.change.kind))

    def released(self) -> list[int]:
        """The traces of all published rows, each message read by the schema whose id it carries."""
        where, found = Partition(f"{self.world.name}-safe", 0), list[int]()
        with contextlib.closing(self.world.client().reader()) as reader:
            low, high = reader.watermarks(where)
            for value in (value for batch in reader.read(where, low, high, 60) for value in batch.values):
                assert value is not None
                text = self.registry.get_schema(int.from_bytes(value[1:5], "big")).schema_str
                if self.change.kind == "AVRO":
                    found += [int(row["trace"]) for row in read(text, value[5:])["rows"]]
                else:
                    (cluster,) = [made for name, made in classes(text).items() if name.endswith(".Cluster")]
                    found += [row.trace for row in cluster.FromString(value[6:]).rows]
        return sorted(found)


@pytest.fixture
def place(
    request: pytest.FixtureRequest,
    real_bootstrap: str,
    real_registry: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Place]:
    monkeypatch.setenv("PORTCULLIS_REGISTRY_URL", real_registry.url)
    with contextlib.ExitStack() as stack:
        made = Place(World("confluent-kafka", real_bootstrap, stack), real_registry.url, tmp_path, request.param)
        yield made
        for process in made.running:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
        (tmp_path / "commands.txt").write_text("\n".join(made.log))


@pytest.mark.parametrize("place", CHANGES.values(), ids=CHANGES.keys(), indirect=True)
def test_commands_that_the_worker_names_take_over_an_incompatible_change(place: Place) -> None:
    change = place.change
    old = [{"who": f"p{n}", "age": n, "trace": n} | ({"note": "n"} if "note" in change.old else {}) for n in range(10)]
    place.write(change.old, *old)
    first = place.portcullis("run", place.policy(0))
    eventually(lambda: place.counts("released") > 0 and '"pending":' in place.answer("status"), 300)
    assert place.ended(first, signal.SIGTERM) == 0
    before = place.released()
    assert 0 < len(before) < 10, "some events are published, others are pending"
    place.register(change.new)
    restarted = place.portcullis("run", place.policy(0))
    eventually(lambda: "goes on with the schemas" in place.answer("readyz"), 300)
    ready = place.answer("readyz")
    place.log += ["$ curl /readyz", ready]
    assert ready.startswith("ok\n")
    assert place.ended(restarted, signal.SIGTERM) == 0
    commands = [each.split()[1:] for each in re.findall(r"`(portcullis [^`]+)`", ready)]
    assert [command[0] for command in commands] == ["drain", "run"]
    policies = {"OLD_POLICY": place.policy(0), "NEW_POLICY": place.policy(1)}
    drain, run = ([policies.get(word, word) for word in command] for command in commands)
    assert place.ended(place.portcullis(*drain)) == 0
    assert place.released() == [*range(10)], "nothing that was pending is stuck"
    place.write(change.new, *map(change.new_event, range(10, 20)))
    last = place.portcullis(*run)
    eventually(lambda: len(place.released()) >= 13, 300)
    assert place.ended(last, signal.SIGTERM) == 0
    left = place.released()
    assert left[:10] == [*range(10)]
    assert len(set(left)) == len(left), "no event is published twice"
