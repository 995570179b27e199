"""`show: mean` through all of the service: policies, tables, audits, reports, replays, and a worker's messages."""

import json
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from microdata import Boxes, Category, GuaranteeError, means
from service.codec import JsonCodec
from service.kafka import Partition
from service.policy import PolicyError, parse_policy
from service.publishing import messages
from service.publishing.departure import Departure
from service.publishing.messages import MessageEncoder
from service.publishing.rows import Rows
from service.worker.loop import Worker
from service.worker.metrics import Metrics
from service.worker.settings import WorkerSettings
from service.worker.stream import stream_of
from stream_algos import Castle, Release
from tests.service.cli.cli_world import MARK, POLICY, table_text
from tests.service.worker.paper_kafka import Paper

ASKED = "{algorithm: mondrian, k: 4, l: 2}"
CASTLE = "{algorithm: castle, k: 4, delay: {tuples: 40}}"
STREAM = "stream: {input: raw, output: safe, start: earliest}\n"


def policy(guarantee: str = ASKED, *more: str) -> str:
    return POLICY.replace(ASKED, guarantee) + "".join(more)


# -- what a policy may say --------------------------------------------------------------------------------------------


def test_algorithms_show_intervals_unless_they_or_the_policy_say_otherwise() -> None:
    assert parse_policy(policy()).show == "interval"
    assert parse_policy(policy(ASKED, "show: mean\n")).show == "mean"
    assert parse_policy(policy("{algorithm: mdav, k: 4}")).show == "mean"
    assert parse_policy(policy("{algorithm: ama, k: 4}", "show: interval\n")).show == "interval"
    assert parse_policy(policy("{k: 4}", "show: mean\n")).show == "mean"
    assert parse_policy(policy(CASTLE, STREAM)).show == "interval"


def test_another_way_to_show_is_another_fingerprint_and_the_old_way_is_the_old_one() -> None:
    boxes = parse_policy(policy(CASTLE, STREAM)).fingerprint()
    assert parse_policy(policy(CASTLE, STREAM, "show: interval\n")).fingerprint() == boxes
    assert parse_policy(policy(CASTLE, STREAM, "show: mean\n")).fingerprint() != boxes
    ordered = policy(CASTLE, STREAM).replace(
        "{type: category, hierarchy: {World", "{type: category, ordered: true, hierarchy: {World"
    )
    parsed = parse_policy(ordered)
    assert isinstance(parsed.schema.quasi[1], Category)
    assert parsed.schema.quasi[1].ordered
    assert parsed.fingerprint() != boxes


@pytest.mark.parametrize("weaker", ["reuse: true", "order: arrival"])
def test_where_a_row_may_leave_alone_a_mean_is_refused(weaker: str) -> None:
    asked = CASTLE.replace("}}", "}, " + weaker + "}")
    parse_policy(policy(asked, STREAM))
    with pytest.raises(PolicyError) as refusal:
        parse_policy(policy(asked, STREAM, "show: mean\n"))
    (problem,) = refusal.value.problems
    assert problem.path == "show"
    assert weaker.partition(":")[0] in problem.reason


@pytest.mark.parametrize("company", ["standing", "present"])
def test_people_who_are_known_again_are_not_shown_as_means(company: str) -> None:
    asked = "{algorithm: cohorts, k: 4, delay: {tuples: 40}, company: " + company + "}"
    parse_policy(policy(asked, STREAM))
    with pytest.raises(PolicyError) as refusal:
        parse_policy(policy(asked, STREAM, "show: mean\n"))
    (problem,) = refusal.value.problems
    assert (problem.path, "company" in problem.reason) == ("show", True)


@pytest.mark.parametrize("company", ["standing", "present"])
@pytest.mark.parametrize("share", ["max_share: 0.5", "max_category_share: 0.5"])
def test_shares_are_not_promised_for_people_who_are_known_again(company: str, share: str) -> None:
    asked = "{algorithm: cohorts, k: 4, delay: {tuples: 40}, company: " + f"{company}, {share}" + "}"
    with pytest.raises(PolicyError) as refusal:
        parse_policy(policy(asked, STREAM))
    (problem,) = refusal.value.problems
    assert problem.path == f"guarantee.{share.partition(':')[0]}"


