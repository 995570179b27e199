"""`portcullis risk`: what it tells about a table, and that it shows no value of it."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from microdata import field_keys
from service.broker import Broker
from service.kafka import KafkaSettings, Partition, connect
from service.ports import free_port
from tests.service.cli.cli_world import MARK, POLICY, table_text


def written(path: Path, lines: Any) -> Path:
    path.write_text("\n".join(",".join(map(str, line)) for line in lines) + "\n")
    return path


@pytest.fixture
def people(tmp_path: Path) -> Any:
    head = ("id", "age", "city", "region", "shop")
    cities = [("Oslo", "North"), ("Umea", "North"), ("Rome", "South"), ("Bari", "South")]
    rows = [(f"{MARK}{row}", 20 + row % 25, *cities[row % 4], "east") for row in range(200)]
    return written(tmp_path / "people.csv", [head, *rows])


def test_it_tells_what_identifies_and_shows_no_value(portcullis: Any, people: Any) -> None:
    result = portcullis("risk", people, "--size", "2", "--share", "0.5")
    assert result.exit_code == 0
    assert "100% of the rows are unique on id" in result.stdout
    assert "determines region" in result.stdout
    assert "nearly a key" in result.stdout
    assert MARK not in result.output
    assert "Oslo" not in result.output


def test_json_is_one_document_with_everything(portcullis: Any, people: Any) -> None:
    made = json.loads(portcullis("risk", people, "--json", "--population", "5000").stdout)
    assert (made["rows"], made["population"], made["complete"]) == (200, 5000, 3)
    assert [one["name"] for one in made["fields"]] == ["id", "age", "city", "region", "shop"]
    assert made["sets"][0] == {"fields": ["id"], "alone": 1.0, "error": 0.0, "bound": None}
    assert {one["name"]: one["distinct"] for one in made["fields"]}["age"] == 25
    assert made["quasi"] is None
    assert MARK not in json.dumps(made)


def test_persons_count_and_not_rows(portcullis: Any, people: Any) -> None:
    twice = people.read_text() + people.read_text().partition("\n")[2]
    people.write_text(twice)
    rows = json.loads(portcullis("risk", people, "--json").stdout)
    persons = json.loads(portcullis("risk", people, "--json", "--person", "id").stdout)
    assert rows["together"]["alone"] == 0
    assert not any("id" in one["fields"] for one in persons["sets"])
    assert "id" not in [one["name"] for one in persons["fields"]]
    assert [one["alone"] for one in rows["sets"]] == []


def test_the_roles_of_a_policy_are_looked_at(portcullis: Any, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY.replace("public: [shop]", "public: [shop, note, district]"))
    districts = {"Oslo": "d1", "Umea": "d2", "Rome": "d3", "Bari": "d4"}
    head, *rows = table_text().splitlines()
    rows = [f"{row},{districts[row.split(',')[2]]}" for row in rows]
    rows = [row.replace(f"{MARK} note", f"{MARK} {number}") for number, row in enumerate(rows)]
    (tmp_path / "table.csv").write_text("\n".join([f"{head},district", *rows]) + "\n")
    result = portcullis("risk", tmp_path / "table.csv", "--policy", tmp_path / "policy.yaml")
    assert result.exit_code == 0
    assert "schema.public: 'note' singles out 100% of the rows by itself" in result.stderr
    assert "from 'district' follows city" in result.stderr
    assert "'shop'" not in result.stderr
    assert "on the quasi-identifiers of the policy" in result.stdout
    assert MARK not in result.output


def test_what_is_missing_or_cannot_be_read_is_told(portcullis: Any, people: Any, shop: Any, tmp_path: Path) -> None:
    result = portcullis("risk", people, "--person", "customer")
    assert (result.exit_code, "customer" in result.stderr) == (2, True)
    result = portcullis("risk", people, "--policy", shop / "policy.yaml")
    assert (result.exit_code, "item" in result.stderr) == (2, True)
    assert portcullis("risk", tmp_path / "nothing.csv").exit_code == 2
    assert "only the first 50 rows" in portcullis("risk", people, "--rows", "50").stderr


def test_a_policy_for_another_kind_of_data_is_refused(portcullis: Any, people: Any) -> None:
    result = portcullis("risk", people, "--policy", Path(__file__).parents[3] / "examples/survey/policy.yaml")
    assert result.exit_code == 2
    assert "risk knows records" in result.stderr


@pytest.fixture
def orders() -> Any:
    """A broker with a topic of 300 orders by 100 customers, and something else between them."""
    with Broker() as broker:
        client = connect(KafkaSettings(bootstrap_servers=broker.bootstrap))
        with closing(client.admin()) as admin, closing(client.producer("orders")) as producer:
            admin.create_topic("orders.raw", 2)
            admin.create_topic("empty", 1)
            producer.init_transactions()
            producer.begin()
            for number in (0, 1):
                events = [
                    {"customer": f"{MARK}{order % 100}", "age": order % 50, "where": {"city": f"{MARK}{order % 3}"}}
                    for order in range(number, 300, 2)
                ]
                values: list[bytes | None] = [json.dumps(event).encode() for event in events]
                producer.produce(Partition("orders.raw", number), [*values, b"[]", None])
            producer.commit()
        yield broker.bootstrap


@pytest.mark.kafka
def test_a_topic_is_looked_at_without_a_value(portcullis: Any, orders: Any) -> None:
    result = portcullis("risk", "--topic", "orders.raw", "--bootstrap", orders, "--json")
    assert result.exit_code == 0, result.output
    made = json.loads(result.stdout)
    assert made["rows"] == 300
    assert {one["name"]: one["distinct"] for one in made["fields"]} == {"customer": 100, "age": 50, "where.city": 3}
    assert "2 rows could not be read" in result.stderr
    assert MARK not in result.output
    by_person = portcullis("risk", "--topic", "orders.raw", "--bootstrap", orders, "--json", "--person", "customer")
    assert json.loads(by_person.stdout)["together"]["alone"] == 0, "a customer orders in several cities"


@pytest.mark.kafka
def test_only_the_newest_records_of_a_topic_are_read(portcullis: Any, orders: Any) -> None:
    result = portcullis("risk", "--topic", "orders.raw", "--bootstrap", orders, "--json", "--sample", "100")
    rows = json.loads(result.stdout)["rows"]
    assert 90 <= rows < 100, "the last of each partition are no objects"
    assert f"only the newest {rows} rows" in result.stderr
    assert "values were counted over 300 rows" in result.stderr
    assert {one["name"]: one["distinct"] for one in json.loads(result.stdout)["fields"]}["age"] == 50
    few = portcullis("risk", "--topic", "orders.raw", "--bootstrap", orders, "--json", "--sample", "100", "--read", "1")
    assert "values were counted" not in few.stderr
    assert json.loads(few.stdout)["counted"] == rows


@pytest.mark.kafka
def test_what_is_kept_of_a_topic_is_bounded(portcullis: Any, orders: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(field_keys, "MOST_CELLS", 300)
    result = portcullis("risk", "--topic", "orders.raw", "--bootstrap", orders, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["rows"] < json.loads(result.stdout)["counted"] == 300
    assert "rows were looked at" in result.stderr


@pytest.mark.kafka
def test_a_topic_that_cannot_be_read_is_told(portcullis: Any, orders: Any) -> None:
    assert portcullis("risk", "--topic", "nothing", "--bootstrap", orders).exit_code == 69
    result = portcullis("risk", "--topic", "empty", "--bootstrap", orders)
    assert (result.exit_code, "must be JSON objects" in result.stderr) == (2, True)


def test_a_broker_that_is_away_is_told_at_once(portcullis: Any) -> None:
    result = portcullis("risk", "--topic", "orders", "--bootstrap", f"127.0.0.1:{free_port()}")
    assert (result.exit_code, "no broker at" in result.stderr) == (69, True)


def test_it_is_a_table_or_a_topic(portcullis: Any, people: Any) -> None:
    assert portcullis("risk").exit_code == 2
    assert portcullis("risk", people, "--topic", "orders").exit_code == 2


def test_a_proposal_says_why_and_what_it_costs(portcullis: Any, shop: Path, tmp_path: Path) -> None:
    result = portcullis("policy", "init", shop / "table.csv", "--out", tmp_path / "first", "--try")
    assert result.exit_code == 0, result.output
    assert "of the rows are unique on the quasi-identifiers as they are" in result.stdout
    assert "of the rows are unique on age" in result.stdout
    for k in (5, 10, 25):
        assert f"with k {k}: " in result.stdout
    assert "with k 5: 80 rows in " in result.stdout
    assert MARK not in result.output


def test_a_proposal_for_ratings_has_no_roles_to_rate(portcullis: Any, tmp_path: Path) -> None:
    ratings = Path(__file__).parents[3] / "examples/survey/ratings.csv"
    result = portcullis("policy", "init", ratings, "--out", tmp_path / "first")
    assert result.exit_code == 0, result.output
    assert "quasi-identifiers as they are" not in result.stdout
