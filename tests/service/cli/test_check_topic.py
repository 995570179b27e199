"""`policy check --topic` holds a policy against the newest schema of its input."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from service.cli import app
from tests.service.codec.avro_world import record
from tests.service.registry.fake_registry import FakeRegistry

POLICY = """
name: orders
schema:
  person: who
  quasi: {age: {type: number, min: 0, max: 99}, tags: {type: number, min: 0, max: 9}}
  public: [amount, absent]
guarantee: {algorithm: castle, k: 2, delay: {tuples: 3}}
stream: {input: raw, output: safe, start: earliest, format: FORMAT}
"""


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRegistry]:
    with FakeRegistry() as fake:
        monkeypatch.setenv("PORTCULLIS_REGISTRY_URL", fake.url)
        yield fake


def checked(tmp_path: Path, topics: str, *more: str) -> tuple[int, str]:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY.replace("FORMAT", topics))
    done = CliRunner().invoke(app, ["policy", "check", str(path), "--topic", *more])
    return done.exit_code, done.output + str(done.exception or "")


def test_fields_that_are_missing_or_of_no_use_are_named(tmp_path: Path, registry: FakeRegistry) -> None:
    tags = {"name": "tags", "type": {"type": "array", "items": "int"}}
    registry.add("raw-value", record(tags))
    status, said = checked(tmp_path, "avro", "--json")
    problems = {one["path"]: one["reason"] for one in json.loads(said[: said.rindex("}") + 1])["problems"]}
    assert status == 2
    assert problems == {
        "schema (tags)": "is of type array, which holds many values",
        "schema (absent)": "the topic's schema has no such field",
    }


def test_a_policy_whose_fields_are_there_is_usable(tmp_path: Path, registry: FakeRegistry) -> None:
    registry.add("theirs", record({"name": "tags", "type": "int"}, {"name": "absent", "type": "string"}))
    status, said = checked(tmp_path, "{input: {type: avro, subject: theirs}}")
    assert (status, "usable for streams" in said) == (0, True)


def test_a_topic_of_json_has_no_schema(tmp_path: Path) -> None:
    status, said = checked(tmp_path, "json")
    assert status != 0
    assert "only an input, or keys, of avro or protobuf have a schema to look at" in said


def test_a_key_that_cannot_name_a_person_is_a_problem(tmp_path: Path, registry: FakeRegistry) -> None:
    path = tmp_path / "policy.yaml"
    text = POLICY.replace("person: who", "person: {key: id}").replace("[amount, absent]", "[]")
    path.write_text(text.replace("FORMAT", "{key: avro}"))
    registry.add("raw-key", {"type": "record", "name": "Who", "fields": [{"name": "name", "type": "string"}]})
    done = CliRunner().invoke(app, ["policy", "check", str(path), "--topic"])
    assert done.exit_code != 0
    assert "schema (id): the topic's schema has no such field" in done.stderr
    path.write_text(path.read_text().replace("key: id", "key: name"))
    done = CliRunner().invoke(app, ["policy", "check", str(path), "--topic"])
    assert (done.exit_code, "usable for streams" in done.output) == (0, True)
