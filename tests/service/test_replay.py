"""`portcullis replay`: events of every format through an engine, held against the gate, and what the report says."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

import service.replay
from service.publishing.gate import Gate
from tests.service.cli.cli_world import ITEMS, MARK, POLICY, table_text

WINDOWED = "{algorithm: sabre_w, t: 0.4, k: 4, window: {size: 40, advance: 20}}"
BLOCKS = "{algorithm: blocks, size: 30, delay: {tuples: 40}, table: {algorithm: top_down, k: 4, l: 2}}"


@pytest.fixture
def events(tmp_path: Path) -> Any:
    """A policy for windows, and the same events as CSV, JSON lines and Parquet."""
    (tmp_path / "policy.yaml").write_text(POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", WINDOWED))
    (tmp_path / "events.csv").write_text(table_text(90))
    columns = pyarrow.csv.read_csv(tmp_path / "events.csv")
    pyarrow.parquet.write_table(columns, tmp_path / "events.parquet")
    lines = (json.dumps(row) for row in columns.to_pylist())
    (tmp_path / "events.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def replayed(portcullis: Any, events: Any, *more: Any, file: str = "events.csv", policy: str = "policy.yaml") -> Any:
    arguments = ("replay", events / file, "--policy", events / policy, "--out", events / "safe.jsonl", *more)
    return portcullis(*arguments, "--overwrite")


def test_what_is_there_is_replaced_only_on_demand(portcullis: Any, events: Any) -> None:
    (events / "safe.jsonl").write_text("published before")
    arguments = ("replay", events / "events.csv", "--policy", events / "policy.yaml", "--out", events / "safe.jsonl")
    result = portcullis(*arguments)
    assert result.exit_code == 2
    assert "is there already" in result.stderr
    assert (events / "safe.jsonl").read_text() == "published before"


@pytest.mark.parametrize("file", ["events.csv", "events.jsonl", "events.parquet"])
def test_every_format_gives_clusters(portcullis: Any, events: Any, file: str) -> None:
    result = replayed(portcullis, events, "--report", events / "report.json", file=file)
    assert result.exit_code == 0, result.output
    text = (events / "safe.jsonl").read_text()
    assert MARK not in text + result.output
    clusters = [json.loads(line) for line in text.splitlines()]
    rows = [row for cluster in clusters for row in cluster["rows"]]
    assert len(rows) == 90
    assert {frozenset(row) for row in rows} == {frozenset({"item", "shop"})}
    assert Counter(row["item"] for row in rows) == dict.fromkeys(ITEMS, 30)
    assert len({cluster["cluster"] for cluster in clusters}) == len(clusters)
    assert all(set(cluster["generalization"]) == {"age", "city"} for cluster in clusters)
    assert all(len(cluster["rows"]) >= 4 for cluster in clusters)


def test_the_report_tells_what_came_of_it(portcullis: Any, events: Any) -> None:
    replayed(portcullis, events, "--report", events / "report.json")
    report = json.loads((events / "report.json").read_text())
    assert (report["events"], report["released"], report["suppressed"], report["reused"]) == (90, 90, 0, 0)
    assert report["clusters"] == len((events / "safe.jsonl").read_text().splitlines())
    by_model = {one["model"]: one for one in report["guarantees"]}
    assert by_model["k-anonymity"]["achieved"] >= 4
    assert by_model["t-closeness"]["achieved"] <= 0.4
    released = sum(point["released"] for point in report["loss_over_time"])
    lost = sum(point["released"] * point["loss"] for point in report["loss_over_time"])
    assert released == 90
    assert report["loss"] == pytest.approx(lost / 90)
    assert 0 < report["delays"]["p50"] <= report["delays"]["p99"] <= report["delays"]["max"] < 40
    assert report["asked"]["parameters"]["window"]["size"] == 40
    assert MARK not in json.dumps(report)


def test_refused_events_are_left_out_and_counted(portcullis: Any, events: Any) -> None:
    (events / "events.csv").write_text(table_text(90, age=MARK))
    result = replayed(portcullis, events, "--report", events / "report.json")
    assert result.exit_code == 0
    report = json.loads((events / "report.json").read_text())
    rejected = report["rejected"]
    assert [(one["field"], one["rows"]) for one in rejected["reasons"]] == [("age", 1)]
    assert (report["events"], report["released"] + report["suppressed"], rejected["rows"]) == (90, 89, 1)
    assert "1 of 90 events (1.1 %) were rejected and are not published; by field: age 1" in result.stderr
    assert "1 rejected" in result.stdout
    assert MARK not in result.output


@pytest.mark.parametrize("guarantee", [WINDOWED, BLOCKS, "{algorithm: castle, k: 4, delay: {tuples: 40}}"])
def test_refused_lines_pass_like_any_other(portcullis: Any, events: Any, guarantee: Any) -> None:
    text = table_text(90)
    (events / "policy.yaml").write_text(POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", guarantee))
    (events / "events.csv").write_text(text + "x,x,x,x,x\n" * 500)
    result = replayed(portcullis, events, "--report", events / "report.json")
    assert result.exit_code == 0, result.output
    report = json.loads((events / "report.json").read_text())
    assert sum(one["rows"] for one in report["rejected"]["reasons"]) == report["rejected"]["rows"] == 500
    assert report["released"] + report["suppressed"] == 90
    assert report["events"] == 590
    assert 0 < report["delays"]["max"] <= 40


def test_a_seed_repeats_and_says_so(portcullis: Any, events: Any) -> None:
    made = []
    for _ in range(2):
        result = replayed(portcullis, events, "--seed", "3")
        assert "not for release" in result.stderr
        made.append((events / "safe.jsonl").read_text())
    assert made[0] == made[1]
    replayed(portcullis, events)
    assert (events / "safe.jsonl").read_text() != made[0]


def test_castle_with_reuse(portcullis: Any, events: Any) -> None:
    guarantee = "{algorithm: castle, k: 4, delay: {tuples: 30}, reuse: true}"
    (events / "castle.yaml").write_text(POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", guarantee))
    (events / "events.csv").write_text(table_text(600))
    result = replayed(portcullis, events, "--report", events / "report.json", policy="castle.yaml")
    assert result.exit_code == 0, result.output
    report = json.loads((events / "report.json").read_text())
    assert report["released"] + report["suppressed"] == 600
    assert report["reused"] > 0
    assert report["delays"]["max"] <= 30


CASTLE = "{algorithm: castle, k: 4, delay: {tuples: 30}}"
IN_ORDER = "{algorithm: castle, k: 4, delay: {tuples: 30}, order: arrival}"


def castle_rows(portcullis: Any, events: Any, guarantee: Any) -> Any:
    """The clusters and rows that CASTLE makes of numbered events, with a seed, and what was said."""
    text = POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", guarantee)
    (events / "castle.yaml").write_text(text)
    header, *lines = table_text(600).splitlines()
    shop = header.split(",").index("shop")
    numbered = [line.split(",") for line in lines]
    for number, cells in enumerate(numbered):
        cells[shop] = f"n{number}"
    (events / "events.csv").write_text("\n".join([header, *map(",".join, numbered)]) + "\n")
    result = replayed(portcullis, events, "--seed", "5", "--report", events / "report.json", policy="castle.yaml")
    assert result.exit_code == 0, result.output
    clusters = [json.loads(line) for line in (events / "safe.jsonl").read_text().splitlines()]
    rows = [(cluster["cluster"], row["shop"]) for cluster in clusters for row in cluster["rows"]]
    return clusters, rows, result, json.loads((events / "report.json").read_text())


def test_rows_leave_in_order_where_the_policy_asks_for_it(portcullis: Any, events: Any) -> None:
    _, shuffled, quiet, plain = castle_rows(portcullis, events, CASTLE)
    clusters, ordered, loud, report = castle_rows(portcullis, events, IN_ORDER)
    places = [int(shop[1:]) for _, shop in ordered]
    assert places == sorted(places)
    assert sorted(ordered) == sorted(shuffled), "the same clusters, each row in the same one"
    assert {len(cluster["rows"]) for cluster in clusters} == {1}
    assert min(Counter(cluster["cluster"] for cluster in clusters).values()) >= 4
    assert "tells which output is which input" in loud.stderr
    assert "order" not in quiet.stderr
    assert [report[name] for name in ("released", "clusters", "loss")] == [
        plain[name] for name in ("released", "clusters", "loss")
    ]
    assert plain["delays"]["p50"] < report["delays"]["p50"] <= report["delays"]["max"] <= 30


def test_sensitive_and_public_values_do_not_touch_decisions_for_k_alone(portcullis: Any, events: Any) -> None:
    (events / "castle.yaml").write_text(POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", CASTLE))
    (events / "events.csv").write_text(table_text(300))
    columns = pyarrow.csv.read_csv(events / "events.csv").to_pandas()
    made = []
    for seed in (None, 1, 2):
        if seed is not None:
            for name in ("item", "shop"):
                columns[name] = columns[name].sample(frac=1, random_state=seed).to_numpy()
            columns["shop"] = [f"shop {seed} {row}" for row in range(300)]
        columns.to_csv(events / "events.csv", index=False)
        replayed(portcullis, events, "--seed", "5", policy="castle.yaml")
        clusters = [json.loads(line) for line in (events / "safe.jsonl").read_text().splitlines()]
        made.append([(one["cluster"], one["generalization"], len(one["rows"])) for one in clusters])
    assert made[0] == made[1] == made[2]
    assert len(made[0]) > 30


def test_the_gate_sees_whole_clusters_also_in_order(
    portcullis: Any, events: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    passes = Gate.passes

    def watched(self: Any, decisions: Any, rows: Any, published: Any) -> Any:
        sizes.extend(np.diff(decisions.starts).tolist())
        return passes(self, decisions, rows, published)

    monkeypatch.setattr(Gate, "passes", watched)
    castle_rows(portcullis, events, IN_ORDER)
    assert sum(sizes) == 600
    assert min(sizes) >= 4


def test_the_report_as_a_page(portcullis: Any, events: Any) -> None:
    guarantee = "{algorithm: castle, k: 4, delay: {tuples: 30}, reuse: true}"
    (events / "castle.yaml").write_text(POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", guarantee))
    (events / "events.csv").write_text(table_text(600, age=MARK))
    result = replayed(portcullis, events, "--html", events / "report.html", policy="castle.yaml")
    assert result.exit_code == 0, result.output
    page = (events / "report.html").read_text()
    for title in ("Asked and achieved", "Loss over time", "Delay", "What became", "Reuse over time", "Rejected rows"):
        assert f"<h2>{title}" in page
    assert "<script" not in page
    assert "http" not in page
    assert MARK not in page
    assert f"and the report to {events / 'report.html'}" in result.stdout.replace("\n", "")


def test_columns_of_the_page_add_up(portcullis: Any, events: Any) -> None:
    replayed(portcullis, events, "--report", events / "report.json")
    report = json.loads((events / "report.json").read_text())
    bins = report["delays"]["bins"]
    assert sum(one["events"] for one in bins) == 90
    assert [one["first"] for one in bins[1:]] == [one["last"] + 1 for one in bins[:-1]]
    assert bins[-1]["last"] == report["delays"]["max"]
    points = report["loss_over_time"]
    assert sum(point["released"] + point["suppressed"] for point in points) == 90


def test_suppressed_events_show(portcullis: Any, events: Any) -> None:
    guarantee = "{algorithm: castle, k: 95, delay: {tuples: 100}}"
    (events / "castle.yaml").write_text(POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", guarantee))
    more = "--html", events / "report.html", "--report", events / "report.json"
    replayed(portcullis, events, *more, policy="castle.yaml")
    report = json.loads((events / "report.json").read_text())
    assert (report["released"], report["suppressed"], report["suppressed_share"]) == (0, 90, 1.0)
    assert [one["achieved"] for one in report["guarantees"]] == [None]
    assert "<h2>Suppressed over time" in (events / "report.html").read_text()


def test_windows_by_time_follow_the_rate(portcullis: Any, events: Any) -> None:
    guarantee = "{algorithm: sabre_w, t: 0.4, k: 4, window: {seconds: 4, advance_seconds: 2}}"
    (events / "time.yaml").write_text(POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", guarantee))
    replayed(portcullis, events, "--rate", "10", "--report", events / "report.json", policy="time.yaml")
    report = json.loads((events / "report.json").read_text())
    assert report["released"] == 90
    assert 20 <= report["delays"]["max"] <= 40


def test_what_the_gate_refuses_is_not_written(portcullis: Any, events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gate, "passes", lambda self, decisions, rows, published: np.zeros(len(decisions), bool))
    result = replayed(portcullis, events)
    assert result.exit_code == 3
    assert "the gate refused" in result.stderr
    assert not list(events.glob("safe*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policy": "table.yaml"}, "a stream needs one of"),
        ({"file": "missing.csv"}, "there is no such file"),
        ({"file": "policy.yaml"}, "unknown kind of file"),
    ],
)
def test_wrong_input_is_status_2(portcullis: Any, events: Any, arguments: Any, message: str) -> None:
    (events / "table.yaml").write_text(POLICY)
    result = replayed(portcullis, events, **arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (events / "safe.jsonl").exists()


def test_the_result_does_not_replace_the_events(portcullis: Any, events: Any) -> None:
    result = portcullis(
        "replay", events / "events.csv", "--policy", events / "policy.yaml", "--out", events / "events.csv"
    )
    assert result.exit_code == 2
    assert "is already the events" in result.stderr


def test_flat_records_where_the_policy_asks_for_them(portcullis: Any, events: Any) -> None:
    stream = "stream: {input: a, output: b, start: earliest, emit: tuples}\n"
    (events / "flat.yaml").write_text((events / "policy.yaml").read_text() + stream)
    replayed(portcullis, events, policy="flat.yaml")
    records = [json.loads(line) for line in (events / "safe.jsonl").read_text().splitlines()]
    assert len(records) == 90
    assert set(records[0]) == {"age", "city", "item", "shop"}


GUARANTEES = [
    CASTLE,
    IN_ORDER,
    "{algorithm: castle, k: 4, delay: {tuples: 30}, reuse: true}",
    "{algorithm: castle, k: 4, delay: {tuples: 30}, formation: arrival}",
    "{algorithm: castle, k: 4, delay: {tuples: 300, seconds: 0.025}}",
    "{algorithm: castle, k: 95, delay: {tuples: 100}}",
    WINDOWED,
    "{algorithm: sabre_w, t: 0.4, k: 4, window: {size: 40, advance: 20}, delay: {seconds: 0.03}}",
    "{algorithm: sabre_w, t: 0.4, k: 4, window: {seconds: 0.04, advance_seconds: 0.02}}",
    BLOCKS,
    "{algorithm: blocks, size: 300, seconds: 0.02, table: {algorithm: mondrian, k: 4, t: 0.4}}",
]


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_nothing_depends_on_how_many_events_are_pushed_at_once(
    portcullis: Any, events: Any, monkeypatch: pytest.MonkeyPatch, guarantee: Any
) -> None:
    (events / "events.csv").write_text(table_text(250))
    (events / "one.yaml").write_text(POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", guarantee))
    made = []
    for batch in (1, 7, 1000):
        monkeypatch.setattr(service.replay, "BATCH", batch)
        more = ("--seed", "3", "--report", events / "report.json")
        result = replayed(portcullis, events, *more, policy="one.yaml")
        assert result.exit_code == 0, result.output
        # Sums of floats in another order differ in their last digits.
        report = json.loads((events / "report.json").read_text(), parse_float=lambda text: round(float(text), 9))
        made.append(report | {"seconds": 0, "text": (events / "safe.jsonl").read_text()})
    for name in made[0]:
        assert made[0][name] == made[1][name] == made[2][name], name
    assert made[0]["released"] + made[0]["suppressed"] == 250


@pytest.mark.parametrize(
    ("delay", "longest"), [("tuples: 30", 30), ("tuples: 300, seconds: 0.025", 25), ("tuples: 20, seconds: 0.025", 20)]
)
def test_no_event_waits_longer_than_the_policy_says(portcullis: Any, events: Any, delay: str, longest: int) -> None:
    guarantee = f"{{algorithm: castle, k: 4, delay: {{{delay}}}}}"
    (events / "castle.yaml").write_text(POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", guarantee))
    (events / "events.csv").write_text(table_text(600))
    replayed(portcullis, events, "--report", events / "report.json", policy="castle.yaml")
    assert json.loads((events / "report.json").read_text())["delays"]["max"] == longest


def test_when_every_event_is_refused_it_says_so_and_writes_nothing(portcullis: Any, events: Any) -> None:
    header, *lines = table_text(90).splitlines()
    age = header.split(",").index("age")
    cells = [line.split(",") for line in lines]
    rows = [",".join([*row[:age], MARK, *row[age + 1 :]]) for row in cells]
    (events / "events.csv").write_text("\n".join([header, *rows]))
    result = replayed(portcullis, events, "--report", events / "report.json")
    assert result.exit_code == 2
    assert "all 90 events were refused" in result.stderr
    assert "age: not a number (90)" in result.stderr
    assert "loss" not in result.output
    assert MARK not in result.output
    assert not list(events.glob("safe*"))
    assert not (events / "report.json").exists()


def test_when_every_event_is_suppressed_no_loss_is_told(portcullis: Any, events: Any) -> None:
    guarantee = "{algorithm: castle, k: 95, delay: {tuples: 100}}"
    (events / "castle.yaml").write_text(POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", guarantee))
    result = replayed(portcullis, events, "--report", events / "report.json", policy="castle.yaml")
    assert result.exit_code == 0
    assert "no event was released: all 90 were suppressed" in result.stdout
    assert "loss" not in result.stdout
    assert json.loads((events / "report.json").read_text())["loss"] is None


def test_the_course_of_a_long_stream_stays_short() -> None:
    course = service.replay.Course(1)
    for first in range(0, 10_000, 100):
        course.add(np.arange(first + 1, first + 101), np.ones(100))
    stretches = list(course.stretches())
    assert sum(sums[0] for _, sums in stretches) == 10_000
    assert len(stretches) == service.replay.MOST_POINTS
    assert {sums[0] for end, sums in stretches if end <= 10_000} == {course.width}


@pytest.mark.parametrize(
    "guarantee",
    [
        "{algorithm: mondrian_w, t: 0.4, k: 4, window: {size: 40, advance: 20}}",
        "{algorithm: incognito_w, t: 0.4, k: 4, window: {size: 40, advance: 20}}",
        "{algorithm: dynamic_group, k: 4, window: {size: 40, advance: 20}, first: 20}",
    ],
)
def test_the_algorithms_to_compare_with_are_reached(portcullis: Any, events: Any, guarantee: str) -> None:
    (events / "policy.yaml").write_text(POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", guarantee))
    result = replayed(portcullis, events, "--report", events / "report.json")
    assert result.exit_code == 0, result.output
    clusters = [json.loads(line) for line in (events / "safe.jsonl").read_text().splitlines()]
    assert sum(len(cluster["rows"]) for cluster in clusters) == 90
    assert min(len(cluster["rows"]) for cluster in clusters) >= 4
    report = json.loads((events / "report.json").read_text())
    assert report["asked"]["algorithm"] in guarantee
    assert {one["model"]: one["asked"] for one in report["guarantees"]}["k-anonymity"] == 4
    assert all(one["holds"] for one in report["guarantees"])
    assert report["workload_error"] > 0


def test_the_largest_share_of_a_person_is_told(portcullis: Any, events: Any) -> None:
    """Who comes often may have most of a cluster, whatever the engine is."""
    header, *lines = table_text(90).splitlines()
    often = [line for number, line in enumerate(lines) for _ in range(30 if number == 20 else 1)]
    (events / "events.csv").write_text("\n".join([header, *often]) + "\n")
    for guarantee in (WINDOWED.replace("size: 40", "size: 80"), CASTLE.replace("30", "60")):
        (events / "policy.yaml").write_text(POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", guarantee))
        html = events / "replay.html"
        result = replayed(portcullis, events, "--report", events / "report.json", "--html", html)
        assert result.exit_code == 0, result.output
        share = json.loads((events / "report.json").read_text())["largest_share"]
        assert 0.5 < share < 1
        assert f"largest share of one person in a cluster: {share:.1%}" in result.stdout
        assert "of one person in the rows of a cluster" in html.read_text()


def test_queries_are_asked_only_for_a_report(portcullis: Any, events: Any) -> None:
    assert "workload error" not in replayed(portcullis, events).output
    asked = replayed(portcullis, events, "--html", events / "replay.html")
    assert "workload error, median of random counting queries: " in asked.output
    assert "workload error" in (events / "replay.html").read_text()


COHORTS = "{algorithm: cohorts, k: 4, l: 2, delay: {tuples: 60}, company: standing}"


@pytest.fixture
def visits(tmp_path: Path) -> Any:
    """A policy for people who come back, and forty of them who come ten times."""
    (tmp_path / "policy.yaml").write_text(POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", COHORTS))
    header, *lines = table_text(40).splitlines()
    random = np.random.default_rng(4)
    items = [line.replace(",lamp,", f",{ITEMS[int(random.integers(3))]},") for line in lines for _ in range(10)]
    (tmp_path / "events.csv").write_text("\n".join([header, *(items[row] for row in random.permutation(400))]) + "\n")
    return tmp_path


def test_people_who_come_back_are_hidden_over_time(portcullis: Any, visits: Any) -> None:
    result = replayed(portcullis, visits, "--report", visits / "report.json", "--html", visits / "report.html")
    assert result.exit_code == 0, result.output
    report = json.loads((visits / "report.json").read_text())
    assert report["released"] > 350
    assert 30 < report["linked"]["persons"] <= report["engine"]["persons"] == 40
    assert report["linked"]["fewest"] >= 4
    assert report["at_once"] > 0.5
    assert report["largest_share"] is None
    assert {one["model"]: one["achieved"] >= one["asked"] for one in report["guarantees"]} == {
        "k-over-time": True,
        "distinct-l-diversity": True,
    }
    rows = "all rows published of a cohort and of the cohorts that it was split from"
    counted = {one["model"]: one["counted_over"] for one in report["guarantees"]}
    assert counted.pop("distinct-l-diversity").startswith(rows)
    assert counted == {"k-over-time": None}
    assert f"Distinct-l-diversity is counted over {rows}" in (visits / "report.html").read_text()
    assert "at least" in result.output
    assert "fewest candidates" in (visits / "report.html").read_text()
    assert MARK not in json.dumps(report) + result.output + (visits / "safe.jsonl").read_text()


def test_persons_whose_event_was_rejected_do_not_hide_the_next_row(portcullis: Any, visits: Any) -> None:
    """All but one person send an age outside of the domain; then the last one sends a row as before."""
    people = [{"id": f"{MARK}{n}", "age": 30, "city": "Oslo", "item": ITEMS[n % 3], "shop": f"{n}"} for n in range(30)]
    rejected = [{**person, "age": 999} for person in people[:-1]]
    late = {**people[-1], "shop": "late"}
    for between in ([], rejected):
        lines = [*people, *people, *people, *people, *between, late]
        (visits / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        result = replayed(portcullis, visits, file="events.jsonl")
        assert result.exit_code == 0, result.output
        published = (visits / "safe.jsonl").read_text().splitlines()
        shops = [row["shop"] for line in published for row in json.loads(line)["rows"]]
        assert len(shops) >= 60, result.output
        assert ("late" in shops) == (not between)


def test_a_policy_with_memory_is_refused(portcullis: Any, visits: Any) -> None:
    policy = (visits / "policy.yaml").read_text()
    (visits / "policy.yaml").write_text(policy.replace("company: standing", "company: standing, memory: 60"))
    for command in (("policy", "check", visits / "policy.yaml"), ("replay", visits / "events.csv", "--policy")):
        more = (visits / "policy.yaml", "--out", visits / "safe.jsonl") if command[0] == "replay" else ()
        result = portcullis(*command, *more)
        assert result.exit_code == 2
        assert "guarantee.memory: leave it out" in " ".join(result.stderr.split())


def test_rows_of_people_who_come_back_leave_in_classes_if_company_must_be_present(portcullis: Any, visits: Any) -> None:
    policy = (visits / "policy.yaml").read_text()
    (visits / "policy.yaml").write_text(policy.replace("company: standing", "company: present"))
    result = replayed(portcullis, visits, "--report", visits / "report.json")
    assert result.exit_code == 0, result.output
    report = json.loads((visits / "report.json").read_text())
    assert report["released"] > 350
    assert report["linked"]["fewest"] >= 4
    achieved = {one["model"]: one["achieved"] for one in report["guarantees"]}
    assert achieved.keys() == {"k-over-time", "k-anonymity", "distinct-l-diversity"}
    assert {one["counted_over"] for one in report["guarantees"]} == {None}
    assert min(achieved["k-over-time"], achieved["k-anonymity"]) >= 4
    assert all(len(json.loads(line)["rows"]) >= 4 for line in (visits / "safe.jsonl").read_text().splitlines())


@pytest.mark.parametrize("guarantee", ["{algorithm: castle, k: 4, delta: 40}", WINDOWED])
def test_engines_that_forget_people_are_attacked_too(portcullis: Any, visits: Any, guarantee: str) -> None:
    """Each box hides a person among four; all boxes of somebody who came back often do not."""
    (visits / "policy.yaml").write_text(POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", guarantee))
    result = replayed(portcullis, visits, "--report", visits / "report.json", "--html", visits / "report.html")
    assert result.exit_code == 0, result.output
    linked = json.loads((visits / "report.json").read_text())["linked"]
    assert linked["asked"] == 4
    assert linked["fewest"] < 4
    assert linked["below"] > 0.3
    assert linked["identified"] <= linked["below"]
    assert "all rows of a person tied together" in result.stdout
    assert f"leaves fewer than 4 persons for {linked['below']:.1%} of the persons" in result.stderr
    assert "Rows of one person tied together" in (visits / "report.html").read_text()
    assert MARK not in result.output + json.dumps(linked)


def test_rows_of_different_people_cannot_be_tied_together(portcullis: Any, events: Any) -> None:
    policy = (events / "policy.yaml").read_text().replace("person: id", "person: {row: true}")
    (events / "policy.yaml").write_text(policy)
    assert replayed(portcullis, events, "--report", events / "report.json").exit_code == 0
    assert json.loads((events / "report.json").read_text())["linked"] is None


def test_linked_rows_that_leave_too_few_persons_end_the_replay(portcullis: Any, visits: Any, monkeypatch: Any) -> None:
    """As if an engine gave somebody boxes that nobody else is in, and the gate did not see it."""
    few = np.array([1, 2, 3]), np.array([9, 3, 9])
    monkeypatch.setattr("privacy.over_time.candidates", lambda *_: few)
    result = replayed(portcullis, visits)
    assert result.exit_code == 3
    assert "too few persons for 1 of 3" in result.output
    assert not (visits / "safe.jsonl").exists()


@pytest.mark.parametrize(("company", "emit"), [("standing", "clusters"), ("present", "tuples")])
def test_its_owner_can_audit_what_a_replay_wrote(portcullis: Any, visits: Any, company: Any, emit: Any) -> None:
    policy, links, safe = visits / "policy.yaml", visits / "links.jsonl", visits / "safe.jsonl"
    stream = f"stream: {{input: a, output: b, emit: {emit}}}\n"
    policy.write_text(policy.read_text().replace("company: standing", f"company: {company}") + stream)
    assert replayed(portcullis, visits, "--links", links).exit_code == 0

    def audited() -> Any:
        return portcullis("audit", visits / "events.csv", safe, "--policy", policy, "--links", links)

    sound = audited()
    assert sound.exit_code == 0, sound.output
    assert "k-over-time" in sound.output
    assert ("which the replay checked" in sound.output) == (company == "standing")
    written, kept = safe.read_text(), links.read_text()
    first = json.loads(written.splitlines()[0])
    first.get("generalization", first)["age"] = [0, 0]
    safe.write_text("\n".join([json.dumps(first), *written.splitlines()[1:]]) + "\n")
    changed = audited()
    assert changed.exit_code == 1
    assert "no row of the original explains" in changed.output
    assert "k-over-time of 4 fails for" in changed.output
    safe.write_text(written)
    lines = kept.splitlines()
    links.write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    assert audited().exit_code in {1, 2}, "links of other rows"
    links.write_text("\n".join(lines[:-1]) + "\n")
    assert "another number of rows" in audited().output
    links.write_text(kept.replace("[", "[999999,", 1))
    assert "events that are not there" in audited().output
    links.write_text("no links\n")
    assert audited().exit_code == 2


def test_values_that_change_with_every_event_are_refused_unless_the_policy_insists(
    portcullis: Any, visits: Any
) -> None:
    policy, table = visits / "policy.yaml", visits / "events.csv"
    assert portcullis("policy", "check", policy, "--table", table).exit_code == 0
    header, *lines = table.read_text().splitlines()
    at = header.split(",").index("age")
    moved = [
        ",".join([*row[:at], str(20 + number % 60), *row[at + 1 :]]) for number, row in enumerate(csv.reader(lines))
    ]
    table.write_text("\n".join([header, *moved]) + "\n")
    refused = portcullis("policy", "check", policy, "--table", table)
    assert refused.exit_code == 2
    assert "schema.quasi.age" in refused.output
    assert "changed for 40 of 40 persons" in refused.output
    assert "schema.quasi.city" not in refused.output
    policy.write_text(policy.read_text().replace("company: standing", "company: standing, may_change: true"))
    assert portcullis("policy", "check", policy, "--table", table).exit_code == 0


def test_an_audit_says_that_a_file_cannot_show_it(portcullis: Any, visits: Any) -> None:
    (visits / "safe.csv").write_text('age,city,item,shop\n"[20,30]",World,lamp,east\n')
    result = portcullis("audit", visits / "events.csv", visits / "safe.csv", "--policy", visits / "policy.yaml")
    assert result.exit_code != 0
    assert "does not show whose rows" in result.output


AT_ONCE = {
    "z": "{algorithm: z, z: 4, window: {tuples: 60}}",
    "quantile": "{algorithm: quantile, k: 4, universe: 5000, window: 32}",
}


@pytest.mark.parametrize("engine", AT_ONCE)
def test_engines_without_delay_have_none(portcullis: Any, events: Any, engine: str) -> None:
    policy = POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", AT_ONCE[engine])
    (events / "policy.yaml").write_text(policy)
    result = replayed(portcullis, events, "--report", events / "report.json", "--html", events / "report.html")
    assert result.exit_code == 0, result.output
    report = json.loads((events / "report.json").read_text())
    assert report["delays"]["max"] == 0
    assert report["at_once"] == 1.0
    assert report["released"] + report["suppressed"] == 90
    assert report["released"] == report["clusters"] > 60
    assert report["largest_share"] is None
    assert report["guarantees"][0]["achieved"] >= 4
    told = result.output + (events / "report.html").read_text() + json.dumps(report)
    assert "k-anonymity" not in told
    assert MARK not in told
    (events / "policy.yaml").write_text(policy + "show: mean\n")
    refused = replayed(portcullis, events)
    assert refused.exit_code == 2
    assert "must be interval" in refused.output
