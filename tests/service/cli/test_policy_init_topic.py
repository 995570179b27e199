"""A first policy for a topic that nobody described, with a rehearsal."""

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from service.broker import Broker
from service.kafka import KafkaSettings, Partition, connect
from service.policy import load_policy
from tests.service.cli.cli_world import MARK
from tests.service.codec import avro_world, protobuf_world
from tests.service.registry.fake_registry import FakeRegistry

CITIES = ("Oslo", "Rome", "Bari")
pytestmark = pytest.mark.kafka


def order(number: int, *, named: bool) -> dict[str, Any]:
    customer = {"customer": f"{MARK}{number % 60}"} if named else {}
    about = {
        "age": 20 + number % 50,
        "city": CITIES[number % 3],
        "diagnosis": ("flu", "asthma", "none")[number % 7 % 3],
    }
    return {**customer, **about, "note": f"{MARK} {number}"}


@pytest.fixture(scope="module")
def orders() -> Any:
    """A broker with 500 orders of 60 customers: `orders` names them in a field, `keyed` by keys, `rows` nowhere."""
    with Broker() as broker:
        client = connect(KafkaSettings(bootstrap_servers=broker.bootstrap))
        with closing(client.admin()) as admin, closing(client.producer("orders")) as producer:
            producer.init_transactions()
            for topic in ("orders", "keyed", "rows"):
                admin.create_topic(topic, 2)
                producer.begin()
                for partition in (0, 1):
                    numbers = [one for one in range(500) if (one % 5 == 0) == (partition == 1)]
                    values: list[bytes | None] = [
                        json.dumps(order(one, named=topic == "orders")).encode() for one in numbers
                    ]
                    keys = [f"{MARK}{one % 60}".encode() for one in numbers]
                    producer.produce(Partition(topic, partition), values, keys if topic == "keyed" else None)
                    producer.produce(Partition(topic, partition), [b"no json", None])
                producer.commit()
        yield broker.bootstrap


def test_an_unknown_topic_gets_a_policy_and_a_rehearsal(portcullis: Any, orders: Any, tmp_path: Path) -> None:
    result = portcullis("policy", "init", "--topic", "orders", "--bootstrap", orders, "--out", tmp_path, "--try")
    assert result.exit_code == 0, result.output
    policy = load_policy(tmp_path / "policy.yaml")
    assert (policy.kind, policy.schema.person) == ("stream", "customer")
    assert policy.stream is not None
    assert (policy.stream.input, policy.stream.output) == ("orders", "orders.safe")
    assert "diagnosis: sensitive" in result.stdout
    assert "of the rows are unique on the quasi-identifiers as they are" in result.stdout
    # The fullest partition has four fifths of them.
    assert "tried with the 400 records of the fullest partition" in result.stdout
    for k in (5, 10, 25):
        (line,) = [one for one in result.stdout.splitlines() if one.startswith(f"with k {k}: ")]
        assert "suppressed" in line
        assert "wait for" in line
    assert MARK not in result.output
    assert MARK not in (tmp_path / "policy.yaml").read_text()


def test_keys_are_persons_where_no_field_is(portcullis: Any, orders: Any, tmp_path: Path) -> None:
    result = portcullis("policy", "init", "--topic", "keyed", "--bootstrap", orders, "--out", tmp_path, "--try")
    assert result.exit_code == 0, result.output
    assert "THE KEY OF A RECORD COUNTS AS THE PERSON" in result.stderr
    assert "person: {key: true}" in (tmp_path / "policy.yaml").read_text()
    assert load_policy(tmp_path / "policy.yaml").kind == "stream"
    assert "not tried" in result.stdout


def test_without_both_it_is_said_that_rows_are_persons(portcullis: Any, orders: Any, tmp_path: Path) -> None:
    result = portcullis("policy", "init", "--topic", "rows", "--bootstrap", orders, "--out", tmp_path, "--sample", "50")
    assert result.exit_code == 0, result.output
    assert "NO COLUMN NAMES PERSONS" in result.stderr
    assert "looked at the newest" in result.stderr


def test_it_is_a_table_or_a_topic(portcullis: Any, tmp_path: Path) -> None:
    assert portcullis("policy", "init", "--out", tmp_path).exit_code == 2
    assert portcullis("policy", "init", tmp_path / "t.csv", "--topic", "orders", "--out", tmp_path).exit_code == 2
    assert not (tmp_path / "policy.yaml").exists()


def written(kind: str, number: int) -> bytes:
    """An order in this format, without what is in front."""
    made = order(number, named=True) | {"city": {"name": CITIES[number % 3]}}
    if kind == "JSON":
        return json.dumps(made).encode()
    return avro_world.written(AVRO, made) if kind == "AVRO" else b"\0" + protobuf_world.written(UNTAGGED, made, "Order")


