"""Evidence of stretches of an output topic, on a real client and the embedded broker."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from service.broker import Broker
from service.kafka import KafkaSettings, Partition, connect
from service.ports import free_port
from tests.service.cli.cli_world import CITIES, ITEMS, MARK, POLICY, table_text
from tests.service.cli.evidence_world import refiled
from tests.service.cli.written_topics import Written
from tests.service.registry.fake_registry import FakeRegistry

pytestmark = pytest.mark.kafka
STREAM = "stream: {input: raw, output: safe, emit: clusters, start: earliest}\n"
DAY = 86_400_000
BEGIN = 1_760_000_000_000 // DAY * DAY
"""A midnight."""


class World:
    """A directory with a policy and what a replay made of it, and a broker with an output topic of two partitions."""

    def __init__(self, home: Path, bootstrap: str, portcullis: Any) -> None:
        self.home, self.bootstrap, self._portcullis = home, bootstrap, portcullis
        guarantee = "{algorithm: castle, k: 4, delta: 40}"
        (home / "policy.yaml").write_text(POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", guarantee) + STREAM)
        (home / "events.csv").write_text(table_text(200))
        arguments = ("--policy", home / "policy.yaml", "--out", home / "safe.jsonl")
        assert portcullis("replay", home / "events.csv", *arguments).exit_code == 0
        self.lines: Any = (home / "safe.jsonl").read_bytes().splitlines()
        self._client = connect(KafkaSettings(bootstrap_servers=bootstrap))
        with closing(self._client.admin()) as admin:
            admin.create_topic("safe", 2)

    def publish(self, day: int, lines: Any) -> None:
        with closing(self._client.producer("worker")) as producer:
            producer.init_transactions()
            producer.begin()
            for number in (0, 1):
                producer.produce(Partition("safe", number), lines[number::2], timestamp_ms=BEGIN + day * DAY)
            producer.commit()

    def made_anew(self) -> None:
        with closing(self._client.admin()) as admin:
            admin.delete_topic("safe")
            admin.create_topic("safe", 2)

    def topic(self, out: str, *more: Any) -> Any:
        arguments = ("--out", self.home / out, "--bootstrap", self.bootstrap)
        return self._portcullis("evidence", "topic", self.home / "policy.yaml", *arguments, *more)

    def verified(self, file: str, *more: Any) -> Any:
        given = ("--policy", self.home / "policy.yaml", "--bootstrap", self.bootstrap)
        result = self._portcullis("evidence", "verify", self.home / file, *given, *more, "--json")
        assert result.exit_code in {0, 1}, result.output
        return result.exit_code, {one["about"]: one["outcome"] for one in json.loads(result.stdout)["checks"]}


@pytest.fixture(scope="module")
def broker() -> Any:
    with Broker() as running:
        yield running.bootstrap


@pytest.fixture
def world(tmp_path: Path, broker: str, portcullis: Any) -> Any:
    made = World(tmp_path, broker, portcullis)
    yield made
    with closing(made._client.admin()) as admin:
        admin.delete_topic("safe")


def day(number: int) -> str:
    return f"2025-10-{9 + number:02d}"


@pytest.fixture
def chain(world: Any) -> Any:
    """Three days of an output, filed day by day."""
    for number in range(3):
        world.publish(number, world.lines[number::3])
    assert world.topic("0.json", "--to", day(1)).exit_code == 0
    assert world.topic("1.json", "--after", world.home / "0.json", "--to", day(2)).exit_code == 0
    assert world.topic("2.json", "--after", world.home / "1.json").exit_code == 0
    return world


def test_a_chain_holds_and_has_all_that_was_published_and_no_value(chain: Any, portcullis: Any) -> None:
    status, outcomes = chain.verified("2.json")
    assert status == 0
    assert {about for about, outcome in outcomes.items() if outcome != "holds"} == {
        "the signature",
        "author, time and version",
    }
    assert {"before it: 1.json", "before it: 0.json", "the beginning of the chain"} <= outcomes.keys()
    parts = [json.loads((chain.home / f"{number}.json").read_text())["parts"] for number in range(3)]
    assert sum(part["audited"]["rows"] for part in parts) == sum(len(json.loads(one)["rows"]) for one in chain.lines)
    assert sum(part["stretch"]["records"] for part in parts) == len(chain.lines)
    assert all(part["audited"]["fewest_persons"] >= 4 for part in parts)
    clusters = [json.loads(line)["cluster"] for line in chain.lines]
    for number in range(3):
        text = (chain.home / f"{number}.json").read_text()
        assert not any(value in text for value in (MARK, *CITIES, *ITEMS, "North", "South", "east", *clusters))
    assert not list(chain.home.glob("*.secret")), "there is no original to name"
    page = portcullis("evidence", "show", chain.home / "2.json", "--html", chain.home / "2.html")
    assert page.exit_code == 0, page.output
    for words in (
        "Not verified, the file says: what any reader can check holds",
        "Goes on where 1.json ended",
        "Rows are counted, not persons",
    ):
        assert words in (chain.home / "2.html").read_text()


@pytest.mark.parametrize(
    ("part", "change", "about"),
    [
        ("audited", {"rows": 3}, "audited: rows"),
        ("published", {"sha256": {"0": "0" * 64, "1": "0" * 64}}, "the records of the topic"),
        ("stretch", {"topic_id": "another"}, "which topic"),
        ("stretch", {"records": 10}, "how many records there are, and when they were published"),
        ("stretch", {"last_ms": BEGIN}, "how many records there are, and when they were published"),
        ("policy", {"fingerprint": "0" * 64}, "the policy: fingerprint"),
        ("policy", {"asked": {"algorithm": "castle", "parameters": {"k": 50}}}, "the policy: asked"),
        ("words", {"limits": []}, "what is assumed and not said"),
    ],
)
def test_what_is_claimed_and_not_so_shows(chain: Any, part: str, change: Any, about: str) -> None:
    refiled(chain.home / "2.json", **{part: change})
    status, outcomes = chain.verified("2.json")
    assert (status, outcomes["the hashes of the parts"], outcomes[about]) == (1, "holds", "differs")


def test_a_link_of_the_chain_cannot_be_changed_or_left_out(chain: Any) -> None:
    """Though whoever does it makes all hashes of that file fit again."""
    first, second = chain.home / "0.json", chain.home / "1.json"
    kept = first.read_bytes()
    refiled(first, made={"by": "somebody else"})
    assert chain.verified("2.json")[1]["before it: 0.json"] == "differs"
    first.write_bytes(kept)
    last = json.loads((chain.home / "2.json").read_text())
    before = {"file": "0.json", "hash": json.loads(kept)["hash"]}
    refiled(chain.home / "2.json", before=before)
    status, outcomes = chain.verified("2.json")
    assert (status, outcomes["before it: 0.json"]) == (1, "differs"), "a day is missing"
    refiled(chain.home / "2.json", before=last["parts"]["before"])
    second.unlink()
    assert chain.verified("2.json")[1]["before it: 1.json"] == "not checked"


def test_a_topic_that_was_made_anew_is_another(chain: Any) -> None:
    chain.made_anew()
    status, outcomes = chain.verified("2.json")
    assert (status, outcomes["which topic"], outcomes["the records of the topic"]) == (1, "differs", "differs")
    result = chain.topic("3.json", "--after", chain.home / "2.json")
    assert (result.exit_code, "made anew" in result.stderr) == (2, True)


def test_a_cluster_that_is_too_small_is_filed_and_told(world: Any) -> None:
    small = json.loads(world.lines[0])
    small["rows"] = small["rows"][:2]
    world.publish(0, [json.dumps(small).encode(), *world.lines[1:]])
    assert world.topic("e.json").exit_code == 1
    found = json.loads((world.home / "e.json").read_text())["parts"]["audited"]
    assert (found["holds"], found["findings"][0]["failing"]) == (False, 1)


def test_a_cluster_in_parts_is_one_and_one_that_is_cut_does_not_count(world: Any) -> None:
    message = json.loads(world.lines[0])
    rows = message.pop("rows")
    parts = [
        json.dumps({**message, "part": part, "parts": 2, "rows": own}).encode()
        for part, own in ((1, rows[:1]), (2, rows[1:]))
    ]
    world.publish(0, [*parts, *world.lines[1:4]])
    world.publish(1, [parts[0]])
    assert world.topic("whole.json", "--to", day(1)).exit_code == 0
    assert json.loads((world.home / "whole.json").read_text())["parts"]["audited"]["cut"] == 0
    world.publish(2, world.lines[4:])
    assert world.topic("cut.json", "--from", day(1)).exit_code == 0
    found = json.loads((world.home / "cut.json").read_text())["parts"]["audited"]
    assert (found["cut"], found["classes"]) == (1, len(world.lines) - 4)


@pytest.mark.parametrize("name", ["avro", "protobuf"])
def test_what_has_a_schema_is_audited_as_json_is(world: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world.publish(0, world.lines)
    assert world.topic("json.json").exit_code == 0
    world.made_anew()
    with FakeRegistry() as registry:
        written = Written(name, world.home, registry)
        monkeypatch.setenv("PORTCULLIS_REGISTRY_URL", registry.url)
        world.publish(0, [written.left(line) for line in world.lines])
        assert world.topic("filed.json").exit_code == 0
        assert world.verified("filed.json")[0] == 0
        assert "safe-value" not in registry.subjects, "who looks registers nothing"
        ours, theirs = (json.loads((world.home / file).read_text())["parts"] for file in ("filed.json", "json.json"))
        assert ours["audited"] == theirs["audited"]
        assert ours["words"]["limits"] == theirs["words"]["limits"]

        small = json.loads(world.lines[0])
        small["rows"] = small["rows"][:2]
        world.publish(1, [written.left(json.dumps(small).encode())])
        assert world.topic("small.json", "--from", day(1)).exit_code == 1
        assert json.loads((world.home / "small.json").read_text())["parts"]["audited"]["findings"][0]["failing"] == 1

        world.publish(2, [b"\0\0\0\0\x63whatever", written.left(world.lines[0])])
        result = world.topic("strange.json", "--from", day(2))
        assert (result.exit_code, "records that this policy does not write" in result.stderr) == (1, True)
        filed = json.loads((world.home / "strange.json").read_text())["parts"]
        assert (filed["audited"]["holds"], filed["stretch"]["records"]) == (False, 2), "nothing is claimed"
        assert world.verified("strange.json")[1]["the guarantee"] == "not checked"


def test_without_its_registry_what_has_a_schema_is_not_filed(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = (world.home / "policy.yaml").read_text()
    (world.home / "policy.yaml").write_text(policy.replace("emit: clusters", "emit: clusters, format: avro"))
    world.publish(0, [b"\0\0\0\0\1whatever"])
    assert world.topic("e.json").exit_code == 77, "none is named"
    monkeypatch.setenv("PORTCULLIS_REGISTRY_URL", f"http://127.0.0.1:{free_port()}")
    assert world.topic("e.json").exit_code == 69, "it is away"
    assert not (world.home / "e.json").exists()


def test_nothing_published_is_filed_as_nothing(world: Any) -> None:
    assert world.topic("e.json").exit_code == 0
    assert world.verified("e.json")[0] == 0


def test_wrong_use_is_told(world: Any, portcullis: Any) -> None:
    assert world.topic("e.json", "--to", "yesterday").exit_code == 2
    assert world.topic("e.json", "--from", day(1), "--after", world.home / "safe.jsonl").exit_code == 2
    result = world.topic("e.json", "--after", world.home / "safe.jsonl")
    assert (result.exit_code, "is no evidence of Portcullis" in result.stderr) == (2, True)
    (world.home / "table.yaml").write_text(POLICY)
    arguments = ("--out", world.home / "e.json", "--bootstrap", world.bootstrap)
    result = portcullis("evidence", "topic", world.home / "table.yaml", *arguments)
    assert (result.exit_code, "only a policy with topics" in result.stderr) == (2, True)


def test_a_broker_that_is_away_is_no_wrong_use(world: Any, portcullis: Any) -> None:
    arguments = ("--out", world.home / "e.json", "--bootstrap", f"127.0.0.1:{free_port()}")
    assert portcullis("evidence", "topic", world.home / "policy.yaml", *arguments).exit_code == 69


def test_the_size_of_a_stretch_is_bounded(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world.publish(0, world.lines)
    monkeypatch.setattr("service.evidence.stretch.MOST_RECORDS", len(world.lines))
    assert world.topic("e.json").exit_code == 0
    monkeypatch.setattr("service.evidence.stretch.MOST_RECORDS", len(world.lines) - 1)
    result = world.topic("f.json")
    assert (result.exit_code, "take a shorter one with --to" in result.stderr) == (2, True)
    assert not (world.home / "f.json").exists()
