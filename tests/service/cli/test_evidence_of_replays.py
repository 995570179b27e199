"""Evidence of replays: it holds for what was written, and shows every row that was moved since."""

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.evidence.filing import canonical
from tests.service.cli.cli_world import CITIES, ITEMS, MARK, POLICY, table_text
from tests.service.cli.evidence_world import refiled, sha256

CASTLE = "{algorithm: castle, k: 4, delta: 40}"
ENGINES = {
    "castle": CASTLE,
    "reuse": "{algorithm: castle, k: 4, delta: 40, reuse: true}",
    "window": "{algorithm: sabre_w, t: 0.4, k: 4, window: {size: 40, advance: 20}}",
    "cohorts": "{algorithm: cohorts, k: 4, l: 2, delay: {tuples: 60}, company: standing}",
    "at once": "{algorithm: z, z: 4, window: {tuples: 100}}",
}
LEFT = {
    *("the signature", "author, time and version", "reported: rejected (reasons)", "reported: workload_error"),
    *("reported: reused", "reported: delays", "reported: at_once"),
    *("reported: timing", "reported: squared_error", "reported: largest_share"),
    "reported: guarantees (achieved, counted_over, failing, ground, holds)",
}
"""Statements that are not verified: they are known from the run alone."""


@pytest.fixture
def filed(portcullis: Any, tmp_path: Path) -> Any:
    """Forty people who come ten times, replayed with an engine; the directory with everything in it."""

    def run(guarantee: str = CASTLE, more: str = "", *options: Any) -> Path:
        policy = POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", guarantee) + more
        (tmp_path / "policy.yaml").write_text(policy)
        header, *lines = table_text(40).splitlines()
        order = np.random.default_rng(4).permutation(np.repeat(np.arange(40), 10))
        (tmp_path / "events.csv").write_text("\n".join([header, *(lines[row] for row in order)]) + "\n")
        arguments = ("--policy", tmp_path / "policy.yaml", "--out", tmp_path / "safe.jsonl")
        result = portcullis("replay", tmp_path / "events.csv", *arguments, "--evidence", tmp_path / "e.json", *options)
        assert result.exit_code == 0, result.output
        return tmp_path

    return run


@pytest.fixture
def verified(portcullis: Any) -> Any:
    """Verify with all that is there; returns the exit status and what came of each check."""

    def run(home: Path, *more: Any) -> Any:
        given = (
            "--policy",
            home / "policy.yaml",
            "--original",
            home / "events.csv",
            "--published",
            home / "safe.jsonl",
        )
        result = portcullis("evidence", "verify", home / "e.json", *given, *more, "--json")
        assert result.exit_code in {0, 1}, result.output
        assert MARK not in result.output
        return result.exit_code, {one["about"]: one["outcome"] for one in json.loads(result.stdout)["checks"]}

    return run


@pytest.mark.parametrize("engine", list(ENGINES))
def test_it_holds_for_what_was_replayed_and_has_no_value(filed: Any, verified: Any, engine: str) -> None:
    home = filed(ENGINES[engine])
    status, outcomes = verified(home)
    assert status == 0
    assert {about for about, outcome in outcomes.items() if outcome != "holds"} == LEFT
    text = (home / "e.json").read_text()
    evidence = json.loads(text)
    assert canonical(evidence) == text.encode()
    clusters = {json.loads(line)["cluster"] for line in (home / "safe.jsonl").read_text().splitlines()}
    assert not any(value in text for value in (MARK, *CITIES, *ITEMS, "North", "South", "east", *clusters))
    assert "loss_over_time" not in evidence["parts"]["reported"], "a point may be about one row"
    assert evidence["parts"]["reported"]["linked"]["persons"]
    limits = " ".join(evidence["parts"]["words"]["limits"])
    assert ("Each event is hidden by itself" in limits) == (engine != "cohorts")
    assert ("Rows may leave alone" in limits) == (engine in {"reuse", "cohorts", "at once"})


def test_means_are_audited_as_means(filed: Any, verified: Any) -> None:
    home = filed(CASTLE, "show: mean\n")
    assert verified(home)[0] == 0
    first, *lines = (home / "safe.jsonl").read_text().splitlines()
    message = json.loads(first)
    message["generalization"]["age"] += 1
    (home / "safe.jsonl").write_text("\n".join([json.dumps(message), *lines]) + "\n")
    refiled(home / "e.json", published={"sha256": [sha256(home / "safe.jsonl")]})
    assert verified(home)[1]["audited: faults"] == "differs"


