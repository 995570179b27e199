"""`portcullis attack`: the same numbers as the reports have, from what is published alone."""

import csv
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.broker import Broker
from service.kafka import KafkaSettings, Partition, connect
from service.ports import free_port
from tests.service.cli.cli_world import MARK, POLICY, table_text
from tests.service.cli.written_topics import Written
from tests.service.registry.fake_registry import FakeRegistry

COHORTS = "{algorithm: cohorts, k: 4, delay: {tuples: 60}, company: standing}"
ADULT = Path(__file__).parents[3] / "examples" / "adult"
STREAM = "stream: {input: raw, output: safe, emit: clusters, start: earliest}\n"


@pytest.fixture
def visits(portcullis: Any, tmp_path: Path) -> Any:
    """Forty people who come ten times, replayed; every event has a public value of its own."""
    policy = POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", COHORTS) + STREAM
    (tmp_path / "policy.yaml").write_text(policy)
    header, *lines = table_text(40).splitlines()
    order = np.random.default_rng(4).permutation(np.repeat(np.arange(40), 10))
    rows = [lines[row].replace(",east,", f",s{number},") for number, row in enumerate(order)]
    (tmp_path / "events.csv").write_text("\n".join([header, *rows]) + "\n")
    arguments = ("--policy", tmp_path / "policy.yaml", "--out", tmp_path / "safe.jsonl", "--rate", 20)
    more = ("--links", tmp_path / "links", "--report", tmp_path / "report.json")
    result = portcullis("replay", tmp_path / "events.csv", *arguments, *more)
    assert result.exit_code == 0, result.output
    return tmp_path


def attacked(portcullis: Any, home: Path, *more: Any) -> Any:
    result = portcullis("attack", home / "policy.yaml", *more, "--json")
    assert result.exit_code == 0, result.output
    assert MARK not in result.output
    return json.loads(result.stdout)


def test_a_replay_is_attacked_as_in_its_report(portcullis: Any, visits: Path) -> None:
    report = json.loads((visits / "report.json").read_text())
    files = ("--original", visits / "events.csv", "--published", visits / "safe.jsonl")
    with_links = attacked(portcullis, visits, *files, "--links", visits / "links")
    assert (with_links["linked"], with_links["certain"]) == (report["linked"], 1)
    assert attacked(portcullis, visits, *files)["linked"] == report["linked"], "each row is known by its public value"
    assert report["linked"]["fewest"] >= 4
    assert sum(one["persons"] for one in report["linked"]["bins"]) == report["linked"]["persons"]
    assert 0 < report["timing"]["nobody"] <= report["timing"]["below"] <= 1, "at 20 events a second"
    text = portcullis("attack", visits / "policy.yaml", *files).stdout
    assert "all rows of a person tied together" in text


def test_rows_that_nobody_can_tell_apart_are_placed_and_said_to_be_uncertain(portcullis: Any, visits: Path) -> None:
    policy = (visits / "policy.yaml").read_text().replace("  public: [shop]\n", "")
    (visits / "policy.yaml").write_text(policy)
    arguments = ("--policy", visits / "policy.yaml", "--out", visits / "safe.jsonl", "--overwrite")
    assert portcullis("replay", visits / "events.csv", *arguments).exit_code == 0
    files = ("--original", visits / "events.csv", "--published", visits / "safe.jsonl")
    found = attacked(portcullis, visits, *files)
    assert found["unplaced"] == 0
    assert found["certain"] < 0.5
    assert found["linked"]["persons"] > 30


def test_a_table_is_attacked_as_in_its_report(portcullis: Any, shop: Path) -> None:
    arguments = ("--policy", shop / "policy.yaml", "--out", shop / "safe.csv", "--report", shop / "report.json")
    assert portcullis("anonymize", shop / "table.csv", *arguments).exit_code == 0
    files = ("--original", shop / "table.csv", "--published", shop / "safe.csv")
    found = attacked(portcullis, shop, *files)
    assert found["attacks"] == json.loads((shop / "report.json").read_text())["attacks"]
    assert found["unplaced"] == 0
    worst = next(one["after"] for one in found["attacks"] if one["attack"] == "prosecutor")
    for allowed, status in ((worst, 0), (worst / 2, 1)):
        (shop / "strict.yaml").write_text(POLICY + f"attacks: {{prosecutor: {allowed}}}\n")
        result = portcullis("attack", shop / "strict.yaml", *files)
        assert result.exit_code == status, result.output
        assert ("gets more than the policy allows" in result.stderr) == bool(status)


