"""The registry client: against one in this process that misbehaves on demand, and against a real one."""

import json
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from microdata import Reason
from service.codec.avro import AvroReader, RegistrySchemas, record_of
from service.codec.subjects import Subject
from service.registry import Registry, RegistryDeniedError, RegistryError, RegistrySettings, SchemaConflictError
from service.settings import SettingsError, settings_of
from tests.service.registry.fake_registry import PASSWORD, TOKEN, USER, FakeRegistry, basic

SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}


@pytest.fixture
def fake() -> Iterator[FakeRegistry]:
    with FakeRegistry() as registry:
        yield registry


def test_an_id_is_asked_for_once(fake: FakeRegistry) -> None:
    number, client = fake.add("raw-value", SCHEMA), fake.client()
    first = client.by_id(number)
    assert first is not None
    assert first.kind == "AVRO"
    assert '"R"' in first.text
    assert client.by_id(number) is first
    assert fake.asked[f"GET /api/schemas/ids/{number}"] == 1


def test_an_id_that_nobody_knows_is_asked_for_once_in_a_while(
    fake: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = fake.client()
    assert [client.by_id(77), client.by_id(77)] == [None, None]
    assert fake.asked["GET /api/schemas/ids/77"] == 1
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 61.0)
    assert client.by_id(77) is None
    assert fake.asked["GET /api/schemas/ids/77"] == 2