def test_an_engine_says_itself_when_rows_leave_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Castle.Parameters, "alone", property(lambda _: "company"))
    with pytest.raises(PolicyError, match="company"):
        parse_policy(policy(CASTLE, STREAM, "show: mean\n"))


def test_other_words_are_refused() -> None:
    with pytest.raises(PolicyError, match="show"):
        parse_policy(policy(ASKED, "show: median\n"))


# -- tables -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("guarantee", [ASKED, "{algorithm: mdav, k: 4}", "{algorithm: ama, k: 4}"])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_table_of_means_is_published_reported_and_audited(
    portcullis: Any, shop: Any, guarantee: Any, ending: Any
) -> None:
    (shop / "policy.yaml").write_text(policy(guarantee, "show: mean\n"))
    out, report, page = shop / f"safe.{ending}", shop / "report.json", shop / "report.html"
    common = ("--policy", shop / "policy.yaml")
    done = portcullis("anonymize", shop / "table.csv", *common, "--out", out, "--report", report, "--html", page)
    assert done.exit_code == 0, done.output
    told = json.loads(report.read_text())
    assert told["show"] == "mean"
    assert [one["name"] for one in told["squared_error"]["attributes"]] == ["age"]
    assert 0 < told["squared_error"]["total"] < 1
    assert 0 < told["loss"]["mean"] < 1
    assert "shown as means" in page.read_text()
    checked = portcullis("audit", shop / "table.csv", out, *common)
    assert checked.exit_code == 0, checked.output
    assert "shown as means" in checked.stdout
    assert json.loads(portcullis("audit", shop / "table.csv", out, *common, "--json").stdout)["loss"] is None
    assert MARK not in done.output + checked.output + report.read_text() + page.read_text()
    if ending == "jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        assert len(rows) == 80
        assert all(isinstance(row["age"], int) for row in rows)
        assert min(Counter(row["class"] for row in rows).values()) >= 4


def test_a_file_of_boxes_is_no_file_of_means(portcullis: Any, shop: Any) -> None:
    portcullis("anonymize", shop / "table.csv", "--policy", shop / "policy.yaml", "--out", shop / "safe.csv")
    (shop / "policy.yaml").write_text(policy(ASKED, "show: mean\n"))
    refused = portcullis("audit", shop / "table.csv", shop / "safe.csv", "--policy", shop / "policy.yaml")
    assert refused.exit_code == 2
    assert "age: not a number" in refused.stderr


# -- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("emit", ["clusters", "tuples"])
@pytest.mark.parametrize("guarantee", [CASTLE, "{algorithm: sabre_w, t: 0.4, k: 4, window: {size: 40, advance: 20}}"])
def test_a_replay_shows_means(portcullis: Any, tmp_path: Path, guarantee: str, emit: str) -> None:
    (tmp_path / "table.csv").write_text(table_text(90))
    (tmp_path / "policy.yaml").write_text(policy(guarantee, STREAM.replace("}", f", emit: {emit}}}"), "show: mean\n"))
    arguments = (
        "--policy",
        tmp_path / "policy.yaml",
        "--out",
        tmp_path / "safe.jsonl",
        "--html",
        tmp_path / "page.html",
    )
    done = portcullis("replay", tmp_path / "table.csv", *arguments, "--report", tmp_path / "report.json")
    assert done.exit_code == 0, done.output
    told = json.loads((tmp_path / "report.json").read_text())
    left = [json.loads(line) for line in (tmp_path / "safe.jsonl").read_text().splitlines()]
    shown = [one["generalization"] for one in left] if emit == "clusters" else left
    assert all(isinstance(one["age"], int) for one in shown)
    assert told["show"] == "mean"
    assert 0 < told["squared_error"]["total"] < 1
    assert told["workload_error"] is not None
    assert "shown as means" in (tmp_path / "page.html").read_text()
    assert MARK not in json.dumps(left)