CITY = {"type": "record", "name": "City", "fields": [{"name": "name", "type": "string", "tags": ["direct-identifier"]}]}
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "customer", "type": "string"},
        {"name": "age", "type": ["null", "int"], "confluent:tags": ["PII"]},
        {"name": "city", "type": CITY},
        {"name": "diagnosis", "type": "string"},
        {"name": "note", "type": "string"},
    ],
}
PROTOBUF = """syntax = "proto3";
import "confluent/meta.proto";
message Order {
  string customer = 1;
  optional int32 age = 2 [(confluent.field_meta).tags = "PII"];
  City city = 3;
  string diagnosis = 4;
  string note = 5;
}
message City { string name = 1 [(confluent.field_meta).tags = "direct-identifier"]; }
"""
UNTAGGED = re.sub(r" \[.*?\]|import.*", "", PROTOBUF)
"""As protoc takes it without Confluent's file."""
JSON = {
    "type": "object",
    "properties": {
        "city": {"properties": {"name": {"confluent:tags": ["direct-identifier"]}}},
        "age": {"confluent:tags": ["PII"]},
    },
}
SCHEMAS: dict[str, Any] = {"AVRO": AVRO, "PROTOBUF": PROTOBUF, "JSON": JSON}


@pytest.mark.parametrize(("kind", "name"), [("AVRO", "avro"), ("PROTOBUF", "protobuf"), ("JSON", "json-schema")])
def test_a_topic_with_a_schema_is_read_by_it(
    kind: str, name: str, portcullis: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tags go before guesses, its values are looked at, and the policy is tried with them."""
    with Broker() as broker, FakeRegistry() as registry:
        client = connect(KafkaSettings(bootstrap_servers=broker.bootstrap))
        number = registry.add("orders-value", SCHEMAS[kind], kind)
        with closing(client.admin()) as admin, closing(client.producer("orders")) as producer:
            producer.init_transactions()
            admin.create_topic("orders", 1)
            producer.begin()
            front = b"\0" + number.to_bytes(4, "big")
            values: list[bytes | None] = [front + written(kind, one) for one in range(200)]
            producer.produce(Partition("orders", 0), [*values, b"no record", front, None])
            producer.commit()
        monkeypatch.setenv("PORTCULLIS_REGISTRY_URL", registry.url)
        asked = "--topic", "orders", "--bootstrap", broker.bootstrap
        result = portcullis("policy", "init", *asked, "--out", tmp_path, "--try")
        assert result.exit_code == 0, result.output
        assert "city.name: left out (its schema tags it direct-identifier)" in result.stdout
        assert "age: quasi (its schema tags it PII; " in result.stdout
        assert "diagnosis: sensitive" in result.stdout
        assert "tried with the 200 records" in result.stdout
        assert result.stdout.count("of the events suppressed, loss") == 3
        policy = load_policy(tmp_path / "policy.yaml")
        assert (policy.format.input.type, policy.schema.person) == (name, "customer")
        result = portcullis("risk", *asked, "--person", "customer", "--policy", tmp_path / "policy.yaml", "--json")
        assert result.exit_code == 0, result.output
        rows = json.loads(result.stdout)["fields"]
        distinct = {one["name"]: one["distinct"] for one in rows}
        assert [distinct[one] for one in ("age", "city.name", "diagnosis")] == [50, 3, 3]
        assert "2 rows could not be read" in result.stderr
        assert MARK not in result.output
        assert len(registry.schemas) == 1, "looking registers nothing"


WHO = {
    "type": "record",
    "name": "Who",
    "fields": [{"name": "region", "type": "int"}, {"name": "user_id", "type": "int"}],
}


@pytest.mark.parametrize(
    ("key", "person", "formats"),
    [
        ("string", "{key: true}", "format: {input: json, output: json, key: avro}"),
        (WHO, "{key: user_id}", "format: {input: json, output: json, key: avro}"),
        (None, "{key: true}", None),
    ],
)
def test_keys_are_read_by_their_schema(
    key: Any, person: str, formats: str | None, portcullis: Any, orders: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    with FakeRegistry() as registry:
        if key is not None:
            registry.add("keyed-key", json.dumps(key))
        monkeypatch.setenv("PORTCULLIS_REGISTRY_URL", registry.url)
        result = portcullis("policy", "init", "--topic", "keyed", "--bootstrap", orders, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    text = (tmp_path / "policy.yaml").read_text()
    assert f"person: {person}" in text
    assert formats in text if formats else "format:" not in text
    assert load_policy(tmp_path / "policy.yaml").format.key_type == ("raw" if key is None else "avro")


def test_topic_of_debezium_gets_a_policy_for_the_rows_inside(portcullis: Any, orders: Any, tmp_path: Path) -> None:
    client = connect(KafkaSettings(bootstrap_servers=orders))
    with closing(client.admin()) as admin, closing(client.producer("debezium")) as producer:
        admin.create_topic("shop.customers", 1)
        producer.init_transactions()
        producer.begin()
        rows = [order(one, named=True) for one in range(500)]
        changes = [{"before": None, "after": row, "source": {"db": "shop"}, "op": "c"} for row in rows]
        changes += [{"before": rows[0], "after": None, "source": {"db": "shop"}, "op": "d"}]
        values: list[bytes | None] = [json.dumps({"schema": None, "payload": change}).encode() for change in changes]
        producer.produce(Partition("shop.customers", 0), [*values, None])
        producer.commit()
    result = portcullis(
        "policy", "init", "--topic", "shop.customers", "--bootstrap", orders, "--out", tmp_path, "--try"
    )
    assert result.exit_code == 0, result.output
    policy = load_policy(tmp_path / "policy.yaml")
    assert policy.schema.person == "customer"
    assert policy.stream is not None
    assert policy.stream.envelope == "debezium"
    assert "tried with the 500 records" in result.stdout
    assert MARK not in result.output
