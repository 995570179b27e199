"""A first policy for a topic that nobody described, with a rehearsal."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from service.broker import Broker
from service.kafka import KafkaSettings, Partition, connect
from service.policy import load_policy
from tests.service.cli.cli_world import MARK
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


def test_tags_of_the_registry_go_before_guesses(
    portcullis: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tags = {"city": {"confluent:tags": ["direct-identifier"]}, "age": {"confluent:tags": ["PII"]}}
    with Broker() as broker, FakeRegistry() as registry:
        client = connect(KafkaSettings(bootstrap_servers=broker.bootstrap))
        number = registry.add("orders-value", {"type": "object", "properties": tags}, "JSON")
        with closing(client.admin()) as admin, closing(client.producer("orders")) as producer:
            producer.init_transactions()
            admin.create_topic("orders", 1)
            producer.begin()
            head = b"\0" + number.to_bytes(4, "big")
            values: list[bytes | None] = [head + json.dumps(order(one, named=True)).encode() for one in range(200)]
            producer.produce(Partition("orders", 0), values)
            producer.commit()
        monkeypatch.setenv("PORTCULLIS_REGISTRY_URL", registry.url)
        result = portcullis("policy", "init", "--topic", "orders", "--bootstrap", broker.bootstrap, "--out", tmp_path)
        assert result.exit_code == 0, result.output
        assert "city: left out (its schema tags it direct-identifier)" in result.stdout
        assert "age: quasi (its schema tags it PII; " in result.stdout
        assert load_policy(tmp_path / "policy.yaml").format.input.type == "json-schema"
        registry.add("orders-value", {"type": "record", "name": "A", "fields": []})
        result = portcullis("policy", "init", "--topic", "orders", "--bootstrap", broker.bootstrap, "--out", tmp_path)
        assert "the registry has a schema of AVRO" in result.output