def run_worker(text: str, records: Any) -> Any:
    paper = Paper(1)
    stream = stream_of(parse_policy(text), options := WorkerSettings(on_stop="flush"))
    worker = Worker(stream, paper, options, Metrics(stream), clock=lambda: 1000.0)
    assert worker.open(threading.Event())
    worker._owned.join()
    paper.assign(0)
    paper.logs[Partition("raw", 0)] += [(None, json.dumps(record).encode()) for record in records]
    once = threading.Event()
    once.set()
    try:
        for _ in range(3):
            worker._cycle(once)
        worker._finish()
    finally:
        worker.close()
    return [json.loads(value) for number in range(2) for _, value in paper.logs[Partition("safe", number)]]


@pytest.mark.parametrize("emit", ["clusters", "tuples"])
def test_a_worker_publishes_the_mean_of_each_cluster(emit: str) -> None:
    ages = {f"{number}": 20 + 7 * number % 60 for number in range(20)}
    records = [
        {"id": MARK + name, "age": age, "city": "Oslo", "item": "tea", "shop": name} for name, age in ages.items()
    ]
    left = run_worker(policy(CASTLE, STREAM.replace("}", f", emit: {emit}}}"), "show: mean\n"), records)
    if emit == "clusters":
        clusters = [(one["generalization"], [row["shop"] for row in one["rows"]]) for one in left]
        assert sum(len(members) for _, members in clusters) == 20
        for shown, members in clusters:
            assert len(members) >= 4
            assert abs(shown["age"] - np.mean([ages[name] for name in members])) <= 0.5
            assert shown["city"] == "Oslo"
    else:
        assert len(left) == 20
        assert min(Counter(row["age"] for row in left).values()) >= 4
    assert MARK not in json.dumps(left)


class Encoding:
    """One cluster of two rows, encoded."""

    SCHEMA: ClassVar = parse_policy(POLICY).schema
    RELEASE: ClassVar = Release(
        np.array([7], np.uint64), np.array([[20.0, 0.0]]), np.array([[31.0, 0.0]]), np.array([0, 2]),
        np.array([0, 1]), np.zeros(1, bool), np.full((1, 2), -1), np.empty(0, np.int64),
    )  # fmt: skip

    @classmethod
    def of(cls, release: Release) -> Any:
        rows = Rows(
            np.arange(2), np.zeros(2), np.arange(2), np.array([[20.0, 0], [31.0, 0]]), np.zeros((2, 1), np.int32),
            (pa.array(["a", "b"]),),
        )  # fmt: skip
        encoder = MessageEncoder(cls.SCHEMA, JsonCodec(cls.SCHEMA), "clusters", 1, show="mean")
        return encoder.encode(Departure(release, release.members), rows)


def test_a_message_has_a_number_and_the_same_rows_make_the_same_bytes() -> None:
    first, again = Encoding.of(Encoding.RELEASE), Encoding.of(Encoding.RELEASE)
    assert first == again
    assert json.loads(first[0][0])["generalization"] == {"age": 26, "city": "Oslo"}


def test_a_row_that_comes_alone_never_leaves_as_a_mean() -> None:
    with pytest.raises(GuaranteeError, match="alone"):
        Encoding.of(replace(Encoding.RELEASE, reused=np.ones(1, bool)))


def test_a_mean_outside_of_its_box_never_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "means", lambda *given: Boxes(given[0], means(*given).lo + 50, means(*given).hi + 50))
    with pytest.raises(GuaranteeError, match="1 clusters are shown outside"):
        Encoding.of(Encoding.RELEASE)


def test_engines_that_publish_whole_classes_say_so() -> None:
    asked = {"k": 2, "delta": 5}
    assert Castle.Parameters.model_validate(asked).alone is None
    assert Castle.Parameters.model_validate({**asked, "reuse": True}).alone == "reuse"
