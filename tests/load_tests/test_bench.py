"""The one page of numbers: all take part, failures take nothing down, README and docs say what was measured."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from load_tests import bench, headlines
from load_tests.harness import ROOT

RECORD = json.loads(bench.DATA.read_text())
FACTS = {"date": "2026-01-01", "commit": "abc", "cores": 2, "load": 0.5}
ROWS = [{"name": "sabre", "rows": 10, "seconds": 1.5}, {"name": "burel", "rows": 10, "seconds": 3.0}]
HAND_TYPED = re.compile(
    r"\d[\d,.]*\s*(?:(?:tuples|events|messages|rows|requests)/s|µs|ms\b|MB\b|MiB\b|GiB\b|times faster)"
    r"|(?<![tβkθα] = )\b0\.\d{2,}"
    r"|\d\s*(?:%|percent) (?:less|more|of)\b"
    r"|\b(?:an?|two|one) (?:third|quarter|fifth|sixth|seventh|eighth|ninth|tenth)s?\b"
)
"""What measurements look like: speeds, times, sizes, losses, shares; "t = 0.25" is a setting."""
WRITTEN = re.compile(r"<!-- (\w[\w -]*) -->.*?<!-- /\1 -->", re.DOTALL)
"""What a benchmark has put into a page."""
MEASURED_BY_THEMSELVES = {
    "category-attacks.md",
    "column-orders.md",
    "numbers.md",
    "quality-static-results.md",
    "quality-stream-results.md",
    "ratings-speed.md",
    "recodings.md",
}


def record(load: float = 0.5, failed: Any = None, last: Any = None) -> Any:
    found = {"about": "How long it takes.", "machine": FACTS, "seconds": 9, "results": {"speed": ROWS, "rows": 30}}
    return {
        "machine": {**FACTS, "load": load},
        "failed": failed or {},
        "headlines": {"castle.speed": 300_000.0, "mondrian.seconds": 0.5},
        "last": {"machine": FACTS, "headlines": last or {}},
        "benchmarks": {"static_speed": found},
    }


def test_every_benchmark_takes_part_and_all_end_within_twenty_minutes() -> None:
    own = Path(bench.__file__)
    modules = [path for path in own.parent.glob("*.py") if path != own]
    assert {path.stem for path in modules if "arguments(__doc__" in path.read_text()} == set(
        bench.PARTS
    ) | bench.BY_HAND
    assert sum(bench.PARTS.values()) <= 20 * 60


def test_the_page_tells_numbers_goals_failures_and_a_busy_machine() -> None:
    page = bench.page(record(load=7.0, failed={"http_load": "took longer than 3 s"}, last={"castle.speed": 200_000.0}))
    assert "| sabre | 10 | 1.5 |" in page
    assert "300,000 tuples/s of one core | 200,000 (+50%) | at least 200,000 |" in page
    assert "0.5 s |  | at most 0.25 (missed) |" in page
    assert "**Failed this time: http_load**, took longer than 3 s." in page
    assert "How long it takes." in page
    assert "The machine was busy" in page
    assert "The machine was busy" not in bench.page(record())


def test_a_part_that_fails_keeps_its_last_numbers_and_takes_nothing_down(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(name: Any, seconds: Any) -> Any:
        if name == "peers":
            raise bench.PartFailedError("no network")
        return {"machine": FACTS, "seconds": 1, "results": {"name": name}}

    monkeypatch.setattr(bench, "measure", measure)
    before = {**record(), "benchmarks": {"peers": {"machine": FACTS, "seconds": 2, "results": {"name": "old"}}}}
    after = bench.measured(["peers", "audit_speed"], before)
    assert after["failed"] == {"peers": "no network"}
    assert {name: one["results"]["name"] for name, one in after["benchmarks"].items()} == {
        "peers": "old",
        "audit_speed": "audit_speed",
    }
    assert after["last"]["headlines"] == before["headlines"]


def test_what_takes_too_long_is_a_failure() -> None:
    with pytest.raises(bench.PartFailedError, match="longer"):
        bench.measure("audit_speed", 0.05)


def test_a_part_that_dies_is_told_by_its_last_words() -> None:
    with pytest.raises(bench.PartFailedError, match="No module named"):
        bench.measure("nowhere", 60)


def test_a_benchmark_says_of_itself_what_it_measures() -> None:
    about = bench.described("static_speed")
    assert about.startswith("How long the static algorithms take")
    assert "python -m" not in about


def test_figures_tell_how_many_claims_show() -> None:
    figures = [{"figure": "3.7", "panels": [], "claims": [{"held": True}, {"held": False}]}]
    assert "| 3.7 | 1 of 2 |" in "\n".join(bench.tables({"figures": figures}))


@pytest.mark.parametrize(
    ("value", "words"),
    [(442_181.3, "442,000"), (1_547, "1,547"), (37_459, "37,500"), (0.27721, "0.277"), (7.7646, "7.76"), (0, "0")],
)
def test_numbers_in_sentences(value: Any, words: str) -> None:
    assert headlines.text(value) == words


def test_every_headline_was_measured() -> None:
    results = {name: one["results"] for name, one in RECORD["benchmarks"].items()}
    assert headlines.collect(results) == RECORD["headlines"]
    assert set(RECORD["headlines"]) == {one.key for one in headlines.HEADLINES}


def test_the_page_is_what_was_measured() -> None:
    assert bench.page(RECORD) == bench.PAGE.read_text()


@pytest.mark.parametrize("path", bench.texts(), ids=lambda path: path.stem)
def test_texts_say_what_was_measured(path: Any) -> None:
    page = path.read_text()
    assert {mark[1] for mark in headlines.MARK.findall(page)} <= set(RECORD["headlines"])
    assert headlines.fill(page, RECORD["headlines"]) == page
    assert not re.findall(r"^\s*<!-- number", page, re.MULTILINE), "a comment that begins a line ends the paragraph"
    assert page.count("<!-- number:") == page.count("<!-- /number -->") == len(headlines.MARK.findall(page))


@pytest.mark.parametrize(
    "path", [path for path in bench.texts() if path.name not in MEASURED_BY_THEMSELVES], ids=lambda path: path.stem
)
def test_no_measurement_is_typed_by_hand(path: Any) -> None:
    """Put it between marks (load_tests/headlines.py), or refer to the page that a benchmark wrote."""
    prose = re.sub(r"^```.*?^```$", "", WRITTEN.sub("", path.read_text()), flags=re.MULTILINE | re.DOTALL)
    assert HAND_TYPED.findall(headlines.MARK.sub("", re.sub(r"`[^`\n]*`", "", prose))) == []


def test_a_wrong_number_in_a_text_is_noticed() -> None:
    page = "fast: <!-- number: castle.speed -->1<!-- /number --> tuples/s, not 300,000 tuples/s"
    assert headlines.fill(page, {"castle.speed": 5.0}) == page.replace("-->1<", "-->5<")
    assert HAND_TYPED.findall(headlines.MARK.sub("", page))


def test_the_charts_of_the_parameters_are_those_that_were_measured(tmp_path: Path) -> None:
    bench.draw(RECORD["benchmarks"]["parameters"]["results"], tmp_path)  # type: ignore[attr-defined]
    drawn = {path.name: path.read_text() for path in tmp_path.glob("*.svg")}
    assert drawn == {path.name: path.read_text() for path in (ROOT / "docs" / "plots").glob("choosing-*.svg")}
    assert len(drawn) == 6