@pytest.mark.parametrize("asked", ["mondrian, k: 10", "top_down, k: 10", "sabre, t: 0.3, k: 10", "burel, beta: 2.0"])
def test_a_release_of_adult_is_attacked_as_in_its_report(portcullis: Any, tmp_path: Path, asked: str) -> None:
    """Whose row each published one is does not matter for the numbers: all ways to place them give the same classes."""
    text = (ADULT / "policy.yaml").read_text().replace("hierarchies/", f"{ADULT}/hierarchies/")
    (tmp_path / "policy.yaml").write_text(text[: text.index("guarantee:")] + f"guarantee: {{algorithm: {asked}}}\n")
    arguments = ("--policy", tmp_path / "policy.yaml", "--out", tmp_path / "safe.csv", "--seed", 1)
    made = portcullis("anonymize", ADULT / "people.csv", *arguments, "--report", tmp_path / "report.json")
    assert made.exit_code == 0, made.output
    found = attacked(portcullis, tmp_path, "--original", ADULT / "people.csv", "--published", tmp_path / "safe.csv")
    assert found["attacks"] == json.loads((tmp_path / "report.json").read_text())["attacks"]


def test_a_file_that_cannot_have_been_made_from_the_table_is_no_release(portcullis: Any, shop: Path) -> None:
    arguments = ("--policy", shop / "policy.yaml", "--out", shop / "safe.csv", "--links", shop / "links")
    assert portcullis("anonymize", shop / "table.csv", *arguments).exit_code == 0
    table = (shop / "table.csv").read_text()
    (shop / "other.csv").write_text(table.replace(f"{MARK}7,27,", f"{MARK}7,28,").replace(",book,", ",tea,", 1))
    files = ("--original", shop / "other.csv", "--published", shop / "safe.csv")
    for more in ((), ("--links", shop / "links")):
        result = portcullis("attack", shop / "policy.yaml", *files, *more)
        assert result.exit_code == 1, result.output
        assert "not a release of this original: 1 of 80 published rows have no row of their own" in result.stderr
    audited = portcullis("audit", shop / "other.csv", shop / "safe.csv", "--policy", shop / "policy.yaml")
    assert audited.exit_code == 1
    assert "1 published rows that no row of the original explains" in " ".join(audited.output.split())


@pytest.fixture
def few(portcullis: Any, visits: Path) -> Any:
    """The same replayed by an engine that forgets people: all boxes of a person together often leave nobody else."""
    policy = (visits / "policy.yaml").read_text().replace(COHORTS, "{algorithm: castle, k: 4, delta: 40}")
    (visits / "policy.yaml").write_text(policy)
    arguments = ("--policy", visits / "policy.yaml", "--out", visits / "safe.jsonl", "--links", visits / "links")
    result = portcullis("replay", visits / "events.csv", *arguments, "--overwrite")
    assert result.exit_code == 0, result.output
    return visits


def plain(text: str) -> str:
    """What a wrong use is answered with, without its frame."""
    return " ".join(text.replace("│", " ").split())


def attack_stream(portcullis: Any, home: Path, *more: Any) -> Any:
    files = ("--original", home / "events.csv", "--published", home / "safe.jsonl", "--links", home / "links")
    return portcullis("attack", home / "policy.yaml", *files, *more)


def test_an_attack_that_gets_far_without_a_condition_is_a_warning(portcullis: Any, few: Path) -> None:
    result = attack_stream(portcullis, few)
    assert result.exit_code == 0
    assert "warning: tying the rows of a person together leaves fewer than 4 persons for" in result.stderr
    assert "--fail-below makes this a failure" in result.stderr


def test_an_attack_that_leaves_fewer_than_asked_is_status_1(portcullis: Any, few: Path) -> None:
    for more in ((), ("--json",)):
        result = attack_stream(portcullis, few, "--fail-below", 4, *more)
        assert result.exit_code == 1
        assert "an attack leaves fewer than 4 persons who could be meant: tying the rows of a person" in result.stderr
        assert MARK not in result.output


def test_an_attack_that_leaves_enough_is_done(portcullis: Any, visits: Path) -> None:
    fewest = json.loads((visits / "report.json").read_text())["linked"]["fewest"]
    result = attack_stream(portcullis, visits, "--fail-below", fewest)
    assert (result.exit_code, result.stderr) == (0, "")
    assert attack_stream(portcullis, visits, "--fail-below", fewest + 1).exit_code == 1