@pytest.mark.parametrize("engine", ["castle", "reuse", "window", "at once"])
def test_number_of_clusters_is_not_compared_where_records_do_not_show_them(
    filed: Any, verified: Any, engine: str
) -> None:
    """Clusters with one box look like one in flat records, so that genuine evidence counts more of them."""
    home = filed(ENGINES[engine], "stream: {input: a, output: b, emit: tuples}\n")
    filed_clusters = json.loads((home / "e.json").read_bytes())["parts"]["reported"]["clusters"]
    rows = [json.loads(line) for line in (home / "safe.jsonl").read_text().splitlines()]
    assert filed_clusters > len({json.dumps([row["age"], row["city"]]) for row in rows}), "the test is about something"
    status, outcomes = verified(home)
    assert status == 0
    assert outcomes["reported: clusters"] == "not checked"


def test_one_byte_of_the_output_shows(filed: Any, verified: Any) -> None:
    home = filed()
    path = home / "safe.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"rows":', b'"rows": ', 1))
    status, outcomes = verified(home)
    assert (status, outcomes["what was published"]) == (1, "differs")


def moved(messages: list[Any], at: int, rows: str | None) -> list[Any]:
    """The last row of a line goes to the next line, so that the order of all rows stays; or takes its box."""
    messages = json.loads(json.dumps(messages))
    if rows:
        messages[at + 1][rows].insert(0, messages[at][rows].pop())
    else:
        other = next(one for one in messages if one["age"] != messages[at]["age"])
        messages[at] |= {name: other[name] for name in ("age", "city")}
    return messages


@pytest.mark.parametrize("emit", ["clusters", "tuples"])
def test_a_row_in_another_class_shows_though_all_hashes_are_made_to_fit(filed: Any, verified: Any, emit: str) -> None:
    home = filed(CASTLE, f"stream: {{input: a, output: b, emit: {emit}}}\n")
    path = home / "safe.jsonl"
    messages = [json.loads(line) for line in path.read_text().splitlines()]
    for at in (0, 3, 7):
        changed = moved(messages, at, "rows" if emit == "clusters" else None)
        path.write_text("".join(json.dumps(message) + "\n" for message in changed))
        refiled(home / "e.json", published={"sha256": [sha256(path)]})
        status, outcomes = verified(home)
        assert status == 1
        assert outcomes["the hashes of the parts"] == outcomes["what was published"] == "holds"
        assert outcomes["audited: faults"] == outcomes["the guarantee"] == "differs"


def test_a_row_between_clusters_with_the_same_box_shows(filed: Any, verified: Any) -> None:
    """All boxes are made alike: then only the links tell which row left with which cluster."""
    home = filed()
    path = home / "safe.jsonl"
    messages = [json.loads(line) for line in path.read_text().splitlines()]
    for message in messages:
        message["generalization"] = {"age": [0, 120], "city": "World"}
    path.write_text("".join(json.dumps(message) + "\n" for message in messages))
    assert verified(home)[1]["audited: faults"] == "holds", "every row is in that box"
    path.write_text("".join(json.dumps(message) + "\n" for message in moved(messages, 2, "rows")))
    assert verified(home)[1]["audited: faults"] == "differs"


def test_links_are_their_owners_and_must_be_the_same(filed: Any, verified: Any) -> None:
    home = filed()
    links = home / "e.json.links"
    assert stat.S_IMODE(links.stat().st_mode) == 0o600
    written = links.read_text()
    first, second, *rest = written.splitlines()
    links.write_text("\n".join([second, first, *rest]) + "\n")
    status, outcomes = verified(home)
    assert (status, outcomes["the links"]) == (1, "differs")
    links.unlink()
    status, outcomes = verified(home)
    assert (status, outcomes["the links"], outcomes["what the audit found"]) == (0, "not checked", "not checked")
    (home / "elsewhere").write_text(written)
    assert verified(home, "--links", home / "elsewhere")[1]["the links"] == "holds"


def test_nothing_released_is_filed_as_nothing(filed: Any, verified: Any) -> None:
    home = filed("{algorithm: cohorts, k: 60, delay: {tuples: 60}, company: standing}")
    assert not (home / "safe.jsonl").read_bytes()
    assert verified(home)[0] == 0
    assert json.loads((home / "e.json").read_text())["parts"]["audited"] == {
        "holds": False,
        "outcome": "not shown",
        "unread": True,
    }


def test_a_page_says_it_in_words(filed: Any, portcullis: Any) -> None:
    home = filed(ENGINES["cohorts"])
    page = portcullis("evidence", "show", home / "e.json").stdout
    for words in (
        "Not verified, the file says: the guarantee holds",
        "a replay of events",
        "Tied rows",
        "Known moment",
        "tie all published rows",
    ):
        assert words in page
    refiled(home / "e.json", made={"by": "<script>alert(1)</script>"})
    assert "<script>" not in portcullis("evidence", "show", home / "e.json").stdout
    refiled(home / "e.json", reported={"linked": {"persons": "many"}})
    result = portcullis("evidence", "show", home / "e.json")
    assert (result.exit_code, "is no evidence of Portcullis" in result.stderr) == (2, True)