def test_what_is_remembered_is_bounded(fake: FakeRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.registry.client._MOST_SCHEMAS", 3)
    client = fake.client()
    for number in range(100, 110):
        client.by_id(number)
    assert len(client._unknown) == 3


def test_what_a_schema_refers_to_comes_with_it_the_innermost_first(fake: FakeRegistry) -> None:
    fake.add("inner", '"string"')
    fake.add("middle", '"int"', references=[{"name": "x", "subject": "inner", "version": 1}])
    both = [{"name": "m", "subject": "middle", "version": 1}, {"name": "x", "subject": "inner", "version": 1}]
    found = fake.client().by_id(fake.add("outer", SCHEMA, references=both))
    assert found is not None
    assert found.references == ('"string"', '"int"')


def test_references_in_a_circle_end(fake: FakeRegistry) -> None:
    itself = [{"name": "x", "subject": "round", "version": 1}]
    found = fake.client().by_id(fake.add("round", SCHEMA, references=itself))
    assert found is not None
    assert len(found.references) == 1


def test_references_are_followed_up_to_a_bound(fake: FakeRegistry) -> None:
    for number in range(66):
        below = [{"name": "x", "subject": f"s{number - 1}", "version": 1}] if number else []
        fake.add(f"s{number}", f'"int{number}"', references=below)
    found = fake.client(timeout=5).newest("s64")
    assert found is not None
    assert len(found.references) == 64
    with pytest.raises(RegistryError) as caught:
        fake.client(timeout=5).newest("s65")
    assert caught.value.code == "REGISTRY_STRANGE"


def test_a_flood_of_unknown_ids_costs_a_question_each_and_no_memory(
    fake: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.registry.client._MOST_SCHEMAS", 10)
    client = fake.client(timeout=5)
    for _ in range(2):
        assert [client.by_id(1_000 + number) for number in range(10)] == [None] * 10
    assert sum(fake.asked.values()) == 10
    assert [client.by_id(2_000 + number) for number in range(20)] == [None] * 20
    assert len(client._unknown) == 10


@pytest.mark.parametrize(("mood", "code"), [
    ("500", "REGISTRY_BROKEN"), ("302", "REGISTRY_BROKEN"), ("429", "REGISTRY_BROKEN"),
    ("html", "REGISTRY_STRANGE"), ("list", "REGISTRY_STRANGE"), ("slow", "REGISTRY_NO_ANSWER"),
])  # fmt: skip
def test_a_registry_that_misbehaves_may_answer_later(fake: FakeRegistry, mood: str, code: str) -> None:
    number, client = fake.add("raw-value", SCHEMA), fake.client()
    fake.mood = mood
    with pytest.raises(RegistryError) as caught:
        client.by_id(number)
    assert caught.value.code == code
    fake.mood = ""
    assert client.by_id(number) is not None


def test_nobody_there_is_an_error_that_may_pass() -> None:
    client = Registry(RegistrySettings(url="http://127.0.0.1:9", timeout=0.3))
    with pytest.raises(RegistryError, match=r"127\.0\.0\.1:9 \(Connection refused\)"):
        client.newest("raw-value")


def test_answer_beyond_the_size_limit_is_named(fake: FakeRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.registry.client._MOST_BYTES", 100)
    number = fake.add("raw-value", '"' + "x" * 200 + '"')
    with pytest.raises(RegistryError, match="answers with more than 100 bytes") as caught:
        fake.client(timeout=5).by_id(number)
    assert caught.value.code == "REGISTRY_TOO_LARGE"


@pytest.mark.parametrize("code", [404, 40401, 40402, 50001])
def test_only_the_code_of_a_missing_schema_makes_an_id_unknown(fake: FakeRegistry, code: int) -> None:
    """A proxy answers 404 while the registry behind it is away; its records must not be rejected for that."""
    number, client = fake.add("raw-value", SCHEMA), fake.client(timeout=5)
    fake.answers = 404, b'{"error_code": %d, "message": "not here"}' % code
    with pytest.raises(RegistryError) as caught:
        client.by_id(number)
    assert caught.value.code == "REGISTRY_STRANGE"
    fake.answers = None
    assert client.by_id(number) is not None


def test_schema_that_cannot_be_read_is_asked_for_again_after_a_while(
    fake: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One wrong answer rejected the records of an id until the next restart."""
    number, client = fake.add("raw-value", SCHEMA), fake.client(timeout=5)
    fake.answers = 200, b'{"schema": "<html>"}'
    schemas = RegistrySchemas(Subject(client, "raw-value", "AVRO"), "R")
    reader = AvroReader(["a"], schemas, record_of(json.dumps(SCHEMA), "a test"), 1_000)
    assert reader.plan(number) is reader.plan(number) is Reason.OTHER_SCHEMA
    fake.answers = None
    assert reader.plan(number) is Reason.OTHER_SCHEMA
    assert fake.asked[f"GET /api/schemas/ids/{number}"] == 1
    later = time.monotonic() + 61
    monkeypatch.setattr("time.monotonic", lambda: later)
    assert not isinstance(reader.plan(number), Reason)


@pytest.mark.parametrize(
    ("needs", "given"), [(basic(), {"username": USER, "password": PASSWORD}), (f"Bearer {TOKEN}", {"token": TOKEN})]
)
def test_credentials_are_shown(fake: FakeRegistry, needs: str, given: Any) -> None:
    fake.needs = needs
    fake.add("raw-value", SCHEMA)
    assert fake.client(**given).newest("raw-value") is not None
    with pytest.raises(RegistryDeniedError) as caught:
        fake.client(token="hunter2-marked").newest("raw-value")
    assert "hunter2" not in str(caught.value)


def test_a_conflict_says_what_the_registry_says_of_it(fake: FakeRegistry) -> None:
    fake.mood = "409"
    with pytest.raises(SchemaConflictError, match="does not take the schema: field b is new"):
        fake.client().register("safe-value", "AVRO", '"int"')


@pytest.mark.parametrize("wrong", [
    {"url": "ftp://somewhere"}, {"url": "http://user:secret@somewhere"}, {"username": "x"},
    {"tls_cert_file": Path("x")},
    {"username": "x", "password": "y", "token": "z"}, {"timeout": 0},
])  # fmt: skip
def test_settings_that_cannot_work_are_refused(wrong: Any) -> None:
    with pytest.raises(SettingsError) as caught:
        settings_of(RegistrySettings, wrong)
    assert "secret" not in str(caught.value)


def test_files_that_hold_no_certificate_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RegistryDeniedError, match="tls_ca_file"):
        Registry(RegistrySettings(url="https://127.0.0.1:9", tls_ca_file=tmp_path / "none.pem"))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two self-signed certificates for 127.0.0.1, with their keys: the registry's and ours."""
    folder, made = tmp_path_factory.mktemp("tls"), []
    for name in ("theirs", "ours"):
        chain, key = folder / f"{name}.pem", folder / f"{name}.key"
        command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
        names = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", chain]
        subprocess.run([*command.split(), *map(str, names)], check=True, capture_output=True)
        made.append((chain, key))
    return made


@pytest.mark.needs_tool("openssl")
def test_both_sides_show_their_certificates(certificates: Any) -> None:
    theirs, ours = certificates
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*theirs)
    context.load_verify_locations(ours[0])
    context.verify_mode = ssl.CERT_REQUIRED
    with FakeRegistry(context) as registry:
        number = registry.add("raw-value", SCHEMA)
        known = registry.client(tls_ca_file=theirs[0], tls_cert_file=ours[0], tls_key_file=ours[1], timeout=5)
        assert known.by_id(number) is not None
        for wrong in (
            {"tls_ca_file": theirs[0]},
            {"tls_ca_file": theirs[0], "tls_cert_file": theirs[0], "tls_key_file": theirs[1]},
            {"tls_ca_file": ours[0], "tls_cert_file": ours[0], "tls_key_file": ours[1]},
        ):
            with pytest.raises(RegistryError, match="no answer of the schema registry"):
                registry.client(**wrong, timeout=5).by_id(number)
        assert sum(registry.asked.values()) == 1


def test_without_an_address_there_is_nobody_to_ask() -> None:
    with pytest.raises(RegistryDeniedError, match="PORTCULLIS_REGISTRY_URL"):
        Registry(RegistrySettings(url=None))


@pytest.mark.needs_tool("registry")
@pytest.mark.xdist_group("registry")
def test_a_real_registry_registers_finds_and_refuses(real_registry: Any) -> None:
    client = Registry(RegistrySettings(url=real_registry.url))
    text = '{"type":"record","name":"Cluster","fields":[{"name":"a","type":"int"}]}'
    other = '{"type":"record","name":"Cluster","fields":[{"name":"b","type":"string"}]}'
    number = client.register("client-test", "AVRO", text)
    assert client.register("client-test", "AVRO", text) == number == client.look_up("client-test", "AVRO", text)
    assert client.look_up("client-test", "AVRO", other) is None
    newest = client.newest("client-test")
    assert newest is not None
    assert (newest.number, newest.kind) == (number, "AVRO")
    assert newest == client.by_id(number)
    assert client.newest("nobody-has-this") is None
    assert client.by_id(999_999) is None