def test_a_condition_that_nothing_was_tried_for_is_wrong_use(portcullis: Any, few: Path) -> None:
    policy = (few / "policy.yaml").read_text().replace("person: id", "person: {row: true}")
    (few / "policy.yaml").write_text(policy)
    result = attack_stream(portcullis, few, "--fail-below", 4)
    assert result.exit_code == 2
    assert "nothing was attacked: every event is about another person" in plain(result.stderr)


def test_a_table_has_its_conditions_in_the_policy(portcullis: Any, shop: Path) -> None:
    files = ("--original", shop / "table.csv", "--published", shop / "x")
    result = portcullis("attack", shop / "policy.yaml", *files, "--fail-below", 4)
    assert result.exit_code == 2
    assert "say in the policy how far attacks on a table may get" in plain(result.stderr)


def test_a_table_is_attacked_with_the_links_of_its_owner(portcullis: Any, shop: Path) -> None:
    """Persons with several rows, all alike but for their persons: without links, nobody can tell whose row is whose."""
    header, *rows = table_text(40).splitlines()
    # Ten rows of one person, and then one of each of the others.
    alike = [",".join([row.split(",")[0], *rows[0].split(",")[1:]]) for row in [rows[0]] * 10 + rows[1:]]
    (shop / "table.csv").write_text("\n".join([header, *alike]) + "\n")
    (shop / "policy.yaml").write_text(POLICY.replace(", l: 2", ""))
    arguments = ("--policy", shop / "policy.yaml", "--out", shop / "safe.csv", "--report", shop / "report.json")
    result = portcullis("anonymize", shop / "table.csv", *arguments, "--links", shop / "links")
    assert result.exit_code == 0, result.output
    files = ("--original", shop / "table.csv", "--published", shop / "safe.csv")
    found = attacked(portcullis, shop, *files, "--links", shop / "links")
    assert (found["attacks"], found["certain"]) == (json.loads((shop / "report.json").read_text())["attacks"], 1)


@pytest.mark.kafka
@pytest.mark.parametrize("name", ["json", "avro", "protobuf"])
def test_a_topic_is_attacked_with_its_input(
    portcullis: Any, visits: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three events a second; what left with an event has the second of it."""
    links = [json.loads(line) for line in (visits / "links").read_text().splitlines()]
    lines = (visits / "safe.jsonl").read_bytes().splitlines()
    with FakeRegistry() as registry, Broker() as broker, (visits / "events.csv").open() as file:
        written = Written(name, visits, registry)
        events = [written.event({**row, "age": int(row["age"])}) for row in csv.DictReader(file)]
        monkeypatch.setenv("PORTCULLIS_REGISTRY_URL", registry.url)
        client = connect(KafkaSettings(bootstrap_servers=broker.bootstrap))
        with closing(client.admin()) as admin, closing(client.producer("all")) as producer:
            admin.create_topic("raw", 1)
            admin.create_topic("safe", 2)
            producer.init_transactions()
            producer.begin()
            for number, event in enumerate(events):
                producer.produce(Partition("raw", 0), [event], timestamp_ms=number * 333)
            for line, own in zip(lines, links, strict=True):
                where = Partition("safe", int(json.loads(line)["cluster"], 16) % 2)
                producer.produce(where, [written.left(line)], timestamp_ms=max(own) // 3 * 1000)
            producer.commit()
        found = attacked(portcullis, visits, "--topic", "--bootstrap", broker.bootstrap)
        assert "safe-value" not in registry.subjects, "who attacks registers nothing"
    report = json.loads((visits / "report.json").read_text())
    assert (found["linked"], found["certain"]) == (report["linked"], 1)
    assert found["timing"]["rows"] > 100
    assert found["timing"]["nobody"] > 0.3, "three events a second hide nobody"


def test_wrong_use_is_told(portcullis: Any, shop: Path) -> None:
    policy = shop / "policy.yaml"
    assert portcullis("attack", policy).exit_code == 2
    assert portcullis("attack", policy, "--original", "a").exit_code == 2
    assert portcullis("attack", policy, "--topic", "--original", "a", "--published", "b").exit_code == 2
    assert portcullis("attack", policy, "--original", "a", "--published", "b").exit_code == 2, "no such file"
    result = portcullis("attack", policy, "--topic", "--bootstrap", f"127.0.0.1:{free_port()}")
    assert (result.exit_code, "only a policy with topics" in result.stderr) == (2, True)
