"""Topics of a policy as a format writes them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from service.codec.avro_messages import derived_schema
from service.codec.protobuf_messages import derived_protobuf
from service.policy import load_policy
from tests.service.codec import avro_world, protobuf_world
from tests.service.registry.fake_registry import FakeRegistry


class Written:
    """How the topics of a policy are written in a format: events by somebody else's library, what left by ours."""

    def __init__(self, name: str, home: Path, registry: FakeRegistry) -> None:
        text = (home / "policy.yaml").read_text()
        (home / "policy.yaml").write_text(text.replace("emit: clusters", f"emit: clusters, format: {name}"))
        policy, self._name = load_policy(home / "policy.yaml"), name
        fields = {"id": "string", "age": "long", "city": "string", "item": "string", "shop": "string", "note": "string"}
        types = dict.fromkeys(policy.schema.public, pa.large_string())
        if name == "avro":
            own = [{"name": field, "type": kind} for field, kind in fields.items()]
            self._in: Any = {"type": "record", "name": "Visit", "fields": own}
            self._out: Any = json.loads(derived_schema(policy.schema, types, "clusters", "interval", "safe"))
        else:
            kinds = {"string": "string", "long": "int64"}
            lines = [f"{kinds[kind]} {field} = {place};" for place, (field, kind) in enumerate(fields.items(), 1)]
            self._in = f'syntax = "proto3"; message Visit {{ {" ".join(lines)} }}'
            self._out = derived_protobuf(policy.schema, types, "clusters", "interval", "safe")
        if name != "json":
            numbers = registry.add("raw-value", self._in, name.upper()), registry.add("old", self._out, name.upper())
            self._heads = [b"\0" + number.to_bytes(4, "big") for number in numbers]

    def event(self, row: dict[str, Any]) -> bytes:
        if self._name == "json":
            return json.dumps(row).encode()
        if self._name == "avro":
            return self._heads[0] + avro_world.written(self._in, row)
        return self._heads[0] + b"\0" + protobuf_world.written(self._in, row, "Visit")

    def left(self, line: bytes) -> bytes:
        if self._name == "json":
            return line
        said = json.loads(line)
        box = {key: dict(zip(("low", "high"), ends, strict=True)) if isinstance(ends, list) else ends
               for key, ends in said["generalization"].items()}  # fmt: skip
        said |= {"part": 1, "parts": 1, "generalization": box}
        if self._name == "avro":
            return self._heads[1] + avro_world.written(self._out, said)
        return self._heads[1] + b"\0" + protobuf_world.written(self._out, said, "portcullis.safe.Cluster")
